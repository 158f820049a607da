//! One connection of either database, with the same calls on both.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Database, Either, Executor, Row as _};
use sqlx::{Encode, PgConnection, Postgres, QueryBuilder, Sqlite, SqliteConnection, Type};

use countersign_erp_source::Timestamp;
use futures_util::TryStreamExt;

use super::StoreError;
use super::question::{self, Statement};

/// SQLite takes 32,766 arguments in one statement and PostgreSQL 65,535.
const ARGUMENTS_MAX: usize = 32_000;

/// A connection within an open transaction. Statements are the same text for both databases, with
/// `$1` for the first argument.
pub struct Conn<'a>(Link<'a>);

enum Link<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

/// One argument of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Val {
    Text(Option<String>),
    Int(Option<i64>),
    Blob(Option<Vec<u8>>),
}

/// One row of an answer; columns are had by name.
pub struct Row {
    place: &'static str,
    cells: Cells,
}

enum Cells {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Does the same with either connection.
macro_rules! on_both {
    ($link:expr, $conn:ident => $work:expr) => {
        match &mut $link {
            Link::Sqlite($conn) => $work,
            Link::Postgres($conn) => $work,
        }
    };
}

impl<'a> Conn<'a> {
    pub(super) fn sqlite(conn: &'a mut SqliteConnection) -> Self {
        Self(Link::Sqlite(conn))
    }

    pub(super) fn postgres(conn: &'a mut PgConnection) -> Self {
        Self(Link::Postgres(conn))
    }

    /// Runs the statement and gives the number of rows it changed.
    pub async fn execute(&mut self, sql: &'static str, args: &[Val]) -> Result<u64, StoreError> {
        let done = on_both!(self.0, conn => {
            bind(sqlx::query(sql), args).execute(&mut **conn).await.map(|done| done.rows_affected())
        });
        done.map_err(StoreError::from_statement)
    }

    /// Runs a statement that must change exactly one row.
    pub async fn execute_one(&mut self, sql: &'static str, args: &[Val]) -> Result<(), StoreError> {
        one(sql, self.execute(sql, args).await?)
    }

    /// Runs statements of which each must change exactly one row. SQLite takes all of them in one
    /// message.
    pub(super) async fn execute_each(
        &mut self,
        statements: &[Statement],
    ) -> Result<(), StoreError> {
        let Link::Sqlite(conn) = &mut self.0 else {
            for Statement { sql, args } in statements {
                self.execute_one(sql, args).await?;
            }
            return Ok(());
        };
        let mut all = together(conn, statements).await?.into_iter();
        for Statement { sql, .. } in statements {
            one(sql, all.next().map_or(0, |done| done.changed))?;
        }
        Ok(())
    }

    pub async fn fetch_all(
        &mut self,
        sql: &'static str,
        args: &[Val],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = match &mut self.0 {
            Link::Sqlite(conn) => bind(sqlx::query(sql), args)
                .fetch_all(&mut **conn)
                .await
                .map(|rows| rows.into_iter().map(|row| Row::sqlite(sql, row)).collect()),
            Link::Postgres(conn) => bind(sqlx::query(sql), args)
                .fetch_all(&mut **conn)
                .await
                .map(|rows| rows.into_iter().map(|row| Row::postgres(sql, row)).collect()),
        };
        rows.map_err(StoreError::from_statement)
    }

    pub async fn fetch_optional(
        &mut self,
        sql: &'static str,
        args: &[Val],
    ) -> Result<Option<Row>, StoreError> {
        let row = match &mut self.0 {
            Link::Sqlite(conn) => bind(sqlx::query(sql), args)
                .fetch_optional(&mut **conn)
                .await
                .map(|row| row.map(|row| Row::sqlite(sql, row))),
            Link::Postgres(conn) => bind(sqlx::query(sql), args)
                .fetch_optional(&mut **conn)
                .await
                .map(|row| row.map(|row| Row::postgres(sql, row))),
        };
        row.map_err(StoreError::from_statement)
    }

    /// The rows of each statement, in their order. SQLite takes all of them in one message.
    pub(super) async fn fetch_each(
        &mut self,
        statements: &[Statement],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        if let (Link::Sqlite(conn), [_, _, ..]) = (&mut self.0, statements) {
            let all = together(conn, statements).await?;
            return Ok(all.into_iter().map(|done| done.rows).collect());
        }
        let mut answers = Vec::with_capacity(statements.len());
        for statement in statements {
            answers.push(self.fetch_all(statement.sql, &statement.args).await?);
        }
        Ok(answers)
    }

    /// Reads a row that must be there.
    pub async fn fetch_one(&mut self, sql: &'static str, args: &[Val]) -> Result<Row, StoreError> {
        let row = self.fetch_optional(sql, args).await?;
        row.ok_or_else(|| StoreError::inconsistent(sql, "rows", "has no row"))
    }

