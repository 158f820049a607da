//! I3, I5, I7: a clock that jumps makes nothing older, brings back nothing that has expired, and
//! sends nothing while it and the ERP's are apart.

use std::sync::Arc;
use std::time::Duration;

use countersign::domain::operation::{Operation, Status};
use countersign_erp_source::{Attestation, OrderError, ReadError, Timestamp, VopResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bent::Scene;
use crate::daemon::{COMPANY, Installation, NOBODYS, pay};

const DAY: Duration = Duration::from_hours(24);

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

/// A part of a bill, which takes four eyes.
fn part() -> Value {
    pay("INV-1", "V-100", "700.00")
}

/// A number among the facts of that operation.
#[track_caller]
fn days(operation: &Operation) -> i64 {
    let found = &operation.substance.facts["iban_age_days"];
    found.value.as_i64().unwrap_or_else(|| panic!("{found:?}"))
}

#[track_caller]
fn cools_off(operation: &Operation) -> bool {
    let found = &operation.substance.facts["in_cooling_off"];
    found.value.as_bool().unwrap_or_else(|| panic!("{found:?}"))
}

/// Proposes what waits for a human, and cancels it.
async fn waits(scene: &Scene, key: &str, proposal: &Value) -> Operation {
    let pending = scene.propose(key, proposal).await;
    assert_eq!(pending.status, Status::Pending, "{:?}", pending.decision);
    let caller = scene.caller().await;
    scene.gateway.cancel(&caller, &pending.id).await.unwrap();
    pending
}

/// The whole ledger as an operator verifies it.
async fn ledger_verifies(scene: Scene) {
    let Scene { installation, gateway, app, .. } = scene;
    gateway.finish().await;
    app.close().await;
    let verified = installation.ok(&["receipts", "verify"], "");
    assert!(verified.contains("the kept checkpoint is in it"), "{verified}");
}

/// Moves what the ERP says its clock is.
fn erp_clock_at(moved: impl Fn(Timestamp) -> Timestamp + Send + 'static) -> impl FnMut(&mut Proof) {
    move |proof| {
        let proof = proof.as_mut().unwrap();
        proof.erp_time = moved(proof.erp_time);
    }
}

type Proof = Result<Attestation, ReadError>;

#[tokio::test]
async fn more_than_30_seconds_between_the_clocks_and_nothing_is_sent() {
    let scene = Scene::new().await;
    let workers = scene.workers();
    let (near, far) = (Duration::from_secs(28), Duration::from_secs(32));
    let refused = async |key: &str| {
        assert!(!workers.prove().await);
        let problems = workers.problems().join("; ");
        assert!(problems.contains("clock differs by 3"), "{problems}");
        let denied = scene.propose(key, &acme()).await;
        assert_eq!(denied.decision.reasons, ["erp_not_ready"], "{:?}", denied.decision);
        assert_eq!((denied.status, scene.bends.sent()), (Status::Denied, 0));
    };
    scene.bends.move_clock(near);
    assert!(workers.prove().await);
    scene.bends.set_back(near + near);
    assert!(workers.prove().await);
    scene.bends.move_clock(near + far);
    refused("ours is ahead").await;
    scene.bends.set_back(far + far);
    refused("ours is behind").await;
    scene.bends.move_clock(far);
    scene.bends.proof.set(erp_clock_at(move |time| time.plus(far)));
    refused("the ERP's is ahead").await;
    scene.bends.proof.set(erp_clock_at(move |time| time.minus(far)));
    refused("the ERP's is behind").await;
    scene.bends.proof.clear();
    assert!(workers.prove().await);
    assert_eq!(scene.propose("in agreement", &acme()).await.status, Status::Executed);
    ledger_verifies(scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_finds_out_at_once_that_its_clock_jumped() {
    let scene = Scene::new().await;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let workers = scene.workers();
    workers.start(&tasks, &stop);
    let until = async |ready: bool| {
        let waiting = async {
            while workers.problems().is_empty() != ready {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_mins(1), waiting).await;
        waited.unwrap_or_else(|_| panic!("ready is not {ready}: {:?}", workers.problems()));
    };
    // Its next proof would be in an hour.
    until(true).await;
    scene.bends.move_clock(DAY);
    until(false).await;
    scene.bends.set_back(DAY);
    until(true).await;
    scene.bends.set_back(DAY);
    until(false).await;
    scene.bends.move_clock(DAY);
    until(true).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    ledger_verifies(scene).await;
}

#[tokio::test]
async fn an_account_first_seen_while_the_clock_was_wrong_is_no_older_for_it() {
    let scene = Scene::new().await;
    let sandbox = scene.app.base.sandbox.clone().unwrap();
    for (vendor, bill, amount) in [("V-300", "N-1", "10.00"), ("V-400", "N-2", "20.00")] {
        let iban = if vendor == "V-300" { NOBODYS } else { "GB82WEST12345698765432" };
        let vendor_fields = json!({ "name": vendor, "iban": iban });
        let fields = serde_json::from_value(vendor_fields).unwrap();
        sandbox.put_vendor(COMPANY, vendor, &fields).await.unwrap();
        let bill_fields = json!({ "vendor": vendor, "vendor_reference": bill, "amount": amount,
            "currency": "EUR", "due": "2099-12-31" });
        let fields = serde_json::from_value(bill_fields).unwrap();
        sandbox.put_bill(COMPANY, bill, &fields).await.unwrap();
    }
    // The bank knows their holders.
    scene.bends.vop.set(|answer| answer.as_mut().unwrap().result = VopResult::Match);
    let (first, second) = (pay("N-1", "V-300", "10.00"), pay("N-2", "V-400", "20.00"));
    let young = |operation: &Operation| {
        assert_eq!((days(operation), cools_off(operation)), (0, true), "{operation:?}");
    };
    // First seen by a clock that is behind, which is mended then.
    scene.bends.set_back(DAY * 8);
    young(&waits(&scene, "behind", &first).await);
    scene.bends.move_clock(DAY * 8);
    young(&waits(&scene, "mended", &first).await);
    // First seen by a clock that is ahead.
    scene.bends.move_clock(DAY * 8);
    young(&waits(&scene, "ahead", &second).await);
    scene.bends.set_back(DAY * 8);
    young(&waits(&scene, "mended again", &second).await);
    ledger_verifies(scene).await;
}

#[tokio::test]
async fn an_account_on_file_has_its_age_again_when_the_clock_is_mended() {
    let scene = Scene::new().await;
    let age = async |key: &str| days(&waits(&scene, key, &part()).await);
    let before = age("before").await;
    scene.bends.set_back(DAY * 1000);
    assert_eq!(age("behind").await, 0);
    scene.bends.move_clock(DAY * 1000);
    assert_eq!(age("mended").await, before);
    scene.bends.move_clock(DAY * 5);
    assert_eq!(age("ahead").await, before + 5);
    scene.bends.set_back(DAY * 5);
    assert_eq!(age("mended again").await, before);
    ledger_verifies(scene).await;
}

#[tokio::test]
async fn what_expired_stays_expired_when_the_clock_goes_back() {
    let scene = Scene::new().await;
    let waits = scene.propose("k", &part()).await;
    assert_eq!(waits.status, Status::Pending, "{:?}", waits.decision);
    let away = DAY * 4;
    scene.bends.move_clock(away);
    scene.gateway.expire_round().await.unwrap();
    let expired = scene.operations().await.remove(0);
    assert_eq!(expired.status, Status::Expired);
    scene.bends.set_back(away);
    scene.gateway.expire_round().await.unwrap();
    scene.settle().await;
    let still = scene.operations().await.remove(0);
    assert_eq!((still.status, still.version), (Status::Expired, expired.version));
    assert_eq!(scene.propose("k", &part()).await.status, Status::Expired);
    assert_eq!(scene.bends.sent(), 0);
    ledger_verifies(scene).await;
}

#[tokio::test]
async fn what_is_under_way_while_the_clock_jumps_is_paid_once() {
    for by in [DAY, Duration::from_mins(1)] {
        for ahead in [true, false] {
            let scene = Scene::new().await;
            let bends = Arc::clone(&scene.bends);
            *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
                if ahead { bends.move_clock(by) } else { bends.set_back(by) }
            }));
            let paid = scene.propose("k", &acme()).await;
            assert_eq!(paid.status, Status::Executed, "{:?}", paid.decision);
            scene.settle().await;
            scene.gateway.expire_round().await.unwrap();
            assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (1, 1));
            let again = scene.propose("k", &acme()).await;
            assert_eq!((again.id, again.version), (paid.id, paid.version));
            ledger_verifies(scene).await;
        }
    }
}

