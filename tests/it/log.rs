//! The log: lines that machines read, with the ids of calls and operations, and that nothing ends.

use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::Value;

use crate::daemon::{Daemon, Installation, pay};

fn lines(daemon: &Daemon) -> Vec<Value> {
    let log = daemon.log();
    log.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

#[track_caller]
fn find<'a>(lines: &'a [Value], name: &str, value: &str) -> Vec<&'a Value> {
    let found: Vec<_> = lines.iter().filter(|line| line[name] == value).collect();
    assert!(!found.is_empty(), "no line with {name} {value} in {lines:#?}");
    found
}

#[tokio::test]
async fn what_is_done_stands_in_the_log_under_its_ids() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let request = agent.request(Method::POST, "/v1/operations").header("Idempotency-Key", "k");
    let request = request.header("X-Request-Id", "call-7").json(&pay("INV-1", "V-100", "1200.00"));
    let paid = agent.send(request).await;
    paid.is_executed();
    let id = paid.text("/id");
    let lines = lines(&daemon);
    for line in &lines {
        for name in ["timestamp", "level", "message", "target"] {
            assert!(line[name].is_string(), "{line}");
        }
    }
    let of_operation = find(&lines, "operation.id", &id);
    let decided = of_operation.iter().find(|line| line["decision.effect"] == "allow").unwrap();
    assert_eq!(decided["decision.stage"], "policy");
    assert_eq!(decided["span"]["request.id"], "call-7");
    assert!(of_operation.iter().any(|line| line["operation.status"] == "executed"));
    let [call] = find(&lines, "request.id", "call-7")[..] else { panic!("{lines:#?}") };
    assert_eq!(
        (call["http.route"].as_str(), &call["http.status"]),
        (Some("/v1/operations"), &201.into())
    );
}

#[test]
fn it_is_text_where_that_is_wanted() {
    let installation = Installation::with(
        crate::daemon::WORLD,
        "sqlite://countersign.db",
        "[log]\nformat = \"text\"",
    );
    let daemon = installation.start_unready(&[]);
    let log = daemon.log();
    let first = log.lines().next().unwrap();
    assert!(first.contains("WARN") && !first.starts_with('{'), "{first}");
}

/// A disk that is full behind standard error must not stop a payment.
#[tokio::test]
async fn a_log_that_cannot_be_written_ends_nothing() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let daemon = installation.start_logging_to(full.into(), &[("RUST_LOG", "trace")]);
    daemon.until_ready().await;
    daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    daemon.stop();
}

#[test]
fn a_level_that_is_none_is_the_usual_one() {
    let installation = Installation::new();
    let daemon = installation.start_unready(&[("RUST_LOG", "shout=loud=")]);
    assert!(daemon.log().contains("\"level\":\"WARN\""));
    drop(daemon);
    // The command line has no log.
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("--config")
        .arg(installation.path("countersign.toml"))
        .arg("check")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty() || !output.stderr.starts_with(b"{"), "{output:?}");
}
