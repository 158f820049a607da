//! What the edit of vendors changes, as the entries of a log tell it. Pure: what was and what is
//! in, the difference out.

use std::collections::BTreeMap;

use countersign_erp_source::{AccountId, LoggedField, VendorId};

use crate::fields::{AccountRow, VendorRow};

/// One entry, before it has a number and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) vendor: VendorId,
    pub(crate) account: Option<AccountId>,
    pub(crate) field: LoggedField,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Accounts with their vendors.
type Accounts<'a> = BTreeMap<&'a AccountId, (&'a VendorId, &'a AccountRow)>;

/// What differs: first what the vendors say themselves, then their accounts. A new vendor's
/// accounts are added; that it is there is no change of a vendor.
pub(crate) fn differences(before: &[VendorRow], after: &[VendorRow]) -> Vec<Edited> {
    let mut found = Vec::new();
    let both: Vec<_> = after
        .iter()
        .filter_map(|now| Some((before.iter().find(|then| then.id == now.id)?, now)))
        .collect();
    for (then, now) in &both {
        compare_vendor(then, now, &mut found);
    }
    let (then, now) = (accounts(before), accounts(after));
    for (id, (vendor, account)) in &then {
        if let Some((owner, as_now)) = now.get(id) {
            compare_account(vendor, account, as_now, &mut found);
            let entry = Edited::of_account(vendor, id, LoggedField::Owner);
            entry.note(Some(vendor.as_str()), Some(owner.as_str()), &mut found);
        } else {
            let entry = Edited::of_account(vendor, id, LoggedField::Removed);
            entry.note(Some(account.number.whole()), None, &mut found);
        }
    }
    for (id, (vendor, account)) in &now {
        if !then.contains_key(id) {
            let entry = Edited::of_account(vendor, id, LoggedField::Added);
            entry.note(None, Some(account.number.whole()), &mut found);
        }
    }
    for (then, now) in &both {
        compare_order(then, now, &mut found);
    }
    found
}

/// That a vendor was merged into another.
pub(crate) fn merged(vendor: &VendorId, into: &VendorId) -> Edited {
    Edited {
        before: Some(vendor.to_string()),
        after: Some(into.to_string()),
        ..Edited::of_vendor(vendor, LoggedField::Vendor)
    }
}

impl Edited {
    fn of_vendor(vendor: &VendorId, field: LoggedField) -> Self {
        Self { vendor: vendor.clone(), account: None, field, before: None, after: None }
    }

    fn of_account(vendor: &VendorId, account: &AccountId, field: LoggedField) -> Self {
        Self { account: Some(account.clone()), ..Self::of_vendor(vendor, field) }
    }

    /// Becomes an entry if the two differ.
    fn note(mut self, before: Option<&str>, after: Option<&str>, found: &mut Vec<Self>) {
        if before != after {
            self.before = before.map(str::to_owned);
            self.after = after.map(str::to_owned);
            found.push(self);
        }
    }
}

fn accounts(vendors: &[VendorRow]) -> Accounts<'_> {
    let mut all = BTreeMap::new();
    for vendor in vendors {
        all.extend(vendor.accounts.iter().map(|account| (&account.id, (&vendor.id, account))));
    }
    all
}

fn compare_vendor(then: &VendorRow, now: &VendorRow, found: &mut Vec<Edited>) {
    let parent = |row: &VendorRow| row.parent.as_ref().map(ToString::to_string);
    for (field, before, after) in [
        (LoggedField::Name, Some(&then.name), Some(&now.name)),
        (LoggedField::TaxNumber, then.tax_number.as_ref(), now.tax_number.as_ref()),
        (LoggedField::Parent, parent(then).as_ref(), parent(now).as_ref()),
        (LoggedField::Phone, then.phone.as_ref(), now.phone.as_ref()),
    ] {
        let entry = Edited::of_vendor(&now.id, field);
        entry.note(before.map(String::as_str), after.map(String::as_str), found);
    }
}

fn compare_account(
    vendor: &VendorId,
    then: &AccountRow,
    now: &AccountRow,
    found: &mut Vec<Edited>,
) {
    let activity = |row: &AccountRow| {
        if row.active { LoggedField::ACTIVE } else { LoggedField::ARCHIVED }
    };
    let trust =
        |row: &AccountRow| if row.allowed { LoggedField::ALLOWED } else { LoggedField::BARRED };
    for (field, before, after) in [
        (LoggedField::Number, Some(then.number.whole()), Some(now.number.whole())),
        (LoggedField::Activity, Some(activity(then)), Some(activity(now))),
        (LoggedField::Trust, Some(trust(then)), Some(trust(now))),
        (LoggedField::Holder, then.holder.as_deref(), now.holder.as_deref()),
    ] {
        Edited::of_account(vendor, &now.id, field).note(before, after, found);
    }
}

