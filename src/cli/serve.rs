//! `serve`: the daemon, until it is told to stop. SIGHUP has it read its policies anew.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::say;
use crate::app::Daemon;
use crate::settings::Settings;
use crate::telemetry;

pub(super) async fn run(settings: Settings) -> anyhow::Result<()> {
    telemetry::start(settings.log.format);
    let mut stop = Stop {
        terminate: signal(SignalKind::terminate()).context("signals")?,
        interrupt: signal(SignalKind::interrupt()).context("signals")?,
    };
    let mut hangup = signal(SignalKind::hangup()).context("signals")?;
    let daemon = Daemon::start(settings).await?;
    say(format!("countersign listens on http://{}", daemon.address()))?;
    let reload = async {
        while hangup.recv().await.is_some() {
            daemon.reload_policies().await;
        }
        std::future::pending::<()>().await;
    };
    // A stop does not wait until policies are read.
    tokio::select! {
        () = stop.asked() => {}
        () = reload => {}
    }
    daemon.stop().await;
    Ok(())
}

/// The signals that ask for a stop. Once one came, further ones change nothing.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
