//! The log of what was changed about vendors and accounts. Entries come and are read; there is no
//! statement that changes or deletes one.

use countersign_erp_source::{AccountId, LoggedChange, LoggedField, Timestamp, VendorId};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::{TableError, fits};
use crate::edits::Edited;

/// What the log calls whoever uses the control surface.
const SOMEBODY: &str = "somebody in the sandbox ERP";
/// What it calls the gateway, whose orders are the only ones.
const GATEWAY: &str = "countersign";

pub(super) const LOGGED: &str = "
    select id, at_ms, by, vendor, account, field, before, after, ordered from change_log
    where company = $1 and id > $2 order by id limit $3";

pub(super) const LOG: &str = "
    insert into change_log
        (company, id, at_ms, by, vendor, account, field, before, after, ordered)
    select $1, (select coalesce(max(id), 0) from change_log where company = $1) + 1 + key, $2, $3,
        value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $4
    from json_each($5)";

/// Writes down what somebody did through the control surface.
pub(crate) async fn log_edits(
    conn: &mut SqliteConnection,
    company: &str,
    at: Timestamp,
    edits: &[Edited],
) -> Result<(), TableError> {
    write(conn, company, at, SOMEBODY, edits).await
}

/// Writes down what a sealed order did.
pub(crate) async fn log_order(
    conn: &mut SqliteConnection,
    company: &str,
    at: Timestamp,
    edits: &[Edited],
) -> Result<(), TableError> {
    write(conn, company, at, GATEWAY, edits).await
}

async fn write(
    conn: &mut SqliteConnection,
    company: &str,
    at: Timestamp,
    by: &str,
    edits: &[Edited],
) -> Result<(), TableError> {
    if edits.is_empty() {
        return Ok(());
    }
    let entries: Vec<_> = edits
        .iter()
        .map(|edit| {
            let account = edit.account.as_ref().map(AccountId::as_str);
            json!([edit.vendor.as_str(), account, edit.field.code(), edit.before, edit.after])
        })
        .collect();
    sqlx::query(LOG)
        .bind(company)
        .bind(at.as_millis())
        .bind(by)
        .bind(i64::from(by == GATEWAY))
        .bind(json!(entries).to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// A page of the log.
pub(crate) async fn logged(
    conn: &mut SqliteConnection,
    company: &str,
    after: i64,
    limit: u16,
) -> Result<Vec<LoggedChange>, TableError> {
    let rows = sqlx::query(LOGGED)
        .bind(company)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &SqliteRow) -> Result<LoggedChange, TableError> {
    let id: i64 = row.try_get("id")?;
    let place = id.to_string();
    let (vendor, field): (String, String) = (row.try_get("vendor")?, row.try_get("field")?);
    let account: Option<String> = row.try_get("account")?;
    let known = LoggedField::from_code(&field).ok_or_else(|| format!("field `{field}`"));
    Ok(LoggedChange {
        id: fits("change_log", &place, u64::try_from(id))?,
        at: Timestamp::from_millis(row.try_get("at_ms")?),
        by: Some(row.try_get("by")?),
        vendor: fits("change_log", &place, VendorId::new(vendor))?,
        account: fits("change_log", &place, account.map(AccountId::new).transpose())?,
        field: fits("change_log", &place, known)?,
        before: row.try_get("before")?,
        after: row.try_get("after")?,
        ordered: row.try_get::<i64, _>("ordered")? == 1,
    })
}
