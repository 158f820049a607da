//! The states of an operation, each with the HTTP status that it has when the same key is sent again,
//! and what a call waits for.

use serde_json::json;

use crate::daemon::{Agent, Answer, Installation, pay};
use crate::votes::{Office, approve, is_pending, reject};

/// More failed calls than any test waits for.
const FOR_LONG: u32 = 1_000_000;

/// The same key with the same content: the same operation, with the status of its state now.
async fn replayed(
    agent: &Agent,
    key: &str,
    proposal: &serde_json::Value,
    is: (u16, &str),
) -> Answer {
    let again = agent.propose(key, proposal).await;
    let found = (again.status.as_u16(), again.text("/status"));
    assert_eq!(found, (is.0, is.1.to_owned()), "{}", again.json);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    again
}

#[tokio::test]
async fn the_same_key_has_the_status_of_each_state() {
    let office = Office::new().await;
    let (daemon, agent) = (&office.daemon, &office.agent);
    let paul = daemon.sign_in("paul").await;
    let part = |amount: &str| pay("INV-1", "V-100", amount);
    let first = async |key: &str, proposal: &serde_json::Value, status: u16| {
        let answer = agent.propose(key, proposal).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.json);
        assert!(!answer.headers.contains_key("idempotent-replayed"));
        answer
    };

    let mut prepare = part("1200.00");
    prepare["mode"] = json!("prepare");
    let prepared = first("prepared", &prepare, 200).await;
    let again = replayed(agent, "prepared", &prepare, (200, "prepared")).await;
    assert_eq!(again.json, prepared.json);

    let pending = first("rejected", &part("700.00"), 202).await;
    let again = replayed(agent, "rejected", &part("700.00"), (202, "pending")).await;
    assert_eq!(again.json, pending.json);
    reject(&paul, &pending, "no").await;
    replayed(agent, "rejected", &part("700.00"), (200, "rejected")).await;

    let bill = pay("INV-2", "V-200", "100.00");
    let pending = first("cancelled", &bill, 202).await;
    let cancel = format!("/v1/operations/{}/cancel", pending.text("/id"));
    // An empty object is as good as no body.
    let cancelled = agent.post_json(&cancel, &json!({})).await;
    assert_eq!((cancelled.status.as_u16(), cancelled.text("/status").as_str()), (200, "cancelled"));
    assert_eq!(agent.post(&cancel).await.json, cancelled.json, "withdrawn twice is once");
    replayed(agent, "cancelled", &bill, (200, "cancelled")).await;

    let over = pay("INV-2", "V-200", "340.01");
    first("denied", &over, 403).await;
    replayed(agent, "denied", &over, (403, "denied")).await;
    let mut odd = over.clone();
    odd["args"]["amount"] = json!(340);
    first("odd", &odd, 422).await;
    replayed(agent, "odd", &odd, (422, "denied")).await;

    daemon.fault("register_payment", "refuse", 1).await;
    let bill = pay("INV-2", "V-200", "340.00");
    let failed = first("failed", &bill, 200).await;
    assert_eq!(failed.text("/status"), "failed");
    replayed(agent, "failed", &bill, (200, "failed")).await;

    first("executed", &bill, 201).await;
    let done = replayed(agent, "executed", &bill, (201, "executed")).await;
    let result = done.json["result"].as_object().unwrap();
    assert!(result["payment_ref"].as_str().is_some_and(|id| !id.is_empty()), "{result:?}");
    for (name, value) in
        [("amount", "340.00"), ("currency", "EUR"), ("bill_state", "paid"), ("amount_due", "0.00")]
    {
        assert_eq!(result[name], value, "{result:?}");
    }

    let large = pay("INV-3", "V-100", "8000.00");
    let pending = first("expired", &large, 202).await;
    daemon.advance("73h").await;
    let path = format!("/v1/operations/{}", pending.text("/id"));
    daemon.until("expired", async || agent.get(&path).await.text("/status") == "expired").await;
    replayed(agent, "expired", &large, (200, "expired")).await;
}