#[tokio::test]
async fn what_is_unknown_is_found_after_the_clock_went_back() {
    let scene = Scene::new().await;
    scene.bends.booked.set(|answer| {
        let reason = "the answer was lost".to_owned();
        *answer = Err(OrderError::OutcomeUnknown { reason });
    });
    scene.bends.looked_up.set(|answer| {
        *answer = Err(ReadError::Unavailable { reason: "asleep".to_owned() });
    });
    assert_eq!(scene.propose("k", &acme()).await.status, Status::Unknown);
    scene.settle().await;
    scene.bends.looked_up.clear();
    // It would be a day until the clock is where it was when the operation was looked at.
    scene.bends.set_back(DAY);
    scene.settle().await;
    let found = scene.until_written(3).await;
    assert_eq!((found.status, scene.paid().await["INV-1"]), (Status::Executed, 1));
    ledger_verifies(scene).await;
}

#[tokio::test]
async fn the_sandboxs_own_clock_moves_without_parting_from_the_erps() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    agent.propose("before", &acme()).await.is_executed();
    daemon.advance("5d").await;
    agent.propose("after", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    daemon.until_ready().await;
    daemon.stop();
    // A start whose clock is behind what the sandbox told is none: the offset is kept in its file.
    let daemon = installation.start().await;
    daemon.agent(&token).get("/v1/operations").await.text("/items/1/id");
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}
