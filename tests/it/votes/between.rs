//! What may happen between a vote and the payment.

use countersign::domain::decision::Level;
use countersign::domain::names::Name;
use countersign::domain::operation::Status;
use countersign::gateway::ApprovalError;
use countersign_erp_source::VopResult;
use serde_json::json;

use super::{Office, approve, is_pending};
use crate::bent::Scene;
use crate::daemon::{COMPANY, Installation, pay};
use crate::support::on_both;

/// More failed reads than any test waits for.
const FOR_LONG: u32 = 100_000;

#[tokio::test]
async fn an_error_after_the_vote_voids_nothing_and_the_worker_goes_on() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let pending = office.four_eyes("k1").await;
        let paul = office.daemon.sign_in("paul").await;
        office.daemon.fault("read", "unreachable", 1).await;
        let waits = approve(&paul, &pending).await;
        is_pending(&waits, "four_eyes");
        assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]));
        assert_eq!(waits.text("/operation_hash"), pending.text("/operation_hash"));
        let executed = office.agent.until_only(&office.daemon, "executed").await;
        assert_eq!(executed.json["approval"]["granted_by"], json!(["paul"]));
        assert_eq!(office.daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_crash_after_the_vote_loses_nothing() {
    on_both(async |place| {
        let installation = Installation::at(place);
        Office::people(&installation);
        let token = installation.mandate(&[]);
        let daemon = installation.start_to_abort_at("after_vote").await;
        let agent = daemon.agent(&token);
        let pending = agent.propose("k1", &pay("INV-1", "V-100", "700.00")).await;
        is_pending(&pending, "four_eyes");
        let paul = daemon.sign_in("paul").await;
        let path = format!("/v1/operations/{}/approve", pending.text("/id"));
        let body = json!({ "operation_hash": pending.text("/operation_hash") });
        drop(paul.request(reqwest::Method::POST, &path).json(&body).send().await);
        daemon.until_dead().await;
        let daemon = installation.start().await;
        let executed = daemon.agent(&token).until_only(&daemon, "executed").await;
        assert_eq!(executed.json["approval"]["granted_by"], json!(["paul"]));
        assert_eq!(daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_daemon_killed_after_the_claim_pays_what_was_approved_once() {
    on_both(async |place| {
        for point in ["after_claim", "before_send", "after_send", "after_settle"] {
            let installation = Installation::at(place);
            Office::people(&installation);
            let token = installation.mandate(&[]);
            let daemon = installation.start_to_abort_at(point).await;
            let agent = daemon.agent(&token);
            let pending = agent.propose("k1", &pay("INV-3", "V-100", "8000.00")).await;
            is_pending(&pending, "step_up");
            let marie = daemon.sign_in("marie").await;
            let path = format!("/v1/operations/{}/approve", pending.text("/id"));
            let body = json!({ "operation_hash": pending.text("/operation_hash") });
            drop(marie.request(reqwest::Method::POST, &path).json(&body).send().await);
            daemon.until_dead().await;
            let daemon = installation.start().await;
            // What was never booked is known to be so only after the order's time.
            daemon.advance("10s").await;
            let executed = daemon.agent(&token).until_only(&daemon, "executed").await;
            assert_eq!(executed.text("/result/amount"), "8000.00", "{point}");
            assert_eq!(daemon.payments().await.len(), 1, "{point}");
            if !place.is_sqlite() {
                // One place is one store.
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_freeze_voids_the_votes_and_what_is_pending_stays_pending() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let paul = daemon.sign_in("paul").await;
        let pending = office.four_eyes("k1").await;
        daemon.fault("read", "unreachable", FOR_LONG).await;
        let waits = approve(&paul, &pending).await;
        assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]));
        let freeze = ["freeze", "add", "--company", COMPANY, "--reason", "something is odd"];
        let added = office.installation.ok(&freeze, "");
        let id = added.split_whitespace().find(|word| word.starts_with("fz_")).unwrap();
        daemon.fault("read", "unreachable", 0).await;
        approve(&paul, &pending).await.is_problem(409, "frozen");
        let seen = office.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        is_pending_200(&seen);
        assert_eq!(seen.json["approval"]["granted_by"], json!([]), "the vote is void");
        office.installation.ok(&["freeze", "remove", id, "--reason", "understood"], "");
        // The old vote has no second life; a new one counts.
        approve(&paul, &pending).await.is_executed();
        assert_eq!(daemon.payments().await.len(), 1);
        let export = office.installation.ok(&["receipts", "export"], "");
        let votes = export.matches("\\\"kind\\\":\\\"vote\\\"").count();
        assert_eq!(votes, 2);
    })
    .await;
}

#[track_caller]
fn is_pending_200(answer: &crate::daemon::Answer) {
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text("/status"), "pending", "{}", answer.json);
}

#[tokio::test]
async fn a_disabled_approvers_vote_counts_no_more() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let paul = daemon.sign_in("paul").await;
        let pending = office.four_eyes("k1").await;
        daemon.fault("read", "unreachable", FOR_LONG).await;
        is_pending(&approve(&paul, &pending).await, "four_eyes");
        office.installation.ok(&["user", "disable", "paul"], "");
        daemon.fault("read", "unreachable", 0).await;
        approve(&paul, &pending).await.is_problem(401, "session_invalid");
        let seen = office.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        is_pending_200(&seen);
        assert_eq!(seen.json["approval"]["granted_by"], json!([]));
        // Let act again, he has to vote again.
        office.installation.ok(&["user", "enable", "paul"], "");
        let seen = office.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        is_pending_200(&seen);
        assert_eq!(daemon.payments().await, []);
        approve(&daemon.sign_in("paul").await, &pending).await.is_executed();
    })
    .await;
}

