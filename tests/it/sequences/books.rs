//! What the rules know of a vendor at any moment (DESIGN 2 and 4): kept from what was edited, what the
//! gateway was shown, who called and who voted. No code of the gateway is asked.
//!
//! What is shown with a bill need not have been looked at: then two things may be true. An age is
//! counted from the first moment at which it can have been seen, and a change is one from the first
//! moment at which it must have been. So nothing that is allowed is held against the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_erp_source::Timestamp;

use super::erp::{Claims, Erp, Shown};

const DAY: Duration = Duration::from_hours(24);
/// For how long a number that was changed in the ERP is not one to call.
const PHONE_UNTRUSTED_FOR: Duration = Duration::from_hours(90 * 24);
/// For how long a call counts.
const CALL_COUNTS_FOR: Duration = Duration::from_hours(30 * 24);

/// How an account came to be on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Adopted,
    Unverified,
    Verified,
    Changed,
}

/// An account as it is on file.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) vendor: usize,
    pub(super) number: String,
    pub(super) active: bool,
    pub(super) known: Known,
    /// Not before this it became what it is.
    pub(super) since: Timestamp,
    /// It came from a vendor that was merged, or was made another one's.
    pub(super) reowned: bool,
    /// Somebody wrote to it since, and the ERP says so.
    edited: bool,
    /// When it can first have been seen to be another one.
    doubted: Option<Timestamp>,
}

impl Account {
    fn differs(&self, vendor: usize, number: &str, active: bool) -> bool {
        self.edited || self.vendor != vendor || self.number != number || self.active != active
    }
}

/// A telephone number as it is on file.
#[derive(Debug, Clone)]
pub(super) struct Phone {
    pub(super) number: Option<String>,
    pub(super) since: Timestamp,
    pub(super) adopted: bool,
    pub(super) confirmed: bool,
    edited: bool,
}

impl Phone {
    pub(super) fn is_trusted(&self, now: Timestamp) -> bool {
        let old = now.since(self.since) >= PHONE_UNTRUSTED_FOR;
        self.number.is_some() && (self.adopted || self.confirmed || old)
    }
}

/// A vendor as it is on file.
#[derive(Debug, Clone)]
pub(super) struct Vendor {
    name: String,
    tax_number: Option<String>,
    parent: Option<usize>,
    /// The order of those accounts that were there when somebody vouched for them.
    order: Vec<u32>,
    /// It is not the one that it was, and nobody said that this is right.
    pub(super) disputed: bool,
    pub(super) phones: [Phone; 2],
}

/// A call that somebody made.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) vendor: usize,
    pub(super) number: String,
    pub(super) dialled: String,
    pub(super) by: usize,
    pub(super) at: Timestamp,
    /// A change may rest on it.
    pub(super) counts: bool,
}

/// A vote that was taken.
#[derive(Debug, Clone)]
pub(super) struct Vote {
    pub(super) operation: String,
    pub(super) hash: String,
    pub(super) by: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Books {
    claims: Claims,
    pub(super) accounts: BTreeMap<u32, Account>,
    pub(super) vendors: BTreeMap<usize, Vendor>,
    /// Accounts that came with a merge, by the vendor that they came to.
    pub(super) merged: BTreeMap<usize, Vec<u32>>,
    pub(super) calls: Vec<Call>,
    pub(super) votes: Vec<Vote>,
    /// When a change to an account was asked for first, by vendor and number.
    requests: BTreeMap<(usize, String), Timestamp>,
    /// Numbers that were ones to call, by vendor, and since when, before somebody edited them.
    former_phones: Vec<(usize, String, Timestamp)>,
    /// Payments that a human let pass: record, number, when.
    pub(super) approved: Vec<(u32, String, Timestamp)>,
    /// Changes that wait: of which vendor, which operation, until when.
    pub(super) changing: BTreeMap<usize, (String, Timestamp)>,
    /// When accounts and vendors that are not on file can first have been seen.
    first: BTreeMap<u32, Timestamp>,
    first_of: BTreeMap<usize, Timestamp>,
    /// The newest that was shown with a bill.
    with_bill: Option<Shown>,
}

impl Books {
    /// The first contact: all that the ERP holds, with the age that it can prove.
    pub(super) fn adopt(erp: &Erp) -> Self {
        let now = erp.now;
        let proved = |since: Timestamp| match erp.claims {
            Claims::Truth => since.min(now),
            Claims::Nothing => now,
            Claims::Lies => erp.oldest,
        };
        let mut books = Self {
            claims: erp.claims,
            accounts: BTreeMap::new(),
            vendors: BTreeMap::new(),
            merged: BTreeMap::new(),
            calls: Vec::new(),
            votes: Vec::new(),
            requests: BTreeMap::new(),
            former_phones: Vec::new(),
            approved: Vec::new(),
            changing: BTreeMap::new(),
            first: BTreeMap::new(),
            first_of: BTreeMap::new(),
            with_bill: None,
        };
        for record in &erp.records {
            let account = Account {
                vendor: erp.commercial(record.owner),
                number: record.number.clone(),
                active: record.active,
                known: Known::Adopted,
                since: proved(record.since),
                reowned: false,
                edited: false,
                doubted: None,
            };
            books.accounts.insert(record.id, account);
        }
        for at in erp.standing() {
            let of = &erp.vendors[at];
            let phones = of.phones.clone().map(|phone| Phone {
                since: phone.as_ref().map_or(now, |(_, since)| proved(*since)),
                number: phone.map(|(number, _)| number),
                adopted: true,
                confirmed: false,
                edited: false,
            });
            let vendor = Vendor {
                name: of.name.clone(),
                tax_number: of.tax_number.clone(),
                parent: of.parent,
                order: erp.accounts(at).map(|record| record.id).collect(),
                disputed: false,
                phones,
            };
            books.vendors.insert(at, vendor);
        }
        books
    }

