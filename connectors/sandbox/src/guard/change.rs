//! The ERP's side of a change of bank details. The write lock on the file is the lock on the vendor.

use countersign_erp_source::{
    AccountId, AccountNumber, BillId, Changed, ChangedAccount, Contradiction, Iban, Marker,
    OrderError, Refusal, Timestamp, VendorId,
};
use serde::Deserialize;
use serde_json::json;
use sqlx::SqliteConnection;

use super::{Stop, check_deadline, check_foreign, check_new, finish, not_sent, require, unseal};
use crate::edits;
use crate::fields::{AccountFields, VendorRow};
use crate::sandbox::{Inner, Writing};
use crate::tables::{self, TableError};

/// What an order says, before anything in it is believed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    company: String,
    kind: String,
    marker: String,
    new_iban: String,
    not_after: Timestamp,
    old_account: String,
    old_number: String,
    seq: i64,
    store: String,
    v: u8,
    vendor: String,
}

/// Changes the details, or answers what that order changed before.
pub(crate) async fn change(erp: &Inner, text: &str, seal: &str) -> Result<Changed, OrderError> {
    let mut writing = erp.write().await.map_err(|error| not_sent(&error))?;
    let done = change_once(&mut writing, text, seal).await;
    finish(writing, done).await
}

async fn change_once(writing: &mut Writing<'_>, text: &str, seal: &str) -> Result<Changed, Stop> {
    let order: ChangeText = unseal(writing, text, seal).await?;
    let kind = order.v == 1 && order.kind == "bank_change";
    require(kind && Marker::parse(&order.marker).is_ok() && order.seq > 0, Refusal::BadRequest)?;
    let new = Iban::parse(&order.new_iban).ok().ok_or(Refusal::BadRequest)?;
    require(new.electronic() == order.new_iban, Refusal::BadRequest)?;

    if let Some((ordered, record)) = find(&mut writing.tx, &order.marker).await? {
        if ordered != text {
            return Err(Contradiction::MarkerUsedOtherwise.into());
        }
        return Ok(changed(&mut writing.tx, &record).await?);
    }
    check_new(writing, &order.marker, &order.store, order.seq).await?;
    check_deadline(writing, order.not_after)?;
    let before = tables::vendor(&mut writing.tx, &order.company, &order.vendor).await?;
    let before = before.ok_or(Refusal::NoSuchVendor)?;
    let old = check_old(&order, &before)?;
    require(order.old_number != order.new_iban, Refusal::BadRequest)?;
    check_foreign(&mut writing.tx, &order.new_iban).await?;

    let mut after = before.clone();
    let account = replace(&mut after, old.as_ref(), &new, writing.now)?;
    let edits = edits::differences(std::slice::from_ref(&before), std::slice::from_ref(&after));
    let company = order.company.as_str();
    tables::write_vendors(&mut writing.tx, company, std::slice::from_ref(&after)).await?;
    tables::log_order(&mut writing.tx, company, writing.now, &edits).await?;
    let bills =
        tables::point_bills(&mut writing.tx, company, &before.id, old.as_ref(), &account).await?;
    let record = ChangeRecord { company: order.company.clone(), vendor: before.id, account, bills };
    keep(writing, &order, text, &record).await?;
    writing.keep_time().await?;
    read_back(writing, &record, &new).await
}

/// The vendor's only active account, if the order names it by record and number; none where the
/// vendor has none and the order names none.
fn check_old(order: &ChangeText, vendor: &VendorRow) -> Result<Option<AccountId>, Refusal> {
    let mut active = vendor.accounts.iter().filter(|account| account.active);
    let (only, other) = (active.next(), active.next());
    if other.is_some() {
        return Err(Refusal::SeveralAccounts);
    }
    let there = only.map_or(("", ""), |only| (only.id.as_str(), only.number.whole()));
    if there != (order.old_account.as_str(), order.old_number.as_str()) {
        return Err(Refusal::AccountMismatch);
    }
    Ok(only.map(|only| only.id.clone()))
}

/// Archives the old account and brings the one with the new number back, or adds it.
fn replace(
    vendor: &mut VendorRow,
    old: Option<&AccountId>,
    new: &Iban,
    now: Timestamp,
) -> Result<AccountId, Refusal> {
    for account in vendor.accounts.iter_mut().filter(|account| Some(&account.id) == old) {
        account.set_active(false, now);
    }
    let number = AccountNumber::Iban(new.clone());
    let archived = vendor.accounts.iter_mut().find(|account| account.number == number);
    if let Some(account) = archived {
        account.set_active(true, now);
        account.allowed = true;
        return Ok(account.id.clone());
    }
    let account = vendor.add_account(&AccountFields::of_number(&number), now);
    account.ok().ok_or(Refusal::Other)
}

