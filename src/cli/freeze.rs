//! `freeze`: stops payments at once.

use anyhow::{Context, bail};
use clap::Subcommand;

use super::{OPERATOR, say, table};
use crate::ap::adoption;
use crate::app::App;
use crate::domain::names::FreezeId;
use crate::settings::Settings;
use crate::store::Role;
use crate::store::freezes::FreezeScope;

/// The cause after which the ERP's orders are taken over before anything is paid again.
const STORE_BEHIND: &str = "store_behind";

/// Freezes.
#[derive(Debug, Subcommand)]
pub(super) enum FreezeCommand {
    /// Freezes everything, a company, or a vendor of a company.
    Add {
        /// The company; without it everything is frozen.
        #[arg(long)]
        company: Option<String>,
        /// The vendor of that company.
        #[arg(long, requires = "company")]
        vendor: Option<String>,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Lists the freezes in force.
    List,
    /// Removes a freeze; after `store_behind` it first takes the ERP's orders into the store.
    Remove {
        /// The freeze's id.
        id: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

pub(super) async fn run(settings: Settings, command: FreezeCommand) -> anyhow::Result<()> {
    let app = App::open(settings, Role::Command).await?;
    let done = act(&app, command).await;
    app.close().await;
    done
}

async fn act(app: &App, command: FreezeCommand) -> anyhow::Result<()> {
    match command {
        FreezeCommand::Add { company, vendor, reason } => {
            let scope = match (company, vendor) {
                (None, _) => FreezeScope::All,
                (Some(company), None) => FreezeScope::Company(company),
                (Some(company), Some(vendor)) => FreezeScope::Vendor { company, vendor },
            };
            let id = app.gateway.freeze(scope, &reason, OPERATOR).await?;
            say(id)
        }
        FreezeCommand::List => list(app).await,
        FreezeCommand::Remove { id, reason } => remove(app, &id, &reason).await,
    }
}

async fn list(app: &App) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = app
        .gateway
        .freezes()
        .await?
        .into_iter()
        .map(|freeze| {
            let what = match &freeze.scope {
                FreezeScope::All => "everything".to_owned(),
                FreezeScope::Company(company) => company.clone(),
                FreezeScope::Vendor { company, vendor } => format!("{company}/{vendor}"),
            };
            vec![
                freeze.id.to_string(),
                what,
                freeze.placed_by,
                freeze.placed_at.to_string(),
                freeze.cause.unwrap_or_default(),
                freeze.reason,
            ]
        })
        .collect();
    table(&["FREEZE", "WHAT", "BY", "SINCE", "CAUSE", "REASON"], &rows)
}

async fn remove(app: &App, id: &str, reason: &str) -> anyhow::Result<()> {
    let id = FreezeId::parse(id).with_context(|| format!("`{id}`"))?;
    let Some(freeze) = app.gateway.freezes().await?.into_iter().find(|freeze| freeze.id == id)
    else {
        bail!("no freeze `{id}` is in force");
    };
    if freeze.cause.as_deref() == Some(STORE_BEHIND) {
        let taken = adoption::take_orders_over(app.reading.ports(), 0, OPERATOR).await?;
        say(format!("{taken} orders of the ERP were taken over"))?;
    }
    app.gateway.thaw(&id, reason, OPERATOR).await?;
    say(format!("{id} is removed"))
}
