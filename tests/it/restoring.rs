//! Back-ups made while the daemon works, what comes of restoring one, and a database that went back
//! under a running daemon.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::daemon::{ACME, Daemon, GLOBEX, Installation, http, pay};
use crate::support::{Place, on_both};

/// Where that installation's store is, for whoever changes it behind its back.
fn place_of(installation: &Installation, place: &Place) -> Place {
    if place.is_sqlite() {
        Place::of(format!("sqlite://{}", installation.path("countersign.db").display()))
    } else {
        Place::of(place.url.clone())
    }
}

async fn problems(daemon: &Daemon) -> (u16, String) {
    let answer = http().get(format!("{}/readyz", daemon.base)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn metrics(daemon: &Daemon) -> String {
    let answer = http().get(format!("{}/metrics", daemon.base)).send().await.unwrap();
    answer.text().await.unwrap()
}

#[tokio::test]
async fn a_daemon_notices_that_its_database_went_back_and_does_nothing_any_more() {
    on_both(async |place: &Place| {
        let installation = Installation::at(place);
        installation.add_principal();
        let token = installation.mandate(&[]);
        let daemon = installation.start().await;
        let agent = daemon.agent(&token);
        agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        let store = place_of(&installation, place);
        for sql in [
            "delete from signed_heads where seq = (select seq from ledger_head)",
            "update ledger_head set seq = (select max(seq) from signed_heads)",
            "update ledger_head set hash = (select r.entry_hash from receipts r \
             where r.seq = ledger_head.seq)",
            "delete from receipts where seq > (select seq from ledger_head)",
        ] {
            store.tamper(sql).await;
        }
        // Nobody has to write anything for it.
        let noticed = async || problems(&daemon).await.1.contains("went back");
        daemon.until("not ready", noticed).await;
        assert_eq!(problems(&daemon).await.0, 503);
        let refused = agent.propose("b", &pay("INV-2", "V-200", "340.00")).await;
        let found = (refused.status.as_u16(), refused.text("/code"));
        assert_eq!(found, (503, "store_unavailable".to_owned()));
        assert_eq!(agent.get("/v1/operations").await.status.as_u16(), 503);
        assert!(metrics(&daemon).await.contains("\ncountersign_store_went_back 1\n"));
        assert!(daemon.log().contains("\"alarm.kind\":\"store_went_back\""));
        assert_eq!(daemon.payments().await, paid(&[("INV-1", ACME, "1200.00")]));
        daemon.stop();
        let refused = installation.refused_start();
        assert!(refused.contains("checkpoint"), "{refused}");
    })
    .await;
}

/// Proposals that go on until the value is dropped: some write, some read.
struct Load {
    tasks: tokio::task::JoinSet<()>,
}

impl Load {
    fn on(daemon: &Daemon, token: &str) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..4 {
            let agent = daemon.agent(token);
            tasks.spawn(async move {
                for number in 0_u32.. {
                    let key = format!("load-{caller}-{number}");
                    agent.propose(&key, &pay("INV-4", "V-100", "90000.01")).await;
                    agent.get("/v1/operations?limit=1").await;
                }
            });
        }
        Self { tasks }
    }

    async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

/// How the store of a kind is copied while it is used, and put back.
enum Tool {
    /// `VACUUM INTO` by any client.
    Vacuum,
    /// `.backup` of SQLite's own shell.
    Shell,
    /// `pg_dump` and `psql`.
    Postgres,
}

impl Tool {
    /// Those that are there; the others are named.
    fn all(place: &Place) -> Vec<Self> {
        let is_there = |name: &str| {
            let found = Command::new(name).arg("--version").output().is_ok();
            if !found {
                report(&format!("not tried: there is no `{name}`"));
            }
            found
        };
        if !place.is_sqlite() {
            let both = is_there("pg_dump") && is_there("psql");
            return if both { vec![Self::Postgres] } else { Vec::new() };
        }
        let mut tools = vec![Self::Vacuum];
        if is_there("sqlite3") {
            tools.push(Self::Shell);
        }
        tools
    }

    async fn back_up(&self, installation: &Installation, place: &Place) {
        let backup = installation.path("backup");
        let shown = backup.display();
        match self {
            Self::Vacuum => {
                place_of(installation, place).tamper(&format!("vacuum into '{shown}'")).await;
            }
            Self::Shell => {
                let mut command = Command::new("sqlite3");
                let store = installation.path("countersign.db");
                run(command.arg(store).arg(format!(".backup '{shown}'")));
            }
            Self::Postgres => {
                let (server, schema) = place.schema().unwrap();
                let mut command = Command::new("pg_dump");
                command.args(["--no-owner", "--schema", schema, "--file"]).arg(&backup);
                run(command.arg(server));
            }
        }
    }

    async fn restore(&self, installation: &Installation, place: &Place) {
        let backup = installation.path("backup");
        match self {
            Self::Vacuum | Self::Shell => {
                // What is left of the log of the newer file would be read into the older one.
                for name in ["countersign.db-wal", "countersign.db-shm"] {
                    drop(fs::remove_file(installation.path(name)));
                }
                fs::copy(backup, installation.path("countersign.db")).unwrap();
            }
            Self::Postgres => {
                let (server, schema) = place.schema().unwrap();
                place.tamper(&format!("drop schema {schema} cascade")).await;
                let mut command = Command::new("psql");
                command.args(["--quiet", "--set", "ON_ERROR_STOP=1", "--file"]).arg(&backup);
                run(command.arg(server));
            }
        }
        fs::remove_file(installation.path("backup")).unwrap();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn paid(bills: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let owned = |text: &&str| (*text).to_owned();
    bills.iter().map(|(bill, iban, amount)| (owned(bill), owned(iban), owned(amount))).collect()
}

#[tokio::test]
async fn a_copy_made_while_the_daemon_works_is_whole_and_freezes_when_it_is_restored() {
    on_both(async |place: &Place| {
        for tool in Tool::all(place) {
            copied_under_load_and_restored(&tool, place).await;
        }
    })
    .await;
}

async fn copied_under_load_and_restored(tool: &Tool, place: &Place) {
    let installation = Installation::at(place);
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    agent.propose("before", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    let load = Load::on(&daemon, &token);
    let receipts =
        async || metric(&daemon, "countersign_receipts_written_total{kind=\"decision\"}").await;
    daemon.until("busy", async || receipts().await > 20).await;
    tool.back_up(&installation, place).await;
    // What came after the copy.
    agent.propose("after", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    load.end().await;
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");

    tool.restore(&installation, place).await;
    let shorter = installation.run(&["receipts", "verify"], "");
    let said = String::from_utf8_lossy(&shorter.stderr).into_owned();
    assert_eq!(shorter.status.code(), Some(1), "{said}");
    let refused = installation.refused_start();
    assert!(refused.contains("checkpoint"), "{refused}");
    fs::rename(installation.path("checkpoint.txt"), installation.path("evidence.txt")).unwrap();

    let daemon = installation.start_unready(&[]);
    let agent = daemon.agent(&token);
    let frozen = async || installation.ok(&["freeze", "list"], "").contains("store_behind");
    daemon.until("frozen", frozen).await;
    // The copy by itself is a whole chain.
    installation.ok(&["receipts", "verify"], "");
    let alarm = "countersign_alarms_open{kind=\"store_behind\"}";
    daemon.until("alarmed", async || metric(&daemon, alarm).await >= 1).await;
    assert!(problems(&daemon).await.1.contains("older"), "{:?}", problems(&daemon).await);
    let stopped = agent.propose("frozen", &pay("INV-3", "V-100", "100.00")).await;
    assert_ne!(stopped.text("/status"), "executed", "{}", stopped.json);
    // The bill that was paid after the copy looks open to somebody who undid the payment.
    daemon.put_bill("INV-1", json!({ "state": "open", "paid": "0.00" })).await;
    let list = installation.ok(&["freeze", "list"], "");
    let id = list.split_whitespace().find(|word| word.starts_with("fz_")).unwrap().to_owned();
    let removed = installation.ok(&["freeze", "remove", &id, "--reason", "restored"], "");
    assert!(removed.contains("orders"), "{removed}");
    daemon.until_ready().await;
    let again = agent.propose("again", &pay("INV-1", "V-100", "1200.00")).await;
    again.is_denied(403, "execution", "already_paid");
    let expected = [("INV-1", ACME, "1200.00"), ("INV-2", GLOBEX, "340.00")];
    assert_eq!(daemon.payments().await, paid(&expected));
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn a_copy_that_lacks_nothing_is_taken_as_it_is() {
    on_both(async |place: &Place| {
        for tool in Tool::all(place) {
            let installation = Installation::at(place);
            installation.add_principal();
            let token = installation.mandate(&[]);
            let daemon = installation.start().await;
            let agent = daemon.agent(&token);
            agent.propose("a", &pay("INV-2", "V-200", "340.00")).await.is_executed();
            daemon.stop();
            tool.back_up(&installation, place).await;
            tool.restore(&installation, place).await;
            installation.ok(&["receipts", "verify"], "");
            let daemon = installation.start().await;
            let agent = daemon.agent(&token);
            agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
            agent.propose("a", &pay("INV-2", "V-200", "340.00")).await.is_executed();
            daemon.stop();
            installation.ok(&["receipts", "verify"], "");
        }
    })
    .await;
}

async fn metric(daemon: &Daemon, name: &str) -> u64 {
    let text = metrics(daemon).await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

#[expect(clippy::print_stderr, reason = "a test says what it left out")]
fn report(text: &str) {
    eprintln!("{text}");
}
