//! `serve`: the daemon, until it is told to stop.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::say;
use crate::app::Daemon;
use crate::settings::Settings;
use crate::telemetry;

pub(super) async fn run(settings: Settings) -> anyhow::Result<()> {
    telemetry::start(settings.log.format);
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let daemon = Daemon::start(settings).await?;
    say(format!("countersign listens on http://{}", daemon.address()))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    daemon.stop().await;
    Ok(())
}
