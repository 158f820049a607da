//! The command line: the only place that prints. Exit codes: 0 done, 1 it failed and says why on
//! standard error, 2 wrong usage.

pub mod agent;
pub mod change;
mod check;
mod demo;
mod freeze;
mod healthcheck;
mod mandate;
mod odoo;
pub mod operator;
mod receipts;
mod serve;
mod user;
mod vendors;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::settings::Settings;

/// Stands between whoever wants to pay a company's vendors and the ERP that books it.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// The configuration.
    #[arg(long, global = true, default_value = "countersign.toml")]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the daemon.
    Serve,
    /// Plays the whole story on the embedded sandbox, in a folder of its own.
    Demo(demo::Demo),
    /// Asks the daemon whether it lives.
    Healthcheck(healthcheck::Healthcheck),
    /// Looks at configuration, policies, store and ERP, and says what is wrong.
    Check,
    /// A company's vendors.
    #[command(subcommand)]
    Vendors(vendors::Vendors),
    /// What has to be prepared in Odoo.
    #[command(subcommand)]
    Odoo(odoo::OdooCommand),
    /// Humans and their roles.
    #[command(subcommand)]
    User(user::User),
    /// Mandates of agents.
    #[command(subcommand)]
    Mandate(mandate::MandateCommand),
    /// Freezes.
    #[command(subcommand)]
    Freeze(freeze::FreezeCommand),
    /// The ledger of receipts.
    #[command(subcommand)]
    Receipts(receipts::ReceiptsCommand),
}

/// What may be said on the command line.
pub fn commands() -> clap::Command {
    Arguments::command()
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(fault) => return failed(&anyhow::Error::new(fault).context("no runtime")),
    };
    match runtime.block_on(dispatch(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => failed(&fault),
    }
}

async fn dispatch(arguments: Arguments) -> anyhow::Result<()> {
    if let Command::Demo(demo) = arguments.command {
        return demo::run(&demo).await;
    }
    // An export verifies without any installation.
    if let Command::Receipts(receipts::ReceiptsCommand::Verify(asked)) = &arguments.command
        && let Some(done) = asked.of_file()
    {
        return done;
    }
    // A configuration that cannot be read is one of the things that it says.
    if let Command::Check = arguments.command {
        return check::run(&arguments.config).await;
    }
    let settings = Settings::load(&arguments.config)?;
    match arguments.command {
        Command::Serve => serve::run(settings).await,
        Command::Demo(demo) => demo::run(&demo).await,
        Command::Healthcheck(asked) => healthcheck::run(&settings, &asked).await,
        Command::Check => check::run(&arguments.config).await,
        Command::Vendors(command) => vendors::run(settings, command).await,
        Command::Odoo(command) => odoo::run(&settings, command).await,
        Command::User(command) => user::run(settings, command).await,
        Command::Mandate(command) => mandate::run(settings, command).await,
        Command::Freeze(command) => freeze::run(settings, command).await,
        Command::Receipts(command) => receipts::run(settings, command).await,
    }
}

fn failed(fault: &anyhow::Error) -> ExitCode {
    // Where even standard error is closed, the exit code still says it.
    writeln!(std::io::stderr(), "countersign: {fault:#}").unwrap_or_default();
    ExitCode::FAILURE
}

/// Prints a line of what was asked for.
///
/// # Errors
/// Standard output does not take it.
pub fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output")
}

/// Says what was done all the same, and may not be what was meant.
fn warn(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "countersign: {line}").context("standard error")
}

/// Who works on the command line, for receipts.
const OPERATOR: &str = "operator";

/// Reads a password from standard input; the final newline is not part of it.
fn password_from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(4096).read_to_string(&mut text).context("standard input")?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let password = line.strip_suffix('\r').unwrap_or(line);
    anyhow::ensure!(!password.is_empty(), "standard input holds no password");
    Ok(password.to_owned())
}

/// Prints rows in columns.
///
/// # Errors
/// Standard output does not take it.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain(head.get(at).map(|cell| cell.chars().count())).max().unwrap_or(0)
    };
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                format!("{cell}{}", " ".repeat(width(at).saturating_sub(cell.chars().count())))
            })
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    say(line(head.to_vec()))?;
    for row in rows {
        say(line(row.iter().map(String::as_str).collect()))?;
    }
    Ok(())
}
