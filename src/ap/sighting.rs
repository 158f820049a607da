//! A vendor is looked at: compared with the baseline, and what is found is kept, with a receipt and an
//! alarm, before anything is decided on it.

use countersign_erp_source::{CompanyId, Timestamp, Vendor, VendorAccount, VendorId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Ports;
use super::baseline::{self, Comparison};
use super::phones;
use crate::domain::names::{AlarmId, EventId};
use crate::gateway::pack::raise_alarm;
use crate::ids;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::baseline::{
    self as kept, AccountStatus, BaselineAccount, BaselinePhone, Event, FROM_COMPARING, Known,
    MOBILE_CHANGED, PHONE_CHANGED,
};
use crate::store::freezes::Alarm;
use crate::store::{Questions, StoreError, Unit, latest_moment};

/// The alarm that a vendor's details are not what they were.
pub const CHANGED_IN_ERP: &str = "changed_in_erp";

/// Why a vendor could not be looked at; nothing follows from it.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The store failed.
    #[error("the baseline could not be read or kept")]
    Store(#[from] StoreError),
    /// No random numbers for an id.
    #[error("no random numbers")]
    Randomness(#[from] ids::NoRandomness),
}

/// A vendor as the baseline has it after it was looked at.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When the company's vendors were adopted; `None` is no baseline.
    pub adopted_at: Option<Timestamp>,
    /// What the comparison found.
    pub found: Comparison,
}

/// Who changed what and when, where the ERP's log says so.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Who.
    pub by: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

/// What the baseline has of a vendor.
pub(super) fn known(
    company: &CompanyId,
    vendor: &Vendor,
) -> impl Questions<Answer = Known> + use<> {
    let ids: Vec<&str> = vendor.accounts.iter().map(|account| account.id.as_str()).collect();
    kept::known(company, &vendor.id, &ids)
}

/// What the ERP shows where a vendor is looked for.
#[derive(Clone)]
enum Shown {
    There(Vendor),
    Gone(VendorId),
}

impl Shown {
    fn id(&self) -> &VendorId {
        match self {
            Self::There(vendor) => &vendor.id,
            Self::Gone(id) => id,
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::There(vendor) => Some(&vendor.name),
            Self::Gone(_) => None,
        }
    }

    fn known(&self, company: &CompanyId) -> impl Questions<Answer = Known> + use<> {
        let accounts: &[VendorAccount] = match self {
            Self::There(vendor) => &vendor.accounts,
            Self::Gone(_) => &[],
        };
        let ids: Vec<&str> = accounts.iter().map(|account| account.id.as_str()).collect();
        kept::known(company, self.id(), &ids)
    }

    fn compared(&self, known: &Known, now: Timestamp) -> Comparison {
        match self {
            Self::There(vendor) => baseline::compare(known, vendor, now),
            Self::Gone(_) => baseline::gone(known, now),
        }
    }
}

/// Looks at a vendor and keeps what is found.
///
/// # Errors
/// [`LookError`].
pub async fn look(
    ports: &Ports,
    company: &CompanyId,
    vendor: &Vendor,
    told: &Told,
) -> Result<Sighting, LookError> {
    see(ports, company, Shown::There(vendor.clone()), told).await
}

/// Keeps that the ERP shows a vendor as none any more, where the baseline has it.
///
/// # Errors
/// [`LookError`].
pub(super) async fn miss(
    ports: &Ports,
    company: &CompanyId,
    vendor: &VendorId,
    told: &Told,
) -> Result<(), LookError> {
    see(ports, company, Shown::Gone(vendor.clone()), told).await.map(drop)
}

async fn see(
    ports: &Ports,
    company: &CompanyId,
    shown: Shown,
    told: &Told,
) -> Result<Sighting, LookError> {
    let now = ports.clock.now();
    let known = ports.store.ask(shown.known(company)).await?;
    let found = shown.compared(&known, now);
    if known.adopted_at.is_none() || found.is_unchanged() {
        return Ok(Sighting { adopted_at: known.adopted_at, found });
    }
    let alarm = AlarmId::from_uuid(ids::ordered(ports.randomness.as_ref(), now)?);
    let number = ids::ordered(ports.randomness.as_ref(), now)?;
    let (company, told) = (company.clone(), told.clone());
    let written = ports
        .store
        .write(move |unit| {
            Box::pin(async move {
                // Compared once more under the store's own lock: another daemon may have been first.
                let known = unit.conn().ask(shown.known(&company)).await?;
                // INVARIANT: nothing first seen is older than the newest receipts. A clock that was
                // set back would otherwise give an account an age that it gets by the clock being
                // mended.
                let now = now.max(latest_moment(unit.conn()).await?);
                let seen = Seen { company: &company, shown: &shown, told: &told, now };
                let found = shown.compared(&known, now);
                keep(unit, seen, &known, &found, (alarm, number)).await?;
                Ok(Sighting { adopted_at: known.adopted_at, found })
            })
        })
        .await?;
    Ok(written.value)
}

/// What was seen of which vendor.
#[derive(Clone, Copy)]
struct Seen<'a> {
    company: &'a CompanyId,
    shown: &'a Shown,
    told: &'a Told,
    now: Timestamp,
}

