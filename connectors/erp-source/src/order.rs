//! A payment order: everything that was decided, sealed, so that the ERP's side can book exactly
//! that, once, or nothing.

use std::cmp::Ordering;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::{
    AccountId, AccountNumber, Amount, BillId, CompanyId, Currency, ErpCompanyId, Iban, JournalId,
    Marker, Order, PaymentId, Sealed, Timestamp, VendorId,
};

/// What the ERP is to book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentOrder {
    /// Names this one attempt.
    pub marker: Marker,
    /// The store that it comes from.
    pub store: String,
    /// The store's sequence number, used once.
    pub seq: u64,
    /// The company.
    pub company: CompanyId,
    /// The ERP's own id of it.
    pub erp_company: ErpCompanyId,
    /// The bill.
    pub bill: BillId,
    /// Its total, as pinned at its first claim.
    pub total: Amount,
    /// The bill's vendor.
    pub vendor: VendorId,
    /// The vendor's account, by record.
    pub account: AccountId,
    /// The vendor's account, by number.
    pub iban: Iban,
    /// What to pay.
    pub amount: Amount,
    /// The journal that it leaves from.
    pub journal: JournalId,
    /// That journal's account.
    pub source_iban: Iban,
    /// What people see on the payment.
    pub memo: String,
    /// The accounting date.
    pub date: NaiveDate,
    /// Not to be booked after this, by the ERP's clock.
    pub not_after: Timestamp,
}

/// The sealed text, in the order of RFC 8785.
#[derive(Serialize)]
struct OrderText<'a> {
    v: u8,
    marker: String,
    store: &'a str,
    seq: u64,
    company: &'a str,
    bill: &'a str,
    total: String,
    vendor: &'a str,
    account: &'a str,
    iban: &'a str,
    amount: String,
    currency: &'a str,
    journal: &'a str,
    source_iban: &'a str,
    memo: &'a str,
    date: String,
    not_after: String,
}

/// A sealed payment order.
pub type SealedOrder = Sealed<PaymentOrder>;

impl Order for PaymentOrder {
    /// Numbers of money are decimal text.
    fn exact_text(&self) -> String {
        let text = OrderText {
            v: 1,
            marker: self.marker.to_hex(),
            store: &self.store,
            seq: self.seq,
            company: self.erp_company.as_str(),
            bill: self.bill.as_str(),
            total: self.total.to_decimal_string(),
            vendor: self.vendor.as_str(),
            account: self.account.as_str(),
            iban: self.iban.electronic(),
            amount: self.amount.to_decimal_string(),
            currency: self.amount.currency().code(),
            journal: self.journal.as_str(),
            source_iban: self.source_iban.electronic(),
            memo: &self.memo,
            date: self.date.to_string(),
            not_after: self.not_after.to_string(),
        };
        // Strings and one small number: serialising them cannot fail. An empty text would verify
        // nowhere, so even then nothing could be booked.
        serde_json_canonicalizer::to_string(&text).unwrap_or_default()
    }
}

/// The sealed text, read back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderRead {
    v: u8,
    marker: String,
    store: String,
    seq: u64,
    company: ErpCompanyId,
    bill: BillId,
    total: String,
    vendor: VendorId,
    account: AccountId,
    iban: String,
    amount: String,
    currency: Currency,
    journal: JournalId,
    source_iban: String,
    memo: String,
    date: NaiveDate,
    not_after: Timestamp,
}

/// A text that is no order of that kind in its exact form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the exact text of an order of that kind")]
pub struct OrderTextError;

impl PaymentOrder {
    /// Reads an exact text again; the company's own name is not part of it.
    ///
    /// # Errors
    /// [`OrderTextError`] if it is no order, or would be written differently.
    pub fn from_exact_text(text: &str, company: CompanyId) -> Result<Self, OrderTextError> {
        let read: OrderRead = serde_json::from_str(text).map_err(|_fault| OrderTextError)?;
        let money =
            |text: &str| Amount::parse(text, read.currency).map_err(|_fault| OrderTextError);
        let iban = |text: &str| Iban::parse(text).map_err(|_fault| OrderTextError);
        let order = Self {
            marker: Marker::parse(&read.marker).map_err(|_fault| OrderTextError)?,
            company,
            total: money(&read.total)?,
            amount: money(&read.amount)?,
            iban: iban(&read.iban)?,
            source_iban: iban(&read.source_iban)?,
            store: read.store,
            seq: read.seq,
            erp_company: read.company,
            bill: read.bill,
            vendor: read.vendor,
            account: read.account,
            journal: read.journal,
            memo: read.memo,
            date: read.date,
            not_after: read.not_after,
        };
        if read.v == 1 && order.exact_text() == text { Ok(order) } else { Err(OrderTextError) }
    }
}

