//! Freezes by the company's own people (API 4, DESIGN 4).

use serde_json::{Value, json};

use super::Bank;
use crate::daemon::{Agent, Answer, Daemon, pay};
use crate::votes::{approve, is_pending};

async fn freeze(human: &Agent, body: &Value) -> Answer {
    human.post_json("/v1/freezes", body).await
}

async fn thaw(human: &Agent, freeze: &Answer) -> Answer {
    thaw_by_id(human, &freeze.text("/id")).await
}

pub(super) async fn thaw_by_id(human: &Agent, id: &str) -> Answer {
    let path = format!("/v1/freezes/{id}");
    let request = human.request(reqwest::Method::DELETE, &path).json(&json!({ "reason": "found" }));
    human.send(request).await
}

async fn people(daemon: &Daemon) -> (Agent, Agent, Agent) {
    (daemon.sign_in("anna").await, daemon.sign_in("paul").await, daemon.sign_in("axel").await)
}

#[tokio::test]
async fn a_vendor_is_frozen_at_once_and_thawed_by_an_approver() {
    let bank = Bank::new().await;
    let pending = bank.office.four_eyes("k1").await;
    let (anna, paul, axel) = people(bank.daemon()).await;
    let vendor = json!({ "scope": "vendor", "vendor_id": "V-100", "reason": "a strange call" });
    freeze(&axel, &vendor).await.is_problem(403, "auditors_read_only");
    freeze(&bank.agent, &vendor).await.is_problem(403, "humans_only");
    let placed = freeze(&anna, &vendor).await;
    assert_eq!((placed.status.as_u16(), placed.text("/vendor_id")), (201, "V-100".to_owned()));
    approve(&paul, &pending).await.is_problem(409, "frozen");
    let pay_it = |bill: &str, vendor: &str, amount: &str| pay(bill, vendor, amount);
    let agent = &bank.agent;
    agent.propose("k2", &pay_it("INV-3", "V-100", "8000.00")).await.is_denied(
        403,
        "execution",
        "frozen",
    );
    agent.propose("k3", &pay_it("INV-2", "V-200", "340.00")).await.is_executed();
    let listed = paul.get("/v1/freezes").await;
    assert_eq!(listed.json["items"][0]["reason"], json!("a strange call"));
    thaw(&anna, &placed).await.is_problem(403, "not_an_approver");
    let fritz = bank.daemon().sign_in("fritz").await;
    thaw(&fritz, &placed).await.is_problem(404, "not_found");
    assert_eq!(thaw(&paul, &placed).await.status, 200);
    thaw(&paul, &placed).await.is_problem(404, "not_found");
    // What waited still waits, and is approved anew.
    approve(&paul, &pending).await.is_executed();
}

#[tokio::test]
async fn a_freeze_voids_votes_that_are_not_spent() {
    let bank = Bank::new().await;
    let pending = bank.office.four_eyes("k1").await;
    let (anna, paul, _) = people(bank.daemon()).await;
    bank.daemon().fault("read", "unreachable", 100).await;
    let waits = approve(&paul, &pending).await;
    is_pending(&waits, "four_eyes");
    assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]));
    let placed = freeze(&anna, &json!({ "scope": "company", "reason": "stop" })).await;
    assert_eq!(placed.status, 201, "{}", placed.json);
    bank.daemon().fault("read", "unreachable", 0).await;
    assert_eq!(thaw(&paul, &placed).await.status, 200);
    let path = format!("/v1/operations/{}", pending.text("/id"));
    let seen = paul.get(&path).await;
    assert_eq!(seen.text("/status"), "pending");
    assert_eq!(seen.json["approval"]["granted_by"], json!([]));
    assert_eq!(bank.daemon().payments().await, []);
}

#[tokio::test]
async fn what_is_wrong_about_a_freeze_is_said() {
    let bank = Bank::new().await;
    let (anna, ..) = people(bank.daemon()).await;
    for (body, status, code) in [
        (json!({ "scope": "all", "reason": "r" }), 403, "operator_only"),
        (json!({ "scope": "vendor", "reason": "r" }), 400, "invalid_field"),
        (json!({ "scope": "company", "vendor_id": "V-100", "reason": "r" }), 400, "invalid_field"),
        (json!({ "scope": "vendor", "vendor_id": "V-999", "reason": "r" }), 404, "not_found"),
        (json!({ "scope": "everything", "reason": "r" }), 400, "invalid_field"),
        (json!({ "scope": "company" }), 400, "invalid_field"),
    ] {
        freeze(&anna, &body).await.is_problem(status, code);
    }
    let all = bank.office.installation.ok(&["freeze", "add", "--reason", "look"], "");
    let listed = anna.get("/v1/freezes").await;
    assert_eq!(listed.json["items"][0]["scope"], json!("all"), "{all}");
    let id = listed.json["items"][0]["id"].as_str().unwrap().to_owned();
    let paul = bank.daemon().sign_in("paul").await;
    let path = format!("/v1/freezes/{id}");
    let request = paul.request(reqwest::Method::DELETE, &path).json(&json!({ "reason": "x" }));
    paul.send(request).await.is_problem(403, "operator_only");
}