    /// Somebody wrote to these.
    pub(super) fn edited(&mut self, records: &[u32], phones: &[(usize, usize)]) {
        // What nobody tells can go unnoticed where it is as it was at the next look.
        if self.claims != Claims::Truth {
            return;
        }
        for record in records {
            if let Some(account) = self.accounts.get_mut(record) {
                account.edited = true;
            }
        }
        for (vendor, kind) in phones {
            if let Some(vendor) = self.vendors.get_mut(vendor) {
                vendor.phones[*kind].edited = true;
            }
        }
    }

    /// The gateway was shown a vendor with one of its bills, and may not have looked.
    pub(super) fn may_have_seen(&mut self, shown: Shown, now: Timestamp) {
        for (id, number, active) in &shown.accounts {
            match self.accounts.get_mut(id) {
                Some(account) if account.differs(shown.vendor, number, *active) => {
                    account.doubted.get_or_insert(now);
                }
                Some(_) => {}
                None => {
                    self.first.entry(*id).or_insert(now);
                }
            }
        }
        self.first_of.entry(shown.vendor).or_insert(now);
        self.with_bill = Some(shown);
    }

    /// What was shown last with a bill was looked at.
    pub(super) fn looked(&mut self, now: Timestamp) -> Option<Shown> {
        let shown = self.with_bill.clone()?;
        self.seen(&shown, now);
        Some(shown)
    }

    /// The gateway looked at a vendor.
    pub(super) fn seen(&mut self, shown: &Shown, now: Timestamp) {
        let at = shown.vendor;
        let reordered = self.is_reordered(shown);
        let is_known = self.vendors.contains_key(&at);
        for (id, number, active) in &shown.accounts {
            let before = self.accounts.get(id);
            if before.is_some_and(|before| !before.differs(at, number, *active)) {
                if let Some(same) = self.accounts.get_mut(id) {
                    same.doubted = None;
                }
                continue;
            }
            let first = self.first.get(id).copied();
            let account = Account {
                vendor: at,
                number: number.clone(),
                active: *active,
                known: if before.is_none() && !is_known {
                    Known::Unverified
                } else {
                    Known::Changed
                },
                since: before.map_or(first, |before| before.doubted).unwrap_or(now),
                reowned: before.is_some_and(|before| before.reowned || before.vendor != at),
                edited: false,
                doubted: None,
            };
            self.accounts.insert(*id, account);
        }
        for (id, account) in &mut self.accounts {
            let is_there = shown.accounts.iter().any(|(there, ..)| there == id);
            if account.vendor == at && account.active && !is_there {
                (account.active, account.known, account.since) = (false, Known::Changed, now);
            }
        }
        let first = self.first_of.get(&at).copied().unwrap_or(now);
        let new = |number: &Option<String>, since| Phone {
            number: number.clone(),
            since,
            adopted: false,
            confirmed: false,
            edited: false,
        };
        match self.vendors.get_mut(&at) {
            None => {
                let [main, mobile] = &shown.phones;
                let vendor = Vendor {
                    name: shown.name.clone(),
                    tax_number: shown.tax_number.clone(),
                    parent: shown.parent,
                    order: Vec::new(),
                    disputed: false,
                    phones: [new(main, first), new(mobile, first)],
                };
                self.vendors.insert(at, vendor);
            }
            Some(vendor) => {
                vendor.disputed |= reordered
                    || vendor.name != shown.name
                    || vendor.tax_number != shown.tax_number
                    || vendor.parent != shown.parent;
                for (phone, number) in vendor.phones.iter_mut().zip(&shown.phones) {
                    if phone.number != *number || phone.edited {
                        if let Some(was) = phone.number.clone().filter(|_| phone.is_trusted(now)) {
                            self.former_phones.push((at, was, phone.since));
                        }
                        *phone = new(number, now);
                    }
                }
            }
        }
    }

