//! What becomes of operations that are under way when somebody freezes, revokes or is disabled
//! (API 3 and 4).

use countersign::domain::names::{AlarmId, Name};
use countersign::gateway::alarm::AlarmError;
use serde_json::json;

use crate::bank::{Bank, NEW, call, confirmed};
use crate::bent::{Scene, company};
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

#[tokio::test]
async fn a_company_sees_its_own_freezes_and_those_of_everything() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let (anna, fritz) = (daemon.sign_in("anna").await, daemon.sign_in("fritz").await);
    for body in [
        json!({ "scope": "company", "reason": "ours" }),
        json!({ "scope": "vendor", "vendor_id": "V-100", "reason": "ours too" }),
    ] {
        assert_eq!(anna.post_json("/v1/freezes", &body).await.status, 201);
    }
    let listed = async |human: &crate::daemon::Agent| {
        let page = human.get("/v1/freezes").await;
        let items = page.json["items"].as_array().unwrap();
        items.iter().map(|item| item["scope"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&anna).await, ["company", "vendor"]);
    assert_eq!(listed(&fritz).await, [""; 0]);
    office.installation.ok(&["freeze", "add", "--reason", "everything"], "");
    assert_eq!(listed(&anna).await, ["company", "vendor", "all"]);
    assert_eq!(listed(&fritz).await, ["all"]);
    office.agent.get("/v1/freezes").await.is_problem(403, "humans_only");
}

#[tokio::test]
async fn an_alarm_of_the_whole_store_is_the_operators() {
    let scene = Scene::new().await;
    scene.installation.add_user("paul", "approver", COMPANY);
    scene.bends.proof.set(|answer| answer.as_mut().unwrap().newest_seq = 2);
    assert!(!scene.workers().prove().await, "the store is behind");
    let export = scene.installation.ok(&["receipts", "export"], "");
    let mut receipts = export.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = line["receipt"].as_str()?;
        Some(serde_json::from_str::<serde_json::Value>(text).unwrap())
    });
    let raised = receipts.find(|receipt| receipt["kind"] == "alarm").unwrap();
    assert_eq!(
        (&raised["company"], &raised["data"]["kind"]),
        (&json!(null), &json!("store_behind"))
    );
    let id = AlarmId::parse(raised["data"]["alarm"].as_str().unwrap()).unwrap();
    let paul = Name::parse("paul").unwrap();
    let refused = scene.gateway.close_alarm(&paul, &id, "seen").await;
    assert!(matches!(refused, Err(AlarmError::NotFound)), "{refused:?}");
    let shown = scene.gateway.alarms(&company(), false, String::new(), 50).await.unwrap();
    assert!(shown.is_empty(), "{shown:?}");
    // Found again, it is one freeze.
    assert!(!scene.workers().prove().await);
    assert_eq!(scene.causes_of_freezes().await, ["store_behind"]);
    scene.close().await;
}

#[tokio::test]
async fn what_a_human_began_may_be_begun_again_after_a_rejection() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    daemon.put_vendor("V-100", json!({ "phone": "+33199999999" })).await;
    let (anna, paul) = (daemon.sign_in("anna").await, daemon.sign_in("paul").await);
    let path = "/v1/vendors/V-100/phone-confirmations";
    let body = json!({ "phone": "+33199999999", "how": "their registered letter" });
    let begun = anna.post_json(path, &body).await;
    reject(&paul, &begun, "send the letter along").await;
    // The day of rest is for agents.
    is_pending(&anna.post_json(path, &body).await, "four_eyes");
}

#[tokio::test]
async fn a_no_ends_the_request_that_it_is_about_and_no_other() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    let (paul, olga) = (daemon.sign_in("paul").await, daemon.sign_in("olga").await);
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    is_pending(&pending, "four_eyes");
    // The bank does not answer, so paul's vote waits.
    daemon.fault("vop", "unreachable", FOR_LONG).await;
    let waits = approve(&paul, &pending).await;
    assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]), "{}", waits.json);
    let no = |iban: &str| {
        let mut body = confirmed(iban);
        body["outcome"] = json!("denied");
        body
    };
    assert_eq!(call(&olga, "V-100", &no("BE68539007547034")).await.status, 201);
    let path = format!("/v1/operations/{}", pending.text("/id"));
    assert_eq!(bank.agent.get(&path).await.text("/status"), "pending");
    assert_eq!(call(&olga, "V-100", &no(NEW)).await.status, 201);
    let ended = bank.agent.get(&path).await;
    ended.is_denied(200, "policy", "callback_denied");
    assert_eq!(ended.json["approval"], serde_json::Value::Null, "no vote is left");
    assert_eq!(daemon.sign_in("anna").await.get("/v1/freezes").await.json["items"], json!([]));
}

#[tokio::test]
async fn a_no_about_an_account_that_is_on_file_no_more_freezes_nobody() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    let anna = daemon.sign_in("anna").await;
    let no = async |iban: &str| {
        let mut body = confirmed(iban);
        body["outcome"] = json!("denied");
        assert_eq!(call(&anna, "V-100", &body).await.status, 201);
        assert_eq!(anna.get("/v1/freezes").await.json["items"], json!([]), "{iban}");
    };
    // One that somebody put there, and that is archived by now.
    daemon.put_vendor("V-100", json!({ "iban": NEW })).await;
    let stopped = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
    stopped.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    let both = json!({ "accounts": [
        { "iban": NEW, "active": false }, { "iban": "DE96999999997000000000", "active": true },
    ] });
    daemon.put_vendor("V-100", both).await;
    bank.agent.propose("p2", &pay("INV-1", "V-100", "1200.00")).await;
    no(NEW).await;

    // One that we replaced by the procedure is nobody's to pay to either.
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &bank.ask("k", NEW).await).await.is_executed();
    let mut body = confirmed(crate::daemon::ACME);
    body["outcome"] = json!("denied");
    assert_eq!(call(&paul, "V-100", &body).await.status, 201);
    assert_eq!(paul.get("/v1/freezes").await.json["items"], json!([]));
}

#[tokio::test]
async fn a_read_back_that_differs_voids_what_was_confirmed_before() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let olga = bank.daemon().sign_in("olga").await;
    let mut differs = confirmed(NEW);
    differs["read_back"] = json!("164301");
    let answer = call(&olga, "V-100", &differs).await;
    assert_eq!(answer.json["why_not"], json!(["read_back_differs"]));
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    assert_eq!(crate::bank::alarms(&olga, "callback_denied").await.len(), 1);
}

#[tokio::test]
async fn a_number_that_changed_after_the_call_is_not_the_one_that_was_called() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    bank.called(NEW).await;
    let (anna, paul) = (daemon.sign_in("anna").await, daemon.sign_in("paul").await);
    for phone in ["+33199999999", crate::bank::PHONE] {
        daemon.put_vendor("V-100", json!({ "phone": phone })).await;
        bank.ask(phone, NEW).await;
    }
    // The number is confirmed by two, and still came after that call.
    let path = "/v1/vendors/V-100/phone-confirmations";
    let body = json!({ "phone": crate::bank::PHONE, "how": "their registered letter" });
    approve(&paul, &anna.post_json(path, &body).await).await.is_executed();
    let refused = bank.ask("k", NEW).await;
    refused.is_denied(403, "policy", "bank-change-phone-must-be-trusted");
    bank.called(NEW).await;
}
