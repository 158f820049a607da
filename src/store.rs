//! What must outlast the process, in SQLite or PostgreSQL; the only user of the database driver.
//!
//! It knows transactions, the receipt chain and how a store is opened safely. It does not know what
//! an operation, a mandate or a payment is: repositories bring their own statements to [`Conn`].
//!
//! # Writing
//! Every write goes through one task that drains a bounded queue into one transaction: it locks the
//! chain's head first, runs each unit of work under a savepoint, appends all their receipts, moves
//! the head, signs it, commits, and only then answers. No call over a network may be made in a unit.
//!
//! ```no_run
//! # use countersign::receipts::Receipt;
//! # use countersign::store::{Store, StoreError};
//! # async fn freeze(store: &Store, vendor: String, receipt: Receipt) -> Result<(), StoreError> {
//! const ADD: &str = "insert into freezes (vendor, at) values ($1, $2) on conflict do nothing";
//! let written = store
//!     .write(move |unit| {
//!         Box::pin(async move {
//!             let added = unit.execute(ADD, &[vendor.into(), receipt.at.into()]).await?;
//!             if added == 1 {
//!                 unit.receipt(receipt)?;
//!             }
//!             Ok(added == 1)
//!         })
//!     })
//!     .await?;
//! # let _: bool = written.value;
//! # Ok(())
//! # }
//! ```
//!
//! INVARIANT: the chain's head is read and moved inside the append's own transaction, behind a lock
//! on it. So several daemons and commands, in several processes, on one database never fork it.

mod address;
pub mod attempts;
pub mod baseline;
pub mod callbacks;
mod checkpoint;
pub mod clearances;
mod conn;
mod error;
pub mod figures;
pub mod freezes;
mod ledger;
mod migrate;
mod open;
pub mod operations;
pub mod people;
pub mod precedents;
mod query;
mod question;
mod readers;
pub mod sessions;
mod unit;
pub mod votes;
pub mod watch;
mod writer;

use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use countersign_erp_source::Clock;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use checkpoint::read_checkpoint;
pub use conn::{Conn, Row, Val};
pub use error::{Fault, OpenRefusal, StoreError};
pub use ledger::{ExportError, latest_moment, verify_unopened};
pub use question::{Question, Questions};
pub use unit::Unit;

use crate::metrics::Metrics;
use crate::receipts::LedgerKey;
use readers::Readers;
use writer::{Job, Work};

/// What a unit of work or a read gives back while it runs.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How long a caller waits for a place in the queue or for a connection.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(5);
/// How many units of work may wait.
const QUEUE_MAX: usize = 1024;

/// Where the store is and who opens it.
#[derive(Clone)]
pub struct StoreOptions {
    /// `sqlite:///absolute/path` or `postgres://user@host/database`.
    pub url: String,
    /// A PostgreSQL that is not on loopback may be spoken to without TLS.
    pub allow_plaintext: bool,
    /// Signs the chain's heads.
    pub key: Arc<LedgerKey>,
    /// Where the newest signed head is kept outside the database.
    pub checkpoint_file: Option<PathBuf>,
    pub clock: Arc<dyn Clock>,
    /// Is told how the writer does.
    pub metrics: Metrics,
    pub role: Role,
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A password may stand in the address.
        f.debug_struct("StoreOptions")
            .field("checkpoint_file", &self.checkpoint_file)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// What opens the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The daemon: at most one on one SQLite file.
    Daemon,
    /// A command, which may run beside a daemon.
    Command,
}

/// An open store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    id: Arc<str>,
    readers: Readers,
    queue: mpsc::Sender<Job>,
    stop: CancellationToken,
    tasks: TaskTracker,
    metrics: Metrics,
    state: Arc<State>,
}

/// How the writer finds the database.
#[derive(Debug, Default)]
struct State {
    /// Set once and for good where the database went back behind this process.
    went_back: OnceLock<StoreError>,
    /// The newest transaction that would have written something was not written.
    writes_fail: AtomicBool,
}

