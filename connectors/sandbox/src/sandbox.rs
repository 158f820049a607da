//! Opening the file, its transactions and its clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign_erp_source::{Clock, CompanyId, Iban, SealKey, Timestamp};
use serde_json::json;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::task::TaskTracker;

use crate::tables::{self, TableError};
use crate::world::{World, WorldError};

/// What the file's tables look like, in a number.
const VERSION: i64 = 3;

/// The version that had no changes of bank details and no log yet.
const VERSION_BEFORE_DETAILS: i64 = 2;

/// How many calls can read side by side.
const CONNECTIONS_MAX: u32 = 8;

/// How long a connection waits for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long opening waits, as another process may be loading a large world.
const OPEN_TIMEOUT: Duration = Duration::from_mins(5);

/// How long opening waits between two tries.
const OPEN_RETRY: Duration = Duration::from_millis(20);

/// Where the sandbox is and how it behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The sandbox ERP's own file; made where it is not there.
    pub file: PathBuf,
    /// The world that is read once into a new file.
    pub world: Option<PathBuf>,
    /// How long a call may take.
    pub call_deadline: Duration,
    /// The clock that the sandbox's own one runs ahead of.
    pub base_clock: Arc<dyn Clock>,
    /// The key that seals orders. The first one is kept in the file for good.
    pub seal_key: Option<SealKey>,
}

/// Why the sandbox did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A new file needs a world.
    #[error("the sandbox's file `{}` is new and needs a world file: {problem}", .file.display())]
    NoWorld {
        /// The file.
        file: PathBuf,
        /// Why there is none.
        problem: String,
    },
    /// A world file that cannot be taken as it is.
    #[error("the world file `{}` cannot be used", .world.display())]
    World {
        /// The world file.
        world: PathBuf,
        /// Where and why.
        #[source]
        source: WorldError,
    },
    /// A file of somebody else's, or of another version.
    #[error("`{}` is not a sandbox file of this version", .file.display())]
    OtherFile {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("the sandbox's file `{}` cannot be used", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The embedded ERP. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) inner: Arc<Inner>,
    pub(crate) meets_faults: bool,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pool: SqlitePool,
    /// Writers of this process take turns here rather than by SQLite's polling.
    write_gate: Mutex<()>,
    base_clock: Arc<dyn Clock>,
    offset_ms: AtomicI64,
    pub(crate) call_deadline: Duration,
    pub(crate) companies: Vec<CompanyId>,
    pub(crate) seal_key: Option<SealKey>,
    /// Orders under way, which no caller that gave up can stop half way.
    pub(crate) tasks: TaskTracker,
}

/// A transaction that holds the file's only write lock, and the ERP's time under it.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    pub(crate) tx: Transaction<'static, Sqlite>,
    pub(crate) now: Timestamp,
    _turn: MutexGuard<'a, ()>,
}

impl Writing<'_> {
    /// Keeps that this moment has been, so that a host clock that steps back cannot make the ERP's
    /// earlier than one that a look-up has told.
    pub(crate) async fn keep_time(&mut self) -> Result<(), TableError> {
        sqlx::query("update erp set latest_ms = $1")
            .bind(self.now.as_millis())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn commit(self) -> Result<(), TableError> {
        Ok(self.tx.commit().await?)
    }
}

