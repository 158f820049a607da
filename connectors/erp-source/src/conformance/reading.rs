//! What a connector reads.

use std::collections::BTreeSet;

use super::Fixture;
use super::scene::{Store, eur, euros, open_bill, pay, read};
use crate::{BesideQuery, BillId, BillKind, BillQuery, BillState, CompanyId, ReadError, VendorId};

/// The most that one page of a list may hold.
const PAGE_MAX: u16 = 200;

/// A document of another company is as absent as one that does not exist, and there under its own.
pub async fn a_bill_of_another_company_is_none(fixture: &dyn Fixture) {
    let (other, bill) = fixture.foreign_bill().await;
    let there = fixture.erp().find_bill(&other, &bill).await.expect("its own company reads it");
    assert!(there.is_some(), "the bill is not there under its own company");
    let here = fixture.erp().find_bill(fixture.company(), &bill).await.expect("an answer");
    assert_eq!(here, None, "a bill of another company was shown");
    if let Some(vendor) = there.and_then(|reading| reading.vendor) {
        let mine = fixture.erp().find_vendor(fixture.company(), &vendor.id).await;
        assert_eq!(mine, Ok(None), "a vendor of another company was shown");
    }
}

/// What does not exist is `None`, not an error.
pub async fn a_missing_record_is_none(fixture: &dyn Fixture) {
    let (bill, vendor) = fixture.unused_ids();
    assert_eq!(fixture.erp().find_bill(fixture.company(), &bill).await, Ok(None));
    assert_eq!(fixture.erp().find_vendor(fixture.company(), &vendor).await, Ok(None));
}

/// A company that is not configured gives no answer, not an empty one.
pub async fn an_unknown_company_is_no_answer(fixture: &dyn Fixture) {
    let nobody = CompanyId::new("no-such-company-9f3a").expect("an id");
    assert!(!fixture.erp().companies().contains(&nobody));
    let (bill, vendor) = fixture.unused_ids();
    let unknown = ReadError::UnknownCompany(nobody.clone());
    let erp = fixture.erp();
    assert_eq!(erp.find_bill(&nobody, &bill).await, Err(unknown.clone()));
    assert_eq!(erp.find_vendor(&nobody, &vendor).await, Err(unknown.clone()));
    assert_eq!(erp.list_vendors(&nobody, None, 1).await, Err(unknown.clone()));
    let query = BillQuery { limit: 1, ..BillQuery::default() };
    assert_eq!(erp.list_bills(&nobody, &query).await, Err(unknown.clone()));
    assert_eq!(erp.look_beside(&nobody, &BesideQuery::default()).await, Err(unknown.clone()));
    assert_eq!(erp.source_accounts(&nobody).await, Err(unknown));
}

/// A new open bill reads as what it is, and so do its vendor and the vendor's account.
pub async fn a_reading_has_the_figures_of_the_bill(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "120.50").await;
    let reading = read(fixture, &open.bill).await;
    let bill = &reading.bill;
    assert_eq!((bill.company.clone(), bill.id.clone()), (open.company.clone(), open.bill.clone()));
    assert_eq!((bill.kind, bill.state), (BillKind::Bill, BillState::Posted));
    assert_eq!((bill.header.total, bill.header.residual), (euros("120.50"), euros("120.50")));
    assert_eq!((bill.payable.total, bill.payable.residual), (euros("120.50"), euros("120.50")));
    assert_eq!(bill.consistent_vendor(), Ok(&open.vendor));
    assert!(bill.is_open(), "a new open bill is not open");
    assert_eq!(reading.company_currency, eur());

    let vendor = reading.vendor.as_ref().expect("the vendor");
    assert_eq!((&vendor.id, &vendor.company), (&open.vendor, &open.company));
    let account = vendor.account(&open.account).expect("the account");
    assert_eq!(account.owner, open.vendor);
    assert!(account.active && account.erp_allows, "the vendor's account is not payable");
    assert_eq!(vendor.active_accounts().count(), 1);
    let found = fixture.erp().find_vendor(&open.company, &open.vendor).await.expect("an answer");
    assert_eq!(found.as_ref(), Some(vendor), "bill and vendor tell different things");

    assert!(fixture.erp().companies().contains(&open.company));
    assert!(reading.own_accounts.contains(&open.source.iban), "own accounts are incomplete");
    assert!(!reading.own_accounts.contains(&open.iban));
}

