//! Brings the tables of a store to this version's.

use countersign_erp_source::Timestamp;

use super::{Conn, OpenRefusal, StoreError, query};
use crate::receipts::Digest;

/// One step, never edited after it has landed.
struct Migration {
    number: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($number:literal, $name:literal, $file:literal) => {
        Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("migrations/sqlite/", $file)),
            postgres: include_str!(concat!("migrations/postgres/", $file)),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1, "kernel", "0001_kernel.sql"),
    migration!(2, "gateway", "0002_gateway.sql"),
    migration!(3, "votes", "0003_votes.sql"),
    migration!(4, "sessions", "0004_sessions.sql"),
    migration!(5, "precedents", "0005_precedents.sql"),
    migration!(6, "bank_details", "0006_bank_details.sql"),
];

/// Applies what is missing, within the transaction that the caller has opened and locked; refuses a
/// store that holds what this version does not know.
pub(super) async fn migrate(conn: &mut Conn<'_>, now: Timestamp) -> Result<(), StoreError> {
    conn.run(query::MIGRATIONS_TABLE).await.map_err(StoreError::from_statement)?;
    let rows = conn.fetch_all(query::MIGRATIONS, &[]).await?;
    let mut known = MIGRATIONS.iter();
    for row in &rows {
        let (number, name) = (row.int("number")?, row.text("name")?);
        let Some(migration) = known.next() else {
            return Err(OpenRefusal::NewerSchema { number, name }.into());
        };
        let sha256 = sha256(migration.text(conn));
        if number != migration.number || name != migration.name || row.text("sha256")? != sha256 {
            return Err(OpenRefusal::OtherSchema { number, name }.into());
        }
    }
    if known.len() > 0 {
        // A large table takes longer to change than any other statement may.
        let unlimited = conn.either("select 1", "set local statement_timeout = 0");
        conn.run(unlimited).await.map_err(StoreError::from_statement)?;
    }
    for migration in known {
        let text = migration.text(conn);
        conn.run(text).await.map_err(StoreError::from_statement)?;
        let args =
            [migration.number.into(), migration.name.into(), sha256(text).into(), now.into()];
        conn.execute_one(query::ADD_MIGRATION, &args).await?;
    }
    Ok(())
}

impl Migration {
    fn text(&self, conn: &Conn<'_>) -> &'static str {
        conn.either(self.sqlite, self.postgres)
    }
}

fn sha256(text: &str) -> String {
    Digest::of(&[text.as_bytes()]).to_string()
}
