//! `demo`: the whole story on the embedded sandbox.

use clap::Args;

/// Plays the whole story.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Plays the humans too and checks every step.
    #[arg(long)]
    auto: bool,
}

pub(super) async fn run(_demo: &Demo) -> anyhow::Result<()> {
    anyhow::bail!("not wired yet")
}
