//! `check`: what is configured, what works, what is missing and what to do.

use super::{say, table};
use crate::ap::adoption;
use crate::app::{self, App};
use crate::gateway::pack::Pack as _;
use crate::settings::Settings;
use crate::store::Role;

pub(super) async fn run(settings: Settings) -> anyhow::Result<()> {
    for remark in app::remarks(&settings) {
        say(format!("note: {remark}"))?;
    }
    let app = App::open(settings, Role::Command).await?;
    let done = report(&app).await;
    app.close().await;
    done
}

async fn report(app: &App) -> anyhow::Result<()> {
    let policies = app.gateway.policies();
    let mut rows = vec![
        vec!["configuration".to_owned(), "ok".to_owned(), String::new()],
        vec![
            "policies".to_owned(),
            "ok".to_owned(),
            format!("{} rules, {}", policies.ids().count(), policies.digest()),
        ],
        vec!["store".to_owned(), "ok".to_owned(), app.base.store.id().to_owned()],
    ];
    let workers = app.workers();
    workers.prove().await;
    let mut problems = app.ap.not_ready();
    for company in app.reading.ports().erp.companies() {
        if !adoption::is_adopted(app.reading.ports(), &company).await? {
            problems.push(format!(
                "the vendors of `{company}` are not adopted yet: `countersign vendors adopt`, or \
                 the first `serve`"
            ));
        }
    }
    if problems.is_empty() {
        rows.push(vec![
            "ERP".to_owned(),
            "ok".to_owned(),
            "guard, identities and baselines".to_owned(),
        ]);
    }
    for problem in &problems {
        rows.push(vec!["ERP".to_owned(), "not ready".to_owned(), problem.clone()]);
    }
    table(&["WHAT", "STATE", "DETAIL"], &rows)?;
    anyhow::ensure!(problems.is_empty(), "not ready to pay");
    Ok(())
}
