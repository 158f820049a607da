//! Vendor details are guarded, not trusted: what the ERP shows now is compared with what the
//! gateway first saw. Pure; the store keeps what comes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_erp_source::{PhoneKind, Timestamp, Vendor, VendorAccount};

use super::phones;
use crate::store::baseline::{
    AccountStatus, Adoption, BaselineAccount, BaselinePhone, BaselineVendor, Dispute, Known,
    MOBILE, PHONE,
};

/// The ERP's clock may be ahead of ours by this much (DESIGN 3), and a little more: what it proves to
/// be younger than that was touched after it became known.
const CLOCKS_APART: Duration = Duration::from_mins(2);
/// How long a number that was changed in the ERP is not one to call (DESIGN 2, "A call-back").
pub const PHONE_UNTRUSTED_FOR: Duration = Duration::from_hours(90 * 24);

/// What a vendor is that the ERP shows as none any more.
const NO_VENDOR: &str = "changed in the ERP: it is no vendor of its own any more (merged into another \
                         one, made a contact of another one, or deleted)";

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The vendor, if the baseline does not have it.
    pub new_vendor: Option<BaselineVendor>,
    /// The vendor as it is to be kept, where it is not what it was.
    pub disputed: Option<BaselineVendor>,
    /// The vendor after that.
    pub vendor: Option<BaselineVendor>,
    /// Accounts that are not what the baseline has, as they are to be kept.
    pub observed: Vec<BaselineAccount>,
    /// All accounts of the vendor after that.
    pub accounts: Vec<BaselineAccount>,
    /// Telephones that are not what the baseline has, as they are to be kept.
    pub observed_phones: Vec<BaselinePhone>,
    /// All telephones of the vendor after that.
    pub phones: Vec<BaselinePhone>,
}

impl Comparison {
    /// Whether any account came from another vendor: the two were merged, or somebody moved it.
    pub fn has_reowned(&self) -> bool {
        self.accounts.iter().any(|account| account.reowned)
    }

    /// Whether the vendor itself is not what it was: another name, tax number, parent, or order of
    /// its accounts.
    pub fn is_disputed(&self) -> bool {
        self.vendor.as_ref().is_some_and(|vendor| vendor.dispute.is_some())
    }

    /// Whether there is nothing to keep.
    pub fn is_unchanged(&self) -> bool {
        self.new_vendor.is_none()
            && self.disputed.is_none()
            && self.observed.is_empty()
            && self.observed_phones.is_empty()
    }
}

/// Compares a vendor as the ERP shows it with what is known of it.
///
/// INVARIANT: whatever differs in id, owner, number or activity starts anew at `now`, and nothing
/// found here makes an account older or turns `changed_in_erp` into something payable.
pub fn compare(known: &Known, vendor: &Vendor, now: Timestamp) -> Comparison {
    let mut found = Comparison::default();
    match &known.vendor {
        None => {
            let new = baseline_vendor(vendor, now, false);
            found.vendor = Some(new.clone());
            found.new_vendor = Some(new);
        }
        Some(before) => {
            found.disputed = disputed(before, &known.accounts, vendor, now);
            found.vendor = Some(found.disputed.clone().unwrap_or_else(|| before.clone()));
        }
    }
    compare_phones(known, vendor, now, &mut found);
    let mut seen = BTreeSet::new();
    for (place, account) in (0..).zip(&vendor.accounts) {
        seen.insert(account.id.as_str());
        let before = known.accounts.iter().find(|known| known.account == account.id.as_str());
        let kept = match before {
            None => appeared(known.vendor.is_some(), account, place, now),
            Some(before) => match difference(before, account) {
                None => {
                    found.accounts.push(before.clone());
                    continue;
                }
                Some(note) => BaselineAccount {
                    reowned: before.reowned || before.vendor != account.owner.as_str(),
                    ..observed(account, AccountStatus::ChangedInErp, place, Some(note), now)
                },
            },
        };
        found.observed.push(kept.clone());
        found.accounts.push(kept);
    }
    // An account that is gone is kept as inactive, so that bringing it back is a change too.
    for before in &known.accounts {
        let of_this_vendor = before.vendor == vendor.id.as_str();
        if of_this_vendor && before.active && !seen.contains(before.account.as_str()) {
            found.observed.push(BaselineAccount {
                active: false,
                since: now,
                status: AccountStatus::ChangedInErp,
                note: Some("the account is gone from the ERP".to_owned()),
                ..before.clone()
            });
        }
    }
    found
}

