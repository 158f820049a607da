//! The ERP's side of an order: what the guard in a real ERP does, in one transaction under the
//! write lock. It sees the sealed text and the seal alone, as over a wire.

use std::time::Duration;

use chrono::NaiveDate;
use countersign_erp_source::{
    AccountNumber, Amount, BillState, Booked, BookedState, Contradiction, Currency, Marker,
    OrderError, PaymentId, Refusal, SealKey, Timestamp,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sqlx::{Row, SqliteConnection};

use crate::fields::{AccountRow, BillRow, KindWord, StoredState};
use crate::sandbox::{Inner, Writing};
use crate::tables::{self, TableError};

mod change;

pub(crate) use change::{change, find_change};

/// The longest text that the guard reads.
const TEXT_BYTES_MAX: usize = 4_000;

/// The farthest deadline: one far away would keep an order alive that nobody waits for any more.
const DEADLINE_MAX: Duration = Duration::from_mins(15);

/// What an order says, before anything in it is believed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderText {
    v: u8,
    marker: String,
    store: String,
    seq: i64,
    company: String,
    bill: String,
    total: String,
    vendor: String,
    account: String,
    iban: String,
    amount: String,
    currency: String,
    journal: String,
    source_iban: String,
    memo: String,
    date: NaiveDate,
    not_after: Timestamp,
}

/// Why an order was not carried out; nothing was written.
enum Stop {
    Refused(Refusal),
    Contradicted(Contradiction),
    Failed(TableError),
}

