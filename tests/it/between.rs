//! I1, I5: what changes between the decision and the order. After the claim everything is decided
//! once more, and what does not come out the same is not sent.

use std::sync::Arc;
use std::time::Duration;

use countersign::domain::decision::Level;
use countersign::domain::operation::Status;
use countersign_erp_source::{BillState, NoAnswer, ReadError, VopResult};
use serde_json::Value;

use crate::attacks::permit_everything;
use crate::bent::Scene;
use crate::daemon::{Installation, pay};

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

#[tokio::test]
async fn a_bill_withdrawn_after_the_claim_is_denied_and_releases_everything() {
    let scene = Scene::new().await;
    scene.bends.bill.set_after_first(|answer| {
        answer.as_mut().unwrap().as_mut().unwrap().bill.state = BillState::Cancelled;
    });
    let denied = scene.propose("a", &acme()).await;
    assert_eq!(denied.status, Status::Denied, "{:?}", denied.decision);
    assert_eq!(denied.decision.reasons, ["bill-must-be-open"]);
    assert_eq!((scene.bends.sent(), scene.reserved().await), (0, 0));
    scene.bends.bill.clear();
    assert_eq!(scene.propose("b", &acme()).await.status, Status::Executed);
    scene.close().await;
}

#[tokio::test]
async fn an_error_after_the_claim_ends_nothing_and_sends_nothing() {
    let scene = Scene::new().await;
    scene.bends.bill.set_after_first(|answer| {
        *answer = Err(ReadError::Unavailable { reason: "asleep".to_owned() });
    });
    scene.propose_beside("k", &acme());
    let waiting = scene.until_written(2).await;
    assert_eq!((waiting.status, scene.bends.sent()), (Status::Executing, 0));
    scene.settle().await;
    assert_eq!(scene.until_written(2).await.version, 2, "an error was taken for a decision");
    scene.bends.bill.clear();
    let silent = || NoAnswer { provider: "test".to_owned(), reason: "asleep".to_owned() };
    scene.bends.vop.set(move |answer| *answer = Err(silent()));
    scene.advance("1s").await;
    scene.settle().await;
    assert_eq!((scene.until_written(2).await.version, scene.bends.sent()), (2, 0));
    scene.bends.vop.clear();
    scene.advance("1s").await;
    scene.settle().await;
    assert_eq!(scene.until_written(4).await.status, Status::Executed);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (1, 1));
    scene.close().await;
}

#[tokio::test]
async fn what_needs_a_human_only_after_the_claim_waits_for_one() {
    let scene = Scene::new().await;
    scene.bends.vop.set_after_first(|answer| {
        answer.as_mut().unwrap().result = VopResult::CloseMatch { actual_name: None };
    });
    let waits = scene.propose("k", &acme()).await;
    assert_eq!(
        (waits.status, waits.level, scene.bends.sent()),
        (Status::Pending, Level::FourEyes, 0)
    );
    assert!(waits.waits_until.is_some());
    assert_eq!(scene.reserved().await, 0);
    scene.close().await;
}

#[tokio::test]
async fn what_changed_without_changing_the_decision_is_decided_anew_before_it_is_sent() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let scene = Scene::of(installation).await;
    // A value, and then a fact alone.
    scene.bends.bill.set_after_first(|answer| {
        answer.as_mut().unwrap().as_mut().unwrap().bill.reference = Some("another".to_owned());
    });
    scene.propose_beside("k", &acme());
    let waiting = scene.until_written(2).await;
    assert_eq!((waiting.status, scene.bends.sent()), (Status::Executing, 0));
    scene.bends.vop.set_after_first(|answer| {
        answer.as_mut().unwrap().result = VopResult::CloseMatch { actual_name: None };
    });
    scene.settle().await;
    let waiting = scene.until_written(4).await;
    assert_eq!((waiting.status, scene.bends.sent()), (Status::Executing, 0));
    scene.advance("1s").await;
    scene.settle().await;
    assert_eq!(scene.until_written(6).await.status, Status::Executed);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (1, 1));
    scene.close().await;
}

#[tokio::test]
async fn nothing_is_sent_while_the_erps_side_is_not_proved() {
    let scene = Scene::new().await;
    let pack = scene.pack.clone();
    scene.bends.bill.set_after_first(move |_| pack.set_not_ready(vec!["altered".to_owned()]));
    scene.propose_beside("k", &acme());
    let waiting = scene.until_written(2).await;
    assert_eq!((waiting.status, scene.bends.sent()), (Status::Executing, 0));
    scene.settle().await;
    assert_eq!((scene.until_written(2).await.version, scene.bends.sent()), (2, 0));
    scene.bends.bill.clear();
    scene.pack.set_not_ready(Vec::new());
    scene.advance("1s").await;
    scene.settle().await;
    assert_eq!(scene.until_written(4).await.status, Status::Executed);
    scene.close().await;
}

#[tokio::test]
async fn a_daemon_that_slept_past_its_deadline_sends_nothing() {
    let scene = Scene::new().await;
    let bends = Arc::clone(&scene.bends);
    scene.bends.bill.set_after_first(move |_| bends.move_clock(Duration::from_secs(3)));
    scene.propose_beside("k", &acme());
    let waiting = scene.until_written(2).await;
    assert_eq!((waiting.status, scene.bends.sent()), (Status::Executing, 0));
    scene.bends.bill.clear();
    scene.close().await;
}

#[tokio::test]
async fn what_was_claimed_while_another_was_decided_counts_under_the_lock() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let scene = Scene::of(installation).await;
    let part = |amount| pay("INV-1", "V-100", amount);
    // While the second one is decided, the first one is claimed, sent and done.
    *scene.bends.while_verifying.lock().unwrap() = Some(scene.proposing("a", &part("700.00")));
    let second = scene.propose("b", &part("700.00")).await;
    assert_eq!(second.decision.reasons, ["floor_over_residual"], "{:?}", second.decision);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 1, "it was claimed");
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (1, 1));
    scene.close().await;
}

#[tokio::test]
async fn the_total_of_the_first_claim_binds_the_rest_of_the_bill() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let scene = Scene::of(installation).await;
    let part = |amount| pay("INV-1", "V-100", amount);
    assert_eq!(scene.propose("a", &part("700.00")).await.status, Status::Executed);
    scene.bends.bill.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        let more = bill.payable.total.checked_add(bill.payable.total).unwrap();
        (bill.payable.total, bill.header.total) = (more, more);
        (bill.payable.residual, bill.header.residual) = (more, more);
    });
    let more = scene.propose("b", &part("700.00")).await;
    assert_eq!(more.decision.reasons, ["floor_total_changed"], "{:?}", more.decision);
    // The total as it was, with a residual that says that nothing was paid.
    scene.bends.bill.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        (bill.payable.residual, bill.header.residual) = (bill.payable.total, bill.header.total);
    });
    let again = scene.propose("c", &part("700.00")).await;
    assert_eq!(again.decision.reasons, ["floor_over_residual"], "{:?}", again.decision);
    assert_eq!(scene.propose("d", &part("500.00")).await.status, Status::Executed);
    assert_eq!(scene.paid().await["INV-1"], 2);
    scene.close().await;
}
