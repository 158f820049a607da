//! What is judged again under the store's lock: nothing is claimed on what was true before it. Each
//! change comes while the payee is being verified, after the store was read.

use countersign::domain::decision::Level;
use countersign::domain::names::Name;
use countersign::domain::operation::{Operation, Status};
use countersign::gateway::freeze::{self, FreezeScope};
use countersign::gateway::{ApprovalError, mandates, people};
use countersign::ids::SystemRandomness;
use serde_json::Value;

use crate::attacks::permit_everything;
use crate::bent::Scene;
use crate::daemon::{COMPANY, Installation, pay};

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

fn paul() -> Name {
    Name::parse("paul").unwrap()
}

async fn with_paul() -> Scene {
    let scene = Scene::new().await;
    scene.installation.add_user("paul", "approver", COMPANY);
    scene
}

/// Freezes the company while the payee is being verified the next time.
fn freeze_meanwhile(scene: &Scene) {
    let (store, now) = (scene.gateway.store().clone(), scene.gateway.now());
    *scene.bends.while_verifying.lock().unwrap() = Some(Box::pin(async move {
        let scope = FreezeScope::Company(COMPANY.to_owned());
        let random = SystemRandomness::default();
        freeze::add(&store, &random, scope, "odd", "test", now).await.unwrap();
    }));
}

#[track_caller]
fn denied(operation: &Operation, stage: &str, reason: &str) {
    let decision = &operation.decision;
    assert_eq!((operation.status, decision.stage.code()), (Status::Denied, stage), "{decision:?}");
    assert_eq!(decision.reasons, [reason], "{decision:?}");
}

#[tokio::test]
async fn what_is_revoked_or_frozen_meanwhile_is_not_claimed() {
    for (what, stage, reason) in [
        ("revoked", "authn", "mandate_revoked"),
        ("disabled", "authn", "mandate_revoked"),
        ("frozen", "execution", "frozen"),
    ] {
        let scene = Scene::new().await;
        let mandate = scene.caller().await.mandate;
        let (store, now) = (scene.gateway.store().clone(), scene.gateway.now());
        if what == "frozen" {
            freeze_meanwhile(&scene);
        } else {
            *scene.bends.while_verifying.lock().unwrap() = Some(Box::pin(async move {
                if what == "revoked" {
                    mandates::revoke(&store, &mandate.id, "stolen", "test", now).await.unwrap();
                } else {
                    people::disable(&store, &mandate.principal, now).await.unwrap();
                }
            }));
        }
        let ended = scene.propose("k", &acme()).await;
        denied(&ended, stage, reason);
        assert_eq!(scene.gateway.newest_order().await.unwrap(), 0, "{what}: it was claimed");
        assert_eq!(scene.bends.sent(), 0);
        scene.close().await;
    }
}

#[tokio::test]
async fn what_went_out_meanwhile_counts_for_the_limits_before_the_claim() {
    let installation = Installation::new();
    let limit = "@id(\"small-day\")\n@reason(\"a small limit\")\n\
                 forbid (principal, action == Action::\"invoice.pay\", resource)\n\
                 when { context.vendor_auto_24h_e2 + context.amount_e2 > 100000 }\n\
                 unless { context.approval_level >= 1 };\n";
    permit_everything(&installation, limit);
    let scene = Scene::of(installation).await;
    let part = |amount| pay("INV-1", "V-100", amount);
    *scene.bends.while_verifying.lock().unwrap() = Some(scene.proposing("a", &part("700.00")));
    let second = scene.propose("b", &part("400.00")).await;
    assert_eq!((second.status, second.level), (Status::Pending, Level::StepUp), "{second:?}");
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 1, "only the first was claimed");
    scene.close().await;
}

#[tokio::test]
async fn what_waits_for_a_human_is_not_claimed() {
    let scene = with_paul().await;
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    assert_eq!(pending.status, Status::Pending);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 0);
    // Nor is what is another thing after the vote.
    scene.bends.bill.set(|answer| {
        let reading = answer.as_mut().unwrap().as_mut().unwrap();
        reading.bill.reference = Some("another".to_owned());
    });
    let hash = pending.substance.hash.clone().unwrap();
    let changed = scene.gateway.approve(&paul(), &pending.id, &hash).await.unwrap();
    assert_eq!(changed.status, Status::Pending);
    assert_ne!(changed.substance.hash, pending.substance.hash);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 0);
    scene.close().await;
}

#[tokio::test]
async fn a_freeze_while_a_vote_is_decided_on_leaves_what_waits() {
    let scene = with_paul().await;
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    let hash = pending.substance.hash.clone().unwrap();
    freeze_meanwhile(&scene);
    let after = scene.gateway.approve(&paul(), &pending.id, &hash).await.unwrap();
    assert_eq!((after.status, after.granted_by.len()), (Status::Pending, 0), "{after:?}");
    assert_eq!(after.substance.hash, pending.substance.hash);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 0);
    scene.close().await;
}

#[tokio::test]
async fn nothing_is_claimed_for_a_vote_while_the_erps_side_is_not_proved() {
    let scene = with_paul().await;
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    let hash = pending.substance.hash.clone().unwrap();
    scene.pack.set_not_ready(vec!["altered".to_owned()]);
    let waits = scene.gateway.approve(&paul(), &pending.id, &hash).await.unwrap();
    assert_eq!(
        (waits.status, waits.granted_by.as_slice()),
        (Status::Pending, &["paul".to_owned()][..])
    );
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 0);
    scene.pack.set_not_ready(Vec::new());
    scene.settle().await;
    // Voted for, claimed, done.
    let done = scene.until_written(4).await;
    assert_eq!((done.status, scene.bends.sent()), (Status::Executed, 1), "{done:?}");
    scene.close().await;
}

#[tokio::test]
async fn a_voter_who_is_disabled_while_it_is_decided_lets_nothing_through() {
    let scene = with_paul().await;
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    let hash = pending.substance.hash.clone().unwrap();
    let (store, now) = (scene.gateway.store().clone(), scene.gateway.now());
    *scene.bends.while_verifying.lock().unwrap() = Some(Box::pin(async move {
        people::disable(&store, &paul(), now).await.unwrap();
    }));
    let after = scene.gateway.approve(&paul(), &pending.id, &hash).await.unwrap();
    assert_eq!((after.status, after.granted_by.len()), (Status::Pending, 0), "{after:?}");
    assert_eq!(after.substance.hash, pending.substance.hash);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 0);
    scene.close().await;
}

#[tokio::test]
async fn what_is_over_is_over_before_a_worker_comes_by() {
    let scene = with_paul().await;
    let pending = scene.propose("k", &pay("INV-1", "V-100", "700.00")).await;
    let hash = pending.substance.hash.clone().unwrap();
    scene.advance("72h").await;
    let vote = scene.gateway.approve(&paul(), &pending.id, &hash).await;
    assert!(matches!(vote, Err(ApprovalError::Expired)), "{vote:?}");
    let no = scene.gateway.reject(&paul(), &pending.id, "too late").await;
    assert!(matches!(no, Err(ApprovalError::Expired)), "{no:?}");
    assert_eq!(scene.operations().await, [pending]);
    scene.close().await;
}