/// Places are counted among the accounts that the vendor has before and after, so that one that
/// comes or goes moves no other.
fn compare_order(then: &VendorRow, now: &VendorRow, found: &mut Vec<Edited>) {
    let places = |row: &VendorRow, other: &VendorRow| -> BTreeMap<AccountId, String> {
        let stays = |id: &AccountId| other.accounts.iter().any(|account| account.id == *id);
        let staying = row.accounts.iter().map(|account| &account.id).filter(|id| stays(id));
        (1_usize..).zip(staying).map(|(place, id)| (id.clone(), place.to_string())).collect()
    };
    let then_at = places(then, now);
    for (id, place) in places(now, then) {
        let before = then_at.get(&id).map(String::as_str);
        Edited::of_account(&now.id, &id, LoggedField::Order).note(before, Some(&place), found);
    }
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::Timestamp;

    use super::*;
    use crate::fields::VendorFields;

    const A: &str = "FR7630006000011234567890189";
    const B: &str = "NL91ABNA0417164300";
    const C: &str = "DE89370400440532013000";

    fn start() -> Timestamp {
        Timestamp::parse("2026-11-29T10:00:00Z").unwrap()
    }

    fn fields(json: &str) -> VendorFields {
        serde_json::from_str(json).unwrap()
    }

    fn vendor(id: &str, json: &str) -> VendorRow {
        fields(json).create(VendorId::new(id).unwrap(), start()).unwrap()
    }

    /// Entries as `account field before after`.
    fn told(entries: &[Edited]) -> Vec<String> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        entries
            .iter()
            .map(|entry| {
                let account = entry.account.as_ref().map(ToString::to_string);
                let (before, after) = (text(&entry.before), text(&entry.after));
                format!("{} {} {before} {after}", text(&account), entry.field.code())
            })
            .collect()
    }

    #[track_caller]
    fn edited(before: &str, edit: &str, expected: &[&str]) {
        let before = vendor("V-1", before);
        let mut after = before.clone();
        fields(edit).edit(&mut after, start()).unwrap();
        assert_eq!(told(&differences(&[before], &[after])), expected);
    }

    #[test]
    fn every_field_of_a_vendor_is_told() {
        let one = r#"{"name":"A","tax_number":"1","phone":"+331"}"#;
        edited(one, r#"{"name":"B"}"#, &["- name A B"]);
        edited(one, r#"{"tax_number":null}"#, &["- tax_number 1 -"]);
        edited(one, r#"{"parent":"V-9"}"#, &["- parent - V-9"]);
        edited(one, r#"{"phone":"+332"}"#, &["- phone +331 +332"]);
        edited(one, one, &[]);
    }

    #[test]
    fn every_field_of_an_account_is_told() {
        let one = format!(r#"{{"name":"V","accounts":[{{"iban":"{A}","holder":"H"}}]}}"#);
        let check = |edit: &str, expected: &[&str]| {
            edited(&one, &format!(r#"{{"accounts":[{edit}]}}"#), expected);
        };
        let number = format!("V-1/1 number {A} {B}");
        check(&format!(r#"{{"iban":"{B}"}}"#), &[&number]);
        let archived = "V-1/1 activity active archived";
        check(&format!(r#"{{"iban":"{A}","active":false}}"#), &[archived]);
        let barred = "V-1/1 trust allowed barred";
        check(&format!(r#"{{"iban":"{A}","allowed":false}}"#), &[barred]);
        check(&format!(r#"{{"iban":"{A}","holder":"I"}}"#), &["V-1/1 holder H I"]);
        check("", &[&format!("V-1/1 removed {A} -")]);
        let added = format!("V-1/2 added - {B}");
        check(&format!(r#"{{"iban":"{A}"}},{{"iban":"{B}"}}"#), &[&added]);
        // An age is what the control surface claims, and nothing that a clerk edits.
        check(&format!(r#"{{"iban":"{A}","age_days":9}}"#), &[]);
    }

    #[test]
    fn places_are_told_where_accounts_change_theirs() {
        let three = format!(
            r#"{{"name":"V","accounts":[{{"iban":"{A}"}},{{"iban":"{B}"}},{{"iban":"{C}"}}]}}"#
        );
        let swapped =
            format!(r#"{{"accounts":[{{"iban":"{B}"}},{{"iban":"{A}"}},{{"iban":"{C}"}}]}}"#);
        edited(&three, &swapped, &["V-1/1 order 1 2", "V-1/2 order 2 1"]);
        let first_gone = format!(r#"{{"accounts":[{{"iban":"{B}"}},{{"iban":"{C}"}}]}}"#);
        edited(&three, &first_gone, &[&format!("V-1/1 removed {A} -")]);
    }

    #[test]
    fn an_account_that_moves_is_told_at_the_vendor_that_had_it() {
        let one = vendor("V-1", &format!(r#"{{"name":"A","iban":"{A}"}}"#));
        let two = vendor("V-2", &format!(r#"{{"name":"B","iban":"{B}"}}"#));
        let (mut shell, mut other) = (one.clone(), two.clone());
        other.accounts.append(&mut shell.accounts);
        let entries = differences(&[one, two], &[shell, other]);
        assert_eq!(told(&entries), ["V-1/1 owner V-1 V-2"]);
        assert_eq!(entries[0].vendor.as_str(), "V-1");
    }

    #[test]
    fn a_new_vendor_s_accounts_are_added() {
        let new = vendor("V-1", &format!(r#"{{"name":"A","iban":"{A}"}}"#));
        assert_eq!(told(&differences(&[], &[new])), [format!("V-1/1 added - {A}")]);
    }
}
