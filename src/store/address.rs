//! Where a store is, and connections to it.

use std::fs::{File, OpenOptions, TryLockError};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _, PgConnection, SqliteConnection};

use super::readers::{Files, Readers};
use super::{ACQUIRE_LIMIT, Conn, Fault, OpenRefusal, Role, StoreError};

/// How long SQLite waits for another process that writes.
const SQLITE_BUSY_LIMIT: Duration = Duration::from_secs(15);
/// How often and after which wait a new SQLite file is tried again that another process is making.
const SQLITE_MAKING_TRIES: u32 = 100;
const SQLITE_MAKING_WAIT: Duration = Duration::from_millis(20);
const POSTGRES_READERS: u32 = 8;
/// Said to PostgreSQL for each connection. A daemon that is frozen or cut off within a transaction
/// must not hold the chain's head for ever, and a commit must mean that it is on disk.
const POSTGRES_SETTINGS: [(&str, &str); 4] = [
    ("lock_timeout", "15s"),
    ("statement_timeout", "20s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("synchronous_commit", "on"),
];

pub(super) enum Address {
    Sqlite(PathBuf),
    Postgres(Box<PgConnectOptions>),
}

/// A connection of the writer's own.
pub(super) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Address {
    pub(super) fn parse(url: &str, allow_plaintext: bool) -> Result<Self, OpenRefusal> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            let path = Path::new(path);
            // A relative path would depend on where the process was started.
            if !path.is_absolute() || path.file_name().is_none() {
                return Err(OpenRefusal::BadAddress);
            }
            return Ok(Self::Sqlite(path.to_owned()));
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(OpenRefusal::BadAddress);
        }
        let options = PgConnectOptions::from_str(url).ok().ok_or(OpenRefusal::BadAddress)?;
        let options = with_tls(options, allow_plaintext)?
            .application_name("countersign")
            .options(POSTGRES_SETTINGS)
            .disable_statement_logging();
        Ok(Self::Postgres(Box::new(options)))
    }

    /// Finds the file of a SQLite store and takes all symbolic links out of its path.
    pub(super) fn found(self) -> Result<Self, OpenRefusal> {
        match self {
            Self::Sqlite(path) => {
                path.canonicalize().map(Self::Sqlite).map_err(|source| file_refusal(&path, source))
            }
            Self::Postgres(_) => Ok(self),
        }
    }

    /// Makes the file of a SQLite store, for its owner only, where there is none.
    pub(super) fn made(self) -> Result<Self, OpenRefusal> {
        if let Self::Sqlite(path) = &self {
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path)
                .map_err(|source| file_refusal(path, source))?;
        }
        self.found()
    }

    /// For a daemon on SQLite: the lock that keeps a second one away while it is held.
    pub(super) fn claim(&self, role: Role) -> Result<Option<File>, OpenRefusal> {
        let (Self::Sqlite(path), Role::Daemon) = (self, role) else { return Ok(None) };
        // The path has no symbolic links left, so that every way to the file meets one lock. A
        // file of its own is locked, because SQLite's locks on the database end with any close.
        let mut lock_path = path.clone().into_os_string();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let failed = |source| file_refusal(&lock_path, source);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Err(OpenRefusal::OtherDaemon { path: path.clone() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    pub(super) async fn connect(&self) -> Result<Connection, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let options = sqlite_options(path)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full);
                let mut tries = 0;
                loop {
                    tries += 1;
                    // SQLite does not wait when two processes switch a new file to its log.
                    match options.connect().await.map_err(StoreError::from_statement) {
                        Ok(connection) => return Ok(Connection::Sqlite(connection)),
                        Err(StoreError::Busy) if tries < SQLITE_MAKING_TRIES => {
                            tokio::time::sleep(SQLITE_MAKING_WAIT).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Self::Postgres(options) => {
                let connected = tokio::time::timeout(ACQUIRE_LIMIT, options.connect()).await;
                match connected {
                    Ok(connection) => {
                        connection.map(Connection::Postgres).map_err(StoreError::from_statement)
                    }
                    Err(elapsed) => Err(StoreError::Unreachable(Fault::new(elapsed))),
                }
            }
        }
    }

    pub(super) fn readers(&self) -> Readers {
        match self {
            Self::Sqlite(path) => {
                let options = sqlite_options(path).pragma("query_only", "on");
                Readers::Sqlite(Box::new(Files::new(options)))
            }
            Self::Postgres(options) => Readers::Postgres(
                PgPoolOptions::new()
                    .max_connections(POSTGRES_READERS)
                    .acquire_timeout(ACQUIRE_LIMIT)
                    .connect_lazy_with((**options).clone()),
            ),
        }
    }
}

impl Connection {
    pub(super) fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(connection) => Conn::sqlite(connection),
            Self::Postgres(connection) => Conn::postgres(connection),
        }
    }

    pub(super) async fn begin(&mut self) -> Result<(), StoreError> {
        let mut conn = self.conn();
        let text = conn.begin_to_write();
        conn.run(text).await.map_err(StoreError::from_statement)
    }

    pub(super) async fn commit(&mut self) -> Result<(), StoreError> {
        self.conn().run("commit").await.map_err(StoreError::from_commit)
    }

    pub(super) async fn rollback(&mut self) -> Result<(), StoreError> {
        self.conn().run("rollback").await.map_err(StoreError::from_statement)
    }

    pub(super) async fn close(self) -> Result<(), StoreError> {
        let closed = match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
        };
        closed.map_err(StoreError::from_statement)
    }
}

