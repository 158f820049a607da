//! The API's own document, given to schemathesis: calls that are right, and calls that are wrong in
//! one thing, made up from it. Whatever is sent, nothing goes wrong inside, and every answer is one
//! that the document allows. Tried where `COUNTERSIGN_TEST_PYTHON` names an interpreter that has what
//! `fuzzed/requirements.txt` names.
//!
//! A run makes the same calls each time, few of them; `COUNTERSIGN_FUZZ_EXAMPLES=200` makes more.

use std::path::PathBuf;
use std::process::Command;

use crate::daemon::{COMPANY, Installation, PASSWORD};
use crate::support::report;

const PYTHON: &str = "COUNTERSIGN_TEST_PYTHON";
const EXAMPLES: &str = "COUNTERSIGN_FUZZ_EXAMPLES";

/// What is asked of every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,unsupported_method,\
    allow_header_conformance,missing_required_header,negative_data_rejection,ignored_auth";

/// The interpreter, if there is one that has it.
fn python() -> Option<PathBuf> {
    let Some(path) = std::env::var_os(PYTHON).filter(|path| !path.is_empty()) else {
        report(&format!("not tried: {PYTHON} is not set"));
        return None;
    };
    let asked = Command::new(&path).args(["-c", "import schemathesis"]).output().unwrap();
    if !asked.status.success() {
        report(&format!("not tried: {PYTHON} has no schemathesis"));
        return None;
    }
    Some(path.into())
}

/// Calls everything but those addresses, as whoever has that token.
async fn fuzz(who: &str, without: &str) {
    let Some(python) = python() else { return };
    let installation = Installation::new();
    for role in ["accountant", "approver", "admin", "auditor"] {
        installation.add_user("marie", role, COMPANY);
    }
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let token = match who {
        "agent" => Some(token),
        "human" => Some(daemon.stranger().sign_in("marie", PASSWORD).await.text("/token")),
        _ => None,
    };
    let examples = std::env::var_os(EXAMPLES).unwrap_or_else(|| "3".into());
    let mut command = Command::new(python);
    command
        .current_dir(installation.path(""))
        .args([
            "-m",
            "schemathesis.cli",
            "run",
            "--no-color",
            "--seed",
            "7",
            "--continue-on-failure",
        ])
        .args(["--phases", "coverage,fuzzing", "--generation-database", "none"])
        .args(["--checks", CHECKS, "--max-examples"])
        .arg(&examples)
        .args(["--exclude-tag", "not there yet", "--exclude-path-regex", without])
        .args(["--url", &daemon.base]);
    if let Some(token) = &token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let ran = command.arg(format!("{}/v1/openapi.json", daemon.base)).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("Test cases:"), "{said}");
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn nobody_gets_an_answer_that_is_not_described() {
    fuzz("nobody", "^/sandbox/").await;
}

#[tokio::test]
async fn an_agent_gets_no_answer_that_is_not_described() {
    fuzz("agent", "^/sandbox/").await;
}

/// All but signing out, which would be the end of it.
#[tokio::test]
async fn a_human_gets_no_answer_that_is_not_described() {
    fuzz("human", "^/sandbox/|^/v1/sessions/current$").await;
}

/// All but what kills the daemon.
#[tokio::test]
async fn the_control_surface_of_the_sandbox_is_as_it_is_described() {
    fuzz("nobody", "^/v1/|^/sandbox/faults$").await;
}
