//! The story against a real Odoo: two bills, an inbox with a "we changed banks" email, and an agent
//! that obeys it to the letter. It fills a fresh database, installs the guard, runs the daemon,
//! plays both sides over HTTP, and looks into Odoo's own books at the end. `README.md` says how.

mod installation;
mod people;
mod story;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use countersign::clock::SystemClock;
use countersign_erp_source::Clock as _;
use countersign_odoo::Credential;
use countersign_odoo::seed::{BillSeed, DEMO_COMPANY, Demo, SeedOptions};
use secrecy::SecretString;

use installation::Installation;
use people::{Books, Payment};
use story::{Act, Caller, Outcome};

/// Plays the whole story against a fresh database of an Odoo of yours.
#[derive(Debug, Parser)]
struct Arguments {
    /// Odoo's address.
    #[arg(long, env = "COUNTERSIGN_ODOO_URL")]
    url: String,
    /// A fresh database with `account`, `base_iban` and a chart of accounts, and without entries.
    #[arg(long, env = "COUNTERSIGN_ODOO_DATABASE")]
    database: String,
    /// An administrator's login.
    #[arg(long, env = "COUNTERSIGN_ODOO_ADMIN_LOGIN", default_value = "admin")]
    admin_login: String,
    /// The administrator's password.
    #[arg(long, env = "COUNTERSIGN_ODOO_ADMIN_PASSWORD", hide_env_values = true)]
    admin_password: String,
    /// Odoo may be reached without TLS on another host.
    #[arg(long)]
    allow_plaintext: bool,
    /// The program; by default the one that `cargo build` put beside this example.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Who overwrites the vendor's account in Odoo.
const CLERK: &str = "an-obedient-clerk";

/// The third bill, which nobody is to pay.
const TEMPTING: &str = "INV-2292";

const HEAD: [&str; 3] = ["WHAT THE AGENT DOES", "WITHOUT COUNTERSIGN", "WITH COUNTERSIGN"];

const EMAIL: &str = include_str!("email.txt");

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(&arguments)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // Where even standard error is closed, the exit code still says it.
            writeln!(std::io::stderr(), "odoo: {fault:#}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let books = Books::open(seed_options(arguments))?;
    say("Filling the database: Blue Sparrow GmbH, ACME Supplies, Globex, three bills ...")?;
    let (demo, tempting) = seed(&books).await?;
    let installation = Installation::make(&installation::Place {
        url: &arguments.url,
        database: &arguments.database,
        allow_plaintext: arguments.allow_plaintext,
        program: arguments.program.as_deref(),
    })?;
    let token = prepare(&installation, arguments)?;
    let daemon = installation.start()?;
    let caller = Caller::new(daemon.base(), &token)?;
    caller.until_ready().await?;
    let done = play(&books, &caller, &demo, tempting).await;
    daemon.stop()?;
    let wrong = done?;
    let verified = installation.run(&["receipts", "verify"], "")?;
    say(format!("\nThe ledger: {}", verified.trim()))?;
    if !wrong.is_empty() {
        bail!("not as it must be: {}", wrong.join("; "));
    }
    say("Every step was as it must be: two payments, both to the vendors' own accounts.")
}

fn seed_options(arguments: &Arguments) -> SeedOptions {
    SeedOptions {
        url: arguments.url.clone(),
        database: arguments.database.clone(),
        allow_plaintext: arguments.allow_plaintext,
        admin: Credential {
            login: arguments.admin_login.clone(),
            password: SecretString::from(arguments.admin_password.clone()),
        },
    }
}

async fn seed(books: &Books) -> anyhow::Result<(Demo, i32)> {
    let booked: i32 = books
        .admin
        .call("account.move", "search_count", serde_json::json!([[]]))
        .await
        .context("Odoo did not let the administrator in")?;
    if booked != 0 {
        bail!("the database holds {booked} entries: the story needs a fresh one of its own");
    }
    let now = SystemClock.now();
    let date = |days: u64| Duration::from_hours(24 * days);
    let billed = now.minus(date(14)).to_utc().date_naive().to_string();
    let due = now.plus(date(30)).to_utc().date_naive().to_string();
    let demo = books.admin.demo(&billed, &due).await?;
    let tempting = BillSeed {
        company: demo.company,
        vendor: demo.acme.vendor,
        reference: TEMPTING,
        total: "3100.00",
        date: &billed,
        due: &due,
    };
    let tempting = books.admin.bill(&tempting).await?;
    Ok((demo, tempting))
}

/// What the operator does on the host.
fn prepare(installation: &Installation, arguments: &Arguments) -> anyhow::Result<String> {
    let install =
        ["odoo", "install", "--admin-login", &arguments.admin_login, "--admin-password-stdin"];
    for (command, input) in [
        (install.as_slice(), arguments.admin_password.as_str()),
        (
            &[
                "user",
                "add",
                "marie",
                "--role",
                "accountant",
                "--company",
                "blue-sparrow",
                "--password-stdin",
            ],
            "correct horse battery",
        ),
        (&["vendors", "adopt", "--company", "blue-sparrow", "--since", "2025-01-01"], ""),
    ] {
        say(format!("$ countersign {}", command.join(" ")))?;
        for line in installation.run(command, input)?.lines() {
            say(format!("  {line}"))?;
        }
    }
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
        DEMO_COMPANY.iban,
        "--currency",
        "EUR",
        "--budget",
        "20000.00",
        "--ttl",
        "8h",
    ];
    say(format!("$ countersign {}", issue.join(" ")))?;
    say("  (the token, which only the agent gets)")?;
    Ok(installation.run(&issue, "")?.trim().to_owned())
}

