//! `receipts`: the ledger, verified and exported.

use std::fs::File;
use std::io::{BufReader, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;

use super::say;
use crate::app::Base;
use crate::receipts::{SignedHead, verify_export};
use crate::settings::Settings;
use crate::store::Role;

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
    let kept = kept_head(&settings)?;
    let base = Base::open(settings, Role::Command).await?;
    let done = match command {
        ReceiptsCommand::Verify { from: Some(from) } => verify_file(&from),
        ReceiptsCommand::Verify { from: None } => verify(&base, kept.as_ref()).await,
        ReceiptsCommand::Export { company } => base
            .store
            .export(stdout(), base.keys.ledger().public(), company.as_deref())
            .await
            .context("the export ended early"),
    };
    base.close().await;
    done
}

/// The newest head that was kept outside the store.
fn kept_head(settings: &Settings) -> anyhow::Result<Option<SignedHead>> {
    let Some(path) = &settings.receipts.checkpoint_file else { return Ok(None) };
    let path = settings.path(path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(fault) => return Err(fault).with_context(|| format!("`{}`", path.display())),
    };
    let head = SignedHead::parse(text.trim_end_matches([' ', '\0']))
        .with_context(|| format!("`{}`", path.display()))?;
    Ok(Some(head))
}

async fn verify(base: &Base, kept: Option<&SignedHead>) -> anyhow::Result<()> {
    match base.store.verify_chain(base.keys.ledger().public(), kept).await? {
        Ok(verified) => {
            let against = if kept.is_some() { ", and the kept checkpoint is in it" } else { "" };
            say(format!(
                "{} receipts verify{against}; the last is {}",
                verified.count, verified.last
            ))
        }
        Err(fault) => bail!("the ledger does not verify: {fault}"),
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
