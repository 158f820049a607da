//! I2, I7, I10: lost answers, crashes at every named point, restarts, several daemons, a restored
//! store. Whatever happens, a bill is paid once and the operation ends with a true answer.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::daemon::{ACME, COMPANY, Daemon, GLOBEX, Installation, SOURCE, WORLD, pay};
use crate::support::on_both;

fn acme_paid() -> Vec<(String, String, String)> {
    vec![("INV-1".to_owned(), ACME.to_owned(), "1200.00".to_owned())]
}

/// The points at which a daemon ends itself, each with a bill of its own.
const POINTS: [&str; 4] = ["after_claim", "before_send", "after_send", "after_settle"];

fn bill_of(point: &str) -> String {
    format!("INV-{point}")
}

fn a_bill_for_each_point() -> String {
    // Far enough apart that none looks like another.
    let bill = |(at, point): (usize, &&str)| {
        let id = bill_of(point);
        format!(
            "[company.blue-sparrow.bill.{id}]\nvendor = \"V-100\"\nvendor_reference = \"{id}\"\n\
             date = \"2026-0{}-01\"\namount = \"1200.00\"\ncurrency = \"EUR\"\ndue = \"2099-12-31\"\n",
            at + 1
        )
    };
    let bills: String = POINTS.iter().enumerate().map(bill).collect();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

#[tokio::test]
async fn a_daemon_killed_at_any_named_point_pays_once_after_its_restart() {
    on_both(async |place| {
        let store = if place.is_sqlite() { "sqlite://countersign.db" } else { &place.url };
        let installation = Installation::with(&a_bill_for_each_point(), store, "");
        installation.add_principal();
        let mut expected = Vec::new();
        for point in POINTS {
            let bill = bill_of(point);
            let token = installation.mandate_of("marie", point, COMPANY, SOURCE, &[]);
            let daemon = installation.start_to_abort_at(point).await;
            daemon.agent(&token).propose_into_the_void("k", &pay(&bill, "V-100", "1200.00")).await;
            daemon.until_dead().await;
            let daemon = installation.start().await;
            let agent = daemon.agent(&token);
            let ended = agent.until_only(&daemon, "executed").await;
            assert_eq!(ended.text("/result/amount"), "1200.00", "{point}");
            let again = agent.propose("k2", &pay(&bill, "V-100", "1200.00")).await;
            again.is_denied(403, "execution", "already_paid");
            expected.push((bill, ACME.to_owned(), "1200.00".to_owned()));
            expected.sort();
            assert_eq!(daemon.payments().await, expected, "{point}");
            daemon.stop();
            installation.ok(&["receipts", "verify"], "");
        }
    })
    .await;
}

#[tokio::test]
async fn the_erp_dying_with_the_daemon_before_or_after_the_work_ends_in_one_payment() {
    for what in ["abort_before", "abort_after"] {
        let installation = Installation::new();
        installation.add_principal();
        let token = installation.mandate(&[]);
        let daemon = installation.start().await;
        daemon.fault("register_payment", what, 1).await;
        daemon.agent(&token).propose_into_the_void("k", &pay("INV-1", "V-100", "1200.00")).await;
        daemon.until_dead().await;
        let daemon = installation.start().await;
        daemon.agent(&token).until_only(&daemon, "executed").await;
        assert_eq!(daemon.payments().await, acme_paid(), "{what}");
    }
}

async fn with_one_call() -> (Installation, Daemon, String) {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&["--budget", "1200.00", "--max-calls", "1"]);
    let daemon = installation.start().await;
    (installation, daemon, token)
}

async fn with_fault(what: &str, times: u32) -> (Installation, Daemon, String) {
    let (installation, daemon, token) = with_one_call().await;
    daemon.fault("register_payment", what, times).await;
    (installation, daemon, token)
}