impl From<TableError> for Stop {
    fn from(error: TableError) -> Self {
        Self::Failed(error)
    }
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Contradiction> for Stop {
    fn from(contradiction: Contradiction) -> Self {
        Self::Contradicted(contradiction)
    }
}

/// Refuses unless the claim holds.
fn require(claim: bool, refusal: Refusal) -> Result<(), Stop> {
    if claim { Ok(()) } else { Err(refusal.into()) }
}

/// Books the order, or answers what it booked before.
pub(crate) async fn register(erp: &Inner, text: &str, seal: &str) -> Result<Booked, OrderError> {
    let mut writing = erp.write().await.map_err(|error| not_sent(&error))?;
    let done = book(&mut writing, text, seal).await;
    finish(writing, done).await
}

fn not_sent(error: &TableError) -> OrderError {
    OrderError::NotSent { reason: error.to_string() }
}

/// Keeps what was done, or tells why it was not.
async fn finish<T>(writing: Writing<'_>, done: Result<T, Stop>) -> Result<T, OrderError> {
    match done {
        Ok(answer) => match writing.commit().await {
            Ok(()) => Ok(answer),
            Err(error) => Err(OrderError::OutcomeUnknown { reason: error.to_string() }),
        },
        Err(Stop::Refused(refusal)) => Err(OrderError::Refused(refusal)),
        Err(Stop::Contradicted(what)) => Err(OrderError::Contradicted(what)),
        // The transaction ends without a commit, so nothing is written.
        Err(Stop::Failed(error)) => Err(not_sent(&error)),
    }
}

async fn book(writing: &mut Writing<'_>, text: &str, seal: &str) -> Result<Booked, Stop> {
    let order: OrderText = unseal(writing, text, seal).await?;
    let well_formed = order.v == 1 && Marker::parse(&order.marker).is_ok() && order.seq > 0;
    require(well_formed, Refusal::BadRequest)?;
    let bill = tables::bill(&mut writing.tx, &order.company, &order.bill).await?;
    let bill = bill.ok_or(Refusal::NoSuchBill)?;

    let known: Option<(String, i64)> =
        sqlx::query_as("select text, payment from payment_order where marker = $1")
            .bind(&order.marker)
            .fetch_optional(&mut *writing.tx)
            .await?;
    if let Some((ordered, payment)) = known {
        if ordered != text {
            return Err(Contradiction::MarkerUsedOtherwise.into());
        }
        return Ok(booked(&mut writing.tx, payment).await?);
    }
    check_new(writing, &order.marker, &order.store, order.seq).await?;
    check_deadline(writing, order.not_after)?;
    let account = check_payee(&mut writing.tx, &order, &bill).await?;
    let amount = check_figures(&mut writing.tx, &order, &bill).await?;
    check_source(&mut writing.tx, &order, &bill).await?;
    let payment = write_payment(writing, &order, &bill, &account, amount).await?;
    record(writing, &order, text, &bill, amount, payment).await?;
    writing.keep_time().await?;
    read_back(writing, &bill, &account, amount, payment).await
}

/// The order in a text that its seal covers.
async fn unseal<T: DeserializeOwned>(
    writing: &mut Writing<'_>,
    text: &str,
    seal: &str,
) -> Result<T, Stop> {
    require(text.len() <= TEXT_BYTES_MAX, Refusal::BadRequest)?;
    // INVARIANT: the seal comes first. Not a word of a text is looked at that it does not cover.
    let key = installed_key(&mut writing.tx).await?;
    if !key.is_some_and(|key| key.verifies(text, seal)) {
        return Err(Contradiction::BadSeal.into());
    }
    // A list of values in the right order would decode too.
    require(text.starts_with('{'), Refusal::BadRequest)?;
    serde_json::from_str(text).ok().ok_or(Refusal::BadRequest.into())
}

/// That no order, of whichever kind, has that marker, and none of that store that number.
async fn check_new(
    writing: &mut Writing<'_>,
    marker: &str,
    store: &str,
    seq: i64,
) -> Result<(), Stop> {
    let (marker_used, number_used): (i64, i64) = sqlx::query_as(
        "select
             exists (select 1 from payment_order where marker = $1)
                 or exists (select 1 from bank_change_order where marker = $1),
             exists (select 1 from payment_order where store = $2 and seq = $3)
                 or exists (select 1 from bank_change_order where store = $2 and seq = $3)",
    )
    .bind(marker)
    .bind(store)
    .bind(seq)
    .fetch_one(&mut *writing.tx)
    .await?;
    if marker_used == 1 {
        return Err(Contradiction::MarkerUsedOtherwise.into());
    }
    if number_used == 1 { Err(Contradiction::StoreBehind.into()) } else { Ok(()) }
}

fn check_deadline(writing: &Writing<'_>, not_after: Timestamp) -> Result<(), Stop> {
    require(writing.now <= not_after, Refusal::TooLate)?;
    require(not_after <= writing.now.plus(DEADLINE_MAX), Refusal::BadRequest)
}

/// The highest number that a store used, over both kinds of orders; 0 for none.
pub(crate) async fn newest_number(
    conn: &mut SqliteConnection,
    store: &str,
) -> Result<i64, TableError> {
    let newest = sqlx::query_scalar(
        "select max(
             (select coalesce(max(seq), 0) from payment_order where store = $1),
             (select coalesce(max(seq), 0) from bank_change_order where store = $1))",
    )
    .bind(store)
    .fetch_one(conn)
    .await?;
    Ok(newest)
}

/// The key that the first opener kept in the file.
pub(crate) async fn installed_key(
    conn: &mut SqliteConnection,
) -> Result<Option<SealKey>, TableError> {
    let bytes: Option<Vec<u8>> =
        sqlx::query_scalar("select seal_key from erp").fetch_one(conn).await?;
    Ok(bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).map(SealKey::from_bytes))
}

/// Bill, vendor and account, in the order in which the guard of a real ERP asks.
async fn check_payee(
    conn: &mut SqliteConnection,
    order: &OrderText,
    bill: &BillRow,
) -> Result<AccountRow, Stop> {
    let owner: Option<String> =
        sqlx::query_scalar("select vendor from account where company = $1 and id = $2")
            .bind(&order.company)
            .bind(&order.account)
            .fetch_optional(&mut *conn)
            .await?;
    let owner = owner.ok_or(Refusal::AccountMismatch)?;
    let payable = bill.kind == KindWord::Bill && bill.state == StoredState::Posted;
    require(payable, Refusal::BillNotPayable)?;
    let vendor = bill.vendor.as_str();
    require(vendor == order.vendor && vendor == owner, Refusal::VendorInconsistent)?;
    let on_file = tables::vendor(conn, &order.company, vendor).await?;
    let account = on_file
        .into_iter()
        .flat_map(|vendor| vendor.accounts)
        .find(|account| account.id.as_str() == order.account)
        .ok_or(Refusal::AccountMismatch)?;
    let same = account.number.iban().is_some_and(|iban| iban.electronic() == order.iban);
    require(account.active && same, Refusal::AccountMismatch)?;
    require(account.allowed, Refusal::AccountUntrusted)?;
    Ok(account)
}