/// What is known of a vendor that the ERP shows as none any more. It is in dispute from now on: should
/// it come back, nobody knows what became of it meanwhile.
pub fn gone(known: &Known, now: Timestamp) -> Comparison {
    let before = known.vendor.as_ref();
    let is_said = |vendor: &BaselineVendor| {
        vendor.dispute.as_ref().is_some_and(|dispute| dispute.what == NO_VENDOR)
    };
    let disputed = before.filter(|vendor| !is_said(vendor)).map(|vendor| BaselineVendor {
        dispute: Some(Dispute { since: now, what: NO_VENDOR.to_owned() }),
        ..vendor.clone()
    });
    Comparison {
        vendor: disputed.clone().or_else(|| before.cloned()),
        disputed,
        accounts: known.accounts.clone(),
        phones: known.phones.clone(),
        ..Comparison::default()
    }
}

/// In which way a vendor is not what it was, beside its accounts; `None` where that is nothing new.
///
/// INVARIANT: a dispute ends only by an operation of ours. Renaming back ends none.
fn disputed(
    before: &BaselineVendor,
    accounts: &[BaselineAccount],
    vendor: &Vendor,
    now: Timestamp,
) -> Option<BaselineVendor> {
    let mut changes = Vec::new();
    if before.name != vendor.name {
        changes.push("name");
    }
    if before.tax_number != vendor.tax_number {
        changes.push("tax number");
    }
    let parent = vendor.parent.as_ref().map(ToString::to_string);
    if before.parent != parent {
        changes.push("the vendor it belongs to");
    }
    if reordered(accounts, vendor) {
        changes.push("order of accounts");
    }
    if changes.is_empty() {
        return None;
    }
    let what = format!("changed in the ERP: {}", changes.join(", "));
    let known = before.dispute.as_ref().is_some_and(|dispute| dispute.what == what);
    let dispute = Some(Dispute { since: now, what });
    (!known).then(|| BaselineVendor { dispute, ..before.clone() })
}

/// Whether the accounts that were active and still are stand in another order. The first one is what
/// the ERP proposes for new bills.
fn reordered(known: &[BaselineAccount], vendor: &Vendor) -> bool {
    let places: Vec<i64> = vendor
        .active_accounts()
        .filter_map(|account| {
            let before = known.iter().find(|known| known.account == account.id.as_str())?;
            (before.active && before.vendor == vendor.id.as_str()).then_some(before.place)
        })
        .collect();
    !places.is_sorted()
}

fn compare_phones(known: &Known, vendor: &Vendor, now: Timestamp, found: &mut Comparison) {
    for kind in [PhoneKind::Phone, PhoneKind::Mobile] {
        let code = kind_code(kind);
        let before = known.phones.iter().find(|phone| phone.kind == code);
        let in_erp = vendor.phones.iter().find(|phone| phone.kind == kind);
        let is_same = match (before, in_erp) {
            (None, None) => continue,
            (Some(before), None) => before.number.is_empty(),
            (None, Some(_)) => false,
            (Some(before), Some(phone)) => {
                let touched =
                    phone.since.is_some_and(|since| since > before.since.plus(CLOCKS_APART));
                phones::same(&before.number, &phone.raw) && !touched
            }
        };
        if let (true, Some(before)) = (is_same, before) {
            found.phones.push(before.clone());
            continue;
        }
        let kept = BaselinePhone {
            vendor: vendor.id.to_string(),
            kind: code,
            number: in_erp.map(|phone| phone.raw.clone()).unwrap_or_default(),
            ending: in_erp.map(|phone| phones::ending(&phone.raw)).unwrap_or_default(),
            since: now,
            adopted: false,
            confirmed_at: None,
        };
        found.observed_phones.push(kept.clone());
        found.phones.push(kept);
    }
}

/// Whether a number is one that a call-back may use: there at the first contact, confirmed by four
/// eyes, or unchanged for 90 days by our own clock.
pub fn is_trusted(phone: &BaselinePhone, now: Timestamp) -> bool {
    let old = now.since(phone.since) >= PHONE_UNTRUSTED_FOR;
    !phone.number.is_empty() && (phone.adopted || phone.confirmed_at.is_some() || old)
}

fn kind_code(kind: PhoneKind) -> &'static str {
    match kind {
        PhoneKind::Phone => PHONE,
        PhoneKind::Mobile => MOBILE,
    }
}