impl Sandbox {
    /// Opens the file, and reads the world into it if it is new. Several processes may do so at the
    /// same moment: one of them loads.
    ///
    /// # Errors
    /// [`OpenError`] names file and problem.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let file = options.file.clone();
        let failed =
            |source: TableError| OpenError::File { file: file.clone(), source: Box::new(source) };
        if !file.exists() {
            // Checked before the file is made, so that a typing error leaves nothing behind.
            read_world(&options, options.base_clock.now())?;
        }
        let pool = connect(&file).await.map_err(|error| failed(error.into()))?;
        load(&pool, &options).await?;
        let mut conn = pool.acquire().await.map_err(|error| failed(error.into()))?;
        let ids = sqlx::query_scalar::<_, String>("select id from company order by id")
            .fetch_all(&mut *conn)
            .await
            .map_err(|error| failed(error.into()))?;
        drop(conn);
        let companies = ids.into_iter().filter_map(|id| CompanyId::new(id).ok()).collect();
        let inner = Inner {
            pool,
            write_gate: Mutex::new(()),
            base_clock: options.base_clock,
            offset_ms: AtomicI64::new(0),
            call_deadline: options.call_deadline,
            companies,
            seal_key: options.seal_key,
            tasks: TaskTracker::new(),
        };
        inner.sync_clock().await.map_err(failed)?;
        Ok(Self { inner: Arc::new(inner), meets_faults: true })
    }

    /// The same ERP for calls that are not made for an operation (lists, single reads for callers,
    /// the watcher, adoption): it meets no faults and spends none.
    #[must_use]
    pub fn without_faults(&self) -> Self {
        Self { meets_faults: false, ..self.clone() }
    }

    /// Takes over the clock's offset that another process may have moved. Every call to the ERP does
    /// it too.
    ///
    /// # Errors
    /// The file cannot be read; the clock then stays as it is.
    pub async fn sync_clock(&self) -> Result<(), countersign_erp_source::ReadError> {
        Ok(self.inner.sync_clock().await?)
    }

    /// How many orders were sent and are not done yet.
    pub fn orders_under_way(&self) -> usize {
        self.inner.tasks.len()
    }

    /// Waits for the orders under way and closes the file.
    pub async fn close(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.pool.close().await;
    }
}

impl Clock for Sandbox {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        let offset_ms = self.offset_ms.load(Ordering::Relaxed);
        self.base_clock.now().plus(Duration::from_millis(u64::try_from(offset_ms).unwrap_or(0)))
    }

    /// The offset only grows, so the larger one is the newer one.
    pub(crate) fn take_offset(&self, offset_ms: i64) {
        self.offset_ms.fetch_max(offset_ms, Ordering::Relaxed);
    }

    /// A connection for a read of one statement, which sees one moment by itself.
    pub(crate) async fn conn(&self) -> Result<PoolConnection<Sqlite>, TableError> {
        Ok(self.pool.acquire().await?)
    }

    pub(crate) async fn sync_clock(&self) -> Result<(), TableError> {
        let mut conn = self.conn().await?;
        self.read_clock(&mut conn).await?;
        Ok(())
    }

    async fn read_clock(&self, conn: &mut SqliteConnection) -> Result<Timestamp, TableError> {
        let (offset_ms, latest_ms): (i64, i64) =
            sqlx::query_as("select clock_offset_ms, latest_ms from erp").fetch_one(conn).await?;
        self.take_offset(offset_ms);
        Ok(self.now().max(Timestamp::from_millis(latest_ms)))
    }

    /// A view of one moment, and that moment.
    pub(crate) async fn read(
        &self,
    ) -> Result<(Transaction<'static, Sqlite>, Timestamp), TableError> {
        let mut tx = self.pool.begin().await?;
        let now = self.read_clock(&mut tx).await?;
        Ok((tx, now))
    }

    /// Takes the write lock, which is the lock on every bill and every vendor.
    pub(crate) async fn write(&self) -> Result<Writing<'_>, TableError> {
        let turn = self.write_gate.lock().await;
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let now = self.read_clock(&mut tx).await?;
        Ok(Writing { tx, now, _turn: turn })
    }
}

fn read_world(options: &Options, now: Timestamp) -> Result<World, OpenError> {
    let no_world = |problem: String| OpenError::NoWorld { file: options.file.clone(), problem };
    let Some(world) = &options.world else {
        return Err(no_world("none is configured".to_owned()));
    };
    let text = std::fs::read_to_string(world)
        .map_err(|error| no_world(format!("`{}`: {error}", world.display())))?;
    World::parse(&text, now).map_err(|source| OpenError::World { world: world.clone(), source })
}

/// Connects, again and again while another process switches the file's mode or recovers it.
async fn connect(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(OPEN_TIMEOUT)
        // A file does not go away as a server does.
        .test_before_acquire(false)
        .connect_lazy_with(options);
    let connected = async {
        loop {
            match pool.acquire().await {
                Ok(_) => return Ok(()),
                Err(error) if is_busy(&error) => tokio::time::sleep(OPEN_RETRY).await,
                Err(error) => return Err(error),
            }
        }
    };
    tokio::time::timeout(OPEN_TIMEOUT, connected)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    Ok(pool)
}

