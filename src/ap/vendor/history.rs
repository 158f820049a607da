//! How a vendor's accounts and telephones came to be on file, and why each is payable today or not, in
//! plain language (API 4).

use std::borrow::Cow;
use std::time::Duration;

use countersign_erp_source::{CompanyId, Timestamp, Vendor, VendorId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::super::baseline::{Comparison, PHONE_UNTRUSTED_FOR, is_trusted};
use super::super::reading::ReadingError;
use super::super::{AccountsPayable, UPDATE_BANK_DETAILS, sighting};
use super::denied::NOT_THEIRS;
use crate::ap::baseline;
use crate::store::baseline::{
    AccountStatus, BaselineAccount, BaselinePhone, Event, FROM_CALLBACK, FROM_COMPARING,
    FROM_ERP_LOG, FROM_OPERATION, PHONE_CONFIRMED, VERIFIED,
};
use crate::store::callbacks::{self, Callback, CallbackState, Outcome};
use crate::store::{Conn, StoreError, freezes, precedents, votes};

/// The most events and calls that are shown: the newest.
const SHOWN_MAX: i64 = 200;

/// What is known of a vendor's details.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BankHistory")]
pub struct HistoryView {
    vendor_id: String,
    name: String,
    /// Since when and in which way the vendor is not what it was; else `null`. While there is a dispute
    /// none of its accounts is paid; a bank-confirmation ends it.
    dispute: Option<DisputeView>,
    accounts: Vec<AccountView>,
    phones: Vec<PhoneView>,
    /// The newest 200, the oldest of them first.
    callbacks: Vec<CallbackView>,
    /// The newest 200, the oldest of them first.
    events: Vec<EventView>,
}

/// That a vendor is not what it was, without an operation of Countersign.
#[derive(Debug, Serialize, JsonSchema)]
struct DisputeView {
    /// When Countersign saw it.
    #[schemars(with = "String")]
    since: Timestamp,
    /// In which way: another name, tax number, vendor it belongs to, or order of accounts; or that it
    /// is no vendor of its own any more.
    what: String,
}

/// An account that is or was on file.
#[derive(Debug, Serialize, JsonSchema)]
struct AccountView {
    /// The ERP's id of it.
    account_ref: String,
    iban: String,
    /// Whether the ERP has it as one in use.
    active: bool,
    #[schemars(with = "BankStatusWord")]
    bank_status: &'static str,
    /// Since when it is exactly this. A confirmation does not make it older.
    #[schemars(with = "String")]
    since: Timestamp,
    age_days: i64,
    /// Whether it can be paid today, with whosever approval.
    payable: bool,
    /// Why, in a sentence.
    why: String,
    /// The operation that made it what it is, where one did.
    operation: Option<String>,
}

/// A telephone number that is on file.
#[derive(Debug, Serialize, JsonSchema)]
struct PhoneView {
    /// `phone` or `mobile`.
    kind: &'static str,
    /// Empty where it was taken away.
    number: String,
    #[schemars(with = "String")]
    since: Timestamp,
    /// Whether a call-back may use it.
    trusted: bool,
    /// Why, in a sentence.
    why: String,
}

/// A call that somebody made about a new account.
#[derive(Debug, Serialize, JsonSchema)]
struct CallbackView {
    id: String,
    /// The account that it is about.
    new_iban: String,
    called_by: String,
    number_dialled: String,
    /// Empty where nobody was named.
    spoke_to: String,
    #[schemars(with = "OutcomeWord")]
    outcome: &'static str,
    /// When the request came, as whoever called says; `null` where that was not said. What Countersign
    /// itself has of a request counts besides.
    #[schemars(with = "Option<String>")]
    request_received_at: Option<Timestamp>,
    /// What else whoever called wrote down.
    note: Option<String>,
    /// Whether a change could rest on it when it was made; whether one can now says `status`.
    counts: bool,
    /// Why not.
    why_not: Vec<String>,
    #[schemars(with = "String")]
    called_at: Timestamp,
    /// An `open` one counts until then.
    #[schemars(with = "String")]
    expires_at: Timestamp,
    #[schemars(with = "CallbackWord")]
    status: &'static str,
    /// The operation that used it.
    operation: Option<String>,
}

/// Something that was seen or done.
#[derive(Debug, Serialize, JsonSchema)]
struct EventView {
    /// When, by the clock of whoever tells it.
    #[schemars(with = "String")]
    at: Timestamp,
    /// When Countersign learnt of it.
    #[schemars(with = "String")]
    seen_at: Timestamp,
    what: String,
    /// The account that it is about, where it is about one.
    account_ref: Option<String>,
    before: Option<String>,
    after: Option<String>,
    /// Who: as far as the ERP tells, or who called, or who began the operation.
    by: Option<String>,
    /// Who approved the operation.
    approved_by: Vec<String>,
    #[schemars(with = "SourceWord")]
    source: &'static str,
    /// The operation that did it.
    operation: Option<String>,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident = $title:literal $text:literal $words:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($title)
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": $words, "description": $text })
            }
        }
    )*};
}

