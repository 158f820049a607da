//! What is paid, and what is refused.

use crate::scene::{self, euros};
use countersign_erp_source::{
    Amount, BillState, BookedState, ErpSource, LookUp, OrderError, PaymentOrder, Refusal,
};

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

#[tokio::test]
async fn what_odoos_own_rules_refuse_is_refused_in_our_words() {
    let Some(scene) = scene::enter_alone().await else { return };
    let scenery = scene.open_bill("12.00").await;
    // Odoo posts nothing to an account that is not to be used any more.
    let deprecate = |truth: &str| {
        format!(
            "env.company.account_journal_payment_credit_account_id.write({{'deprecated': {truth}}})\n\
             action = {{'said': 'done'}}\n"
        )
    };
    scene.run_code(&deprecate("True")).await.unwrap();
    let answer = scene.pay(scene.order(&scenery)).await;
    scene.run_code(&deprecate("False")).await.unwrap();
    assert_eq!(answer, Err(OrderError::Refused(Refusal::Other)));
    assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
    scene.pay(scene.order(&scenery)).await.unwrap();
}

#[tokio::test]
async fn what_was_booked_is_answered_though_its_bill_is_deleted() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("13.00").await;
    let order = scene.order(&scenery);
    let booked = scene.pay(order.clone()).await.unwrap();
    let (payment, bill) = (booked.payment.as_str(), scenery.bill);
    let code = format!(
        "env['account.payment'].browse({payment}).action_draft()\n\
         bill = env['account.move'].browse({bill})\n\
         bill.button_draft()\n\
         bill.with_context(force_delete=True).unlink()\n\
         action = {{'said': 'done'}}\n"
    );
    scene.run_code(&code).await.unwrap();

    let (company, bill, marker) = (order.company.clone(), order.bill.clone(), order.marker.clone());
    let found = scene.odoo.look_up(&LookUp { company, bill, marker }).await.unwrap();
    let found = found.booked.unwrap();
    assert_eq!((&found.payment, found.amount), (&booked.payment, booked.amount));
    assert_eq!((found.state, found.bill_state), (BookedState::Draft, BillState::Cancelled));
    assert_eq!(found.residual, Amount::zero(booked.amount.currency()));
    assert_eq!(scene.pay(order).await, Ok(found));
    // Another order for it finds no bill.
    let answer = scene.pay(scene.order(&scenery)).await;
    assert_eq!(answer, Err(OrderError::Refused(Refusal::NoSuchBill)));
}