/// What a booked payment is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BookedState {
    /// Booked and standing.
    Posted,
    /// Somebody drafted it afterwards.
    Draft,
    /// Somebody cancelled it afterwards.
    Cancelled,
    /// Somebody deleted it afterwards.
    Deleted,
}

/// What the ERP holds for an order, read back from its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booked {
    /// The payment's id.
    pub payment: PaymentId,
    /// The number that people use.
    pub number: String,
    /// What it is now.
    pub state: BookedState,
    /// What was paid.
    pub amount: Amount,
    /// To which number, as the payment names it now.
    pub account: AccountNumber,
    /// The bills it settles.
    pub bills: Vec<BillId>,
    /// The accounting date that the ERP gave it.
    pub date: NaiveDate,
    /// The state of the bill now.
    pub bill_state: crate::BillState,
    /// What is left of the bill now.
    pub residual: Amount,
}

/// A way in which what was booked is not what was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which figure.
    pub what: &'static str,
    /// As ordered.
    pub ordered: String,
    /// As booked.
    pub booked: String,
}

impl Booked {
    /// Compares what was booked with what was ordered. The date is the ERP's to move (lock dates)
    /// and is no difference.
    pub fn differences(&self, order: &PaymentOrder) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut note = |what, same: bool, ordered: String, booked: String| {
            if !same {
                found.push(Difference { what, ordered, booked });
            }
        };
        let amount_same = matches!(self.amount.compare(order.amount), Ok(Ordering::Equal));
        note("amount", amount_same, order.amount.to_string(), self.amount.to_string());
        let account_same = self.account.iban() == Some(&order.iban);
        note("account", account_same, order.iban.masked(), self.account.masked());
        let bills_same = self.bills == std::slice::from_ref(&order.bill);
        note("bill", bills_same, order.bill.to_string(), format!("{:?}", self.bills));
        let posted = self.state == BookedState::Posted;
        note("state", posted, format!("{:?}", BookedState::Posted), format!("{:?}", self.state));
        found
    }
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUp {
    /// The company.
    pub company: CompanyId,
    /// The bill, whose lock is taken.
    pub bill: BillId,
    /// The order's marker.
    pub marker: Marker,
}

/// What was found, and when by the ERP's own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUpAnswer<B = Booked> {
    /// The ERP's clock, read under the lock.
    pub erp_time: Timestamp,
    /// What was booked for the marker.
    pub booked: Option<B>,
}

impl<B> LookUpAnswer<B> {
    /// Whether this proves that the order was not booked and cannot be any more: not found, under
    /// the lock, after the deadline by the ERP's clock. Nothing else is proof of absence.
    pub fn proves_absence(&self, not_after: Timestamp) -> bool {
        self.booked.is_none() && self.erp_time > not_after
    }
}

