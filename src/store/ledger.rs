//! The receipt chain in the database: its end, which grows, and reading it.

use std::io::Write;
use std::sync::Arc;

use countersign_erp_source::Timestamp;

use super::address::{Address, Connection};
use super::question::Statement;
use super::readers::Readers;
use super::{Conn, Question, ReceiptHead, Row, Store, StoreError, Val, query};
use crate::metrics::{Decided, Metrics};
use crate::receipts::{
    BadReceipt, ChainFault, Digest, Entry, ExportHeader, ExportWriter, Head, LedgerKey,
    LedgerPublicKey, NotADigest, Receipt, ReceiptKind, SignedHead, Verified, Verifier, genesis,
};

/// How many entries are read at once where all are read.
const PAGE: u32 = 500;

/// How many of the newest receipts are asked for the latest moment.
const LATEST_OF: i64 = 1000;

/// Why an export is not whole.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("cannot write the export")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The end of the chain as one transaction sees it, and what that transaction adds.
#[derive(Debug)]
pub(super) struct ChainEnd {
    store: Arc<str>,
    seq: i64,
    hash: Digest,
    added: Vec<Entry>,
    /// What is counted once it is durable, each with how many receipts were there before.
    counted: Vec<(usize, Decided)>,
}

/// What a transaction added, to be counted once it is durable.
#[derive(Debug)]
pub(super) struct Added {
    kinds: Vec<&'static str>,
    decisions: Vec<Decided>,
}

impl Added {
    pub(super) fn tell(self, metrics: &Metrics) {
        for kind in self.kinds {
            metrics.receipt(kind);
        }
        for decided in &self.decisions {
            metrics.decided(decided);
        }
    }
}

impl ChainEnd {
    /// The end of a chain that has no entry yet.
    pub(super) fn empty(store: &Arc<str>) -> Self {
        Self::at(store, 0, genesis(store))
    }

    /// Opens a transaction with the chain's head locked until it ends. After an error nobody knows
    /// whether it is open.
    pub(super) async fn begin(
        connection: &mut Connection,
        store: &Arc<str>,
    ) -> Result<Self, StoreError> {
        let mut conn = connection.conn();
        let begin = Question::of(conn.begin_to_write(), [], |_none| Ok(()));
        let locked = Self::locked(&conn, store);
        let ((), end) = conn.ask((begin, locked)).await?;
        Ok(end)
    }

    /// Locks the chain's head until the transaction ends, and reads it.
    pub(super) async fn lock(conn: &mut Conn<'_>, store: &Arc<str>) -> Result<Self, StoreError> {
        let locked = Self::locked(conn, store);
        conn.ask(locked).await
    }

    /// INVARIANT: nobody else moves the head between this and the commit. PostgreSQL locks the
    /// row; SQLite's `begin immediate` has already locked everything.
    fn locked(conn: &Conn<'_>, store: &Arc<str>) -> Question<Self> {
        let store = Arc::clone(store);
        Question::one(conn.either(query::HEAD, query::HEAD_LOCKED), [], move |row| {
            Ok(Self::at(&store, row.int("seq")?, digest(row, "hash")?))
        })
    }

    fn at(store: &Arc<str>, seq: i64, hash: Digest) -> Self {
        Self { store: Arc::clone(store), seq, hash, added: Vec::new(), counted: Vec::new() }
    }

    /// Puts a receipt at the end.
    pub(super) fn push(&mut self, receipt: Receipt) -> Result<ReceiptHead, StoreError> {
        let (seq, hash) = self.last();
        let next = seq.checked_add(1).ok_or(BadReceipt::TooLarge)?;
        let entry = Entry::behind(hash, next, receipt, &self.store)?;
        let head = ReceiptHead { seq: entry.seq, hash: entry.hash.to_string() };
        self.added.push(entry);
        Ok(head)
    }

    /// How many receipts were added so far.
    pub(super) fn added(&self) -> usize {
        self.added.len()
    }

    /// Where those are that were added after the first `count`.
    pub(super) fn heads_after(&self, count: usize) -> Vec<ReceiptHead> {
        let added = self.added.iter().skip(count);
        added.map(|entry| ReceiptHead { seq: entry.seq, hash: entry.hash.to_string() }).collect()
    }

    /// Forgets those that were added after the first `count`, and what was to be counted with them.
    pub(super) fn undo_after(&mut self, count: usize) {
        self.added.truncate(count);
        self.counted.retain(|(receipts, _)| *receipts <= count);
    }

    /// Has a decision counted with the receipt that was added last.
    pub(super) fn count(&mut self, decided: Decided) {
        self.counted.push((self.added.len(), decided));
    }

