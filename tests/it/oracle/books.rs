//! What the gateway owes to whom, as the test keeps it: mandates, operations, keys, and what the
//! gateway has had occasion to see of each vendor's accounts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::judge::Held;
use super::world::{DAY, World};

/// Who acts under a mandate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Caller {
    pub(super) company: usize,
    pub(super) principal: &'static str,
    pub(super) agent: &'static str,
}

#[derive(Debug, Clone)]
pub(super) struct Mandate {
    pub(super) id: String,
    pub(super) token: String,
    pub(super) caller: Caller,
    pub(super) budget: Option<i64>,
    pub(super) calls: Option<usize>,
    /// The hour from which on it is over.
    pub(super) over: i64,
    /// Revoked, or its principal left.
    pub(super) revoked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Prepared,
    Pending,
    Executed,
    Denied,
    Cancelled,
    Expired,
    Rejected,
    Failed,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Pending => "pending",
            Self::Executed => "executed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
        }
    }
}

/// What was decided on when an operation executed.
#[derive(Debug, Clone)]
pub(super) struct Deal {
    pub(super) hour: i64,
    pub(super) company: usize,
    pub(super) bill: usize,
    pub(super) vendor: usize,
    pub(super) record: u32,
    pub(super) number: String,
    pub(super) amount: i64,
    /// The bill's total, reference and date at that moment.
    pub(super) total: i64,
    pub(super) reference: Option<String>,
    pub(super) date: i64,
    /// How many humans it took.
    pub(super) level: u8,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) mandate: usize,
    pub(super) caller: Caller,
    pub(super) content: Value,
    pub(super) status: Status,
    /// Stage `contract` or another, for the HTTP status of a replay.
    pub(super) stage: String,
    /// Whether a commit is still to come.
    pub(super) prepared: bool,
    /// The hour at which it expires, while it waits.
    pub(super) until: i64,
    /// Which bill it is about, where it came so far.
    pub(super) bill: Option<usize>,
    pub(super) vendor: Option<usize>,
    /// How many humans it needs, and the rules that ask for them.
    pub(super) held: Held,
    /// The hash that was answered last, and what it covers, in the test's own words.
    pub(super) hash: String,
    pub(super) bound: String,
    pub(super) deal: Option<Deal>,
}

/// How an account came to be known to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Adopted,
    Unverified,
    Changed,
}

