//! Under which mandate an operation is, and when that is judged (API 3).

use serde_json::{Value, json};

use crate::daemon::{Agent, Answer, Daemon, Installation, pay};
use crate::votes::{Office, approve, is_pending};

/// More failed calls than any test waits for.
const FOR_LONG: u32 = 1_000_000;

fn prepared(mut proposal: Value) -> Value {
    proposal["mode"] = json!("prepare");
    proposal
}

async fn commit(agent: &Agent, operation: &Answer) -> Answer {
    agent.post(&format!("/v1/operations/{}/commit", operation.text("/id"))).await
}

async fn current(agent: &Agent) -> (String, String) {
    let mandate = agent.get("/v1/mandates/current").await;
    (mandate.text("/id"), mandate.json["budget"]["left"].as_str().unwrap_or_default().to_owned())
}

/// An installation with a mandate whose time is over in an hour.
async fn with_a_short_one() -> (Office, Agent) {
    let office = Office::new().await;
    let issue = [
        "mandate",
        "issue",
        "--principal",
        "marie",
        "--agent",
        "ap-agent",
        "--company",
        crate::daemon::COMPANY,
        "--scope",
        "invoice.pay",
        "--source-account",
        crate::daemon::SOURCE,
        "--currency",
        "EUR",
        "--ttl",
        "1h",
    ];
    let short = office.installation.ok(&issue, "");
    let agent = office.daemon.agent(&short);
    (office, agent)
}

#[tokio::test]
async fn a_mandates_time_is_judged_where_it_is_presented_and_nowhere_else() {
    let (office, brief) = with_a_short_one().await;
    let daemon = &office.daemon;
    let waits = brief.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
    is_pending(&waits, "step_up");
    let ready = brief.propose("p", &prepared(pay("INV-2", "V-200", "340.00"))).await;
    assert_eq!(ready.text("/status"), "prepared", "{}", ready.json);
    daemon.fault("register_payment", "unreachable", FOR_LONG).await;
    let claimed = brief.propose("c", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(claimed.text("/status"), "executing", "{}", claimed.json);
    daemon.advance("61m").await;
    brief
        .propose("late", &pay("INV-2", "V-200", "340.00"))
        .await
        .is_problem(401, "mandate_expired");
    commit(&brief, &ready).await.is_problem(401, "mandate_expired");
    let seen = async |operation: &Answer| {
        let path = format!("/v1/operations/{}", operation.text("/id"));
        office.agent.get(&path).await.text("/status")
    };
    assert_eq!(seen(&waits).await, "pending");
    assert_eq!(seen(&ready).await, "prepared");
    // What could not be sent for an hour fails for that; nothing fails for the mandate's time.
    daemon.fault("register_payment", "unreachable", 0).await;
    let marie = daemon.sign_in("marie").await;
    approve(&marie, &waits).await.is_executed();
    let path = format!("/v1/operations/{}?wait=60s", claimed.text("/id"));
    let ended = office.agent.get(&path).await;
    assert_ne!(ended.text("/decision/stage"), "authn", "{}", ended.json);
    // The same agent of the same principal commits under a mandate that is in force.
    commit(&office.agent, &ready).await.is_executed();
}

#[tokio::test]
async fn a_commit_makes_its_own_mandate_the_operations() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let budget = |most: &str| daemon.agent(&office.installation.mandate(&["--budget", most]));
    let (first, second) = (budget("9000.00"), budget("9000.00"));
    // The budget that counts, and is spent, is that of the commit.
    let ready = first.propose("a", &prepared(pay("INV-1", "V-100", "1200.00"))).await;
    commit(&budget("100.00"), &ready).await.is_denied(403, "budget", "budget_exceeded");
    let ready = first.propose("b", &prepared(pay("INV-1", "V-100", "1200.00"))).await;
    commit(&second, &ready).await.is_executed();
    assert_eq!(current(&first).await.1, "9000.00");
    assert_eq!(current(&second).await.1, "7800.00");
    // The scope is too.
    let issue = [
        "mandate",
        "issue",
        "--principal",
        "marie",
        "--agent",
        "ap-agent",
        "--company",
        crate::daemon::COMPANY,
        "--scope",
        "vendor.update_bank_details",
        "--source-account",
        crate::daemon::SOURCE,
        "--currency",
        "EUR",
        "--ttl",
        "8h",
    ];
    let other = daemon.agent(&office.installation.ok(&issue, ""));
    let ready = first.propose("c", &prepared(pay("INV-2", "V-200", "340.00"))).await;
    commit(&other, &ready).await.is_denied(403, "delegation", "scope_not_held");
    // And the hash, and whose revocation it is that ends it.
    let ready = first.propose("d", &prepared(pay("INV-3", "V-100", "5000.01"))).await;
    let waits = commit(&budget("9000.00"), &ready).await;
    is_pending(&waits, "four_eyes");
    assert_ne!(waits.json["operation_hash"], ready.json["operation_hash"]);
    office.installation.ok(&["mandate", "revoke", &current(&first).await.0], "");
    let path = format!("/v1/operations/{}", waits.text("/id"));
    assert_eq!(office.agent.get(&path).await.text("/status"), "pending");
}