    /// What was added so far, to be counted once it is durable.
    pub(super) fn told(&mut self) -> Added {
        let kinds = self.added.iter().filter_map(|entry| ReceiptKind::find(&entry.kind));
        Added {
            kinds: kinds.map(ReceiptKind::code).collect(),
            decisions: self.counted.drain(..).map(|(_, decided)| decided).collect(),
        }
    }

    /// Writes what was added, moves the head, and signs it; nothing if nothing was added.
    pub(super) async fn append(
        self,
        conn: &mut Conn<'_>,
        key: &LedgerKey,
        at: Timestamp,
    ) -> Result<Option<SignedHead>, StoreError> {
        if self.added.is_empty() {
            return Ok(None);
        }
        let (seq, hash) = self.last();
        let signed = Head { store: self.store.to_string(), seq, hash, at }.sign(key);
        let count = u64::try_from(self.added.len()).unwrap_or(u64::MAX);
        let rows = self.added.into_iter().map(row_of).collect();
        let written = conn.insert_many(query::ADD_RECEIPTS, rows, "").await?;
        if written != count {
            let what = format!("took {written} rows instead of {count}");
            return Err(StoreError::inconsistent("receipts", "rows", what));
        }
        let moved = vec![seq.into(), blob(hash), self.seq.into(), blob(self.hash)];
        let heads = [
            Statement { sql: query::MOVE_HEAD, args: moved },
            Statement {
                sql: query::ADD_SIGNED_HEAD,
                args: vec![seq.into(), signed.to_text().into()],
            },
        ];
        conn.execute_each(&heads).await?;
        Ok(Some(signed))
    }

    /// Sequence number and hash of the newest entry.
    pub(super) fn last(&self) -> (i64, Digest) {
        self.added.last().map_or((self.seq, self.hash), |entry| (entry.seq, entry.hash))
    }
}

impl Store {
    /// At most `limit` entries after the one with that number, in their order.
    pub async fn receipts_after(&self, seq: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.read(move |conn| Box::pin(async move { entries_after(conn, seq, limit).await })).await
    }

    /// The same of one company only.
    pub async fn company_receipts_after(
        &self,
        company: &str,
        seq: i64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let args = [seq.into(), i64::from(limit).into(), company.into()];
        self.read(move |conn| {
            Box::pin(async move {
                let rows = conn.fetch_all(query::RECEIPTS_OF_COMPANY_AFTER, &args).await?;
                rows.iter().map(entry_of).collect()
            })
        })
        .await
    }

    pub async fn find_receipt(&self, seq: i64) -> Result<Option<Entry>, StoreError> {
        self.read(move |conn| {
            Box::pin(async move {
                let row = conn.fetch_optional(query::RECEIPT, &[seq.into()]).await?;
                row.as_ref().map(entry_of).transpose()
            })
        })
        .await
    }

    /// Verifies the whole chain as it is now, against the checkpoint that was kept elsewhere. The
    /// outer error is the store's, the inner one the chain's.
    pub async fn verify_chain(
        &self,
        key: &LedgerPublicKey,
        kept: Option<&SignedHead>,
    ) -> Result<Result<Verified, ChainFault>, StoreError> {
        verify(&self.inner.readers, self.id(), key, kept).await
    }

    /// Writes the chain up to its newest signed head; with a company, only its entries whole.
    pub async fn export<W: Write>(
        &self,
        out: W,
        key: &LedgerPublicKey,
        company: Option<&str>,
    ) -> Result<(), ExportError> {
        let head = self
            .newest_signed_head()
            .await?
            .ok_or_else(|| StoreError::inconsistent("signed_heads", "rows", "has no row"))?;
        let count = head.head().seq;
        let header = ExportHeader {
            store: self.id().to_owned(),
            key: *key,
            company: company.map(str::to_owned),
            count,
        };
        let mut export = ExportWriter::new(out, header)?;
        let mut seq = 0;
        while seq < count {
            let entries = self.receipts_after(seq, PAGE).await?;
            let Some(last) = entries.last() else { break };
            seq = last.seq;
            for entry in entries.iter().filter(|entry| entry.seq <= count) {
                export.entry(entry)?;
            }
        }
        Ok(export.finish(&head)?)
    }

    /// The newest signed head, as it was written.
    pub async fn newest_signed_head(&self) -> Result<Option<SignedHead>, StoreError> {
        self.read(|conn| Box::pin(async move { newest_signed_head(conn).await })).await
    }
}

/// Verifies the chain of a store without opening it: also of one that would be refused, to learn
/// what is wrong with it. It writes nothing.
pub async fn verify_unopened(
    url: &str,
    allow_plaintext: bool,
    key: &LedgerPublicKey,
    kept: Option<&SignedHead>,
) -> Result<Result<Verified, ChainFault>, StoreError> {
    let readers = Address::parse(url, allow_plaintext)?.found()?.readers();
    let id = readers
        .read(|conn| Box::pin(async move { conn.fetch_one(query::STORE, &[]).await?.text("id") }))
        .await?;
    let verified = verify(&readers, &id, key, kept).await;
    readers.close().await;
    verified
}

