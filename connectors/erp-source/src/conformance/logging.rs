//! What the ERP's own log tells, and what became of payments that were booked.

use super::changing::number;
use super::scene::{
    OpenBill, Store, assert_not_changed, change, euros, held, new_marker, open_bill, pay, read,
    vendor,
};
use super::{Edit, Fixture};
use crate::{
    AccountId, AccountNumber, BillId, BookedState, ChangeLookUp, CompanyId, LoggedChange,
    LoggedField, Marker, PhoneKind, ReadError, Refusal, Review, Reviewed, VendorId,
};

/// The most that one page of the log may hold.
const PAGE_MAX: u16 = 200;

/// An entry by what it says: which account, what, before and after.
type Said = (Option<AccountId>, LoggedField, Option<String>, Option<String>);

/// The log from that number on, in pages of that length.
async fn log_after(fixture: &dyn Fixture, after: u64, limit: u16) -> Vec<LoggedChange> {
    let mut all: Vec<LoggedChange> = Vec::new();
    loop {
        let after = all.last().map_or(after, |last| last.id);
        let page = fixture.erp().list_changes(fixture.company(), after, limit).await;
        let page = page.expect("a page of the log");
        assert!(page.len() <= usize::from(limit), "a page is longer than asked");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
        assert!(all.is_sorted_by(|one, other| one.id < other.id), "the log is not ascending");
    }
}

/// The number of the newest entry.
async fn log_end(fixture: &dyn Fixture) -> u64 {
    log_after(fixture, 0, PAGE_MAX).await.last().map_or(0, |last| last.id)
}

/// What the log tells of that vendor from that number on. Others may be edited meanwhile.
async fn told(fixture: &dyn Fixture, after: u64, vendor: &VendorId) -> Vec<LoggedChange> {
    let all = log_after(fixture, after, PAGE_MAX).await;
    all.into_iter().filter(|entry| entry.vendor == *vendor).collect()
}

/// Numbers as they are compared; an ERP may keep the spaces that somebody typed.
fn said(entry: &LoggedChange) -> Said {
    let is_number =
        matches!(entry.field, LoggedField::Number | LoggedField::Added | LoggedField::Removed);
    let text = |value: &Option<String>| {
        let plain = |text: &String| AccountNumber::from_erp(text).whole().to_owned();
        if is_number { value.as_ref().map(plain) } else { value.clone() }
    };
    (entry.account.clone(), entry.field, text(&entry.before), text(&entry.after))
}

/// An entry that says just that.
fn entry(
    account: Option<&AccountId>,
    field: LoggedField,
    before: Option<&str>,
    after: Option<&str>,
) -> Said {
    (account.cloned(), field, before.map(str::to_owned), after.map(str::to_owned))
}

async fn account_with(fixture: &dyn Fixture, of: &VendorId, iban: &str) -> AccountId {
    let read = vendor(fixture, of).await;
    let found = read.accounts.into_iter().find(|account| account.number == number(iban));
    found.expect("the account is there").id
}

