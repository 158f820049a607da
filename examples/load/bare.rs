//! What the same rows cost when nobody decides anything: the rows that the load left in the daemon's
//! store, written once more into new files of the same tables and indexes, by as many callers as
//! before, and on the disk (`synchronous = FULL`) before any of them goes on.
//!
//! Once as SQLite does it by itself: each caller has a connection, and the rows of one decision are
//! one transaction. And once in groups, as the daemon's own writer does it: one connection writes, and
//! what waits at a moment becomes one transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Decode, Executor, QueryBuilder, Row, Sqlite,
    SqliteConnection, TypeInfo, ValueRef,
};
use tokio::sync::{mpsc, oneshot};

/// The tables that a refused proposal leaves a row in, and how the rows of a run are found.
const TABLES: [(&str, &str); 2] = [
    ("operation", "select * from operation where idempotency_key like $1 order by id"),
    (
        "receipts",
        "select * from receipts where operation in \
         (select id from operation where idempotency_key like $1) order by seq",
    ),
];
/// As many as the daemon puts into one transaction.
const GROUP_MAX: usize = 128;

#[derive(Clone)]
enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

struct Table {
    name: &'static str,
    /// What makes it and its indexes.
    schema: Vec<String>,
    columns: String,
    rows: Vec<Vec<Value>>,
}

/// How long the rows of so many decisions took.
pub(crate) struct Bare {
    pub(crate) decisions: usize,
    pub(crate) by_itself: Duration,
    pub(crate) in_groups: Duration,
}

type Job = (usize, oneshot::Sender<()>);

/// Inserts the rows of a run again, `callers` at a time.
pub(crate) async fn insert(store: &Path, run: u128, callers: usize) -> anyhow::Result<Bare> {
    let mut daemon = SqliteConnectOptions::new().filename(store).read_only(true).connect().await?;
    let mut tables = Vec::new();
    for (name, select) in TABLES {
        tables.push(copy(&mut daemon, name, select, run).await?);
    }
    daemon.close().await?;
    let tables = Arc::new(tables);
    let decisions = tables.iter().map(|table| table.rows.len()).min().unwrap_or_default();
    anyhow::ensure!(decisions > 0, "the store holds nothing of this run");
    let folder = tempfile::tempdir_in(store.parent().unwrap_or(Path::new(".")))?;
    let by_itself = file(&folder.path().join("by_itself.db"), &tables).await?;
    let by_itself = alone(&by_itself, &tables, decisions, callers).await?;
    let in_groups = file(&folder.path().join("in_groups.db"), &tables).await?.connect().await?;
    let in_groups = write(in_groups, tables, decisions, callers).await?;
    Ok(Bare { decisions, by_itself, in_groups })
}

/// Makes a file of the same tables and indexes.
async fn file(path: &Path, tables: &[Table]) -> anyhow::Result<SqliteConnectOptions> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_mins(1))
        .foreign_keys(false);
    let mut made = options.connect().await?;
    for sql in tables.iter().flat_map(|table| &table.schema) {
        made.execute(AssertSqlSafe(sql.clone())).await.context("a table of the store")?;
    }
    made.close().await?;
    Ok(options)
}

/// Reads the run's rows.
async fn copy(
    daemon: &mut SqliteConnection,
    name: &'static str,
    select: &'static str,
    run: u128,
) -> anyhow::Result<Table> {
    let schema = "select sql from sqlite_master where tbl_name = $1 and sql is not null \
                  order by type desc";
    let schema = sqlx::query_scalar(schema).bind(name).fetch_all(&mut *daemon).await?;
    let found = sqlx::query(select).bind(format!("load-{run}-%")).fetch_all(&mut *daemon).await?;
    let columns: Vec<&str> = found
        .first()
        .map(|row| row.columns().iter().map(Column::name).collect())
        .unwrap_or_default();
    let rows = found.iter().map(values).collect::<anyhow::Result<_>>()?;
    Ok(Table { name, schema, columns: columns.join(", "), rows })
}

