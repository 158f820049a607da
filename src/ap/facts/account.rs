//! The account that is to be paid, compared with the baseline; what the comparison finds is kept.

use super::collected::FactKind;
use super::missing;
use crate::ap::UPDATE_BANK_DETAILS;
use crate::ap::invoice_pay::Payment;
use crate::ap::sighting::{self, LookError, Told};
use crate::domain::decision::Stage;
use crate::domain::reason::Reason;
use crate::gateway::pack::Denial;
use crate::store::baseline::{self, AccountStatus, BaselineAccount};
use crate::store::precedents;

/// What the baseline has of the account that is to be paid.
pub(super) struct OnFile {
    pub(super) account: BaselineAccount,
    /// The vendor is not what it was: renamed, made another's, its accounts put into another order,
    /// merged with another one, or the bill was entered for a vendor that somebody made a contact of
    /// this one. Its account is not the payee's then.
    vendor_changed: bool,
}

/// What the baseline has of the account that is to be paid, after this comparison.
pub(super) async fn on_file(payment: &Payment) -> Result<OnFile, Denial> {
    let entered_is_vendor = not_being_changed(payment).await?;
    let company = &payment.mandate.company;
    let sighting =
        sighting::look(payment.pack.ports(), company, &payment.vendor, &Told::default()).await;
    let sighting = sighting.map_err(|fault| match fault {
        LookError::Store(fault) => Denial::error(Reason::StoreUnavailable, fault),
        LookError::Randomness(fault) => missing(&[FactKind::BANK_STATUS], &fault),
    })?;
    if sighting.adopted_at.is_none() {
        return Err(Denial::new(Stage::Policy, Reason::BaselineMissing));
    }
    let found = sighting.found;
    let vendor_changed = found.has_reowned() || found.is_disputed() || entered_is_vendor;
    let account = found
        .accounts
        .into_iter()
        .find(|account| account.account == payment.account.id.as_str())
        .ok_or_else(|| missing(&[FactKind::BANK_STATUS], &"the account is not in the baseline"))?;
    Ok(OnFile { account, vendor_changed })
}

/// While a change of ours is on its way nobody can say what is changed behind our back. Says whether
/// the contact that was entered on the bill is itself known as a vendor.
async fn not_being_changed(payment: &Payment) -> Result<bool, Denial> {
    let (company, vendor) = (&payment.mandate.company, &payment.vendor.id);
    let entered = &payment.reading.bill.header.entered;
    let asked = (
        precedents::executes(company, vendor.as_str(), UPDATE_BANK_DETAILS),
        (entered != vendor).then(|| baseline::is_known(company, entered)),
    );
    let answered = payment.pack.ports().store.ask(asked).await;
    let (executing, entered_is_vendor) =
        answered.map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
    if executing {
        let why = "the vendor's bank details are being changed at this moment";
        return Err(missing(&[FactKind::BANK_STATUS], &why));
    }
    Ok(entered_is_vendor.unwrap_or(false))
}

pub(super) fn bank_status(payment: &Payment, on_file: &OnFile) -> &'static str {
    let status = on_file.account.status;
    if status == AccountStatus::ChangedInErp || on_file.vendor_changed {
        return AccountStatus::ChangedInErp.code();
    }
    let settled = matches!(status, AccountStatus::Adopted | AccountStatus::Verified);
    let several = payment.vendor.active_accounts().count() > 1;
    if !payment.payee_certain || (several && !settled) {
        return "ambiguous";
    }
    status.code()
}
