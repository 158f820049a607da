//! A vendor that says no: what was confirmed before counts no more, and what rests on it ends.

use countersign_erp_source::{AccountNumber, Iban, Timestamp, VendorId};
use uuid::Uuid;

use crate::ap::UPDATE_BANK_DETAILS;
use crate::domain::decision::Stage;
use crate::domain::names::{AlarmId, EventId, OperationId};
use crate::domain::operation::{Operation, Status};
use crate::domain::reason::Reason;
use crate::gateway::pack::{Automatic, Denial, freeze_by_itself, raise_alarm, refuse_waiting};
use crate::store::baseline::{self, AccountStatus, BaselineAccount, Event, FROM_CALLBACK};
use crate::store::callbacks::{self, Callback};
use crate::store::freezes::{Alarm, FreezeScope};
use crate::store::{StoreError, Unit, operations};

/// The alarm that a vendor said no.
pub const CALLBACK_DENIED: &str = "callback_denied";

/// What an account is noted for that the vendor said no to.
pub(in crate::ap) const NOT_THEIRS: &str =
    "the vendor said on the telephone that this account is not theirs";

/// Ids for what a no may leave behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids {
    pub(super) freeze: Uuid,
    pub(super) alarm: Uuid,
    pub(super) event: Uuid,
}

/// An account on file that the vendor said no to.
#[derive(Debug, Default)]
struct Doubted {
    /// The operation of ours that made it what it was, where one did.
    operation: Option<OperationId>,
    /// The edit in the ERP that made it what it was, where it was not vouched for since.
    edit: Option<Event>,
}

/// Ends what a call-back denies. What waits is refused; what is being carried out finds its own
/// call-back void when it is decided again. Where the account is on file already it is not payable
/// before it is confirmed anew; where it may be in a moment, it will not be. The vendor is frozen:
/// nothing goes out while people find out.
pub(super) async fn ends(
    unit: &mut Unit<'_>,
    callback: &Callback,
    ids: Ids,
) -> Result<(), StoreError> {
    let Callback { company, vendor, new_iban, called_at, .. } = callback;
    let because = "a later call-back did not confirm it";
    callbacks::void_about(unit.conn(), company, vendor, new_iban, because, *called_at).await?;
    let thing = super::bank_of(&vendor_of(callback)?);
    let asked = operations::first_proposed(company, &thing, UPDATE_BANK_DETAILS, new_iban);
    let asked = unit.conn().ask(asked).await?;
    let mut under_way = resting_on(unit, callback).await?;
    if let Some(waits) = under_way.take_if(|operation| operation.status == Status::Pending) {
        let denial = Denial::new(Stage::Policy, Reason::CallbackDenied);
        refuse_waiting(unit, &waits, &denial, *called_at).await?;
    }
    let doubted = doubts(unit, callback, ids.event).await?;
    if let Some(operation) = doubted.as_ref().and_then(|doubted| doubted.operation.as_ref()) {
        under_way = unit.ask(operations::find(operation)).await?;
    }
    let said = said(callback, asked.as_ref());
    if doubted.is_none() && under_way.is_none() {
        let raised = Alarm {
            id: AlarmId::from_uuid(ids.alarm),
            kind: CALLBACK_DENIED.to_owned(),
            company: Some(company.to_string()),
            counterparty: Some(vendor.clone()),
            operation: None,
            subject: None,
            detail: format!("{said} {}", nowhere(asked.is_some())),
            raised_at: *called_at,
            closed: None,
        };
        raise_alarm(unit, &raised).await?;
        return Ok(());
    }
    let detail = format!("{said} {}", on_file(doubted.as_ref()));
    let scope = FreezeScope::Vendor { company: company.to_string(), vendor: vendor.clone() };
    let found = Automatic { scope, cause: CALLBACK_DENIED, detail };
    freeze_by_itself(unit, &found, under_way.as_ref(), ids.freeze, ids.alarm, *called_at).await
}

/// Who said no to whom, and whether anybody had asked.
fn said(callback: &Callback, asked: Option<&(Timestamp, String)>) -> String {
    let answered = match callback.spoke_to.as_str() {
        "" => "Whoever answered",
        somebody => somebody,
    };
    let asked = match asked {
        Some((at, who)) => format!("{who} asked for a change to it first on {at}."),
        None => "Nobody has asked Countersign for a change to it.".to_owned(),
    };
    format!("{answered} did not confirm the account when {} called. {asked}", callback.caller)
}

