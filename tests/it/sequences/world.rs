//! How a sequence begins: some vendors, on file for a long or a short time.

use std::time::Duration;

use countersign_erp_source::Timestamp;

use super::erp::{Claims, Erp, Vendor};
use super::numbers;
use crate::oracle::dice::Dice;

const DAY: Duration = Duration::from_hours(24);

/// What is thrown for a sequence beside its steps.
#[derive(Debug, Clone)]
pub(super) struct Genesis {
    pub(super) claims: Claims,
    /// For how many hours each vendor's first account is on file.
    pub(super) hours: [u64; 3],
    /// Whether the second vendor has two accounts.
    pub(super) two: bool,
}

impl Genesis {
    pub(super) fn throw(dice: &mut Dice) -> Self {
        let claims =
            dice.weighted(&[(60, Claims::Truth), (15, Claims::Nothing), (25, Claims::Lies)]);
        let mut age = || dice.weighted(&[(60, 9600), (10, 0), (10, 100), (20, 166)]);
        Self { claims, hours: [age(), age(), 9600], two: dice.chance(40) }
    }

    /// The ERP as it is before the first contact.
    pub(super) fn make(&self, company: &str, now: Timestamp) -> Erp {
        let oldest = now.minus(DAY * 400);
        let mut erp =
            Erp { company: company.to_owned(), claims: self.claims, oldest, ..Erp::empty() };
        for (at, hours) in self.hours.iter().enumerate() {
            erp.now = oldest;
            erp.vendors.push(vendor(at, oldest));
            erp.now = now.minus(Duration::from_hours(*hours));
            erp.add(at, numbers::own_of(at), false);
        }
        if self.two {
            erp.add(1, numbers::account(4), false);
        }
        for at in [0, 0, 0, 1, 1, 2] {
            let amount = numbers::amount(at, erp.bills.len());
            erp.bill(at, amount);
        }
        erp.now = now;
        erp
    }
}

/// A vendor as it really is.
pub(super) fn vendor(at: usize, now: Timestamp) -> Vendor {
    Vendor {
        name: numbers::name(at, false),
        tax_number: Some(numbers::tax_number(at, false)),
        parent: None,
        part_of: None,
        is_gone: false,
        phones: [0, 1].map(|kind| Some((numbers::own_phone(at, kind), now))),
    }
}
