//! A real daemon in a process of its own, a caller over real HTTP, and the hands of people in the
//! sandbox ERP.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::receipts::LedgerKey;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::described;
use crate::support::Place;

pub(crate) const COMPANY: &str = "blue-sparrow";
pub(crate) const SOURCE: &str = "FR1420041010050500013M02606";
pub(crate) const ACME: &str = "FR7630006000011234567890189";
pub(crate) const GLOBEX: &str = "DE89370400440532013000";
/// A valid number that nobody in the world has.
pub(crate) const NOBODYS: &str = "NL91ABNA0417164300";
/// The red-fox company's own.
pub(crate) const FOX_SOURCE: &str = "BE68539007547034";

/// What every human of the tests signs in with.
pub(crate) const PASSWORD: &str = "a password of hers";

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a condition is looked at.
const PACE: Duration = Duration::from_millis(25);

/// Two companies; the first with two vendors and four bills.
pub(crate) const WORLD: &str = include_str!("daemon/world.toml");

/// An installation: folder, configuration, world.
pub(crate) struct Installation {
    folder: TempDir,
}

/// A running daemon.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) base: String,
    log: PathBuf,
}

/// What an answer was.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn text(&self, pointer: &str) -> String {
        let found = self.json.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("no `{pointer}` in {}", self.json)).to_owned()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let reasons = self.json.pointer("/decision/reasons").and_then(Value::as_array);
        reasons.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Fails unless it is an operation with that status, refused there for that.
    #[track_caller]
    pub(crate) fn is_denied(&self, status: u16, stage: &str, reason: &str) {
        let found = (self.status.as_u16(), self.text("/status"), self.text("/decision/stage"));
        assert_eq!(found, (status, "denied".to_owned(), stage.to_owned()), "{}", self.json);
        assert!(self.reasons().iter().any(|found| found == reason), "{}", self.json);
    }

    /// Fails unless it is a problem with that status and code.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        let found = (self.status.as_u16(), self.text("/code"));
        assert_eq!(found, (status, code.to_owned()), "{}", self.json);
        assert_eq!(self.headers["content-type"], "application/problem+json");
    }

    #[track_caller]
    pub(crate) fn is_executed(&self) {
        assert_eq!(
            (self.status.as_u16(), self.text("/status").as_str()),
            (201, "executed"),
            "{}",
            self.json
        );
    }
}

impl Installation {
    /// On the embedded default, with the usual world.
    pub(crate) fn new() -> Self {
        Self::with(WORLD, "sqlite://countersign.db", "")
    }

    /// On that test's place.
    pub(crate) fn at(place: &Place) -> Self {
        if place.is_sqlite() { Self::new() } else { Self::with(WORLD, &place.url, "") }
    }

    /// With that world, store and further configuration.
    pub(crate) fn with(world: &str, store: &str, more: &str) -> Self {
        let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        let text = include_str!("daemon/countersign.toml")
            .replace("@STORE@", store)
            .replace("@POLICIES@", &policies.display().to_string());
        let installation = Self::of(&(text + more));
        std::fs::write(installation.path("world.toml"), world).unwrap();
        installation
    }

