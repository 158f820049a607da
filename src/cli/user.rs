//! `user`: humans and their roles. Passwords are kept as argon2id hashes.

use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use countersign_erp_source::CompanyId;
use secrecy::SecretString;

use super::{OPERATOR, password_from_stdin, say, table};
use crate::app::Base;
use crate::domain::names::Name;
use crate::gateway::mandates;
use crate::gateway::passwords::NewPassword;
use crate::receipts::{Receipt, ReceiptKind};
use crate::settings::Settings;
use crate::store::people::{self, Role};
use crate::store::{self, Unit};

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
    match command {
        User::Add { name, role, company, password_stdin } => {
            let role = Role::from_code(&role).ok_or_else(|| {
                anyhow!("`{role}` is none of accountant, approver, admin, auditor")
            })?;
            let company = CompanyId::new(company).context("`--company`")?;
            add(base, &parse(&name)?, role, &company, password_stdin).await
        }
        User::Passwd { name, password_stdin } => {
            let name = parse(&name)?;
            let hash = asked_password(password_stdin)?;
            changed(base, name, "password", move |unit, name| {
                Box::pin(async move { people::set_password(unit.conn(), &name, &hash).await })
            })
            .await
        }
        User::Disable { name } => disable(base, parse(&name)?).await,
        User::Enable { name } => {
            changed(base, parse(&name)?, "enabled", |unit, name| {
                Box::pin(async move { people::set_disabled(unit.conn(), &name, None).await })
            })
            .await
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

async fn add(
    base: &Base,
    name: &Name,
    role: Role,
    company: &CompanyId,
    password_stdin: bool,
) -> anyhow::Result<()> {
    let wanted = name.clone();
    let there = base
        .store
        .read(move |conn| Box::pin(async move { people::find_password(conn, &wanted).await }))
        .await?
        .is_some();
    let hash = match (there, password_stdin) {
        // A human who is there keeps the password; a new role asks for none.
        (true, false) => String::new(),
        (true, true) => {
            // Read, so that a pipe does not break, and left alone: `user passwd` changes one.
            password_from_stdin()?;
            String::new()
        }
        (false, from_stdin) => asked_password(from_stdin)?,
    };
    let (person, of, now) = (name.clone(), company.clone(), base.clock.now());
    let written = base
        .store
        .write(move |unit| {
            Box::pin(async move {
                let added = people::add_role(unit.conn(), &person, &hash, &of, role, now).await?;
                if added {
                    unit.receipt(Receipt {
                        kind: ReceiptKind::UserAdded,
                        at: now,
                        company: Some(of.to_string()),
                        operation: None,
                        data: serde_json::json!({
                            "by": OPERATOR, "role": role.code(), "user": person.as_str(),
                        }),
                    })?;
                }
                Ok(added)
            })
        })
        .await?;
    if written.value {
        say(format!("{name} is {} of {company}", role.code()))
    } else {
        bail!("{name} is {} of {company} already", role.code())
    }
}

type Change = Box<
    dyn for<'c> FnOnce(
            &'c mut Unit<'_>,
            Name,
        ) -> store::BoxFuture<'c, Result<bool, store::StoreError>>
        + Send,
>;

async fn changed<F>(base: &Base, name: Name, what: &'static str, change: F) -> anyhow::Result<()>
where
    F: for<'c> FnOnce(
            &'c mut Unit<'_>,
            Name,
        ) -> store::BoxFuture<'c, Result<bool, store::StoreError>>
        + Send
        + 'static,
{
    let change: Change = Box::new(change);
    let (person, now) = (name.clone(), base.clock.now());
    let written = base
        .store
        .write(move |unit| {
            Box::pin(async move {
                if !change(unit, person.clone()).await? {
                    return Ok(false);
                }
                unit.receipt(Receipt {
                    kind: ReceiptKind::UserChanged,
                    at: now,
                    company: None,
                    operation: None,
                    data: serde_json::json!({
                        "by": OPERATOR, "change": what, "user": person.as_str(),
                    }),
                })?;
                Ok(true)
            })
        })
        .await?;
    anyhow::ensure!(written.value, "there is no such user to change: `{name}`");
    say(format!("{name}: {what}"))
}

async fn disable(base: &Base, name: Name) -> anyhow::Result<()> {
    let now = base.clock.now();
    changed(base, name, "disabled", move |unit, name| {
        Box::pin(async move {
            if !people::set_disabled(unit.conn(), &name, Some(now)).await? {
                return Ok(false);
            }
            for mandate in people::mandates_granted_by(unit.conn(), &name).await? {
                let because = "its principal was disabled";
                mandates::revoke_within(unit, &mandate.id, because, OPERATOR, now).await?;
            }
            Ok(true)
        })
    })
    .await
}

async fn list(base: &Base) -> anyhow::Result<()> {
    let people = base.store.read(|conn| Box::pin(async move { people::list(conn).await })).await?;
    let rows: Vec<Vec<String>> = people
        .into_iter()
        .map(|person| {
            let state = if person.active { "active" } else { "disabled" };
            vec![person.name, person.company, person.role, state.to_owned()]
        })
        .collect();
    table(&["USER", "COMPANY", "ROLE", "STATE"], &rows)
}
