//! The store, the first contact that stands in it, and what was kept of it elsewhere.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use countersign_erp_source::{Clock, CompanyId};

use super::{Finding, told};
use crate::app::store_options;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::store::{self, OpenRefusal, Role, Store, StoreError, read_checkpoint};

/// The store, or why there is none.
pub(super) struct Kept<'a> {
    settings: &'a Settings,
    store: Result<Store, Unopened>,
}

enum Unopened {
    NoKeys,
    Refused(StoreError),
}

impl<'a> Kept<'a> {
    pub(super) async fn open(
        settings: &'a Settings,
        keys: Option<&Arc<Keys>>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let store = match keys {
            Some(keys) => {
                let options =
                    store_options(settings, keys, clock, &Metrics::default(), Role::Command);
                Store::open(options).await.map_err(Unopened::Refused)
            }
            None => Err(Unopened::NoKeys),
        };
        Self { settings, store }
    }

    pub(super) fn opened(&self) -> Option<&Store> {
        self.store.as_ref().ok()
    }

    pub(super) async fn store(&self) -> Finding {
        let what = "store";
        let store = match &self.store {
            Ok(store) => store,
            Err(Unopened::NoKeys) => return Finding::hidden(what, "it needs the keys"),
            Err(Unopened::Refused(fault)) if is_of_checkpoint(self.settings, fault) => {
                return Finding::wrong(what, "not opened, because of the checkpoint");
            }
            Err(Unopened::Refused(fault)) => {
                let found = Finding::wrong(what, format!("`store.url`: {}", told(fault.clone())));
                let url = self.settings.store_url();
                let path = url.strip_prefix("sqlite://").map(Path::new);
                return match path.and_then(make_its_folder) {
                    Some(advice) => found.mended_by(advice),
                    None => found.mended_by(
                        "mend what it names; before you change anything in the store keep copies of \
                         store and checkpoint",
                    ),
                };
            }
        };
        match store.touch().await {
            Ok(()) => Finding::ok(what, format!("{} can be read and written", store.id())),
            Err(fault) => Finding::wrong(what, told(fault))
                .mended_by("look for a full disk, or for rights that were taken away"),
        }
    }

    pub(super) async fn baseline(&self, company: &str) -> Finding {
        let what = format!("vendors of {company}");
        let Ok(store) = &self.store else {
            return Finding::hidden(what, "they stand in the store");
        };
        let company = match CompanyId::new(company).context("`erp.odoo.companies`") {
            Ok(company) => company,
            Err(fault) => return Finding::wrong(what, format!("{fault:#}")),
        };
        let adopted = store.ask(store::baseline::adopted_at(&company)).await;
        match adopted {
            Ok(Some(at)) => Finding::ok(what, format!("adopted on {}", at.to_utc().date_naive())),
            Ok(None) => Finding::wrong(what, "not adopted yet; none of them is paid before")
                .mended_by("run `countersign vendors adopt`, or let the first `serve` do it"),
            Err(fault) => Finding::wrong(what, told(fault)),
        }
    }

    /// Closes the store, which writes the checkpoint, and looks whether it is there.
    pub(super) async fn close_and_compare(self) -> Finding {
        let what = "checkpoint";
        let path = self.settings.receipts.checkpoint_file.as_ref();
        let path = path.map(|path| self.settings.path(path));
        let newest = match &self.store {
            Ok(store) => {
                let newest = store.newest_signed_head().await;
                store.close().await;
                newest
            }
            Err(Unopened::Refused(fault)) if is_of_checkpoint(self.settings, fault) => {
                let found = Finding::wrong(what, told(fault.clone()));
                return match path.as_deref().and_then(make_its_folder) {
                    Some(advice) => found.mended_by(advice),
                    None => found.mended_by(
                        "keep copies of store and checkpoint, then read \"Backup and restore\" in \
                         docs/OPERATING.md",
                    ),
                };
            }
            Err(_) => return Finding::hidden(what, "it is compared with the store"),
        };
        let Some(path) = path else {
            let says = "none is kept: `receipts.checkpoint_file` names no place for it";
            return Finding::ok(what, says);
        };
        match newest {
            Ok(newest) => compare(what, &path, newest.map_or(0, |newest| newest.head().seq)),
            Err(fault) => Finding::wrong(what, told(fault)),
        }
    }
}

/// What to do where a file has no folder to stand in.
fn make_its_folder(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.exists())?;
    let folder = folder.display();
    Some(format!("make the folder: `mkdir -p {folder}`; or name another place"))
}

fn compare(what: &str, path: &Path, newest: i64) -> Finding {
    let shown = path.display();
    let behind = |has: &str| {
        Finding::wrong(what, format!("the checkpoint is behind the store: `{shown}` {has}"))
            .mended_by("look for a full disk, or for rights that were taken away")
    };
    match read_checkpoint(path) {
        Ok(Some(kept)) if kept.head().seq >= newest => {
            Finding::ok(what, format!("`{shown}` vouches for receipt {}", kept.head().seq))
        }
        Ok(Some(kept)) => behind(&format!("vouches for receipt {} of {newest}", kept.head().seq)),
        Ok(None) => behind("holds nothing"),
        Err(fault) => Finding::wrong(what, told(fault)).mended_by("mend its rights"),
    }
}

/// Whether it is the checkpoint that keeps the store from being opened.
fn is_of_checkpoint(settings: &Settings, fault: &StoreError) -> bool {
    let StoreError::Open(refusal) = fault else { return false };
    match refusal {
        OpenRefusal::Checkpoint { .. }
        | OpenRefusal::CheckpointUnreadable { .. }
        | OpenRefusal::CheckpointOfOtherStore { .. }
        | OpenRefusal::StoreIsShorter { .. }
        | OpenRefusal::StoreIsOther { .. } => true,
        OpenRefusal::File { path, .. } => {
            let kept = settings.receipts.checkpoint_file.as_ref();
            kept.is_some_and(|kept| settings.path(kept) == *path)
        }
        OpenRefusal::BadAddress
        | OpenRefusal::NeedsTls { .. }
        | OpenRefusal::OtherDaemon { .. }
        | OpenRefusal::NewerSchema { .. }
        | OpenRefusal::OtherSchema { .. }
        | OpenRefusal::OtherKey { .. } => false,
    }
}
