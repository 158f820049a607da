//! What must hold of the ERP's payments, whatever was answered: each is one that was executed, and
//! together they keep every limit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::books::{Books, Deal};
use super::world::{COMPANIES, DAY, OWN, World, euros};

/// What is kept beside the truth, to look with.
#[derive(Debug)]
pub(super) struct Audit {
    /// What somebody paid by hand: company, bill, amount.
    by_hand: Vec<(String, String, String)>,
    /// Each vendor's accounts at first contact: company, vendor, record, number.
    first: BTreeSet<(usize, usize, u32, String)>,
}

/// A payment as the ERP tells it.
type Paid = (String, String, String, String, String);

impl Audit {
    pub(super) fn new(world: &World) -> Self {
        let mut first = BTreeSet::new();
        for (at, company) in world.companies.iter().enumerate() {
            for (which, vendor) in company.vendors.iter().enumerate() {
                for account in &vendor.accounts {
                    first.insert((at, which, account.record, account.number.clone()));
                }
            }
        }
        Self { by_hand: Vec::new(), first }
    }

    pub(super) fn by_hand(&mut self, company: &str, bill: &str, amount: &str) {
        self.by_hand.push((company.to_owned(), bill.to_owned(), amount.to_owned()));
    }

    pub(super) fn check(
        &self,
        payments: &Value,
        world: &World,
        books: &Books,
    ) -> Result<(), String> {
        let all = payments.as_array().ok_or("the ERP shows no payments")?;
        let text =
            |payment: &Value, name: &str| payment[name].as_str().unwrap_or_default().to_owned();
        let (hands, ours): (Vec<&Value>, Vec<&Value>) =
            all.iter().partition(|payment| payment["memo"] == "paid by hand");
        let mut found: Vec<Paid> = ours
            .iter()
            .map(|payment| {
                let of = |name: &str| text(payment, name);
                (
                    of("company"),
                    of("invoice_ref"),
                    of("vendor_id"),
                    of("payee_iban"),
                    of("amount") + &of("currency") + &of("source_account"),
                )
            })
            .collect();
        found.sort();
        let mut expected: Vec<Paid> = books.deals().map(|deal| paid(world, deal)).collect();
        expected.sort();
        if found != expected {
            let odd = found.iter().find(|one| !expected.contains(one));
            let gone = expected.iter().find(|one| !found.contains(one));
            return Err(format!(
                "the ERP holds {} payments of ours, {} were executed; {odd:?} came of nothing, \
                 {gone:?} is missing",
                found.len(),
                expected.len()
            ));
        }
        let mut by_hand: Vec<_> = hands
            .iter()
            .map(|payment| {
                let of = |name: &str| text(payment, name);
                (of("company"), of("invoice_ref"), of("amount"))
            })
            .collect();
        let mut told = self.by_hand.clone();
        by_hand.sort();
        told.sort();
        if by_hand != told {
            return Err(format!("payments by hand are {by_hand:?}, not {told:?}"));
        }
        self.limits(books)
    }

    fn limits(&self, books: &Books) -> Result<(), String> {
        let deals: Vec<&Deal> = books.deals().collect();
        let mut bills: BTreeMap<(usize, usize), (i64, i64)> = BTreeMap::new();
        for deal in &deals {
            let wrong = |what: &str| Err(format!("{what}: {deal:?}"));
            let first = (deal.company, deal.vendor, deal.record, deal.number.clone());
            let (sum, pinned) = bills.entry((deal.company, deal.bill)).or_insert((0, deal.total));
            *sum += deal.amount;
            if *sum > *pinned {
                return wrong("a bill is paid above its pinned total");
            }
            if deal.amount > 5_000_000 {
                return wrong("a payment above 50,000.00");
            }
            if OWN.iter().flat_map(|own| *own).any(|(_, own)| *own == deal.number) {
                return wrong("a payment to a company's own account");
            }
            if deal.level > 0 {
                continue;
            }
            if deal.amount > 500_000 {
                return wrong("a payment above 5,000.00 without a human");
            }
            // Where a human approved a payment to the very account two weeks before, it counts as his.
            let vouched = deals.iter().any(|other| {
                other.level > 0
                    && (other.company, other.vendor, other.record, &other.number)
                        == (deal.company, deal.vendor, deal.record, &deal.number)
                    && deal.hour - other.hour >= 14 * DAY
            });
            if !self.first.contains(&first) && !vouched {
                return wrong("a payment without a human to an account that nobody vouched for");
            }
            let within = |hours: i64, vendor: bool| -> i64 {
                deals
                    .iter()
                    .filter(|other| other.level == 0 && other.company == deal.company)
                    .filter(|other| !vendor || other.vendor == deal.vendor)
                    .filter(|other| (0..hours).contains(&(deal.hour - other.hour)))
                    .map(|other| other.amount)
                    .sum()
            };
            if within(DAY, true) > 1_000_000 || within(30 * DAY, true) > 5_000_000 {
                return wrong("a vendor's automatic total is passed");
            }
            if within(DAY, false) > 5_000_000 {
                return wrong("the company's automatic total is passed");
            }
        }
        for (at, mandate) in books.mandates.iter().enumerate() {
            let (spent, calls) = books.taken(at);
            let passed = mandate.budget.is_some_and(|budget| spent > budget)
                || mandate.calls.is_some_and(|most| calls > most);
            if passed {
                return Err(format!("{spent} cents in {calls} calls under {:?}", mandate.caller));
            }
        }
        Ok(())
    }
}

fn paid(world: &World, deal: &Deal) -> Paid {
    let own = &world.companies[deal.company];
    (
        COMPANIES[deal.company].to_owned(),
        own.bills[deal.bill].id.clone(),
        own.vendors[deal.vendor].id.clone(),
        deal.number.clone(),
        euros(deal.amount) + "EUR" + OWN[deal.company][0].1,
    )
}
