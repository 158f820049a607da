//! The one task that writes: it drains the queue into groups, each group one transaction.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use countersign_erp_source::Clock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::address::{Address, Connection};
use super::error::with_causes;
use super::ledger::{self, ChainEnd};
use super::{BoxFuture, Conn, Fault, ReceiptHead, State, StoreError, Unit, Written};
use crate::metrics::Metrics;
use crate::receipts::{Digest, LedgerKey, SignedHead};

/// How many units of work share one transaction at most.
const GROUP_MAX: usize = 128;
/// How long one transaction may take. Locks and statements have shorter limits of their own.
const GROUP_LIMIT: Duration = Duration::from_secs(30);

/// A unit of work in the queue, whatever its value is.
pub(super) type Job = Box<dyn Task>;

pub(super) trait Task: Send {
    /// Does the work and keeps its value; gives whether what it wrote is to stay.
    fn run<'a>(&'a mut self, unit: &'a mut Unit<'_>) -> BoxFuture<'a, bool>;

    /// Tells the caller, once the group is committed (with this unit's receipts) or is not.
    fn answer(self: Box<Self>, outcome: Result<Vec<ReceiptHead>, StoreError>);
}

/// What a caller of a unit gets.
type Answer<T, E> = Result<Result<Written<T>, E>, StoreError>;

/// A unit of work with the caller that waits for it.
pub(super) struct Work<F, T, E> {
    run: Option<F>,
    value: Option<Result<Result<T, E>, StoreError>>,
    answer: oneshot::Sender<Answer<T, E>>,
}

impl<F, T, E> Work<F, T, E> {
    pub(super) fn new(work: F, answer: oneshot::Sender<Answer<T, E>>) -> Self {
        Self { run: Some(work), value: None, answer }
    }
}

impl<F, T, E> Task for Work<F, T, E>
where
    F: for<'c> FnOnce(&'c mut Unit<'_>) -> BoxFuture<'c, Result<Result<T, E>, StoreError>> + Send,
    T: Send,
    E: Send,
{
    fn run<'a>(&'a mut self, unit: &'a mut Unit<'_>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if let Some(work) = self.run.take() {
                self.value = Some(work(unit).await);
            }
            matches!(self.value, Some(Ok(Ok(_))))
        })
    }

    fn answer(self: Box<Self>, outcome: Result<Vec<ReceiptHead>, StoreError>) {
        let answer = match (outcome, self.value) {
            (Err(error), _) | (Ok(_), Some(Err(error))) => Err(error),
            (Ok(receipts), Some(Ok(Ok(value)))) => Ok(Ok(Written { value, receipts })),
            (Ok(_), Some(Ok(Err(reason)))) => Ok(Err(reason)),
            (Ok(_), None) => Err(StoreError::unanswered()),
        };
        // A caller that stopped waiting does not want to know.
        drop(self.answer.send(answer));
    }
}

/// A unit of work of the present group, and how it went.
struct Member {
    job: Job,
    went: Went,
}

enum Went {
    /// It has not run, or its value says why it is undone.
    Undone,
    Kept(Vec<ReceiptHead>),
    Failed(StoreError),
}

/// How far a group came, for when it is cut short.
enum Progress {
    Working,
    /// The commit is under way, with this head if receipts were written.
    Committing(Option<SignedHead>),
}

pub(super) struct Writer {
    pub(super) address: Address,
    pub(super) store: Arc<str>,
    pub(super) key: Arc<LedgerKey>,
    pub(super) clock: Arc<dyn Clock>,
    /// None after it broke.
    pub(super) connection: Option<Connection>,
    /// The newest head that this process wrote or saw.
    pub(super) last: (i64, Digest),
    pub(super) state: Arc<State>,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) stop: CancellationToken,
    pub(super) newest: watch::Sender<SignedHead>,
    /// Keeps a second daemon away for as long as this one may write.
    pub(super) claim: Option<File>,
    pub(super) metrics: Metrics,
}

