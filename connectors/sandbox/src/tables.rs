//! Rows in and out of the file. The only place, beside the guard, that knows the tables of vendors
//! and bills.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use countersign_erp_source::{
    AccountId, AccountNumber, Amount, BillId, BillQuery, Currency, Iban, ReadError, Timestamp,
    VendorId,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::fields::{AccountRow, BillRow, KindWord, NamedAccount, StoredState, VendorRow};

mod beside;
mod log;
mod review;
mod write;

pub(crate) use beside::beside;
pub(crate) use log::{log_edits, log_order, logged};
pub(crate) use review::review;
pub(crate) use write::{give_bills, point_bills, write_bills, write_vendors, write_vop};

/// The tables of the file's version 2.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");
/// Those that version 3 has beside them.
pub(crate) const SCHEMA_DETAILS: &str = include_str!("schema_details.sql");

/// One statement, as it is what every decision about a payment reads: each further one is a hop
/// between threads and back.
const SHEET: &str = "
    select b.id, b.vendor, b.reference, b.date, b.due, b.currency, b.total_minor, b.paid_minor,
        b.state, b.kind, b.named_account, v.name, v.tax_number, v.parent, v.phone,
        v.phone_since_ms, v.accounts_made, c.currency as company_currency,
        (select json_group_array(json_array(a.id, a.number, a.holder, a.active, a.allowed,
                a.since_ms, a.changed) order by a.position)
            from account a indexed by account_by_vendor
            where a.company = b.company and a.vendor = b.vendor) as accounts,
        (select json_group_array(json_array(j.code, j.iban) order by j.code)
            from journal j where j.company = b.company) as journals
    from bill b
        join vendor v on v.company = b.company and v.id = b.vendor
        join company c on c.id = b.company
    where b.company = $1 and b.id = $2";

const VENDORS: &str = "
    select id, name, tax_number, parent, phone, phone_since_ms, accounts_made from vendor
    where company = $1 and id in (select value from json_each($2))";

const ACCOUNTS: &str = "
    select vendor, id, number, holder, active, allowed, since_ms, changed
    from account indexed by account_by_vendor
    where company = $1 and vendor in (select value from json_each($2))
    order by vendor, position";

const VENDOR_IDS: &str =
    "select id from vendor where company = $1 and id > $2 order by id limit $3";

const BILLS_OPEN_OF_VENDOR: &str = "
    select id, vendor, reference, date, due, currency, total_minor, paid_minor, state, kind,
        named_account
    from bill indexed by bill_open_by_vendor
    where company = $1 and vendor = $2 and id > $3 and ($4 is null or due <= $4)
        and state = 'posted' and kind = 'bill' and paid_minor < total_minor
    order by id limit $5";

const BILLS_OPEN: &str = "
    select id, vendor, reference, date, due, currency, total_minor, paid_minor, state, kind,
        named_account
    from bill indexed by bill_open
    where company = $1 and $2 is null and id > $3 and ($4 is null or due <= $4)
        and state = 'posted' and kind = 'bill' and paid_minor < total_minor
    order by id limit $5";

const BILLS_OF_VENDOR: &str = "
    select id, vendor, reference, date, due, currency, total_minor, paid_minor, state, kind,
        named_account
    from bill indexed by bill_by_vendor
    where company = $1 and vendor = $2 and id > $3 and ($4 is null or due <= $4)
        and state = 'posted'
    order by id limit $5";

const BILLS: &str = "
    select id, vendor, reference, date, due, currency, total_minor, paid_minor, state, kind,
        named_account
    from bill
    where company = $1 and $2 is null and id > $3 and ($4 is null or due <= $4)
        and state = 'posted'
    order by id limit $5";

/// Why the file gave no rows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    #[error("the sandbox's file cannot be used")]
    File(#[from] sqlx::Error),
    #[error("table `{table}` holds in row `{row}` what it must not: {what}")]
    Inconsistent { table: &'static str, row: String, what: String },
}

impl From<TableError> for ReadError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::File(source) => Self::Unavailable { reason: source.to_string() },
            TableError::Inconsistent { .. } => Self::Malformed { what: error.to_string() },
        }
    }
}

