//! Rows into the file.

use countersign_erp_source::{AccountId, BillId, Iban, ReferenceKey, Timestamp, VendorId};
use serde_json::json;
use sqlx::SqliteConnection;

use super::{TableError, fits};
use crate::fields::{BillRow, KindWord, StoredState, VendorRow, VopEntry};

pub(super) const POINT_BILLS: &str = "
    update bill indexed by bill_open_by_vendor set named_account = $4
    where company = $1 and vendor = $2 and state = 'posted' and kind = 'bill'
        and paid_minor < total_minor and (named_account is null or named_account = $3)
    returning id";

pub(super) const GIVE_BILLS: &str = "
    update bill indexed by bill_by_vendor set vendor = $3 where company = $1 and vendor = $2";

/// How many rows go into one statement when a world is loaded.
const ROWS_PER_STATEMENT: usize = 500;

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
                let key = row.reference.as_deref().and_then(ReferenceKey::of);
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
                    row.named_account.as_ref().map(AccountId::as_str),
                    key.as_ref().map(ReferenceKey::by_part),
                    key.as_ref().map(ReferenceKey::as_one)
                ])
            })
            .collect();
        sqlx::query(
            "insert into bill (company, id, vendor, reference, date, due, currency, total_minor,
                 paid_minor, state, kind, named_account, reference_by_part, reference_as_one)
             select $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                 value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10,
                 value ->> 11, value ->> 12
             from json_each($2) where true
             on conflict (company, id) do update set vendor = excluded.vendor,
                 reference = excluded.reference, date = excluded.date, due = excluded.due,
                 currency = excluded.currency, total_minor = excluded.total_minor,
                 paid_minor = excluded.paid_minor, state = excluded.state, kind = excluded.kind,
                 named_account = excluded.named_account,
                 reference_by_part = excluded.reference_by_part,
                 reference_as_one = excluded.reference_as_one",
        )
        .bind(company)
        .bind(json!(bills).to_string())
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Points the vendor's open bills that name the old account, or none, to the new one, and tells
/// which they are.
pub(crate) async fn point_bills(
    conn: &mut SqliteConnection,
    company: &str,
    vendor: &VendorId,
    old: Option<&AccountId>,
    new: &AccountId,
) -> Result<Vec<BillId>, TableError> {
    let pointed: Vec<String> = sqlx::query_scalar(POINT_BILLS)
        .bind(company)
        .bind(vendor.as_str())
        .bind(old.map(AccountId::as_str))
        .bind(new.as_str())
        .fetch_all(conn)
        .await?;
    let mut bills = pointed
        .into_iter()
        .map(|id| fits("bill", &id, BillId::new(id.clone())))
        .collect::<Result<Vec<_>, _>>()?;
    bills.sort();
    Ok(bills)
}

/// Makes the bills of one vendor another's.
pub(crate) async fn give_bills(
    conn: &mut SqliteConnection,
    company: &str,
    from: &VendorId,
    to: &VendorId,
) -> Result<(), TableError> {
    sqlx::query(GIVE_BILLS)
        .bind(company)
        .bind(from.as_str())
        .bind(to.as_str())
        .execute(conn)
        .await?;
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