/// What the gateway last saw of an account.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) number: String,
    pub(super) active: bool,
    pub(super) since: i64,
    pub(super) known: Known,
    /// Whether it was something else meanwhile, without a proposal that showed it to the gateway.
    pub(super) flickered: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Books {
    pub(super) mandates: Vec<Mandate>,
    pub(super) operations: Vec<Operation>,
    pub(super) keys: BTreeMap<(Caller, String), usize>,
    /// The freeze that is in force: its id, company, and vendor or all of them.
    pub(super) frozen: Option<(String, usize, Option<usize>)>,
    /// When a bill was rejected, and of which principal, by company and bill.
    pub(super) rejections: BTreeMap<(usize, usize), Vec<(i64, &'static str)>>,
    /// By company and vendor, then by record.
    pub(super) seen: BTreeMap<(usize, usize), BTreeMap<u32, Seen>>,
    /// By company and vendor.
    pub(super) faces: BTreeMap<(usize, usize), Face>,
}

/// What the gateway knows of a vendor beside its accounts.
#[derive(Debug, Clone)]
pub(super) struct Face {
    name: String,
    /// Where each account stood when it was last seen anew.
    places: BTreeMap<u32, usize>,
    /// It was seen with another name, or with its accounts in another order.
    disputed: bool,
    /// Whether it was another meanwhile, without a proposal that showed it to the gateway.
    flickered: bool,
}

impl Books {
    /// First contact: everything that the ERP holds is adopted, as old as it says.
    pub(super) fn adopt(&mut self, world: &World) {
        for (at, company) in world.companies.iter().enumerate() {
            for (which, vendor) in company.vendors.iter().enumerate() {
                let accounts = vendor.accounts.iter().map(|account| {
                    let seen = Seen {
                        number: account.number.clone(),
                        active: account.active,
                        since: -DAY * account.age_days,
                        known: Known::Adopted,
                        flickered: false,
                    };
                    (account.record, seen)
                });
                self.seen.insert((at, which), accounts.collect());
                let places = vendor.accounts.iter().enumerate();
                let face = Face {
                    name: vendor.name.clone(),
                    places: places.map(|(place, account)| (account.record, place)).collect(),
                    disputed: false,
                    flickered: false,
                };
                self.faces.insert((at, which), face);
            }
        }
    }

    /// Looks at what a clerk made of a vendor, as nobody but the test does yet.
    pub(super) fn note_edit(&mut self, world: &World, company: usize, vendor: usize) {
        let another = self.is_another(world, company, vendor);
        if let Some(face) = self.faces.get_mut(&(company, vendor)) {
            face.flickered |= another;
        }
        let Some(seen) = self.seen.get_mut(&(company, vendor)) else { return };
        let now = &world.companies[company].vendors[vendor].accounts;
        for (record, seen) in seen.iter_mut() {
            let same = now.iter().any(|account| {
                account.record == *record
                    && account.number == seen.number
                    && account.active == seen.active
            });
            seen.flickered |= !same;
        }
    }

    /// A proposal came so far that the gateway compared the vendor's accounts with what it knew.
    pub(super) fn observe(&mut self, world: &World, company: usize, vendor: usize) {
        let disputed = self.is_another(world, company, vendor);
        let known = &world.companies[company].vendors[vendor];
        let now = &known.accounts;
        let new_vendor = !self.seen.contains_key(&(company, vendor));
        let face = self.faces.entry((company, vendor)).or_insert_with(|| Face {
            name: known.name.clone(),
            places: BTreeMap::new(),
            disputed: false,
            flickered: false,
        });
        face.disputed |= disputed;
        let seen = self.seen.entry((company, vendor)).or_default();
        for (place, account) in now.iter().enumerate() {
            let fresh = |known| Seen {
                number: account.number.clone(),
                active: account.active,
                since: world.hour,
                known,
                flickered: false,
            };
            match seen.get(&account.record) {
                Some(seen) if seen.number == account.number && seen.active == account.active => {
                    continue;
                }
                None if new_vendor => drop(seen.insert(account.record, fresh(Known::Unverified))),
                Some(_) | None => drop(seen.insert(account.record, fresh(Known::Changed))),
            }
            face.places.insert(account.record, place);
        }
        let present: BTreeSet<u32> = now.iter().map(|account| account.record).collect();
        for (_, gone) in seen.iter_mut().filter(|(record, _)| !present.contains(record)) {
            (gone.known, gone.active) = (Known::Changed, false);
        }
    }

    /// Whether a vendor is not what it was, beside its accounts: whoever looks at it now sees that.
    pub(super) fn is_another(&self, world: &World, company: usize, vendor: usize) -> bool {
        let Some(face) = self.faces.get(&(company, vendor)) else { return false };
        let seen = &self.seen[&(company, vendor)];
        let now = &world.companies[company].vendors[vendor];
        let was_active = |record: &u32| seen.get(record).is_some_and(|seen| seen.active);
        let places: Vec<usize> = now
            .active()
            .filter(|account| was_active(&account.record))
            .filter_map(|account| face.places.get(&account.record).copied())
            .collect();
        face.disputed || face.name != now.name || !places.is_sorted()
    }

    /// Whether a vendor was another between two looks, which the watcher may have seen.
    pub(super) fn may_be_another(&self, company: usize, vendor: usize) -> bool {
        self.faces.get(&(company, vendor)).is_some_and(|face| face.flickered)
    }

    pub(super) fn is_frozen(&self, company: usize, vendor: usize) -> bool {
        let stops = |(_, of, which): &(String, usize, Option<usize>)| {
            *of == company && which.is_none_or(|which| which == vendor)
        };
        self.frozen.as_ref().is_some_and(stops)
    }

    /// What left, or may have left: all executed operations.
    pub(super) fn deals(&self) -> impl Iterator<Item = &Deal> {
        self.operations.iter().filter_map(|operation| operation.deal.as_ref())
    }

    pub(super) fn deals_of(&self, company: usize, bill: usize) -> impl Iterator<Item = &Deal> {
        self.deals().filter(move |deal| deal.company == company && deal.bill == bill)
    }

    /// What a mandate's operations took of its budget and calls.
    pub(super) fn taken(&self, mandate: usize) -> (i64, usize) {
        let own = self.operations.iter().filter(|operation| operation.mandate == mandate);
        let deals: Vec<&Deal> = own.filter_map(|operation| operation.deal.as_ref()).collect();
        (deals.iter().map(|deal| deal.amount).sum(), deals.len())
    }

    /// What went out without a human within so many hours: to the vendor, or of the company.
    pub(super) fn automatic(
        &self,
        company: usize,
        vendor: Option<usize>,
        hour: i64,
        within: i64,
    ) -> i64 {
        self.deals()
            .filter(|deal| deal.company == company && deal.level == 0)
            .filter(|deal| vendor.is_none_or(|vendor| deal.vendor == vendor))
            .filter(|deal| hour - deal.hour < within)
            .map(|deal| deal.amount)
            .sum()
    }

    /// The pending operation on a bill, which there is at most one of.
    pub(super) fn live(&self, company: usize, bill: usize) -> Option<usize> {
        self.operations.iter().position(|operation| {
            operation.status == Status::Pending
                && operation.caller.company == company
                && operation.bill == Some(bill)
        })
    }

    pub(super) fn pending_under(&self, mandate: usize) -> usize {
        let pending = |operation: &&Operation| {
            operation.mandate == mandate && operation.status == Status::Pending
        };
        self.operations.iter().filter(pending).count()
    }

    /// Ends what waits under a mandate.
    pub(super) fn revoke(&mut self, mandate: usize) {
        self.mandates[mandate].revoked = true;
        for operation in &mut self.operations {
            let waits = matches!(operation.status, Status::Prepared | Status::Pending);
            if operation.mandate == mandate && waits {
                operation.status = Status::Cancelled;
            }
        }
    }

    /// Ends what waited too long, and gives which.
    pub(super) fn expire(&mut self, hour: i64) -> Vec<usize> {
        let mut over = Vec::new();
        for (at, operation) in self.operations.iter_mut().enumerate() {
            let waits = matches!(operation.status, Status::Prepared | Status::Pending);
            if waits && operation.until <= hour {
                operation.status = Status::Expired;
                over.push(at);
            }
        }
        over
    }
}
