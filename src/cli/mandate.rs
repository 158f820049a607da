//! `mandate`: what an agent may propose.

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use countersign_erp_source::{Amount, CompanyId, Currency, Iban, SourceAccount};

use super::{OPERATOR, say, table};
use crate::app::{App, Base};
use crate::domain::names::{MandateId, Name};
use crate::gateway::mandates::{self, Grant};
use crate::gateway::people::By;
use crate::settings::{Settings, parse_duration};
use crate::store::{Role, people};

/// Mandates of agents.
#[derive(Debug, Subcommand)]
pub(super) enum MandateCommand {
    /// Issues a mandate and prints only its token.
    Issue(Issue),
    /// Lists all mandates.
    List,
    /// Revokes a mandate and cancels what waits under it.
    Revoke {
        /// The mandate's id.
        id: String,
        /// Why.
        #[arg(long, default_value = "revoked by the operator")]
        reason: String,
    },
}

/// What a new mandate grants.
#[derive(Debug, Args)]
pub(super) struct Issue {
    /// The human who grants it: an accountant of the company.
    #[arg(long)]
    principal: String,
    /// The caller who acts under it.
    #[arg(long)]
    agent: String,
    /// The company.
    #[arg(long)]
    company: String,
    /// The actions; may be given several times.
    #[arg(long = "scope", required = true, num_args = 1..)]
    scopes: Vec<String>,
    /// The company's own account that payments leave from.
    #[arg(long)]
    source_account: String,
    /// ISO 4217.
    #[arg(long)]
    currency: String,
    /// The most that may be claimed under it.
    #[arg(long)]
    budget: Option<String>,
    /// The most operations that may be claimed under it.
    #[arg(long)]
    max_calls: Option<i64>,
    /// For how long, like `8h`.
    #[arg(long)]
    ttl: String,
}

pub(super) async fn run(settings: Settings, command: MandateCommand) -> anyhow::Result<()> {
    match command {
        MandateCommand::Issue(issue) => {
            let app = App::open(settings, Role::Command).await?;
            let done = issue_mandate(&app, issue).await;
            app.close().await;
            done
        }
        MandateCommand::List => {
            let base = Base::open(settings, Role::Command).await?;
            let done = list(&base).await;
            base.close().await;
            done
        }
        MandateCommand::Revoke { id, reason } => {
            let base = Base::open(settings, Role::Command).await?;
            let done = revoke(&base, &id, &reason).await;
            base.close().await;
            done
        }
    }
}

async fn issue_mandate(app: &App, issue: Issue) -> anyhow::Result<()> {
    let company = CompanyId::new(issue.company).context("`--company`")?;
    let currency = Currency::from_code(&issue.currency).context("`--currency`")?;
    let budget = issue.budget.map(|text| Amount::parse(&text, currency)).transpose();
    let source = source(app, &company, &issue.source_account).await?;
    let grant = Grant {
        company,
        principal: Name::parse(&issue.principal).context("`--principal`")?,
        agent: Name::parse(&issue.agent).context("`--agent`")?,
        scopes: issue.scopes.into_iter().collect(),
        source,
        currency,
        budget: budget.context("`--budget`")?,
        calls_max: issue.max_calls,
        ttl: parse_duration(&issue.ttl).map_err(|fault| anyhow!("`--ttl`: {fault}"))?,
    };
    let (_, token) = app.gateway.issue(grant, By::Operator).await?;
    say(token)
}

/// The company's own account with that number, as the ERP has it.
async fn source(app: &App, company: &CompanyId, number: &str) -> anyhow::Result<SourceAccount> {
    let iban = Iban::parse(number).context("`--source-account`")?;
    app.reading.source_account(company, &iban).await?.ok_or_else(|| {
        anyhow!("`--source-account`: `{company}` pays from no such account ({iban})")
    })
}

async fn list(base: &Base) -> anyhow::Result<()> {
    let mandates =
        base.store.read(|conn| Box::pin(async move { people::list_mandates(conn).await })).await?;
    let now = base.clock.now();
    let rows: Vec<Vec<String>> = mandates
        .into_iter()
        .map(|mandate| {
            let state = match (mandate.revoked_at, mandate.is_expired(now)) {
                (Some(_), _) => "revoked",
                (None, true) => "expired",
                (None, false) => "in force",
            };
            let scopes: Vec<&str> = mandate.scopes.iter().map(String::as_str).collect();
            vec![
                mandate.id.to_string(),
                mandate.company.to_string(),
                mandate.principal.to_string(),
                mandate.agent.to_string(),
                scopes.join(","),
                mandate.budget.map_or_else(|| "none".to_owned(), |budget| budget.to_string()),
                mandate.expires_at.to_string(),
                state.to_owned(),
            ]
        })
        .collect();
    let head = ["MANDATE", "COMPANY", "PRINCIPAL", "AGENT", "SCOPES", "BUDGET", "EXPIRES", "STATE"];
    table(&head, &rows)
}

async fn revoke(base: &Base, id: &str, reason: &str) -> anyhow::Result<()> {
    let id = MandateId::parse(id).with_context(|| format!("`{id}`"))?;
    mandates::revoke(&base.store, &id, reason, OPERATOR, base.clock.now()).await?;
    say(format!("{id} is revoked"))
}