async fn verify(
    readers: &Readers,
    store: &str,
    key: &LedgerPublicKey,
    kept: Option<&SignedHead>,
) -> Result<Result<Verified, ChainFault>, StoreError> {
    let mut verifier = match Verifier::new(store, key, kept) {
        Ok(verifier) => verifier,
        Err(fault) => return Ok(Err(fault)),
    };
    loop {
        let seq = verifier.seq();
        let page = readers.read(move |conn| Box::pin(async move { page_after(conn, seq).await }));
        let (entries, heads) = page.await?;
        let end = entries.is_empty();
        if let Err(fault) = verifier.part(entries, heads) {
            return Ok(Err(fault));
        }
        if end {
            return Ok(verifier.finish());
        }
    }
}

pub(super) async fn newest_signed_head(
    conn: &mut Conn<'_>,
) -> Result<Option<SignedHead>, StoreError> {
    let Some(row) = conn.fetch_optional(query::NEWEST_SIGNED_HEAD, &[]).await? else {
        return Ok(None);
    };
    let signed = SignedHead::parse(&row.text("note")?);
    signed.map(Some).map_err(|error| row.inconsistent("note", format!("is {error}")))
}

/// The latest moment that the newest receipts name: no true time is earlier, whatever a clock says
/// that was set back since.
pub async fn latest_moment(conn: &mut Conn<'_>) -> Result<Timestamp, StoreError> {
    let row = conn.fetch_one(query::LATEST, &[LATEST_OF.into()]).await?;
    Ok(Timestamp::from_millis(row.opt_int("latest")?.unwrap_or(0)))
}

/// The hash of the entry with that number.
pub(super) async fn hash_at(conn: &mut Conn<'_>, seq: i64) -> Result<Option<Digest>, StoreError> {
    let row = conn.fetch_optional(query::RECEIPT_HASH, &[seq.into()]).await?;
    row.map(|row| digest(&row, "entry_hash")).transpose()
}

/// Writes the head that the chain of a new store begins with.
pub(super) async fn add_head(conn: &mut Conn<'_>, end: &ChainEnd) -> Result<(), StoreError> {
    conn.execute_one(query::ADD_HEAD, &[blob(end.hash)]).await
}

/// The next entries with the signed heads that are for them, as one transaction sees both.
async fn page_after(
    conn: &mut Conn<'_>,
    seq: i64,
) -> Result<(Vec<Entry>, Vec<(i64, String)>), StoreError> {
    let entries = entries_after(conn, seq, PAGE).await?;
    // The last page takes all heads that are left, so that none beyond the chain goes unseen.
    let full = entries.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
    let until = entries.last().filter(|_| full).map_or(i64::MAX, |entry| entry.seq);
    let limit = i64::from(PAGE).saturating_add(1);
    let args = [seq.into(), until.into(), limit.into()];
    let rows = conn.fetch_all(query::SIGNED_HEADS_BETWEEN, &args).await?;
    let heads = rows.iter().map(|row| Ok((row.int("seq")?, row.text("note")?)));
    Ok((entries, heads.collect::<Result<_, StoreError>>()?))
}

async fn entries_after(
    conn: &mut Conn<'_>,
    seq: i64,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    let args = [seq.into(), i64::from(limit).into()];
    conn.fetch_all(query::RECEIPTS_AFTER, &args).await?.iter().map(entry_of).collect()
}

fn entry_of(row: &Row) -> Result<Entry, StoreError> {
    Ok(Entry {
        seq: row.int("seq")?,
        at_ms: row.int("at")?,
        kind: row.text("kind")?,
        company: row.opt_text("company")?,
        operation: row.opt_text("operation")?,
        bytes: row.blob("bytes")?,
        content: digest(row, "content_hash")?,
        prev: digest(row, "prev_hash")?,
        hash: digest(row, "entry_hash")?,
    })
}

fn row_of(entry: Entry) -> Vec<Val> {
    vec![
        entry.seq.into(),
        entry.at_ms.into(),
        entry.kind.into(),
        entry.company.into(),
        entry.operation.into(),
        entry.bytes.into(),
        blob(entry.content),
        blob(entry.prev),
        blob(entry.hash),
    ]
}

fn digest(row: &Row, column: &str) -> Result<Digest, StoreError> {
    Digest::from_slice(&row.blob(column)?)
        .map_err(|NotADigest| row.inconsistent(column, "is not 32 bytes"))
}

fn blob(digest: Digest) -> Val {
    digest.as_bytes().as_slice().into()
}