#[tokio::test]
async fn a_revoked_mandate_and_a_disabled_principal_cancel_what_is_approved_and_waits() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let paul = daemon.sign_in("paul").await;
        let pending = office.four_eyes("k1").await;
        daemon.fault("read", "unreachable", FOR_LONG).await;
        is_pending(&approve(&paul, &pending).await, "four_eyes");
        office.installation.ok(&["user", "disable", "marie"], "");
        daemon.fault("read", "unreachable", 0).await;
        let seen = paul.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        assert_eq!(seen.text("/status"), "cancelled");
        approve(&paul, &pending).await.is_problem(409, "already_decided");
        assert_eq!(daemon.payments().await, []);
    })
    .await;
}

#[tokio::test]
async fn what_changes_between_vote_and_order_goes_back_to_the_humans() {
    let scene = Scene::new().await;
    scene.installation.add_user("paul", "approver", COMPANY);
    let paul = Name::parse("paul").unwrap();
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    let hash = pending.substance.hash.clone().unwrap();
    // The bank says otherwise when everything is decided once more after the claim.
    scene.bends.vop.set_after_first(|answer| {
        answer.as_mut().unwrap().result = VopResult::CloseMatch { actual_name: None };
    });
    scene.gateway.approve(&paul, &pending.id, &hash).await.unwrap();
    let back = scene.operations().await.remove(0);
    assert_eq!((back.status, back.level), (Status::Pending, Level::FourEyes), "{back:?}");
    assert_eq!((back.granted_by.len(), scene.bends.sent(), scene.reserved().await), (0, 0, 0));
    let reasons = &back.decision.reasons;
    assert!(reasons.iter().any(|id| id == "vop-close-match-needs-four-eyes"), "{reasons:?}");
    let changed = back.substance.hash.clone().unwrap();
    assert_ne!(changed, hash);
    let old = scene.gateway.approve(&paul, &pending.id, &hash).await;
    assert!(matches!(old, Err(ApprovalError::Changed)), "{old:?}");
    let paid = scene.gateway.approve(&paul, &pending.id, &changed).await.unwrap();
    assert_eq!((paid.status, scene.bends.sent()), (Status::Executed, 1), "{paid:?}");
    scene.close().await;
}
