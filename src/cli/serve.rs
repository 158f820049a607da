//! `serve`: the daemon.

use crate::settings::Settings;

pub(super) async fn run(_settings: Settings) -> anyhow::Result<()> {
    anyhow::bail!("not wired yet")
}