    /// Writes all rows with few statements: `{prefix} values (…), (…) {suffix}`. Gives the number
    /// of rows changed.
    pub async fn insert_many(
        &mut self,
        prefix: &'static str,
        rows: Vec<Vec<Val>>,
        suffix: &'static str,
    ) -> Result<u64, StoreError> {
        let width = rows.first().map_or(0, Vec::len);
        if width == 0 || rows.iter().any(|row| row.len() != width) {
            return if rows.is_empty() {
                Ok(0)
            } else {
                Err(StoreError::inconsistent(prefix, "rows", "differ in width or are empty"))
            };
        }
        let at_once = ARGUMENTS_MAX.checked_div(width).unwrap_or(1).max(1);
        let mut changed: u64 = 0;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let part: Vec<_> = rows.by_ref().take(at_once).collect();
            let alone = part.len() == 1;
            let done = on_both!(self.0, conn => {
                let mut query = insert(prefix, part, suffix);
                // Each number of rows is another text: the cache of statements keeps the usual one.
                let query = query.build().persistent(alone);
                query.execute(&mut **conn).await.map(|done| done.rows_affected())
            });
            changed = changed.saturating_add(done.map_err(StoreError::from_statement)?);
        }
        Ok(changed)
    }

    /// Runs a text of several statements without arguments.
    pub(super) async fn run(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        on_both!(self.0, conn => {
            sqlx::raw_sql(text).execute(&mut **conn).await.map(drop)
        })
    }

    /// Opens a transaction in which this connection is the only one that may write to SQLite.
    pub(super) fn begin_to_write(&self) -> &'static str {
        // Under `read committed` each statement after the lock sees what the lock waited for.
        self.either("begin immediate", "begin isolation level read committed")
    }

    /// One of two texts, where the databases do not agree.
    pub(super) fn either(&self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match &self.0 {
            Link::Sqlite(_) => sqlite,
            Link::Postgres(_) => postgres,
        }
    }
}

fn one(sql: &'static str, changed: u64) -> Result<(), StoreError> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::inconsistent(sql, "rows", format!("changed {changed} instead of 1")))
}

/// What one statement of several came to.
struct Done {
    rows: Vec<Row>,
    changed: u64,
}

/// Has SQLite run all of them in one message.
async fn together(
    conn: &mut SqliteConnection,
    statements: &[Statement],
) -> Result<Vec<Done>, StoreError> {
    let (text, args) = question::joined(statements);
    // Made of texts of ours alone; what comes from outside are arguments.
    let mut stream = conn.fetch_many(bind(sqlx::query(AssertSqlSafe(text)), &args));
    let mut all = Vec::with_capacity(statements.len());
    let mut rows = Vec::new();
    while let Some(step) = stream.try_next().await.map_err(StoreError::from_statement)? {
        match step {
            Either::Right(row) => {
                let place = statements.get(all.len()).map_or("", |statement| statement.sql);
                rows.push(Row::sqlite(place, row));
            }
            // Said once at the end of each statement.
            Either::Left(end) => {
                let rows = std::mem::take(&mut rows);
                all.push(Done { rows, changed: end.rows_affected() });
            }
        }
    }
    Ok(all)
}

/// Gives a statement its arguments.
trait Binds: Sized {
    fn text(self, value: Option<String>) -> Self;
    fn int(self, value: Option<i64>) -> Self;
    fn blob(self, value: Option<Vec<u8>>) -> Self;
}

impl Binds for Query<'_, Sqlite, SqliteArguments> {
    fn text(self, value: Option<String>) -> Self {
        self.bind(value)
    }
    fn int(self, value: Option<i64>) -> Self {
        self.bind(value)
    }
    fn blob(self, value: Option<Vec<u8>>) -> Self {
        self.bind(value)
    }
}

impl Binds for Query<'_, Postgres, PgArguments> {
    fn text(self, value: Option<String>) -> Self {
        self.bind(value)
    }
    fn int(self, value: Option<i64>) -> Self {
        self.bind(value)
    }
    fn blob(self, value: Option<Vec<u8>>) -> Self {
        self.bind(value)
    }
}

fn bind<Q: Binds>(query: Q, args: &[Val]) -> Q {
    args.iter().fold(query, |query, value| match value.clone() {
        Val::Text(text) => query.text(text),
        Val::Int(int) => query.int(int),
        Val::Blob(blob) => query.blob(blob),
    })
}

fn insert<DB>(prefix: &str, rows: Vec<Vec<Val>>, suffix: &str) -> QueryBuilder<DB>
where
    DB: Database,
    Option<String>: for<'e> Encode<'e, DB> + Type<DB>,
    Option<i64>: for<'e> Encode<'e, DB> + Type<DB>,
    Option<Vec<u8>>: for<'e> Encode<'e, DB> + Type<DB>,
{
    let mut query = QueryBuilder::new(prefix);
    query.push(" ");
    query.push_values(rows, |mut row, values| {
        for value in values {
            match value {
                Val::Text(text) => row.push_bind(text),
                Val::Int(int) => row.push_bind(int),
                Val::Blob(blob) => row.push_bind(blob),
            };
        }
    });
    query.push(" ").push(suffix);
    query
}

