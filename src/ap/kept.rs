//! What the pack itself keeps of an order that was carried out: the baseline, in the unit of work that
//! settles it.

use std::collections::BTreeMap;

use countersign_erp_source::{BankChange, CompanyId, Timestamp, VendorId};
use uuid::Uuid;

use super::vendor::denied::NOT_THEIRS;
use super::vendor::{account, phone};
use super::{CONFIRM_BANK_DETAILS, CONFIRM_PHONE, UPDATE_BANK_DETAILS};
use crate::domain::names::EventId;
use crate::domain::operation::{OperationResult, VendorResult};
use crate::gateway::pack::{Booking, Done, Sent};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::baseline::{
    self, AccountStatus, BaselineAccount, BaselinePhone, Event, FROM_OPERATION, Known,
};
use crate::store::callbacks;
use crate::store::{StoreError, Unit};

/// A confirmation needs no hands but the store's: it is done when it is settled.
pub(super) fn confirm_account(order: &str) -> Sent {
    let Some(order) = account::Confirmation::read(order) else { return unreadable() };
    Sent::Booked(booking(VendorResult {
        vendor_id: order.vendor,
        account_ref: Some(order.account),
        iban: Some(order.number),
        phone: None,
        bills: Vec::new(),
    }))
}

/// The same for a telephone number.
pub(super) fn confirm_phone(order: &str) -> Sent {
    let Some(order) = phone::Confirmation::read(order) else { return unreadable() };
    Sent::Booked(booking(VendorResult {
        vendor_id: order.vendor,
        account_ref: None,
        iban: None,
        phone: Some(order.number),
        bills: Vec::new(),
    }))
}

fn unreadable() -> Sent {
    Sent::NotSent { reason: "not the exact text of a confirmation".to_owned() }
}

fn booking(result: VendorResult) -> Booking {
    Booking {
        result: OperationResult::Vendor(result),
        amount: None,
        differences: Vec::new(),
        evidence: BTreeMap::new(),
    }
}

/// Makes what was carried out the baseline.
pub(super) async fn keep(unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError> {
    match done.operation.action.as_str() {
        UPDATE_BANK_DETAILS => changed(unit, done).await,
        CONFIRM_BANK_DETAILS => account_confirmed(unit, done).await,
        CONFIRM_PHONE => phone_confirmed(unit, done).await,
        _ => Ok(()),
    }
}

/// What is written down about one vendor.
struct Keeping<'u, 'w, 'd> {
    unit: &'u mut Unit<'w>,
    done: &'d Done<'d>,
    company: CompanyId,
    events: u128,
}

impl<'u, 'w, 'd> Keeping<'u, 'w, 'd> {
    fn new(unit: &'u mut Unit<'w>, done: &'d Done<'d>) -> Self {
        Self { unit, done, company: done.operation.origins.company.clone(), events: 0 }
    }

    fn now(&self) -> Timestamp {
        self.done.now
    }

    fn operation(&self) -> String {
        self.done.operation.id.to_string()
    }

    /// Notes what was done, under ids that follow the operation's own.
    async fn note(&mut self, mut event: Event) -> Result<(), StoreError> {
        let digits = self.done.operation.id.as_str().trim_start_matches("op_");
        let number = Uuid::try_parse(digits).map_or(0, |number| number.as_u128());
        event.id = EventId::from_uuid(Uuid::from_u128(number.saturating_add(self.events)));
        self.events = self.events.saturating_add(1);
        baseline::note(self.unit.conn(), &self.company, &event).await
    }

    fn event(&self, vendor: &str, account: Option<&str>, what: &str) -> Event {
        Event {
            id: EventId::from_uuid(Uuid::nil()),
            vendor: vendor.to_owned(),
            account: account.map(ToOwned::to_owned),
            what: what.to_owned(),
            before: None,
            after: None,
            at: self.now(),
            seen_at: self.now(),
            by: Some(self.done.operation.origins.principal.to_string()),
            source: FROM_OPERATION,
            operation: Some(self.operation()),
        }
    }

    async fn known(&mut self, vendor: &str, accounts: &[&str]) -> Result<Known, StoreError> {
        let vendor = VendorId::new(vendor)
            .map_err(|_fault| StoreError::inconsistent("attempt", "order_text", "has no vendor"))?;
        self.unit.conn().ask(baseline::known(&self.company, &vendor, accounts)).await
    }

    /// How an account counts that was put on file, and why: where the vendor said no while that was
    /// under way, it is one that is not paid.
    async fn standing(&mut self) -> Result<(AccountStatus, Option<String>), StoreError> {
        if callbacks::carries(self.unit.conn(), &self.done.operation.id).await? {
            return Ok((AccountStatus::Verified, None));
        }
        Ok((AccountStatus::ChangedInErp, Some(NOT_THEIRS.to_owned())))
    }

    /// What somebody heard before does not stand for another change after this one.
    async fn void_callbacks(&mut self, vendor: &str) -> Result<(), StoreError> {
        let (because, now) = ("the vendor's bank details were changed or confirmed", self.now());
        callbacks::void_all(self.unit.conn(), &self.company, vendor, because, now).await?;
        Ok(())
    }

    fn receipt(&mut self, data: serde_json::Value) -> Result<(), StoreError> {
        self.unit.receipt(Receipt {
            kind: ReceiptKind::BaselineChanged,
            at: self.done.now,
            company: Some(self.company.to_string()),
            operation: Some(self.operation()),
            data,
        })?;
        Ok(())
    }
}

fn gone(what: &'static str) -> StoreError {
    StoreError::inconsistent("baseline", what, "is not what was decided on any more")
}

