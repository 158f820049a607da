//! Opening a store: nothing is believed and nothing written before it fits its checkpoint.

use std::sync::Arc;

use aws_lc_rs::rand;
use countersign_erp_source::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::address::{Address, Connection};
use super::checkpoint::{self, CheckpointFile};
use super::ledger::{self, ChainEnd};
use super::migrate::migrate;
use super::writer::Writer;
use super::{
    Conn, Fault, Inner, OpenRefusal, QUEUE_MAX, State, Store, StoreError, StoreOptions, query,
};
use crate::receipts::{Digest, HeadError, Receipt, ReceiptKind, SignedHead};

/// Held on PostgreSQL while a store is opened. It ends with the transaction, so it cannot leak.
const OPEN_LOCK: &str = "select pg_advisory_xact_lock(4714209031)";

pub(super) async fn open(options: StoreOptions) -> Result<Store, StoreError> {
    let address = Address::parse(&options.url, options.allow_plaintext)?.made()?;
    let claim = address.claim(options.role)?;
    let checkpoint = options.checkpoint_file.as_deref().map(CheckpointFile::open).transpose()?;

    let mut connection = address.connect().await?;
    connection.begin().await?;
    // An error leaves by dropping the connection, which undoes the transaction with it.
    let (id, newest) = prepare(&mut connection, &options, checkpoint.as_ref()).await?;
    connection.commit().await?;

    let (queue, jobs) = mpsc::channel(QUEUE_MAX);
    let last = (newest.head().seq, newest.head().hash);
    let (newest, published) = watch::channel(newest);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let readers = address.readers();
    let state = Arc::<State>::default();
    let writer = Writer {
        address,
        store: Arc::clone(&id),
        key: options.key,
        clock: options.clock,
        connection: Some(connection),
        last,
        state: Arc::clone(&state),
        jobs,
        stop: stop.clone(),
        newest,
        claim,
        metrics: options.metrics.clone(),
    };
    tasks.spawn(writer.run());
    if let Some(file) = checkpoint {
        tasks.spawn(checkpoint::keep(file, published, options.metrics.clone()));
    }
    let metrics = options.metrics;
    Ok(Store { inner: Arc::new(Inner { id, readers, queue, stop, tasks, metrics, state }) })
}

/// Makes or checks everything in one transaction; gives the store's id and its newest head.
async fn prepare(
    connection: &mut Connection,
    options: &StoreOptions,
    checkpoint: Option<&CheckpointFile>,
) -> Result<(Arc<str>, SignedHead), StoreError> {
    let now = options.clock.now();
    let mut conn = connection.conn();
    let conn = &mut conn;
    let lock = conn.either("", OPEN_LOCK);
    if !lock.is_empty() {
        conn.fetch_all(lock, &[]).await?;
    }
    migrate(conn, now).await?;
    let id: Arc<str> = match conn.fetch_optional(query::STORE, &[]).await? {
        Some(row) => row.text("id")?.into(),
        None => create(conn, options, now).await?,
    };
    let newest = check_end(conn, options, &id).await?;
    if let Some(checkpoint) = checkpoint {
        check_kept(conn, checkpoint, options, &newest).await?;
    }
    Ok((id, newest))
}

async fn create(
    conn: &mut Conn<'_>,
    options: &StoreOptions,
    now: Timestamp,
) -> Result<Arc<str>, StoreError> {
    let mut random = [0; 16];
    let no_random = |error: aws_lc_rs::error::Unspecified| StoreError::Refused(Fault::new(error));
    rand::fill(&mut random).map_err(no_random)?;
    let id: String = random.iter().fold("st_".to_owned(), |id, byte| format!("{id}{byte:02x}"));
    let id: Arc<str> = id.into();
    conn.execute_one(query::ADD_STORE, &[(&*id).into(), now.into()]).await?;
    let mut end = ChainEnd::empty(&id);
    ledger::add_head(conn, &end).await?;
    end.push(Receipt {
        kind: ReceiptKind::StoreCreated,
        at: now,
        company: None,
        operation: None,
        data: json!({
            "database": conn.either("sqlite", "postgres"),
            "ledger_key": options.key.public().to_hex(),
        }),
    })?;
    end.append(conn, &options.key, now).await?;
    Ok(id)
}

/// Checks that head, newest receipt and newest signed head say the same, signed by our key.
async fn check_end(
    conn: &mut Conn<'_>,
    options: &StoreOptions,
    id: &Arc<str>,
) -> Result<SignedHead, StoreError> {
    let (seq, hash) = ChainEnd::lock(conn, id).await?.last();
    let differs = |what: &str| {
        StoreError::inconsistent("ledger_head", "seq", format!("is {seq}, but {what}"))
    };
    let signed =
        ledger::newest_signed_head(conn).await?.ok_or_else(|| differs("no head is signed"))?;
    let head = match signed.verify(options.key.public()) {
        Ok(head) => head,
        Err(HeadError::OtherKey { store, key_id, expected }) => {
            let refusal = OpenRefusal::OtherKey { store, found: key_id, given: expected };
            return Err(refusal.into());
        }
        Err(error) => return Err(differs(&error.to_string())),
    };
    if head.store != **id || head.seq != seq || head.hash != hash {
        return Err(differs(&format!("the newest signed head is {}", head.seq)));
    }
    if ledger::hash_at(conn, seq).await? != Some(hash) {
        return Err(differs("the receipt there is missing or has another hash"));
    }
    Ok(signed)
}

/// INVARIANT: a store that does not contain what was vouched for elsewhere is never opened, so
/// nothing is appended to a cut, restored or rewritten chain, and the kept file stays as it is.
async fn check_kept(
    conn: &mut Conn<'_>,
    checkpoint: &CheckpointFile,
    options: &StoreOptions,
    newest: &SignedHead,
) -> Result<(), StoreError> {
    let path = checkpoint.path().to_owned();
    let Some(kept) = checkpoint.read()? else { return Ok(()) };
    let (kept_head, last) = (kept.head(), newest.head());
    if kept_head.store != last.store {
        let (kept, found) = (kept_head.store.clone(), last.store.clone());
        return Err(OpenRefusal::CheckpointOfOtherStore { path, kept, found }.into());
    }
    if let Err(source) = kept.verify(options.key.public()) {
        return Err(OpenRefusal::CheckpointUnreadable { path, source }.into());
    }
    let (store, seq) = (last.store.clone(), kept_head.seq);
    if seq > last.seq {
        let refusal = OpenRefusal::StoreIsShorter { path, store, last: last.seq, kept: seq };
        return Err(refusal.into());
    }
    let found = ledger::hash_at(conn, seq).await?;
    if found != Some(kept_head.hash) {
        let found = found.as_ref().map_or("none".to_owned(), Digest::to_string);
        let kept = kept_head.hash.to_string();
        return Err(OpenRefusal::StoreIsOther { path, store, seq, found, kept }.into());
    }
    Ok(())
}