    /// Whether accounts that are what they were stand in another order.
    fn is_reordered(&self, shown: &Shown) -> bool {
        let Some(vendor) = self.vendors.get(&shown.vendor) else { return false };
        let places: Vec<usize> = shown
            .accounts
            .iter()
            .filter(|(id, number, active)| {
                let before = self.accounts.get(id);
                before.is_some_and(|before| !before.differs(shown.vendor, number, *active))
                    && *active
            })
            .filter_map(|(id, ..)| vendor.order.iter().position(|kept| kept == id))
            .collect();
        !places.is_sorted()
    }

    /// A change of ours was made: the old account is on file no more, the new one is, from now on.
    pub(super) fn changed(
        &mut self,
        vendor: usize,
        old: Option<u32>,
        (new, number): (u32, &str),
        now: Timestamp,
    ) {
        if let Some(account) = old.and_then(|old| self.accounts.get_mut(&old)) {
            (account.active, account.since, account.edited) = (false, now, false);
        }
        let account = Account {
            vendor,
            number: number.to_owned(),
            active: true,
            known: Known::Verified,
            since: now,
            reowned: false,
            edited: false,
            doubted: None,
        };
        self.accounts.insert(new, account);
        if let Some(kept) = self.vendors.get_mut(&vendor) {
            kept.order = vec![new];
        }
        self.forget_calls(vendor);
    }

    /// An account that was on file is verified from now on, and as old as before; and the vendor is
    /// what it is now.
    pub(super) fn confirmed(&mut self, shown: &Shown, record: u32) {
        if let Some(account) = self.accounts.get_mut(&record) {
            (account.known, account.reowned) = (Known::Verified, false);
        }
        if let Some(vendor) = self.vendors.get_mut(&shown.vendor) {
            vendor.name.clone_from(&shown.name);
            vendor.tax_number.clone_from(&shown.tax_number);
            vendor.parent = shown.parent;
            vendor.order = shown.accounts.iter().map(|(id, ..)| *id).collect();
            vendor.disputed = false;
        }
        self.forget_calls(shown.vendor);
    }

    /// What somebody heard before does not stand for another change.
    fn forget_calls(&mut self, vendor: usize) {
        for call in self.calls.iter_mut().filter(|call| call.vendor == vendor) {
            call.counts = false;
        }
    }

    /// The vendor did not confirm that account: no call before counts.
    pub(super) fn denied(&mut self, vendor: usize, number: &str) {
        let about = |call: &&mut Call| call.vendor == vendor && call.number == number;
        for call in self.calls.iter_mut().filter(about) {
            call.counts = false;
        }
        self.changing.remove(&vendor);
    }

    /// The calls that a change to that account may rest on now.
    pub(super) fn standing_calls(&self, vendor: usize, number: &str, now: Timestamp) -> Vec<&Call> {
        self.calls
            .iter()
            .filter(|call| call.counts && call.vendor == vendor && call.number == number)
            .filter(|call| now < call.at.plus(CALL_COUNTS_FOR))
            .collect()
    }

    /// Somebody asked for a change to that account.
    pub(super) fn requested(&mut self, vendor: usize, number: &str, at: Timestamp) {
        self.requests.entry((vendor, number.to_owned())).or_insert(at);
    }

    /// Whether a number on file was there before the change was asked for: as it is, or as it was
    /// before somebody edited it, where it was vouched for again. What is told of the time can make
    /// the request older only.
    pub(super) fn was_on_file(
        &self,
        vendor: usize,
        phone: &Phone,
        number: &str,
        told: Option<Timestamp>,
    ) -> bool {
        let known = self.requests.get(&(vendor, number.to_owned())).copied();
        let Some(requested) = known.into_iter().chain(told).min() else { return true };
        let was_there = self.former_phones.iter().any(|(of, was, since)| {
            *of == vendor && Some(was) == phone.number.as_ref() && *since < requested
        });
        phone.since < requested || (phone.confirmed && was_there)
    }

    /// The number on file that was dialled.
    pub(super) fn phone(&self, vendor: usize, dialled: &str) -> Option<&Phone> {
        let mut all = self.vendors.get(&vendor)?.phones.iter();
        all.find(|phone| phone.number.as_deref() == Some(dialled))
    }

    /// Whether another vendor has that telephone number too.
    pub(super) fn is_shared_phone(&self, vendor: usize, dialled: &str) -> bool {
        self.vendors.iter().any(|(other, kept)| {
            let has = |phone: &Phone| phone.number.as_deref() == Some(dialled);
            *other != vendor && kept.phones.iter().any(has)
        })
    }

    /// Whether a payment to that account that a human let pass is 14 days old.
    pub(super) fn was_approved(&self, record: u32, account: &Account, now: Timestamp) -> bool {
        self.approved.iter().any(|(id, number, at)| {
            *id == record
                && *number == account.number
                && *at >= account.since
                && now.since(*at) >= DAY * 14
        })
    }
}