fn appeared(
    vendor_known: bool,
    account: &VendorAccount,
    place: i64,
    now: Timestamp,
) -> BaselineAccount {
    if vendor_known {
        let note = Some("the account appeared in the ERP after the first contact".to_owned());
        observed(account, AccountStatus::ChangedInErp, place, note, now)
    } else {
        observed(account, AccountStatus::Unverified, place, None, now)
    }
}

fn difference(before: &BaselineAccount, now: &VendorAccount) -> Option<String> {
    let mut changes = Vec::new();
    if before.vendor != now.owner.as_str() {
        changes.push("owner");
    }
    if before.number != now.number.whole() {
        changes.push("number");
    }
    if before.active != now.active {
        changes.push("activity");
    }
    // Edited and edited back between two looks: the record shows nothing but that it is younger.
    let known_until = before.erp_since.unwrap_or_else(|| before.since.plus(CLOCKS_APART));
    if changes.is_empty() && now.unchanged_since.is_some_and(|since| since > known_until) {
        changes.push("changed and changed back");
    }
    if changes.is_empty() {
        None
    } else {
        Some(format!("changed in the ERP: {}", changes.join(", ")))
    }
}

fn observed(
    account: &VendorAccount,
    status: AccountStatus,
    place: i64,
    note: Option<String>,
    now: Timestamp,
) -> BaselineAccount {
    BaselineAccount {
        account: account.id.to_string(),
        vendor: account.owner.to_string(),
        number: account.number.whole().to_owned(),
        active: account.active,
        since: now,
        status,
        reowned: false,
        note,
        place,
        erp_since: account.unchanged_since,
        operation: None,
    }
}

fn baseline_vendor(vendor: &Vendor, now: Timestamp, adopted: bool) -> BaselineVendor {
    BaselineVendor {
        vendor: vendor.id.to_string(),
        name: vendor.name.clone(),
        tax_number: vendor.tax_number.clone(),
        parent: vendor.parent.as_ref().map(ToString::to_string),
        first_seen: now,
        adopted,
        dispute: None,
    }
}

