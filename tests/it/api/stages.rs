//! Stages and their reasons: what is decided where, and what only the receipt tells.

use serde_json::{Value, json};

use crate::daemon::{
    ACME, Agent, COMPANY, Daemon, GLOBEX, Installation, NOBODYS, SOURCE, pay, pay_to,
};
use crate::support::{Place, on_both};

async fn ready(installation: Installation) -> (Installation, Daemon, Agent) {
    installation.add_principal();
    let token = installation.mandate(&["--scope", "vendor.update_bank_details"]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

/// The receipts of an export that are about that operation, or about none.
fn receipts(installation: &Installation) -> Vec<Value> {
    let export = installation.ok(&["receipts", "export"], "");
    let texts = export.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = line["receipt"].as_str()?.to_owned();
        Some(serde_json::from_str(&text).unwrap())
    });
    texts.collect()
}

#[tokio::test]
async fn whose_a_wrong_payee_is_stands_in_the_receipt_only() {
    on_both(async |place| {
        let (installation, daemon, agent) = ready(Installation::at(place)).await;
        let asked = [
            ("nobodys", json!(NOBODYS), "nobody"),
            ("globex", json!(GLOBEX), "V-200"),
            ("no-vendor", json!({ "ref": "V-999" }), "nobody"),
            ("other-vendor", json!({ "ref": "V-200" }), "V-200"),
            ("other-company", json!({ "ref": "F-1" }), "nobody"),
            ("own", json!(SOURCE), "nobody"),
        ];
        let mut answers = Vec::new();
        for (key, payee, _) in &asked {
            let denied = agent.propose(key, &pay_to("INV-1", payee, "1200.00")).await;
            denied.is_denied(403, "provenance", "payee_not_on_file");
            answers.push(denied);
        }
        // Nobody who asks can tell one from the other.
        for answer in &answers {
            assert_eq!(answer.json["decision"], answers[0].json["decision"]);
            assert_eq!(answer.json["params"], answers[0].json["params"]);
            assert_eq!(answer.json["facts"], answers[0].json["facts"]);
        }
        // An account that left the ERP is still the one's whose it was.
        daemon.put_vendor("V-200", json!({ "iban": null })).await;
        let left = agent.propose("left", &pay_to("INV-1", &json!(GLOBEX), "1200.00")).await;
        left.is_denied(403, "provenance", "payee_not_on_file");
        let found = receipts(&installation);
        let held_by = |id: &str| {
            let mut all = found.iter().filter(|receipt| receipt["operation"] == *id);
            all.next().unwrap()["data"]["evidence"]["held_by"].clone()
        };
        for (answer, (key, _, whose)) in answers.iter().zip(&asked) {
            assert_eq!(held_by(&answer.text("/id")), json!(whose), "{key}");
        }
        assert_eq!(held_by(&left.text("/id")), json!("V-200"));
        assert_eq!(daemon.payments().await, []);
    })
    .await;
}

#[tokio::test]
async fn a_vendor_that_is_not_the_companys_is_none() {
    on_both(async |place| {
        let (_installation, daemon, agent) = ready(Installation::at(place)).await;
        let mut details = Vec::new();
        for (key, vendor) in [("none", "V-999"), ("foreign", "F-1")] {
            let denied = agent.propose(key, &crate::bank::change(vendor, NOBODYS)).await;
            denied.is_denied(403, "provenance", "vendor_not_found");
            details.push(denied.json["decision"].clone());
        }
        assert_eq!(details[0], details[1]);
        let marie = daemon.sign_in("marie").await;
        assert_eq!(marie.get("/v1/alarms").await.json["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn a_store_that_cannot_be_read_denies_and_binds_no_key() {
    let (installation, daemon, agent) = ready(Installation::new()).await;
    let tables = Place::of(format!("sqlite://{}", installation.path("countersign.db").display()));
    tables.tamper("alter table duplicate_clearance rename to elsewhere").await;
    let bill = pay("INV-1", "V-100", "1200.00");
    let denied = agent.propose("k", &bill).await;
    denied.is_denied(503, "error", "store_unavailable");
    assert!(!denied.json.to_string().contains("clearance"), "{}", denied.json);
    tables.tamper("alter table elsewhere rename to duplicate_clearance").await;
    let done = agent.propose("k", &bill).await;
    done.is_executed();
    assert_eq!(done.text("/id"), denied.text("/id"));
    assert_eq!(daemon.payments().await.len(), 1);
}

#[tokio::test]
async fn who_is_not_let_in_leaves_a_receipt_and_no_operation() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let revoked = installation.mandate_of("marie", "other", COMPANY, SOURCE, &[]);
    let daemon = installation.start().await;
    let list = installation.ok(&["mandate", "list"], "");
    let line = list.lines().find(|line| line.contains("other")).unwrap();
    let id = line.split_whitespace().find(|word| word.starts_with("md_")).unwrap();
    installation.ok(&["mandate", "revoke", id], "");
    let bill = pay("INV-1", "V-100", "1200.00");
    let (head, signature) = token.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let rest: String = signature.chars().skip(1).collect();
    let forged = format!("{head}.{other}{rest}");
    daemon.agent(&forged).propose("a", &bill).await.is_problem(401, "token_invalid");
    daemon.agent(&revoked).propose("a", &bill).await.is_problem(401, "mandate_revoked");
    daemon.advance("201h").await;
    daemon.agent(&token).propose("a", &bill).await.is_problem(401, "mandate_expired");
    let fresh = daemon.agent(&installation.mandate(&[]));
    assert_eq!(fresh.get("/v1/operations").await.json["items"], json!([]));
    assert_eq!(daemon.payments().await, []);
    daemon.stop();
    let counted = receipts(&installation);
    let counted = counted.iter().filter(|receipt| receipt["kind"] == "denial_count");
    let reasons: Vec<_> = counted.map(|receipt| receipt["data"]["reason"].clone()).collect();
    for reason in ["token_invalid", "mandate_revoked", "mandate_expired"] {
        assert!(reasons.contains(&json!(reason)), "{reason} in {reasons:?}");
    }
}

#[tokio::test]
async fn what_is_paid_or_under_way_is_said_before_the_policies_are_asked() {
    let (_installation, daemon, agent) = ready(Installation::new()).await;
    let pending = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(pending.text("/status"), "pending", "{}", pending.json);
    agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    // Policy would forbid both; so it was not asked.
    daemon.put_sanctions(ACME, true).await;
    let paid = agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
    paid.is_denied(403, "execution", "already_paid");
    let held = agent.propose("w2", &pay("INV-3", "V-100", "8000.00")).await;
    held.is_denied(403, "execution", "operation_in_progress");
    assert!(held.text("/decision/detail").contains(&pending.text("/id")), "{}", held.json);
    for denied in [paid, held] {
        assert_eq!(denied.reasons().len(), 1, "{}", denied.json);
    }
}

#[tokio::test]
async fn the_reason_of_a_change_has_1_to_500_characters() {
    let (_installation, _daemon, agent) = ready(Installation::new()).await;
    let asks = async |key: &str, reason: &str| {
        let mut proposal = crate::bank::change("V-100", NOBODYS);
        proposal["args"]["reason"] = json!(reason);
        agent.propose(key, &proposal).await
    };
    for (key, reason) in [("none", ""), ("long", &*"é".repeat(501))] {
        asks(key, reason).await.is_denied(422, "contract", "invalid_args");
    }
    for (key, reason) in [("short", "x"), ("full", &*"é".repeat(500))] {
        asks(key, reason).await.is_denied(403, "policy", "bank-change-needs-callback");
    }
}
