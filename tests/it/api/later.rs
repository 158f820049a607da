//! What becomes of operations that are under way when somebody freezes, revokes or is disabled
//! (API 3 and 4).

use serde_json::json;

use crate::bank::{Bank, NEW, call, confirmed};
use crate::daemon::{COMPANY, pay};
use crate::votes::{Office, approve, is_pending, reject};

/// More failed calls than any test waits for.
const FOR_LONG: u32 = 1_000_000;

#[tokio::test]
async fn what_is_unknown_is_settled_under_a_freeze_and_after_a_revocation() {
    for what in ["freeze", "revoke", "disable"] {
        let office = Office::new().await;
        let (daemon, agent) = (&office.daemon, &office.agent);
        let pending = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
        is_pending(&pending, "step_up");
        daemon.fault("register_payment", "lost_answer", 1).await;
        daemon.fault("find_payment", "unreachable", FOR_LONG).await;
        let unknown = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
        assert_eq!(unknown.text("/status"), "unknown", "{}", unknown.json);
        match what {
            "freeze" => {
                let anna = daemon.sign_in("anna").await;
                let body = json!({ "scope": "company", "reason": "look" });
                assert_eq!(anna.post_json("/v1/freezes", &body).await.status, 201);
            }
            "revoke" => {
                let adam = daemon.sign_in("adam").await;
                let id = agent.get("/v1/mandates/current").await.text("/id");
                let path = format!("/v1/mandates/{id}/revoke");
                let revoked = adam.post_json(&path, &json!({ "reason": "stolen" })).await;
                assert_eq!(revoked.status, 200, "{}", revoked.json);
            }
            _ => {
                let adam = daemon.sign_in("adam").await;
                assert_eq!(adam.post("/v1/users/marie/disable").await.status, 200);
            }
        }
        daemon.fault("find_payment", "unreachable", 0).await;
        let paul = daemon.sign_in("paul").await;
        let path = format!("/v1/operations/{}?wait=60s", unknown.text("/id"));
        let settled = paul.get(&path).await;
        assert_eq!(settled.text("/status"), "executed", "{what}: {}", settled.json);
        // A freeze leaves what waits; the other two cancel it at once.
        let waited = paul.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        let expected = if what == "freeze" { "pending" } else { "cancelled" };
        assert_eq!(waited.text("/status"), expected, "{what}");
        assert_eq!(daemon.payments().await.len(), 1);
    }
}

#[tokio::test]
async fn what_a_disabled_human_began_himself_is_cancelled() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    daemon.put_vendor("V-100", json!({ "phone": "+33199999999" })).await;
    let (anna, adam) = (daemon.sign_in("anna").await, daemon.sign_in("adam").await);
    let path = "/v1/vendors/V-100/phone-confirmations";
    let body = json!({ "phone": "+33199999999", "how": "their registered letter" });
    let begun = anna.post_json(path, &body).await;
    is_pending(&begun, "four_eyes");
    assert_eq!(adam.post("/v1/users/anna/disable").await.status, 200);
    let paul = daemon.sign_in("paul").await;
    let seen = paul.get(&format!("/v1/operations/{}", begun.text("/id"))).await;
    assert_eq!(seen.text("/status"), "cancelled");
    approve(&paul, &begun).await.is_problem(409, "already_decided");
    // The number is free for whoever comes next.
    is_pending(&paul.post_json(path, &body).await, "four_eyes");
}

#[tokio::test]
async fn a_disabled_callers_call_back_has_no_second_life() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let installation = &bank.office.installation;
    installation.ok(&["user", "disable", "anna"], "");
    installation.ok(&["user", "enable", "anna"], "");
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    bank.called(NEW).await;
    is_pending(&bank.ask("k2", NEW).await, "four_eyes");
}

#[tokio::test]
async fn a_rejected_bank_change_is_not_accepted_again_for_a_day() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    is_pending(&pending, "four_eyes");
    let paul = bank.daemon().sign_in("paul").await;
    assert_eq!(reject(&paul, &pending, "ask them again").await.text("/status"), "rejected");
    bank.ask("k2", NEW).await.is_denied(403, "execution", "recently_rejected");
    let twin = ["--scope", "vendor.update_bank_details"];
    let source = crate::daemon::SOURCE;
    let twin = bank.office.installation.mandate_of("marie", "twin", COMPANY, source, &twin);
    let twin = bank.daemon().agent(&twin);
    let again = twin.propose("k", &crate::bank::change("V-100", NEW)).await;
    again.is_denied(403, "execution", "recently_rejected");
    bank.daemon().advance("24h 1m").await;
    is_pending(&bank.ask("k3", NEW).await, "four_eyes");
}

#[tokio::test]
async fn a_person_who_called_may_reject_but_only_for_another_reason() {
    let bank = Bank::new().await;
    let olga = bank.daemon().sign_in("olga").await;
    assert_eq!(call(&olga, "V-100", &confirmed(NEW)).await.json["counts"], json!(true));
    let pending = bank.ask("k1", NEW).await;
    is_pending(&pending, "four_eyes");
    // She could not approve it, is not its principal and no admin.
    reject(&olga, &pending, "no").await.is_problem(403, "not_an_approver");
    let path = format!("/v1/operations/{}", pending.text("/id"));
    assert_eq!(olga.get(&path).await.text("/status"), "pending");
    let adam = bank.daemon().sign_in("adam").await;
    assert_eq!(reject(&adam, &pending, "no").await.text("/status"), "rejected");
}
