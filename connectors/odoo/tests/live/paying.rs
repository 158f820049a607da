//! What is paid, and what is refused.

use crate::scene::{self, euros};
use countersign_erp_source::{ErpSource, LookUp, PaymentOrder};

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

#[tokio::test]
async fn orders_for_several_bills_of_one_journal_are_all_booked() {
    let Some(scene) = scene::enter().await else { return };
    let mut orders = Vec::new();
    for total in ["41.00", "42.00", "43.00", "44.00"] {
        let scenery = scene.open_bill(total).await;
        orders.push(scene.order(&scenery));
    }
    let [first, second, third, fourth] = orders.as_slice() else { panic!("four orders") };
    let pay = |order: &PaymentOrder| scene.pay(order.clone());
    let answers = tokio::join!(pay(first), pay(second), pay(third), pay(fourth));
    for (answer, order) in <[_; 4]>::from(answers).into_iter().zip(&orders) {
        assert_eq!(answer.unwrap().differences(order), vec![]);
    }
}

#[tokio::test]
async fn a_part_with_cents_leaves_the_exact_rest() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("100.00").await;
    let order = PaymentOrder { amount: euros("33.33"), ..scene.order(&scenery) };
    let booked = scene.pay(order.clone()).await.unwrap();
    assert_eq!(booked.differences(&order), vec![]);
    assert_eq!(booked.residual, euros("66.67"));
    let reading = scene.odoo.find_bill(&scene.company, &order.bill).await.unwrap().unwrap();
    assert!(reading.bill.is_open() && reading.bill.consistent_vendor().is_ok());
    assert_eq!(reading.bill.payable.residual, euros("66.67"));
}
