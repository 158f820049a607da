//! What waits for humans: at most 20 of a mandate, each of which can still be decided.

use countersign::gateway::PENDING_MAX;
use serde_json::{Value, json};

use crate::daemon::{Installation, WORLD, pay};
use crate::votes::{Office, approve, is_pending, reject};

/// More failed reads than any test waits for.
const FOR_LONG: u32 = 1_000_000;

fn many_bills() -> String {
    let bill = |at: i64| {
        format!(
            "[company.blue-sparrow.bill.MANY-{at}]\nvendor = \"V-100\"\nvendor_reference = \
             \"M-{at}\"\namount = \"{}.00\"\ncurrency = \"EUR\"\ndue = \"2099-12-31\"\n",
            at + 20
        )
    };
    let bills: String = (0..=PENDING_MAX).map(bill).collect();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

#[tokio::test]
async fn twenty_of_a_mandate_wait_and_each_of_them_is_approved() {
    let world = many_bills();
    let office = Office::of(Installation::with(&world, "sqlite://countersign.db", "")).await;
    let (daemon, agent) = (&office.daemon, &office.agent);
    let part = |at: i64| pay(&format!("MANY-{at}"), "V-100", "1.00");
    let mut waiting = Vec::new();
    for at in 0..PENDING_MAX {
        let pending = agent.propose(&format!("k{at}"), &part(at)).await;
        is_pending(&pending, "four_eyes");
        waiting.push(pending);
    }
    assert_eq!(waiting.len(), 20);
    let more = agent.propose("more", &part(PENDING_MAX)).await;
    more.is_denied(403, "execution", "too_many_pending");
    // What needs nobody is not held up, and what only is prepared waits for nobody.
    agent.propose("free", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    let mut prepare = part(PENDING_MAX);
    prepare["mode"] = json!("prepare");
    let prepared = agent.propose("prepared", &prepare).await;
    assert_eq!(prepared.text("/status"), "prepared", "{}", prepared.json);
    // A full waiting list is worked off, one by one; one that is decided anew stays where it is.
    let paul = daemon.sign_in("paul").await;
    daemon.put_bill("MANY-1", json!({ "vendor_reference": "M-1001" })).await;
    let changed = approve(&paul, &waiting[1]).await;
    is_pending(&changed, "four_eyes");
    approve(&paul, &waiting[0]).await.is_executed();
    is_pending(&agent.propose("next", &part(PENDING_MAX)).await, "four_eyes");
    reject(&paul, &waiting[2], "no").await;
    let commit = format!("/v1/operations/{}/commit", prepared.text("/id"));
    agent.post(&commit).await.is_denied(403, "execution", "operation_in_progress");
}

#[tokio::test]
async fn a_vote_that_waits_counts_no_longer_than_the_operation() {
    let office = Office::new().await;
    let (daemon, agent) = (&office.daemon, &office.agent);
    let pending = office.four_eyes("k1").await;
    let paul = daemon.sign_in("paul").await;
    daemon.fault("read", "unreachable", FOR_LONG).await;
    let waits = approve(&paul, &pending).await;
    assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]));
    // The vote is complete, and nothing could be decided with it for three days.
    daemon.advance("72h").await;
    daemon.fault("read", "unreachable", 0).await;
    let path = format!("/v1/operations/{}", pending.text("/id"));
    daemon.until("expired", async || agent.get(&path).await.text("/status") == "expired").await;
    assert_eq!(daemon.payments().await, []);
}

#[tokio::test]
async fn a_second_vote_for_the_same_hash_is_the_first_one() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let pending = office.four_eyes("k1").await;
    let paul = daemon.sign_in("paul").await;
    daemon.fault("read", "unreachable", FOR_LONG).await;
    for _ in 0..2 {
        let waits = approve(&paul, &pending).await;
        is_pending(&waits, "four_eyes");
        assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]));
    }
    let votes = office.installation.ok(&["receipts", "export"], "");
    assert_eq!(votes.matches("\\\"kind\\\":\\\"vote\\\"").count(), 1);
    daemon.fault("read", "unreachable", 0).await;
    office.agent.until_only(daemon, "executed").await;
}

#[tokio::test]
async fn a_human_sees_what_he_could_approve_and_nothing_else() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let (two, own) = (office.four_eyes("k1").await, office.step_up("k2").await);
    for (who, expected) in [
        ("marie", vec![own.text("/id")]),
        ("paul", vec![two.text("/id")]),
        ("olga", vec![two.text("/id")]),
        ("anna", vec![]),
        ("adam", vec![]),
        ("axel", vec![]),
        ("fritz", vec![]),
    ] {
        let page = daemon.sign_in(who).await.get("/v1/approvals").await;
        let items = page.json["items"].as_array().unwrap();
        let seen: Vec<Value> = items.iter().map(|item| item["id"].clone()).collect();
        assert_eq!(json!(seen), json!(expected), "{who}");
    }
}