    /// With that configuration and nothing else.
    pub(crate) fn of(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("countersign.toml"), configuration).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The key that its ledger is signed with.
    pub(crate) fn ledger_key(&self) -> LedgerKey {
        let text = std::fs::read_to_string(self.path("keys/ledger.key")).unwrap();
        let seed = STANDARD.decode(text.trim()).unwrap().try_into().unwrap();
        LedgerKey::from_seed(&seed).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.arg("--config").arg(self.path("countersign.toml")).args(arguments);
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have closed its input already.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{}`: {error}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Adds marie, the principal.
    pub(crate) fn add_principal(&self) {
        self.add_user("marie", "accountant", COMPANY);
    }

    pub(crate) fn add_user(&self, name: &str, role: &str, company: &str) {
        let add = ["user", "add", name, "--role", role, "--company", company, "--password-stdin"];
        self.ok(&add, &format!("{PASSWORD}\n"));
    }

    /// A mandate of marie's for `ap-agent`, with more options.
    pub(crate) fn mandate(&self, more: &[&str]) -> String {
        self.mandate_of("marie", "ap-agent", COMPANY, SOURCE, more)
    }

    pub(crate) fn mandate_of(
        &self,
        principal: &str,
        agent: &str,
        company: &str,
        source: &str,
        more: &[&str],
    ) -> String {
        let mut issue = vec![
            "mandate",
            "issue",
            "--principal",
            principal,
            "--agent",
            agent,
            "--company",
            company,
            "--scope",
            "invoice.pay",
            "--source-account",
            source,
            "--currency",
            "EUR",
            "--ttl",
            "200h",
        ];
        issue.extend(more);
        self.ok(&issue, "")
    }

    /// Starts the daemon and waits until it is ready.
    pub(crate) async fn start(&self) -> Daemon {
        let daemon = self.start_unready(&[]);
        daemon.until_ready().await;
        daemon
    }

    /// Starts a daemon that ends itself at that point.
    pub(crate) async fn start_to_abort_at(&self, point: &str) -> Daemon {
        let daemon = self.start_unready(&[("COUNTERSIGN_ABORT_AT", point)]);
        daemon.until_ready().await;
        daemon
    }

    /// Starts the daemon and waits only until it listens.
    pub(crate) fn start_unready(&self, environment: &[(&str, &str)]) -> Daemon {
        let log = self.path("log.jsonl");
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        self.start_logging_to(stderr.into(), environment)
    }

    /// The same with another standard error.
    pub(crate) fn start_logging_to(&self, stderr: Stdio, environment: &[(&str, &str)]) -> Daemon {
        let log = self.path("log.jsonl");
        let mut child = self
            .command(&["serve"])
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((_, address)) = line.trim().split_once("http://") else {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            panic!("the daemon did not start: {line}{log}");
        };
        Daemon { child, base: format!("http://{address}"), log }
    }

    /// Fails to start, and says why.
    pub(crate) fn refused_start(&self) -> String {
        let output = self.run(&["serve"], "");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Daemon {
    pub(crate) async fn until_ready(&self) {
        self.until("ready", async || {
            let answer = http().get(format!("{}/readyz", self.base)).send().await.unwrap();
            answer.status() == StatusCode::OK
        })
        .await;
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let started = Instant::now();
        let mut pace = tokio::time::interval(PACE);
        while !condition().await {
            assert!(started.elapsed() < PATIENCE, "not {what} within {PATIENCE:?}: {}", self.log());
            pace.tick().await;
        }
    }

    pub(crate) fn log(&self) -> String {
        let mut text = String::new();
        std::fs::File::open(&self.log).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn agent(&self, token: &str) -> Agent {
        Agent { http: http(), base: self.base.clone(), token: token.to_owned() }
    }

    /// Nobody yet.
    pub(crate) fn stranger(&self) -> Agent {
        self.agent("")
    }

    /// A human of the tests, signed in.
    pub(crate) async fn sign_in(&self, user: &str) -> Agent {
        let answer = self.stranger().sign_in(user, PASSWORD).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.json);
        self.agent(&answer.text("/token"))
    }

    /// Ends the process at once, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, name: &str) {
        let (signal, id) = (format!("-{name}"), self.child.id().to_string());
        assert!(Command::new("kill").args([signal, id]).status().unwrap().success());
    }

    /// Asks the process to stop and waits for it.
    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn until_dead(mut self) {
        let started = Instant::now();
        let mut pace = tokio::time::interval(PACE);
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < PATIENCE, "the daemon lives: {}", self.log());
            pace.tick().await;
        }
    }

    async fn sandbox(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let request = http().request(method, format!("{}/sandbox/{path}", self.base));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let (status, _, text) = described::ask(request).await;
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Every payment that the ERP holds, as bill, account and amount.
    pub(crate) async fn payments(&self) -> Vec<(String, String, String)> {
        let payments = self.sandbox(Method::GET, "payments", None).await;
        let text = |payment: &Value, name: &str| payment[name].as_str().unwrap().to_owned();
        let mut found: Vec<_> = payments
            .as_array()
            .unwrap()
            .iter()
            .map(|payment| {
                (text(payment, "invoice_ref"), text(payment, "payee_iban"), text(payment, "amount"))
            })
            .collect();
        found.sort();
        found
    }

    pub(crate) async fn put_vendor(&self, vendor: &str, fields: Value) {
        let path = format!("companies/{COMPANY}/vendors/{vendor}");
        self.sandbox(Method::PUT, &path, Some(&fields)).await;
    }

    pub(crate) async fn put_bill(&self, bill: &str, fields: Value) {
        let path = format!("companies/{COMPANY}/bills/{bill}");
        self.sandbox(Method::PUT, &path, Some(&fields)).await;
    }

    pub(crate) async fn bill(&self, bill: &str) -> Value {
        self.sandbox(Method::GET, &format!("companies/{COMPANY}/bills/{bill}"), None).await
    }

    pub(crate) async fn pay_by_hand(&self, bill: &str, amount: &str) {
        let path = format!("companies/{COMPANY}/bills/{bill}/pay");
        self.sandbox(Method::POST, &path, Some(&json!({ "amount": amount }))).await;
    }

    pub(crate) async fn advance(&self, by: &str) {
        self.sandbox(Method::POST, "clock", Some(&json!({ "advance": by }))).await;
    }

    pub(crate) async fn fault(&self, on: &str, what: &str, times: u32) {
        let fault = json!({ "on": on, "what": what, "times": times });
        self.sandbox(Method::POST, "faults", Some(&fault)).await;
    }

    pub(crate) async fn slow(&self, on: &str, time: &str) {
        let fault = json!({ "on": on, "what": "slow", "times": 1, "for": time });
        self.sandbox(Method::POST, "faults", Some(&fault)).await;
    }

    pub(crate) async fn put_vop(&self, name: &str, iban: &str, result: &str) {
        let entry = json!({ "name": name, "iban": iban, "result": result });
        self.sandbox(Method::PUT, "vop", Some(&entry)).await;
    }

    /// The bank says that the account's holder is nearly called so.
    pub(crate) async fn put_close_vop(&self, name: &str, iban: &str, actual_name: &str) {
        let entry = json!({ "name": name, "iban": iban, "result": "close_match",
            "actual_name": actual_name });
        self.sandbox(Method::PUT, "vop", Some(&entry)).await;
    }

    pub(crate) async fn put_sanctions(&self, iban: &str, listed: bool) {
        let entry = json!({ "iban": iban, "listed": listed });
        self.sandbox(Method::PUT, "sanctions", Some(&entry)).await;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A test that failed half way leaves no process behind; one that ended it finds none.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A caller with the token of a mandate, or of a session.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    http: Client,
    base: String,
    token: String,
}

/// A payment of a bill on the account on file of its vendor.
pub(crate) fn pay(bill: &str, vendor: &str, amount: &str) -> Value {
    pay_to(bill, &json!({ "ref": vendor }), amount)
}

pub(crate) fn pay_to(bill: &str, payee: &Value, amount: &str) -> Value {
    json!({ "action": "invoice.pay", "args": {
        "invoice_ref": bill, "payee_iban": payee, "amount": amount, "currency": "EUR",
        "source_account": { "ref": "BNK1" },
    }})
}

impl Agent {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let (status, headers, text) = described::ask(request).await;
        Answer { status, headers, json: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    pub(crate) async fn propose(&self, key: &str, proposal: &Value) -> Answer {
        let request = self.request(Method::POST, "/v1/operations").header("Idempotency-Key", key);
        self.send(request.json(proposal)).await
    }

    /// Like [`Agent::propose`], where the daemon may die before it answers.
    pub(crate) async fn propose_into_the_void(&self, key: &str, proposal: &Value) {
        let request = self.request(Method::POST, "/v1/operations").header("Idempotency-Key", key);
        drop(request.json(proposal).send().await);
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.send(self.request(Method::POST, path)).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn sign_in(&self, user: &str, password: &str) -> Answer {
        let body = json!({ "user": user, "password": password });
        self.post_json("/v1/sessions", &body).await
    }

    /// The only operation of this caller once it has that status.
    pub(crate) async fn until_only(&self, daemon: &Daemon, status: &str) -> Answer {
        daemon
            .until(status, async || {
                let answer = self.get("/v1/operations").await;
                answer.json["items"].as_array().is_some_and(|items| {
                    items.len() == 1 && items.iter().all(|item| item["status"] == status)
                })
            })
            .await;
        let id = self.get("/v1/operations").await.text("/items/0/id");
        self.get(&format!("/v1/operations/{id}")).await
    }
}

pub(crate) fn http() -> Client {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_mins(1))
        .build()
        .unwrap()
}
