//! I6, I10: a store or a checkpoint that cannot be written, because the disk is full or the database
//! refuses. Nothing is sent, nothing that was acknowledged is lost, and it goes on by itself.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::daemon::{ACME, Agent, Answer, Daemon, GLOBEX, Installation, WORLD, pay};
use crate::support::{Place, on_both, report};

fn acme() -> Value {
    pay("INV-1", "V-100", "1200.00")
}

fn globex() -> Value {
    pay("INV-2", "V-200", "340.00")
}

fn paid(bills: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let whole = |(bill, account, amount): &(&str, &str, &str)| {
        ((*bill).to_owned(), (*account).to_owned(), (*amount).to_owned())
    };
    bills.iter().map(whole).collect()
}

/// The database refuses each receipt, as a full one does.
async fn refuse(place: &Place) {
    if place.is_sqlite() {
        let trigger = "create trigger refusing before insert on receipts \
                       begin select raise(abort, 'database or disk is full'); end";
        place.tamper(trigger).await;
    } else {
        let function = "create function refuse() returns trigger language plpgsql as $$ begin \
                        raise exception 'no space left on device' using errcode = '53100'; end $$";
        place.tamper(function).await;
        let trigger = "create trigger refusing before insert on receipts \
                       for each row execute function refuse()";
        place.tamper(trigger).await;
    }
}

async fn give_room(place: &Place) {
    if place.is_sqlite() {
        place.tamper("drop trigger refusing").await;
    } else {
        place.tamper("drop trigger refusing on receipts").await;
        place.tamper("drop function refuse()").await;
    }
}

async fn with(store: &str) -> (Installation, Daemon, String) {
    let installation = Installation::with(WORLD, store, "");
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    (installation, daemon, token)
}

async fn is_still(agent: &Agent, known: &Answer) {
    let found = agent.get(&format!("/v1/operations/{}", known.text("/id"))).await;
    assert_eq!(found.text("/status"), known.text("/status"), "{}", found.json);
}

async fn says_that_it_cannot_be_written(daemon: &Daemon, agent: &Agent) {
    daemon
        .until("unready", async || {
            let ready = agent.get("/readyz").await;
            ready.status.as_u16() == 503
                && ready.json.to_string().contains("the store cannot be written")
        })
        .await;
}

#[tokio::test]
async fn a_store_that_takes_no_writes_sends_nothing_and_loses_nothing() {
    on_both(async |place| {
        let (installation, daemon, token) = with(&place.url).await;
        let agent = daemon.agent(&token);
        let known = agent.propose("a", &acme()).await;
        known.is_executed();
        refuse(place).await;
        let bill = [("INV-1", ACME, "1200.00")];
        for _ in 0..3 {
            agent.propose("b", &globex()).await.is_problem(503, "store_unavailable");
            assert_eq!(daemon.payments().await, paid(&bill));
        }
        says_that_it_cannot_be_written(&daemon, &agent).await;
        // What is there is still read.
        is_still(&agent, &known).await;
        give_room(place).await;
        daemon.until_ready().await;
        agent.propose("b", &globex()).await.is_executed();
        let both = paid(&[("INV-1", ACME, "1200.00"), ("INV-2", GLOBEX, "340.00")]);
        assert_eq!(daemon.payments().await, both);
        daemon.stop();
        installation.ok(&["receipts", "verify"], "");
    })
    .await;
}

#[tokio::test]
async fn a_store_that_is_full_when_the_erp_has_booked_settles_when_there_is_room() {
    on_both(async |place| {
        let (installation, daemon, token) = with(&place.url).await;
        let agent = daemon.agent(&token);
        daemon.slow("register_payment", "1s").await;
        let calling = agent.clone();
        let mut calls = JoinSet::new();
        calls.spawn(async move { calling.propose("k", &acme()).await });
        daemon
            .until("claimed", async || {
                let found = agent.get("/v1/operations?status=executing").await;
                found.json["items"].as_array().is_some_and(|items| !items.is_empty())
            })
            .await;
        refuse(place).await;
        let left = async || daemon.log().contains("is left to the settle worker");
        daemon.until("left to the worker", left).await;
        let bill = paid(&[("INV-1", ACME, "1200.00")]);
        assert_eq!(daemon.payments().await, bill);
        let known = calls.join_all().await.remove(0);
        assert_eq!(known.text("/status"), "executing", "{}", known.json);
        give_room(place).await;
        let ended = agent.until_only(&daemon, "executed").await;
        assert_eq!(ended.text("/id"), known.text("/id"));
        assert_eq!(daemon.payments().await, bill);
        daemon.stop();
        installation.ok(&["receipts", "verify"], "");
    })
    .await;
}