#[tokio::test]
async fn the_principal_rejects_whatever_else_he_is() {
    let office = Office::new().await;
    let (company, source) = (crate::daemon::COMPANY, crate::daemon::SOURCE);
    let token = office.installation.mandate_of("anna", "annas", company, source, &[]);
    let pending = office.daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1.00")).await;
    is_pending(&pending, "four_eyes");
    let anna = office.daemon.sign_in("anna").await;
    approve(&anna, &pending).await.is_problem(403, "self_approval");
    let rejected = reject(&anna, &pending, "not ours").await;
    assert_eq!((rejected.status.as_u16(), rejected.text("/status")), (200, "rejected".to_owned()));
    let export = office.installation.ok(&["receipts", "export"], "");
    let receipt = "\\\"kind\\\":\\\"rejected\\\"";
    assert!(export.contains(receipt) && export.contains("not ours"), "{export}");
}

#[tokio::test]
async fn what_is_rejected_or_denied_keeps_no_vote() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let (paul, olga) = (daemon.sign_in("paul").await, daemon.sign_in("olga").await);
    for (what, bill, vendor) in [
        ("rejected", "INV-2", "V-200"),
        ("cancelled", "INV-1", "V-100"),
        ("denied", "INV-1", "V-100"),
    ] {
        let pending = office.agent.propose(what, &pay(bill, vendor, "100.00")).await;
        is_pending(&pending, "four_eyes");
        daemon.fault("read", "unreachable", FOR_LONG).await;
        let waits = approve(&paul, &pending).await;
        assert_eq!(waits.json["approval"]["granted_by"], json!(["paul"]), "{what}");
        match what {
            "rejected" => {
                reject(&olga, &pending, "no").await;
                daemon.fault("read", "unreachable", 0).await;
            }
            "cancelled" => {
                let path = format!("/v1/operations/{}/cancel", pending.text("/id"));
                office.agent.post(&path).await;
                daemon.fault("read", "unreachable", 0).await;
            }
            _ => {
                daemon.put_sanctions(crate::daemon::ACME, true).await;
                daemon.fault("read", "unreachable", 0).await;
            }
        }
        let path = format!("/v1/operations/{}?wait=60s", pending.text("/id"));
        let ended = office.agent.get(&path).await;
        assert_eq!(ended.text("/status"), what, "{}", ended.json);
        // Nobody is said to have approved it.
        assert_eq!(ended.json["approval"], Value::Null, "{what}: {}", ended.json);
    }
    assert_eq!(daemon.payments().await, []);
}

#[tokio::test]
async fn a_vote_that_was_voided_has_no_second_life_when_its_hash_comes_back() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let (paul, olga) = (daemon.sign_in("paul").await, daemon.sign_in("olga").await);
    let pending = office.four_eyes("k1").await;
    daemon.put_bill("INV-1", json!({ "vendor_reference": "A-77" })).await;
    let changed = approve(&paul, &pending).await;
    is_pending(&changed, "four_eyes");
    assert_ne!(changed.json["operation_hash"], pending.json["operation_hash"]);
    // Somebody edits it back; what olga votes for is not what is true then.
    daemon.put_bill("INV-1", json!({ "vendor_reference": "A-1" })).await;
    let back = approve(&olga, &changed).await;
    is_pending(&back, "four_eyes");
    assert_eq!(back.json["operation_hash"], pending.json["operation_hash"]);
    assert_eq!(back.json["approval"]["granted_by"], json!([]));
    assert_eq!(daemon.payments().await, []);
    approve(&olga, &back).await.is_executed();
}

#[tokio::test]
async fn who_approved_what_was_executed_stays_known() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let pending = office.four_eyes("k1").await;
    approve(&daemon.sign_in("paul").await, &pending).await.is_executed();
    // A freeze, and the end of a human, void what is not spent.
    let anna = daemon.sign_in("anna").await;
    let body = json!({ "scope": "company", "reason": "look" });
    assert_eq!(anna.post_json("/v1/freezes", &body).await.status, 201);
    office.installation.ok(&["user", "disable", "paul"], "");
    let seen = anna.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
    assert_eq!(seen.text("/status"), "executed");
    assert_eq!(seen.json["approval"]["granted_by"], json!(["paul"]));
}
