//! I2, I7, I10 on a real Odoo: whatever dies or gets lost, a bill is paid once, and the operation
//! ends with a true answer.

use std::fs;

use super::proxy::Proxy;
use super::scene::{Scene, executed, mandate};
use crate::exactly_once::{copy_store, restore_store};

/// Short, so that it is soon proved that an order was not booked.
const SOON: (&str, &str) = ("COUNTERSIGN__ERP__CALL_DEADLINE", "6s");

async fn killed_at(point: &str) {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("96.00").await;
    let installation = scene.installation(&[&payable]);
    let token = mandate(&installation, "ap-agent");
    let daemon = installation.start_unready(&[("COUNTERSIGN_ABORT_AT", point), SOON]);
    daemon.until_ready().await;
    daemon.agent(&token).propose_into_the_void("k", &payable.whole()).await;
    daemon.until_dead().await;
    let daemon = installation.start_unready(&[SOON]);
    daemon.until_ready().await;
    let agent = daemon.agent(&token);
    let ended = agent.until_only(&daemon, "executed").await;
    assert_eq!(ended.text("/result/amount"), payable.total);
    let again = agent.propose("k2", &payable.whole()).await;
    again.is_denied(403, "execution", "already_paid");
    scene.assert_paid_once(&payable).await;
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn a_daemon_killed_after_its_claim_pays_once() {
    killed_at("after_claim").await;
}

#[tokio::test]
async fn a_daemon_killed_before_it_sends_pays_once() {
    killed_at("before_send").await;
}

#[tokio::test]
async fn a_daemon_killed_after_it_sent_pays_once() {
    killed_at("after_send").await;
}

#[tokio::test]
async fn a_daemon_killed_after_it_settled_pays_once() {
    killed_at("after_settle").await;
}

#[tokio::test]
async fn a_daemon_killed_while_odoo_books_pays_once() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("64.00").await;
    let installation = scene.installation(&[&payable]);
    let token = mandate(&installation, "ap-agent");
    let daemon = installation.start_unready(&[SOON]);
    daemon.until_ready().await;
    let (agent, proposal) = (daemon.agent(&token), payable.whole());
    let asking = agent.clone();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { asking.propose_into_the_void("k", &proposal).await });
    daemon
        .until("claimed", async || {
            let found = agent.get("/v1/operations").await;
            found.json["items"].as_array().is_some_and(|items| !items.is_empty())
        })
        .await;
    daemon.kill();
    calls.join_all().await;
    let daemon = installation.start_unready(&[SOON]);
    daemon.until_ready().await;
    daemon.agent(&token).until_only(&daemon, "executed").await;
    scene.assert_paid_once(&payable).await;
}

// The proxy works while this test waits for commands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_lost_after_the_commit_ends_executed() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("33.00").await;
    let installation = scene.installation(&[&payable]);
    let token = mandate(&installation, "ap-agent");
    let proxy = Proxy::before(scene.host()).await;
    let daemon = installation.start_unready(&[("COUNTERSIGN__ERP__ODOO__URL", &proxy.url)]);
    daemon.until_ready().await;
    let agent = daemon.agent(&token);
    let lost = agent.propose("k", &payable.whole()).await;
    // A busy Odoo may take longer than the call waits.
    let status = lost.text("/status");
    assert!(["executing", "unknown", "executed"].contains(&status.as_str()), "{}", lost.json);
    let ended = agent.until_only(&daemon, "executed").await;
    assert_eq!(ended.text("/result/amount_due"), "0.00");
    // One order went out and its answer was lost; what it did was found, and no other was sent.
    assert_eq!(proxy.orders(), 1);
    scene.assert_paid_once(&payable).await;
    daemon.stop();
    let export = installation.ok(&["receipts", "export"], "");
    assert!(export.contains("unknown"), "the ledger does not say that the answer was lost");
}

#[tokio::test]
async fn a_restored_older_store_freezes_and_never_pays_again() {
    let Some(scene) = Scene::enter().await else { return };
    let (paid, other) = (scene.payable("205.00").await, scene.payable("206.00").await);
    let installation = scene.installation(&[&paid, &other]);
    let token = mandate(&installation, "ap-agent");
    installation.start().await.stop();
    let backup = installation.path("backup");
    copy_store(&installation, &backup);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    executed(&agent, agent.propose("k", &paid.whole()).await).await;
    daemon.stop();
    restore_store(&installation, &backup);
    fs::remove_file(installation.path("checkpoint.txt")).unwrap();
    let daemon = installation.start_unready(&[]);
    let frozen = async || installation.ok(&["freeze", "list"], "").contains("store_behind");
    daemon.until("frozen", frozen).await;
    let agent = daemon.agent(&token);
    for (key, payable) in [("a", &paid), ("b", &other)] {
        let refused = agent.propose(key, &payable.whole()).await;
        assert_eq!(refused.text("/status"), "denied", "{}", refused.json);
    }
    let list = installation.ok(&["freeze", "list"], "");
    let id = list.split_whitespace().find(|word| word.starts_with("fz_")).unwrap();
    let removed = installation.ok(&["freeze", "remove", id, "--reason", "a restored backup"], "");
    assert!(removed.contains("1 orders"), "{removed}");
    daemon.until_ready().await;
    let again = agent.propose("c", &paid.whole()).await;
    again.is_denied(403, "execution", "already_paid");
    executed(&agent, agent.propose("d", &other.whole()).await).await;
    scene.assert_paid_once(&paid).await;
    scene.assert_paid_once(&other).await;
}
