//! That orders which arrive at the same moment do not pay together what none may pay alone.

use super::Fixture;
use super::scene::{Store, join_all, open_bill, pay, standing};
use crate::{Booked, OrderError};

/// How many orders arrive at once.
const AT_ONCE: usize = 8;

/// How many were booked, where the others may fail in any way but by contradicting the store.
fn count_booked(answers: &[Result<Booked, OrderError>]) -> usize {
    for answer in answers {
        if let Err(OrderError::Contradicted(what)) = answer {
            panic!("orders of one healthy store contradict it: {what:?}");
        }
    }
    answers.iter().filter(|answer| answer.is_ok()).count()
}

/// Several orders for the whole bill, each with its own marker: one payment.
pub async fn concurrent_orders_for_one_bill_book_one_payment(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut orders = Vec::new();
    for _ in 0..AT_ONCE {
        orders.push(store.order(fixture, &open, "100.00").await);
    }
    let answers = join_all(orders.iter().map(|order| pay(fixture, order)).collect()).await;
    assert_eq!(count_booked(&answers), 1, "{answers:?}");
    assert_eq!(standing(fixture, &open.bill).await, [10_000]);
    let recorded = fixture.erp().list_orders(&store.name, 0, 200).await.expect("a page");
    assert_eq!(recorded.len(), 1, "an order is recorded that was not booked");
}

/// Several copies of one order: one payment, and every answer tells of it.
pub async fn concurrent_copies_of_one_order_book_once(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "40.00").await;
    let copies = (0..AT_ONCE).map(|_| pay(fixture, &order)).collect();
    let answers = join_all(copies).await;
    assert!(count_booked(&answers) >= 1, "{answers:?}");
    assert_eq!(standing(fixture, &open.bill).await, [4_000]);
    let mut payments: Vec<_> = answers.into_iter().flatten().map(|booked| booked.payment).collect();
    payments.dedup();
    assert_eq!(payments.len(), 1, "copies of one order tell of several payments");
}

/// Several parts that fit one by one and not together: never more than the total.
pub async fn concurrent_parts_never_exceed_the_total(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut orders = Vec::new();
    for _ in 0..AT_ONCE {
        orders.push(store.order(fixture, &open, "30.00").await);
    }
    let answers = join_all(orders.iter().map(|order| pay(fixture, order)).collect()).await;
    let booked = count_booked(&answers);
    assert!((1..=3).contains(&booked), "{booked} parts of 30.00 booked on a bill of 100.00");
    let stands = standing(fixture, &open.bill).await;
    assert!(stands.len() >= booked, "a payment was reported that is not there");
    assert!(stands.iter().sum::<i64>() <= 10_000, "more than the total was booked: {stands:?}");
}