/// The value of a unit of work that is committed, and the receipts it left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written<T> {
    pub value: T,
    pub receipts: Vec<ReceiptHead>,
}

/// Where a receipt is in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptHead {
    pub seq: i64,
    /// The entry's hash in hexadecimal digits.
    pub hash: String,
}

impl Store {
    /// Opens the store, and makes it if there is none: brings its tables up to date, compares it
    /// with the checkpoint file, and starts its writer on the present tokio runtime.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        open::open(options).await
    }

    /// The store's own id, the same for all that open it.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Reads in one transaction, so that all of it sees one state.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Conn<'_>) -> BoxFuture<'c, Result<T, StoreError>> + Send,
        T: Send,
    {
        self.still_the_same()?;
        self.inner.readers.read(work).await
    }

    /// Asks all of it at one moment.
    pub async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answer, StoreError> {
        self.still_the_same()?;
        self.inner.readers.ask(questions).await
    }

    /// Whether the database still holds what this process wrote or saw there, and can be written.
    /// Each write finds it out too; this does where nothing is written.
    pub async fn prove(&self) -> Result<(), StoreError> {
        // What was well when it was last tried is not written to for nothing.
        if self.inner.state.writes_fail.load(Ordering::Relaxed) {
            return self.touch().await;
        }
        self.write(|_unit| Box::pin(async { Ok(()) })).await.map(drop)
    }

    /// Writes without changing anything, and so finds out whether the database can be written.
    pub async fn touch(&self) -> Result<(), StoreError> {
        self.write(|unit| Box::pin(async move { unit.execute_one(query::TOUCH, &[]).await }))
            .await?;
        self.inner.state.writes_fail.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// What is wrong with the database, as the newest writes found it. Anybody may read it.
    pub fn trouble(&self) -> Option<&'static str> {
        if self.inner.state.went_back.get().is_some() {
            Some("the store went back to an older state; nothing is read or written any more")
        } else if self.inner.state.writes_fail.load(Ordering::Relaxed) {
            Some("the store cannot be written")
        } else {
            None
        }
    }

    /// INVARIANT: on a database that went back nothing is read and nothing written. What stands in
    /// it was true once, and whoever decided on it would decide anew what was done.
    fn still_the_same(&self) -> Result<(), StoreError> {
        self.inner.state.went_back.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Runs the unit of work in the writer's next transaction and answers once that is durable.
    ///
    /// An error undoes what this unit wrote, its receipts included, and nothing else. A caller that
    /// stops waiting does not stop its unit.
    pub async fn write<T, F>(&self, work: F) -> Result<Written<T>, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Unit<'_>) -> BoxFuture<'c, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let written = self
            .write_or_undo::<T, Infallible, _>(|unit| {
                let done = work(unit);
                Box::pin(async move { done.await.map(Ok) })
            })
            .await?;
        match written {
            Ok(written) => Ok(written),
            Err(never) => match never {},
        }
    }

    /// Like [`Self::write`], for work that may find a reason to undo what it wrote: `Ok(Err(reason))`
    /// undoes the unit and is what the caller gets, once the group it was decided in is durable.
    pub async fn write_or_undo<T, E, F>(&self, work: F) -> Result<Result<Written<T>, E>, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Unit<'_>) -> BoxFuture<'c, Result<Result<T, E>, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.enqueue(Box::new(Work::new(work, answer))).await?;
        answered.await.unwrap_or_else(|_| Err(StoreError::unanswered()))
    }

    /// Finishes what is queued, writes the last checkpoint, and lets go of the store. Whoever writes
    /// afterwards gets [`StoreError::Closed`].
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.readers.close().await;
    }

    async fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        self.still_the_same()?;
        self.inner.metrics.queued();
        let sent = self.inner.queue.send_timeout(job, ACQUIRE_LIMIT).await;
        sent.map_err(|unsent| {
            self.inner.metrics.unqueued();
            match unsent {
                mpsc::error::SendTimeoutError::Timeout(_) => StoreError::Busy,
                mpsc::error::SendTimeoutError::Closed(_) => StoreError::Closed,
            }
        })
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.inner.id)
    }
}
