//! What a connector finds beside bills.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};

use super::scene::{Store, open_bill, pay, read};
use super::{Edit, Fixture, NewDocument};
use crate::{Beside, BesideQuery, BillId, Document, Likeness, ReferenceKey, Traits, VendorId};

fn day(later: u64) -> NaiveDate {
    let first = NaiveDate::from_ymd_opt(2026, 10, 10).expect("a day");
    first.checked_add_days(Days::new(later)).expect("a day")
}

fn bill(reference: &str, total: &str, later: u64) -> NewDocument {
    NewDocument {
        credit_note: false,
        reference: Some(reference.to_owned()).filter(|reference| !reference.is_empty()),
        total: total.to_owned(),
        date: day(later),
    }
}

async fn seen(fixture: &dyn Fixture, bill: &BillId) -> Document {
    let reading = read(fixture, bill).await;
    Document { id: bill.clone(), traits: Traits::of(&reading.bill) }
}

async fn look(fixture: &dyn Fixture, query: &BesideQuery) -> Beside {
    let found = fixture.erp().look_beside(fixture.company(), query).await;
    let found = found.expect("an answer");
    assert!(found.documents.is_sorted_by(|one, other| one.id < other.id), "not ascending");
    found
}

fn alike(of: &Document, found: &Beside) -> BTreeMap<BillId, Likeness> {
    found
        .documents
        .iter()
        .filter(|document| document.id != of.id)
        .filter_map(|document| {
            of.traits.likeness(&document.traits).map(|how| (document.id.clone(), how))
        })
        .collect()
}

/// Documents of the vendor that resemble a bill are found, whatever people wrote and paid; those
/// that do not stand are not.
pub async fn what_resembles_a_bill_is_found(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let vendor = &open.vendor;
    let other = open_bill(fixture, "100.00").await.vendor;
    let enter =
        async |vendor: &VendorId, wanted: &NewDocument| fixture.document(vendor, wanted).await;
    let wanted = enter(vendor, &bill("RG-0042/7", "100.50", 10)).await;
    let mut expected = BTreeMap::new();
    for (reference, total, later) in [
        ("rg 42 7", "7.00", 300),
        ("RG00427", "100.50", 10),
        ("ＲＧ-４２/７", "7.00", 11),
        ("RG-0042-٧", "8.00", 12),
    ] {
        let entered = enter(vendor, &bill(reference, total, later)).await;
        expected.insert(entered, Likeness::SameReference);
    }
    for (reference, later) in [("RG-43", 5), ("", 15)] {
        let entered = enter(vendor, &bill(reference, "100.50", later)).await;
        expected.insert(entered, Likeness::Similar);
    }
    for (vendor, wanted) in [
        (vendor, bill("RG-44", "100.50", 4)),
        (vendor, bill("RG-45", "100.50", 16)),
        (vendor, bill("RG-46", "100.51", 10)),
        (vendor, bill("RG-0042/70", "7.00", 10)),
        (vendor, NewDocument { credit_note: true, ..bill("RG-0042/7", "100.50", 10) }),
        (&other, bill("RG-0042/7", "100.50", 10)),
    ] {
        enter(vendor, &wanted).await;
    }
    let withdrawn = enter(vendor, &bill("RG-0042/7", "100.50", 10)).await;
    fixture.edit(Edit::CancelBill(withdrawn)).await;
    let paid = enter(vendor, &bill("RG_0042/7", "3.00", 10)).await;
    fixture.edit(Edit::PayByHand(paid.clone(), "3.00".to_owned())).await;
    expected.insert(paid, Likeness::SameReference);

    let wanted = seen(fixture, &wanted).await;
    assert_eq!(wanted.traits.reference, ReferenceKey::of("RG-0042/7"));
    let query = BesideQuery { bills: vec![wanted.clone()], held: None };
    let found = look(fixture, &query).await;
    assert_eq!(alike(&wanted, &found), expected);
    assert!(found.cut.is_empty() && found.holders.is_empty());
    // From the other side.
    for (id, how) in expected {
        let one = seen(fixture, &id).await;
        let query = BesideQuery { bills: vec![one.clone()], held: None };
        assert_eq!(alike(&one, &look(fixture, &query).await).get(&wanted.id), Some(&how), "{id}");
    }
}