/// An order as the ERP's own table holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedOrder {
    /// The marker.
    pub marker: Marker,
    /// The sequence number.
    pub seq: u64,
    /// The ERP's own id of the company.
    pub erp_company: ErpCompanyId,
    /// The bill.
    pub bill: BillId,
    /// The account, by record.
    pub account: AccountId,
    /// The account, by number.
    pub iban: Iban,
    /// What was paid.
    pub amount: Amount,
    /// The bill's total, as pinned in the order.
    pub total: Amount,
    /// The payment.
    pub payment: PaymentId,
    /// When it was booked, by the ERP's clock.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{BillState, SealKey};

    fn order() -> PaymentOrder {
        let eur = Currency::from_code("EUR").unwrap();
        PaymentOrder {
            marker: Marker::from_bytes([7; 16]),
            store: "st_1".to_owned(),
            seq: 3,
            company: CompanyId::new("blue-sparrow").unwrap(),
            erp_company: ErpCompanyId::new("1").unwrap(),
            bill: BillId::new("42").unwrap(),
            total: Amount::from_minor(120_000, eur),
            vendor: VendorId::new("7").unwrap(),
            account: AccountId::new("9").unwrap(),
            iban: Iban::parse("FR7630006000011234567890189").unwrap(),
            amount: Amount::from_minor(120_000, eur),
            journal: JournalId::new("BNK1").unwrap(),
            source_iban: Iban::parse("FR1420041010050500013M02606").unwrap(),
            memo: "CS-1 A-2291".to_owned(),
            date: NaiveDate::from_ymd_opt(2026, 11, 29).unwrap(),
            not_after: Timestamp::parse("2026-11-29T10:00:00Z").unwrap(),
        }
    }

    fn booked() -> Booked {
        Booked {
            payment: PaymentId::new("1").unwrap(),
            number: "PBNK1/2026/00001".to_owned(),
            state: BookedState::Posted,
            amount: order().amount,
            account: AccountNumber::Iban(order().iban),
            bills: vec![order().bill],
            date: order().date,
            bill_state: BillState::Posted,
            residual: Amount::zero(order().amount.currency()),
        }
    }

    #[test]
    fn the_seal_covers_every_field() {
        let key = SealKey::from_bytes([1; 32]);
        let sealed = key.seal(order());
        assert!(key.verifies(sealed.text(), sealed.seal()));
        assert!(!SealKey::from_bytes([2; 32]).verifies(sealed.text(), sealed.seal()));
        let changes: [fn(&mut PaymentOrder); 15] = [
            |o| o.marker = Marker::from_bytes([8; 16]),
            |o| o.store = "st_2".to_owned(),
            |o| o.seq = 4,
            |o| o.erp_company = ErpCompanyId::new("2").unwrap(),
            |o| o.bill = BillId::new("43").unwrap(),
            |o| o.total = Amount::from_minor(120_001, o.total.currency()),
            |o| o.vendor = VendorId::new("8").unwrap(),
            |o| o.account = AccountId::new("10").unwrap(),
            |o| o.iban = Iban::parse("NL91ABNA0417164300").unwrap(),
            |o| o.amount = Amount::from_minor(1, o.amount.currency()),
            |o| o.amount = Amount::from_minor(120_000, Currency::from_code("USD").unwrap()),
            |o| o.source_iban = Iban::parse("NL91ABNA0417164300").unwrap(),
            |o| o.journal = JournalId::new("BNK2").unwrap(),
            |o| o.memo = "other".to_owned(),
            |o| o.not_after = o.not_after.plus(Duration::from_secs(1)),
        ];
        for change in changes {
            let mut other = order();
            change(&mut other);
            assert!(!key.verifies(&other.exact_text(), sealed.seal()), "{other:?}");
        }
    }

    #[test]
    fn the_text_is_canonical() {
        canonical_check(&order().exact_text());
    }

    #[test]
    fn the_exact_text_reads_back() {
        let text = order().exact_text();
        assert_eq!(PaymentOrder::from_exact_text(&text, order().company), Ok(order()));
        for wrong in [format!(" {text}"), text.replace("1200.00", "1200"), "{}".to_owned()] {
            assert!(PaymentOrder::from_exact_text(&wrong, order().company).is_err(), "{wrong}");
        }
    }

    #[track_caller]
    fn canonical_check(text: &str) {
        assert_eq!(
            text,
            concat!(
                r#"{"account":"9","amount":"1200.00","bill":"42","company":"1","currency":"EUR","#,
                r#""date":"2026-11-29","iban":"FR7630006000011234567890189","journal":"BNK1","#,
                r#""marker":"07070707070707070707070707070707","memo":"CS-1 A-2291","#,
                r#""not_after":"2026-11-29T10:00:00.000Z","seq":3,"#,
                r#""source_iban":"FR1420041010050500013M02606","store":"st_1","#,
                r#""total":"1200.00","v":1,"vendor":"7"}"#
            )
        );
    }

    #[test]
    fn every_difference_is_named() {
        assert_eq!(booked().differences(&order()), vec![]);
        let wrong = Booked {
            state: BookedState::Draft,
            amount: Amount::from_minor(1, order().amount.currency()),
            account: AccountNumber::from_erp("NL91ABNA0417164300"),
            bills: vec![],
            ..booked()
        };
        let found: Vec<_> = wrong.differences(&order()).iter().map(|d| d.what).collect();
        assert_eq!(found, ["amount", "account", "bill", "state"]);
    }

    #[test]
    fn absence_is_proved_only_after_the_deadline() {
        let deadline = order().not_after;
        let answer = |erp_time, booked| LookUpAnswer { erp_time, booked };
        let later = deadline.plus(Duration::from_millis(1));
        assert!(!answer(deadline, None).proves_absence(deadline));
        assert!(answer(later, None).proves_absence(deadline));
        assert!(!answer(later, Some(booked())).proves_absence(deadline));
    }
}
