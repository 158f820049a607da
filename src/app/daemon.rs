//! A running daemon: HTTP, workers, and a stop that loses nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{App, Control, remarks};
use crate::gateway::policy::Policies;
use crate::gateway::refusals::Refusals;
use crate::http::{self, HttpState, Limits, Readiness, SandboxControl};
use crate::metrics::Reload;
use crate::receipts::{Receipt, ReceiptKind};
use crate::settings::Settings;
use crate::store::Role;
use crate::worker::Workers;

/// A daemon that serves.
#[derive(Debug)]
pub struct Daemon {
    app: App,
    address: SocketAddr,
    /// Ends requests.
    serving: CancellationToken,
    /// Ends the workers, after the requests.
    working: CancellationToken,
    tasks: TaskTracker,
    refusals: Refusals,
}

impl Daemon {
    /// Opens everything, binds, and serves.
    ///
    /// # Errors
    /// Names the key and the file that are wrong.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        for remark in remarks(&settings) {
            tracing::warn!("{remark}");
        }
        let app = App::open(settings, Role::Daemon).await?;
        match Self::serve(&app).await {
            Ok((address, serving, working, tasks, refusals)) => {
                Ok(Self { app, address, serving, working, tasks, refusals })
            }
            Err(fault) => {
                app.close().await;
                Err(fault)
            }
        }
    }

    async fn serve(
        app: &App,
    ) -> anyhow::Result<(SocketAddr, CancellationToken, CancellationToken, TaskTracker, Refusals)>
    {
        let settings = &app.base.settings;
        let listen = settings.server.listen;
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("`server.listen` {listen} cannot be bound"))?;
        let address = listener.local_addr().context("`server.listen`")?;
        note_start(app).await?;
        let workers = app.workers();
        let refusals = workers.refusals.clone();
        let state = HttpState {
            gateway: app.gateway.clone(),
            ap: app.reading.clone(),
            hosts: http::hosts(address, &settings.server.public_url)?,
            readiness: Arc::new(workers.clone()),
            public_url: settings.server.public_url.clone(),
            limits: Limits {
                proposals_per_minute: settings.limits.proposals_per_minute,
                reads_per_minute: settings.limits.reads_per_minute,
            },
            sandbox: app.control().map(shared),
            sync: app.sync(),
            refusals: refusals.clone(),
        };
        let (serving, working) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        workers.start(&tasks, &working);
        let router = http::router(state);
        let (token, metrics) = (serving.clone(), app.base.metrics.clone());
        tasks.spawn(async move {
            http::serve(listener, router, metrics, token).await;
        });
        Ok((address, serving, working, tasks, refusals))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gateway and its parts.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Reads the policies anew. Those that cannot be used change nothing: the older ones stay in
    /// force, and log, metrics and `check` say so. The daemon stays ready: it decides as before.
    pub async fn reload_policies(&self) {
        let settings = &self.app.base.settings;
        let folder = settings.path(&settings.policy.dir);
        let before = self.app.gateway.policies();
        let outcome = match self.read_policies(folder).await {
            Ok(true) => {
                let (before, after) = (before.digest(), self.app.gateway.policies());
                let after = after.digest();
                tracing::info!(
                    policy.before = before,
                    policy.digest = after,
                    "other policies are in force: {after} instead of {before}"
                );
                Reload::Changed
            }
            Ok(false) => {
                tracing::info!(policy.digest = before.digest(), "the policies are the same");
                Reload::Unchanged
            }
            Err(fault) => {
                let digest = before.digest();
                tracing::error!(
                    policy.digest = digest,
                    "the policies are not taken, {digest} stays in force: {fault:#}"
                );
                Reload::Refused
            }
        };
        self.app.base.metrics.policies_reloaded(outcome);
    }

    async fn read_policies(&self, folder: PathBuf) -> anyhow::Result<bool> {
        let read = tokio::task::spawn_blocking(move || Policies::load(&folder));
        let policies = read.await.context("reading")?.context("`policy.dir`")?;
        self.app.gateway.change_policies(policies).await.context("`store.url`")
    }

    /// Stops: no new requests, what was begun is carried through, what was counted is written.
    pub async fn stop(self) {
        self.serving.cancel();
        self.working.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        // Only now nobody begins anything any more.
        self.app.gateway.finish().await;
        self.refusals.flush_all(&self.app.gateway).await;
        self.app.close().await;
    }
}

fn shared(control: Control) -> Arc<dyn SandboxControl> {
    Arc::new(control)
}

#[async_trait]
impl Readiness for Workers {
    async fn problems(&self) -> Vec<String> {
        Workers::problems(self)
    }
}

async fn note_start(app: &App) -> anyhow::Result<()> {
    let receipt = Receipt {
        kind: ReceiptKind::DaemonStarted,
        at: app.gateway.now(),
        company: None,
        operation: None,
        data: serde_json::json!({
            "daemon": app.gateway.daemon(),
            "policy": app.gateway.policies().digest(),
            "remarks": remarks(&app.base.settings),
            "version": env!("CARGO_PKG_VERSION"),
        }),
    };
    app.base
        .store
        .write(move |unit| Box::pin(async move { unit.receipt(receipt).map(drop) }))
        .await
        .context("`store.url`")?;
    Ok(())
}