#[tokio::test]
async fn the_same_key_after_an_error_makes_its_own_mandate_the_operations() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let budget = |most: &str| daemon.agent(&office.installation.mandate(&["--budget", most]));
    let (first, second) = (budget("9000.00"), budget("9000.00"));
    let bill = pay("INV-1", "V-100", "1200.00");
    daemon.fault("read", "unreachable", 1).await;
    let failed = first.propose("k", &bill).await;
    failed.is_denied(503, "error", "erp_unavailable");
    let done = second.propose("k", &bill).await;
    done.is_executed();
    assert_eq!(done.text("/id"), failed.text("/id"));
    assert_eq!(
        (current(&first).await.1, current(&second).await.1),
        ("9000.00".to_owned(), "7800.00".to_owned())
    );
    let large = pay("INV-3", "V-100", "8000.00");
    daemon.fault("read", "unreachable", 1).await;
    first.propose("large", &large).await.is_denied(503, "error", "erp_unavailable");
    second.propose("large", &large).await.is_denied(403, "budget", "budget_exceeded");
}

async fn claimed() -> (Installation, Daemon, Agent, Answer) {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&["--budget", "1200.00"]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    daemon.fault("register_payment", "unreachable", FOR_LONG).await;
    let claimed = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(claimed.text("/status"), "executing", "{}", claimed.json);
    (installation, daemon, agent, claimed)
}

#[tokio::test]
async fn what_may_not_execute_any_more_is_ended_before_it_is_sent() {
    for (what, stage, reason) in [
        ("revoked", "authn", "mandate_revoked"),
        ("disabled", "authn", "mandate_revoked"),
        ("frozen", "execution", "frozen"),
    ] {
        let (installation, daemon, agent, claimed) = claimed().await;
        installation.add_user("paul", "approver", crate::daemon::COMPANY);
        match what {
            "revoked" => {
                let id = current(&agent).await.0;
                installation.ok(&["mandate", "revoke", &id], "");
            }
            "disabled" => {
                installation.ok(&["user", "disable", "marie"], "");
            }
            _ => {
                let freeze =
                    ["freeze", "add", "--company", crate::daemon::COMPANY, "--reason", "odd"];
                installation.ok(&freeze, "");
            }
        }
        let paul = daemon.sign_in("paul").await;
        let path = format!("/v1/operations/{}?wait=60s", claimed.text("/id"));
        let ended = paul.get(&path).await;
        ended.is_denied(200, stage, reason);
        daemon.fault("register_payment", "unreachable", 0).await;
        assert_eq!(daemon.payments().await, [], "{what}");
        // Everything is released: somebody else's agent pays the bill.
        let freezes = installation.ok(&["freeze", "list"], "");
        if let Some(id) = freezes.split_whitespace().find(|word| word.starts_with("fz_")) {
            installation.ok(&["freeze", "remove", id, "--reason", "found"], "");
        }
        installation.add_user("jean", "accountant", crate::daemon::COMPANY);
        let (company, source) = (crate::daemon::COMPANY, crate::daemon::SOURCE);
        let token = installation.mandate_of("jean", "another", company, source, &[]);
        let other = daemon.agent(&token);
        other.propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    }
}
