//! I9: a guard that is missing or was altered stops all paying, and says what to do.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::scene::{Scene, executed, mandate};
use crate::daemon::{Daemon, http};

const PAY: &str = "Countersign: pay a bill";

async fn readiness(daemon: &Daemon) -> (StatusCode, String) {
    let answer = http().get(format!("{}/readyz", daemon.base)).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

/// Does that to the action that pays, asserts that a daemon pays nothing and says why, installs
/// again, and asserts that it pays.
async fn is_seen_and_repaired(method: &str, values: impl Fn(i32, &str) -> Value) {
    let Some(scene) = Scene::enter_alone().await else { return };
    let payable = scene.payable("27.00").await;
    let installation = scene.installation(&[&payable]);
    let token = mandate(&installation, "ap-agent");
    let action = scene.action(PAY).await;
    let read = json!([[action], ["code"]]);
    let code: Vec<Value> = scene.books.admin.call("ir.actions.server", "read", read).await.unwrap();
    let args = values(action, code[0]["code"].as_str().unwrap());
    let _done: bool = scene.books.admin.call("ir.actions.server", method, args).await.unwrap();

    let daemon = installation.start_unready(&[]);
    daemon
        .until("seen", async || {
            let (status, text) = readiness(&daemon).await;
            status == StatusCode::SERVICE_UNAVAILABLE && text.contains(PAY)
        })
        .await;
    let (_, text) = readiness(&daemon).await;
    assert!(text.contains("countersign odoo install"), "{text}");
    let agent = daemon.agent(&token);
    let denied = agent.propose("k", &payable.whole()).await;
    denied.is_denied(503, "error", "erp_not_ready");
    scene.assert_unpaid(&payable).await;

    scene.install(&installation);
    daemon.until_ready().await;
    executed(&agent, agent.propose("k", &payable.whole()).await).await;
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn an_altered_guard_pays_nothing_and_says_what_to_do() {
    is_seen_and_repaired(
        "write",
        |action, code| json!([[action], { "code": format!("{code}\n# and a little more\n") }]),
    )
    .await;
}

#[tokio::test]
async fn a_missing_guard_pays_nothing_and_says_what_to_do() {
    is_seen_and_repaired("unlink", |action, _code| json!([[action]])).await;
}