#[tokio::test]
async fn what_is_claimed_or_unknown_is_answered_with_202() {
    let office = Office::new().await;
    let (daemon, agent) = (&office.daemon, &office.agent);
    let bill = pay("INV-1", "V-100", "1200.00");
    daemon.fault("register_payment", "unreachable", FOR_LONG).await;
    let executing = agent.propose("executing", &bill).await;
    assert_eq!((executing.status.as_u16(), executing.text("/status").as_str()), (202, "executing"));
    let again = replayed(agent, "executing", &bill, (202, "executing")).await;
    assert_eq!(again.text("/id"), executing.text("/id"));
    let cancel = format!("/v1/operations/{}/cancel", executing.text("/id"));
    agent.post(&cancel).await.is_problem(409, "not_cancellable");
    daemon.fault("register_payment", "unreachable", 0).await;
    let path = format!("/v1/operations/{}?wait=60s", executing.text("/id"));
    assert_eq!(agent.get(&path).await.text("/status"), "executed");

    daemon.fault("register_payment", "lost_answer", 1).await;
    daemon.fault("find_payment", "unreachable", FOR_LONG).await;
    let bill = pay("INV-2", "V-200", "340.00");
    let unknown = agent.propose("unknown", &bill).await;
    assert_eq!((unknown.status.as_u16(), unknown.text("/status").as_str()), (202, "unknown"));
    replayed(agent, "unknown", &bill, (202, "unknown")).await;
    agent
        .post(&format!("/v1/operations/{}/cancel", unknown.text("/id")))
        .await
        .is_problem(409, "not_cancellable");
    daemon.fault("find_payment", "unreachable", 0).await;
    // Following it waits for it to leave a waiting state, and it settles by itself.
    let path = format!("/v1/operations/{}?wait=60s", unknown.text("/id"));
    assert_eq!(agent.get(&path).await.text("/status"), "executed");
    replayed(agent, "unknown", &bill, (201, "executed")).await;
    assert_eq!(daemon.payments().await.len(), 2);
}

#[tokio::test]
async fn what_the_erp_takes_a_moment_for_is_waited_for() {
    let office = Office::new().await;
    let (daemon, agent) = (&office.daemon, &office.agent);
    daemon.slow("register_payment", "1s").await;
    agent.propose("posted", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    let mut prepare = pay("INV-1", "V-100", "1200.00");
    prepare["mode"] = json!("prepare");
    let prepared = agent.propose("committed", &prepare).await;
    daemon.slow("register_payment", "1s").await;
    let commit = format!("/v1/operations/{}/commit", prepared.text("/id"));
    agent.post_json(&commit, &json!({})).await.is_executed();
    let pending = office.step_up("approved").await;
    let marie = daemon.sign_in("marie").await;
    daemon.slow("register_payment", "1s").await;
    approve(&marie, &pending).await.is_executed();
}

#[tokio::test]
async fn a_prepared_one_holds_no_slot_and_expires_after_a_day() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let prepare = |amount: &str| {
        let mut proposal = pay("INV-1", "V-100", amount);
        proposal["mode"] = json!("prepare");
        proposal
    };
    let mut ids = Vec::new();
    for (key, amount) in [("a", "1200.00"), ("b", "700.00"), ("c", "1200.00")] {
        let prepared = agent.propose(key, &prepare(amount)).await;
        let found = (prepared.status.as_u16(), prepared.text("/status"));
        assert_eq!(found, (200, "prepared".to_owned()), "{}", prepared.json);
        ids.push(prepared.text("/id"));
    }
    let second = agent.get(&format!("/v1/operations/{}", ids[1])).await;
    assert_eq!(second.text("/decision/effect"), "four_eyes", "it says what a commit would do");
    // Another one on the same bill is begun and withdrawn beside them.
    let part = agent.propose("d", &pay("INV-1", "V-100", "100.00")).await;
    is_pending(&part, "four_eyes");
    let commit = |id: &str| format!("/v1/operations/{id}/commit");
    // That one holds it, and is decided on by each commit.
    let held = agent.post(&commit(&ids[1])).await;
    held.is_denied(403, "execution", "operation_in_progress");
    agent.post(&format!("/v1/operations/{}/cancel", part.text("/id"))).await;
    daemon.advance("23h 59m").await;
    agent.post(&commit(&ids[0])).await.is_executed();
    daemon.advance("1m").await;
    // The daemon's worker may not have come to it yet.
    agent.post(&commit(&ids[2])).await.is_problem(409, "not_committable");
    let path = format!("/v1/operations/{}", ids[2]);
    daemon.until("expired", async || agent.get(&path).await.text("/status") == "expired").await;
    agent.post(&commit(&ids[2])).await.is_problem(409, "not_committable");
    assert_eq!(daemon.payments().await.len(), 1);
}
