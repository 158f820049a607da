//! I5, I8: who calls, under which mandate, with which key, and whose operation it is.

use countersign::domain::mandate::Mandate;
use countersign::domain::names::{MandateId, Name, OperationId};
use countersign::domain::operation::{Operation, Status};
use countersign::domain::reason::Reason;
use countersign::gateway::authn::{AuthnError, Caller, token, token_digest};
use countersign::gateway::contract::Proposal;
use countersign::gateway::{Answer, CallError, PENDING_MAX, mandates};
use countersign::store::operations::{self, Reservation};
use countersign::store::people;
use serde_json::{Value, json};

use crate::bent::Scene;
use crate::daemon::{COMPANY, FOX_SOURCE, Installation, SOURCE, WORLD, pay};

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

#[track_caller]
fn denied(operation: &Operation, stage: &str, reason: &str) {
    let decision = &operation.decision;
    assert_eq!((operation.status, decision.stage.code()), (Status::Denied, stage), "{decision:?}");
    assert_eq!(decision.reasons, [reason], "{decision:?}");
}

async fn call(
    scene: &Scene,
    caller: &Caller,
    key: &str,
    proposal: &Value,
) -> Result<Answer, CallError> {
    let proposal = Proposal::from_body(proposal.to_string().as_bytes()).unwrap();
    scene.gateway.propose(caller, key, proposal).await
}

async fn disable(scene: &Scene) {
    let at = Some(scene.gateway.now());
    let work = scene.gateway.store().write(move |unit| {
        Box::pin(async move {
            people::set_disabled(unit.conn(), &Name::parse("marie").unwrap(), at).await
        })
    });
    assert!(work.await.unwrap().value);
}

#[tokio::test]
async fn a_principal_who_may_not_act_any_more_shuts_the_caller_out_at_every_step() {
    let scene = Scene::new().await;
    let caller = scene.caller().await;
    disable(&scene).await;
    // The mandate itself is not revoked.
    let refused = scene.gateway.authenticate(scene.token()).await.unwrap_err();
    assert!(matches!(refused, AuthnError::Refused(Reason::MandateRevoked)), "{refused:?}");
    // A caller that was let in a moment before.
    let late = call(&scene, &caller, "k", &acme()).await.unwrap().operation;
    denied(&late, "authn", "mandate_revoked");
    scene.close().await;
}

#[tokio::test]
async fn a_mandate_revoked_after_the_caller_was_let_in_pays_nothing() {
    let scene = Scene::new().await;
    let caller = scene.caller().await;
    let (store, now) = (scene.gateway.store(), scene.gateway.now());
    mandates::revoke(store, &caller.mandate.id, "stolen", "test", now).await.unwrap();
    let late = call(&scene, &caller, "k", &acme()).await.unwrap().operation;
    denied(&late, "authn", "mandate_revoked");
    assert!(scene.paid().await.is_empty());
    scene.close().await;
}

async fn register(scene: &Scene, mandate: &Mandate) {
    let keys = scene.gateway.keys();
    let token = token(keys.mandate(), scene.gateway.store().id(), mandate).unwrap();
    let (kept, digest) = (mandate.clone(), token_digest(&token));
    let work = scene.gateway.store().write(move |unit| {
        Box::pin(async move { people::insert_mandate(unit.conn(), &kept, &digest).await })
    });
    work.await.unwrap();
}

#[tokio::test]
async fn a_mandate_for_something_else_does_not_pay() {
    let scene = Scene::new().await;
    let mut caller = scene.caller().await;
    caller.mandate.id = MandateId::parse("md_00000000000000000000000000000007").unwrap();
    caller.mandate.scopes = ["vendor.update_bank_details".to_owned()].into();
    register(&scene, &caller.mandate).await;
    let answer = call(&scene, &caller, "k", &acme()).await.unwrap().operation;
    denied(&answer, "delegation", "scope_not_held");
    scene.close().await;
}

#[tokio::test]
async fn a_token_that_our_key_signed_and_the_registry_does_not_know_is_refused() {
    let scene = Scene::new().await;
    let mut mandate = scene.caller().await.mandate;
    mandate.issued_at = mandate.issued_at.plus(std::time::Duration::from_secs(1));
    let other = token(scene.gateway.keys().mandate(), scene.gateway.store().id(), &mandate);
    let refused = scene.gateway.authenticate(&other.unwrap()).await.unwrap_err();
    assert!(matches!(refused, AuthnError::Refused(Reason::TokenInvalid)), "{refused:?}");
    scene.close().await;
}

