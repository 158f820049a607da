//! What an order books, and that it books it once.

use std::time::Duration;

use super::scene::{
    OpenBill, Store, assert_refused, euros, new_marker, open_bill, pay, read, standing,
};
use super::{Edit, Fixture};
use crate::{
    Amount, BookedState, Contradiction, Currency, Iban, JournalId, OrderError, PaymentOrder,
    Refusal,
};

/// A payment is booked, once, as ordered; the bill is settled.
pub async fn a_payment_books_once_and_reads_back_equal(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "1200.00").await;
    let order = Store::new().order(fixture, &open, "1200.00").await;
    let booked = pay(fixture, &order).await.expect("the payment is booked");
    assert_eq!(booked.differences(&order), vec![]);
    assert_eq!(booked.residual, euros("0.00"));
    assert_eq!(booked.state, BookedState::Posted);
    assert_eq!(standing(fixture, &open.bill).await, [120_000]);
    let after = read(fixture, &open.bill).await.bill;
    assert_eq!((after.header.residual, after.payable.residual), (euros("0.00"), euros("0.00")));
    assert_eq!(after.header.total, euros("1200.00"));
    assert!(!after.is_open(), "a paid bill is open");
}

/// A part leaves the rest open, and the rest can follow; then nothing can.
pub async fn a_part_is_booked_and_the_rest_stays(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let part = store.order(fixture, &open, "30.00").await;
    let booked = pay(fixture, &part).await.expect("the part is booked");
    assert_eq!((booked.differences(&part), booked.residual), (vec![], euros("70.00")));
    let after = read(fixture, &open.bill).await.bill;
    assert_eq!((after.header.total, after.header.residual), (euros("100.00"), euros("70.00")));
    assert!(after.is_open(), "a bill that is paid in part is not open");

    let too_much = store.order(fixture, &open, "70.01").await;
    assert_refused(fixture, &too_much, &[Refusal::AmountExceedsResidual]).await;
    let rest = store.order(fixture, &open, "70.00").await;
    pay(fixture, &rest).await.expect("the rest is booked");
    assert_eq!(standing(fixture, &open.bill).await, [3_000, 7_000]);
    let more = store.order(fixture, &open, "0.01").await;
    assert_refused(fixture, &more, &[Refusal::AmountExceedsResidual]).await;
}

/// The same order again, after its deadline and whatever became of the account, answers the booking
/// it made.
pub async fn the_same_order_again_answers_the_same_booking(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "40.00").await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(3));
    let first = pay(fixture, &order).await.expect("the payment is booked");
    let second = pay(fixture, &order).await.expect("the same answer");
    assert_eq!(second, first);
    fixture.wait_past(order.not_after).await;
    let late = pay(fixture, &order).await.expect("the same answer after the deadline");
    assert_eq!(late, first);
    fixture.edit(Edit::ArchiveAccount(open.account.clone())).await;
    let archived = pay(fixture, &order).await.expect("the same answer though the account is gone");
    assert_eq!((archived.payment, archived.amount), (first.payment, first.amount));
    assert_eq!(standing(fixture, &open.bill).await, [4_000]);
}

/// A marker that the ERP knows, with anything else in the order, is never a mere refusal.
pub async fn a_known_marker_with_any_other_field_is_a_contradiction(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "40.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    for (field, changed) in with_one_other_field(fixture, &order, &other) {
        let answer = pay(fixture, &changed).await;
        let expected = OrderError::Contradicted(Contradiction::MarkerUsedOtherwise);
        assert_eq!(answer, Err(expected), "the marker came again with another {field}");
        assert_eq!(standing(fixture, &open.bill).await, [4_000], "another {field}");
        assert_eq!(standing(fixture, &other.bill).await, [0_i64; 0], "another {field}");
    }
}

fn with_one_other_field(
    fixture: &dyn Fixture,
    order: &PaymentOrder,
    other: &OpenBill,
) -> Vec<(&'static str, PaymentOrder)> {
    let unused = Iban::parse(fixture.unused_iban()).expect("the unused IBAN is valid");
    let usd = Currency::from_code("USD").expect("USD is a currency");
    let with = |change: &dyn Fn(&mut PaymentOrder)| {
        let mut changed = order.clone();
        change(&mut changed);
        changed
    };
    vec![
        ("store", with(&|o| o.store.push('x'))),
        ("sequence number", with(&|o| o.seq = o.seq.saturating_add(1))),
        ("bill", with(&|o| o.bill = other.bill.clone())),
        ("total", with(&|o| o.total = euros("99.00"))),
        ("vendor", with(&|o| o.vendor = other.vendor.clone())),
        ("account", with(&|o| o.account = other.account.clone())),
        ("IBAN", with(&|o| o.iban = unused.clone())),
        ("amount", with(&|o| o.amount = euros("40.01"))),
        ("currency", with(&|o| o.amount = Amount::from_minor(4_000, usd))),
        ("journal", with(&|o| o.journal = JournalId::new("XXX9").expect("a journal's code"))),
        ("source account", with(&|o| o.source_iban = unused.clone())),
        ("memo", with(&|o| o.memo.push('!'))),
        ("date", with(&|o| o.date = o.date.pred_opt().expect("a day before"))),
        ("deadline", with(&|o| o.not_after = o.not_after.plus(Duration::from_mins(1)))),
    ]
}

