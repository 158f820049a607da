//! Making and editing a vendor and its accounts.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_erp_source::{AccountId, AccountNumber, Timestamp, VendorId};

use super::{
    AccountFields, AccountRecord, AccountRow, FieldError, InField, VendorFields, VendorRecord,
    VendorRow, not_blank,
};

const HOURS_PER_DAY: u64 = 24;

fn days_ago(now: Timestamp, days: u32) -> Timestamp {
    now.minus(Duration::from_hours(u64::from(days).saturating_mul(HOURS_PER_DAY)))
}

/// The age that a record gets by an edit: an age that only repeats the present one says nothing.
fn since_after(now: Timestamp, present: Timestamp, changed: bool, age: Option<u32>) -> Timestamp {
    match age {
        Some(days) if i64::from(days) != now.whole_days_since(present) => days_ago(now, days),
        _ if changed => now,
        _ => present,
    }
}

impl VendorFields {
    /// A new vendor.
    pub(crate) fn create(&self, id: VendorId, now: Timestamp) -> Result<VendorRow, FieldError> {
        if self.name.is_none() {
            return Err(FieldError::new("name", "is needed for a new vendor"));
        }
        let given = self.accounts.iter().flatten().any(|entry| entry.owner.is_some());
        for (field, said) in [("merged_into", self.merged_into.is_some()), ("owner", given)] {
            if said {
                return Err(FieldError::new(field, "a new vendor has nothing to give away"));
            }
        }
        let mut row = VendorRow {
            id,
            name: String::new(),
            tax_number: None,
            parent: None,
            phone: None,
            phone_since: None,
            accounts_made: 0,
            accounts: Vec::new(),
        };
        self.edit(&mut row, now)?;
        Ok(row)
    }

    /// Edits a vendor as somebody with rights in the ERP does.
    pub(crate) fn edit(&self, row: &mut VendorRow, now: Timestamp) -> Result<(), FieldError> {
        if let Some(name) = &self.name {
            if name.trim().is_empty() {
                return Err(FieldError::new("name", "must not be empty"));
            }
            row.name.clone_from(name);
        }
        if let Some(tax_number) = &self.tax_number {
            row.tax_number = not_blank(tax_number.clone());
        }
        if let Some(parent) = &self.parent {
            let parent = not_blank(parent.clone()).map(VendorId::new);
            row.parent = parent.transpose().in_field("parent")?;
        }
        self.edit_phone(row, now)?;
        self.edit_accounts(row, now)
    }

    fn edit_phone(&self, row: &mut VendorRow, now: Timestamp) -> Result<(), FieldError> {
        let wanted = self.phone.clone().map_or_else(|| row.phone.clone(), not_blank);
        if wanted.is_none() && self.phone_age_days.is_some() {
            return Err(FieldError::new("phone_age_days", "there is no phone on file"));
        }
        let changed = wanted != row.phone;
        row.phone_since = wanted.as_ref().map(|_| {
            let present = row.phone_since.unwrap_or(now);
            since_after(now, present, changed, self.phone_age_days)
        });
        row.phone = wanted;
        Ok(())
    }

    fn edit_accounts(&self, row: &mut VendorRow, now: Timestamp) -> Result<(), FieldError> {
        match (&self.accounts, &self.iban) {
            (Some(_), None) if self.iban_age_days.is_some() => {
                return Err(FieldError::new(
                    "iban_age_days",
                    "goes with `iban`; each of `accounts` has an `age_days` of its own",
                ));
            }
            (Some(entries), _) => row.replace_accounts(entries, now)?,
            (None, Some(Some(iban))) => row.set_number(iban, self.iban_age_days, now)?,
            (None, Some(None)) => {
                for account in &mut row.accounts {
                    account.set_active(false, now);
                }
            }
            (None, None) => row.set_age(self.iban_age_days, now)?,
        }
        if let (Some(_), Some(iban)) = (&self.accounts, &self.iban) {
            let said = iban.as_deref().map(AccountNumber::from_erp);
            if said.as_ref() != row.first_active().map(|account| &account.number) {
                return Err(FieldError::new("iban", "is not the first active one of `accounts`"));
            }
        }
        Ok(())
    }
}

