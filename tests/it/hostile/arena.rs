//! A daemon under attack, and the one check that every row of every table goes through.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::raw::{Call, Heard, exchange};
use crate::daemon::{Daemon, FOX_SOURCE, Installation, SOURCE};

/// Four companies, of which the attacker acts for the first.
pub(crate) const WORLD: &str = include_str!("world.toml");

/// Every whole account number that stands in the world.
pub(crate) const NUMBERS: [&str; 11] = [
    SOURCE,
    "FR7630006000011234567890189",
    "DE89370400440532013000",
    "BE62510007547061",
    FOX_SOURCE,
    "GB29NWBK60161331926819",
    "CH9300762011623852957",
    "AT611904300234573201",
    "ES9121000418450200051332",
    "LU280019400644750000",
    "NL91ABNA0417164300",
];

/// What is another company's.
const FOREIGN: [&str; 7] = ["red-fox", "Red Fox", "Umbrella", "FOX-", "F-1", "U-1", "renard"];

/// What only somebody who reads the code or the machine could know.
const INTERNAL: [&str; 18] = [
    "sqlite",
    "sqlx",
    "postgres",
    "select ",
    "insert into",
    "panicked",
    "backtrace",
    ".rs",
    "serde",
    "cedar",
    "axum",
    "hyper",
    "tokio",
    "/tmp",
    ".db",
    ".key",
    "unwrap",
    "stack",
];

/// On every answer of the daemon's own.
const PROTECTION: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
];

/// How a row is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refused {
    /// No operation comes of it: status and code.
    Problem(u16, &'static str),
    /// An operation, denied: status, stage, and one of the reasons.
    Denied(u16, &'static str, &'static str),
}

/// A proposal that stage `contract` denies.
pub(crate) const INVALID: Refused = Refused::Denied(422, "contract", "invalid_args");
pub(crate) const UNKNOWN_ACTION: Refused = Refused::Denied(422, "contract", "unknown_action");
/// A body that is no proposal at all.
pub(crate) const MALFORMED: Refused = Refused::Problem(400, "malformed_body");
/// What a harmless proposal comes to.
pub(crate) const NO_SUCH_BILL: Refused = Refused::Denied(403, "provenance", "bill_not_found");
pub(crate) const NOT_FOUND: Refused = Refused::Problem(404, "not_found");
pub(crate) const NOT_LET_IN: Refused = Refused::Problem(401, "token_invalid");

/// What was answered so far, for the ledger to be compared with.
#[derive(Debug, Default)]
struct Tally {
    /// Operations and the receipts that answers named.
    receipts: BTreeSet<(String, String)>,
    /// Refusals without an operation, by code.
    counted: BTreeMap<String, u64>,
}

/// An installation with a daemon, a principal and an agent.
pub(crate) struct Arena {
    pub(crate) installation: Installation,
    pub(crate) daemon: Daemon,
    pub(crate) token: String,
    host: String,
    secrets: Vec<String>,
    tally: Mutex<Tally>,
    keys: AtomicU64,
    paid: Mutex<Vec<Value>>,
}

impl Arena {
    pub(crate) async fn open() -> Self {
        Self::with("").await
    }

    /// With more configuration.
    pub(crate) async fn with(more: &str) -> Self {
        let installation = Installation::with(WORLD, "sqlite://countersign.db", more);
        installation.add_principal();
        let token = installation.mandate(&[]);
        Self::of(installation, token).await
    }

