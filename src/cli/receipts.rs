//! `receipts`: the ledger, verified and exported.

use std::fs::File;
use std::io::{BufReader, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;

use super::say;
use crate::app::Base;
use crate::keys::Keys;
use crate::receipts::verify_export;
use crate::settings::Settings;
use crate::store::{Role, read_checkpoint, verify_unopened};

/// The ledger of receipts.
#[derive(Debug, Subcommand)]
pub(super) enum ReceiptsCommand {
    /// Verifies chain, signatures and the last checkpoint; from an export too, offline.
    Verify {
        /// An export.
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Writes the chain to standard output.
    Export {
        /// Only this company's receipts whole, others as hashes.
        #[arg(long)]
        company: Option<String>,
    },
}

pub(super) async fn run(settings: Settings, command: ReceiptsCommand) -> anyhow::Result<()> {
    match command {
        ReceiptsCommand::Verify { from: Some(from) } => verify_file(&from),
        ReceiptsCommand::Verify { from: None } => verify(&settings).await,
        ReceiptsCommand::Export { company } => {
            let base = Base::open(settings, Role::Command).await?;
            let key = base.keys.ledger().public();
            let done = base.store.export(stdout(), key, company.as_deref()).await;
            base.close().await;
            done.context("the export ended early")
        }
    }
}

/// Verifies without opening, so that it also works on a store that refuses to open.
async fn verify(settings: &Settings) -> anyhow::Result<()> {
    let kept = match &settings.receipts.checkpoint_file {
        Some(path) => {
            read_checkpoint(&settings.path(path)).context("`receipts.checkpoint_file`")?
        }
        None => None,
    };
    let keys = Keys::open(&settings.path(&settings.keys.dir)).context("`keys.dir`")?;
    let (url, plaintext) = (settings.store_url(), settings.store.allow_plaintext);
    let found = verify_unopened(&url, plaintext, keys.ledger().public(), kept.as_ref())
        .await
        .context("`store.url`")?;
    match found {
        Ok(verified) => {
            let against = if kept.is_some() { ", and the kept checkpoint is in it" } else { "" };
            let (count, last) = (verified.count, verified.last);
            say(format!("{count} receipts verify{against}; the last is {last}"))
        }
        Err(fault) => bail!("the ledger does not verify: {:#}", anyhow::Error::new(fault)),
    }
}

/// Verifies an export by itself.
pub(super) fn verify_file(path: &Path) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("`{}`", path.display()))?;
    match verify_export(BufReader::new(file), None, None) {
        Ok(export) => say(format!(
            "{} receipts verify ({} readable), signed by key {}; compare that with your own",
            export.chain.count,
            export.readable,
            export.header.key.id()
        )),
        Err(fault) => bail!("the export does not verify: {:#}", anyhow::Error::new(fault)),
    }
}