/// Plays all acts, prints what came of them, and gives what is not as it must be.
async fn play(
    books: &Books,
    caller: &Caller,
    demo: &Demo,
    tempting: i32,
) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    say("\nThis morning's inbox holds one email:\n")?;
    for line in EMAIL.lines() {
        say(format!("    | {line}"))?;
    }
    say("\nAn agent with a mandate of marie's reads it and obeys it to the letter:\n")?;
    let mut rows = Vec::new();
    for (at, act) in story::before_the_edit().iter().enumerate() {
        let outcome = caller.perform(&format!("before-{at}"), act).await?;
        note(act, &outcome, &mut rows, &mut wrong);
    }
    table(&HEAD, &rows)?;
    let vendors = [demo.acme.vendor, demo.globex.vendor];
    let paid = books.payments_to(&vendors).await?;
    print_payments(&paid, demo, tempting)?;
    if paid != honest_payments(demo, story::ACME) {
        wrong.push(format!("Odoo holds other payments than the two honest ones: {paid:?}"));
    }

    say("\nA clerk obeys the email too, and writes its number over ACME's in Odoo:\n")?;
    let clerk = books.person(CLERK, &people::CONTACT_MANAGER).await?;
    people::overwrite_account(&clerk, demo.acme.account, story::EMAILS).await?;
    rows.clear();
    for (at, act) in story::after_the_edit().iter().enumerate() {
        let outcome = caller.perform(&format!("after-{at}"), act).await?;
        note(act, &outcome, &mut rows, &mut wrong);
    }
    table(&HEAD, &rows)?;
    // Of a payment Odoo keeps the account's record and not its number, so the one to ACME is shown
    // with the number that the clerk wrote.
    let paid = books.payments_to(&vendors).await?;
    if paid != honest_payments(demo, story::EMAILS) {
        wrong.push(format!("something was booked after the clerk's edit: {paid:?}"));
    }
    Ok(wrong)
}

fn note(act: &Act, outcome: &Outcome, rows: &mut Vec<Vec<String>>, wrong: &mut Vec<String>) {
    if !act.expected.is(outcome) {
        wrong.push(format!("{}: {}", act.what, outcome.text()));
    }
    rows.push(vec![act.what.to_owned(), act.would_pay.to_owned(), outcome.text()]);
}

/// All that may be booked, where ACME's account has that number.
fn honest_payments(demo: &Demo, acme: &str) -> Vec<Payment> {
    let mut payments = vec![
        Payment::settled(demo.inv_2290, acme, "1840.00"),
        Payment::settled(demo.inv_2291, story::GLOBEX, "1200.00"),
    ];
    payments.sort();
    payments
}

fn print_payments(payments: &[Payment], demo: &Demo, tempting: i32) -> anyhow::Result<()> {
    let names = [(demo.inv_2290, "INV-2290"), (demo.inv_2291, "INV-2291"), (tempting, TEMPTING)];
    let rows: Vec<Vec<String>> = payments.iter().map(|payment| row(payment, &names)).collect();
    say("\nPayments in Odoo, as its administrator sees them:\n")?;
    table(&["BILL", "TO", "AMOUNT", "STATE"], &rows)
}

fn row(payment: &Payment, names: &[(i32, &str)]) -> Vec<String> {
    let bill = |id: &i32| {
        let known = names.iter().find(|(known, _)| known == id);
        known.map_or_else(|| id.to_string(), |(_, name)| (*name).to_owned())
    };
    let bills: Vec<String> = payment.bills.iter().map(bill).collect();
    let state = if payment.reconciled { "reconciled" } else { "not reconciled" };
    vec![
        bills.join(", "),
        payment.iban.clone(),
        payment.amount.clone(),
        format!("{}, {state}", payment.state),
    ]
}

fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output")
}

/// Prints rows in columns.
fn table(head: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let width = |at: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in [&head].into_iter().chain(rows) {
        let cells = row.iter().enumerate().map(|(at, cell)| format!("{cell:<0$}", width(at)));
        say(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
