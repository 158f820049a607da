//! What the tests share: places for stores on both databases, a clock that stands still, keys.

use std::path::PathBuf;
use std::sync::Arc;

use countersign::metrics::Metrics;
use countersign::receipts::{LedgerKey, Receipt, ReceiptKind};
use countersign::store::{Role, Store, StoreError, StoreOptions};
use countersign_erp_source::{Clock, Timestamp};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Names the maintenance database that tests may make schemas in.
const POSTGRES_URL: &str = "COUNTERSIGN_TEST_POSTGRES_URL";

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_793_520_000_123)
    }
}

/// Where one test has its store: a folder, and an address in it or in PostgreSQL.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) url: String,
    schema: Option<(String, String)>,
}

impl Place {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("store.db").display());
        Self { folder, url, schema: None }
    }

    /// A store that another has made and will remove.
    pub(crate) fn of(url: String) -> Self {
        let schema = url.starts_with("postgres").then(|| (String::new(), String::new()));
        Self { folder: tempfile::tempdir().unwrap(), url, schema }
    }

    async fn postgres(server: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).unwrap();
        let schema = format!("test_{:016x}", u64::from_be_bytes(random));
        let mut conn = PgConnection::connect(&server).await.unwrap();
        conn.execute(AssertSqlSafe(format!("create schema {schema}"))).await.unwrap();
        let url = format!("{server}?options[search_path]={schema}");
        Self { folder, url, schema: Some((server, schema)) }
    }

    /// The PostgreSQL server and this place's schema there.
    pub(crate) fn schema(&self) -> Option<(&str, &str)> {
        self.schema.as_ref().map(|(server, schema)| (server.as_str(), schema.as_str()))
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.schema.is_none()
    }

    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.folder.path().join("checkpoint.txt")
    }

    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions {
            url: self.url.clone(),
            allow_plaintext: false,
            key: Arc::new(LedgerKey::from_seed(&[7; 32]).unwrap()),
            checkpoint_file: None,
            clock: Arc::new(StandingClock),
            metrics: Metrics::default(),
            role: Role::Command,
        }
    }

    /// With a checkpoint file beside it.
    pub(crate) fn kept(&self) -> StoreOptions {
        StoreOptions { checkpoint_file: Some(self.checkpoint()), ..self.options() }
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(self.options()).await.unwrap()
    }

    pub(crate) async fn refused(&self, options: StoreOptions) -> StoreError {
        match Store::open(options).await {
            Ok(store) => panic!("{store:?} was opened"),
            Err(error) => error,
        }
    }

    /// Changes the database behind the store's back.
    pub(crate) async fn tamper(&self, sql: &str) -> u64 {
        let sql = AssertSqlSafe(sql.to_owned());
        if self.is_sqlite() {
            let mut conn = SqliteConnection::connect(&self.url).await.unwrap();
            let done = conn.execute(sql).await.unwrap().rows_affected();
            conn.close().await.unwrap();
            done
        } else {
            let mut conn = PgConnection::connect(&self.url).await.unwrap();
            let done = conn.execute(sql).await.unwrap().rows_affected();
            conn.close().await.unwrap();
            done
        }
    }

    /// What SQLite says against that statement.
    pub(crate) async fn tamper_err(&self, sql: &str) -> String {
        let mut conn = SqliteConnection::connect(&self.url).await.unwrap();
        let refused = conn.execute(AssertSqlSafe(sql.to_owned())).await.unwrap_err();
        refused.to_string()
    }

    async fn remove(self) {
        if let Some((server, schema)) = &self.schema {
            let mut conn = PgConnection::connect(server).await.unwrap();
            conn.execute(AssertSqlSafe(format!("drop schema {schema} cascade"))).await.unwrap();
        }
    }
}

/// Runs the test on SQLite, and on PostgreSQL if there is one.
pub(crate) async fn on_both(test: impl AsyncFn(&Place)) {
    let place = Place::sqlite();
    test(&place).await;
    place.remove().await;
    let Some(server) = std::env::var_os(POSTGRES_URL) else {
        report(&format!("not tried on PostgreSQL: {POSTGRES_URL} is not set"));
        return;
    };
    let place = Place::postgres(server.into_string().unwrap()).await;
    test(&place).await;
    place.remove().await;
}

#[expect(clippy::print_stderr, reason = "a test says what it left out")]
pub(crate) fn report(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn receipt(kind: ReceiptKind, number: i64) -> Receipt {
    Receipt {
        kind,
        at: StandingClock.now(),
        company: (number % 2 == 0).then(|| "blue-sparrow".to_owned()),
        operation: Some(format!("op_{number}")),
        data: json!({"number": number}),
    }
}