async fn keep(
    unit: &mut Unit<'_>,
    seen: Seen<'_>,
    known: &Known,
    found: &Comparison,
    (alarm, number): (AlarmId, Uuid),
) -> Result<(), StoreError> {
    if found.is_unchanged() {
        return Ok(());
    }
    let company = seen.company;
    if let Some(new) = &found.new_vendor {
        kept::first_seen(unit.conn(), company, new).await?;
    }
    if let Some(vendor) = &found.disputed {
        kept::keep_vendor(unit.conn(), company, vendor).await?;
    }
    for account in &found.observed {
        kept::observe(unit.conn(), company, account).await?;
    }
    for phone in &found.observed_phones {
        kept::observe_phone(unit.conn(), company, phone).await?;
    }
    let events = events(seen, known, found, number);
    for event in &events {
        kept::note(unit.conn(), company, event).await?;
    }
    unit.receipt(receipt(seen, known, found))?;
    if found.new_vendor.is_none() {
        let detail = in_words(seen, known, found, &events);
        let raised = Alarm {
            id: alarm,
            kind: CHANGED_IN_ERP.to_owned(),
            company: Some(company.to_string()),
            counterparty: Some(seen.shown.id().to_string()),
            operation: None,
            subject: None,
            detail,
            raised_at: seen.now,
            closed: None,
        };
        raise_alarm(unit, &raised).await?;
    }
    Ok(())
}

/// What happened, one event for each thing. Their ids follow one another, so that they stay in order.
fn events(seen: Seen<'_>, known: &Known, found: &Comparison, number: Uuid) -> Vec<Event> {
    if found.new_vendor.is_some() {
        return Vec::new();
    }
    let mut made = Vec::new();
    let mut ids = (number.as_u128()..).map(|number| EventId::from_uuid(Uuid::from_u128(number)));
    let mut add =
        |account: Option<&str>, what: &str, before: Option<String>, after: Option<String>| {
            let Some(id) = ids.next() else { return };
            made.push(Event {
                id,
                vendor: seen.shown.id().to_string(),
                account: account.map(ToOwned::to_owned),
                what: what.to_owned(),
                before,
                after,
                at: seen.told.at.unwrap_or(seen.now),
                seen_at: seen.now,
                by: seen.told.by.clone(),
                source: FROM_COMPARING,
                operation: None,
            });
        };
    if let Some(vendor) = &found.disputed {
        let what = vendor.dispute.as_ref().map(|dispute| dispute.what.clone()).unwrap_or_default();
        add(None, &what, Some(vendor.name.clone()), seen.shown.name().map(ToOwned::to_owned));
    }
    for account in &found.observed {
        let before = known.accounts.iter().find(|before| before.account == account.account);
        let what = account.note.clone().unwrap_or_else(|| "changed".to_owned());
        let number = |account: &BaselineAccount| account.number.clone();
        add(Some(&account.account), &what, before.map(number), Some(number(account)));
    }
    for phone in &found.observed_phones {
        let before = known.phones.iter().find(|before| before.kind == phone.kind);
        let what = if phone.kind == kept::MOBILE { MOBILE_CHANGED } else { PHONE_CHANGED };
        let number = |phone: &BaselinePhone| phone.number.clone();
        add(None, what, before.map(number), Some(number(phone)));
    }
    made
}

