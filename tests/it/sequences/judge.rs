//! Whether what was done might be done, by the rules alone (DESIGN 2 and 4, API 3 and 4).

use std::time::Duration;

use countersign::ap;
use countersign::domain::operation::{Operation, OperationResult};
use countersign_erp_source::Timestamp;

use super::books::{Books, Known};
use super::erp::{Paid, Shown};
use super::numbers::OWN;
use super::scene::PEOPLE;

const COOLING_OFF: Duration = Duration::from_hours(7 * 24);
/// Above this, in cents, nothing goes out without the one who granted the mandate.
const LARGE: i64 = 500_000;

/// What is wrong.
pub(super) type Wrong = String;

/// Something that was done, and when.
pub(super) struct Judge<'a> {
    pub(super) books: &'a mut Books,
    pub(super) operation: &'a Operation,
    pub(super) now: Timestamp,
}

impl Judge<'_> {
    /// A payment was booked. Gives what is worth counting about it.
    pub(super) fn paid(&mut self, paid: &Paid) -> Result<Vec<&'static str>, Wrong> {
        let shown = self.books.looked(self.now).ok_or("paid without a look at the bill")?;
        let wrong = |what: &str| Err(format!("{what} was paid: {paid:?}, {shown:?}"));
        let Some(account) = self.books.accounts.get(&paid.record).cloned() else {
            return wrong("an account that is not on file");
        };
        let vendor = self.books.vendors.get(&paid.vendor).ok_or("a vendor that is not on file")?;
        let active = shown.accounts.iter().filter(|(.., active)| *active).count();
        let merged = self.books.merged.get(&paid.vendor);
        let is_merged = shown.accounts.iter().any(|(id, ..)| {
            let reowned = self.books.accounts.get(id).is_some_and(|account| account.reowned);
            reowned && merged.is_some_and(|merged| merged.contains(id))
        });
        if account.vendor != paid.vendor || account.number != paid.number || !account.active {
            return wrong("another account than the one on file");
        }
        if account.known == Known::Changed {
            return wrong("an account that changed in the ERP");
        }
        if vendor.disputed {
            return wrong("a vendor that is not what it was");
        }
        if is_merged {
            return wrong("a vendor that another one was merged into");
        }
        if paid.entered != paid.vendor && self.books.vendors.contains_key(&paid.entered) {
            return wrong("another vendor than the one of the bill");
        }
        if paid.named.map_or(active > 1, |named| named != paid.record) {
            return wrong("an account that the bill does not name");
        }
        if active > 1 && account.known == Known::Unverified {
            return wrong("one of several accounts, unverified,");
        }
        if paid.number == OWN {
            return wrong("an account of the company's own");
        }
        let cooling = self.now.since(account.since) < COOLING_OFF;
        let approved = self.books.was_approved(paid.record, &account, self.now);
        let unverified = account.known == Known::Unverified && !approved;
        let changing = self.books.changing.get(&paid.vendor);
        let changing = changing.is_some_and(|(_, until)| self.now < *until);
        let needs = [
            (cooling, "an account in cooling-off"),
            (unverified, "an unverified account"),
            (paid.shared, "an account that another vendor has"),
            (changing, "an account that is about to change"),
        ];
        let seconded = self.is_seconded(&[]);
        let by_principal = self.has_vote(|by| by == 0);
        for (needed, what) in needs {
            if needed && !seconded {
                return wrong(&format!("{what} without a second person"));
            }
        }
        if paid.amount > LARGE && !seconded && !by_principal {
            return wrong("a large bill without its principal");
        }
        if seconded || by_principal {
            self.books.approved.push((paid.record, paid.number.clone(), self.now));
        }
        let mut counted = vec!["paid"];
        counted.push(match account.known {
            Known::Adopted => "paid: adopted",
            Known::Verified => "paid: verified",
            Known::Unverified => "paid: unverified",
            Known::Changed => "paid: changed",
        });
        let named = [
            (cooling, "paid: cooling off, by two"),
            (unverified, "paid: unverified, by two"),
            (paid.shared, "paid: shared, by two"),
            (changing, "paid: about to change, by two"),
            (account.known == Known::Unverified && !seconded, "paid: unverified, two weeks on"),
            (account.known == Known::Verified && !seconded, "paid: verified, by itself"),
            (by_principal && !seconded, "paid: large, by its principal"),
        ];
        counted.extend(named.into_iter().filter(|(is, _)| *is).map(|(_, name)| name));
        Ok(counted)
    }

    /// Bank details were changed by an order.
    pub(super) fn changed(&mut self, shown: &Shown, number: &str) -> Result<(), Wrong> {
        let wrong = |what: &str| Err(format!("bank details were changed {what}: {shown:?}"));
        let vendor = self.books.vendors.get(&shown.vendor).ok_or("a vendor that is not on file")?;
        if self.operation.action != ap::UPDATE_BANK_DETAILS {
            return wrong("by another operation");
        }
        if shown.accounts.iter().filter(|(.., active)| *active).count() > 1 {
            return wrong("of a vendor with several accounts");
        }
        if vendor.disputed {
            return wrong("of a vendor that is not what it was");
        }
        if number == OWN {
            return wrong("to an account of the company's own");
        }
        self.called_and_seconded(shown.vendor, number, "bank details were changed")
    }

    /// A human's operation made an account the baseline. Gives its record.
    pub(super) fn confirmed(&mut self, shown: &Shown) -> Result<u32, Wrong> {
        let Some(OperationResult::Vendor(result)) = &self.operation.result else {
            return Err("an account was confirmed with no result".to_owned());
        };
        let number = result.iban.clone().unwrap_or_default();
        let record = result.account_ref.as_ref().and_then(|record| record.parse().ok());
        let record: u32 = record.ok_or("an account was confirmed that has no record")?;
        let is_there = shown.accounts.contains(&(record, number.clone(), true));
        let on_file = self.books.accounts.get(&record).is_some_and(|account| {
            account.vendor == shown.vendor && account.number == number && account.active
        });
        if !is_there || !on_file || number == OWN {
            return Err(format!("{number} was confirmed, and is not on file: {shown:?}"));
        }
        self.called_and_seconded(shown.vendor, &number, "an account was confirmed")?;
        Ok(record)
    }

    /// A human's operation made a telephone number one to call.
    pub(super) fn phone_confirmed(&mut self, shown: &Shown) -> Result<(), Wrong> {
        let params = &self.operation.substance.params;
        let number = params.get("phone").map(|param| param.value.clone()).unwrap_or_default();
        if !self.is_seconded(&[]) {
            return Err(format!("{number} was confirmed without a second person"));
        }
        if self.books.is_shared_phone(shown.vendor, &number) {
            return Err(format!("{number} was confirmed, and another vendor has it"));
        }
        let vendor = self.books.vendors.get_mut(&shown.vendor);
        let phone = vendor.and_then(|vendor| {
            vendor.phones.iter_mut().find(|phone| phone.number.as_ref() == Some(&number))
        });
        phone.ok_or(format!("{number} was confirmed, and is not on file"))?.confirmed = true;
        Ok(())
    }

    /// Somebody heard it from the vendor, on a number that is to be trusted, and another one said yes.
    fn called_and_seconded(&self, vendor: usize, number: &str, what: &str) -> Result<(), Wrong> {
        let calls = self.books.standing_calls(vendor, number, self.now);
        let trusted = calls.iter().any(|call| {
            !self.books.is_shared_phone(vendor, &call.dialled)
                && self
                    .books
                    .phone(vendor, &call.dialled)
                    .is_some_and(|phone| phone.is_trusted(self.now) && phone.since <= call.at)
        });
        if !trusted {
            let all = &self.books.calls;
            return Err(format!("{what} without a call that counts: {number}, {all:?}"));
        }
        let callers: Vec<usize> = calls.iter().map(|call| call.by).collect();
        if !self.is_seconded(&callers) {
            let votes = &self.books.votes;
            return Err(format!("{what} without a second person: {callers:?} called, {votes:?}"));
        }
        Ok(())
    }

    /// Whether an approver voted for it as it is, who is neither its principal nor one of those.
    fn is_seconded(&self, callers: &[usize]) -> bool {
        let principal = self.operation.origins.principal.as_str();
        self.has_vote(|by| {
            let (name, roles) = PEOPLE[by];
            let is_approver = roles.contains(&countersign::domain::role::Role::Approver);
            is_approver && name != principal && !callers.contains(&by)
        })
    }

    fn has_vote(&self, fits: impl Fn(usize) -> bool) -> bool {
        let (id, hash) = (self.operation.id.as_str(), self.operation.substance.hash.as_deref());
        self.books
            .votes
            .iter()
            .any(|vote| vote.operation == id && Some(&*vote.hash) == hash && fits(vote.by))
    }

    /// What the gateway says of the account that is to be paid.
    pub(super) fn facts(&self) -> Result<(), Wrong> {
        let substance = &self.operation.substance;
        let record = substance.records.get("account").and_then(|record| record.parse().ok());
        let record: u32 = record.ok_or("facts about no account")?;
        let fact = |name: &str| substance.facts.get(name).map(|fact| &fact.value);
        let account = self.books.accounts.get(&record).ok_or("facts about an unknown account")?;
        let vendor = self.books.vendors.get(&account.vendor);
        let oldest = self.now.whole_days_since(account.since);
        let age = fact("iban_age_days").and_then(serde_json::Value::as_i64).unwrap_or(i64::MAX);
        if age > oldest {
            return Err(format!("an account is {age} days old, and was {oldest}: {account:?}"));
        }
        let cooling = self.now.since(account.since) < COOLING_OFF;
        let said = fact("in_cooling_off").and_then(serde_json::Value::as_bool);
        if cooling && said != Some(true) {
            return Err(format!("an account is not in cooling-off: {account:?}"));
        }
        let word = fact("bank_status").and_then(|word| word.as_str()).unwrap_or_default();
        let disputed = vendor.is_none_or(|vendor| vendor.disputed);
        let may_be = match word {
            "changed_in_erp" => true,
            _ if account.known == Known::Changed || disputed => false,
            "adopted" => account.known == Known::Adopted,
            "verified" => account.known == Known::Verified,
            "unverified" => account.known == Known::Unverified,
            word => word == "ambiguous",
        };
        if may_be { Ok(()) } else { Err(format!("an account is `{word}`: {account:?}")) }
    }
}
