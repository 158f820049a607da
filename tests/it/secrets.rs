//! No secret and no whole account number leaves the daemon: not to an agent, not to the log at any
//! level, not to whoever reads the metrics, and not by a command but the one that is asked for it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use countersign_erp_source::{CompanyId, PaymentOrder, SealKey};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use crate::daemon::{
    ACME, Agent, COMPANY, Daemon, FOX_SOURCE, GLOBEX, Installation, NOBODYS, SOURCE, pay, pay_to,
};
use crate::support::{Place, on_both};

/// The account of red-fox's vendor.
const UMBRELLA: &str = "GB29NWBK60161331926819";
const PASSWORD: &str = "correct-horse-battery-41";
const NEXT_PASSWORD: &str = "staple-of-marie-97";
/// In an address of a store that does not exist.
const STORE_PASSWORD: &str = "pw-of-the-store-17";
/// Tells a copy of this binary to panic.
const CHILD_PANICS: &str = "COUNTERSIGN_TEST_CHILD_PANICS";

/// What left the daemon, by the way it left.
#[derive(Default)]
struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    fn add(&mut self, channel: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((channel.into(), bytes.into()));
    }

    fn command(&mut self, arguments: &[&str], output: Output) {
        let name = arguments.join(" ");
        self.add(format!("stdout of {name}"), output.stdout);
        self.add(format!("stderr of {name}"), output.stderr);
    }

    async fn answer(&mut self, request: RequestBuilder) -> (u16, Value) {
        let request = request.build().unwrap();
        let asked = format!("answer to {} {}", request.method(), request.url().path());
        let answer = crate::daemon::http().execute(request).await.unwrap();
        let (status, headers) = (answer.status(), format!("{:?}", answer.headers()));
        let text = answer.text().await.unwrap();
        self.add(asked, format!("{status} {headers} {text}"));
        (status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    #[track_caller]
    fn holds_none_of(&self, secrets: &[(String, Vec<u8>)]) {
        for (name, secret) in secrets {
            assert!(secret.len() >= 8, "{name} is too short to look for");
            for (channel, bytes) in &self.0 {
                let found = bytes.windows(secret.len()).any(|part| part == secret.as_slice());
                assert!(!found, "{name} is in the {channel}");
            }
        }
    }
}

/// All secrets there are, each in every spelling that it may have.
#[derive(Default)]
struct Secrets(Vec<(String, Vec<u8>)>);

impl Secrets {
    fn text(&mut self, name: &str, text: &str) {
        self.0.push((name.to_owned(), text.as_bytes().to_vec()));
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        let hex = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        self.text(&format!("{name} in hex"), &hex);
        self.text(&format!("{name} in HEX"), &hex.to_uppercase());
        self.text(&format!("{name} in base64"), &STANDARD.encode(bytes));
        self.text(&format!("{name} in base64url"), &URL_SAFE_NO_PAD.encode(bytes));
        self.text(&format!("{name} as a list"), &format!("{bytes:?}"));
        self.0.push((format!("{name} as it is"), bytes.to_vec()));
    }

    fn iban(&mut self, iban: &str) {
        let printed: Vec<String> =
            iban.as_bytes().chunks(4).map(|part| String::from_utf8_lossy(part).into()).collect();
        for (how, text) in [
            ("electronic", iban.to_owned()),
            ("lower case", iban.to_lowercase()),
            ("printed", printed.join(" ")),
            ("hyphens", printed.join("-")),
            ("printed for the web", printed.join("%20")),
            ("account part", iban.chars().skip(4).collect()),
        ] {
            self.text(&format!("{iban} ({how})"), &text);
        }
    }

    fn token(&mut self, name: &str, token: &str) {
        let (_, signature) = token.rsplit_once('.').unwrap();
        self.text(name, token);
        self.text(&format!("signature of {name}"), signature);
    }

    fn keys(&mut self, installation: &Installation) -> SealKey {
        let mut seal = None;
        for name in ["ledger.key", "mandate.key", "fingerprint.key", "seal.key"] {
            let text = std::fs::read_to_string(installation.path("keys").join(name)).unwrap();
            let bytes: [u8; 32] = STANDARD.decode(text.trim()).unwrap().try_into().unwrap();
            self.bytes(name, &bytes);
            if name == "seal.key" {
                seal = Some(SealKey::from_bytes(bytes));
            }
        }
        seal.unwrap()
    }

    async fn store(&mut self, url: &str, seal: &SealKey) {
        for marker in rows(url, "select marker from attempt").await {
            self.text("a marker", &marker);
        }
        let orders = rows(url, "select order_text from attempt").await;
        assert!(!orders.is_empty(), "nothing was claimed");
        for text in orders {
            let order =
                PaymentOrder::from_exact_text(&text, CompanyId::new(COMPANY).unwrap()).unwrap();
            self.text("a seal", seal.seal(order).seal());
            self.text("an order", &text);
        }
        for hash in rows(url, "select password_hash from person").await {
            let digest = hash.rsplit('$').next().unwrap();
            self.text("a password's hash", digest);
        }
    }
}

/// The first column of every row.
async fn rows(url: &str, sql: &'static str) -> Vec<String> {
    if url.starts_with("sqlite") {
        let mut conn = SqliteConnection::connect(url).await.unwrap();
        let rows = sqlx::query(sql).fetch_all(&mut conn).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    } else {
        let mut conn = PgConnection::connect(url).await.unwrap();
        let rows = sqlx::query(sql).fetch_all(&mut conn).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Changes the store behind the daemon's back.
async fn tamper(url: &str, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    if url.starts_with("sqlite") {
        let mut conn = SqliteConnection::connect(url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    } else {
        let mut conn = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    }
}

fn propose(agent: &Agent, key: &str, proposal: &Value) -> RequestBuilder {
    agent.request(Method::POST, "/v1/operations").header("Idempotency-Key", key).json(proposal)
}

/// Payments that are made, refused, wait, fail and get lost.
async fn payments(daemon: &Daemon, agent: &Agent, seen: &mut Seen) {
    let acme = pay("INV-1", "V-100", "1200.00");
    for (at, (on, what)) in [
        ("read", "unreachable"),
        ("read", "refuse"),
        ("vop", "unreachable"),
        ("register_payment", "refuse"),
        ("register_payment", "lost_answer"),
    ]
    .into_iter()
    .enumerate()
    {
        daemon.fault(on, what, 1).await;
        seen.answer(propose(agent, &format!("fault-{at}"), &acme)).await;
    }
    daemon
        .until("found again", async || {
            daemon.payments().await.iter().any(|(bill, ..)| bill == "INV-1")
        })
        .await;
    for (key, proposal) in [
        ("paid", pay_to("INV-2", &json!(GLOBEX), "340.00")),
        ("waits", pay("INV-3", "V-100", "8000.00")),
        ("too-much", pay("INV-4", "V-100", "90000.00")),
        ("nobody", pay_to("INV-4", &json!(NOBODYS), "1.00")),
        ("printed", pay_to("INV-4", &json!("NL91 ABNA 0417 1643 00"), "1.00")),
        ("wrong", pay_to("INV-4", &json!("FR7630006000011234567890188"), "1.00")),
        ("disguised", pay_to("INV-4", &json!("FR76\u{a0}3000 6000 0112 3456 7890 189"), "1.00")),
        ("own", pay_to("INV-4", &json!(SOURCE), "1.00")),
        ("foreign", pay("FOX-1", "F-1", "50.00")),
        ("foreign-account", pay_to("INV-4", &json!(UMBRELLA), "1.00")),
    ] {
        seen.answer(propose(agent, key, &proposal)).await;
    }
    let mut other_source = acme.clone();
    other_source["args"]["source_account"] = json!(FOX_SOURCE);
    seen.answer(propose(agent, "other-source", &other_source)).await;
}

/// Everything that an agent reads, and where it puts what it should not.
async fn reads(agent: &Agent, token: &str, seen: &mut Seen) {
    for path in [
        "/v1/bills",
        "/v1/bills/INV-1",
        "/v1/bills/FOX-1",
        "/v1/vendors/V-100",
        "/v1/vendors/F-1",
        "/v1/mandates/current",
        "/v1/operations",
        "/v1/approvals",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        seen.answer(agent.request(Method::GET, path)).await;
    }
    let operations = agent.get("/v1/operations").await;
    let ids = operations.json["items"].as_array().unwrap();
    for id in ids.iter().map(|item| item["id"].as_str().unwrap()) {
        seen.answer(agent.request(Method::GET, &format!("/v1/operations/{id}"))).await;
    }
    for odd in [ACME, NOBODYS, token] {
        let get = |path: &str| agent.request(Method::GET, path);
        seen.answer(get(&format!("/v1/bills/{odd}"))).await;
        seen.answer(get(&format!("/{odd}"))).await;
        seen.answer(get(&format!("/v1/bills?state={odd}&cursor={odd}&{odd}=1"))).await;
        seen.answer(get("/v1/bills").header("X-Request-Id", odd)).await;
        seen.answer(get("/v1/bills").header("Host", odd)).await;
        seen.answer(get("/v1/bills").header("Cookie", format!("session={odd}"))).await;
        seen.answer(get("/v1/bills").header("Authorization", format!("Bearer {odd}"))).await;
        let method = Method::from_bytes(odd.as_bytes()).unwrap();
        seen.answer(agent.request(method, "/v1/bills")).await;
        let post = || agent.request(Method::POST, "/v1/operations");
        seen.answer(post().header("Origin", format!("https://{odd}")).body("")).await;
        let keyed = || post().header("Idempotency-Key", format!("k{}", odd.len()));
        seen.answer(keyed().header("Content-Type", format!("text/{odd}")).body(odd.to_owned()))
            .await;
        let json = |body: String| keyed().header("Content-Type", "application/json").body(body);
        seen.answer(json(format!("{{\"{odd}\":1}}"))).await;
        seen.answer(json(format!("{{\"action\":\"invoice.pay\",\"args\":{{\"{odd}\":1}}}}"))).await;
        seen.answer(json(format!("{{\"action\":\"invoice.pay\",\"args\":[\"{odd}\"]}}"))).await;
        seen.answer(json(format!("{{\"action\":\"invoice.pay\",\"args\":\"{odd}"))).await;
    }
}

/// What is no request, and what is too large to be one.
fn no_requests(daemon: &Daemon, token: &str, seen: &mut Seen) {
    let host = daemon.base.trim_start_matches("http://");
    let long = format!("{token}{ACME}").repeat(400);
    for (name, sent) in [
        ("a broken line", format!("GET /{token} {ACME}\r\n\r\n")),
        ("a broken header", format!("GET / HTTP/1.1\r\nHost: {host}\r\n{token} {ACME}\r\n\r\n")),
        ("a large head", format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Odd: {long}\r\n\r\n")),
        ("a long address", format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n")),
    ] {
        let mut stream = TcpStream::connect(host).unwrap();
        // It may hang up before all is sent.
        drop(stream.write_all(sent.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        seen.add(format!("answer to {name}"), answer);
    }
}

/// People who sign in, rightly and wrongly; gives their session's token.
async fn people(daemon: &Daemon, agent: &Agent, seen: &mut Seen) -> String {
    let sign_in = |user: &str, password: &str| {
        let request = crate::daemon::http().post(format!("{}/v1/sessions", daemon.base));
        request.json(&json!({ "user": user, "password": password }))
    };
    for (user, password) in [("marie", NEXT_PASSWORD), ("nobody", PASSWORD), (ACME, PASSWORD)] {
        seen.answer(sign_in(user, password)).await;
    }
    seen.answer(agent.request(Method::POST, "/v1/sessions")).await;
    let answer = sign_in("marie", PASSWORD).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let token = answer["token"].as_str().unwrap().to_owned();
    // What people are shown is theirs to see, but not the log's.
    let marie = daemon.agent(&token);
    for path in ["/v1/approvals", "/v1/operations", "/v1/users", "/v1/receipts", "/v1/mandates"] {
        marie.get(path).await;
    }
    let waits = agent.get("/v1/operations?status=pending").await.text("/items/0/id");
    let vote = json!({ "operation_hash": PASSWORD });
    let request = marie.request(Method::POST, &format!("/v1/operations/{waits}/approve"));
    seen.answer(request.json(&vote)).await;
    token
}

/// A store that refuses statements in the middle of everything.
async fn broken_store(url: &str, agent: &Agent, seen: &mut Seen) {
    for (key, (bend, mend)) in [
        ("alter table attempt rename to attempt_x", "alter table attempt_x rename to attempt"),
        ("alter table mandate rename to mandate_x", "alter table mandate_x rename to mandate"),
        ("alter table receipts rename to receipts_x", "alter table receipts_x rename to receipts"),
    ]
    .into_iter()
    .enumerate()
    {
        tamper(url, bend).await;
        seen.answer(propose(agent, &format!("sql-{key}"), &pay_to("INV-4", &json!(ACME), "1.00")))
            .await;
        seen.answer(agent.request(Method::GET, "/v1/operations")).await;
        tamper(url, mend).await;
    }
}

/// Commands, done well and wrongly. Only the one that issues a token prints one.
fn commands(installation: &Installation, seen: &mut Seen) {
    let issue = |source| {
        vec![
            "mandate",
            "issue",
            "--principal",
            "marie",
            "--agent",
            "b",
            "--company",
            COMPANY,
            "--scope",
            "invoice.pay",
            "--source-account",
            source,
            "--currency",
            "EUR",
            "--ttl",
            "8h",
        ]
    };
    let add = |name, role| {
        let with = ["--role", role, "--company", COMPANY, "--password-stdin"];
        [["user", "add", name].as_slice(), with.as_slice()].concat()
    };
    let commands: Vec<(Vec<&str>, &str)> = vec![
        (vec!["check"], ""),
        (vec!["user", "list"], ""),
        (add("anna", "approver"), PASSWORD),
        (add("anna", "no-such-role"), PASSWORD),
        (vec!["user", "passwd", "marie", "--password-stdin"], NEXT_PASSWORD),
        (vec!["user", "passwd", "nobody", "--password-stdin"], NEXT_PASSWORD),
        (vec!["mandate", "list"], ""),
        (issue(ACME), ""),
        (issue(NOBODYS), ""),
        (issue("FR7630006000011234567890188"), ""),
        (vec!["freeze", "list"], ""),
        (vec!["receipts", "verify"], ""),
        (vec!["vendors", "adopt", "--company", COMPANY], ""),
    ];
    for (arguments, input) in commands {
        let output = installation.run(&arguments, input);
        seen.command(&arguments, output);
    }
}

/// Starts that fail, each beside a secret.
fn failing_starts(seen: &mut Seen) {
    let start = |change: &dyn Fn(&Installation)| {
        let installation = Installation::new();
        installation.ok(&["user", "list"], "");
        change(&installation);
        installation.run(&["check"], "")
    };
    let configured = |from: &'static str, to: String| {
        start(&move |installation: &Installation| {
            let file = installation.path("countersign.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(&file, text.replace(from, &to)).unwrap();
        })
    };
    let far = format!("postgres://user:{STORE_PASSWORD}@127.0.0.1:1/none");
    seen.command(&["a store that is not there"], configured("sqlite://countersign.db", far));
    let odd = format!("mysql://user:{STORE_PASSWORD}@127.0.0.1/none");
    seen.command(&["a store of another kind"], configured("sqlite://countersign.db", odd));
    let plain = format!("postgres://user:{STORE_PASSWORD}@db.example/none?sslmode=disable");
    seen.command(&["a store without TLS"], configured("sqlite://countersign.db", plain));
    let inside = format!("[keys]\npassword = \"{STORE_PASSWORD}\"");
    seen.command(&["a password in the file"], configured("[keys]", inside));
    let short = start(&|installation: &Installation| {
        std::fs::write(installation.path("keys/seal.key"), STORE_PASSWORD).unwrap();
    });
    seen.command(&["a key that is none"], short);
}

async fn everything(place: &Place) {
    let installation = Installation::at(place);
    let url = if place.is_sqlite() {
        format!("sqlite://{}", installation.path("countersign.db").display())
    } else {
        place.url.clone()
    };
    let add = ["user", "add", "marie", "--role", "accountant", "--company", COMPANY];
    let mut seen = Seen::default();
    let added = installation.run(&[&add[..], &["--password-stdin"]].concat(), PASSWORD);
    seen.command(&add, added);
    let token = installation.mandate(&[]);
    let revoked = installation.mandate_of("marie", "gone", COMPANY, SOURCE, &[]);
    let list = installation.ok(&["mandate", "list"], "");
    let id = list.lines().find(|line| line.contains("gone")).unwrap();
    let id = id.split_whitespace().find(|word| word.starts_with("md_")).unwrap();
    installation.ok(&["mandate", "revoke", id], "");

    let daemon = installation.start_unready(&[("RUST_LOG", "trace")]);
    daemon.until_ready().await;
    let agent = daemon.agent(&token);
    payments(&daemon, &agent, &mut seen).await;
    reads(&agent, &token, &mut seen).await;
    seen.answer(daemon.agent(&revoked).request(Method::GET, "/v1/bills")).await;
    no_requests(&daemon, &token, &mut seen);
    let session = people(&daemon, &agent, &mut seen).await;
    commands(&installation, &mut seen);
    broken_store(&url, &agent, &mut seen).await;
    failing_starts(&mut seen);
    seen.answer(agent.request(Method::GET, "/metrics")).await;
    let log = daemon.log();
    assert!(log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""), "{log}");
    daemon.stop();
    seen.add("log", log);
    seen.add("checkpoint", std::fs::read(installation.path("checkpoint.txt")).unwrap());

    let mut secrets = Secrets::default();
    secrets.token("the token", &token);
    secrets.token("a revoked token", &revoked);
    secrets.text("a session's token", &session);
    secrets.text("a session's secret", session.trim_start_matches("cs_"));
    for password in [PASSWORD, NEXT_PASSWORD, STORE_PASSWORD] {
        secrets.text("a password", password);
    }
    for iban in [ACME, GLOBEX, SOURCE, FOX_SOURCE, UMBRELLA, NOBODYS] {
        secrets.iban(iban);
    }
    secrets.text("an IBAN with a wrong digit", "FR7630006000011234567890188");
    let seal = secrets.keys(&installation);
    secrets.store(&url, &seal).await;
    assert!(seen.0.len() > 100, "{} answers", seen.0.len());
    seen.holds_none_of(&secrets.0);
}

#[tokio::test]
async fn no_secret_and_no_whole_account_number_leaves_by_any_way() {
    on_both(everything).await;
}

#[test]
fn what_a_panic_or_a_library_says_of_data_is_not_written_down() {
    let panics = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "secrets::a_child_panics", "--nocapture"])
        .env(CHILD_PANICS, ACME)
        .env("RUST_BACKTRACE", "1")
        .env("RUST_LOG", "trace")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&panics.stderr);
    assert!(!said.contains(ACME), "{said}");
    let lines: Vec<Value> =
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    let [formatted, literal, warned] = messages.as_slice() else { panic!("{said}") };
    assert!(formatted.starts_with("panicked at tests/it/secrets.rs:"), "{formatted}");
    assert!(formatted.ends_with("(not shown)"), "{formatted}");
    assert!(literal.ends_with("a fixed text"), "{literal}");
    assert_eq!(*warned, "a warning of a library");
}

/// Does nothing but in a process that the test above has started.
#[test]
fn a_child_panics() {
    let Some(secret) = std::env::var_os(CHILD_PANICS) else { return };
    countersign::telemetry::start(countersign::settings::LogFormat::Json);
    let secret = secret.into_string().unwrap();
    let told = secret.clone();
    drop(std::thread::spawn(move || panic!("what was sent: {secret}")).join());
    drop(std::thread::spawn(|| panic!("a fixed text")).join());
    tracing::info!(target: "a_library", "it was sent {told}");
    tracing::warn!(target: "a_library", "a warning of a library");
}

#[test]
fn the_debug_form_of_the_settings_shows_no_password() {
    let installation =
        Installation::with("", &format!("postgres://user:{STORE_PASSWORD}@localhost/x"), "");
    let file = installation.path("countersign.toml");
    let settings = countersign::settings::Settings::load(&file).unwrap();
    let shown = format!("{settings:?}");
    assert!(!shown.contains(STORE_PASSWORD) && shown.contains("checkpoint"), "{shown}");
}