/// Whatever somebody does to a vendor or its accounts is told, in its order, with before and after;
/// what is taken back too.
pub async fn every_edit_is_in_the_log(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let was = vendor(fixture, &open.vendor).await;
    let phone = was.phones.iter().find(|phone| phone.kind == PhoneKind::Phone);
    let phone = phone.map(|phone| phone.raw.clone());
    let (first, second) = (open.iban.electronic().to_owned(), fixture.another_iban());
    let added = fixture.another_iban();
    let (id, account) = (open.vendor.clone(), open.account.clone());
    let start = log_end(fixture).await;
    let begun = fixture.erp_time().await;
    for edit in [
        Edit::Rename(id.clone(), "Grey Finch Ltd".to_owned()),
        Edit::ChangePhone(id.clone(), "+33155667788".to_owned()),
        Edit::ChangeNumber(account.clone(), second.clone()),
        Edit::ChangeNumber(account.clone(), first.clone()),
        Edit::ArchiveAccount(account.clone()),
        Edit::AddAccount(id.clone(), added.clone()),
    ] {
        fixture.edit(edit).await;
    }
    let new = account_with(fixture, &open.vendor, &added).await;
    fixture.edit(Edit::Distrust(new.clone())).await;
    fixture.edit(Edit::RemoveAccount(new.clone())).await;

    let log = told(fixture, start, &open.vendor).await;
    assert!(log.iter().all(|entry| !entry.ordered), "an edit of somebody's is called ours");
    let ended = fixture.erp_time().await;
    for entry in &log {
        let in_time = (begun.as_secs()..=ended.as_secs()).contains(&entry.at.as_secs());
        assert!(in_time, "{entry:?} happened at another time");
    }
    // An ERP may take its permission away where a number changes.
    let (trust, log): (Vec<_>, Vec<_>) =
        log.iter().map(said).partition(|(_, field, ..)| *field == LoggedField::Trust);
    let (active, archived) = (Some(LoggedField::ACTIVE), Some(LoggedField::ARCHIVED));
    let (account, new) = (Some(&account), Some(&new));
    let (first, second, added) = (first.as_str(), second.as_str(), added.as_str());
    let expected = [
        entry(None, LoggedField::Name, Some(&was.name), Some("Grey Finch Ltd")),
        entry(None, LoggedField::Phone, phone.as_deref(), Some("+33155667788")),
        entry(account, LoggedField::Number, Some(first), Some(second)),
        entry(account, LoggedField::Number, Some(second), Some(first)),
        entry(account, LoggedField::Activity, active, archived),
        entry(new, LoggedField::Added, None, Some(added)),
        entry(new, LoggedField::Removed, Some(added), None),
    ];
    assert_eq!(log, expected);
    let (allowed, barred) = (Some(LoggedField::ALLOWED), Some(LoggedField::BARRED));
    let distrusted = entry(new, LoggedField::Trust, allowed, barred);
    assert!(trust.contains(&distrusted), "{trust:?}");
}

/// An account that becomes another vendor's is told at the vendor that had it.
pub async fn an_account_given_away_is_in_the_log(fixture: &dyn Fixture) {
    let (open, other) = (open_bill(fixture, "100.00").await, open_bill(fixture, "100.00").await);
    let added = fixture.another_iban();
    fixture.edit(Edit::AddAccount(open.vendor.clone(), added.clone())).await;
    let given = account_with(fixture, &open.vendor, &added).await;
    let start = log_end(fixture).await;
    fixture.edit(Edit::GiveAccount(given.clone(), other.vendor.clone())).await;
    let has = |accounts: Vec<(AccountNumber, bool, bool)>| {
        accounts.iter().any(|(held, ..)| *held == number(&added))
    };
    assert!(!has(held(fixture, &open.vendor).await) && has(held(fixture, &other.vendor).await));
    let log = told(fixture, start, &open.vendor).await;
    assert!(log.iter().map(said).any(|one| one == owner(&given, &open, &other)), "{log:?}");
    let read = vendor(fixture, &other.vendor).await;
    assert_eq!(read.account(&given).map(|account| &account.owner), Some(&other.vendor));
}

fn owner(account: &AccountId, from: &OpenBill, to: &OpenBill) -> Said {
    let (from, to) = (from.vendor.as_str(), to.vendor.as_str());
    entry(Some(account), LoggedField::Owner, Some(from), Some(to))
}

