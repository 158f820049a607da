//! `demo`: the whole story on the embedded sandbox, in a folder of its own. A company, an inbox
//! with a "we changed banks" email, and an agent that obeys it to the letter over real HTTP.

mod story;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use super::{say, table};
use crate::app::Daemon;
use crate::gateway::policy::Policies;
use crate::settings::Settings;
use story::{Act, Outcome};

/// Plays the whole story on the embedded sandbox.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Plays the humans too and checks every step; exits 0 only if all held.
    #[arg(long)]
    auto: bool,
}

const CONFIGURATION: &str = include_str!("demo/countersign.toml");
const WORLD: &str = include_str!("demo/world.toml");
const EMAIL: &str = include_str!("demo/email.txt");

/// The company's own account in the world.
const SOURCE: &str = "FR1420041010050500013M02606";

pub(super) async fn run(demo: &Demo) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("no folder for the demonstration")?;
    let settings = prepare(folder.path())?;
    let token = mandate(folder.path())?;
    let daemon = Daemon::start(settings).await?;
    let done = play(demo, &daemon, &token, folder.path()).await;
    daemon.stop().await;
    done
}

fn prepare(folder: &Path) -> anyhow::Result<Settings> {
    let file = folder.join("countersign.toml");
    fs::write(&file, CONFIGURATION).context("the demonstration's configuration")?;
    fs::write(folder.join("world.toml"), WORLD).context("the demonstration's world")?;
    Policies::write_defaults(&folder.join("policies")).context("the policies")?;
    Ok(Settings::load(&file)?)
}

/// What the operator does on the host: a principal, and a mandate that he grants.
fn mandate(folder: &Path) -> anyhow::Result<String> {
    let add = [
        "user",
        "add",
        "marie",
        "--role",
        "accountant",
        "--company",
        "blue-sparrow",
        "--password-stdin",
    ];
    operator(folder, &add, "correct horse battery")?;
    let issue = [
        "mandate",
        "issue",
        "--principal",
        "marie",
        "--agent",
        "ap-agent",
        "--company",
        "blue-sparrow",
        "--scope",
        "invoice.pay",
        "--source-account",
        SOURCE,
        "--currency",
        "EUR",
        "--budget",
        "20000.00",
        "--ttl",
        "8h",
    ];
    Ok(operator(folder, &issue, "")?.trim().to_owned())
}

/// Runs a command of this program, as an operator would.
fn operator(folder: &Path, arguments: &[&str], input: &str) -> anyhow::Result<String> {
    use std::io::Write as _;
    use std::process::Stdio;
    let program = std::env::current_exe().context("this program")?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--config")
        .arg(folder.join("countersign.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("this program")?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that reads nothing may have closed its input already.
        stdin.write_all(input.as_bytes()).unwrap_or_default();
    }
    let output = child.wait_with_output().context("this program")?;
    if !output.status.success() {
        bail!("`countersign {}` failed", arguments.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn play(demo: &Demo, daemon: &Daemon, token: &str, folder: &Path) -> anyhow::Result<()> {
    let http = story::Caller::new(daemon.address(), token)?;
    http.until_ready().await?;
    say("Blue Sparrow SAS has four open bills. This morning's inbox holds one email:\n")?;
    for line in EMAIL.lines() {
        say(format!("    | {line}"))?;
    }
    say("\nAn agent with a mandate of marie's reads it and obeys it to the letter:\n")?;
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for (at, act) in story::acts().into_iter().enumerate() {
        let outcome = http.perform(at, &act).await?;
        if !act.expected.is(&outcome) {
            wrong.push(format!("{}: {}", act.what, outcome.text()));
        }
        rows.push(row(&act, &outcome));
    }
    table(&["WHAT THE AGENT DOES", "WITHOUT COUNTERSIGN", "WITH COUNTERSIGN"], &rows)?;
    let payments = http.payments().await?;
    say("\nPayments in the ERP:\n")?;
    let paid: Vec<Vec<String>> = payments.iter().map(payment_row).collect();
    table(&["BILL", "TO", "AMOUNT"], &paid)?;
    let verified = operator(folder, &["receipts", "verify"], "")?;
    say(format!("\nThe ledger: {}", verified.trim()))?;
    if !demo.auto {
        return Ok(());
    }
    check(&wrong, &payments)?;
    say("Every step was as it must be: two payments, both to the vendors' own accounts.")
}

fn row(act: &Act, outcome: &Outcome) -> Vec<String> {
    vec![act.what.to_owned(), act.would_pay.to_owned(), outcome.text()]
}

fn payment_row(payment: &Value) -> Vec<String> {
    let text = |name: &str| payment.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    vec![
        text("invoice_ref"),
        text("payee_iban"),
        format!("{} {}", text("amount"), text("currency")),
    ]
}

fn check(wrong: &[String], payments: &[Value]) -> anyhow::Result<()> {
    let mut paid: Vec<(String, String, String)> = payments
        .iter()
        .map(payment_row)
        .map(|row| {
            let mut cells = row.into_iter();
            let mut next = || cells.next().unwrap_or_default();
            (next(), next(), next())
        })
        .collect();
    paid.sort();
    let expected = story::honest_payments();
    if !wrong.is_empty() {
        bail!("not as it must be: {}", wrong.join("; "));
    }
    if paid != expected {
        bail!("the ERP holds other payments than the two honest ones: {paid:?}");
    }
    Ok(())
}
