//! What a change of bank details does, and that it does it once.

use std::time::Duration;

use super::scene::{
    OpenBill, Store, assert_not_changed, assert_refused, change, held, join_all, named, new_marker,
    open_bill, pay, standing, vendor,
};
use super::{Edit, Fixture, NewDocument};
use crate::{
    AccountNumber, BankChange, BillId, ChangeLookUp, Contradiction, Iban, OldAccount, OrderError,
    PaymentOrder, Refusal,
};

/// How many changes arrive at once.
const AT_ONCE: usize = 6;

pub(super) fn number(text: &str) -> AccountNumber {
    AccountNumber::from_erp(text)
}

fn contradicted(what: Contradiction) -> OrderError {
    OrderError::Contradicted(what)
}

/// The old account is archived with its number, the new one is there and payable; that is all.
pub async fn a_change_is_made_once_and_reads_back_equal(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let new = fixture.another_iban();
    let order = Store::new().change(fixture, &open, &new).await;
    let changed = change(fixture, &order).await.expect("the change is made");
    assert_eq!(changed.differences(&order), vec![]);
    let account = changed.account.expect("the new account");
    assert!(account.erp_allows, "the ERP does not allow paying to the new account");
    assert_eq!((account.owner, account.number), (open.vendor.clone(), number(&new)));
    assert_eq!(changed.bills, vec![open.bill.clone()]);

    let after = held(fixture, &open.vendor).await;
    let old = (AccountNumber::Iban(open.iban.clone()), false);
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(after.contains(&(number(&new), true, true)), "{after:?}");
    assert!(after.iter().any(|(number, active, _)| (number.clone(), *active) == old), "{after:?}");
    let read = vendor(fixture, &open.vendor).await;
    let kept = read.account(&open.account).expect("the old record is still there");
    assert_eq!((&kept.number, kept.active), (&AccountNumber::Iban(open.iban.clone()), false));
    let made = read.account(&account.id).expect("the new record");
    assert!(made.active && made.erp_allows, "the new account is not payable");
    assert_eq!(read.active_accounts().count(), 1);
    // What is new is as old as the change, and so is what is archived.
    for account in [kept, made] {
        let since = account.unchanged_since.unwrap_or(order.not_after);
        assert!(since >= order.not_after.minus(Duration::from_mins(6)), "an account is too old");
    }
}

/// The same order again, after its deadline and whatever became of the account, answers the change
/// that it made.
pub async fn the_same_change_again_answers_the_same(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().change(fixture, &open, &fixture.another_iban()).await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(3));
    let first = change(fixture, &order).await.expect("the change is made");
    let after = held(fixture, &open.vendor).await;
    assert_eq!(change(fixture, &order).await, Ok(first.clone()));
    fixture.wait_past(order.not_after).await;
    assert_eq!(change(fixture, &order).await, Ok(first.clone()), "after the deadline");
    assert_eq!(held(fixture, &open.vendor).await, after, "a change was made twice");

    let made = first.account.expect("the new account");
    fixture.edit(Edit::ArchiveAccount(made.id.clone())).await;
    let now = change(fixture, &order).await.expect("the same answer though it is archived");
    assert_eq!(now.bills, first.bills);
    let account = now.account.as_ref().expect("the archived account");
    assert_eq!((&account.id, account.active), (&made.id, false));
    let differences: Vec<_> = now.differences(&order).iter().map(|other| other.what).collect();
    assert_eq!(differences, ["state"]);
}

/// A marker that the ERP knows, with anything else in the order, is never a mere refusal.
pub async fn a_known_marker_with_any_other_field_of_a_change_is_a_contradiction(
    fixture: &dyn Fixture,
) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let order = store.change(fixture, &open, &fixture.another_iban()).await;
    change(fixture, &order).await.expect("the change is made");
    let truth = async || (held(fixture, &open.vendor).await, held(fixture, &other.vendor).await);
    let before = truth().await;
    for (field, changed) in with_one_other_field(fixture, &order, &other) {
        let answer = change(fixture, &changed).await;
        let expected = Err(contradicted(Contradiction::MarkerUsedOtherwise));
        assert_eq!(answer, expected, "the marker came again with another {field}");
        assert_eq!(truth().await, before, "another {field}");
    }
    // Nor is it one of a payment.
    let mut payment = store.order(fixture, &other, "100.00").await;
    payment.marker = order.marker;
    let answer = pay(fixture, &payment).await;
    assert_eq!(answer, Err(contradicted(Contradiction::MarkerUsedOtherwise)));
    assert_eq!(standing(fixture, &other.bill).await, [0_i64; 0]);
}

