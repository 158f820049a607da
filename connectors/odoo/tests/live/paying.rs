//! What is paid, and what is refused.

use countersign_erp_source::{
    Amount, BookedState, Contradiction, ErpSource, LookUp, OrderError, PaymentOrder, Refusal,
};
use serde_json::json;

use crate::scene::{self, bill_id, euros, new_iban, new_marker};

#[tokio::test]
async fn a_sealed_order_is_booked_once_and_reads_back_as_ordered() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("1840.00").await;
    let order = scene.order(&scenery);
    let booked = scene.pay(order.clone()).await.unwrap();
    assert_eq!(booked.differences(&order), vec![]);
    assert_eq!(booked.residual, euros("0.00"));
    assert_eq!(booked.date, order.date);

    // The same order again is the same booking.
    assert_eq!(scene.pay(order.clone()).await.unwrap(), booked);
    assert_eq!(scene.payments_to(scenery.vendor.vendor).await.len(), 1);

    // It is found, and it is on record.
    let wanted = LookUp {
        company: scene.company.clone(),
        bill: order.bill.clone(),
        marker: order.marker.clone(),
    };
    assert_eq!(scene.odoo.look_up(&wanted).await.unwrap().booked, Some(booked.clone()));
    let recorded = scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap();
    let [recorded] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert_eq!(recorded.marker, order.marker);
    assert_eq!(recorded.seq, order.seq);
    assert_eq!(recorded.bill, order.bill);
    assert_eq!(recorded.account, order.account);
    assert_eq!(recorded.iban, order.iban);
    assert_eq!(recorded.amount, order.amount);
    assert_eq!(recorded.total, order.total);
    assert_eq!(recorded.payment, booked.payment);
    assert_eq!(scene.odoo.list_orders(&scene.store, order.seq, 10).await.unwrap(), vec![]);
}