fn is_busy(error: &sqlx::Error) -> bool {
    const BUSY: u32 = 5;
    const PRIMARY: u32 = 0xff;
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| code & PRIMARY == BUSY)
}

/// Makes the tables, reads the world and keeps the key, in one transaction that finds out under
/// the lock whether another process did so already.
async fn load(pool: &SqlitePool, options: &Options) -> Result<(), OpenError> {
    let file = || options.file.clone();
    let failed = |source: TableError| OpenError::File { file: file(), source: Box::new(source) };
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.map_err(|error| failed(error.into()))?;
    let (tables, ours): (i64, i64) = sqlx::query_as(
        "select count(*), coalesce(sum(name = 'payment_order'), 0) from sqlite_schema
         where type = 'table'",
    )
    .fetch_one(&mut *tx)
    .await
    .map_err(|error| failed(error.into()))?;
    if tables == 0 {
        let now = options.base_clock.now();
        let world = read_world(options, now)?;
        fill(&mut tx, &world, now).await.map_err(failed)?;
    } else {
        let other = || OpenError::OtherFile { file: file() };
        if ours != 1 {
            return Err(other());
        }
        let version: i64 = sqlx::query_scalar("select version from erp")
            .fetch_one(&mut *tx)
            .await
            .map_err(|error| failed(error.into()))?;
        match version {
            VERSION => {}
            VERSION_BEFORE_DETAILS => add_details(&mut tx).await.map_err(failed)?,
            _ => return Err(other()),
        }
    }
    if let Some(key) = &options.seal_key {
        sqlx::query("update erp set seal_key = $1 where seal_key is null")
            .bind(key.bytes().as_slice())
            .execute(&mut *tx)
            .await
            .map_err(|error| failed(error.into()))?;
    }
    tx.commit().await.map_err(|error| failed(error.into()))
}

/// Brings a file of the version before to the present one. What it holds stays as it is; its log
/// begins empty.
async fn add_details(conn: &mut SqliteConnection) -> Result<(), TableError> {
    sqlx::raw_sql(tables::SCHEMA_DETAILS).execute(&mut *conn).await?;
    sqlx::query("update erp set version = $1").bind(VERSION).execute(conn).await?;
    Ok(())
}

async fn fill(
    conn: &mut SqliteConnection,
    world: &World,
    now: Timestamp,
) -> Result<(), TableError> {
    for schema in [tables::SCHEMA, tables::SCHEMA_DETAILS] {
        sqlx::raw_sql(schema).execute(&mut *conn).await?;
    }
    sqlx::query("insert into erp (one, version, clock_offset_ms, latest_ms) values (1, $1, 0, $2)")
        .bind(VERSION)
        .bind(now.as_millis())
        .execute(&mut *conn)
        .await?;
    for company in &world.companies {
        let id = company.id.as_str();
        sqlx::query("insert into company (id, name, currency) values ($1, $2, $3)")
            .bind(id)
            .bind(&company.name)
            .bind(company.currency.code())
            .execute(&mut *conn)
            .await?;
        for (code, iban) in &company.journals {
            sqlx::query("insert into journal (company, code, iban) values ($1, $2, $3)")
                .bind(id)
                .bind(code.as_str())
                .bind(iban.electronic())
                .execute(&mut *conn)
                .await?;
        }
        tables::write_vendors(conn, id, &company.vendors).await?;
        tables::write_bills(conn, id, &company.bills).await?;
    }
    let sanctioned: Vec<_> = world.sanctioned.iter().map(Iban::electronic).collect();
    sqlx::query("insert or ignore into sanctioned (iban) select value from json_each($1)")
        .bind(json!(sanctioned).to_string())
        .execute(&mut *conn)
        .await?;
    for (entry, iban) in &world.vop {
        tables::write_vop(conn, entry, iban).await?;
    }
    Ok(())
}