impl AccountFields {
    fn number(&self) -> Result<AccountNumber, FieldError> {
        if self.iban.trim().is_empty() {
            return Err(FieldError::new("iban", "must not be empty"));
        }
        Ok(AccountNumber::from_erp(&self.iban))
    }

    fn create(&self, id: AccountId, now: Timestamp) -> Result<AccountRow, FieldError> {
        Ok(AccountRow {
            id,
            number: self.number()?,
            holder: not_blank(self.holder.clone()),
            active: self.active.unwrap_or(true),
            allowed: self.allowed.unwrap_or(true),
            since: days_ago(now, self.age_days.unwrap_or(0)),
            changed: false,
        })
    }

    fn edit(&self, account: &mut AccountRow, now: Timestamp) -> Result<(), FieldError> {
        let number = self.number()?;
        let active = self.active.unwrap_or(account.active);
        let changed = number != account.number || active != account.active;
        account.since = since_after(now, account.since, changed, self.age_days);
        account.changed |= changed;
        account.number = number;
        account.active = active;
        account.allowed = self.allowed.unwrap_or(account.allowed);
        if self.holder.is_some() {
            account.holder = not_blank(self.holder.clone());
        }
        Ok(())
    }
}

impl AccountFields {
    /// An account with that number, and defaults or nothing new else.
    pub(crate) fn of_number(number: &AccountNumber) -> Self {
        Self {
            iban: number.whole().to_owned(),
            age_days: None,
            active: None,
            holder: None,
            allowed: None,
            owner: None,
        }
    }
}

impl AccountRow {
    /// Archives the account or brings it back, which makes it as old as that.
    pub(crate) fn set_active(&mut self, active: bool, now: Timestamp) {
        if self.active != active {
            self.active = active;
            self.restart(now);
        }
    }

    /// It is as old as a change of it now.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        self.since = now;
        self.changed = true;
    }
}

impl VendorRow {
    pub(crate) fn first_active(&self) -> Option<&AccountRow> {
        self.accounts.iter().find(|account| account.active)
    }

    fn new_account_id(&mut self) -> Result<AccountId, FieldError> {
        self.accounts_made = self.accounts_made.saturating_add(1);
        AccountId::new(format!("{}/{}", self.id, self.accounts_made)).in_field("accounts")
    }

    fn replace_accounts(
        &mut self,
        entries: &[AccountFields],
        now: Timestamp,
    ) -> Result<(), FieldError> {
        let numbers = entries.iter().map(AccountFields::number).collect::<Result<Vec<_>, _>>()?;
        let distinct: BTreeSet<_> = numbers.iter().collect();
        if distinct.len() != numbers.len() {
            return Err(FieldError::new("accounts", "one number stands there twice"));
        }
        let mut on_file: Vec<_> = self.accounts.drain(..).map(Some).collect();
        // Numbers first, so that an entry that moved up takes no other record's place.
        let mut kept: Vec<Option<AccountRow>> = numbers
            .iter()
            .map(|number| {
                let same = |row: &&mut Option<AccountRow>| {
                    row.as_ref().is_some_and(|row| row.number == *number)
                };
                on_file.iter_mut().find(same).and_then(Option::take)
            })
            .collect();
        for (place, slot) in on_file.iter_mut().zip(&mut kept) {
            if slot.is_none() {
                *slot = place.take();
            }
        }
        for (entry, slot) in entries.iter().zip(kept) {
            if let Some(mut row) = slot {
                entry.edit(&mut row, now)?;
                self.accounts.push(row);
            } else {
                self.add_account(entry, now)?;
            }
        }
        Ok(())
    }