/// Pages of bills follow each other without gap or repetition, and the filters hold.
pub async fn bills_are_listed_ascending_without_gaps(fixture: &dyn Fixture) {
    let mut ours = Vec::new();
    for total in ["11.00", "12.00", "13.00", "14.00", "15.00"] {
        ours.push(open_bill(fixture, total).await);
    }
    let all = bills_after(fixture, None, PAGE_MAX).await;
    let once: BTreeSet<_> = all.iter().collect();
    assert_eq!(once.len(), all.len(), "a bill was listed twice");
    for open in &ours {
        assert!(all.contains(&open.bill), "bill {} is missing from the list", open.bill);
    }
    // Others may add bills meanwhile; those that were there must come again, in the same order.
    let first = all.iter().position(|id| ours.iter().any(|open| open.bill == *id));
    let before = first.and_then(|at| at.checked_sub(1)).and_then(|at| all.get(at));
    let expected: Vec<_> = all.iter().skip(first.unwrap_or(0)).collect();
    let small = bills_after(fixture, before, 2).await;
    let again: Vec<_> = small.iter().filter(|id| once.contains(id)).collect();
    assert_eq!(again, expected, "small pages list other bills than large ones");

    let paid = ours.first().expect("five bills");
    let order = Store::new().order(fixture, paid, "11.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    let mut query =
        BillQuery { vendor: Some(paid.vendor.clone()), limit: PAGE_MAX, ..BillQuery::default() };
    let of_vendor = fixture.erp().list_bills(fixture.company(), &query).await.expect("a list");
    let ids: Vec<_> = of_vendor.iter().map(|reading| &reading.bill.id).collect();
    assert_eq!(ids, [&paid.bill], "the vendor's bills are not exactly its one");
    query.open_only = true;
    let open = fixture.erp().list_bills(fixture.company(), &query).await.expect("a list");
    assert_eq!(open, vec![], "a paid bill is listed as open");
}

/// Pages of vendors follow each other without gap or repetition.
pub async fn vendors_are_listed_ascending_without_gaps(fixture: &dyn Fixture) {
    let mut ours = Vec::new();
    for _ in 0..5 {
        ours.push(open_bill(fixture, "11.00").await.vendor);
    }
    let all = vendors_after(fixture, None, PAGE_MAX).await;
    let once: BTreeSet<_> = all.iter().collect();
    assert_eq!(once.len(), all.len(), "a vendor was listed twice");
    for vendor in &ours {
        assert!(all.contains(vendor), "vendor {vendor} is missing from the list");
    }
    let first = all.iter().position(|id| ours.contains(id));
    let before = first.and_then(|at| at.checked_sub(1)).and_then(|at| all.get(at));
    let expected: Vec<_> = all.iter().skip(first.unwrap_or(0)).collect();
    let small = vendors_after(fixture, before, 2).await;
    let again: Vec<_> = small.iter().filter(|id| once.contains(id)).collect();
    assert_eq!(again, expected, "small pages list other vendors than large ones");
}

/// A guard that nobody touched has nothing to complain about, and knows this store's newest number.
pub async fn a_new_guard_attests_clean(fixture: &dyn Fixture) {
    let mut store = Store::new();
    let before = fixture.erp_time().await;
    let attested = fixture.erp().attest(&store.name).await.expect("an attestation");
    assert_eq!(attested.problems(), Vec::<String>::new());
    assert_eq!(attested.newest_seq, 0, "a new store has orders");
    // A connector may round the ERP's clock to seconds.
    assert!(attested.erp_time.as_secs() >= before.as_secs(), "the ERP's clock went back");

    let open = open_bill(fixture, "10.00").await;
    let order = store.order(fixture, &open, "10.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    let attested = fixture.erp().attest(&store.name).await.expect("an attestation");
    assert_eq!((attested.newest_seq, attested.problems()), (order.seq, vec![]));
}

async fn bills_after(fixture: &dyn Fixture, after: Option<&BillId>, limit: u16) -> Vec<BillId> {
    let mut ids: Vec<BillId> = Vec::new();
    loop {
        let after = ids.last().or(after).cloned();
        let query = BillQuery { after, limit, ..BillQuery::default() };
        let page = fixture.erp().list_bills(fixture.company(), &query).await.expect("a page");
        assert!(page.len() <= usize::from(limit), "a page is longer than asked");
        if page.is_empty() {
            return ids;
        }
        ids.extend(page.into_iter().map(|reading| reading.bill.id));
    }
}

async fn vendors_after(
    fixture: &dyn Fixture,
    after: Option<&VendorId>,
    limit: u16,
) -> Vec<VendorId> {
    let mut ids: Vec<VendorId> = Vec::new();
    loop {
        let after = ids.last().or(after).cloned();
        let page = fixture.erp().list_vendors(fixture.company(), after.as_ref(), limit).await;
        let page = page.expect("a page");
        assert!(page.len() <= usize::from(limit), "a page is longer than asked");
        if page.is_empty() {
            return ids;
        }
        ids.extend(page.into_iter().map(|vendor| vendor.id));
    }
}
