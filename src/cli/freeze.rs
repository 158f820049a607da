//! `freeze`: stops payments at once.

use anyhow::{Context, bail};
use clap::Subcommand;
use countersign_erp_source::{CompanyId, VendorId};

use super::{OPERATOR, say, table, warn};
use crate::ap::adoption;
use crate::app::{App, Base};
use crate::domain::names::FreezeId;
use crate::gateway::freeze;
use crate::settings::Settings;
use crate::store::freezes::FreezeScope;
use crate::store::{Role, baseline};

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
    match command {
        FreezeCommand::Add { company, vendor, reason } => {
            let scope = match (company, vendor) {
                (None, _) => FreezeScope::All,
                (Some(company), None) => FreezeScope::Company(company),
                (Some(company), Some(vendor)) => FreezeScope::Vendor { company, vendor },
            };
            let base = Base::open(settings, Role::Command).await?;
            let done = add(&base, scope, &reason).await;
            base.close().await;
            done
        }
        FreezeCommand::List => {
            let base = Base::open(settings, Role::Command).await?;
            let done = list(&base).await;
            base.close().await;
            done
        }
        FreezeCommand::Remove { id, reason } => {
            let app = App::open(settings, Role::Command).await?;
            let done = remove(&app, &id, &reason).await;
            app.close().await;
            done
        }
    }
}

async fn add(base: &Base, scope: FreezeScope, reason: &str) -> anyhow::Result<()> {
    // A freeze of a company that does not exist would stop nothing, and nobody would know.
    if let FreezeScope::Company(company) | FreezeScope::Vendor { company, .. } = &scope
        && !base.companies().contains(company)
    {
        bail!("the configuration has no company `{company}`");
    }
    let (randomness, now) = (base.randomness.as_ref(), base.clock.now());
    let id = freeze::add(&base.store, randomness, scope.clone(), reason, OPERATOR, now).await?;
    say(id)?;
    // The freeze comes first, and stands: the store need not know every vendor that the ERP has.
    if let FreezeScope::Vendor { company, vendor } = &scope
        && !is_known(base, company, vendor).await?
    {
        warn(format!(
            "the freeze stands, but Countersign has never seen a vendor `{vendor}` in `{company}`: if \
             the id is wrong, nothing is stopped; look at it in the ERP, or freeze the company"
        ))?;
    }
    Ok(())
}

async fn is_known(base: &Base, company: &str, vendor: &str) -> anyhow::Result<bool> {
    let (Ok(company), Ok(vendor)) = (CompanyId::new(company), VendorId::new(vendor)) else {
        return Ok(false);
    };
    Ok(base.store.ask(baseline::is_known(&company, &vendor)).await?)
}

async fn list(base: &Base) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = freeze::in_force(&base.store)
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
    let store = &app.base.store;
    let found = freeze::in_force(store).await?.into_iter().find(|freeze| freeze.id == id);
    let Some(freeze) = found else {
        bail!("no freeze `{id}` is in force");
    };
    if freeze.cause.as_deref() == Some(STORE_BEHIND) {
        let taken = adoption::take_orders_over(app.reading.ports(), 0, OPERATOR).await?;
        say(format!("{taken} orders of the ERP were taken over"))?;
    }
    freeze::remove(store, &id, reason, OPERATOR, app.base.clock.now()).await?;
    say(format!("{id} is removed"))
}