fn with_one_other_field(
    fixture: &dyn Fixture,
    order: &BankChange,
    other: &OpenBill,
) -> Vec<(&'static str, BankChange)> {
    let unused = Iban::parse(fixture.unused_iban()).expect("the unused IBAN is valid");
    let with = |edit: &dyn Fn(&mut BankChange)| {
        let mut changed = order.clone();
        edit(&mut changed);
        changed
    };
    let old = |account, number| Some(OldAccount { account, number });
    let was = order.old.clone().expect("the order names an old account");
    let ours = AccountNumber::Iban(unused.clone());
    vec![
        ("store", with(&|o| o.store.push('x'))),
        ("sequence number", with(&|o| o.seq = o.seq.saturating_add(1))),
        ("vendor", with(&|o| o.vendor = other.vendor.clone())),
        ("old account", with(&|o| o.old = old(other.account.clone(), was.number.clone()))),
        ("old number", with(&|o| o.old = old(was.account.clone(), ours.clone()))),
        ("old account at all", with(&|o| o.old = None)),
        ("new number", with(&|o| o.new_iban = unused.clone())),
        ("deadline", with(&|o| o.not_after = o.not_after.plus(Duration::from_mins(1)))),
    ]
}

/// There is one row of numbers: one that a change used serves no payment and no other change, and
/// one that a payment used serves no change.
pub async fn a_number_serves_one_payment_or_one_change(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let payment = store.order(fixture, &other, "40.00").await;
    pay(fixture, &payment).await.expect("the payment is booked");
    let order = store.change(fixture, &open, &fixture.another_iban()).await;
    change(fixture, &order).await.expect("the change is made");
    let attested = fixture.erp().attest(&store.name).await.expect("an attestation");
    assert_eq!((attested.newest_seq, attested.problems()), (order.seq, vec![]));

    let truth = async || (held(fixture, &open.vendor).await, held(fixture, &other.vendor).await);
    let before = truth().await;
    let behind = contradicted(Contradiction::StoreBehind);
    for used in [payment.seq, order.seq] {
        let mut again = store.change(fixture, &other, &fixture.another_iban()).await;
        again.seq = used;
        assert_eq!(change(fixture, &again).await, Err(behind.clone()), "number {used}");
        // That the store is behind matters more than what else is wrong with its order.
        again.not_after = fixture.erp_time().await.minus(Duration::from_secs(2));
        again.old = None;
        assert_eq!(change(fixture, &again).await, Err(behind.clone()), "number {used}, late");
    }
    let again = PaymentOrder { marker: new_marker(), seq: order.seq, ..payment.clone() };
    assert_eq!(pay(fixture, &again).await, Err(behind));
    assert_eq!(truth().await, before, "a used number changed something");
    assert_eq!(standing(fixture, &other.bill).await, [4_000]);

    // Numbers belong to a store: another one starts at its own.
    let elsewhere = Store::new().change(fixture, &other, &fixture.another_iban()).await;
    change(fixture, &elsewhere).await.expect("another store's number is its own");
}

/// A marker of a payment is no change's.
pub async fn a_marker_of_a_payment_changes_nothing(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let payment = store.order(fixture, &open, "40.00").await;
    pay(fixture, &payment).await.expect("the payment is booked");
    let mut order = store.change(fixture, &open, &fixture.another_iban()).await;
    order.marker = payment.marker;
    let before = held(fixture, &open.vendor).await;
    let answer = change(fixture, &order).await;
    assert_eq!(answer, Err(contradicted(Contradiction::MarkerUsedOtherwise)));
    assert_eq!(held(fixture, &open.vendor).await, before);
}

/// After its deadline by the ERP's clock, a change is not made any more; and one that would live
/// longer than any daemon waits for it is none of a daemon's.
pub async fn a_change_has_its_time(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().change(fixture, &open, &fixture.another_iban()).await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_mins(16));
    assert_not_changed(fixture, &order, &[Refusal::BadRequest]).await;
    order.not_after = fixture.erp_time().await.minus(Duration::from_secs(2));
    assert_not_changed(fixture, &order, &[Refusal::TooLate]).await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(1));
    fixture.wait_past(order.not_after).await;
    assert_not_changed(fixture, &order, &[Refusal::TooLate]).await;
}

/// Several copies of one order: one change, and every answer tells of it.
pub async fn concurrent_copies_of_a_change_change_once(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().change(fixture, &open, &fixture.another_iban()).await;
    let copies = (0..AT_ONCE).map(|_| change(fixture, &order)).collect();
    let answers = join_all(copies).await;
    for answer in &answers {
        let contradicted = matches!(answer, Err(OrderError::Contradicted(_)));
        assert!(!contradicted, "orders of one healthy store contradict it: {answer:?}");
    }
    let mut made: Vec<_> = answers.into_iter().flatten().collect();
    made.dedup();
    assert_eq!(made.len(), 1, "copies of one order tell of several changes: {made:?}");
    assert_eq!(held(fixture, &open.vendor).await.len(), 2);
}