/// A disk of its own, so small that it is full soon.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Of two mebibytes; none where this process may not mount one.
    fn new(installation: &Path) -> Option<Self> {
        let path = installation.join("small");
        std::fs::create_dir(&path).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "none"])
            .arg(&path)
            .output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self { path });
        }
        report("not tried on a full disk: this process may not mount one");
        None
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let mut ballast =
            OpenOptions::new().create(true).append(true).open(self.path.join("ballast")).unwrap();
        for size in [4096, 1] {
            let block = vec![0; size];
            let full = loop {
                if let Err(fault) = ballast.write_all(&block) {
                    break fault;
                }
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
        }
    }

    fn give_room(&self) {
        std::fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Processes of a test that failed may still have files there.
        drop(Command::new("umount").arg("--lazy").arg(&self.path).status());
    }
}

/// An installation whose store or checkpoint is on a small disk.
fn on_a_small_disk(store: &str, checkpoint: &str) -> Option<(Installation, Disk)> {
    let installation = Installation::with(WORLD, store, "");
    let file = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("checkpoint_file = \"checkpoint.txt\"", checkpoint);
    std::fs::write(&file, text).unwrap();
    let disk = Disk::new(file.parent().unwrap())?;
    Some((installation, disk))
}

/// Proposes what is denied until the store takes no more; gives what it acknowledged.
async fn until_full(agent: &Agent) -> Vec<Answer> {
    let mut known = Vec::new();
    loop {
        let key = format!("denied-{}", known.len());
        let answer = agent.propose(&key, &pay("INV-4", "V-100", "90000.00")).await;
        if answer.status.as_u16() == 503 {
            answer.is_problem(503, "store_unavailable");
            return known;
        }
        assert_eq!(answer.text("/status"), "denied", "{}", answer.json);
        known.push(answer);
        assert!(known.len() < 1000, "a full disk takes everything");
    }
}

#[tokio::test]
async fn a_full_disk_under_the_store_sends_nothing_and_loses_nothing() {
    let small = on_a_small_disk("sqlite://small/store.db", "checkpoint_file = \"checkpoint.txt\"");
    let Some((installation, disk)) = small else { return };
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let mut known = vec![agent.propose("a", &acme()).await];
    disk.fill();
    known.extend(until_full(&agent).await);
    let bill = [("INV-1", ACME, "1200.00")];
    agent.propose("b", &globex()).await.is_problem(503, "store_unavailable");
    assert_eq!(daemon.payments().await, paid(&bill));
    says_that_it_cannot_be_written(&daemon, &agent).await;
    for answer in &known {
        is_still(&agent, answer).await;
    }
    disk.give_room();
    daemon.until_ready().await;
    known.push(agent.propose("b", &globex()).await);
    // Full again, and stopped so: that is no reason not to end well, and none to start.
    disk.fill();
    known.extend(until_full(&agent).await);
    daemon.stop();
    let refusal = installation.refused_start();
    assert!(refusal.contains("store.url"), "{refusal}");
    disk.give_room();
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    for answer in &known {
        is_still(&agent, answer).await;
    }
    let both = paid(&[("INV-1", ACME, "1200.00"), ("INV-2", GLOBEX, "340.00")]);
    assert_eq!(daemon.payments().await, both);
    daemon.stop();
    let verified = installation.ok(&["receipts", "verify"], "");
    assert!(verified.contains("the kept checkpoint is in it"), "{verified}");
}

#[tokio::test]
async fn a_full_disk_under_the_checkpoint_stops_no_payment_and_is_made_up_for() {
    let checkpoint = "checkpoint_file = \"small/checkpoint.txt\"";
    let Some((installation, disk)) = on_a_small_disk("sqlite://store.db", checkpoint) else {
        return;
    };
    File::create(disk.path.join("checkpoint.txt")).unwrap();
    disk.fill();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    agent.propose("a", &acme()).await.is_executed();
    let says = async |what: &str| {
        daemon.until(what, async || daemon.log().contains(what)).await;
    };
    says("the checkpoint is not written; it is tried again").await;
    let check = installation.run(&["check"], "");
    let shown = String::from_utf8(check.stdout).unwrap();
    assert_eq!(check.status.code(), Some(1), "{shown}");
    assert!(shown.contains("the checkpoint is behind the store"), "{shown}");
    disk.give_room();
    says("the checkpoint is written again").await;
    agent.propose("b", &globex()).await.is_executed();
    daemon.stop();
    let verified = installation.ok(&["receipts", "verify"], "");
    assert!(verified.contains("the kept checkpoint is in it"), "{verified}");
}
