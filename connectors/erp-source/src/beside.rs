//! What an ERP holds beside a bill and may speak against paying it: documents like it, what a
//! vendor owes back, and other vendors with the same account.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};

use crate::{Amount, Bill, BillId, Iban, ReferenceKey, VendorId};

/// Bills of one vendor over the same total are looked at where their dates are at most so many
/// days apart.
pub const RESEMBLING_DAYS: u64 = 5;

/// By what documents resemble each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traits {
    /// The commercial vendor.
    pub vendor: VendorId,
    /// The vendor's own reference, where there is one.
    pub reference: Option<ReferenceKey>,
    /// The total; `None` where the record holds no figure of money.
    pub total: Option<Amount>,
    /// The document's date.
    pub date: Option<NaiveDate>,
}

/// A document with its traits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The ERP's immutable id.
    pub id: BillId,
    /// Its traits.
    pub traits: Traits,
}

/// How alike two documents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// The same vendor and total, at most [`RESEMBLING_DAYS`] days apart; or nobody knows when.
    Similar,
    /// The same vendor and reference, whatever total and date.
    SameReference,
}

impl Traits {
    /// The traits of a bill.
    pub fn of(bill: &Bill) -> Self {
        Self {
            vendor: bill.header.commercial_vendor.clone(),
            reference: bill.reference.as_deref().and_then(ReferenceKey::of),
            total: Some(bill.payable.total),
            date: bill.date,
        }
    }

    /// How alike the two are; `None` for two of their own.
    pub fn likeness(&self, other: &Self) -> Option<Likeness> {
        if self.vendor != other.vendor {
            return None;
        }
        let both = self.reference.as_ref().zip(other.reference.as_ref());
        if both.is_some_and(|(one, other)| one.is_same(other)) {
            return Some(Likeness::SameReference);
        }
        let same_total = self.total.is_some() && self.total == other.total;
        let near = match self.date.zip(other.date) {
            Some((one, other)) => one.abs_diff(other) <= Days::new(RESEMBLING_DAYS),
            None => true,
        };
        (same_total && near).then_some(Likeness::Similar)
    }

    /// The first and the last date on which a document can be that resembles this one by its total;
    /// `None` where this one has no date, so that any date is near.
    pub fn near_dates(&self) -> Option<(NaiveDate, NaiveDate)> {
        let days = Days::new(RESEMBLING_DAYS);
        let date = self.date?;
        Some((
            date.checked_sub_days(days).unwrap_or(NaiveDate::MIN),
            date.checked_add_days(days).unwrap_or(NaiveDate::MAX),
        ))
    }
}

/// What to look for. At most [`BesideQuery::BILLS_MAX`] bills.
#[derive(Debug, Clone, Default)]
pub struct BesideQuery {
    /// Documents beside these, and what their vendors owe back.
    pub bills: Vec<Document>,
    /// Vendors that hold this number, beside that one.
    pub held: Option<(Iban, VendorId)>,
}

impl BesideQuery {
    /// The most bills of one query.
    pub const BILLS_MAX: usize = 200;
}

/// What the ERP holds beside bills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// Posted bills and receipts among which are all that resemble one that was asked about, itself
    /// included, ascending by id.
    pub documents: Vec<Document>,
    /// Of those asked about, the ones beside which there is more than could be looked at.
    pub cut: BTreeSet<BillId>,
    /// Of the vendors asked about, those that owe something back: a credit note that is not used up
    /// or a payment that is not applied.
    pub with_credit: BTreeSet<VendorId>,
    /// Other vendors with the number on an active account.
    pub holders: BTreeSet<VendorId>,
}

#[cfg(test)]
mod tests {
    use crate::Currency;

    use super::*;

    fn traits(vendor: &str, reference: &str, total: &str, date: &str) -> Traits {
        let eur = Currency::from_code("EUR").unwrap();
        Traits {
            vendor: VendorId::new(vendor).unwrap(),
            reference: ReferenceKey::of(reference),
            total: Amount::parse(total, eur).ok(),
            date: date.parse().ok(),
        }
    }

    #[track_caller]
    fn check(one: &Traits, other: &Traits, expect: Option<Likeness>) {
        assert_eq!(one.likeness(other), expect);
        assert_eq!(other.likeness(one), expect);
    }

    #[test]
    fn a_reference_of_the_same_vendor_is_enough() {
        let bill = traits("V", "A-1", "100.00", "2026-11-15");
        check(&bill, &traits("V", "a 01", "7.00", "2020-01-01"), Some(Likeness::SameReference));
        check(&bill, &traits("W", "A-1", "100.00", "2026-11-15"), None);
        check(&bill, &traits("V", "A-2", "7.00", "2026-11-15"), None);
    }

    #[test]
    fn a_total_counts_for_five_days_and_without_a_date_for_ever() {
        let bill = traits("V", "A-1", "100.00", "2026-11-15");
        for (date, similar) in [
            ("2026-11-09", false),
            ("2026-11-10", true),
            ("2026-11-15", true),
            ("2026-11-20", true),
            ("2026-11-21", false),
            ("", true),
        ] {
            for reference in ["A-2", ""] {
                let expect = similar.then_some(Likeness::Similar);
                check(&bill, &traits("V", reference, "100.00", date), expect);
            }
        }
        check(&bill, &traits("V", "A-2", "100.01", "2026-11-15"), None);
        let unknown = traits("V", "A-2", "no figure", "2026-11-15");
        check(&unknown, &unknown.clone(), Some(Likeness::SameReference));
        check(&unknown, &traits("V", "A-3", "no figure", "2026-11-15"), None);
        let yen = Amount::parse("100", Currency::from_code("JPY").unwrap()).unwrap();
        check(
            &bill,
            &Traits { total: Some(yen), ..traits("V", "A-2", "1.00", "2026-11-15") },
            None,
        );
        let none = traits("V", "", "100.00", "2026-11-15");
        check(&none, &none.clone(), Some(Likeness::Similar));
    }

    #[test]
    fn the_dates_that_are_near_are_those_that_count() {
        let bill = traits("V", "A-1", "100.00", "2026-11-15");
        let (first, last) = bill.near_dates().unwrap();
        assert_eq!(
            (first.to_string().as_str(), last.to_string().as_str()),
            ("2026-11-10", "2026-11-20")
        );
        assert_eq!(traits("V", "A-1", "100.00", "").near_dates(), None);
    }
}