fn sqlite_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(SQLITE_BUSY_LIMIT)
        .disable_statement_logging()
}

fn file_refusal(path: &Path, source: std::io::Error) -> OpenRefusal {
    OpenRefusal::File { path: path.to_owned(), source: Fault::new(source) }
}

fn with_tls(
    options: PgConnectOptions,
    allow_plaintext: bool,
) -> Result<PgConnectOptions, OpenRefusal> {
    let host = options.get_host().to_owned();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let near = options.get_socket().is_some()
        || bare == "localhost"
        || bare.starts_with('/')
        || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    if near || allow_plaintext {
        return Ok(options);
    }
    match options.get_ssl_mode() {
        // The driver's default, which falls back to plain text.
        PgSslMode::Prefer => Ok(options.ssl_mode(PgSslMode::VerifyFull)),
        PgSslMode::VerifyCa | PgSslMode::VerifyFull => Ok(options),
        // `require` takes any certificate, also that of whoever stands in between.
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Require => {
            Err(OpenRefusal::NeedsTls { host })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(url: &str, allow_plaintext: bool) -> Result<PgSslMode, String> {
        let options = PgConnectOptions::from_str(url).unwrap();
        let options = with_tls(options, allow_plaintext).map_err(|error| error.to_string())?;
        Ok(options.get_ssl_mode())
    }

    #[test]
    fn postgres_far_away_needs_tls_that_verifies() {
        let verified = |mode| matches!(mode, Ok(PgSslMode::VerifyFull));
        assert!(verified(tls("postgres://u@db.example/x", false)));
        assert!(verified(tls("postgres://u@127.0.0.1.example/x", false)));
        assert!(verified(tls("postgres://u@10.0.0.1/x?sslmode=verify-full", false)));
        for mode in ["disable", "allow", "require"] {
            let url = format!("postgres://u@db.example/x?sslmode={mode}");
            assert!(tls(&url, false).unwrap_err().contains("`db.example`"));
            assert!(tls(&url, true).is_ok());
        }
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            assert!(matches!(tls(&format!("postgres://u@{host}/x"), false), Ok(PgSslMode::Prefer)));
        }
    }

    #[test]
    fn an_address_of_another_kind_is_refused() {
        for url in [
            "sqlite://relative.db",
            "sqlite::memory:",
            "sqlite:///",
            "mysql://x/y",
            "",
            "postgres:",
        ] {
            assert!(matches!(Address::parse(url, true), Err(OpenRefusal::BadAddress)), "{url}");
        }
    }
}