fn values(row: &SqliteRow) -> anyhow::Result<Vec<Value>> {
    (0..row.len())
        .map(|at| {
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            let kind = raw.type_info().name().to_owned();
            let read = |fault| anyhow::anyhow!("column {at}: {fault}");
            Ok(match kind.as_str() {
                "INTEGER" => Value::Number(Decode::<Sqlite>::decode(raw).map_err(read)?),
                "BLOB" => Value::Bytes(Decode::<Sqlite>::decode(raw).map_err(read)?),
                _ => Value::Text(Decode::<Sqlite>::decode(raw).map_err(read)?),
            })
        })
        .collect()
}

/// Each caller with a connection of its own, and one decision's rows in one transaction.
async fn alone(
    file: &SqliteConnectOptions,
    tables: &Arc<Vec<Table>>,
    decisions: usize,
    callers: usize,
) -> anyhow::Result<Duration> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..callers {
        connections.push(file.connect().await?);
    }
    let began = Instant::now();
    let mut working = tokio::task::JoinSet::new();
    for mut connection in connections {
        let (tables, next) = (Arc::clone(tables), Arc::clone(&next));
        working.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= decisions {
                    return Ok::<_, anyhow::Error>(());
                }
                let mut work = connection.begin_with("begin immediate").await?;
                put(&mut work, &tables, &[at]).await?;
                work.commit().await?;
            }
        });
    }
    while let Some(caller) = working.join_next().await {
        caller??;
    }
    Ok(began.elapsed())
}

/// Inserts the rows of those decisions, with one statement for each table.
async fn put(
    work: &mut SqliteConnection,
    tables: &[Table],
    decisions: &[usize],
) -> anyhow::Result<()> {
    for table in tables {
        let mut insert =
            QueryBuilder::<Sqlite>::new(format!("insert into {} ({}) ", table.name, table.columns));
        let rows = decisions.iter().filter_map(|at| table.rows.get(*at));
        insert.push_values(rows, |mut row, values| {
            for value in values.clone() {
                match value {
                    Value::Null => row.push_bind(None::<i64>),
                    Value::Number(number) => row.push_bind(number),
                    Value::Text(text) => row.push_bind(text),
                    Value::Bytes(bytes) => row.push_bind(bytes),
                };
            }
        });
        insert.build().execute(&mut *work).await?;
    }
    Ok(())
}

async fn write(
    bare: SqliteConnection,
    tables: Arc<Vec<Table>>,
    decisions: usize,
    callers: usize,
) -> anyhow::Result<Duration> {
    let (jobs, queue) = mpsc::channel(callers.max(1));
    let mut writer = tokio::task::JoinSet::new();
    writer.spawn(drain(bare, Arc::clone(&tables), queue));
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (jobs, next): (mpsc::Sender<Job>, _) = (jobs.clone(), Arc::clone(&next));
        waiting.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= decisions {
                    return Ok::<_, anyhow::Error>(());
                }
                let (done, durable) = oneshot::channel();
                jobs.send((at, done)).await.context("the writer ended")?;
                durable.await.context("the writer ended")?;
            }
        });
    }
    drop(jobs);
    while let Some(caller) = waiting.join_next().await {
        caller??;
    }
    let took = began.elapsed();
    while let Some(done) = writer.join_next().await {
        done??;
    }
    Ok(took)
}

/// The one writer: what waits becomes one transaction.
async fn drain(
    mut bare: SqliteConnection,
    tables: Arc<Vec<Table>>,
    mut queue: mpsc::Receiver<Job>,
) -> anyhow::Result<()> {
    while let Some(first) = queue.recv().await {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(job) = queue.try_recv()
        {
            group.push(job);
        }
        let mut work = bare.begin().await?;
        let decisions: Vec<usize> = group.iter().map(|(at, _)| *at).collect();
        put(&mut work, &tables, &decisions).await?;
        work.commit().await?;
        for (_, done) in group {
            anyhow::ensure!(done.send(()).is_ok(), "a caller ended");
        }
    }
    bare.close().await?;
    Ok(())
}