/// Reads a column as that type, from either row.
macro_rules! cell {
    ($row:expr, $column:expr, $type:ty) => {
        match &$row.cells {
            Cells::Sqlite(row) => row.try_get::<Option<$type>, _>($column),
            Cells::Postgres(row) => row.try_get::<Option<$type>, _>($column),
        }
    };
}

impl Row {
    fn sqlite(place: &'static str, row: SqliteRow) -> Self {
        Self { place, cells: Cells::Sqlite(row) }
    }

    fn postgres(place: &'static str, row: PgRow) -> Self {
        Self { place, cells: Cells::Postgres(row) }
    }

    pub fn opt_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        cell!(self, column, String).map_err(|error| self.unreadable(column, &error))
    }

    pub fn opt_int(&self, column: &str) -> Result<Option<i64>, StoreError> {
        cell!(self, column, i64)
            .or_else(|_| cell!(self, column, i32).map(|int| int.map(i64::from)))
            .map_err(|error| self.unreadable(column, &error))
    }

    pub fn opt_blob(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        cell!(self, column, Vec<u8>).map_err(|error| self.unreadable(column, &error))
    }

    pub fn text(&self, column: &str) -> Result<String, StoreError> {
        self.opt_text(column)?.ok_or_else(|| self.inconsistent(column, "is null"))
    }

    pub fn int(&self, column: &str) -> Result<i64, StoreError> {
        self.opt_int(column)?.ok_or_else(|| self.inconsistent(column, "is null"))
    }

    pub fn blob(&self, column: &str) -> Result<Vec<u8>, StoreError> {
        self.opt_blob(column)?.ok_or_else(|| self.inconsistent(column, "is null"))
    }

    /// An integer that must be 0 or 1.
    pub fn flag(&self, column: &str) -> Result<bool, StoreError> {
        match self.int(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.inconsistent(column, format!("is {other}, neither 0 nor 1"))),
        }
    }

    /// A moment in milliseconds since 1970.
    pub fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        let millis = self.int(column)?;
        let at = Timestamp::from_millis(millis);
        if at.as_millis() == millis {
            Ok(at)
        } else {
            Err(self.inconsistent(column, format!("is {millis}, which is no time")))
        }
    }

    /// What to say of a column whose value cannot become one of ours.
    pub fn inconsistent(&self, column: &str, what: impl Into<String>) -> StoreError {
        StoreError::inconsistent(self.place, column, what)
    }

    fn unreadable(&self, column: &str, error: &sqlx::Error) -> StoreError {
        self.inconsistent(column, format!("cannot be read: {error}"))
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").field("place", &self.place).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Conn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.either("Conn(SQLite)", "Conn(PostgreSQL)"))
    }
}

impl From<&str> for Val {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Val {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for Val {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Val {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for Val {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<i64> for Val {
    fn from(int: i64) -> Self {
        Self::Int(Some(int))
    }
}

impl From<Option<i64>> for Val {
    fn from(int: Option<i64>) -> Self {
        Self::Int(int)
    }
}

impl From<bool> for Val {
    fn from(flag: bool) -> Self {
        Self::Int(Some(i64::from(flag)))
    }
}

impl From<Timestamp> for Val {
    fn from(at: Timestamp) -> Self {
        Self::Int(Some(at.as_millis()))
    }
}

impl From<Option<Timestamp>> for Val {
    fn from(at: Option<Timestamp>) -> Self {
        Self::Int(at.map(Timestamp::as_millis))
    }
}

impl From<Vec<u8>> for Val {
    fn from(blob: Vec<u8>) -> Self {
        Self::Blob(Some(blob))
    }
}

impl From<&[u8]> for Val {
    fn from(blob: &[u8]) -> Self {
        Self::Blob(Some(blob.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use super::*;

    #[tokio::test]
    async fn each_of_several_statements_changes_exactly_one_row() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let mut conn = Conn::sqlite(&mut connection);
        conn.run("create table t (n bigint not null)").await.unwrap();
        let of = |sql, n: i64| Statement { sql, args: vec![n.into()] };
        let add = |n| of("insert into t (n) values ($1)", n);
        let raise = |n| of("update t set n = n + 1 where n = $1", n);
        conn.execute_each(&[add(1), raise(1), add(2)]).await.unwrap();
        for wrong in [[raise(7), add(3)], [add(3), raise(7)], [add(4), raise(2)]] {
            let error = conn.execute_each(&wrong).await.unwrap_err();
            assert!(matches!(error, StoreError::Inconsistent { .. }), "{wrong:?}: {error}");
        }
    }
}
