//! The account that is to be paid, compared with the baseline; what the comparison finds is kept.

use countersign_erp_source::Timestamp;

use super::collected::FactKind;
use super::missing;
use crate::ap::baseline::{self, Comparison};
use crate::ap::invoice_pay::Payment;
use crate::domain::decision::Stage;
use crate::domain::reason::Reason;
use crate::gateway::pack::Denial;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::baseline::{AccountStatus, BaselineAccount, Known};
use crate::store::latest_moment;

/// What the baseline has of the account that is to be paid.
pub(super) struct OnFile {
    pub(super) account: BaselineAccount,
    /// The vendor is not what it was: it was merged with another one, or the bill was entered for a
    /// vendor that somebody made a contact of this one. Its account is not the payee's then.
    vendor_changed: bool,
}

/// What the baseline has of the account that is to be paid, after this comparison.
pub(super) async fn on_file(payment: &Payment, now: Timestamp) -> Result<OnFile, Denial> {
    let known = read_baseline(payment).await?;
    if known.adopted_at.is_none() {
        return Err(Denial::new(Stage::Policy, Reason::BaselineMissing));
    }
    let mut found = baseline::compare(&known, &payment.vendor, now);
    if !found.is_unchanged() {
        keep(payment, now).await?;
        // What stands in the store now is what counts: another daemon may have been first.
        found = baseline::compare(&read_baseline(payment).await?, &payment.vendor, now);
    }
    let vendor_changed = found.has_reowned() || known.entered_is_vendor;
    let account = found
        .accounts
        .into_iter()
        .find(|account| account.account == payment.account.id.as_str())
        .ok_or_else(|| missing(&[FactKind::BANK_STATUS], &"the account is not in the baseline"))?;
    Ok(OnFile { account, vendor_changed })
}

async fn read_baseline(payment: &Payment) -> Result<Known, Denial> {
    let company = payment.mandate.company.clone();
    let vendor = payment.vendor.id.clone();
    let entered = payment.reading.bill.header.entered.clone();
    let accounts: Vec<String> =
        payment.vendor.accounts.iter().map(|account| account.id.to_string()).collect();
    payment
        .pack
        .ports()
        .store
        .read(move |conn| {
            Box::pin(async move {
                let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
                let known =
                    crate::store::baseline::known(conn, &company, &vendor, &accounts).await?;
                let entered_is_vendor = entered != vendor
                    && crate::store::baseline::is_known(conn, &company, &entered).await?;
                Ok(Known { entered_is_vendor, ..known })
            })
        })
        .await
        .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
}

/// Keeps what a comparison found, compared once more under the store's own lock.
///
/// INVARIANT: nothing first seen is older than the newest receipts. A clock that was set back would
/// otherwise give an account an age that it gets by the clock being mended.
async fn keep(payment: &Payment, now: Timestamp) -> Result<(), Denial> {
    let company = payment.mandate.company.clone();
    let vendor = payment.vendor.clone();
    payment
        .pack
        .ports()
        .store
        .write(move |unit| {
            Box::pin(async move {
                let ids: Vec<String> =
                    vendor.accounts.iter().map(|account| account.id.to_string()).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let known =
                    crate::store::baseline::known(unit.conn(), &company, &vendor.id, &ids).await?;
                let now = now.max(latest_moment(unit.conn()).await?);
                let found = baseline::compare(&known, &vendor, now);
                if let Some(new) = &found.new_vendor {
                    crate::store::baseline::first_seen(unit.conn(), &company, new).await?;
                }
                for account in &found.observed {
                    crate::store::baseline::observe(unit.conn(), &company, account).await?;
                }
                if !found.is_unchanged() {
                    unit.receipt(changed_receipt(&company, &vendor.id, &known, &found, now))?;
                }
                Ok(())
            })
        })
        .await
        .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
    Ok(())
}

fn changed_receipt(
    company: &countersign_erp_source::CompanyId,
    vendor: &countersign_erp_source::VendorId,
    known: &Known,
    found: &Comparison,
    now: Timestamp,
) -> Receipt {
    let account = |account: &BaselineAccount| {
        serde_json::json!({
            "account": account.account, "active": account.active, "number": account.number,
            "owner": account.vendor, "since": account.since, "status": account.status.code(),
            "note": account.note,
        })
    };
    let before: Vec<_> = known.accounts.iter().map(account).collect();
    let now_seen: Vec<_> = found.observed.iter().map(account).collect();
    Receipt {
        kind: ReceiptKind::BaselineChanged,
        at: now,
        company: Some(company.to_string()),
        operation: None,
        data: serde_json::json!({
            "vendor": vendor, "first_seen": found.new_vendor.is_some(),
            "before": before, "now": now_seen,
        }),
    }
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