    /// Changes the first active account's number in place; makes one where none is active.
    fn set_number(
        &mut self,
        iban: &str,
        age_days: Option<u32>,
        now: Timestamp,
    ) -> Result<(), FieldError> {
        let fields = AccountFields {
            iban: iban.to_owned(),
            age_days,
            active: Some(true),
            holder: None,
            allowed: None,
            owner: None,
        };
        let number = fields.number()?;
        let chosen = self
            .accounts
            .iter()
            .position(|account| account.active)
            .or_else(|| self.accounts.iter().position(|account| account.number == number));
        let elsewhere = self
            .accounts
            .iter()
            .enumerate()
            .any(|(at, account)| Some(at) != chosen && account.number == number);
        if elsewhere {
            return Err(FieldError::new("iban", "is another of the vendor's; edit `accounts`"));
        }
        if let Some(account) = chosen.and_then(|at| self.accounts.get_mut(at)) {
            return fields.edit(account, now);
        }
        self.add_account(&fields, now).map(|_id| ())
    }

    /// Adds an account after the others.
    pub(crate) fn add_account(
        &mut self,
        fields: &AccountFields,
        now: Timestamp,
    ) -> Result<AccountId, FieldError> {
        let id = self.new_account_id()?;
        self.accounts.push(fields.create(id.clone(), now)?);
        Ok(id)
    }

    /// Takes over accounts, which stay the records that they are.
    pub(crate) fn take(&mut self, accounts: Vec<AccountRow>) -> Result<(), FieldError> {
        for account in accounts {
            if self.accounts.iter().any(|own| own.number == account.number) {
                let problem = format!("vendor `{}` has an account with the same number", self.id);
                return Err(FieldError::new("accounts", problem));
            }
            self.accounts.push(account);
        }
        Ok(())
    }

    fn set_age(&mut self, age_days: Option<u32>, now: Timestamp) -> Result<(), FieldError> {
        let Some(days) = age_days else { return Ok(()) };
        match self.accounts.iter_mut().find(|account| account.active) {
            Some(account) => {
                account.since = since_after(now, account.since, false, Some(days));
                Ok(())
            }
            None => Err(FieldError::new("iban_age_days", "there is no active account")),
        }
    }