/// The pinned total, and that what was ordered for the bill never exceeds it.
async fn check_figures(
    conn: &mut SqliteConnection,
    order: &OrderText,
    bill: &BillRow,
) -> Result<Amount, Stop> {
    let currency = bill.currency();
    require(order.currency == currency.code(), Refusal::FiguresInconsistent)?;
    let figure = |text: &str| Amount::parse(text, currency).ok().ok_or(Refusal::BadRequest);
    require(figure(&order.total)? == bill.total, Refusal::FiguresInconsistent)?;
    let amount = figure(&order.amount)?;
    let residual = bill.residual().ok().ok_or(Refusal::FiguresInconsistent)?;
    // INVARIANT: the sum is over the orders, not over the payments: one that somebody undid in the
    // ERP has gone to the bank all the same.
    let ordered: i64 = sqlx::query_scalar(
        "select coalesce(sum(amount_minor), 0) from payment_order where company = $1 and bill = $2",
    )
    .bind(&order.company)
    .bind(&order.bill)
    .fetch_one(conn)
    .await?;
    let with_ours = ordered.checked_add(amount.minor());
    let fits = amount.is_positive()
        && with_ours.is_some_and(|sum| sum <= bill.total.minor())
        && amount.minor() <= residual.minor();
    require(fits, Refusal::AmountExceedsResidual)?;
    Ok(amount)
}

/// The journal that the payment leaves from, and that it does not arrive at one of ours.
async fn check_source(
    conn: &mut SqliteConnection,
    order: &OrderText,
    bill: &BillRow,
) -> Result<(), Stop> {
    let company = tables::company(conn, &order.company).await?.ok_or(Refusal::NoSuchBill)?;
    let with_number: Vec<_> = company
        .journals
        .iter()
        .filter(|(_, iban)| iban.electronic() == order.source_iban)
        .collect();
    let one = matches!(with_number.as_slice(), [(code, _)] if *code == order.journal);
    require(one && company.currency == bill.currency(), Refusal::JournalMismatch)?;
    check_foreign(conn, &order.iban).await
}

/// That a number is none that a company of this ERP pays from.
async fn check_foreign(conn: &mut SqliteConnection, iban: &str) -> Result<(), Stop> {
    let own: i64 = sqlx::query_scalar("select exists (select 1 from journal where iban = $1)")
        .bind(iban)
        .fetch_one(conn)
        .await?;
    require(own == 0, Refusal::AccountIsOwn)
}

async fn write_payment(
    writing: &mut Writing<'_>,
    order: &OrderText,
    bill: &BillRow,
    account: &AccountRow,
    amount: Amount,
) -> Result<i64, Stop> {
    let payment: i64 = sqlx::query_scalar(
        "insert into payment (company, bill, vendor, account, number, amount_minor, currency,
             source_iban, memo, date, stands)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1) returning id",
    )
    .bind(&order.company)
    .bind(&order.bill)
    .bind(bill.vendor.as_str())
    .bind(account.id.as_str())
    .bind(account.number.whole())
    .bind(amount.minor())
    .bind(amount.currency().code())
    .bind(&order.source_iban)
    .bind(&order.memo)
    .bind(order.date.to_string())
    .fetch_one(&mut *writing.tx)
    .await?;
    let settled =
        sqlx::query("update bill set paid_minor = paid_minor + $3 where company = $1 and id = $2")
            .bind(&order.company)
            .bind(&order.bill)
            .bind(amount.minor())
            .execute(&mut *writing.tx)
            .await?;
    require(settled.rows_affected() == 1, Refusal::PostCheckFailed)?;
    Ok(payment)
}