#[tokio::test]
async fn one_key_used_twice_at_once_makes_one_operation() {
    let scene = Scene::new().await;
    // While the first one is decided, another call with the same key is decided and executed.
    *scene.bends.while_verifying.lock().unwrap() = Some(scene.proposing("k", &acme()));
    let answer = call(&scene, &scene.caller().await, "k", &acme()).await.unwrap();
    assert!(answer.replayed);
    assert_eq!(answer.operation.status, Status::Executed);
    assert_eq!((scene.operations().await.len(), scene.bends.sent()), (1, 1));
    scene.close().await;
}

#[tokio::test]
async fn one_key_used_at_once_for_other_content_is_refused() {
    let scene = Scene::new().await;
    let other = pay("INV-2", "V-200", "340.00");
    *scene.bends.while_verifying.lock().unwrap() = Some(scene.proposing("k", &other));
    let refused = call(&scene, &scene.caller().await, "k", &acme()).await;
    assert!(matches!(refused, Err(CallError::KeyReused)), "{refused:?}");
    assert_eq!((scene.operations().await.len(), scene.paid().await.len()), (1, 1));
    scene.close().await;
}

#[tokio::test]
async fn no_write_moves_an_operation_along_a_step_that_does_not_exist() {
    let scene = Scene::new().await;
    let done = scene.propose("k", &acme()).await;
    assert_eq!(done.status, Status::Executed);
    for status in [Status::Executing, Status::Denied, Status::Pending, Status::Unknown] {
        let before = done.clone();
        let after = Operation { status, ..done.clone() };
        let held = Reservation { reserved: false, executing_since: None };
        let moved = scene.gateway.store().write(move |unit| {
            Box::pin(async move { operations::update(unit.conn(), &before, &after, held).await })
        });
        assert!(moved.await.is_err(), "{status:?}");
    }
    assert_eq!(scene.operations().await[0], done);
    scene.close().await;
}

#[tokio::test]
async fn the_store_itself_holds_one_live_operation_of_a_bill() {
    let scene = Scene::new().await;
    let waiting = scene.propose("k", &pay("INV-1", "V-100", "1.00")).await;
    assert_eq!(waiting.status, Status::Pending);
    let second = Operation {
        id: OperationId::parse("op_00000000000000000000000000000007").unwrap(),
        key: "k2".to_owned(),
        ..waiting
    };
    let held = Reservation { reserved: false, executing_since: None };
    let insert = async |second: Operation| {
        let work = scene.gateway.store().write(move |unit| {
            Box::pin(async move { operations::insert(unit.conn(), &second, held).await })
        });
        work.await.is_ok()
    };
    assert!(!insert(second.clone()).await);
    assert!(insert(Operation { status: Status::Denied, ..second }).await);
    scene.close().await;
}

