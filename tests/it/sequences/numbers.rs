//! Names and numbers of a sequence, each told by its place.

use crate::oracle::world::iban;

/// The company's own account.
pub(super) const OWN: &str = "FR1420041010050500013M02606";
/// How many numbers of accounts there are for edits and changes.
pub(super) const ACCOUNTS: usize = 6;

/// The account that a vendor really has.
pub(super) fn own_of(vendor: usize) -> String {
    iban("DE", &format!("00000000{:010}", 900 + vendor))
}

/// A number that no vendor has at first; the last one is the company's own.
pub(super) fn account(nth: usize) -> String {
    match nth % ACCOUNTS {
        5 => OWN.to_owned(),
        nth => iban("DE", &format!("00000000{:010}", 100 + nth)),
    }
}

/// The main number that a vendor really has, or its mobile one.
pub(super) fn own_phone(vendor: usize, kind: usize) -> String {
    let first = ["+3314000", "+3361200"][kind];
    format!("{first}{:04}", 1000 + vendor)
}

/// A telephone number; some are those that vendors really have.
pub(super) fn phone(nth: usize) -> String {
    match nth % 8 {
        nth @ 5..=6 => own_phone(nth - 5, 0),
        7 => own_phone(0, 1),
        nth => format!("+3314100{:04}", 2000 + nth),
    }
}

pub(super) fn name(vendor: usize, other: bool) -> String {
    let suffix = if other { " Holding" } else { "" };
    format!("Vendor {vendor}{suffix}")
}

pub(super) fn tax_number(vendor: usize, other: bool) -> String {
    format!("FR{}00000000{vendor}", if other { 77 } else { 11 })
}

/// What a bill is over, in cents: every tenth is more than goes out without its principal.
pub(super) fn amount(vendor: usize, bill: usize) -> i64 {
    let nth = i64::try_from(10 * bill + vendor).unwrap();
    if bill == 2 { 600_000 + nth } else { 10_000 + nth }
}
