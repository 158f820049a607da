//! `vendors adopt`: the first contact.

use anyhow::{Context, bail};
use chrono::NaiveDate;
use clap::Subcommand;
use countersign_erp_source::{CompanyId, Timestamp};

use super::{OPERATOR, say};
use crate::ap::adoption::{self, Adopted};
use crate::app::App;
use crate::settings::Settings;
use crate::store::Role;

/// A company's vendors.
#[derive(Debug, Subcommand)]
pub(super) enum Vendors {
    /// Reads all vendors and makes the baseline, once per company and store.
    Adopt {
        /// The company.
        #[arg(long)]
        company: String,
        /// The operator's word that accounts without a change were on file since that date.
        #[arg(long)]
        since: Option<NaiveDate>,
    },
}

pub(super) async fn run(settings: Settings, command: Vendors) -> anyhow::Result<()> {
    let app = App::open(settings, Role::Command).await?;
    let Vendors::Adopt { company, since } = command;
    let done = adopt(&app, &company, since).await;
    app.close().await;
    done
}

async fn adopt(app: &App, company: &str, since: Option<NaiveDate>) -> anyhow::Result<()> {
    let company = CompanyId::new(company).context("`--company`")?;
    let ports = app.reading.ports();
    if !ports.erp.companies().contains(&company) {
        bail!("the ERP's configuration has no company `{company}`");
    }
    if since.is_some_and(|since| Timestamp::start_of(since) > app.gateway.now()) {
        bail!("`--since` is in the future");
    }
    match adoption::adopt(ports, &company, since, OPERATOR).await? {
        Adopted::Now { vendors, accounts } => {
            say(format!("{company}: {vendors} vendors with {accounts} accounts adopted"))
        }
        Adopted::Before => {
            bail!("the vendors of `{company}` were adopted before; nothing was changed")
        }
    }
}