words! {
    /// How an account came to be on file.
    BankStatusWord = "AccountStatus"
        "`adopted`: there at the first contact. `verified`: confirmed by a call-back and four eyes. \
         `unverified`: of a vendor first seen later. `changed_in_erp`: changed without Countersign, or \
         the vendor said that it is not theirs."
        AccountStatus::ALL.map(AccountStatus::code);
    /// What the vendor said.
    OutcomeWord = "CallOutcome"
        "What the vendor said."
        Outcome::ALL.map(Outcome::code);
    /// What a call-back can be used for.
    CallbackWord = "CallbackStatus"
        "`idle`: it never counted. `open`: a change or a confirmation may rest on it, until it expires. \
         `spent`: an operation used it. `void`: it counts no more, as the vendor said no later, the \
         vendor's details changed since, or whoever called was disabled."
        CallbackState::ALL.map(CallbackState::code);
    /// From where an event is known.
    SourceWord = "EventSource"
        "From where it is known: the ERP's log, a comparison with the baseline, an operation, or a call."
        [FROM_ERP_LOG, FROM_COMPARING, FROM_OPERATION, FROM_CALLBACK];
}

/// What the store holds about a vendor.
struct Kept {
    found: Comparison,
    frozen: bool,
    change_pending: bool,
    callbacks: Vec<Callback>,
    events: Vec<Event>,
    /// Who approved which operation.
    approvers: Vec<(String, String)>,
}

impl Kept {
    fn approved(&self, operation: &str) -> Vec<String> {
        let of_it = self.approvers.iter().filter(|(id, _)| id == operation);
        of_it.map(|(_, approver)| approver.clone()).collect()
    }

    /// When, and by whom, that was done, of the newest event that says so: `on … by … and …`.
    fn vouched(&self, is_it: impl Fn(&Event) -> bool) -> Option<String> {
        let done = self.events.iter().rev().find(|event| is_it(event))?;
        let approved = done.operation.as_deref().map(|id| self.approved(id)).unwrap_or_default();
        let people: Vec<String> = done.by.iter().cloned().chain(approved).collect();
        Some(format!("on {} by {}", done.at, people.join(" and ")))
    }
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
            phones: kept.found.phones.iter().map(|phone| phone_view(phone, &kept, now)).collect(),
            callbacks: kept.callbacks.iter().map(callback_view).collect(),
            events: kept.events.iter().map(|event| event_view(event, &kept)).collect(),
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
        approvers: conn.ask(votes::approvers_about(company, id)).await?,
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
    let is_verified = |event: &Event| {
        event.source == FROM_OPERATION
            && event.account.as_ref() == Some(&account.account)
            && event.what == VERIFIED
    };
    let how = match account.status {
        AccountStatus::Adopted => "on file when Countersign first met the ERP".to_owned(),
        AccountStatus::Verified => {
            let when =
                kept.vouched(is_verified).map_or_else(String::new, |when| format!(" {when}"));
            format!("confirmed by a call-back and four eyes{when}")
        }
        AccountStatus::Unverified => {
            "of a vendor first seen later; nobody has confirmed it".to_owned()
        }
        AccountStatus::ChangedInErp => "changed in the ERP".to_owned(),
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
        (true, format!("Paid by itself within the limits: {how}; unchanged since {since}.{named}"))
    } else {
        let needs = needs.join(", and ");
        let how = format!("{how}; unchanged since {since}");
        (true, format!("Paid with four eyes only: {needs}. It is {how}.{named}"))
    }
}

fn phone_view(phone: &BaselinePhone, kept: &Kept, now: Timestamp) -> PhoneView {
    let trusted = is_trusted(phone, now);
    let since = phone.since;
    let why = match (phone.number.is_empty(), phone.confirmed_at, phone.adopted, trusted) {
        (true, ..) => format!("No number: it was taken away in the ERP, seen {since}."),
        (_, Some(at), ..) => {
            let is_it = |event: &Event| {
                event.what == PHONE_CONFIRMED && event.after.as_ref() == Some(&phone.number)
            };
            let when = kept.vouched(is_it).unwrap_or_else(|| format!("on {at}"));
            format!(
                "A number to call back on: confirmed by four eyes {when}; on file since {since}."
            )
        }
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

fn callback_view(callback: &Callback) -> CallbackView {
    CallbackView {
        id: callback.id.to_string(),
        new_iban: callback.new_iban.clone(),
        called_by: callback.caller.to_string(),
        number_dialled: callback.number_dialled.clone(),
        spoke_to: callback.spoke_to.clone(),
        outcome: callback.outcome.code(),
        request_received_at: callback.request_received_at,
        note: callback.note.clone(),
        counts: callback.why_not.is_empty(),
        why_not: callback.why_not.clone(),
        called_at: callback.called_at,
        expires_at: callback.expires_at,
        status: callback.state.code(),
        operation: callback.operation.as_ref().map(ToString::to_string),
    }
}

fn event_view(event: &Event, kept: &Kept) -> EventView {
    EventView {
        approved_by: event.operation.as_deref().map(|id| kept.approved(id)).unwrap_or_default(),
        at: event.at,
        seen_at: event.seen_at,
        what: event.what.clone(),
        account_ref: event.account.clone(),
        before: event.before.clone(),
        after: event.after.clone(),
        by: event.by.clone(),
        source: event.source,
        operation: event.operation.clone(),
    }
}