/// Another marker with a number that this store already used: the store is an older copy.
pub async fn a_sequence_number_is_used_once(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let order = store.order(fixture, &open, "40.00").await;
    pay(fixture, &order).await.expect("the payment is booked");
    let same_bill = PaymentOrder { marker: new_marker(), ..order.clone() };
    let mut other_bill = store.order(fixture, &other, "100.00").await;
    other_bill.seq = order.seq;
    // That the store is behind matters more than what else is wrong with its order.
    let too_much = PaymentOrder { amount: euros("100.00"), ..same_bill.clone() };
    for again in [&same_bill, &other_bill, &too_much] {
        let answer = pay(fixture, again).await;
        assert_eq!(answer, Err(OrderError::Contradicted(Contradiction::StoreBehind)));
    }
    assert_eq!(standing(fixture, &open.bill).await, [4_000]);
    assert_eq!(standing(fixture, &other.bill).await, [0_i64; 0]);

    // Nor does it help that the order is late.
    let late = fixture.erp_time().await.minus(Duration::from_secs(2));
    let late = PaymentOrder { not_after: late, ..same_bill };
    let answer = pay(fixture, &late).await;
    assert_eq!(answer, Err(OrderError::Contradicted(Contradiction::StoreBehind)));

    // Numbers belong to a store: another one starts at its own.
    let elsewhere = Store::new().order(fixture, &other, "100.00").await;
    assert_eq!(elsewhere.seq, order.seq);
    pay(fixture, &elsewhere).await.expect("another store's number is its own");
}

/// After its deadline by the ERP's clock, an order is not booked any more.
pub async fn an_order_after_its_deadline_is_too_late(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.not_after = fixture.erp_time().await.minus(Duration::from_secs(2));
    assert_refused(fixture, &order, &[Refusal::TooLate]).await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(1));
    fixture.wait_past(order.not_after).await;
    assert_refused(fixture, &order, &[Refusal::TooLate]).await;
}

/// An order that would live longer than any daemon waits for it is none of a daemon's.
pub async fn an_order_with_a_deadline_far_away_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_mins(16));
    assert_refused(fixture, &order, &[Refusal::BadRequest]).await;
    assert_eq!(standing(fixture, &open.bill).await, [0_i64; 0]);
}

/// Somebody undoes the payment in the ERP, so that the bill is open again: what was ordered still
/// counts, and the first order still answers what it booked.
pub async fn after_an_undone_payment_no_second_one_is_booked(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let order = store.order(fixture, &open, "100.00").await;
    let booked = pay(fixture, &order).await.expect("the payment is booked");
    fixture.edit(Edit::UndoPayment(open.bill.clone())).await;
    assert_eq!(standing(fixture, &open.bill).await, [0_i64; 0]);
    assert!(read(fixture, &open.bill).await.bill.is_open(), "the bill is not open again");

    for amount in ["100.00", "0.01"] {
        let again = store.order(fixture, &open, amount).await;
        assert_refused(fixture, &again, &[Refusal::AmountExceedsResidual]).await;
    }
    let now = pay(fixture, &order).await.expect("the first order answers what it booked");
    assert_eq!(now.payment, booked.payment);
    assert_ne!(now.state, BookedState::Posted, "an undone payment reads as posted");
    assert_eq!(standing(fixture, &open.bill).await, [0_i64; 0]);
}

/// The ERP's table of orders is read in pages, by sequence number, for one store only.
pub async fn orders_are_listed_ascending(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut orders = Vec::new();
    for amount in ["10.00", "20.00", "30.00"] {
        let order = store.order(fixture, &open, amount).await;
        let booked = pay(fixture, &order).await.expect("the payment is booked");
        orders.push((order, booked));
    }
    let elsewhere = Store::new().order(fixture, &open, "5.00").await;
    pay(fixture, &elsewhere).await.expect("the other store's payment is booked");

    let mut after = 0;
    for (order, booked) in &orders {
        let page = fixture.erp().list_orders(&store.name, after, 1).await.expect("a page");
        let [recorded] = page.as_slice() else { panic!("not one order on the page: {page:?}") };
        assert_eq!(recorded.marker, order.marker);
        assert_eq!(recorded.seq, order.seq);
        assert_eq!(recorded.erp_company, order.erp_company);
        assert_eq!((&recorded.bill, &recorded.account), (&order.bill, &order.account));
        assert_eq!((&recorded.iban, recorded.amount), (&order.iban, order.amount));
        assert_eq!((recorded.total, &recorded.payment), (order.total, &booked.payment));
        assert!(recorded.at <= fixture.erp_time().await, "an order from the future");
        after = recorded.seq;
    }
    assert_eq!(fixture.erp().list_orders(&store.name, after, 10).await, Ok(vec![]));
    let all = fixture.erp().list_orders(&store.name, 0, 10).await.expect("a page");
    assert_eq!(all.len(), orders.len(), "a page does not hold exactly the store's orders");
}