/// Turns a value that its type refuses into an inconsistency of that row.
pub(crate) fn fits<T, E: std::fmt::Display>(
    table: &'static str,
    row: &str,
    value: Result<T, E>,
) -> Result<T, TableError> {
    value.map_err(|error| TableError::Inconsistent {
        table,
        row: row.to_owned(),
        what: error.to_string(),
    })
}

/// A company's own data.
pub(crate) struct CompanyRow {
    pub(crate) currency: Currency,
    /// Journals by code, with their numbers.
    pub(crate) journals: Vec<(String, Iban)>,
}

pub(crate) async fn company(
    conn: &mut SqliteConnection,
    id: &str,
) -> Result<Option<CompanyRow>, TableError> {
    let code = sqlx::query_scalar::<_, String>("select currency from company where id = $1")
        .bind(id)
        .fetch_optional(&mut *conn)
        .await?;
    let Some(code) = code else { return Ok(None) };
    let rows = sqlx::query_as::<_, (String, String)>(
        "select code, iban from journal where company = $1 order by code",
    )
    .bind(id)
    .fetch_all(conn)
    .await?;
    Ok(Some(company_of(id, &code, rows)?))
}

fn company_of(
    id: &str,
    currency: &str,
    journals: Vec<(String, String)>,
) -> Result<CompanyRow, TableError> {
    let journals = journals
        .into_iter()
        .map(|(code, iban)| {
            let iban = fits("journal", &code, Iban::parse(&iban))?;
            Ok((code, iban))
        })
        .collect::<Result<_, TableError>>()?;
    Ok(CompanyRow { currency: fits("company", id, Currency::from_code(currency))?, journals })
}

/// Those of the vendors that are there, with their accounts.
pub(crate) async fn vendors(
    conn: &mut SqliteConnection,
    company: &str,
    ids: &[&str],
) -> Result<BTreeMap<VendorId, VendorRow>, TableError> {
    let wanted = json!(ids).to_string();
    let rows = sqlx::query(VENDORS).bind(company).bind(&wanted).fetch_all(&mut *conn).await?;
    let mut found = BTreeMap::new();
    for row in &rows {
        let vendor = read_vendor(row, "id")?;
        found.insert(vendor.id.clone(), vendor);
    }
    let rows = sqlx::query(ACCOUNTS).bind(company).bind(&wanted).fetch_all(conn).await?;
    for row in &rows {
        let owner: String = row.try_get("vendor")?;
        let owner = fits("account", &owner, VendorId::new(owner.clone()))?;
        if let Some(vendor) = found.get_mut(&owner) {
            vendor.accounts.push(read_account(row)?);
        }
    }
    Ok(found)
}

pub(crate) async fn vendor(
    conn: &mut SqliteConnection,
    company: &str,
    id: &str,
) -> Result<Option<VendorRow>, TableError> {
    Ok(vendors(conn, company, &[id]).await?.into_values().next())
}

fn read_vendor(row: &SqliteRow, id_column: &str) -> Result<VendorRow, TableError> {
    let id: String = row.try_get(id_column)?;
    let parent: Option<String> = row.try_get("parent")?;
    let parent = fits("vendor", &id, parent.map(VendorId::new).transpose())?;
    let phone_since: Option<i64> = row.try_get("phone_since_ms")?;
    Ok(VendorRow {
        parent,
        name: row.try_get("name")?,
        tax_number: row.try_get("tax_number")?,
        phone: row.try_get("phone")?,
        phone_since: phone_since.map(Timestamp::from_millis),
        accounts_made: row.try_get("accounts_made")?,
        accounts: Vec::new(),
        id: fits("vendor", &id, VendorId::new(id.clone()))?,
    })
}

/// An account's columns but its owner.
type AccountColumns = (String, String, Option<String>, i64, i64, i64, i64);

