//! The story against a real Odoo: two bills, an inbox with a "we changed banks" email, and an agent
//! that obeys it to the letter. It fills a fresh database, installs the guard, runs the daemon,
//! plays both sides over HTTP, and looks into Odoo's own books at the end. `README.md` says how.

mod arguments;
mod installation;
mod people;
mod play;
mod prepare;
mod story;
mod told;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser as _;
use countersign::cli::operator::Operator;
use countersign::cli::say;
use countersign::settings::Settings;
use countersign_odoo::Credential;
use countersign_odoo::seed::SeedOptions;
use secrecy::SecretString;

use arguments::{Arguments, Installed, Part, Play, Prepare, Whole};
use installation::Installation;
use people::Books;
use told::Folder;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(arguments)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // Where even standard error is closed, the exit code still says it.
            writeln!(std::io::stderr(), "odoo: {fault:#}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.part {
        None => whole(&arguments.whole).await,
        Some(Part::Prepare(asked)) => prepare_only(&asked).await,
        Some(Part::Play(asked)) => play_only(&asked).await,
    }
}

/// All of it, in a folder of its own.
async fn whole(asked: &Whole) -> anyhow::Result<()> {
    let wanted = |option: &'static str, value: &Option<String>| {
        value.clone().with_context(|| format!("`{option}` is missing"))
    };
    let options = SeedOptions {
        url: wanted("--url", &asked.url)?,
        database: wanted("--database", &asked.database)?,
        allow_plaintext: asked.allow_plaintext,
        admin: Credential {
            login: asked.admin_login.clone(),
            password: SecretString::from(wanted("--admin-password", &asked.admin_password)?),
        },
    };
    let installation = Installation::make(&installation::Place {
        url: &options.url,
        database: &options.database,
        allow_plaintext: asked.allow_plaintext,
        program: asked.program.as_deref(),
    })?;
    let admin = options.admin.clone();
    let books = Books::open(options)?;
    let folder = Folder::open(&installation.story())?;
    prepare::prepare(&books, &admin, installation.operator(), &folder).await?;
    let daemon = installation.start()?;
    let done = play::play(&books, daemon.base(), &folder).await;
    daemon.stop()?;
    let wrong = done?;
    let verified = installation.operator().run(&["receipts", "verify"], "")?;
    say(format!("\nThe ledger: {}", verified.trim()))?;
    end(&wrong)
}

async fn prepare_only(asked: &Prepare) -> anyhow::Result<()> {
    if let (Some(from), Some(passfile)) = (&asked.store_password_file, &asked.passfile) {
        prepare::write_passfile(from, passfile)?;
    }
    let (options, _) = at(&asked.installed)?;
    let admin = options.admin.clone();
    let books = prepare::open_books(options, asked.first_admin_password.as_deref()).await?;
    let operator = Operator::new(asked.program.clone(), &asked.installed.config);
    prepare::prepare(&books, &admin, &operator, &Folder::open(&asked.installed.story)?).await
}

async fn play_only(asked: &Play) -> anyhow::Result<()> {
    let (options, settings) = at(&asked.installed)?;
    let (books, folder) = (Books::open(options)?, Folder::open(&asked.installed.story)?);
    end(&play::play(&books, &settings.server.public_url, &folder).await?)
}

/// The Odoo that an installation pays from.
fn at(installed: &Installed) -> anyhow::Result<(SeedOptions, Settings)> {
    let settings = Settings::load(&installed.config)?;
    let odoo = settings.odoo().context("`erp.kind` is not `odoo`")?;
    let options = SeedOptions {
        url: odoo.url.clone(),
        database: odoo.database.clone(),
        allow_plaintext: odoo.allow_plaintext,
        admin: Credential {
            login: installed.admin_login.clone(),
            password: SecretString::from(told::read_password(&installed.admin_password_file)?),
        },
    };
    Ok((options, settings))
}

fn end(wrong: &[String]) -> anyhow::Result<()> {
    if !wrong.is_empty() {
        bail!("not as it must be: {}", wrong.join("; "));
    }
    say("Every step was as it must be: three payments, all to the vendors' own accounts.")
}
