//! How a vendor's accounts and telephones came to be on file, and why each is payable today or not, in
//! plain language (API 4).

use std::time::Duration;

use countersign_erp_source::{CompanyId, Timestamp, Vendor, VendorId};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::baseline::{Comparison, PHONE_UNTRUSTED_FOR, is_trusted};
use super::super::reading::ReadingError;
use super::super::{AccountsPayable, UPDATE_BANK_DETAILS, sighting};
use super::denied::NOT_THEIRS;
use crate::ap::baseline;
use crate::store::baseline::{AccountStatus, BaselineAccount, BaselinePhone, Event};
use crate::store::callbacks::{self, Callback};
use crate::store::{Conn, StoreError, freezes, precedents};

/// The most events and calls that are shown: the newest.
const SHOWN_MAX: i64 = 200;

/// What is known of a vendor's details.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BankHistory")]
pub struct HistoryView {
    vendor_id: String,
    name: String,
    /// Since when and in which way the vendor is not what it was.
    dispute: Option<DisputeView>,
    accounts: Vec<AccountView>,
    phones: Vec<PhoneView>,
    callbacks: Vec<CallbackView>,
    events: Vec<EventView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DisputeView {
    #[schemars(with = "String")]
    since: Timestamp,
    what: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AccountView {
    account_ref: String,
    iban: String,
    active: bool,
    bank_status: &'static str,
    #[schemars(with = "String")]
    since: Timestamp,
    age_days: i64,
    payable: bool,
    why: String,
    operation: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PhoneView {
    kind: &'static str,
    number: String,
    #[schemars(with = "String")]
    since: Timestamp,
    trusted: bool,
    why: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CallbackView {
    id: String,
    new_iban: String,
    called_by: String,
    number_dialled: String,
    spoke_to: String,
    outcome: &'static str,
    counts: bool,
    why_not: Vec<String>,
    #[schemars(with = "String")]
    called_at: Timestamp,
    #[schemars(with = "String")]
    expires_at: Timestamp,
    status: &'static str,
    operation: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EventView {
    #[schemars(with = "String")]
    at: Timestamp,
    #[schemars(with = "String")]
    seen_at: Timestamp,
    what: String,
    account_ref: Option<String>,
    before: Option<String>,
    after: Option<String>,
    by: Option<String>,
    source: &'static str,
    operation: Option<String>,
}

/// What the store holds about a vendor.
struct Kept {
    found: Comparison,
    frozen: bool,
    change_pending: bool,
    callbacks: Vec<Callback>,
    events: Vec<Event>,
}

impl AccountsPayable {
    /// How the vendor's details came to be on file; `None` if the company has no such vendor.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub async fn bank_history(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<HistoryView>, ReadingError> {
        let found = self.ports().erp.find_vendor(company, vendor).await;
        let found = found.map_err(ReadingError::Erp)?;
        let Some(vendor) = found.filter(|found| found.company == *company) else {
            return Ok(None);
        };
        let (company, now, read) = (company.clone(), self.ports().clock.now(), vendor.clone());
        let kept = self
            .ports()
            .store
            .read(move |conn| Box::pin(async move { kept(conn, &company, &read, now).await }))
            .await
            .map_err(ReadingError::Store)?;
        let cooling_off = self.rules().cooling_off;
        let accounts = kept
            .found
            .accounts
            .iter()
            .map(|account| account_view(account, &vendor, &kept, cooling_off, now))
            .collect();
        let dispute = kept.found.vendor.as_ref().and_then(|vendor| vendor.dispute.clone());
        Ok(Some(HistoryView {
            vendor_id: vendor.id.to_string(),
            name: vendor.name.clone(),
            dispute: dispute.map(|found| DisputeView { since: found.since, what: found.what }),
            accounts,
            phones: kept.found.phones.iter().map(|phone| phone_view(phone, now)).collect(),
            callbacks: kept.callbacks.into_iter().map(callback_view).collect(),
            events: kept.events.into_iter().map(event_view).collect(),
        }))
    }
}

async fn kept(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &Vendor,
    now: Timestamp,
) -> Result<Kept, StoreError> {
    let known = conn.ask(sighting::known(company, vendor)).await?;
    let id = vendor.id.as_str();
    Ok(Kept {
        found: baseline::compare(&known, vendor, now),
        frozen: conn.ask(freezes::is_frozen(company, id)).await?,
        change_pending: conn
            .ask(precedents::is_under_way(company, id, UPDATE_BANK_DETAILS))
            .await?,
        callbacks: callbacks::of_vendor(conn, company, id, SHOWN_MAX).await?,
        events: crate::store::baseline::events(conn, company, &vendor.id, SHOWN_MAX).await?,
    })
}

fn account_view(
    account: &BaselineAccount,
    vendor: &Vendor,
    kept: &Kept,
    cooling_off: Duration,
    now: Timestamp,
) -> AccountView {
    let (payable, why) = payable(account, vendor, kept, cooling_off, now);
    AccountView {
        account_ref: account.account.clone(),
        iban: account.number.clone(),
        active: account.active,
        bank_status: account.status.code(),
        since: account.since,
        age_days: now.whole_days_since(account.since),
        payable,
        why,
        operation: account.operation.clone(),
    }
}

/// Whether the account can be paid today, with whose approval, and why.
fn payable(
    account: &BaselineAccount,
    vendor: &Vendor,
    kept: &Kept,
    cooling_off: Duration,
    now: Timestamp,
) -> (bool, String) {
    let in_erp = vendor.accounts.iter().find(|in_erp| in_erp.id.as_str() == account.account);
    let since = account.since;
    let changed = "It is paid again after a call-back to the vendor and four eyes \
                   (bank-confirmations).";
    let note = account.note.as_deref().unwrap_or("changed in the ERP");
    let no = |why: String| (false, why);
    if !account.active || in_erp.is_none_or(|in_erp| !in_erp.active) {
        return no(format!(
            "Not paid: the account is archived or gone in the ERP ({note}, {since})."
        ));
    }
    if kept.frozen {
        return no("Not paid: the vendor, or the company, is frozen.".to_owned());
    }
    if in_erp.is_some_and(|in_erp| !in_erp.erp_allows) {
        return no("Not paid: the ERP itself does not allow payments to it.".to_owned());
    }
    if note == NOT_THEIRS {
        return no(format!("Not paid: {note}, {since}. {changed}"));
    }
    if account.status == AccountStatus::ChangedInErp {
        return no(format!("Not paid: {note}, without Countersign, seen {since}. {changed}"));
    }
    if let Some(dispute) = kept.found.vendor.as_ref().and_then(|vendor| vendor.dispute.as_ref()) {
        let (what, since) = (&dispute.what, dispute.since);
        return no(format!(
            "Not paid: the vendor was {what}, without Countersign, seen {since}. {changed}"
        ));
    }
    if account.reowned {
        return no(format!("Not paid: the account was another vendor's before. {changed}"));
    }
    let how = match account.status {
        AccountStatus::Adopted => "on file when Countersign first met the ERP",
        AccountStatus::Verified => "confirmed by a call-back and four eyes",
        AccountStatus::Unverified => "of a vendor first seen later; nobody has confirmed it",
        AccountStatus::ChangedInErp => "changed in the ERP",
    };
    let mut needs = Vec::new();
    if account.status == AccountStatus::Unverified {
        needs.push("nobody has confirmed it with the vendor".to_owned());
    }
    if now.since(since) < cooling_off {
        let until = since.plus(cooling_off);
        needs.push(format!("it is in its cooling-off until {until}"));
    }
    if kept.change_pending {
        needs.push("a change of the vendor's bank details is under way".to_owned());
    }
    let several = vendor.active_accounts().count() > 1;
    let named = if several {
        " The vendor has several accounts: only a bill that names this one."
    } else {
        ""
    };
    if needs.is_empty() {
        (true, format!("Paid by itself within the limits: {how}, since {since}.{named}"))
    } else {
        let needs = needs.join(", and ");
        (true, format!("Paid with four eyes only: {needs}. It is {how}, since {since}.{named}"))
    }
}

fn phone_view(phone: &BaselinePhone, now: Timestamp) -> PhoneView {
    let trusted = is_trusted(phone, now);
    let since = phone.since;
    let why = match (phone.number.is_empty(), phone.confirmed_at, phone.adopted, trusted) {
        (true, ..) => format!("No number: it was taken away in the ERP, seen {since}."),
        (_, Some(at), ..) => format!("A number to call back on: confirmed by four eyes on {at}."),
        (_, None, true, _) => {
            format!("A number to call back on: on file since {since}, adopted at first contact.")
        }
        (_, None, false, true) => {
            format!("A number to call back on: unchanged for 90 days, since {since}.")
        }
        (_, None, false, false) => {
            let until = since.plus(PHONE_UNTRUSTED_FOR);
            format!(
                "Not a number to call back on: it came or changed in the ERP, seen {since}. It \
                 becomes one on {until}, or by a confirmation with four eyes (phone-confirmations)."
            )
        }
    };
    PhoneView { kind: phone.kind, number: phone.number.clone(), since, trusted, why }
}

fn callback_view(callback: Callback) -> CallbackView {
    CallbackView {
        id: callback.id.to_string(),
        new_iban: callback.new_iban,
        called_by: callback.caller.to_string(),
        number_dialled: callback.number_dialled,
        spoke_to: callback.spoke_to,
        outcome: callback.outcome.code(),
        counts: callback.why_not.is_empty(),
        why_not: callback.why_not,
        called_at: callback.called_at,
        expires_at: callback.expires_at,
        status: callback.state.code(),
        operation: callback.operation.map(|operation| operation.to_string()),
    }
}

fn event_view(event: Event) -> EventView {
    EventView {
        at: event.at,
        seen_at: event.seen_at,
        what: event.what,
        account_ref: event.account,
        before: event.before,
        after: event.after,
        by: event.by,
        source: event.source,
        operation: event.operation,
    }
}