fn read_account(row: &SqliteRow) -> Result<AccountRow, TableError> {
    account((
        row.try_get("id")?,
        row.try_get("number")?,
        row.try_get("holder")?,
        row.try_get("active")?,
        row.try_get("allowed")?,
        row.try_get("since_ms")?,
        row.try_get("changed")?,
    ))
}

fn account(columns: AccountColumns) -> Result<AccountRow, TableError> {
    let (id, number, holder, active, allowed, since_ms, changed) = columns;
    Ok(AccountRow {
        number: AccountNumber::from_erp(&number),
        holder,
        active: active == 1,
        allowed: allowed == 1,
        since: Timestamp::from_millis(since_ms),
        changed: changed == 1,
        id: fits("account", &id, AccountId::new(id.clone()))?,
    })
}

/// A bill with all that is needed to decide about it.
pub(crate) struct Sheet {
    pub(crate) bill: BillRow,
    pub(crate) vendor: VendorRow,
    pub(crate) company: CompanyRow,
}

pub(crate) async fn sheet(
    conn: &mut SqliteConnection,
    company: &str,
    id: &str,
) -> Result<Option<Sheet>, TableError> {
    let row = sqlx::query(SHEET).bind(company).bind(id).fetch_optional(conn).await?;
    let Some(row) = row else { return Ok(None) };
    let list = |column: &str| Ok::<String, TableError>(row.try_get(column)?);
    let mut vendor = read_vendor(&row, "vendor")?;
    let accounts: Vec<AccountColumns> = from_json(id, &list("accounts")?)?;
    vendor.accounts = accounts.into_iter().map(account).collect::<Result<_, _>>()?;
    let journals: Vec<(String, String)> = from_json(id, &list("journals")?)?;
    let own = company_of(company, &list("company_currency")?, journals)?;
    Ok(Some(Sheet { bill: read_bill(&row)?, vendor, company: own }))
}

fn from_json<T: DeserializeOwned>(row: &str, text: &str) -> Result<T, TableError> {
    fits("bill", row, serde_json::from_str(text))
}

/// The ids of a page of vendors.
pub(crate) async fn vendor_ids_after(
    conn: &mut SqliteConnection,
    company: &str,
    after: &str,
    limit: u16,
) -> Result<Vec<String>, TableError> {
    let ids = sqlx::query_scalar(VENDOR_IDS)
        .bind(company)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await?;
    Ok(ids)
}

pub(crate) async fn bill(
    conn: &mut SqliteConnection,
    company: &str,
    id: &str,
) -> Result<Option<BillRow>, TableError> {
    let row = sqlx::query(
        "select id, vendor, reference, date, due, currency, total_minor, paid_minor, state, kind,
             named_account
         from bill where company = $1 and id = $2",
    )
    .bind(company)
    .bind(id)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read_bill).transpose()
}

fn read_bill(row: &SqliteRow) -> Result<BillRow, TableError> {
    let id: String = row.try_get("id")?;
    let currency: String = row.try_get("currency")?;
    let currency = fits("bill", &id, Currency::from_code(&currency))?;
    let vendor: String = row.try_get("vendor")?;
    let date: String = row.try_get("date")?;
    let due: Option<String> = row.try_get("due")?;
    let named: Option<String> = row.try_get("named_account")?;
    let state = match row.try_get::<String, _>("state")?.as_str() {
        "draft" => Ok(StoredState::Draft),
        "posted" => Ok(StoredState::Posted),
        "cancelled" => Ok(StoredState::Cancelled),
        other => Err(format!("state `{other}`")),
    };
    let kind = match row.try_get::<String, _>("kind")?.as_str() {
        "bill" => Ok(KindWord::Bill),
        "credit_note" => Ok(KindWord::CreditNote),
        other => Err(format!("kind `{other}`")),
    };
    Ok(BillRow {
        vendor: fits("bill", &id, VendorId::new(vendor))?,
        reference: row.try_get("reference")?,
        date: fits("bill", &id, date.parse::<NaiveDate>())?,
        due: fits("bill", &id, due.map(|due| due.parse::<NaiveDate>()).transpose())?,
        total: Amount::from_minor(row.try_get("total_minor")?, currency),
        paid: Amount::from_minor(row.try_get("paid_minor")?, currency),
        state: fits("bill", &id, state)?,
        kind: fits("bill", &id, kind)?,
        named_account: fits("bill", &id, named.map(AccountId::new).transpose())?,
        id: fits("bill", &id, BillId::new(id.clone()))?,
    })
}

