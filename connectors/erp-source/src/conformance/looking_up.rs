//! What a look-up proves.

use std::time::Duration;

use super::Fixture;
use super::scene::{Store, assert_refused, new_marker, open_bill, pay, standing};
use crate::{LookUp, Refusal};

/// Only after the deadline, by the ERP's own clock, is "not found" a proof; and then it holds.
pub async fn a_look_up_proves_absence_only_after_the_deadline(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(20));
    let wanted = LookUp {
        company: open.company.clone(),
        bill: open.bill.clone(),
        marker: order.marker.clone(),
    };
    let early = fixture.erp().look_up(&wanted).await.expect("an answer");
    assert_eq!(early.booked, None);
    assert!(!early.proves_absence(order.not_after), "absence was proved before the deadline");

    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(1));
    fixture.wait_past(order.not_after).await;
    let late = fixture.erp().look_up(&wanted).await.expect("an answer");
    assert!(late.proves_absence(order.not_after), "absence was not proved: {late:?}");
    assert!(late.erp_time >= early.erp_time, "the ERP's clock went back");
    assert_refused(fixture, &order, &[Refusal::TooLate]).await;
    assert_eq!(standing(fixture, &open.bill).await, [0_i64; 0]);
}

/// A booked order is found with what it booked, before and after its deadline; its neighbour is not.
pub async fn a_booked_order_is_found(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "60.00").await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(3));
    let booked = pay(fixture, &order).await.expect("the payment is booked");
    let wanted = LookUp {
        company: open.company.clone(),
        bill: open.bill.clone(),
        marker: order.marker.clone(),
    };
    let found = fixture.erp().look_up(&wanted).await.expect("an answer");
    assert_eq!(found.booked, Some(booked.clone()));
    fixture.wait_past(order.not_after).await;
    let found = fixture.erp().look_up(&wanted).await.expect("an answer");
    assert_eq!(found.booked, Some(booked));
    assert!(!found.proves_absence(order.not_after), "a booked order was proved absent");

    let neighbour = LookUp { marker: new_marker(), ..wanted };
    let missing = fixture.erp().look_up(&neighbour).await.expect("an answer");
    assert_eq!(missing.booked, None);
}

/// A look-up that takes another bill's lock must not say that an order is absent that is booked.
pub async fn a_look_up_with_another_bill_never_proves_absence(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "60.00").await;
    order.not_after = fixture.erp_time().await.plus(Duration::from_secs(3));
    pay(fixture, &order).await.expect("the payment is booked");
    fixture.wait_past(order.not_after).await;
    let wanted = LookUp { company: open.company, bill: other.bill, marker: order.marker.clone() };
    if let Ok(answer) = fixture.erp().look_up(&wanted).await {
        assert!(!answer.proves_absence(order.not_after), "a booked order was proved absent");
    }
}
