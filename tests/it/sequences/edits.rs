//! What somebody does to the ERP behind the gateway's back.

use countersign_erp_source::LoggedField;

use super::erp::{Claims, Erp, Event};
use super::numbers;

/// How many vendors there are at most.
const VENDORS_MAX: usize = 5;

/// One edit. Numbers are taken modulo what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    /// The number of an account.
    Number {
        vendor: usize,
        nth: usize,
        to: usize,
    },
    /// The same, and back, with nobody looking between.
    NumberAndBack {
        vendor: usize,
        nth: usize,
    },
    /// The number that an account once had comes back.
    Restore {
        vendor: usize,
        nth: usize,
    },
    Add {
        vendor: usize,
        to: usize,
        first: bool,
    },
    Remove {
        vendor: usize,
        nth: usize,
    },
    /// An active account is archived, an archived one brought back.
    Archive {
        vendor: usize,
        nth: usize,
    },
    /// Archived and brought back, with nobody looking between.
    ArchiveAndBack {
        vendor: usize,
        nth: usize,
    },
    /// The accounts of a vendor change their order.
    Reorder {
        vendor: usize,
    },
    /// An account becomes another vendor's.
    Reown {
        vendor: usize,
        nth: usize,
        to: usize,
    },
    /// All that one vendor has becomes another's, and it is gone.
    Merge {
        vendor: usize,
        into: usize,
    },
    /// A vendor says that it belongs to another.
    Belong {
        vendor: usize,
        to: usize,
    },
    /// A vendor becomes a contact of another.
    Contact {
        vendor: usize,
        of: usize,
    },
    Rename {
        vendor: usize,
        back: bool,
    },
    TaxNumber {
        vendor: usize,
        back: bool,
    },
    Phone {
        vendor: usize,
        kind: usize,
        to: usize,
    },
    /// A telephone number is edited and edited back.
    PhoneAndBack {
        vendor: usize,
        kind: usize,
    },
    /// The number of another vendor's account is added to this one.
    Share {
        vendor: usize,
        with: usize,
    },
    /// The ERP forbids paying to an account, or allows it again.
    Allow {
        vendor: usize,
        nth: usize,
    },
    /// A bill names another account.
    Name {
        vendor: usize,
        nth: usize,
    },
    NewVendor {
        to: usize,
    },
    NewBill {
        vendor: usize,
    },
}