/// A page of posted bills. Four texts, so that each has an index of its own.
pub(crate) async fn bills(
    conn: &mut SqliteConnection,
    company: &str,
    query: &BillQuery,
) -> Result<Vec<BillRow>, TableError> {
    let sql = match (query.open_only, query.vendor.is_some()) {
        (true, true) => BILLS_OPEN_OF_VENDOR,
        (true, false) => BILLS_OPEN,
        (false, true) => BILLS_OF_VENDOR,
        (false, false) => BILLS,
    };
    let rows = sqlx::query(sql)
        .bind(company)
        .bind(query.vendor.as_ref().map(VendorId::as_str))
        .bind(query.after.as_ref().map_or("", BillId::as_str))
        .bind(query.due_before.map(|due| due.to_string()))
        .bind(i64::from(query.limit))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read_bill).collect()
}

/// The record id that a bill shall name; the inner `None` where there is no such account.
pub(crate) async fn resolve_named(
    conn: &mut SqliteConnection,
    company: &str,
    row: &BillRow,
    named: &NamedAccount,
) -> Result<Option<AccountId>, TableError> {
    let found: Option<String> = match named {
        NamedAccount::Unchanged => return Ok(row.named_account.clone()),
        NamedAccount::VendorsFirst => {
            sqlx::query_scalar(
                "select id from account indexed by account_by_vendor
                 where company = $1 and vendor = $2
                 order by active desc, position limit 1",
            )
            .bind(company)
            .bind(row.vendor.as_str())
            .fetch_optional(conn)
            .await?
        }
        NamedAccount::Number(number) => {
            sqlx::query_scalar(
                "select id from account indexed by account_by_number
                 where company = $1 and number = $2
                 order by vendor <> $3, active desc, id limit 1",
            )
            .bind(company)
            .bind(number.whole())
            .bind(row.vendor.as_str())
            .fetch_optional(conn)
            .await?
        }
    };
    let found = found.map(|id| fits("account", &id, AccountId::new(id.clone())));
    found.transpose()
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection};

    use super::*;

    #[tokio::test]
    async fn nothing_that_grows_is_scanned_or_sorted() {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for schema in [SCHEMA, SCHEMA_DETAILS] {
            sqlx::raw_sql(schema).execute(&mut conn).await.unwrap();
        }
        for sql in [
            SHEET,
            VENDORS,
            ACCOUNTS,
            VENDOR_IDS,
            BILLS_OPEN_OF_VENDOR,
            BILLS_OPEN,
            BILLS_OF_VENDOR,
            BILLS,
            beside::BESIDE,
            log::LOGGED,
            review::REVIEW,
            write::POINT_BILLS,
            write::GIVE_BILLS,
        ] {
            let explain = AssertSqlSafe(format!("explain query plan {sql}"));
            let steps = sqlx::query(explain).fetch_all(&mut conn).await.unwrap();
            assert!(!steps.is_empty());
            for step in steps {
                let step: String = step.get("detail");
                // The only virtual table is `json_each`, over what was asked.
                let asked = step.contains("json_each") || step.contains("VIRTUAL TABLE");
                let scans = step.contains("SCAN") && !asked;
                // By the company alone is a scan too, but for its few journals.
                let whole = step.ends_with("(company=?)") && !step.starts_with("SEARCH j ");
                let sorts = sql.contains("limit") && step.contains("TEMP B-TREE");
                assert!(!scans && !whole && !sorts, "`{step}` in {sql}");
            }
        }
    }
}
