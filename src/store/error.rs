//! What can go wrong with a store, told apart by what a caller can do about it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::receipts::{BadReceipt, HeadError};

/// Why a read or a write did not happen, or may have.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing was done; try again later.
    #[error("the store is busy")]
    Busy,
    /// Nothing was done.
    #[error("the store is closed")]
    Closed,
    /// Nothing was done.
    #[error("the store is not reachable")]
    Unreachable(#[source] Fault),
    /// Nothing was done.
    #[error("the store refused a statement")]
    Refused(#[source] Fault),
    /// It may have been written and it may not: read it before trying again. Only where the
    /// database could not be asked either.
    #[error("whether the store kept the write is unknown")]
    OutcomeUnknown(#[source] Fault),
    /// The database does not hold any more what this process wrote or saw there: a copy took its
    /// place. Nothing was done, and nothing is any more before a new start.
    #[error("the store went back: receipt {seq} is not in it any more as it was written")]
    WentBack {
        /// The newest receipt that was there.
        seq: i64,
    },
    /// Nothing was done.
    #[error("a unit of work panicked")]
    Panicked,
    /// A row that the code cannot have written. Nothing was done.
    #[error("`{column}` in `{place}` {what}")]
    Inconsistent {
        /// The statement or table.
        place: &'static str,
        column: String,
        what: String,
    },
    /// Nothing was done.
    #[error(transparent)]
    Receipt(#[from] BadReceipt),
    #[error(transparent)]
    Open(#[from] OpenRefusal),
}

/// Why a store is not opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenRefusal {
    // The address is not repeated, since a password may stand in it.
    #[error(
        "the store's address is neither `sqlite:///absolute/path` nor `postgres://user@host/database`"
    )]
    BadAddress,
    #[error(
        "PostgreSQL on `{host}` is not on loopback and needs TLS with a verified certificate (`sslmode=verify-full`), unless `allow_plaintext` is set"
    )]
    NeedsTls { host: String },
    #[error("another daemon uses the store `{}`", path.display())]
    OtherDaemon { path: PathBuf },
    #[error("cannot use `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: Fault,
    },
    #[error("the store has migration {number} `{name}`, which this version does not know")]
    NewerSchema { number: i64, name: String },
    #[error("migration {number} `{name}` of the store is not the one of this version")]
    OtherSchema { number: i64, name: String },
    #[error(
        "the newest head of store `{store}` is signed by ledger key `{found}`, but the key given is `{given}`"
    )]
    OtherKey { store: String, found: String, given: String },
    #[error("cannot use the checkpoint file `{}`", path.display())]
    Checkpoint {
        path: PathBuf,
        #[source]
        source: Fault,
    },
    #[error("the checkpoint file `{}` cannot be believed", path.display())]
    CheckpointUnreadable {
        path: PathBuf,
        #[source]
        source: HeadError,
    },
    #[error("the checkpoint file `{}` is of store `{kept}`, but this is store `{found}`", path.display())]
    CheckpointOfOtherStore { path: PathBuf, kept: String, found: String },
    #[error("store `{store}` ends at receipt {last}, but the checkpoint file `{}` vouches for {kept}: the store was cut or restored from a copy", path.display())]
    StoreIsShorter { path: PathBuf, store: String, last: i64, kept: i64 },
    #[error("receipt {seq} of store `{store}` has hash {found}, but the checkpoint file `{}` vouches for {kept}: the store was rewritten or continued from a copy", path.display())]
    StoreIsOther { path: PathBuf, store: String, seq: i64, found: String, kept: String },
}

/// What the database, the operating system or the runtime said.
#[derive(Debug, Clone)]
pub struct Fault(Arc<dyn std::error::Error + Send + Sync>);

impl Fault {
    pub(super) fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(source.into()))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // What sqlx prints of an error has its cause in it already.
        if self.0.is::<sqlx::Error>() { None } else { self.0.source() }
    }
}

impl OpenRefusal {
    /// Whether it is the checkpoint file that cannot be used, and not the store.
    pub fn is_of_checkpoint(&self) -> bool {
        matches!(
            self,
            Self::Checkpoint { .. }
                | Self::CheckpointUnreadable { .. }
                | Self::CheckpointOfOtherStore { .. }
        )
    }
}

impl StoreError {
    /// A row that should not be there, or not so.
    pub fn inconsistent(place: &'static str, column: &str, what: impl Into<String>) -> Self {
        Self::Inconsistent { place, column: column.to_owned(), what: what.into() }
    }

    /// The writer went away with the runtime it ran on.
    pub(super) fn unanswered() -> Self {
        Self::OutcomeUnknown(Fault::new("the writer stopped before it answered"))
    }

    /// A statement failed; what it belonged to is not committed.
    pub(super) fn from_statement(error: sqlx::Error) -> Self {
        let code = error.as_database_error().map(|database| database.code().unwrap_or_default());
        match code.as_deref() {
            None if matches!(error, sqlx::Error::PoolTimedOut) => Self::Busy,
            None if matches!(error, sqlx::Error::PoolClosed) => Self::Closed,
            Some(code) if is_wait(code) => Self::Busy,
            // With those codes the server is going away or does not take connections.
            None | Some("57P01" | "57P02" | "57P03" | "53300") => {
                Self::Unreachable(Fault::new(error))
            }
            Some(_) => Self::Refused(Fault::new(error)),
        }
    }

    /// The commit itself failed.
    pub(super) fn from_commit(error: sqlx::Error) -> Self {
        // Only a server that names such a reason has surely rolled back. A lost connection says
        // nothing, and a failed flush of SQLite leaves bytes that recovery may still find whole.
        let code = error.as_database_error().map(|database| database.code().unwrap_or_default());
        let surely_undone = code.is_some_and(|code| {
            is_wait(&code) || matches!(code.get(..2), Some("23" | "25") if code.len() == 5)
        });
        if surely_undone {
            Self::from_statement(error)
        } else {
            Self::OutcomeUnknown(Fault::new(error))
        }
    }
}

/// Whether the database gave up waiting for a lock (SQLite's extended codes of `busy` and `locked`,
/// PostgreSQL's of lock and statement timeouts, deadlock and serialization).
fn is_wait(code: &str) -> bool {
    matches!(
        code,
        "5" | "6" | "261" | "262" | "517" | "773" | "55P03" | "57014" | "40P01" | "40001"
    )
}

/// An error with all its causes in one line. Display only: the debug text of a database's error
/// can show values.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
