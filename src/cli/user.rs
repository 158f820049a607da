//! `user`: humans and their roles. Passwords are kept as argon2id hashes.

use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use countersign_erp_source::CompanyId;
use secrecy::SecretString;

use super::{password_from_stdin, say, table};
use crate::app::Base;
use crate::domain::names::Name;
use crate::domain::role::Role;
use crate::gateway::passwords::NewPassword;
use crate::gateway::people::{self, By, NewRole, PeopleError};
use crate::settings::Settings;
use crate::store;

/// Humans and their roles.
#[derive(Debug, Subcommand)]
pub(super) enum User {
    /// Adds a human, or a role to one that is there.
    Add {
        /// The human's name.
        name: String,
        /// accountant, approver, admin or auditor.
        #[arg(long)]
        role: String,
        /// The company.
        #[arg(long)]
        company: String,
        /// Reads the password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Sets a human's password.
    Passwd {
        /// The human's name.
        name: String,
        /// Reads the password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Ends at once what a human may do.
    Disable {
        /// The human's name.
        name: String,
    },
    /// Lets a disabled human act again.
    Enable {
        /// The human's name.
        name: String,
    },
    /// Lists all humans.
    List,
}

pub(super) async fn run(settings: Settings, command: User) -> anyhow::Result<()> {
    let base = Base::open(settings, store::Role::Command).await?;
    let done = act(&base, command).await;
    base.close().await;
    done
}

async fn act(base: &Base, command: User) -> anyhow::Result<()> {
    let now = base.clock.now();
    match command {
        User::Add { name, role, company, password_stdin } => {
            let role = Role::from_code(&role).ok_or_else(|| {
                anyhow!("`{role}` is none of accountant, approver, admin, auditor")
            })?;
            let company = CompanyId::new(company).context("`--company`")?;
            add(base, NewRole { name: parse(&name)?, company, role }, password_stdin).await
        }
        User::Passwd { name, password_stdin } => {
            let name = parse(&name)?;
            let hash = asked_password(password_stdin)?;
            said(&name, "password", people::set_password(&base.store, &name, hash, now).await)
        }
        User::Disable { name } => {
            let name = parse(&name)?;
            said(&name, "disabled", people::disable(&base.store, &name, now).await)
        }
        User::Enable { name } => {
            let name = parse(&name)?;
            said(&name, "enabled", people::enable(&base.store, &name, now).await)
        }
        User::List => list(base).await,
    }
}

fn parse(name: &str) -> anyhow::Result<Name> {
    Name::parse(name).with_context(|| format!("`{name}`"))
}

/// The argon2id hash of the password on standard input.
fn asked_password(from_stdin: bool) -> anyhow::Result<String> {
    if !from_stdin {
        bail!("give the password on standard input, with `--password-stdin`");
    }
    let password = NewPassword::new(SecretString::from(password_from_stdin()?))?;
    Ok(password.hash()?)
}

async fn add(base: &Base, new: NewRole, password_stdin: bool) -> anyhow::Result<()> {
    let hash = match (people::exists(&base.store, &new.name).await?, password_stdin) {
        // A human who is there keeps the password; a new role asks for none.
        (true, false) => None,
        (true, true) => {
            // Read, so that a pipe does not break, and left alone: `user passwd` changes one.
            password_from_stdin()?;
            None
        }
        (false, from_stdin) => Some(asked_password(from_stdin)?),
    };
    let text = format!("{} is {} of {}", new.name, new.role.code(), new.company);
    match people::add(&base.store, new, hash, By::Operator, base.clock.now()).await {
        Ok(_) => say(text),
        Err(PeopleError::RoleHeld) => bail!("{text} already"),
        Err(fault) => Err(fault.into()),
    }
}

fn said(name: &Name, what: &str, done: Result<(), PeopleError>) -> anyhow::Result<()> {
    match done {
        Ok(()) => say(format!("{name}: {what}")),
        Err(PeopleError::NotFound) => bail!("there is no such user to change: `{name}`"),
        Err(fault) => Err(fault.into()),
    }
}

async fn list(base: &Base) -> anyhow::Result<()> {
    let people =
        base.store.read(|conn| Box::pin(async move { store::people::list(conn).await })).await?;
    let rows: Vec<Vec<String>> = people
        .into_iter()
        .map(|person| {
            let state = if person.active { "active" } else { "disabled" };
            vec![person.name, person.company, person.role, state.to_owned()]
        })
        .collect();
    table(&["USER", "COMPANY", "ROLE", "STATE"], &rows)
}