fn many_bills() -> String {
    let bill = |at: i64| {
        format!(
            "[company.blue-sparrow.bill.MANY-{at}]\nvendor = \"V-100\"\namount = \"20.00\"\n\
             currency = \"EUR\"\ndue = \"2099-12-31\"\n"
        )
    };
    let bills: String = (0..=PENDING_MAX).map(bill).collect();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

#[tokio::test]
async fn one_mandate_does_not_flood_the_people_who_approve() {
    let installation = Installation::with(&many_bills(), "sqlite://countersign.db", "");
    let scene = Scene::of(installation).await;
    // A part of a bill needs four eyes.
    let part = |at: i64| pay(&format!("MANY-{at}"), "V-100", "1.00");
    for at in 0..PENDING_MAX {
        assert_eq!(scene.propose(&format!("k{at}"), &part(at)).await.status, Status::Pending);
    }
    let answer = scene.propose("one more", &part(PENDING_MAX)).await;
    denied(&answer, "execution", "too_many_pending");
    scene.close().await;
}

#[tokio::test]
async fn an_operation_is_shown_to_its_own_agent_of_its_own_principal_and_company_only() {
    let installation = Installation::new();
    installation.add_principal();
    installation.add_user("jean", "accountant", COMPANY);
    installation.add_user("marie", "accountant", "red-fox");
    let token = installation.mandate(&[]);
    let others = [
        installation.mandate_of("marie", "other", COMPANY, SOURCE, &[]),
        installation.mandate_of("jean", "ap-agent", COMPANY, SOURCE, &[]),
        installation.mandate_of("marie", "ap-agent", "red-fox", FOX_SOURCE, &[]),
    ];
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let mut prepare = acme();
    prepare["mode"] = json!("prepare");
    let prepared = agent.propose("k", &prepare).await.text("/id");
    let waiting = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(waiting.text("/status"), "pending", "{}", waiting.json);
    for other in others.iter().map(|token| daemon.agent(token)) {
        for path in [String::new(), "/commit".to_owned(), "/cancel".to_owned()] {
            let address = format!("/v1/operations/{prepared}{path}");
            let answer = if path.is_empty() {
                other.get(&address).await
            } else {
                other.post(&address).await
            };
            assert_eq!(answer.status.as_u16(), 404, "{address}: {}", answer.json);
        }
        assert_eq!(other.get("/v1/operations").await.json["items"], json!([]));
        // A key is its own agent's: the same one makes another operation.
        let own = other.propose("k", &pay("INV-999", "V-100", "1.00")).await;
        own.is_denied(403, "provenance", "bill_not_found");
    }
    // Another agent learns that a bill is taken, not by which operation.
    for other in others[..2].iter().map(|token| daemon.agent(token)) {
        let second = other.propose("t", &pay("INV-3", "V-100", "8000.00")).await;
        second.is_denied(403, "execution", "operation_in_progress");
        assert!(!second.json.to_string().contains(&waiting.text("/id")), "{}", second.json);
    }
    assert!(daemon.payments().await.is_empty());
    // The same principal's same agent under another mandate is the same caller.
    let again = daemon.agent(&installation.mandate(&[]));
    again.post(&format!("/v1/operations/{prepared}/commit")).await.is_executed();
}

#[tokio::test]
async fn what_is_over_is_neither_committed_nor_cancelled() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let refused = async |address: String, code: &str| {
        let answer = agent.post(&address).await;
        assert_eq!((answer.status.as_u16(), answer.text("/code").as_str()), (409, code));
    };
    let mut prepare = acme();
    prepare["mode"] = json!("prepare");
    let prepared = agent.propose("a", &prepare).await.text("/id");
    let cancelled = agent.post(&format!("/v1/operations/{prepared}/cancel")).await;
    assert_eq!(cancelled.text("/status"), "cancelled");
    refused(format!("/v1/operations/{prepared}/commit"), "not_committable").await;
    let done = agent.propose("b", &acme()).await;
    done.is_executed();
    refused(format!("/v1/operations/{}/cancel", done.text("/id")), "not_cancellable").await;
    let mut unclear = pay("INV-2", "V-200", "340.00");
    unclear["mode"] = json!("now");
    agent.propose("c", &unclear).await.is_denied(422, "contract", "invalid_mode");
    assert_eq!(daemon.payments().await.len(), 1);
}

#[tokio::test]
async fn a_denial_that_is_no_error_binds_its_key() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    daemon.put_sanctions(crate::daemon::ACME, true).await;
    let listed = agent.propose("k", &acme()).await;
    listed.is_denied(403, "policy", "sanctioned-payee-never-paid");
    daemon.put_sanctions(crate::daemon::ACME, false).await;
    let again = agent.propose("k", &acme()).await;
    again.is_denied(403, "policy", "sanctioned-payee-never-paid");
    assert_eq!(again.headers["idempotent-replayed"], "true");
    agent.propose("k2", &acme()).await.is_executed();
}

#[tokio::test]
async fn bills_of_two_companies_with_one_id_are_two_bills() {
    let world = WORLD.replace("bill.FOX-1]", "bill.INV-1]");
    let installation = Installation::with(&world, "sqlite://countersign.db", "");
    installation.add_principal();
    installation.add_user("renard", "accountant", "red-fox");
    let fox = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    daemon.agent(&token).propose("k", &acme()).await.is_executed();
    daemon.agent(&fox).propose("k", &pay("INV-1", "F-1", "50.00")).await.is_executed();
    assert_eq!(daemon.payments().await.len(), 2);
}

#[tokio::test]
async fn one_mandate_calls_only_so_often() {
    let installation = Installation::new();
    let file = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let few = text.replace("proposals_per_minute = 100000", "proposals_per_minute = 2");
    assert_ne!(few, text);
    std::fs::write(&file, few).unwrap();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    for key in ["a", "b"] {
        let missing = agent.propose(key, &pay("INV-999", "V-100", "1.00")).await;
        missing.is_denied(403, "provenance", "bill_not_found");
    }
    let limited = agent.propose("c", &acme()).await;
    assert_eq!((limited.status.as_u16(), limited.text("/code").as_str()), (429, "rate_limited"));
    assert_eq!(agent.get("/v1/bills/INV-1").await.status.as_u16(), 200);
    assert!(daemon.payments().await.is_empty());
    daemon.advance("61s").await;
    agent.propose("c", &acme()).await.is_executed();
}