impl Edit {
    /// The name that it is counted under.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Number { .. } => "number",
            Self::NumberAndBack { .. } => "number and back",
            Self::Restore { .. } => "number restored",
            Self::Add { .. } => "added",
            Self::Remove { .. } => "removed",
            Self::Archive { .. } => "archived or brought back",
            Self::ArchiveAndBack { .. } => "archived and back",
            Self::Reorder { .. } => "re-ordered",
            Self::Reown { .. } => "re-owned",
            Self::Merge { .. } => "merged",
            Self::Belong { .. } => "re-parented",
            Self::Contact { .. } => "made a contact",
            Self::Rename { .. } => "renamed",
            Self::TaxNumber { .. } => "tax number",
            Self::Phone { kind, .. } if kind.is_multiple_of(2) => "phone",
            Self::Phone { .. } => "mobile",
            Self::PhoneAndBack { .. } => "phone and back",
            Self::Share { .. } => "shared",
            Self::Allow { .. } => "allowed or not",
            Self::Name { .. } => "bill names another",
            Self::NewVendor { .. } => "new vendor",
            Self::NewBill { .. } => "new bill",
        }
    }

    /// Makes it. `false` if there is nothing to make it to.
    pub(super) fn make(self, erp: &mut Erp) -> bool {
        self.made(erp).is_some()
    }

    fn made(self, erp: &mut Erp) -> Option<()> {
        match self {
            Self::Number { vendor, nth, to } => {
                renumber(erp, (vendor, nth), |_| numbers::account(to))
            }
            Self::Restore { vendor, nth } => renumber(erp, (vendor, nth), numbers::own_of),
            Self::NumberAndBack { vendor, nth } => {
                let (at, vendor) = account(erp, vendor, nth)?;
                touched(erp, vendor, at, LoggedField::Number)
            }
            Self::ArchiveAndBack { vendor, nth } => {
                let (at, vendor) = account(erp, vendor, nth)?;
                touched(erp, vendor, at, LoggedField::Activity)
            }
            Self::Add { vendor, to, first } => {
                let vendor = a_vendor(erp, vendor);
                erp.add(vendor, numbers::account(to), first);
                log(erp, vendor, LoggedField::Added)
            }
            Self::Share { vendor, with } => share(erp, vendor, with),
            Self::Remove { vendor, nth } => remove(erp, vendor, nth),
            Self::Archive { vendor, nth } => {
                let (at, vendor) = account(erp, vendor, nth)?;
                erp.records[at].active = !erp.records[at].active;
                touched(erp, vendor, at, LoggedField::Activity)
            }
            Self::Reorder { vendor } => reorder(erp, vendor),
            Self::Reown { vendor, nth, to } => {
                let (at, vendor) = account(erp, vendor, nth)?;
                let to = another(erp, vendor, to)?;
                erp.records[at].owner = to;
                touched(erp, vendor, at, LoggedField::Owner)?;
                log(erp, to, LoggedField::Owner)
            }
            Self::Merge { vendor, into } => merge(erp, vendor, into),
            Self::Belong { vendor, to } => {
                let (vendor, to) = (a_vendor(erp, vendor), a_vendor(erp, to));
                let parent = (to != vendor).then_some(to);
                if std::mem::replace(&mut erp.vendors[vendor].parent, parent) == parent {
                    return None;
                }
                log(erp, vendor, LoggedField::Parent)
            }
            Self::Contact { vendor, of } => {
                let vendor = a_vendor(erp, vendor);
                let of = another(erp, vendor, of)?;
                erp.vendors[vendor].part_of = Some(of);
                log(erp, vendor, LoggedField::Parent)?;
                log(erp, of, LoggedField::Parent)
            }
            Self::Rename { vendor, back } => {
                let vendor = a_vendor(erp, vendor);
                let name = numbers::name(vendor, !back);
                if std::mem::replace(&mut erp.vendors[vendor].name, name.clone()) == name {
                    return None;
                }
                log(erp, vendor, LoggedField::Name)
            }
            Self::TaxNumber { vendor, back } => {
                let vendor = a_vendor(erp, vendor);
                let number = Some(numbers::tax_number(vendor, !back));
                let before = &mut erp.vendors[vendor].tax_number;
                if std::mem::replace(before, number.clone()) == number {
                    return None;
                }
                log(erp, vendor, LoggedField::TaxNumber)
            }
            Self::Phone { vendor, kind, to } => phone(erp, (vendor, kind), to),
            Self::PhoneAndBack { vendor, kind } => {
                let (vendor, kind, now) = (a_vendor(erp, vendor), kind % 2, erp.now);
                erp.vendors[vendor].phones[kind].as_mut()?.1 = now;
                rung(erp, vendor, kind)
            }
            Self::Allow { vendor, nth } => {
                let (at, vendor) = account(erp, vendor, nth)?;
                erp.records[at].allowed = !erp.records[at].allowed;
                log(erp, vendor, LoggedField::Trust)
            }
            Self::Name { vendor, nth } => rename_payee(erp, vendor, nth),
            Self::NewVendor { to } => new_vendor(erp, to),
            Self::NewBill { vendor } => {
                let vendor = a_vendor(erp, vendor);
                let amount = numbers::amount(vendor, erp.bills.len());
                erp.bill(vendor, amount);
                Some(())
            }
        }
    }
}

/// An account gets another number.
fn renumber(
    erp: &mut Erp,
    (vendor, nth): (usize, usize),
    to: impl Fn(usize) -> String,
) -> Option<()> {
    let (at, vendor) = account(erp, vendor, nth)?;
    let number = to(vendor);
    if erp.records[at].number == number {
        return None;
    }
    erp.records[at].number = number;
    touched(erp, vendor, at, LoggedField::Number)
}

fn share(erp: &mut Erp, vendor: usize, with: usize) -> Option<()> {
    let vendor = a_vendor(erp, vendor);
    let with = another(erp, vendor, with)?;
    let theirs = erp.accounts(with).find(|record| record.active)?.number.clone();
    erp.add(vendor, theirs, false);
    log(erp, vendor, LoggedField::Added)
}

fn remove(erp: &mut Erp, vendor: usize, nth: usize) -> Option<()> {
    let (at, vendor) = account(erp, vendor, nth)?;
    let gone = erp.records.remove(at);
    for bill in &mut erp.bills {
        bill.named = bill.named.filter(|named| *named != gone.id);
    }
    log(erp, vendor, LoggedField::Removed)
}

fn reorder(erp: &mut Erp, vendor: usize) -> Option<()> {
    let vendor = a_vendor(erp, vendor);
    let places = places(erp, vendor);
    let (first, last) = (*places.first()?, *places.last()?);
    if first == last {
        return None;
    }
    erp.records.swap(first, last);
    log(erp, vendor, LoggedField::Order)
}