    /// With an installation that has more in it; the token is the agent's.
    pub(crate) async fn of(installation: Installation, token: String) -> Self {
        let daemon = installation.start().await;
        let host = daemon.base.trim_start_matches("http://").to_owned();
        let mut secrets = vec![token.clone(), installation.path("").display().to_string()];
        for name in ["fingerprint", "ledger", "mandate", "seal"] {
            let file = installation.path("keys").join(format!("{name}.key"));
            secrets.push(std::fs::read_to_string(file).unwrap().trim().to_owned());
        }
        for number in NUMBERS {
            let groups: Vec<String> = number
                .as_bytes()
                .chunks(4)
                .map(|four| String::from_utf8_lossy(four).into())
                .collect();
            secrets.extend([number.to_owned(), groups.join(" ")]);
        }
        Self {
            installation,
            daemon,
            token,
            host,
            secrets,
            tally: Mutex::default(),
            keys: AtomicU64::new(0),
            paid: Mutex::default(),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Something else that no answer may hold.
    pub(crate) fn keep_secret(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    /// A call by nobody.
    pub(crate) fn nobodys(&self, method: &str, target: &str) -> Call {
        Call::new(method, target, &self.host)
    }

    /// A call by the agent.
    pub(crate) fn call(&self, method: &str, target: &str) -> Call {
        self.nobodys(method, target).with("Authorization", format!("Bearer {}", self.token))
    }

    pub(crate) fn get(&self, target: &str) -> Call {
        self.call("GET", target)
    }

    /// A proposal with that body, under a key of its own.
    pub(crate) fn proposal(&self, body: impl AsRef<[u8]>) -> Call {
        let key = format!("k{}", self.keys.fetch_add(1, Ordering::Relaxed));
        self.call("POST", "/v1/operations")
            .with("Idempotency-Key", key)
            .with("Content-Type", "application/json")
            .body(body)
    }

    /// A proposal of what any body may say: the bill does not exist. It is the first thing that is
    /// wrong after the forms.
    pub(crate) fn harmless(&self) -> Call {
        self.proposal(args(&[("invoice_ref", "\"INV-9\"")]))
    }

    /// The row: it is refused so, leaves a receipt or a count, moves nothing, and tells nothing.
    pub(crate) async fn refuses(&self, what: &str, call: &Call, refused: Refused) -> Heard {
        let heard = self.hear(what, call).await;
        let said = format!("{what}: {} {}", heard.status, heard.body);
        match refused {
            Refused::Problem(status, code) => {
                assert_eq!(heard.status, status, "{said}");
                assert_eq!(
                    heard.header("content-type"),
                    Some("application/problem+json"),
                    "{said}"
                );
                if !call.is_head() {
                    assert_eq!(
                        (heard.text("/code"), &heard.json["status"]),
                        (code, &json!(status))
                    );
                    assert!(!heard.text("/detail").is_empty(), "{said}");
                }
                *self.tally().counted.entry(code.to_owned()).or_default() += 1;
            }
            Refused::Denied(status, stage, reason) => {
                let found = (heard.status, heard.text("/status"), heard.text("/decision/stage"));
                assert_eq!(found, (status, "denied", stage), "{said}");
                assert!(heard.reasons().contains(&reason), "{said}");
                assert!(!heard.text("/decision/detail").is_empty(), "{said}");
                self.remember(&heard);
            }
        }
        heard
    }

    /// A call that does what it should, as the measure of those that do not. It may pay.
    pub(crate) async fn takes(&self, what: &str, call: &Call, status: u16) -> Heard {
        let heard = self.ask(what, call).await;
        assert_eq!(heard.status, status, "{what}: {}", heard.body);
        if heard.text("/receipt/hash").len() == 64 {
            self.remember(&heard);
        }
        let now = self.payments().await;
        *self.paid.lock().unwrap_or_else(PoisonError::into_inner) = now;
        heard
    }

    /// The same for a call of somebody else, who may see what is his.
    pub(crate) async fn takes_of_another(&self, call: &Call, status: u16) -> Heard {
        let heard = exchange(&self.host, &call.bytes(), call.is_head()).await.unwrap();
        assert_eq!(heard.status, status, "{}", heard.body);
        self.remember(&heard);
        heard
    }

    /// The answer to a call, which moved nothing.
    pub(crate) async fn hear(&self, what: &str, call: &Call) -> Heard {
        let heard = self.ask(what, call).await;
        self.nothing_moved(what).await;
        heard
    }

    /// Bytes that are no call: the line is closed, at most after one answer of that kind.
    pub(crate) async fn cuts_off(&self, what: &str, sent: &[u8], statuses: &[u16]) {
        if let Some(heard) = exchange(&self.host, sent, false).await {
            assert!(statuses.contains(&heard.status), "{what}: {heard:?}");
            assert_eq!(heard.after, "", "{what}: {heard:?}");
            self.is_clean(what, &heard);
            // The parser's own answers have no code; what came through to the daemon is counted.
            if !heard.text("/code").is_empty() {
                *self.tally().counted.entry(heard.text("/code").to_owned()).or_default() += 1;
            }
        }
        self.nothing_moved(what).await;
    }

    async fn ask(&self, what: &str, call: &Call) -> Heard {
        let heard = exchange(&self.host, &call.bytes(), call.is_head()).await;
        let heard = heard.unwrap_or_else(|| panic!("{what}: closed without an answer"));
        assert_eq!(heard.after, "", "{what}: one call was taken for two");
        let id = heard.header("x-request-id").unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        assert!((1..=64).contains(&id.len()) && id.bytes().all(plain), "{what}: {heard:?}");
        for (name, value) in PROTECTION {
            assert_eq!(heard.header(name), Some(value), "{what}: {heard:?}");
        }
        self.is_clean(what, &heard);
        if let Err(fault) = call.with_answer(&heard).described() {
            panic!("{what}: {fault}: {heard:?}");
        }
        heard
    }

    fn is_clean(&self, what: &str, heard: &Heard) {
        let headers = heard.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        let all = headers.collect::<String>() + &heard.body;
        for secret in self.secrets.iter().map(String::as_str).chain(FOREIGN) {
            assert!(!all.contains(secret), "{what}: `{secret}` is told: {all}");
        }
        let lower = all.to_lowercase();
        for word in INTERNAL {
            assert!(!lower.contains(word), "{what}: `{word}` is told: {all}");
        }
    }

    async fn payments(&self) -> Vec<Value> {
        let call = self.nobodys("GET", "/sandbox/payments");
        let heard = exchange(&self.host, &call.bytes(), false).await.unwrap();
        heard.json.as_array().unwrap().clone()
    }

    async fn nothing_moved(&self, what: &str) {
        let (before, now) = (self.paid(), self.payments().await);
        assert_eq!(before, now, "{what}: money moved");
    }

    /// The payments that the ERP holds by right.
    pub(crate) fn paid(&self) -> Vec<Value> {
        self.paid.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, heard: &Heard) {
        let kept = (heard.text("/id").to_owned(), heard.text("/receipt/hash").to_owned());
        assert!(kept.0.starts_with("op_") && kept.1.len() == 64, "{heard:?}");
        self.tally().receipts.insert(kept);
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the daemon and compares its ledger with what was answered: each operation has the
    /// receipt that was named, no other operation was made, and each other refusal was counted.
    pub(crate) async fn close(self) -> String {
        self.nothing_moved("all of it").await;
        let Self { installation, daemon, tally, .. } = self;
        daemon.stop();
        installation.ok(&["receipts", "verify"], "");
        let export = installation.ok(&["receipts", "export"], "");
        let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut receipts = BTreeSet::new();
        let mut counted = BTreeMap::<String, u64>::new();
        for line in export.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(receipt) = line["receipt"].as_str() else { continue };
            let receipt: Value = serde_json::from_str(receipt).unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if receipt["operation"].is_string() {
                receipts.insert((text(&receipt["operation"]), text(&line["hash"])));
            }
            if receipt["kind"] == "denial_count" {
                let count = receipt["data"]["count"].as_u64().unwrap();
                *counted.entry(text(&receipt["data"]["reason"])).or_default() += count;
            }
        }
        for kept in &tally.receipts {
            assert!(receipts.contains(kept), "{kept:?} is not in the ledger");
        }
        let ids = |all: &BTreeSet<(String, String)>| -> BTreeSet<String> {
            all.iter().map(|(operation, _)| operation.clone()).collect()
        };
        assert_eq!(ids(&receipts), ids(&tally.receipts), "operations that nobody was told of");
        assert_eq!(counted, tally.counted, "refusals that were not counted as they were");
        export
    }
}

/// Another principal's, agent's or company's mandate, in any currency.
pub(crate) fn mandate(
    installation: &Installation,
    principal: &str,
    agent: &str,
    company: &str,
    source: &str,
    currency: &str,
) -> String {
    let mut issue = vec!["mandate", "issue", "--principal", principal, "--agent", agent];
    issue.extend(["--company", company, "--scope", "invoice.pay", "--ttl", "200h"]);
    issue.extend(["--source-account", source, "--currency", currency]);
    installation.ok(&issue, "")
}

/// The arguments of an honest payment of the bill of 1200.00, as JSON texts, some of them replaced.
pub(crate) fn args(changes: &[(&str, &str)]) -> String {
    let mut all = BTreeMap::from([
        ("invoice_ref", "\"INV-1\""),
        ("payee_iban", "{\"ref\":\"V-100\"}"),
        ("amount", "\"1200.00\""),
        ("currency", "\"EUR\""),
        ("source_account", "{\"ref\":\"BNK1\"}"),
    ]);
    all.extend(changes.iter().copied());
    let members: Vec<String> =
        all.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    body("\"invoice.pay\"", &format!("{{{}}}", members.join(",")), "")
}

/// A body of an action, its arguments and more members.
pub(crate) fn body(action: &str, args: &str, more: &str) -> String {
    format!("{{\"action\":{action},\"args\":{args}{more}}}")
}
