//! Rows in and out of the file. The only place, beside the guard, that knows the tables of vendors
//! and bills.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use countersign_erp_source::{
    AccountId, AccountNumber, Amount, BillId, BillQuery, Currency, Iban, ReadError, Timestamp,
    VendorId,
};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::fields::{
    AccountRow, BillRow, KindWord, NamedAccount, StoredState, VendorRow, VopEntry,
};

/// How many rows go into one statement when a world is loaded.
const ROWS_PER_STATEMENT: usize = 500;

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
fn fits<T, E: std::fmt::Display>(
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
    let journals = rows
        .into_iter()
        .map(|(code, iban)| {
            let iban = fits("journal", &code, Iban::parse(&iban))?;
            Ok((code, iban))
        })
        .collect::<Result<_, TableError>>()?;
    Ok(Some(CompanyRow { currency: fits("company", id, Currency::from_code(&code))?, journals }))
}

/// Those of the vendors that are there, with their accounts.
pub(crate) async fn vendors(
    conn: &mut SqliteConnection,
    company: &str,
    ids: &[&str],
) -> Result<BTreeMap<VendorId, VendorRow>, TableError> {
    let wanted = json!(ids).to_string();
    let rows = sqlx::query(
        "select id, name, tax_number, parent, phone, phone_since_ms, accounts_made from vendor
         where company = $1 and id in (select value from json_each($2))",
    )
    .bind(company)
    .bind(&wanted)
    .fetch_all(&mut *conn)
    .await?;
    let mut found = BTreeMap::new();
    for row in &rows {
        let vendor = read_vendor(row)?;
        found.insert(vendor.id.clone(), vendor);
    }
    let rows = sqlx::query(
        "select vendor, id, number, holder, active, allowed, since_ms, changed from account
         where company = $1 and vendor in (select value from json_each($2))
         order by vendor, position",
    )
    .bind(company)
    .bind(&wanted)
    .fetch_all(conn)
    .await?;
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

fn read_vendor(row: &SqliteRow) -> Result<VendorRow, TableError> {
    let id: String = row.try_get("id")?;
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

fn read_account(row: &SqliteRow) -> Result<AccountRow, TableError> {
    let id: String = row.try_get("id")?;
    let number: String = row.try_get("number")?;
    Ok(AccountRow {
        number: AccountNumber::from_erp(&number),
        holder: row.try_get("holder")?,
        active: row.try_get::<i64, _>("active")? == 1,
        allowed: row.try_get::<i64, _>("allowed")? == 1,
        since: Timestamp::from_millis(row.try_get("since_ms")?),
        changed: row.try_get::<i64, _>("changed")? == 1,
        id: fits("account", &id, AccountId::new(id.clone()))?,
    })
}

/// The ids of a page of vendors.
pub(crate) async fn vendor_ids_after(
    conn: &mut SqliteConnection,
    company: &str,
    after: &str,
    limit: u16,
) -> Result<Vec<String>, TableError> {
    let ids = sqlx::query_scalar(
        "select id from vendor where company = $1 and id > $2 order by id limit $3",
    )
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
        (true, true) => {
            "select id, vendor, reference, date, due, currency, total_minor, paid_minor, state,
                 kind, named_account
             from bill indexed by bill_open_by_vendor
             where company = $1 and vendor = $2 and id > $3 and ($4 is null or due <= $4)
                 and state = 'posted' and kind = 'bill' and paid_minor < total_minor
             order by id limit $5"
        }
        (true, false) => {
            "select id, vendor, reference, date, due, currency, total_minor, paid_minor, state,
                 kind, named_account
             from bill indexed by bill_open
             where company = $1 and $2 is null and id > $3 and ($4 is null or due <= $4)
                 and state = 'posted' and kind = 'bill' and paid_minor < total_minor
             order by id limit $5"
        }
        (false, true) => {
            "select id, vendor, reference, date, due, currency, total_minor, paid_minor, state,
                 kind, named_account
             from bill indexed by bill_by_vendor
             where company = $1 and vendor = $2 and id > $3 and ($4 is null or due <= $4)
                 and state = 'posted'
             order by id limit $5"
        }
        (false, false) => {
            "select id, vendor, reference, date, due, currency, total_minor, paid_minor, state,
                 kind, named_account
             from bill
             where company = $1 and $2 is null and id > $3 and ($4 is null or due <= $4)
                 and state = 'posted'
             order by id limit $5"
        }
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
                "select id from account where company = $1 and vendor = $2
                 order by active desc, position limit 1",
            )
            .bind(company)
            .bind(row.vendor.as_str())
            .fetch_optional(conn)
            .await?
        }
        NamedAccount::Number(number) => {
            sqlx::query_scalar(
                "select id from account where company = $1 and number = $2
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

/// Writes vendors with exactly these accounts.
pub(crate) async fn write_vendors(
    conn: &mut SqliteConnection,
    company: &str,
    rows: &[VendorRow],
) -> Result<(), TableError> {
    for chunk in rows.chunks(ROWS_PER_STATEMENT) {
        let vendors: Vec<_> = chunk
            .iter()
            .map(|row| {
                json!([
                    row.id.as_str(),
                    row.name,
                    row.tax_number,
                    row.parent.as_ref().map(VendorId::as_str),
                    row.phone,
                    row.phone_since.map(Timestamp::as_millis),
                    row.accounts_made
                ])
            })
            .collect();
        let vendors = json!(vendors).to_string();
        sqlx::query(
            "insert into vendor
                 (company, id, name, tax_number, parent, phone, phone_since_ms, accounts_made)
             select $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                 value ->> 5, value ->> 6
             from json_each($2) where true
             on conflict (company, id) do update set name = excluded.name,
                 tax_number = excluded.tax_number, parent = excluded.parent,
                 phone = excluded.phone, phone_since_ms = excluded.phone_since_ms,
                 accounts_made = excluded.accounts_made",
        )
        .bind(company)
        .bind(&vendors)
        .execute(&mut *conn)
        .await?;
        sqlx::query(
            "delete from account
             where company = $1 and vendor in (select value ->> 0 from json_each($2))",
        )
        .bind(company)
        .bind(&vendors)
        .execute(&mut *conn)
        .await?;
        write_accounts(conn, company, chunk).await?;
    }
    Ok(())
}

async fn write_accounts(
    conn: &mut SqliteConnection,
    company: &str,
    rows: &[VendorRow],
) -> Result<(), TableError> {
    let accounts: Vec<_> = rows
        .iter()
        .flat_map(|row| {
            row.accounts.iter().enumerate().map(|(position, account)| {
                json!([
                    account.id.as_str(),
                    row.id.as_str(),
                    position,
                    account.number.whole(),
                    account.holder,
                    i64::from(account.active),
                    i64::from(account.allowed),
                    account.since.as_millis(),
                    i64::from(account.changed)
                ])
            })
        })
        .collect();
    sqlx::query(
        "insert into account
             (company, id, vendor, position, number, holder, active, allowed, since_ms, changed)
         select $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
             value ->> 6, value ->> 7, value ->> 8
         from json_each($2)",
    )
    .bind(company)
    .bind(json!(accounts).to_string())
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes bills.
pub(crate) async fn write_bills(
    conn: &mut SqliteConnection,
    company: &str,
    rows: &[BillRow],
) -> Result<(), TableError> {
    for chunk in rows.chunks(ROWS_PER_STATEMENT) {
        let bills: Vec<_> = chunk
            .iter()
            .map(|row| {
                json!([
                    row.id.as_str(),
                    row.vendor.as_str(),
                    row.reference,
                    row.date.to_string(),
                    row.due.map(|due| due.to_string()),
                    row.currency().code(),
                    row.total.minor(),
                    row.paid.minor(),
                    match row.state {
                        StoredState::Draft => "draft",
                        StoredState::Posted => "posted",
                        StoredState::Cancelled => "cancelled",
                    },
                    match row.kind {
                        KindWord::Bill => "bill",
                        KindWord::CreditNote => "credit_note",
                    },
                    row.named_account.as_ref().map(AccountId::as_str)
                ])
            })
            .collect();
        sqlx::query(
            "insert into bill (company, id, vendor, reference, date, due, currency, total_minor,
                 paid_minor, state, kind, named_account)
             select $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                 value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10
             from json_each($2) where true
             on conflict (company, id) do update set vendor = excluded.vendor,
                 reference = excluded.reference, date = excluded.date, due = excluded.due,
                 currency = excluded.currency, total_minor = excluded.total_minor,
                 paid_minor = excluded.paid_minor, state = excluded.state, kind = excluded.kind,
                 named_account = excluded.named_account",
        )
        .bind(company)
        .bind(json!(bills).to_string())
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Writes what Verification of Payee answers for a pair.
pub(crate) async fn write_vop(
    conn: &mut SqliteConnection,
    entry: &VopEntry,
    iban: &Iban,
) -> Result<(), TableError> {
    sqlx::query(
        "insert into vop (name, iban, result, actual_name) values ($1, $2, $3, $4)
         on conflict (name, iban) do update set result = excluded.result,
             actual_name = excluded.actual_name",
    )
    .bind(&entry.name)
    .bind(iban.electronic())
    .bind(entry.result.as_str())
    .bind(&entry.actual_name)
    .execute(conn)
    .await?;
    Ok(())
}
