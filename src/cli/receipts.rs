//! `receipts`: the ledger, verified and exported.

use std::fs::File;
use std::io::{BufReader, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::say;
use crate::app::Base;
use crate::keys::Keys;
use crate::receipts::{LedgerPublicKey, SignedHead, verify_export};
use crate::settings::Settings;
use crate::store::{Role, read_checkpoint, verify_unopened};

/// The ledger of receipts.
#[derive(Debug, Subcommand)]
pub(super) enum ReceiptsCommand {
    /// Verifies chain, signatures and the last checkpoint; from an export too, offline.
    Verify(Verify),
    /// Prints the public key that the ledger's heads are signed with.
    Key,
    /// Writes the chain to standard output.
    Export {
        /// Only this company's receipts whole, others as hashes.
        #[arg(long)]
        company: Option<String>,
    },
}

/// What is verified, and against what.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// An export, which needs no installation; without it the store is verified.
    #[arg(long)]
    from: Option<PathBuf>,
    /// A signed head that was kept elsewhere, for the export.
    #[arg(long, requires = "from")]
    checkpoint: Option<PathBuf>,
    /// The key that is trusted, as `receipts key` prints it, for the export.
    #[arg(long, requires = "from", value_parser = LedgerPublicKey::parse)]
    public_key: Option<LedgerPublicKey>,
}

pub(super) async fn run(settings: Settings, command: ReceiptsCommand) -> anyhow::Result<()> {
    match command {
        ReceiptsCommand::Verify(asked) => match asked.of_file() {
            Some(done) => done,
            None => verify(&settings).await,
        },
        ReceiptsCommand::Key => {
            let keys = Keys::open(&settings.path(&settings.keys.dir)).context("`keys.dir`")?;
            say(keys.ledger().public().to_hex())
        }
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

impl Verify {
    /// Verifies the export, if it is one that is asked for.
    pub(super) fn of_file(&self) -> Option<anyhow::Result<()>> {
        self.from.as_deref().map(|from| self.verify_file(from))
    }

    fn verify_file(&self, path: &Path) -> anyhow::Result<()> {
        let kept = self.checkpoint.as_deref().map(kept_at).transpose()?;
        let file = File::open(path).with_context(|| format!("`{}`", path.display()))?;
        let found = verify_export(BufReader::new(file), self.public_key.as_ref(), kept.as_ref());
        match found {
            Ok(export) => {
                let (count, readable) = (export.chain.count, export.readable);
                let key = export.header.key.id();
                let against =
                    if kept.is_some() { ", and the kept checkpoint is in it" } else { "" };
                let trusted = if self.public_key.is_some() {
                    ", which is the one that you trust"
                } else {
                    "; compare that with your own"
                };
                say(format!(
                    "{count} receipts verify ({readable} readable){against}, signed by key \
                     {key}{trusted}"
                ))
            }
            Err(fault) => bail!("the export does not verify: {:#}", anyhow::Error::new(fault)),
        }
    }
}

/// A checkpoint that somebody names must hold a head: an emptied file vouches for nothing.
fn kept_at(path: &Path) -> anyhow::Result<SignedHead> {
    let read = read_checkpoint(path).context("`--checkpoint`")?;
    read.with_context(|| format!("`--checkpoint`: `{}` holds no signed head", path.display()))
}