async fn record(
    writing: &mut Writing<'_>,
    order: &OrderText,
    text: &str,
    bill: &BillRow,
    amount: Amount,
    payment: i64,
) -> Result<(), Stop> {
    let recorded = sqlx::query(
        "insert into payment_order (marker, store, seq, text, company, bill, account, iban,
             amount_minor, total_minor, currency, payment, at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict do nothing",
    )
    .bind(&order.marker)
    .bind(&order.store)
    .bind(order.seq)
    .bind(text)
    .bind(&order.company)
    .bind(&order.bill)
    .bind(&order.account)
    .bind(&order.iban)
    .bind(amount.minor())
    .bind(bill.total.minor())
    .bind(amount.currency().code())
    .bind(payment)
    .bind(writing.now.as_millis())
    .execute(&mut *writing.tx)
    .await?;
    if recorded.rows_affected() == 1 { Ok(()) } else { Err(Contradiction::StoreBehind.into()) }
}

/// Reads the payment from the tables, before anything is final, and compares.
async fn read_back(
    writing: &mut Writing<'_>,
    before: &BillRow,
    account: &AccountRow,
    amount: Amount,
    payment: i64,
) -> Result<Booked, Stop> {
    let booked = booked(&mut writing.tx, payment).await?;
    let expected = before.residual().and_then(|residual| residual.checked_sub(amount));
    let same = booked.amount == amount
        && booked.account == account.number
        && booked.bills == std::slice::from_ref(&before.id)
        && booked.state == BookedState::Posted
        && expected == Ok(booked.residual);
    require(same, Refusal::PostCheckFailed)?;
    Ok(booked)
}

/// A payment's row, but for its bill.
pub(crate) struct PaymentRow {
    pub(crate) id: i64,
    pub(crate) number: Option<String>,
    pub(crate) amount_minor: i64,
    pub(crate) currency: String,
    pub(crate) date: String,
    pub(crate) stands: i64,
}

impl PaymentRow {
    /// What is booked, with the bill as it is now.
    pub(crate) fn booked(self, bill: BillRow) -> Result<Booked, TableError> {
        let row = self.id.to_string();
        let currency = tables::fits("payment", &row, Currency::from_code(&self.currency))?;
        Ok(Booked {
            payment: tables::fits("payment", &row, PaymentId::new(row.clone()))?,
            number: format!("PAY/{:05}", self.id),
            state: if self.stands == 1 { BookedState::Posted } else { BookedState::Cancelled },
            amount: Amount::from_minor(self.amount_minor, currency),
            account: AccountNumber::from_erp(&self.number.unwrap_or_default()),
            date: tables::fits("payment", &row, self.date.parse())?,
            bill_state: bill_state(&bill),
            residual: tables::fits("payment", &row, bill.residual())?,
            bills: vec![bill.id],
        })
    }
}

/// What the tables hold for a payment now.
pub(crate) async fn booked(
    conn: &mut SqliteConnection,
    payment: i64,
) -> Result<Booked, TableError> {
    let row = sqlx::query(
        "select company, bill, number, amount_minor, currency, date, stands from payment
         where id = $1",
    )
    .bind(payment)
    .fetch_one(&mut *conn)
    .await?;
    let (company, bill): (String, String) = (row.try_get("company")?, row.try_get("bill")?);
    let bill = tables::bill(conn, &company, &bill).await?.ok_or("its bill is gone");
    let bill = tables::fits("payment", &payment.to_string(), bill)?;
    let row = PaymentRow {
        id: payment,
        number: row.try_get("number")?,
        amount_minor: row.try_get("amount_minor")?,
        currency: row.try_get("currency")?,
        date: row.try_get("date")?,
        stands: row.try_get("stands")?,
    };
    row.booked(bill)
}

pub(crate) fn bill_state(bill: &BillRow) -> BillState {
    match bill.state {
        StoredState::Draft => BillState::Draft,
        StoredState::Posted => BillState::Posted,
        StoredState::Cancelled => BillState::Cancelled,
    }
}