/// Adds a vendor to the first contact, with the age that the ERP can prove; or, for accounts that
/// show no change after their creation, that the operator attests.
pub fn adopt(into: &mut Adoption, vendor: &Vendor, attested: Option<Timestamp>, now: Timestamp) {
    into.vendors.push(baseline_vendor(vendor, now, true));
    for (place, account) in (0..).zip(&vendor.accounts) {
        let proved = account.unchanged_since.unwrap_or(now).min(now);
        let since = match attested {
            Some(attested) if !account.changed_after_creation => proved.min(attested),
            Some(_) | None => proved,
        };
        into.accounts.push(BaselineAccount {
            since,
            ..observed(account, AccountStatus::Adopted, place, None, now)
        });
    }
    for phone in &vendor.phones {
        into.phones.push(BaselinePhone {
            vendor: vendor.id.to_string(),
            kind: kind_code(phone.kind),
            number: phone.raw.clone(),
            ending: phones::ending(&phone.raw),
            since: phone.since.unwrap_or(now).min(now),
            adopted: true,
            confirmed_at: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::{AccountId, AccountNumber, CompanyId, VendorId};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-29T10:00:00Z").unwrap()
    }

    fn account(id: &str, owner: &str, number: &str, active: bool) -> VendorAccount {
        VendorAccount {
            id: AccountId::new(id).unwrap(),
            owner: VendorId::new(owner).unwrap(),
            number: AccountNumber::from_erp(number),
            holder: None,
            active,
            erp_allows: true,
            unchanged_since: Some(now().minus(DAY * 400)),
            changed_after_creation: false,
        }
    }

    fn vendor(accounts: Vec<VendorAccount>) -> Vendor {
        Vendor {
            company: CompanyId::new("c").unwrap(),
            id: VendorId::new("V").unwrap(),
            name: "ACME".to_owned(),
            tax_number: None,
            parent: None,
            accounts,
            phones: vec![],
        }
    }

    const ONE: &str = "FR7630006000011234567890189";
    const TWO: &str = "NL91ABNA0417164300";

    fn adopted(vendor: &Vendor, attested: Option<Timestamp>) -> Known {
        let mut adoption = Adoption::default();
        adopt(&mut adoption, vendor, attested, now());
        Known {
            adopted_at: Some(now()),
            vendor: adoption.vendors.pop(),
            accounts: adoption.accounts,
            phones: adoption.phones,
        }
    }

    #[track_caller]
    fn only_status(found: &Comparison, id: &str) -> AccountStatus {
        found.accounts.iter().find(|account| account.account == id).unwrap().status
    }

    #[test]
    fn an_unchanged_vendor_keeps_its_age() {
        let vendor = vendor(vec![account("1", "V", ONE, true)]);
        let found = compare(&adopted(&vendor, None), &vendor, now().plus(DAY));
        assert!(found.is_unchanged());
        assert_eq!(found.accounts[0].since, now().minus(DAY * 400));
    }

    #[test]
    fn every_change_starts_anew_and_is_not_payable() {
        let before = adopted(&vendor(vec![account("1", "V", ONE, true)]), None);
        for (what, changed) in [
            ("number", account("1", "V", TWO, true)),
            ("owner", account("1", "W", ONE, true)),
            ("activity", account("1", "V", ONE, false)),
            ("a new record", account("2", "V", ONE, true)),
        ] {
            let later = now().plus(DAY);
            let found = compare(&before, &vendor(vec![changed.clone()]), later);
            assert_eq!(
                only_status(&found, changed.id.as_str()),
                AccountStatus::ChangedInErp,
                "{what}"
            );
            assert!(found.observed.iter().all(|account| account.since == later), "{what}");
        }
    }

    #[test]
    fn editing_back_and_bringing_back_stay_changes() {
        let honest = vendor(vec![account("1", "V", ONE, true)]);
        let mut known = adopted(&honest, None);
        for between in [vendor(vec![account("1", "V", TWO, true)]), vendor(vec![])] {
            let changed = compare(&known, &between, now().plus(DAY));
            assert_eq!(changed.observed.len(), 1, "the change itself was not seen");
            known.accounts = changed.observed;
            let back = compare(&known, &honest, now().plus(DAY * 2));
            assert_eq!(only_status(&back, "1"), AccountStatus::ChangedInErp);
            assert_eq!(back.accounts[0].since, now().plus(DAY * 2));
        }
    }

    #[test]
    fn a_vendor_that_was_gone_is_said_once_and_not_what_it_was_when_it_comes_back() {
        let honest = vendor(vec![account("1", "V", ONE, true)]);
        let mut known = adopted(&honest, None);
        let missed = gone(&known, now().plus(DAY));
        assert!(missed.is_disputed() && !missed.is_unchanged());
        known.vendor = missed.vendor;
        assert!(gone(&known, now().plus(DAY)).is_unchanged(), "said before");
        let back = compare(&known, &honest, now().plus(DAY * 2));
        assert!(back.is_disputed());
        // Of one that nobody knows there is nothing to say.
        assert!(gone(&Known::default(), now()).is_unchanged());
    }

    #[test]
    fn a_vendor_first_seen_later_is_unverified_whatever_age_the_erp_claims() {
        let known = Known { adopted_at: Some(now()), ..Known::default() };
        let found = compare(&known, &vendor(vec![account("1", "V", ONE, true)]), now());
        assert!(found.new_vendor.is_some());
        assert_eq!(only_status(&found, "1"), AccountStatus::Unverified);
        assert_eq!(found.accounts[0].since, now());
    }

    #[test]
    fn an_account_known_under_another_owner_is_never_a_new_vendors() {
        let mut known = adopted(&vendor(vec![account("1", "V", ONE, true)]), None);
        known.vendor = None;
        let mut other = vendor(vec![account("1", "W", ONE, true)]);
        other.id = VendorId::new("W").unwrap();
        let found = compare(&known, &other, now().plus(DAY));
        assert_eq!(only_status(&found, "1"), AccountStatus::ChangedInErp);
        assert!(found.has_reowned());
        // It stays so, whatever happens to it afterwards.
        known.accounts = found.accounts;
        assert!(compare(&known, &other, now().plus(DAY)).has_reowned());
    }

    #[test]
    fn the_operators_word_covers_only_what_shows_no_change() {
        let attested = Some(now().minus(DAY * 1000));
        let honest = vendor(vec![account("1", "V", ONE, true)]);
        assert_eq!(adopted(&honest, attested).accounts[0].since, now().minus(DAY * 1000));
        let mut edited = account("1", "V", ONE, true);
        edited.changed_after_creation = true;
        edited.unchanged_since = Some(now().minus(DAY));
        let edited = vendor(vec![edited]);
        assert_eq!(adopted(&edited, attested).accounts[0].since, now().minus(DAY));
        let mut unproved = account("1", "V", ONE, true);
        unproved.unchanged_since = None;
        assert_eq!(adopted(&vendor(vec![unproved]), None).accounts[0].since, now());
    }
}
