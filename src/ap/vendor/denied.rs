//! A vendor that says no: what was confirmed before counts no more, and what rests on it ends.

use countersign_erp_source::VendorId;
use uuid::Uuid;

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
    let mut under_way = resting_on(unit, callback).await?;
    if let Some(waits) = under_way.take_if(|operation| operation.status == Status::Pending) {
        let denial = Denial::new(Stage::Policy, Reason::CallbackDenied);
        refuse_waiting(unit, &waits, &denial, *called_at).await?;
    }
    let said = format!(
        "{} did not confirm the new account when {} called.",
        callback.spoke_to, callback.caller
    );
    let doubted = doubts(unit, callback, ids.event).await?;
    let is_on_file = doubted.is_some();
    if let Some(Some(operation)) = doubted {
        under_way = operations::find(unit.conn(), &operation).await?;
    }
    if is_on_file || under_way.is_some() {
        let where_it_is = if is_on_file { "is on file" } else { "was just being put on file" };
        let detail = format!(
            "{said} That account {where_it_is}, so the vendor is frozen. Find out from the vendor \
             which account is theirs, look at who asked for this one and who approved it, and put \
             right what the ERP has before you thaw. The account is not paid before a \
             bank-confirmation."
        );
        let scope = FreezeScope::Vendor { company: company.to_string(), vendor: vendor.clone() };
        let found = Automatic { scope, cause: CALLBACK_DENIED, detail };
        let operation = under_way.as_ref();
        return freeze_by_itself(unit, &found, operation, ids.freeze, ids.alarm, *called_at).await;
    }
    let raised = Alarm {
        id: AlarmId::from_uuid(ids.alarm),
        kind: CALLBACK_DENIED.to_owned(),
        company: Some(company.to_string()),
        counterparty: Some(vendor.clone()),
        operation: None,
        subject: None,
        detail: format!(
            "{said} The change is refused. Whoever asked for it is not the vendor: look at how the \
             request came in, and at what else came the same way."
        ),
        raised_at: *called_at,
        closed: None,
    };
    raise_alarm(unit, &raised).await?;
    Ok(())
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

/// Makes the account one that is not paid, where it is one that payments may go to today. Gives the
/// operation that made it that, where one did.
async fn doubts(
    unit: &mut Unit<'_>,
    callback: &Callback,
    id: Uuid,
) -> Result<Option<Option<OperationId>>, StoreError> {
    let company = &callback.company;
    let known = unit.conn().ask(baseline::known(company, &vendor_of(callback)?, &[])).await?;
    let is_it = |account: &&BaselineAccount| {
        account.active
            && account.vendor == callback.vendor
            && account.number == callback.new_iban
            && account.status != AccountStatus::ChangedInErp
    };
    let mut found = None;
    for (id, account) in (id.as_u128()..).zip(known.accounts.iter().filter(is_it)) {
        let made_by = account.operation.as_deref().map(OperationId::parse).transpose();
        found = Some(made_by.map_err(|_fault| {
            StoreError::inconsistent("baseline_account", "operation", "cannot be read")
        })?);
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