/// What to do about an account that is on file nowhere.
fn nowhere(is_asked: bool) -> &'static str {
    if is_asked {
        "That change is refused, and whoever is behind it is not the vendor: look at how the request \
         came in, and at what else came the same way."
    } else {
        "Nothing was changed. Where a request came in some other way, whoever is behind it is not \
         the vendor: look at what else came the same way."
    }
}

/// What to do about an account that is on file, or was just being put there.
fn on_file(doubted: Option<&Doubted>) -> String {
    let end = "Have an approver thaw the vendor when that is done. The account is not paid before a \
               bank-confirmation.";
    let Some(doubted) = doubted else {
        return format!(
            "That account was just being put on file, so the vendor is frozen. Find out from the \
             vendor which account is theirs, look at who asked for this one and who approved it, \
             and put right what the ERP has. {end}"
        );
    };
    let Some(edit) = &doubted.edit else {
        return format!(
            "That account is on file, so the vendor is frozen. Find out from the vendor which account \
             is theirs, look at how this one came to be on file and who approved it, and put right \
             what the ERP has. {end}"
        );
    };
    let by = match &edit.by {
        Some(by) => format!("by {by}, {}", edit.at),
        None => format!("seen {}; the ERP's own log may say by whom", edit.seen_at),
    };
    format!(
        "The ERP was edited to that account without Countersign ({by}), so the vendor is frozen. Take it out of the ERP and put back what was on file before; \
         find out whose edit that was, and whether somebody else has their login; and ask the vendor \
         which account is theirs. {end}"
    )
}

/// What lives and is about the same account.
async fn resting_on(
    unit: &mut Unit<'_>,
    callback: &Callback,
) -> Result<Option<Operation>, StoreError> {
    let thing = super::bank_of(&vendor_of(callback)?);
    let live = unit.conn().ask(operations::find_live(&callback.company, &thing)).await?;
    let about_it = |operation: &Operation| {
        let params = &operation.substance.params;
        let iban = params.get("new_iban").or_else(|| params.get("iban"));
        iban.is_some_and(|param| param.value == callback.new_iban)
    };
    Ok(live.filter(about_it))
}

/// Makes the account one that is not paid, where the vendor has it on file; what the ERP was edited to
/// is not paid as it is, and is one now that the vendor said no to.
async fn doubts(
    unit: &mut Unit<'_>,
    callback: &Callback,
    id: Uuid,
) -> Result<Option<Doubted>, StoreError> {
    let (company, vendor) = (&callback.company, vendor_of(callback)?);
    let known = unit.conn().ask(baseline::known(company, &vendor, &[])).await?;
    let is_it = |account: &&BaselineAccount| {
        account.active
            && account.vendor == callback.vendor
            && AccountNumber::from_erp(&account.number).iban().map(Iban::electronic)
                == Some(&callback.new_iban)
    };
    let mut found = None;
    for (id, account) in (id.as_u128()..).zip(known.accounts.iter().filter(is_it)) {
        let made_by = account.operation.as_deref().map(OperationId::parse).transpose();
        let operation = made_by.map_err(|_fault| {
            StoreError::inconsistent("baseline_account", "operation", "cannot be read")
        })?;
        let is_said = account.note.as_deref() == Some(NOT_THEIRS);
        let edit = if account.status == AccountStatus::ChangedInErp && !is_said {
            let edits = baseline::edits(company, &callback.vendor, &account.account);
            unit.conn().ask(edits).await?.1
        } else {
            None
        };
        found = Some(Doubted { operation, edit });
        let doubted = BaselineAccount {
            since: callback.called_at,
            status: AccountStatus::ChangedInErp,
            note: Some(NOT_THEIRS.to_owned()),
            ..account.clone()
        };
        baseline::observe(unit.conn(), company, &doubted).await?;
        let event = Event {
            id: EventId::from_uuid(Uuid::from_u128(id)),
            vendor: callback.vendor.clone(),
            account: Some(account.account.clone()),
            what: NOT_THEIRS.to_owned(),
            before: Some(account.status.code().to_owned()),
            after: Some(doubted.status.code().to_owned()),
            at: callback.called_at,
            seen_at: callback.called_at,
            by: Some(callback.caller.to_string()),
            source: FROM_CALLBACK,
            operation: None,
        };
        baseline::note(unit.conn(), company, &event).await?;
    }
    Ok(found)
}

fn vendor_of(callback: &Callback) -> Result<VendorId, StoreError> {
    VendorId::new(callback.vendor.clone())
        .map_err(|_fault| StoreError::inconsistent("callback", "vendor", "cannot be read"))
}