impl Writer {
    pub(super) async fn run(mut self) {
        let mut stopping = false;
        loop {
            let first = tokio::select! {
                job = self.jobs.recv() => job,
                () = self.stop.cancelled(), if !stopping => {
                    // What is queued is still done; nothing new comes in.
                    stopping = true;
                    self.jobs.close();
                    continue;
                }
            };
            let Some(first) = first else { break };
            self.metrics.unqueued();
            let mut group = vec![Member { job: first, went: Went::Undone }];
            while group.len() < GROUP_MAX
                && let Ok(job) = self.jobs.try_recv()
            {
                self.metrics.unqueued();
                group.push(Member { job, went: Went::Undone });
            }
            self.write(group).await;
        }
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the writer's connection did not close well");
        }
        drop(self.claim);
    }

    /// Writes the group in one transaction and answers all its callers.
    async fn write(&mut self, mut group: Vec<Member>) {
        let began = Instant::now();
        let mut progress = Progress::Working;
        let limited = tokio::time::timeout(GROUP_LIMIT, self.attempt(&mut group, &mut progress));
        let mut outcome = match (limited.await, &progress) {
            (Ok(outcome), _) => outcome,
            (Err(_), Progress::Working) => Err(StoreError::Busy),
            (Err(elapsed), Progress::Committing(_)) => {
                Err(StoreError::OutcomeUnknown(Fault::new(elapsed)))
            }
        };
        if let (Err(StoreError::OutcomeUnknown(fault)), Progress::Committing(Some(head))) =
            (&outcome, progress)
        {
            let found = tokio::time::timeout(GROUP_LIMIT, self.find_out(&head)).await;
            match found {
                Ok(Ok(true)) => outcome = Ok(Some(head)),
                Ok(Ok(false)) => outcome = Err(StoreError::Unreachable(fault.clone())),
                // It stays unknown.
                Ok(Err(_)) | Err(_) => {}
            }
        }
        self.metrics.group(group.len(), outcome.is_ok(), began.elapsed());
        // Where nothing was written, nothing was found out.
        if !matches!(outcome, Ok(None)) {
            self.state.writes_fail.store(outcome.is_err(), Ordering::Relaxed);
        }
        match outcome {
            Ok(head) => {
                if let Some(head) = head {
                    self.last = (head.head().seq, head.head().hash);
                    self.newest.send_replace(head);
                }
                for Member { job, went } in group {
                    job.answer(match went {
                        Went::Undone => Ok(Vec::new()),
                        Went::Kept(receipts) => Ok(receipts),
                        Went::Failed(error) => Err(error),
                    });
                }
            }
            Err(error) => {
                let (count, cause) = (group.len(), with_causes(&error));
                tracing::error!(units = count, "a group of {count} units was not written: {cause}");
                for Member { job, went } in group {
                    job.answer(Err(match went {
                        Went::Failed(own) => own,
                        Went::Undone | Went::Kept(_) => error.clone(),
                    }));
                }
            }
        }
    }

    /// After a commit whose answer was lost: whether the head it would have made is in the chain.
    ///
    /// Taking the lock on the head waits until the lost transaction has ended, so the answer is
    /// final. SQLite is not asked: after a failed flush a reader sees what a crash may still undo.
    async fn find_out(&mut self, head: &SignedHead) -> Result<bool, StoreError> {
        if matches!(self.address, Address::Sqlite(_)) {
            return Err(StoreError::unanswered());
        }
        let mut connection = self.address.connect().await?;
        drop(ChainEnd::begin(&mut connection, &self.store).await?);
        let found = ledger::hash_at(&mut connection.conn(), head.head().seq).await?;
        connection.rollback().await?;
        self.connection = Some(connection);
        Ok(found == Some(head.head().hash))
    }

    /// Gives the new head if receipts were written. The connection is kept only if it is known to
    /// be outside of any transaction.
    async fn attempt(
        &mut self,
        group: &mut [Member],
        progress: &mut Progress,
    ) -> Result<Option<SignedHead>, StoreError> {
        let (mut connection, chain) = self.begin().await?;
        let outcome = self.transact(&mut connection, chain, group, progress).await;
        let usable = match &outcome {
            Ok(_) => true,
            Err(StoreError::OutcomeUnknown(_)) => false,
            Err(_) => connection.rollback().await.is_ok(),
        };
        if usable {
            self.connection = Some(connection);
        }
        outcome
    }

    async fn begin(&mut self) -> Result<(Connection, ChainEnd), StoreError> {
        if let Some(mut connection) = self.connection.take() {
            match ChainEnd::begin(&mut connection, &self.store).await {
                Ok(chain) => return Ok((connection, chain)),
                // The server went away since the last group; nothing is lost by calling again.
                Err(StoreError::Unreachable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut connection = self.address.connect().await?;
        let chain = ChainEnd::begin(&mut connection, &self.store).await?;
        Ok((connection, chain))
    }

    async fn transact(
        &mut self,
        connection: &mut Connection,
        mut chain: ChainEnd,
        group: &mut [Member],
        progress: &mut Progress,
    ) -> Result<Option<SignedHead>, StoreError> {
        self.goes_on(&mut connection.conn(), chain.last()).await?;
        // One unit alone needs no savepoint: the transaction is its own.
        let alone = group.len() == 1;
        for member in &mut *group {
            run_member(connection, &mut chain, member, alone).await?;
        }
        if !group.iter().any(|member| matches!(member.went, Went::Kept(_))) {
            connection.rollback().await?;
            return Ok(None);
        }
        let added = chain.told();
        let head = chain.append(&mut connection.conn(), &self.key, self.clock.now()).await?;
        *progress = Progress::Committing(head.clone());
        let began = Instant::now();
        connection.commit().await?;
        self.metrics.committed(began.elapsed());
        added.tell(&self.metrics);
        Ok(head)
    }
}

impl Writer {
    /// INVARIANT: the chain that is there holds the newest head that this process wrote or saw. A
    /// server that a stale standby took the place of, or a database that was put back under a
    /// running daemon, does not, and nothing is written to it: what it lacks was acknowledged.
    async fn goes_on(
        &mut self,
        conn: &mut Conn<'_>,
        found: (i64, Digest),
    ) -> Result<(), StoreError> {
        if let Some(fault) = self.state.went_back.get() {
            return Err(fault.clone());
        }
        if found == self.last {
            return Ok(());
        }
        let (seq, hash) = self.last;
        if found.0 > seq && ledger::hash_at(conn, seq).await? == Some(hash) {
            // Another process wrote meanwhile.
            self.last = found;
            return Ok(());
        }
        let fault = StoreError::WentBack { seq };
        tracing::error!(
            alarm.kind = "store_went_back",
            receipt.seq = seq,
            "alarm: {fault}; nothing is read or written any more: find the newest copy, then start again"
        );
        self.metrics.store_went_back();
        // Nobody else sets it.
        drop(self.state.went_back.set(fault.clone()));
        Err(fault)
    }
}

/// Runs one unit so that its failure or panic harms no other.
async fn run_member(
    connection: &mut Connection,
    chain: &mut ChainEnd,
    member: &mut Member,
    alone: bool,
) -> Result<(), StoreError> {
    let before = chain.added();
    if !alone {
        run(connection, "savepoint unit").await?;
    }
    let mut kept = {
        let mut unit = Unit::new(connection.conn(), chain);
        // The job makes its future inside, so that a panic while making it is caught too.
        let ran = caught(async { member.job.run(&mut unit).await }).await;
        ran.unwrap_or_else(|Panicked| {
            tracing::error!("a unit of work panicked");
            member.went = Went::Failed(StoreError::Panicked);
            false
        })
    };
    if kept && !alone {
        // This fails if the unit hid an error of PostgreSQL, which undoes all after it.
        if let Err(error) = run(connection, "release savepoint unit").await {
            member.went = Went::Failed(error);
            kept = false;
        }
    }
    if kept {
        member.went = Went::Kept(chain.heads_after(before));
    } else {
        chain.undo_after(before);
        if !alone {
            run(connection, "rollback to savepoint unit").await?;
            run(connection, "release savepoint unit").await?;
        }
    }
    Ok(())
}

async fn run(connection: &mut Connection, text: &'static str) -> Result<(), StoreError> {
    connection.conn().run(text).await.map_err(StoreError::from_statement)
}

struct Panicked;

/// Drives the future and turns a panic in it into an error; it is not driven further then.
async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
