//! A store that was put back to an older copy of itself, and what the copy does not know.

use std::fs;

use serde_json::json;

use super::{Bank, NEW, alarms, change};
use crate::daemon::{ACME, Daemon, Installation, pay};
use crate::votes::{Office, approve, is_pending};

fn copy(installation: &Installation) {
    fs::copy(installation.path("countersign.db"), installation.path("kept.db")).unwrap();
}

/// Puts the copy back, waits for the freeze and lets the operator go on.
async fn put_back(installation: &Installation) -> Daemon {
    fs::copy(installation.path("kept.db"), installation.path("countersign.db")).unwrap();
    fs::rename(installation.path("checkpoint.txt"), installation.path("evidence.txt")).unwrap();
    let daemon = installation.start_unready(&[]);
    let list = async || installation.ok(&["freeze", "list"], "");
    daemon.until("frozen", async || list().await.contains("store_behind")).await;
    let frozen = list().await;
    let id = frozen.split_whitespace().find(|word| word.starts_with("fz_")).unwrap();
    installation.ok(&["freeze", "remove", id, "--reason", "restored"], "");
    daemon.until_ready().await;
    assert!(!list().await.contains("store_behind"), "{}", list().await);
    daemon
}

#[tokio::test]
async fn a_change_that_the_copy_does_not_have_is_one_made_behind_its_back() {
    let bank = Bank::new().await;
    let token = bank.office.installation.mandate(&[]);
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    let Bank { office: Office { installation, daemon, .. }, .. } = bank;
    daemon.stop();
    copy(&installation);
    let daemon = installation.start().await;
    let paul = daemon.sign_in("paul").await;
    approve(&paul, &pending).await.is_executed();
    daemon.stop();

    let daemon = put_back(&installation).await;
    let agent = daemon.agent(&token);
    let denied = agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
    denied.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    let anna = daemon.sign_in("anna").await;
    assert_eq!(alarms(&anna, "changed_in_erp").await.len(), 1);
    // The number of the change is not given to another order.
    agent.propose("p2", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn what_waited_in_the_copy_and_was_paid_after_it_is_not_paid_twice() {
    let Bank { office, agent, .. } = Bank::new().await;
    let token = office.installation.mandate(&["--scope", "vendor.update_bank_details"]);
    let mut second = pay("INV-1", "V-100", "200.00");
    second["mode"] = json!("prepare");
    let prepared = agent.propose("prepared", &second).await;
    assert_eq!(prepared.text("/status"), "prepared", "{}", prepared.json);
    let pending = agent.propose("part", &pay("INV-1", "V-100", "300.00")).await;
    is_pending(&pending, "four_eyes");
    let anna = office.daemon.sign_in("anna").await;
    assert_eq!(super::call(&anna, "V-100", &super::confirmed(NEW)).await.status, 201);
    let Office { installation, daemon, .. } = office;
    daemon.stop();
    copy(&installation);
    let daemon = installation.start().await;
    approve(&daemon.sign_in("paul").await, &pending).await.is_executed();
    daemon.stop();

    let daemon = put_back(&installation).await;
    let agent = daemon.agent(&token);
    for ended in [&pending, &prepared] {
        let path = format!("/v1/operations/{}", ended.text("/id"));
        agent.get(&path).await.is_denied(200, "execution", "order_adopted");
    }
    let paul = daemon.sign_in("paul").await;
    approve(&paul, &pending).await.is_problem(409, "already_decided");
    // Nobody knows what was said on the telephone since.
    let asked = agent.propose("ask", &change("V-100", NEW)).await;
    asked.is_denied(403, "policy", "bank-change-needs-callback");
    // What went out counts for the vendor, whoever had seen it.
    let more = agent.propose("more", &pay("INV-1", "V-100", "10.00")).await;
    let seen = paul.get(&format!("/v1/operations/{}", more.text("/id"))).await;
    assert_eq!(seen.json["facts"]["vendor_auto_24h_e2"], json!(30_000), "{}", seen.json);
    let expected = vec![("INV-1".to_owned(), ACME.to_owned(), "300.00".to_owned())];
    assert_eq!(daemon.payments().await, expected);
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}
