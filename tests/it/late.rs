//! I2: what arrives after the fact, from an ERP that broke its word or that never keeps it.

use std::sync::Arc;
use std::time::Duration;

use countersign::domain::operation::Status;
use countersign_erp_source::{Contradiction, OrderError, Screening};
use serde_json::Value;

use crate::bent::{Scene, round};
use crate::daemon::pay;

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

fn lost() -> OrderError {
    OrderError::OutcomeUnknown { reason: "the answer was lost".to_owned() }
}

#[tokio::test]
async fn a_booking_of_an_order_that_was_given_up_as_absent_freezes_everything() {
    let scene = Scene::new().await;
    let (bends, other) = (Arc::clone(&scene.bends), scene.another());
    *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        // While the order is on its way, another daemon takes it for lost, and the ERP says that
        // it is not there and cannot be booked any more. It can.
        bends.move_clock(Duration::from_hours(1));
        round(&other, false).await;
        bends.looked_up.set(|answer| {
            let answer = answer.as_mut().unwrap();
            answer.erp_time = answer.erp_time.plus(Duration::from_hours(2));
        });
        bends.screening.set(|answer| *answer = Ok(Screening::Listed));
        round(&other, false).await;
        other.finish().await;
    }));
    scene.propose("k", &acme()).await;
    scene.gateway.finish().await;
    let failed = scene.operations().await.remove(0);
    assert_eq!((failed.status, scene.paid().await["INV-1"]), (Status::Failed, 1));
    assert_eq!(scene.causes_of_freezes().await, ["booked_after_absent"]);
    scene.close().await;
}

#[tokio::test]
async fn a_contradiction_about_a_closed_order_freezes_everything() {
    let scene = Scene::new().await;
    let (bends, other) = (Arc::clone(&scene.bends), scene.another());
    *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        bends.move_clock(Duration::from_hours(1));
        round(&other, false).await;
        bends.looked_up.set(|answer| {
            let answer = answer.as_mut().unwrap();
            answer.erp_time = answer.erp_time.plus(Duration::from_hours(2));
        });
        bends.screening.set(|answer| *answer = Ok(Screening::Listed));
        round(&other, false).await;
        other.finish().await;
    }));
    *scene.bends.instead.lock().unwrap() =
        Some(OrderError::Contradicted(Contradiction::MarkerUsedOtherwise));
    scene.propose("k", &acme()).await;
    scene.gateway.finish().await;
    assert_eq!(scene.operations().await.remove(0).status, Status::Failed);
    assert_eq!(scene.causes_of_freezes().await, ["marker_used_otherwise"]);
    scene.close().await;
}

#[tokio::test]
async fn an_erp_that_takes_orders_and_never_books_them_is_not_asked_for_ever() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(lost());
    scene.propose_beside("k", &acme());
    let unknown = scene.until_written(2).await;
    assert_eq!(unknown.status, Status::Unknown);
    // Proved absent within 15 minutes of the claim it is tried again, and lost again.
    scene.advance("10m").await;
    *scene.bends.instead.lock().unwrap() = Some(lost());
    scene.settle().await;
    let again = scene.until_written(4).await;
    assert_eq!((again.status, scene.bends.sent()), (Status::Unknown, 2));
    // Later it is not, although nothing else has changed.
    scene.advance("5m").await;
    scene.settle().await;
    let failed = scene.until_written(5).await;
    assert_eq!((failed.status, scene.bends.sent()), (Status::Failed, 2));
    assert_eq!(failed.decision.reasons, ["proved_absent"]);
    assert_eq!((scene.reserved().await, scene.paid().await.len()), (0, 0));
    // Everything is released: the bill can be paid.
    assert_eq!(scene.propose("again", &acme()).await.status, Status::Executed);
    scene.close().await;
}

#[tokio::test]
async fn an_order_that_the_erp_contradicted_is_no_failure_while_the_freeze_stands() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(OrderError::Contradicted(Contradiction::BadSeal));
    scene.propose_beside("k", &acme());
    let unknown = scene.until_written(2).await;
    assert_eq!(unknown.decision.reasons, ["erp_contradicts_store"]);
    scene.advance("10m").await;
    // The ERP proves that it is absent; but it is the ERP that contradicted.
    scene.settle().await;
    let still = scene.operations().await.remove(0);
    assert_eq!((still.status, still.version), (Status::Unknown, 2));
    assert_eq!(scene.causes_of_freezes().await, ["bad_seal"]);
    scene.close().await;
}