/// A merge gives accounts and bills away, whatever it leaves of the vendor; the log tells both.
pub async fn a_merge_is_in_the_log(fixture: &dyn Fixture) {
    let (open, other) = (open_bill(fixture, "100.00").await, open_bill(fixture, "100.00").await);
    let start = log_end(fixture).await;
    fixture.edit(Edit::Merge(open.vendor.clone(), other.vendor.clone())).await;
    let after = held(fixture, &other.vendor).await;
    for iban in [&open.iban, &other.iban] {
        let there = after.iter().any(|(held, ..)| held.iban() == Some(iban));
        assert!(there, "an account was lost in a merge: {after:?}");
    }
    assert_eq!(read(fixture, &open.bill).await.bill.consistent_vendor(), Ok(&other.vendor));
    let log: Vec<_> = told(fixture, start, &open.vendor).await.iter().map(said).collect();
    assert!(log.contains(&owner(&open.account, &open, &other)), "{log:?}");
    let merged = log.iter().find(|(_, field, ..)| *field == LoggedField::Vendor);
    let (account, _, before, after) = merged.expect("the log tells that the vendor was merged");
    assert_eq!((account.as_ref(), before.as_deref()), (None, Some(open.vendor.as_str())));
    let into = after.as_deref().unwrap_or(other.vendor.as_str());
    assert_eq!(into, other.vendor.as_str(), "merged into somebody else");
}

/// What a sealed order did is told as ours, and nothing else is; a refused one did nothing.
pub async fn only_what_an_order_did_is_logged_as_ordered(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let start = log_end(fixture).await;
    let own = store.change(fixture, &open, open.source.iban.electronic()).await;
    assert_not_changed(fixture, &own, &[Refusal::AccountIsOwn]).await;
    assert_eq!(told(fixture, start, &open.vendor).await, vec![], "a refused change is logged");

    let new = fixture.another_iban();
    let order = store.change(fixture, &open, &new).await;
    let changed = change(fixture, &order).await.expect("the change is made");
    let made = changed.account.expect("the new account").id;
    let ours = told(fixture, start, &open.vendor).await;
    assert!(ours.iter().all(|entry| entry.ordered), "{ours:?}");
    let ours: Vec<_> = ours.iter().map(said).collect();
    let (active, archived) = (Some(LoggedField::ACTIVE), Some(LoggedField::ARCHIVED));
    let old = entry(Some(&open.account), LoggedField::Activity, active, archived);
    let added = entry(Some(&made), LoggedField::Added, None, Some(new.as_str()));
    assert!(ours.contains(&old) && ours.contains(&added), "{ours:?}");

    let start = log_end(fixture).await;
    change(fixture, &order).await.expect("the same answer");
    assert_eq!(told(fixture, start, &open.vendor).await, vec![], "one change is logged twice");
    fixture.edit(Edit::ArchiveAccount(made)).await;
    let theirs = told(fixture, start, &open.vendor).await;
    assert!(!theirs.is_empty() && theirs.iter().all(|entry| !entry.ordered), "{theirs:?}");
}

/// Pages of the log follow each other without gap or repetition, and tell of one company only.
pub async fn the_log_is_read_in_pages(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let start = log_end(fixture).await;
    for name in ["One Ltd", "Two Ltd", "Three Ltd"] {
        fixture.edit(Edit::Rename(open.vendor.clone(), name.to_owned())).await;
    }
    let of_vendor = |log: Vec<LoggedChange>| -> Vec<_> {
        log.into_iter().filter(|entry| entry.vendor == open.vendor).collect()
    };
    let whole = of_vendor(log_after(fixture, start, PAGE_MAX).await);
    assert_eq!(whole.len(), 3, "{whole:?}");
    assert_eq!(of_vendor(log_after(fixture, start, 1).await), whole, "in pages of one");
    let last = whole.last().map_or(0, |last| last.id);
    assert_eq!(of_vendor(log_after(fixture, last, PAGE_MAX).await), vec![], "after the last");
    let (elsewhere, _) = fixture.foreign_bill().await;
    let there = fixture.erp().list_changes(&elsewhere, start, PAGE_MAX).await;
    let there = there.expect("a page of the other company's log");
    assert_eq!(of_vendor(there), vec![], "another company's log tells of our vendor");
}

