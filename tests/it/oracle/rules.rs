//! The default AP policy as DESIGN tells it (2, "The default AP policy"), with the names that the
//! rules have for finance people.

use std::collections::BTreeSet;

use super::judge::Verdict;
use super::world::Vop;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duplicate {
    None,
    Similar,
    Likely,
}

impl Duplicate {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Similar, Self::Likely];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bank {
    Adopted,
    Unverified,
    Changed,
    Ambiguous,
}

/// What is true of a payment.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "facts are what they are")]
pub(super) struct Facts {
    pub(super) open: bool,
    pub(super) within: bool,
    pub(super) partial: bool,
    pub(super) has_reference: bool,
    pub(super) unapplied: bool,
    pub(super) duplicate: Duplicate,
    pub(super) bank: Bank,
    pub(super) cooling_off: bool,
    pub(super) allowed: bool,
    pub(super) own: bool,
    pub(super) vop: Vop,
    pub(super) sanctioned: bool,
    pub(super) shared_with: usize,
    pub(super) approved_days: i64,
    pub(super) amount: i64,
    pub(super) vendor_day: i64,
    pub(super) vendor_month: i64,
    pub(super) company_day: i64,
}

/// How many humans let a payment pass a rule; nobody passes the highest.
const NEVER: u8 = 3;

type Rule = (&'static str, u8, fn(&Facts) -> bool);

const RULES: [Rule; 23] = [
    ("bill-must-be-open", NEVER, |facts| !facts.open),
    ("amount-within-residual", NEVER, |facts| !facts.within),
    ("amount-above-hard-limit", NEVER, |facts| facts.amount > 5_000_000),
    ("account-changed-in-erp-never-paid", NEVER, |facts| facts.bank == Bank::Changed),
    ("ambiguous-account-never-paid", NEVER, |facts| facts.bank == Bank::Ambiguous),
    ("erp-must-allow-account", NEVER, |facts| !facts.allowed),
    ("own-account-never-paid", NEVER, |facts| facts.own),
    ("sanctioned-payee-never-paid", NEVER, |facts| facts.sanctioned),
    ("vop-no-match-never-paid", NEVER, |facts| facts.vop == Vop::NoMatch),
    ("likely-duplicate-never-paid", NEVER, |facts| facts.duplicate == Duplicate::Likely),
    ("fresh-account-needs-four-eyes", 2, |facts| facts.cooling_off),
    ("unverified-account-needs-four-eyes", 2, |facts| {
        facts.bank == Bank::Unverified && facts.approved_days < 14
    }),
    ("vop-close-match-needs-four-eyes", 2, |facts| facts.vop == Vop::Close),
    ("vop-not-possible-needs-four-eyes", 2, |facts| facts.vop == Vop::NotPossible),
    ("partial-payment-needs-four-eyes", 2, |facts| facts.partial),
    ("open-credit-needs-four-eyes", 2, |facts| facts.unapplied),
    ("similar-bill-needs-four-eyes", 2, |facts| facts.duplicate == Duplicate::Similar),
    ("shared-account-needs-four-eyes", 2, |facts| facts.shared_with > 0),
    ("no-vendor-reference-needs-step-up", 1, |facts| !facts.has_reference),
    ("large-amount-needs-step-up", 1, |facts| facts.amount > 500_000),
    ("vendor-day-total-needs-step-up", 1, |facts| facts.vendor_day + facts.amount > 1_000_000),
    ("vendor-month-total-needs-step-up", 1, |facts| facts.vendor_month + facts.amount > 5_000_000),
    ("company-day-total-needs-step-up", 1, |facts| facts.company_day + facts.amount > 5_000_000),
];

/// What the rules say about facts.
pub(super) fn decide(facts: &Facts) -> Verdict {
    let applying = |level: u8| -> BTreeSet<&'static str> {
        RULES
            .iter()
            .filter(|(_, needs, applies)| *needs == level && applies(facts))
            .map(|(name, ..)| *name)
            .collect()
    };
    let never = applying(NEVER);
    if !never.is_empty() {
        return Verdict::Barred(never);
    }
    for level in [2, 1] {
        let asking = applying(level);
        if !asking.is_empty() {
            return Verdict::Permitted(level, asking);
        }
    }
    Verdict::Permitted(0, BTreeSet::from(["invoice-pay-permitted"]))
}
