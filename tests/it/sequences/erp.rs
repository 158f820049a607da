//! The ERP of a sequence: vendors, accounts, telephones and bills that anybody edits, and the order in
//! which everything happened to them. It is no oracle: it knows records, and no rules.

use std::collections::BTreeMap;

use countersign_erp_source::{Booked, Changed, LoggedField, Timestamp};

use super::edits::Edit;

/// What the ERP says of the age of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// Since when each is what it is, and what was done to it.
    Truth,
    /// Nothing.
    Nothing,
    /// That each is as old as the oldest, whatever was done to it.
    Lies,
}

/// A bank account of a vendor's.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) id: u32,
    pub(super) owner: usize,
    pub(super) number: String,
    pub(super) active: bool,
    pub(super) allowed: bool,
    /// Since when it is what it is, in truth.
    pub(super) since: Timestamp,
    pub(super) edited: bool,
}

/// A telephone number, and since when it is there.
pub(super) type Phone = Option<(String, Timestamp)>;

#[derive(Debug, Clone)]
pub(super) struct Vendor {
    pub(super) name: String,
    pub(super) tax_number: Option<String>,
    /// The vendor that it says it belongs to.
    pub(super) parent: Option<usize>,
    /// The vendor whose contact it is: one that somebody made of it, or merged it into.
    pub(super) part_of: Option<usize>,
    /// Merged away.
    pub(super) is_gone: bool,
    /// The main number and the mobile one.
    pub(super) phones: [Phone; 2],
}

#[derive(Debug, Clone)]
pub(super) struct Bill {
    pub(super) entered: usize,
    pub(super) named: Option<u32>,
    pub(super) total: i64,
    pub(super) paid: i64,
}

/// A vendor as it was shown to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) vendor: usize,
    pub(super) name: String,
    pub(super) tax_number: Option<String>,
    pub(super) parent: Option<usize>,
    /// Record, number, whether it is active: in their order.
    pub(super) accounts: Vec<(u32, String, bool)>,
    pub(super) phones: [Option<String>; 2],
}

/// What happened.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// Somebody edited these records and telephones.
    Edited { records: Vec<u32>, phones: Vec<(usize, usize)> },
    /// What follows was done in the midst of a step.
    Amid,
    /// All that belonged to one vendor became another's.
    Merged { into: usize, records: Vec<u32> },
    /// The gateway was shown a vendor: by itself, or with one of its bills.
    Shown { shown: Shown, with_bill: bool },
    /// A payment was booked.
    Paid(Paid),
    /// Bank details were changed by an order.
    Changed { vendor: usize, old: Option<u32>, new: u32, number: String },
}

/// A payment that was booked.
#[derive(Debug, Clone)]
pub(super) struct Paid {
    /// In cents.
    pub(super) amount: i64,
    /// The contact that the bill was entered for, and the vendor that it is.
    pub(super) entered: usize,
    pub(super) vendor: usize,
    /// The account that the bill names.
    pub(super) named: Option<u32>,
    pub(super) record: u32,
    pub(super) number: String,
    /// Whether another vendor has it too.
    pub(super) shared: bool,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Erp {
    pub(super) company: String,
    pub(super) claims: Claims,
    pub(super) now: Timestamp,
    /// What everything is as old as, at least.
    pub(super) oldest: Timestamp,
    pub(super) vendors: Vec<Vendor>,
    pub(super) records: Vec<Record>,
    pub(super) bills: Vec<Bill>,
    pub(super) next_record: u32,
    /// Of which vendor what was edited, and whether an order did it.
    pub(super) log: Vec<(Timestamp, usize, LoggedField, bool)>,
    pub(super) events: Vec<Event>,
    /// Somebody's edit at the moment before so many further looks.
    pub(super) armed: Option<(usize, Edit)>,
    pub(super) payments: BTreeMap<String, Booked>,
    pub(super) changes: BTreeMap<String, Changed>,
}

impl Erp {
    pub(super) fn empty() -> Self {
        Self {
            company: "none".to_owned(),
            claims: Claims::Truth,
            now: Timestamp::from_millis(0),
            oldest: Timestamp::from_millis(0),
            vendors: Vec::new(),
            records: Vec::new(),
            bills: Vec::new(),
            next_record: 1,
            log: Vec::new(),
            events: Vec::new(),
            armed: None,
            payments: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    /// The vendor that a contact stands for.
    pub(super) fn commercial(&self, mut vendor: usize) -> usize {
        while let Some(other) = self.vendors[vendor].part_of {
            vendor = other;
        }
        vendor
    }

    /// The vendors that are there, by themselves.
    pub(super) fn standing(&self) -> Vec<usize> {
        (0..self.vendors.len()).filter(|at| self.vendors[*at].part_of.is_none()).collect()
    }

    /// The accounts of a vendor and of the contacts that are part of it, in their order.
    pub(super) fn accounts(&self, vendor: usize) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| self.commercial(record.owner) == vendor)
    }

    pub(super) fn record(&self, id: u32) -> Option<&Record> {
        self.records.iter().find(|record| record.id == id)
    }

    /// The number of a vendor that others have on an active account too.
    pub(super) fn others_with(&self, number: &str, vendor: usize) -> Vec<usize> {
        let same = self.records.iter().filter(|record| record.active && record.number == number);
        let mut all: Vec<usize> = same.map(|record| self.commercial(record.owner)).collect();
        all.retain(|owner| *owner != vendor);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds an account, as the first of all or the last.
    pub(super) fn add(&mut self, owner: usize, number: String, first: bool) -> u32 {
        let (id, since) = (self.next_record, self.now);
        self.next_record += 1;
        let record =
            Record { id, owner, number, active: true, allowed: true, since, edited: false };
        if first {
            self.records.insert(0, record);
        } else {
            self.records.push(record);
        }
        id
    }

    /// Another bill of a vendor's, which names an account where it has one.
    pub(super) fn bill(&mut self, entered: usize, total: i64) -> usize {
        let vendor = self.commercial(entered);
        let named = self.accounts(vendor).find(|record| record.active).map(|record| record.id);
        self.bills.push(Bill { entered, named, total, paid: 0 });
        self.bills.len() - 1
    }

    /// Notes what the gateway sees of a vendor now.
    pub(super) fn show(&mut self, vendor: usize, with_bill: bool) {
        let shown = self.shown(vendor);
        self.events.push(Event::Shown { shown, with_bill });
    }

    fn shown(&self, vendor: usize) -> Shown {
        let of = &self.vendors[vendor];
        let number = |phone: &Phone| phone.as_ref().map(|(number, _)| number.clone());
        Shown {
            vendor,
            name: of.name.clone(),
            tax_number: of.tax_number.clone(),
            parent: of.parent,
            accounts: self
                .accounts(vendor)
                .map(|record| (record.id, record.number.clone(), record.active))
                .collect(),
            phones: [number(&of.phones[0]), number(&of.phones[1])],
        }
    }

    /// What somebody planned for the next looks comes about.
    pub(super) fn before_a_look(&mut self) {
        let Some((looks, edit)) = self.armed.take() else { return };
        if looks > 0 {
            self.armed = Some((looks - 1, edit));
        } else {
            self.events.push(Event::Amid);
            edit.make(self);
        }
    }
}
