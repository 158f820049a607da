//! SIGHUP: a valid set of policies takes over, one that is not changes nothing, and no decision is
//! made of two.

use std::fs;
use std::sync::Arc;

use countersign::domain::operation::Status;
use countersign::gateway::policy::Policies;
use serde_json::{Value, json};

use crate::attacks::permit_everything;
use crate::bent::Scene;
use crate::daemon::{Agent, Daemon, Installation, http, pay};

const FORBID: &str = "@id(\"nothing-today\")\n@reason(\"nothing is paid today\")\n\
                      forbid (principal, action, resource);\n";

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

async fn with_own_policies() -> (Installation, Daemon, Agent) {
    let installation = Installation::new();
    permit_everything(&installation, "");
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

async fn metric(daemon: &Daemon, line: &str) -> bool {
    let answer = http().get(format!("{}/metrics", daemon.base)).send().await.unwrap();
    answer.text().await.unwrap().lines().any(|found| found == line)
}

/// Receipts of that kind, as the ledger has them.
fn receipts(installation: &Installation, kind: &str) -> Vec<Value> {
    let export = installation.ok(&["receipts", "export"], "");
    export
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| {
            let receipt = line["receipt"].as_str()?;
            serde_json::from_str::<Value>(receipt).ok()
        })
        .filter(|receipt| receipt["kind"] == kind)
        .collect()
}

#[tokio::test]
async fn a_valid_set_takes_over_and_leaves_a_receipt() {
    let (installation, daemon, agent) = with_own_policies().await;
    let first = agent.propose("a", &acme()).await;
    first.is_executed();
    fs::write(installation.path("policies/more.cedar"), FORBID).unwrap();
    let before = agent.propose("b", &pay("INV-2", "V-200", "1.00")).await;
    assert_eq!(before.text("/status"), "executed", "read before it was asked for");
    daemon.signal("HUP");
    let changed = "countersign_policy_reloads_total{outcome=\"changed\"} 1";
    daemon.until("changed", async || metric(&daemon, changed).await).await;
    let denied = agent.propose("c", &pay("INV-2", "V-200", "1.00")).await;
    denied.is_denied(403, "policy", "nothing-today");
    let (old, new) = (first.text("/decision/policy"), denied.text("/decision/policy"));
    assert_ne!(old, new);
    let [receipt] = &receipts(&installation, "policy_changed")[..] else { panic!("not one") };
    assert_eq!(
        (&receipt["data"]["before"], &receipt["data"]["policy"]),
        (&old.into(), &new.into())
    );
    assert_eq!(receipt["data"]["rules"], json!(["everything", "nothing-today"]));
    assert!(daemon.log().contains("other policies are in force"));
    assert!(metric(&daemon, "countersign_policy_rules 2").await);
    daemon.signal("HUP");
    let same = "countersign_policy_reloads_total{outcome=\"unchanged\"} 1";
    daemon.until("the same", async || metric(&daemon, same).await).await;
    assert_eq!(receipts(&installation, "policy_changed").len(), 1);
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn a_set_that_cannot_be_used_changes_nothing_and_is_named() {
    let (installation, daemon, agent) = with_own_policies().await;
    let more = installation.path("policies/more.cedar");
    fs::write(&more, format!("{FORBID}permit (principal")).unwrap();
    daemon.signal("HUP");
    daemon.until("refused", async || metric(&daemon, "countersign_policy_refused 1").await).await;
    let log = daemon.log();
    assert!(log.contains("the policies are not taken") && log.contains("more.cedar"), "{log}");
    // It decides as before, so it stays ready.
    daemon.until_ready().await;
    agent.propose("a", &acme()).await.is_executed();
    assert!(receipts(&installation, "policy_changed").is_empty());
    let check = installation.run(&["check"], "");
    let said = String::from_utf8_lossy(&[check.stdout, check.stderr].concat()).into_owned();
    assert_eq!(check.status.code(), Some(1), "{said}");
    assert!(said.contains("more.cedar"), "{said}");
    // All files gone are no policies either.
    for file in fs::read_dir(installation.path("policies")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    daemon.signal("HUP");
    let refused = "countersign_policy_reloads_total{outcome=\"refused\"} 2";
    daemon.until("refused again", async || metric(&daemon, refused).await).await;
    agent.propose("b", &pay("INV-2", "V-200", "1.00")).await.is_executed();
}

#[tokio::test]
async fn a_mended_set_takes_over_after_one_that_was_refused() {
    let (installation, daemon, agent) = with_own_policies().await;
    let more = installation.path("policies/more.cedar");
    fs::write(&more, "permit").unwrap();
    daemon.signal("HUP");
    daemon.until("refused", async || metric(&daemon, "countersign_policy_refused 1").await).await;
    fs::write(&more, FORBID).unwrap();
    daemon.signal("HUP");
    daemon.until("taken", async || metric(&daemon, "countersign_policy_refused 0").await).await;
    agent.propose("a", &acme()).await.is_denied(403, "policy", "nothing-today");
}

/// A set that forbids, on the same schema.
fn forbidding(installation: &Installation) -> Policies {
    fs::write(installation.path("policies/more.cedar"), FORBID).unwrap();
    Policies::load(&installation.path("policies")).unwrap()
}

#[tokio::test]
async fn what_is_claimed_under_the_old_set_is_decided_again_under_the_new_one() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let scene = Scene::of(installation).await;
    let old = scene.gateway.policies().digest().to_owned();
    // The set changes after the first decision, while the second one is made.
    let (gateway, policies) = (scene.gateway.clone(), forbidding(scene.installation()));
    let change = Box::pin(async move {
        assert!(gateway.change_policies(policies).await.unwrap());
    });
    let bends = Arc::clone(&scene.bends);
    *scene.bends.while_verifying.lock().unwrap() = Some(Box::pin(async move {
        *bends.while_verifying.lock().unwrap() = Some(change);
    }));
    let decided = scene.propose("k", &acme()).await;
    assert_eq!(decided.status, Status::Denied, "{decided:?}");
    assert_eq!(decided.decision.reasons, ["nothing-today"]);
    let now = scene.gateway.policies().digest().to_owned();
    assert_eq!(decided.decision.policy.as_deref(), Some(now.as_str()));
    assert_ne!(now, old);
    assert_eq!((scene.bends.sent(), scene.reserved().await), (0, 0), "it was sent");
    scene.close().await;
}

#[tokio::test]
async fn a_set_that_cannot_be_written_down_is_not_in_force() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let scene = Scene::of(installation).await;
    let old = scene.gateway.policies().digest().to_owned();
    let policies = forbidding(scene.installation());
    scene.gateway.store().close().await;
    scene.gateway.change_policies(policies).await.unwrap_err();
    assert_eq!(scene.gateway.policies().digest(), old);
    scene.close().await;
}