/// What happened and what to do, for the people of the company.
fn in_words(seen: Seen<'_>, known: &Known, found: &Comparison, events: &[Event]) -> String {
    let vendor = seen.shown.id();
    let who = match (&seen.told.by, seen.told.at) {
        (Some(by), Some(at)) => format!(" (by {by}, {at})"),
        (Some(by), None) => format!(" (by {by})"),
        (None, Some(at)) => format!(" ({at})"),
        (None, None) => String::new(),
    };
    let happened: Vec<String> = events
        .iter()
        .map(|event| match &event.account {
            Some(account) => format!("account {account}: {}", event.what),
            None => event.what.clone(),
        })
        .collect();
    let mut said = format!("vendor {vendor} was changed in the ERP{who}: {}.", happened.join("; "));
    let stops_paying = found.disputed.is_some()
        || found.observed.iter().any(|account| account.status == AccountStatus::ChangedInErp);
    if stops_paying {
        said.push_str(
            " It is not paid until somebody has called the vendor, on a number that was on file \
             before, and a second person has confirmed the account (bank-confirmations). If nobody \
             of yours made the change, take it back in the ERP first.",
        );
    }
    for phone in &found.observed_phones {
        let before = known.phones.iter().find(|before| before.kind == phone.kind);
        said.push_str(&phone_in_words(before, phone));
    }
    if !stops_paying {
        said.push_str(" Payments to the account on file go on.");
    }
    said
}

/// What became of a number, and what can be done about it.
fn phone_in_words(before: Option<&BaselinePhone>, now: &BaselinePhone) -> String {
    let (kind, number) = (now.kind, &now.number);
    let before = before.filter(|before| !before.number.is_empty());
    let became = match before {
        Some(before) if phones::same(&before.number, number) => {
            let since = before.since;
            return format!(
                " The {kind} number {number} was on file since {since}; somebody changed it and put \
                 it back. Nobody calls the vendor back on it before it is confirmed by four eyes \
                 (phone-confirmations)."
            );
        }
        Some(before) => format!("was {}, on file since {}", before.number, before.since),
        None => "was none".to_owned(),
    };
    let confirmed = "before it is confirmed by four eyes (phone-confirmations)";
    let is_now = if number.is_empty() {
        "now there is none".to_owned()
    } else {
        format!("now it is {number}. Nobody calls the vendor back on that one {confirmed}")
    };
    let back = before.map_or_else(String::new, |before| {
        format!(
            " If nobody of yours made the change, put {} back in the ERP and have four eyes confirm \
             it (phone-confirmations), or call on another number that was on file before.",
            before.number
        )
    });
    format!(" The {kind} number {became}; {is_now}.{back}")
}

fn receipt(seen: Seen<'_>, known: &Known, found: &Comparison) -> Receipt {
    let accounts = |all: &[BaselineAccount]| all.iter().map(account_data).collect::<Vec<_>>();
    let phones = |all: &[BaselinePhone]| all.iter().map(phone_data).collect::<Vec<_>>();
    Receipt {
        kind: ReceiptKind::BaselineChanged,
        at: seen.now,
        company: Some(seen.company.to_string()),
        operation: None,
        data: json!({
            "before": accounts(&known.accounts),
            "by": seen.told.by,
            "changed_at": seen.told.at,
            "dispute": found.disputed.as_ref().and_then(|vendor| vendor.dispute.as_ref())
                .map(|dispute| dispute.what.as_str()),
            "first_seen": found.new_vendor.is_some(),
            "name": seen.shown.name(),
            "now": accounts(&found.observed),
            "phones": phones(&found.observed_phones),
            "phones_before": phones(&known.phones),
            "vendor": seen.shown.id(),
        }),
    }
}

/// An account, whole, for a receipt.
pub(super) fn account_data(account: &BaselineAccount) -> Value {
    json!({
        "account": account.account, "active": account.active, "number": account.number,
        "owner": account.vendor, "since": account.since, "status": account.status.code(),
        "note": account.note,
    })
}

fn phone_data(phone: &BaselinePhone) -> Value {
    json!({
        "adopted": phone.adopted, "confirmed_at": phone.confirmed_at, "kind": phone.kind,
        "number": phone.number, "since": phone.since,
    })
}
