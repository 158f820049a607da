//! `GET /metrics`: what happened is counted, nothing of a company is told, and no caller makes series.

use std::collections::BTreeMap;

use reqwest::Method;

use crate::daemon::{ACME, COMPANY, Daemon, Installation, SOURCE, http, pay, pay_to};
use serde_json::json;

/// Series with their values, as they are written.
type Series = BTreeMap<String, String>;

async fn text(daemon: &Daemon) -> String {
    let answer = http().get(format!("{}/metrics", daemon.base)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    answer.text().await.unwrap()
}

async fn series(daemon: &Daemon) -> Series {
    let text = text(daemon).await;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

#[track_caller]
fn is(series: &Series, name: &str, value: u32) {
    assert_eq!(series.get(name), Some(&value.to_string()), "{name}");
}

#[track_caller]
fn number(series: &Series, name: &str) -> f64 {
    series[name].parse().unwrap()
}

#[tokio::test]
async fn what_happens_is_counted() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    daemon.fault("read", "unreachable", 1).await;
    let failed = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    failed.is_denied(503, "error", "erp_unavailable");
    agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    let denied = agent.propose("b", &pay("INV-4", "V-100", "90000.00")).await;
    assert_eq!(denied.status.as_u16(), 403, "{}", denied.json);
    daemon.agent("nonsense").get("/v1/bills").await;
    agent.get("/v1/bills/INV-1").await;
    agent.get("/v1/nothing/INV-1").await;

    let found = series(&daemon).await;
    is(&found, "countersign_ready", 1);
    let decided = |labels: &str| format!("countersign_decisions_total{{{labels}}}");
    is(&found, &decided("stage=\"policy\",effect=\"allow\""), 1);
    is(&found, &decided("stage=\"policy\",effect=\"deny\""), 1);
    is(&found, &decided("stage=\"error\",effect=\"deny\""), 1);
    let reason = |labels: &str| format!("countersign_decision_reasons_total{{{labels}}}");
    is(&found, &reason("stage=\"error\",effect=\"deny\",reason=\"erp_unavailable\""), 1);
    for why in denied.reasons() {
        is(&found, &reason(&format!("stage=\"policy\",effect=\"deny\",reason=\"{why}\"")), 1);
    }
    let call = |labels: &str| format!("countersign_calls_total{{{labels}}}");
    is(&found, &call("call=\"register_payment\",outcome=\"answered\""), 1);
    is(&found, &call("call=\"find_bill\",outcome=\"unavailable\""), 1);
    is(&found, "countersign_call_seconds_count{call=\"register_payment\"}", 1);
    is(&found, "countersign_refusals_total{reason=\"token_invalid\"}", 1);
    let request = |labels: &str| format!("countersign_http_requests_total{{{labels}}}");
    let bill = "method=\"GET\",route=\"/v1/bills/{invoice_ref}\",status=\"2xx\"";
    is(&found, &request(bill), 1);
    is(&found, &request("method=\"GET\",route=\"none\",status=\"4xx\""), 1);
    is(&found, &request("method=\"POST\",route=\"/v1/operations\",status=\"2xx\""), 1);
    is(&found, "countersign_receipts_written_total{kind=\"claim\"}", 1);
    is(&found, "countersign_receipts_written_total{kind=\"outcome\"}", 1);
    is(&found, "countersign_store_queue", 0);
    assert!(number(&found, "countersign_store_group_units_count") > 0.0);
    assert!(number(&found, "countersign_store_commit_seconds_count") > 0.0);
    assert!(number(&found, "countersign_http_connections") >= 1.0);
    is(&found, "countersign_checkpoint_fails", 0);
}

#[tokio::test]
async fn what_waits_is_counted_with_its_age_and_what_is_frozen() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    daemon.fault("register_payment", "lost_answer", 1).await;
    daemon.fault("find_payment", "unreachable", 1_000_000).await;
    let lost = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(lost.text("/status"), "unknown", "{}", lost.json);
    let waits = agent.propose("b", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(waits.text("/status"), "pending", "{}", waits.json);
    installation.ok(&["freeze", "add", "--company", COMPANY, "--reason", "a test"], "");
    daemon.advance("2h").await;
    let holds = async |name: &str, value: &str| {
        let what = format!("{name} {value}");
        let found = async || series(&daemon).await.get(name).is_some_and(|found| found == value);
        daemon.until(&what, found).await;
    };
    holds("countersign_operations{state=\"unknown\"}", "1").await;
    holds("countersign_operations{state=\"pending\"}", "1").await;
    holds("countersign_operations{state=\"executing\"}", "0").await;
    holds("countersign_freezes{scope=\"company\"}", "1").await;
    let found = series(&daemon).await;
    for state in ["unknown", "pending"] {
        let name = format!("countersign_operations_oldest_seconds{{state=\"{state}\"}}");
        assert!(number(&found, &name) >= 7200.0, "{found:?}");
    }
    is(&found, "countersign_operations_oldest_seconds{state=\"executing\"}", 0);
    assert!(number(&found, "countersign_ledger_receipts_total") >= 5.0, "{found:?}");
}

/// What a caller may make up.
async fn hostile_round(daemon: &Daemon, token: &str, round: usize) {
    let agent = daemon.agent(token);
    let odd = format!("odd{round}");
    let mut proposal = pay_to("INV-1", &json!(odd), "1.00");
    agent.propose(&odd, &proposal).await;
    proposal["action"] = json!(odd);
    agent.propose(&format!("{odd}a"), &proposal).await;
    agent.propose(&format!("{odd}b"), &pay(&odd, &odd, &odd)).await;
    agent.get(&format!("/v1/bills/{odd}")).await;
    agent.get(&format!("/{odd}")).await;
    agent.get(&format!("/v1/operations?status={odd}")).await;
    let method = Method::from_bytes(odd.to_uppercase().as_bytes()).unwrap();
    agent.send(agent.request(method.clone(), "/v1/operations")).await;
    agent.send(agent.request(method, &format!("/{odd}"))).await;
    daemon.agent(&odd).get(&format!("/v1/vendors/{odd}")).await;
    let request = agent.request(Method::GET, "/v1/bills").header("Host", format!("{odd}.test"));
    agent.send(request.header("X-Request-Id", odd)).await;
}

#[tokio::test]
async fn no_caller_makes_series_and_nothing_of_a_company_is_told() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    hostile_round(&daemon, &token, 0).await;
    // The answer to the request for the metrics is counted only after it was made.
    text(&daemon).await;
    // What the workers do meanwhile is none of the caller's doing.
    let made = async || -> Vec<String> {
        let all = series(&daemon).await.into_keys();
        let watched = ["list_changes", "list_vendors", "review"];
        let by_workers = |name: &String| {
            name.starts_with("countersign_receipts_written_total")
                || watched.iter().any(|call| name.contains(&format!("call=\"{call}\"")))
        };
        all.filter(|name| !by_workers(name)).collect()
    };
    let before = made().await;
    for round in 1..40 {
        hostile_round(&daemon, &token, round).await;
    }
    let after = made().await;
    let new: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
    assert!(new.is_empty(), "{new:?}");
    // Values are sums of times, in which any digits may stand.
    let told = after.join("\n").to_lowercase();
    let shown = installation.ok(&["check"], "");
    let store = shown.split_whitespace().find(|word| word.starts_with("st_")).unwrap();
    for secret in [
        COMPANY, "red-fox", "marie", "ap-agent", "v-100", "inv-1", "acme", "op_", "md_", "bnk1",
        "odd", "1200", ACME, SOURCE, &token, store,
    ] {
        assert!(!told.contains(&secret.to_lowercase()), "`{secret}` in {told}");
    }
}
