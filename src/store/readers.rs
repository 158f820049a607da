//! Connections that only read.

use std::sync::{Mutex, PoisonError};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection as _, PgPool, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::question::{Answers, Posed, Questions, Statement};
use super::{ACQUIRE_LIMIT, BoxFuture, Conn, Row, StoreError};

/// How many may read a SQLite file at once.
const FILES_MAX: u32 = 4;

pub(super) enum Readers {
    Sqlite(Box<Files>),
    Postgres(PgPool),
}

/// Open connections to a SQLite file. A connection here is in no transaction: one whose work ended by
/// an error, or whose caller went away in the middle of it, is closed and not put back.
///
/// A pool for servers looks whether a connection still stands each time it is lent and each time it
/// comes back. To a file that is two messages to another thread for nothing.
pub(super) struct Files {
    options: SqliteConnectOptions,
    idle: Mutex<Vec<SqliteConnection>>,
    places: Semaphore,
}

impl Files {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        let places = Semaphore::new(usize::try_from(FILES_MAX).unwrap_or(1));
        Self { options, idle: Mutex::default(), places }
    }

    async fn lend(&self) -> Result<(SqliteConnection, SemaphorePermit<'_>), StoreError> {
        let place = tokio::time::timeout(ACQUIRE_LIMIT, self.places.acquire()).await;
        let place =
            place.map_err(|_elapsed| StoreError::Busy)?.map_err(|_closed| StoreError::Closed)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(StoreError::from_statement)?,
        };
        Ok((connection, place))
    }

    fn put_back(&self, connection: SqliteConnection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    async fn close(&self) {
        // Whoever reads at this moment does so to the end.
        let all = self.places.acquire_many(FILES_MAX).await;
        self.places.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle {
            if let Err(error) = connection.close().await {
                tracing::warn!(%error, "a connection did not close well");
            }
        }
        drop(all);
    }
}

/// One statement sees one state by itself; several do within a transaction, which they bring along.
async fn fetch_of_one_state(
    conn: &mut Conn<'_>,
    posed: Vec<Statement>,
) -> Result<Vec<Vec<Row>>, StoreError> {
    if posed.len() < 2 {
        return conn.fetch_each(&posed).await;
    }
    let word = |sql| Statement { sql, args: Vec::new() };
    let all = [vec![word("begin")], posed, vec![word("rollback")]].concat();
    let mut rows = conn.fetch_each(&all).await?.into_iter();
    drop(rows.next());
    Ok(rows.collect())
}

impl Readers {
    /// Runs the work in a transaction that sees one state and writes nothing.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Conn<'_>) -> BoxFuture<'c, Result<T, StoreError>> + Send,
        T: Send,
    {
        // The transaction only reads: leaving it by rolling back loses nothing, and an early end
        // by an error or a caller that went away does the same.
        match self {
            Self::Sqlite(files) => {
                let (mut connection, _place) = files.lend().await?;
                let mut conn = Conn::sqlite(&mut connection);
                conn.run("begin").await.map_err(StoreError::from_statement)?;
                let value = work(&mut conn).await?;
                conn.run("rollback").await.map_err(StoreError::from_statement)?;
                files.put_back(connection);
                Ok(value)
            }
            Self::Postgres(pool) => {
                let begun =
                    pool.begin_with("begin isolation level repeatable read read only").await;
                let mut transaction = begun.map_err(StoreError::from_statement)?;
                let value = work(&mut Conn::postgres(&mut transaction)).await?;
                transaction.rollback().await.map_err(StoreError::from_statement)?;
                Ok(value)
            }
        }
    }

    /// Asks all of it of one state.
    pub(super) async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answer, StoreError> {
        match self {
            Self::Sqlite(files) => {
                let (posed, read) = Posed::of(questions);
                let (mut connection, _place) = files.lend().await?;
                let rows = fetch_of_one_state(&mut Conn::sqlite(&mut connection), posed).await?;
                files.put_back(connection);
                read(&mut Answers::of(rows))
            }
            Self::Postgres(_) => {
                self.read(|conn| Box::pin(async move { conn.ask(questions).await })).await
            }
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(files) => files.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