#[tokio::test]
async fn a_lost_answer_is_found_and_never_pays_twice() {
    let (_installation, daemon, token) = with_fault("lost_answer", 1).await;
    let agent = daemon.agent(&token);
    let lost = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert!(["unknown", "executed"].contains(&lost.text("/status").as_str()), "{}", lost.json);
    agent.until_only(&daemon, "executed").await;
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn while_the_outcome_is_unknown_nobody_else_pays_the_bill() {
    let (installation, daemon, token) = with_fault("lost_answer", 1).await;
    daemon.fault("find_payment", "unreachable", 1000).await;
    let agent = daemon.agent(&token);
    let lost = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!((lost.status.as_u16(), lost.text("/status").as_str()), (202, "unknown"));
    let other = daemon.agent(&installation.mandate_of("marie", "other", COMPANY, SOURCE, &[]));
    let second = other.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(second.text("/decision/stage"), "execution", "{}", second.json);
    assert!(!second.text("/decision/detail").contains(&lost.text("/id")), "another's id is shown");
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn an_order_that_was_never_sent_is_tried_again() {
    let (_installation, daemon, token) = with_fault("unreachable", 1).await;
    let agent = daemon.agent(&token);
    let waiting = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert!(
        ["executing", "executed"].contains(&waiting.text("/status").as_str()),
        "{}",
        waiting.json
    );
    agent.until_only(&daemon, "executed").await;
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn an_order_that_cannot_be_sent_for_long_fails_and_gives_everything_back() {
    let (_installation, daemon, token) = with_fault("unreachable", 1_000_000).await;
    let agent = daemon.agent(&token);
    let waiting = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(waiting.text("/status"), "executing", "{}", waiting.json);
    daemon.advance("16m").await;
    let failed = agent.until_only(&daemon, "failed").await;
    assert_eq!(failed.reasons(), ["never_sent"]);
    let mandate = agent.get("/v1/mandates/current").await;
    assert_eq!(
        (mandate.text("/budget/left"), &mandate.json["calls"]["left"]),
        ("1200.00".to_owned(), &json!(1))
    );
    // The bill is free again: another operation may claim it.
    let again = agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(again.text("/status"), "executing", "{}", again.json);
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn a_refusal_of_the_erp_fails_and_gives_everything_back() {
    let (_installation, daemon, token) = with_fault("refuse", 1).await;
    let agent = daemon.agent(&token);
    let refused = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!((refused.status.as_u16(), refused.text("/status").as_str()), (200, "failed"));
    assert_eq!(refused.reasons(), ["erp_refused"]);
    let again = agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
    again.is_executed();
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn an_erp_slower_than_the_deadline_pays_once() {
    let (_installation, daemon, token) = with_one_call().await;
    daemon.slow("register_payment", "4s").await;
    let agent = daemon.agent(&token);
    agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    agent.until_only(&daemon, "executed").await;
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn a_caller_that_hangs_up_and_a_stop_drop_nothing_half_way() {
    let (installation, daemon, token) = with_one_call().await;
    daemon.slow("register_payment", "1s").await;
    let agent = daemon.agent(&token);
    let calling = agent.clone();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move {
        calling.propose_into_the_void("k", &pay("INV-1", "V-100", "1200.00")).await;
    });
    daemon
        .until("claimed", async || {
            let found = agent.get("/v1/operations").await;
            found.json["items"].as_array().is_some_and(|items| !items.is_empty())
        })
        .await;
    calls.abort_all();
    daemon.stop();
    let daemon = installation.start().await;
    daemon.agent(&token).until_only(&daemon, "executed").await;
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn a_second_daemon_on_one_sqlite_file_refuses_to_start() {
    let installation = Installation::new();
    let daemon = installation.start().await;
    let refusal = installation.refused_start();
    assert!(refusal.contains("daemon"), "{refusal}");
    daemon.stop();
}

#[tokio::test]
async fn two_daemons_on_one_postgresql_pay_a_bill_once() {
    on_both(async |place| {
        if place.is_sqlite() {
            return;
        }
        let installation = Installation::at(place);
        installation.add_principal();
        let tokens: Vec<String> = (0..6)
            .map(|at| {
                installation.mandate_of("marie", &format!("agent-{at}"), COMPANY, SOURCE, &[])
            })
            .collect();
        let daemons = [installation.start().await, installation.start().await];
        let mut calls = tokio::task::JoinSet::new();
        for (at, token) in tokens.iter().enumerate() {
            let agent = daemons[at % 2].agent(token);
            calls.spawn(async move { agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await });
        }
        let answers = calls.join_all().await;
        let executed = answers.iter().filter(|answer| answer.text("/status") == "executed").count();
        assert_eq!(executed, 1, "{answers:?}");
        assert_eq!(daemons[0].payments().await, acme_paid());
        // One of them dies while it pays; the other one finds out.
        let [first, second] = daemons;
        first.fault("register_payment", "abort_after", 1).await;
        first.agent(&tokens[0]).propose_into_the_void("k2", &pay("INV-2", "V-200", "340.00")).await;
        first.until_dead().await;
        let agent = second.agent(&tokens[0]);
        second
            .until("executed", async || {
                let items = agent.get("/v1/operations?status=executed").await;
                items.json["items"].as_array().is_some_and(|items| {
                    items.iter().any(|item| item["params"]["invoice_ref"]["value"] == "INV-2")
                })
            })
            .await;
        let mut expected = acme_paid();
        expected.push(("INV-2".to_owned(), GLOBEX.to_owned(), "340.00".to_owned()));
        assert_eq!(second.payments().await, expected);
    })
    .await;
}

pub(crate) fn copy_store(from: &Installation, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm"] {
        let source = from.path(name);
        if source.exists() {
            fs::copy(&source, to.join(name)).unwrap();
        }
    }
}

pub(crate) fn restore_store(installation: &Installation, from: &Path) {
    for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm"] {
        let target = installation.path(name);
        if target.exists() {
            fs::remove_file(&target).unwrap();
        }
        if from.join(name).exists() {
            fs::copy(from.join(name), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_restored_older_store_freezes_and_never_pays_again() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    installation.start().await.stop();
    let backup = installation.path("backup");
    copy_store(&installation, &backup);
    let daemon = installation.start().await;
    daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    daemon.stop();
    restore_store(&installation, &backup);
    // The checkpoint that was kept elsewhere names the cut.
    let refusal = installation.refused_start();
    assert!(refusal.contains("checkpoint"), "{refusal}");
    fs::remove_file(installation.path("checkpoint.txt")).unwrap();
    // Without it the ERP's own table of orders still does.
    let daemon = installation.start_unready(&[]);
    let frozen = async || installation.ok(&["freeze", "list"], "").contains("store_behind");
    daemon.until("frozen", frozen).await;
    let agent = daemon.agent(&token);
    let other = agent.propose("a", &pay("INV-2", "V-200", "340.00")).await;
    assert_ne!(other.text("/status"), "executed", "{}", other.json);
    daemon.put_bill("INV-1", json!({ "state": "open", "paid": "0.00" })).await;
    let list = installation.ok(&["freeze", "list"], "");
    let id = list.split_whitespace().find(|word| word.starts_with("fz_")).unwrap().to_owned();
    let removed = installation.ok(&["freeze", "remove", &id, "--reason", "a restored backup"], "");
    assert!(removed.contains("1 orders"), "{removed}");
    daemon.until_ready().await;
    let again = agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    again.is_denied(403, "execution", "already_paid");
    agent.propose("c", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    let mut expected = acme_paid();
    expected.push(("INV-2".to_owned(), GLOBEX.to_owned(), "340.00".to_owned()));
    assert_eq!(daemon.payments().await, expected);
}

#[tokio::test]
async fn a_daemon_killed_while_the_erp_works_pays_once_after_its_restart() {
    let (installation, daemon, token) = with_one_call().await;
    daemon.slow("register_payment", "1s").await;
    let agent = daemon.agent(&token);
    let calling = agent.clone();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move {
        calling.propose_into_the_void("k", &pay("INV-1", "V-100", "1200.00")).await;
    });
    daemon
        .until("claimed", async || {
            let found = agent.get("/v1/operations").await;
            found.json["items"].as_array().is_some_and(|items| !items.is_empty())
        })
        .await;
    daemon.kill();
    let daemon = installation.start().await;
    daemon.agent(&token).until_only(&daemon, "executed").await;
    assert_eq!(daemon.payments().await, acme_paid());
}