/// A telephone number becomes another one, or none.
fn phone(erp: &mut Erp, (vendor, kind): (usize, usize), to: usize) -> Option<()> {
    let (vendor, kind, now) = (a_vendor(erp, vendor), kind % 2, erp.now);
    let number = (!to.is_multiple_of(8)).then(|| numbers::phone(to));
    let phone = &mut erp.vendors[vendor].phones[kind];
    if phone.as_ref().map(|(number, _)| number) == number.as_ref() {
        return None;
    }
    *phone = number.map(|number| (number, now));
    rung(erp, vendor, kind)
}

/// The first bill that is not paid names another account.
fn rename_payee(erp: &mut Erp, vendor: usize, nth: usize) -> Option<()> {
    let (at, vendor) = account(erp, vendor, nth)?;
    let id = erp.records[at].id;
    let bill = (0..erp.bills.len()).find(|bill| {
        let bill = &erp.bills[*bill];
        bill.paid == 0 && erp.commercial(bill.entered) == vendor
    })?;
    erp.bills[bill].named = Some(id);
    Some(())
}

fn new_vendor(erp: &mut Erp, to: usize) -> Option<()> {
    let vendor = erp.vendors.len();
    if vendor >= VENDORS_MAX {
        return None;
    }
    erp.vendors.push(super::world::vendor(vendor, erp.now));
    erp.add(vendor, numbers::account(to), false);
    erp.bill(vendor, numbers::amount(vendor, 0));
    log(erp, vendor, LoggedField::Name)
}

/// All that one vendor has becomes another's, as bills do, and it is gone.
fn merge(erp: &mut Erp, vendor: usize, into: usize) -> Option<()> {
    let from = a_vendor(erp, vendor);
    let into = another(erp, from, into)?;
    let moved: Vec<usize> = (0..erp.records.len())
        .filter(|at| erp.commercial(erp.records[*at].owner) == from)
        .collect();
    let mut records = Vec::new();
    for at in moved {
        erp.records[at].owner = into;
        records.push(erp.records[at].id);
        touched(erp, into, at, LoggedField::Owner)?;
    }
    for at in 0..erp.bills.len() {
        if erp.commercial(erp.bills[at].entered) == from {
            erp.bills[at].entered = into;
        }
    }
    for vendor in &mut erp.vendors {
        vendor.parent = vendor.parent.filter(|parent| *parent != from);
    }
    erp.vendors[from].part_of = Some(into);
    erp.vendors[from].is_gone = true;
    erp.events.push(Event::Merged { into, records });
    log(erp, from, LoggedField::Vendor)?;
    log(erp, into, LoggedField::Owner)
}

/// One of the vendors that are there.
pub(super) fn a_vendor(erp: &Erp, nth: usize) -> usize {
    let all = erp.standing();
    all[nth % all.len()]
}

/// One of them that is another than this one.
fn another(erp: &Erp, vendor: usize, nth: usize) -> Option<usize> {
    Some(a_vendor(erp, nth)).filter(|other| *other != vendor)
}

/// The places of a vendor's accounts.
fn places(erp: &Erp, vendor: usize) -> Vec<usize> {
    (0..erp.records.len()).filter(|at| erp.commercial(erp.records[*at].owner) == vendor).collect()
}

/// One of the accounts of a vendor: its place, and whose it is.
fn account(erp: &Erp, vendor: usize, nth: usize) -> Option<(usize, usize)> {
    let vendor = a_vendor(erp, vendor);
    let all = places(erp, vendor);
    Some((*all.get(nth % all.len().max(1))?, vendor))
}

/// Somebody wrote to an account.
fn touched(erp: &mut Erp, vendor: usize, at: usize, field: LoggedField) -> Option<()> {
    let now = erp.now;
    let record = &mut erp.records[at];
    (record.since, record.edited) = (now, true);
    let records = vec![record.id];
    erp.events.push(Event::Edited { records, phones: Vec::new() });
    log(erp, vendor, field)
}

/// Somebody wrote to a telephone number.
fn rung(erp: &mut Erp, vendor: usize, kind: usize) -> Option<()> {
    erp.events.push(Event::Edited { records: Vec::new(), phones: vec![(vendor, kind)] });
    log(erp, vendor, [LoggedField::Phone, LoggedField::Mobile][kind])
}

/// The ERP's own log has it, where the ERP tells anything. It was done.
#[expect(clippy::unnecessary_wraps, reason = "the last word of every edit")]
fn log(erp: &mut Erp, vendor: usize, field: LoggedField) -> Option<()> {
    if erp.claims == Claims::Truth {
        erp.log.push((erp.now, vendor, field, false));
    }
    Some(())
}
