//! `demo`: the whole story on the embedded sandbox, in a folder of its own. A company, an inbox
//! with a "we changed banks" email, and an agent that obeys it to the letter over real HTTP.

mod story;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use super::agent::{Agent, Outcome};
use super::change::{self, Change, Play, Step};
use super::operator::{ADD_PRINCIPAL, Operator, PRINCIPALS_PASSWORD, issue_mandate};
use super::{say, table};
use crate::app::Daemon;
use crate::gateway::policy::Policies;
use crate::settings::Settings;
use story::Act;

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
/// The vendor that really changes banks.
const UMBRELLA: Change<'_> = Change {
    name: "Umbrella",
    vendor: "V-400",
    new_iban: "GB29NWBK60161331926819",
    phone: "+33140000003",
    bill: "INV-2294",
    amount: "450.00",
};
/// How long the daemon may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

pub(super) async fn run(demo: &Demo) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("no folder for the demonstration")?;
    let settings = prepare(folder.path())?;
    let operator = Operator::of_this_program(&settings.file)?;
    let token = mandate(&operator)?;
    let daemon = Daemon::start(settings).await?;
    let done = play(demo, &daemon, &token, &operator).await;
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

/// What the operator does on the host: a principal, and a mandate that she grants.
fn mandate(operator: &Operator) -> anyhow::Result<String> {
    operator.run(&ADD_PRINCIPAL, PRINCIPALS_PASSWORD)?;
    change::add_people(operator)?;
    Ok(operator.run(&issue_mandate(SOURCE), "")?.trim().to_owned())
}

async fn play(
    demo: &Demo,
    daemon: &Daemon,
    token: &str,
    operator: &Operator,
) -> anyhow::Result<()> {
    let agent = Agent::new(&format!("http://{}", daemon.address()), token)?;
    agent.until_ready(READY_WITHIN).await?;
    say("Blue Sparrow SAS has five open bills. This morning's inbox holds one email:\n")?;
    for line in EMAIL.lines() {
        say(format!("    | {line}"))?;
    }
    say("\nAn agent with a mandate of marie's reads it and obeys it to the letter:\n")?;
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for (at, act) in story::acts().into_iter().enumerate() {
        let outcome = story::perform(&agent, at, &act).await?;
        if !act.expected.is(&outcome) {
            wrong.push(format!("{}: {}", act.what, outcome.text()));
        }
        rows.push(row(&act, &outcome));
    }
    table(&["WHAT THE AGENT DOES", "WITHOUT COUNTERSIGN", "WITH COUNTERSIGN"], &rows)?;
    say("\nAnother vendor, Umbrella, really changes banks. This is how that goes:\n")?;
    wrong.extend(change::show(&changes(&agent, operator).await?)?);
    let payments = story::payments(&agent).await?;
    say("\nPayments in the ERP:\n")?;
    let paid: Vec<Vec<String>> = payments.iter().map(payment_row).collect();
    table(&["BILL", "TO", "AMOUNT"], &paid)?;
    let verified = operator.run(&["receipts", "verify"], "")?;
    say(format!("\nThe ledger: {}", verified.trim()))?;
    if !demo.auto {
        return Ok(());
    }
    check(&wrong, &payments)?;
    say("Every step was as it must be: two payments, both to the vendors' own accounts.")
}

/// Umbrella changes banks, and eight days pass.
async fn changes(agent: &Agent, operator: &Operator) -> anyhow::Result<Vec<Step>> {
    let mut play = Play::change(agent, UMBRELLA).await?;
    let prepared = play.pay(agent, "prepare-1", "prepare").await?;
    let must = "prepared at policy: fresh-account-needs-four-eyes";
    let what = "prepares a payment to it the same day";
    play.step("agent", what, change::outcome(&prepared), must);
    story::advance(agent, "8d").await?;
    let token = operator.run(&issue_mandate(SOURCE), "")?;
    let later = agent.with_token(token.trim());
    let prepared = play.pay(&later, "prepare-2", "prepare").await?;
    let must = "prepared at policy: invoice-pay-permitted";
    play.step("agent", "prepares it again eight days later", change::outcome(&prepared), must);
    Ok(play.into_steps())
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