    /// What the control surface shows.
    pub(crate) fn record(&self, now: Timestamp) -> VendorRecord {
        let first = self.first_active();
        VendorRecord {
            name: self.name.clone(),
            tax_number: self.tax_number.clone(),
            parent: self.parent.clone().map(String::from),
            phone: self.phone.clone(),
            phone_age_days: self.phone_since.map(|since| now.whole_days_since(since)),
            iban: first.map(|account| account.number.whole().to_owned()),
            iban_age_days: first.map(|account| now.whole_days_since(account.since)),
            accounts: self
                .accounts
                .iter()
                .map(|account| AccountRecord {
                    iban: account.number.whole().to_owned(),
                    age_days: now.whole_days_since(account.since),
                    active: account.active,
                    holder: account.holder.clone(),
                    allowed: account.allowed,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "FR7630006000011234567890189";
    const B: &str = "NL91ABNA0417164300";
    const C: &str = "DE89370400440532013000";

    fn fields(json: &str) -> VendorFields {
        serde_json::from_str(json).unwrap()
    }

    fn start() -> Timestamp {
        Timestamp::parse("2026-11-29T10:00:00Z").unwrap()
    }

    fn later() -> Timestamp {
        start().plus(Duration::from_hours(30))
    }

    fn vendor(json: &str) -> VendorRow {
        fields(json).create(VendorId::new("V-1").unwrap(), start()).unwrap()
    }

    fn shape(row: &VendorRow) -> Vec<(&str, &str, i64, bool)> {
        row.accounts
            .iter()
            .map(|a| {
                (a.id.as_str(), a.number.whole(), later().whole_days_since(a.since), a.changed)
            })
            .collect()
    }

    #[track_caller]
    fn edited(before: &str, edit: &str, after: &[(&str, &str, i64, bool)]) {
        let mut row = vendor(before);
        fields(edit).edit(&mut row, later()).unwrap();
        assert_eq!(shape(&row), after);
    }

    #[test]
    fn a_changed_number_keeps_its_record_and_loses_its_age() {
        let one = format!(r#"{{"name":"A","iban":"{A}","iban_age_days":400}}"#);
        edited(&one, "{}", &[("V-1/1", A, 401, false)]);
        edited(&one, &format!(r#"{{"iban":"{A}"}}"#), &[("V-1/1", A, 401, false)]);
        edited(&one, &format!(r#"{{"iban":"{B}"}}"#), &[("V-1/1", B, 0, true)]);
        edited(&one, &format!(r#"{{"accounts":[{{"iban":"{B}"}}]}}"#), &[("V-1/1", B, 0, true)]);
        edited(&one, r#"{"iban":null}"#, &[("V-1/1", A, 0, true)]);
    }

    #[test]
    fn an_age_that_is_only_read_back_makes_nothing_older() {
        let one = format!(r#"{{"name":"A","iban":"{A}","iban_age_days":400}}"#);
        let same = format!(r#"{{"iban":"{B}","iban_age_days":401}}"#);
        edited(&one, &same, &[("V-1/1", B, 0, true)]);
        let claimed = format!(r#"{{"iban":"{B}","iban_age_days":90}}"#);
        edited(&one, &claimed, &[("V-1/1", B, 90, true)]);
    }

    #[test]
    fn a_list_keeps_the_records_of_its_numbers() {
        let two = format!(
            r#"{{"name":"A","accounts":[{{"iban":"{A}","age_days":9}},{{"iban":"{B}","age_days":9}}]}}"#
        );
        let list = |numbers: &[&str]| {
            let entries: Vec<_> =
                numbers.iter().map(|number| format!(r#"{{"iban":"{number}"}}"#)).collect();
            format!(r#"{{"accounts":[{}]}}"#, entries.join(","))
        };
        edited(&two, &list(&[B, A]), &[("V-1/2", B, 10, false), ("V-1/1", A, 10, false)]);
        edited(&two, &list(&[B]), &[("V-1/2", B, 10, false)]);
        edited(&two, &list(&[C, B]), &[("V-1/1", C, 0, true), ("V-1/2", B, 10, false)]);
        let three = [("V-1/3", C, 0, false), ("V-1/1", A, 10, false), ("V-1/2", B, 10, false)];
        edited(&two, &list(&[C, A, B]), &three);
    }

    #[test]
    fn a_deleted_record_s_id_never_comes_back() {
        let mut row = vendor(&format!(r#"{{"name":"A","iban":"{A}"}}"#));
        fields(r#"{"accounts":[]}"#).edit(&mut row, later()).unwrap();
        fields(&format!(r#"{{"iban":"{A}"}}"#)).edit(&mut row, later()).unwrap();
        assert_eq!(shape(&row), [("V-1/2", A, 0, false)]);
    }

    #[test]
    fn a_changed_phone_is_as_old_as_its_change() {
        let mut row = vendor(r#"{"name":"A","phone":"+33140000000","phone_age_days":400}"#);
        fields(r#"{"phone":"+33140000000"}"#).edit(&mut row, later()).unwrap();
        assert_eq!(row.record(later()).phone_age_days, Some(401));
        fields(r#"{"phone":"+33199999999"}"#).edit(&mut row, later()).unwrap();
        assert_eq!(row.record(later()).phone_age_days, Some(0));
        fields(r#"{"phone":null}"#).edit(&mut row, later()).unwrap();
        assert_eq!(row.record(later()).phone_age_days, None);
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_field() {
        let refused = |before: &str, edit: &str| {
            let mut row = vendor(before);
            fields(edit).edit(&mut row, later()).unwrap_err().field
        };
        let one = format!(r#"{{"name":"A","iban":"{A}"}}"#);
        assert_eq!(refused(&one, r#"{"name":" "}"#), "name");
        let both = format!(r#"{{"iban":"{B}","accounts":[{{"iban":"{A}"}}]}}"#);
        assert_eq!(refused(&one, &both), "iban");
        assert_eq!(refused(r#"{"name":"A"}"#, r#"{"iban_age_days":3}"#), "iban_age_days");
        assert_eq!(refused(r#"{"name":"A"}"#, r#"{"phone_age_days":3}"#), "phone_age_days");
        assert_eq!(refused(&one, r#"{"accounts":[{"iban":""}]}"#), "iban");
    }
}
