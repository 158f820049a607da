//! A vendor that says no: what was confirmed before counts no more, and what rests on it ends.

use countersign_erp_source::VendorId;
use uuid::Uuid;

use crate::domain::decision::Stage;
use crate::domain::names::AlarmId;
use crate::domain::operation::{Operation, Status};
use crate::domain::reason::Reason;
use crate::gateway::pack::{Automatic, Denial, freeze_by_itself, raise_alarm, refuse_waiting};
use crate::store::baseline::{self, AccountStatus};
use crate::store::callbacks::{self, Callback};
use crate::store::freezes::{Alarm, FreezeScope};
use crate::store::{StoreError, Unit, operations};

/// The alarm that a vendor said no.
pub const CALLBACK_DENIED: &str = "callback_denied";

/// Ends what a call-back denies. What waits is refused; what is being carried out finds its own
/// call-back void when it is decided again. Where the account is on file already, or may be in a
/// moment, the vendor is frozen: nothing goes out while people find out.
pub(super) async fn ends(
    unit: &mut Unit<'_>,
    callback: &Callback,
    (freeze_id, alarm_id): (Uuid, Uuid),
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
    let is_on_file = is_on_file(unit, callback).await?;
    if is_on_file || under_way.is_some() {
        let where_it_is = if is_on_file { "is on file" } else { "was just being put on file" };
        let detail = format!(
            "{said} That account {where_it_is}, so the vendor is frozen. Find out from the vendor \
             which account is theirs, look at who asked for this one and who approved it, and put \
             right what the ERP has before you thaw."
        );
        let scope = FreezeScope::Vendor { company: company.to_string(), vendor: vendor.clone() };
        let found = Automatic { scope, cause: CALLBACK_DENIED, detail };
        let operation = under_way.as_ref();
        return freeze_by_itself(unit, &found, operation, freeze_id, alarm_id, *called_at).await;
    }
    let raised = Alarm {
        id: AlarmId::from_uuid(alarm_id),
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
    let live = operations::find_live(unit.conn(), &callback.company, &thing).await?;
    let about_it = |operation: &Operation| {
        let params = &operation.substance.params;
        let iban = params.get("new_iban").or_else(|| params.get("iban"));
        iban.is_some_and(|param| param.value == callback.new_iban)
    };
    Ok(live.filter(about_it))
}

/// Whether that account is one that payments may go to today.
async fn is_on_file(unit: &mut Unit<'_>, callback: &Callback) -> Result<bool, StoreError> {
    let vendor = vendor_of(callback)?;
    let known = baseline::known(unit.conn(), &callback.company, &vendor, &[]).await?;
    Ok(known.accounts.iter().any(|account| {
        account.active
            && account.vendor == callback.vendor
            && account.number == callback.new_iban
            && account.status != AccountStatus::ChangedInErp
    }))
}

fn vendor_of(callback: &Callback) -> Result<VendorId, StoreError> {
    VendorId::new(callback.vendor.clone())
        .map_err(|_fault| StoreError::inconsistent("callback", "vendor", "cannot be read"))
}