async fn reviewed(fixture: &dyn Fixture, orders: Vec<(Marker, BillId)>) -> Vec<Reviewed> {
    let wanted = Review { company: fixture.company().clone(), orders };
    fixture.erp().review(&wanted).await.expect("a review")
}

/// A review tells of payments that stand, that somebody undid, and of what nobody booked.
pub async fn a_review_finds_a_payment_that_was_undone(fixture: &dyn Fixture) {
    let (kept, undone) = (open_bill(fixture, "100.00").await, open_bill(fixture, "50.00").await);
    let mut store = Store::new();
    let mut orders = Vec::new();
    let mut booked = Vec::new();
    for (open, amount) in [(&kept, "100.00"), (&undone, "50.00")] {
        let order = store.order(fixture, open, amount).await;
        booked.push(pay(fixture, &order).await.expect("the payment is booked"));
        orders.push((order.marker, order.bill));
    }
    orders.push((new_marker(), kept.bill.clone()));
    orders.push((new_marker(), fixture.unused_ids().0));
    let as_asked: Vec<_> = orders.iter().map(|(marker, _)| marker.clone()).collect();
    let found = reviewed(fixture, orders.clone()).await;
    let markers: Vec<_> = found.iter().map(|one| one.marker.clone()).collect();
    assert!(markers == as_asked, "a review answers other orders, or in another order");
    let expected: Vec<_> = booked.into_iter().map(Some).chain([None, None]).collect();
    let answers = |found: Vec<Reviewed>| -> Vec<_> {
        found.into_iter().map(|one| (one.booked, one.overpaid_minor)).collect()
    };
    let expected: Vec<_> = expected.into_iter().map(|one| (one, 0)).collect();
    assert_eq!(answers(found), expected);

    fixture.edit(Edit::UndoPayment(undone.bill.clone())).await;
    let now = answers(reviewed(fixture, orders).await);
    assert_eq!(now.first(), expected.first(), "a payment that stands reads otherwise");
    let (Some((Some(gone), over)), Some((Some(then), _))) = (now.get(1), expected.get(1)) else {
        panic!("an undone payment's order is not known any more: {now:?}");
    };
    assert_eq!((&gone.payment, *over), (&then.payment, 0));
    assert_ne!(gone.state, BookedState::Posted, "an undone payment reads as posted");
    assert_eq!(gone.residual, euros("50.00"), "the bill is not open again");
    assert_eq!(reviewed(fixture, Vec::new()).await, vec![]);
}

/// Whatever stands for a bill beyond its total is told, whoever booked it.
pub async fn a_review_finds_an_overpaid_bill(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "40.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    let wanted = vec![(order.marker, open.bill.clone())];
    let over = async || {
        let found = reviewed(fixture, wanted.clone()).await;
        found.first().map(|one| one.overpaid_minor)
    };
    assert_eq!(over().await, Some(0), "a bill that is paid in part is overpaid");
    fixture.edit(Edit::PayByHand(open.bill.clone(), "70.00".to_owned())).await;
    assert_eq!(over().await, Some(1_000));
}

/// A company that is not configured gives no answer, not an empty one.
pub async fn changes_of_an_unknown_company_are_no_answer(fixture: &dyn Fixture) {
    let nobody = CompanyId::new("no-such-company-9f3a").expect("an id");
    let unknown = ReadError::UnknownCompany(nobody.clone());
    let erp = fixture.erp();
    assert_eq!(erp.list_changes(&nobody, 0, 1).await, Err(unknown.clone()));
    let wanted = Review { company: nobody.clone(), orders: Vec::new() };
    assert_eq!(erp.review(&wanted).await, Err(unknown.clone()));
    let vendor = fixture.unused_ids().1;
    let wanted = ChangeLookUp { company: nobody, vendor, marker: new_marker() };
    assert_eq!(erp.look_up_change(&wanted).await, Err(unknown));
}