/// Several changes of one vendor at once: one is made, and for the others the account that they
/// replace is not there any more.
pub async fn of_several_changes_at_once_one_is_made(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut orders = Vec::new();
    for _ in 0..AT_ONCE {
        orders.push(store.change(fixture, &open, &fixture.another_iban()).await);
    }
    let answers = join_all(orders.iter().map(|order| change(fixture, order)).collect()).await;
    let mut made = Vec::new();
    for (order, answer) in orders.iter().zip(answers) {
        match answer {
            Ok(changed) => {
                assert_eq!(changed.differences(order), vec![]);
                made.push(AccountNumber::Iban(order.new_iban.clone()));
            }
            // A lock that was not to be had is no contradiction.
            Err(OrderError::Contradicted(what)) => panic!("a healthy store contradicts: {what:?}"),
            Err(OrderError::Refused(reason)) => assert_eq!(reason, Refusal::AccountMismatch),
            Err(_) => {}
        }
    }
    assert_eq!(made.len(), 1, "not exactly one change was made: {made:?}");
    let after = held(fixture, &open.vendor).await;
    let active: Vec<_> = after.iter().filter(|(_, active, _)| *active).collect();
    assert_eq!((after.len(), active.len()), (2, 1), "{after:?}");
    assert_eq!(active.first().map(|(number, ..)| number), made.first());
}

/// A made change is found, before and after its deadline; that there is none is proved only after
/// the deadline, and then it holds.
pub async fn a_look_up_of_a_change_proves_what_it_says(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut order = store.change(fixture, &open, &fixture.another_iban()).await;
    let wanted = ChangeLookUp {
        company: open.company.clone(),
        vendor: open.vendor.clone(),
        marker: order.marker.clone(),
    };
    let look_up = async || fixture.erp().look_up_change(&wanted).await.expect("an answer");
    let early = look_up().await;
    assert_eq!(early.booked, None);
    assert!(!early.proves_absence(order.not_after), "absence was proved before the deadline");
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(1));
    fixture.wait_past(order.not_after).await;
    let late = look_up().await;
    assert!(late.proves_absence(order.not_after), "absence was not proved: {late:?}");
    assert!(late.erp_time >= early.erp_time, "the ERP's clock went back");
    assert_not_changed(fixture, &order, &[Refusal::TooLate]).await;

    let mut order = store.change(fixture, &open, &fixture.another_iban()).await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(3));
    let changed = change(fixture, &order).await.expect("the change is made");
    let wanted = ChangeLookUp { marker: order.marker.clone(), ..wanted };
    let found = fixture.erp().look_up_change(&wanted).await.expect("an answer");
    assert_eq!(found.booked, Some(changed.clone()));
    fixture.wait_past(order.not_after).await;
    let found = fixture.erp().look_up_change(&wanted).await.expect("an answer");
    assert_eq!(found.booked, Some(changed));
    // Under another vendor's lock it must not be called absent.
    let other = open_bill(fixture, "100.00").await;
    let elsewhere = ChangeLookUp { vendor: other.vendor, ..wanted };
    if let Ok(answer) = fixture.erp().look_up_change(&elsewhere).await {
        assert!(!answer.proves_absence(order.not_after), "a made change was proved absent");
    }
}

/// The vendor's open bills name the new account; a paid one and another vendor's stay as they are.
pub async fn open_bills_are_pointed_to_the_new_account(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let today = fixture.erp_time().await.to_utc().date_naive();
    let mut bills = Vec::new();
    for (reference, total) in [("P-1", "10.00"), ("P-2", "20.00")] {
        let wanted = NewDocument {
            credit_note: false,
            reference: Some(reference.to_owned()),
            total: total.to_owned(),
            date: today,
        };
        bills.push(fixture.document(&open.vendor, &wanted).await);
    }
    let mut store = Store::new();
    let payment = store.order(fixture, &open, "100.00").await;
    pay(fixture, &payment).await.expect("the first bill is paid");
    let new = fixture.another_iban();
    let order = store.change(fixture, &open, &new).await;
    let changed = change(fixture, &order).await.expect("the change is made");

    let pointed = |of: &[BillId]| {
        let mut of = of.to_vec();
        of.sort();
        of
    };
    assert_eq!(pointed(&changed.bills), pointed(&bills));
    for bill in &bills {
        assert_eq!(named(fixture, bill).await, Some(number(&new)), "an open bill was forgotten");
    }
    let old = Some(AccountNumber::Iban(open.iban.clone()));
    assert_eq!(named(fixture, &open.bill).await, old, "a paid bill was edited");
    let others = Some(AccountNumber::Iban(other.iban.clone()));
    assert_eq!(named(fixture, &other.bill).await, others, "another vendor's bill was edited");
}

/// After the change nothing is paid to the old account, and what is owed can be paid to the new one.
pub async fn after_a_change_only_the_new_account_is_paid(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let before = store.order(fixture, &open, "100.00").await;
    let order = store.change(fixture, &open, &fixture.another_iban()).await;
    let changed = change(fixture, &order).await.expect("the change is made");
    assert_refused(fixture, &before, &[Refusal::AccountMismatch]).await;
    let mut after = store.order(fixture, &open, "100.00").await;
    after.account = changed.account.expect("the new account").id;
    after.iban = order.new_iban;
    let booked = pay(fixture, &after).await.expect("the payment is booked");
    assert_eq!(booked.differences(&after), vec![]);
    assert_eq!(standing(fixture, &open.bill).await, [10_000]);
}
