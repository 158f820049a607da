//! The newest signed head in a file outside the database, so that a store that was cut or restored
//! from a copy is found out.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::error::with_causes;
use super::{Fault, OpenRefusal, StoreError};
use crate::metrics::Metrics;
use crate::receipts::{HeadError, SignedHead};

/// The record's fixed size: one sector, so that a power failure leaves the old one or the new one.
const RECORD: usize = 512;
/// At most this often the file is flushed to disk, besides once at the end.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// The head that a checkpoint file holds; none if it is empty. It is not verified yet.
pub fn read_checkpoint(path: &Path) -> Result<Option<SignedHead>, StoreError> {
    let file = File::open(path).map_err(|source| refusal(path, source))?;
    Ok(CheckpointFile { path: path.to_owned(), file }.read()?)
}

pub(super) struct CheckpointFile {
    path: PathBuf,
    file: File,
}

impl CheckpointFile {
    /// Opens the file, and makes an empty one if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, OpenRefusal> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| refusal(path, source))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The head in the file; none if it is empty. Whether to believe it is the caller's question.
    pub(super) fn read(&self) -> Result<Option<SignedHead>, OpenRefusal> {
        let text = self.text().map_err(|source| refusal(&self.path, source))?;
        if text.is_empty() {
            return Ok(None);
        }
        let parsed = String::from_utf8(text).ok().ok_or(HeadError::Malformed);
        parsed
            .and_then(|text| SignedHead::parse(&text))
            .map(Some)
            .map_err(|source| OpenRefusal::CheckpointUnreadable { path: self.path.clone(), source })
    }

    /// Puts the head into the file unless a newer one is there.
    ///
    /// INVARIANT: the file only goes forward, also when several processes keep the same one, and a
    /// file that holds something else is evidence and stays as it is.
    fn advance(&self, head: &SignedHead) -> Result<(), OpenRefusal> {
        let failed = |source| refusal(&self.path, source);
        self.file.lock().map_err(failed)?;
        let done = self.advance_locked(head);
        self.file.unlock().map_err(failed)?;
        done
    }

    fn advance_locked(&self, head: &SignedHead) -> Result<(), OpenRefusal> {
        if let Some(kept) = self.read()? {
            let (kept, new) = (kept.head(), head.head());
            if kept.store != new.store {
                let (path, kept, found) =
                    (self.path.clone(), kept.store.clone(), new.store.clone());
                return Err(OpenRefusal::CheckpointOfOtherStore { path, kept, found });
            }
            if kept.seq >= new.seq {
                return Ok(());
            }
        }
        let mut record = head.to_text().into_bytes();
        // Empty lines at the end mean nothing; a longer head than fits would be cut, so it stays
        // whole and only loses the promise of one sector.
        record.resize(record.len().max(RECORD), b'\n');
        self.file.write_all_at(&record, 0).map_err(|source| refusal(&self.path, source))
    }

    fn flush(&self) -> Result<(), OpenRefusal> {
        self.file.sync_data().map_err(|source| refusal(&self.path, source))
    }

    fn text(&self) -> std::io::Result<Vec<u8>> {
        let mut text = vec![0; RECORD * 2];
        let mut length = 0;
        while let Some(rest) = text.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, u64::try_from(length).unwrap_or(u64::MAX))? {
                0 => break,
                read => length += read,
            }
        }
        text.truncate(length);
        Ok(text)
    }
}

/// Writes each new head into the file, off the writer's path, until the writer ends. A file that
/// cannot be written is tried again each second; nothing else waits for it.
pub(super) async fn keep(
    file: CheckpointFile,
    mut newest: watch::Receiver<SignedHead>,
    metrics: Metrics,
) {
    let file = Arc::new(file);
    newest.mark_changed();
    // When the next flush may be, and whether something waits for it.
    let mut flush_at = Instant::now();
    let mut waiting = false;
    let mut failing = false;
    let mut open = true;
    while open {
        let changed = tokio::select! {
            changed = newest.changed() => Some(changed.is_ok()),
            () = tokio::time::sleep_until(flush_at), if waiting => None,
        };
        open = changed.unwrap_or(true);
        // The head is read also after the writer ended: its last one may not have been seen.
        let again = changed.is_some() || failing;
        let head = again.then(|| newest.borrow_and_update().clone());
        let seq = head.as_ref().map(|head| head.head().seq);
        let flush = !open || Instant::now() >= flush_at;
        let file = Arc::clone(&file);
        let done = tokio::task::spawn_blocking(move || {
            head.map_or(Ok(()), |head| file.advance(&head))?;
            if flush { file.flush() } else { Ok(()) }
        })
        .await;
        let fault = match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(with_causes(&error)),
            Err(error) => Some(error.to_string()),
        };
        note(&metrics, seq, fault.as_deref(), failing);
        failing = fault.is_some();
        waiting = !flush || failing;
        if flush {
            flush_at = Instant::now() + FLUSH_EVERY;
        }
    }
}

/// Says once that the file cannot be written, and once that it can again.
fn note(metrics: &Metrics, seq: Option<i64>, fault: Option<&str>, failed_before: bool) {
    if let Some(fault) = fault {
        metrics.checkpoint_failed();
        if !failed_before {
            tracing::error!("the checkpoint is not written; it is tried again: {fault}");
        }
        return;
    }
    if let Some(seq) = seq {
        metrics.checkpoint_kept(seq);
    }
    if failed_before {
        tracing::info!("the checkpoint is written again");
    }
}

fn refusal(path: &Path, source: std::io::Error) -> OpenRefusal {
    OpenRefusal::Checkpoint { path: path.to_owned(), source: Fault::new(source) }
}