fn what_came_of(account: &BaselineAccount) -> &str {
    account.note.as_deref().unwrap_or(baseline::VERIFIED)
}

/// A change that the ERP made: the old account is on file no more, the new one is verified, and as old
/// as this moment.
async fn changed(unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError> {
    let mut keeping = Keeping::new(unit, done);
    let order = BankChange::from_exact_text(done.order, keeping.company.clone())
        .map_err(|_fault| StoreError::inconsistent("attempt", "order_text", "cannot be read"))?;
    let OperationResult::Vendor(result) = &done.booking.result else {
        return Err(gone("result"));
    };
    let record = result.account_ref.clone().ok_or_else(|| gone("account"))?;
    let vendor = order.vendor.as_str();
    let known = keeping.known(vendor, &[&record]).await?;
    let (now, operation) = (keeping.now(), Some(keeping.operation()));
    if let Some(old) = &order.old
        && let Some(before) = known.accounts.iter().find(|a| a.account == old.account.as_str())
    {
        let replaced = BaselineAccount {
            active: false,
            since: now,
            note: Some("replaced".to_owned()),
            erp_since: None,
            operation: operation.clone(),
            ..before.clone()
        };
        baseline::observe(keeping.unit.conn(), &keeping.company, &replaced).await?;
        let event = keeping.event(vendor, Some(&before.account), "replaced");
        let after = Some(order.new_iban.electronic().to_owned());
        keeping.note(Event { before: Some(before.number.clone()), after, ..event }).await?;
    }
    let (status, note) = keeping.standing().await?;
    let verified = BaselineAccount {
        account: record.clone(),
        vendor: vendor.to_owned(),
        number: order.new_iban.electronic().to_owned(),
        active: true,
        since: now,
        status,
        reowned: false,
        note,
        place: 0,
        erp_since: None,
        operation,
    };
    baseline::observe(keeping.unit.conn(), &keeping.company, &verified).await?;
    let event = keeping.event(vendor, Some(&record), what_came_of(&verified));
    keeping.note(Event { after: Some(verified.number.clone()), ..event }).await?;
    keeping.void_callbacks(vendor).await?;
    keeping.receipt(serde_json::json!({
        "before": known.accounts.iter().map(super::sighting::account_data).collect::<Vec<_>>(),
        "now": [super::sighting::account_data(&verified)], "vendor": vendor,
    }))
}

/// An account that was on file becomes the baseline, as it was decided on. It does not become older.
async fn account_confirmed(unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError> {
    let mut keeping = Keeping::new(unit, done);
    let order = account::Confirmation::read(done.order).ok_or_else(|| gone("order"))?;
    let known = keeping.known(&order.vendor, &[&order.account]).await?;
    let as_decided = |account: &&BaselineAccount| {
        account.account == order.account
            && account.vendor == order.vendor
            && account.number == order.number
            && account.active
            && account.since.as_millis() == order.since_ms
    };
    let before = known.accounts.iter().find(as_decided).ok_or_else(|| gone("account"))?;
    let (status, note) = keeping.standing().await?;
    let verified = BaselineAccount {
        status,
        reowned: false,
        note,
        operation: Some(keeping.operation()),
        ..before.clone()
    };
    baseline::observe(keeping.unit.conn(), &keeping.company, &verified).await?;
    // The order in which the accounts stand now is the one that counts from now on.
    for (place, record) in (0..).zip(&order.places) {
        let account = known.accounts.iter().find(|account| account.account == *record);
        if let Some(account) = account.filter(|account| account.place != place) {
            let account = if account.account == verified.account { &verified } else { account };
            let moved = BaselineAccount { place, ..account.clone() };
            baseline::observe(keeping.unit.conn(), &keeping.company, &moved).await?;
        }
    }
    if let Some(vendor) = known.vendor {
        let vendor = baseline::BaselineVendor {
            name: order.name.clone(),
            tax_number: order.tax_number.clone(),
            parent: order.parent.clone(),
            dispute: None,
            ..vendor
        };
        baseline::keep_vendor(keeping.unit.conn(), &keeping.company, &vendor).await?;
    }
    let event = keeping.event(&order.vendor, Some(&order.account), what_came_of(&verified));
    let (was, number) = (before.status.code().to_owned(), order.number.clone());
    keeping.note(Event { before: Some(was), after: Some(number), ..event }).await?;
    keeping.void_callbacks(&order.vendor).await?;
    keeping.receipt(serde_json::json!({
        "before": [super::sighting::account_data(before)], "name": order.name,
        "now": [super::sighting::account_data(&verified)], "vendor": order.vendor,
    }))
}

/// A number becomes one to call back on, as it was decided on.
async fn phone_confirmed(unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError> {
    let mut keeping = Keeping::new(unit, done);
    let order = phone::Confirmation::read(done.order).ok_or_else(|| gone("order"))?;
    let known = keeping.known(&order.vendor, &[]).await?;
    let as_decided = |phone: &&BaselinePhone| {
        phone.kind == order.phone
            && phone.number == order.number
            && phone.since.as_millis() == order.since_ms
    };
    let before = known.phones.iter().find(as_decided).ok_or_else(|| gone("phone"))?;
    let confirmed = BaselinePhone { confirmed_at: Some(keeping.now()), ..before.clone() };
    baseline::observe_phone(keeping.unit.conn(), &keeping.company, &confirmed).await?;
    let event = keeping.event(&order.vendor, None, baseline::PHONE_CONFIRMED);
    keeping.note(Event { after: Some(order.number.clone()), ..event }).await?;
    keeping.receipt(serde_json::json!({
        "phone": order.number, "phone_kind": order.phone, "vendor": order.vendor,
    }))
}