/// As many bills as a page holds are looked at in one query, and each finds its own.
pub async fn many_bills_are_looked_beside_at_once(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut pairs = Vec::new();
    for number in 0..3 {
        let mut pair = Vec::new();
        for spelling in [format!("M {number}-9"), format!("M{number}9")] {
            let total = format!("{}.00", 20 + pairs.len() * 2 + pair.len());
            let entered = fixture.document(&open.vendor, &bill(&spelling, &total, 0)).await;
            pair.push(seen(fixture, &entered).await);
        }
        pairs.push(pair);
    }
    let alone = seen(fixture, &open.bill).await;
    let mut bills: Vec<Document> = pairs.concat();
    bills.push(alone.clone());
    while bills.len() < BesideQuery::BILLS_MAX {
        bills.push(alone.clone());
    }
    let found = look(fixture, &BesideQuery { bills, held: None }).await;
    for pair in &pairs {
        let [one, other] = pair.as_slice() else { panic!("a pair") };
        let expected = BTreeMap::from([(other.id.clone(), Likeness::SameReference)]);
        assert_eq!(alike(one, &found), expected);
    }
    assert_eq!(alike(&alone, &found), BTreeMap::new());
    assert!(found.cut.is_empty() && found.with_credit.is_empty());
    let nothing = look(fixture, &BesideQuery::default()).await;
    assert_eq!(nothing, Beside::default());
}

/// A credit note that is not used up, and what was paid beyond a bill, are owed back; what was paid
/// in full or in part is not.
pub async fn what_a_vendor_owes_back_is_found(fixture: &dyn Fixture) {
    let owes = async |bill: &BillId| {
        let bill = seen(fixture, bill).await;
        let vendor = bill.traits.vendor.clone();
        let query = BesideQuery { bills: vec![bill], held: None };
        look(fixture, &query).await.with_credit.contains(&vendor)
    };
    let (noted, overpaid) = (open_bill(fixture, "50.00").await, open_bill(fixture, "50.00").await);
    let honest = open_bill(fixture, "50.00").await;
    for open in [&noted, &overpaid, &honest] {
        assert!(!owes(&open.bill).await, "a vendor of one open bill owes something");
    }
    let note = NewDocument { credit_note: true, ..bill("CN-1", "5.00", 0) };
    fixture.document(&noted.vendor, &note).await;
    fixture.edit(Edit::PayByHand(overpaid.bill.clone(), "50.10".to_owned())).await;
    fixture.edit(Edit::PayByHand(honest.bill.clone(), "20.00".to_owned())).await;
    assert!(owes(&noted.bill).await, "an open credit note was not found");
    assert!(owes(&overpaid.bill).await, "what was paid too much was not found");
    assert!(!owes(&honest.bill).await, "a part that was paid was taken for credit");
    let mut store = Store::new();
    let order = store.order(fixture, &honest, "30.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    assert!(!owes(&honest.bill).await, "a payment of ours was taken for credit");
}

/// Other vendors with the same number on an active account are found, and nobody else.
pub async fn other_vendors_with_the_same_number_are_found(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "50.00").await;
    let held = async |by: &VendorId| {
        let query = BesideQuery { bills: vec![], held: Some((open.iban.clone(), by.clone())) };
        Vec::from_iter(look(fixture, &query).await.holders)
    };
    assert_eq!(held(&open.vendor).await, []);
    let (other, account) = fixture.vendor_with(open.iban.electronic()).await;
    assert_eq!(held(&open.vendor).await, std::slice::from_ref(&other));
    assert_eq!(held(&other).await, std::slice::from_ref(&open.vendor));
    let (third, _) = fixture.vendor_with(open.iban.electronic()).await;
    let mut both = [other.clone(), third.clone()];
    both.sort();
    assert_eq!(held(&open.vendor).await, both);
    fixture.edit(Edit::ArchiveAccount(account)).await;
    assert_eq!(held(&open.vendor).await, [third]);
}