/// What is kept of an order that was carried out.
struct ChangeRecord {
    company: String,
    vendor: VendorId,
    account: AccountId,
    bills: Vec<BillId>,
}

async fn keep(
    writing: &mut Writing<'_>,
    order: &ChangeText,
    text: &str,
    record: &ChangeRecord,
) -> Result<(), Stop> {
    let bills: Vec<_> = record.bills.iter().map(BillId::as_str).collect();
    let kept = sqlx::query(
        "insert into bank_change_order
             (marker, store, seq, text, company, vendor, account, bills, at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict do nothing",
    )
    .bind(&order.marker)
    .bind(&order.store)
    .bind(order.seq)
    .bind(text)
    .bind(&record.company)
    .bind(record.vendor.as_str())
    .bind(record.account.as_str())
    .bind(json!(bills).to_string())
    .bind(writing.now.as_millis())
    .execute(&mut *writing.tx)
    .await?;
    if kept.rows_affected() == 1 { Ok(()) } else { Err(Contradiction::StoreBehind.into()) }
}

/// Reads the vendor from the tables, before anything is final, and compares.
async fn read_back(
    writing: &mut Writing<'_>,
    record: &ChangeRecord,
    new: &Iban,
) -> Result<Changed, Stop> {
    let changed = changed(&mut writing.tx, record).await?;
    let same = changed.account.as_ref().is_some_and(|account| {
        account.owner == record.vendor
            && account.number.iban() == Some(new)
            && account.active
            && account.erp_allows
    });
    require(same && changed.also_active.is_empty(), Refusal::PostCheckFailed)?;
    Ok(changed)
}

/// The text and the record of the order with that marker.
async fn find(
    conn: &mut SqliteConnection,
    marker: &str,
) -> Result<Option<(String, ChangeRecord)>, TableError> {
    type Columns = (String, String, String, String, String);
    let row: Option<Columns> = sqlx::query_as(
        "select text, company, vendor, account, bills from bank_change_order where marker = $1",
    )
    .bind(marker)
    .fetch_optional(conn)
    .await?;
    let Some((text, company, vendor, account, bills)) = row else { return Ok(None) };
    let table = "bank_change_order";
    // No part of a marker is shown to anybody; the vendor tells where to look.
    let place = vendor.clone();
    let record = ChangeRecord {
        company,
        vendor: tables::fits(table, &place, VendorId::new(vendor))?,
        account: tables::fits(table, &place, AccountId::new(account))?,
        bills: tables::fits(table, &place, serde_json::from_str(&bills))?,
    };
    Ok(Some((text, record)))
}

/// What the tables hold now for the change with that marker.
pub(crate) async fn find_change(
    conn: &mut SqliteConnection,
    marker: &Marker,
) -> Result<Option<Changed>, TableError> {
    match find(conn, &marker.to_hex()).await? {
        Some((_, record)) => Ok(Some(changed(conn, &record).await?)),
        None => Ok(None),
    }
}

/// What the tables hold for a change now.
async fn changed(
    conn: &mut SqliteConnection,
    record: &ChangeRecord,
) -> Result<Changed, TableError> {
    let (company, id) = (record.company.as_str(), record.account.as_str());
    let row: Option<(String, String, i64, i64)> = sqlx::query_as(
        "select vendor, number, active, allowed from account where company = $1 and id = $2",
    )
    .bind(company)
    .bind(id)
    .fetch_optional(&mut *conn)
    .await?;
    let account = row.map(|(owner, number, active, allowed)| {
        Ok::<_, TableError>(ChangedAccount {
            id: record.account.clone(),
            owner: tables::fits("account", id, VendorId::new(owner))?,
            number: AccountNumber::from_erp(&number),
            active: active == 1,
            erp_allows: allowed == 1,
        })
    });
    let vendor = tables::vendor(conn, company, record.vendor.as_str()).await?;
    let also_active = vendor
        .into_iter()
        .flat_map(|vendor| vendor.accounts)
        .filter(|other| other.active && other.id != record.account)
        .map(|other| other.id);
    Ok(Changed {
        account: account.transpose()?,
        also_active: also_active.collect(),
        bills: record.bills.clone(),
    })
}
