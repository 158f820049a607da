//! What somebody does in the ERP, and to it, behind the gateway's back.

use std::time::Duration;

use countersign_erp_source::{Amount, BillId, Clock, Currency, Iban, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;

use crate::faults::{self, FaultKind, FaultRequest};
use crate::fields::{
    BillFields, BillRecord, BillRow, FieldError, InField, StateWord, VendorRecord, VopEntry,
};
use crate::sandbox::Sandbox;
use crate::tables::{self, CompanyRow, TableError};

mod vendor;

/// How far the clock may be moved at once.
const ADVANCE_MAX: Duration = Duration::from_hours(100 * 365 * 24);

/// The longest that a slow call may take.
const SLOW_MAX: Duration = Duration::from_mins(5);

/// Why a call of the control surface did nothing.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No such company.
    #[error("no company `{0}`")]
    NoSuchCompany(String),
    /// No such vendor.
    #[error("no vendor `{0}`")]
    NoSuchVendor(String),
    /// No such bill.
    #[error("no bill `{0}`")]
    NoSuchBill(String),
    /// A field that cannot be taken as it is.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The bill is not open.
    #[error("nothing is left to pay of bill `{0}`")]
    NothingToPay(String),
    /// The company has no account.
    #[error("company `{0}` has no account to pay from")]
    NoSourceAccount(String),
    /// Nobody paid the bill.
    #[error("bill `{0}` has no payment that stands")]
    NoPayment(String),
    /// The file cannot be used.
    #[error("the sandbox's file cannot be used")]
    File(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<TableError> for ControlError {
    fn from(error: TableError) -> Self {
        Self::File(Box::new(error))
    }
}

impl From<sqlx::Error> for ControlError {
    fn from(error: sqlx::Error) -> Self {
        TableError::from(error).into()
    }
}

/// A payment that the ERP holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PaymentRecord {
    /// The company.
    pub company: String,
    /// The bill.
    pub invoice_ref: String,
    /// Its vendor.
    pub vendor_id: String,
    /// Where the money went; null where somebody paid by hand and no account is on file.
    pub payee_iban: Option<String>,
    /// How much.
    pub amount: String,
    /// In which currency.
    pub currency: String,
    /// Where it came from.
    pub source_account: String,
    /// What people see on it.
    pub memo: String,
}

type PaymentRow = (String, String, String, Option<String>, i64, String, String, String);

/// A payment by hand, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandPayment {
    /// How much, in the bill's currency.
    pub amount: String,
}

/// An account that comes on the sanctions list or off it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SanctionEntry {
    /// The account.
    pub iban: String,
    /// Whether it is on the list.
    pub listed: bool,
}

fn parse_duration(
    field: &'static str,
    text: &str,
    longest: Duration,
) -> Result<Duration, FieldError> {
    let parsed = humantime::parse_duration(text).ok().filter(|duration| *duration <= longest);
    parsed.ok_or_else(|| {
        let longest = humantime::format_duration(longest);
        FieldError::new(field, format!("a duration like `8d`, `12h` or `90s`, at most {longest}"))
    })
}

impl Sandbox {
    /// Every payment that stands, oldest first.
    pub async fn payments(&self) -> Result<Vec<PaymentRecord>, ControlError> {
        let (mut tx, _) = self.inner.read().await?;
        let rows: Vec<PaymentRow> = sqlx::query_as(
            "select company, bill, vendor, number, amount_minor, currency, source_iban, memo
             from payment where stands = 1 order by id",
        )
        .fetch_all(&mut *tx)
        .await?;
        rows.into_iter()
            .map(|(company, bill, vendor, number, minor, currency, source, memo)| {
                let of = tables::fits("payment", &bill, Currency::from_code(&currency))?;
                Ok(PaymentRecord {
                    company,
                    invoice_ref: bill,
                    vendor_id: vendor,
                    payee_iban: number,
                    amount: Amount::from_minor(minor, of).to_decimal_string(),
                    currency,
                    source_account: source,
                    memo,
                })
            })
            .collect()
    }

    /// A vendor as the ERP holds it.
    pub async fn vendor(&self, company: &str, vendor: &str) -> Result<VendorRecord, ControlError> {
        let (mut tx, now) = self.inner.read().await?;
        company_row(&mut tx, company).await?;
        let row = tables::vendor(&mut tx, company, vendor).await?;
        let row = row.ok_or_else(|| ControlError::NoSuchVendor(vendor.to_owned()))?;
        Ok(row.record(now))
    }

    /// A bill as the ERP holds it.
    pub async fn bill(&self, company: &str, bill: &str) -> Result<BillRecord, ControlError> {
        let (mut tx, _) = self.inner.read().await?;
        company_row(&mut tx, company).await?;
        let row = bill_row(&mut tx, company, bill).await?;
        record(&mut tx, company, &row).await
    }

    /// Somebody creates or edits a bill.
    pub async fn put_bill(
        &self,
        company: &str,
        bill: &str,
        fields: &BillFields,
    ) -> Result<BillRecord, ControlError> {
        let mut writing = self.inner.write().await?;
        let own = company_row(&mut writing.tx, company).await?;
        let on_file = tables::bill(&mut writing.tx, company, bill).await?;
        let (mut row, named) = if let Some(mut row) = on_file {
            let named = fields.edit(&mut row)?;
            (row, named)
        } else {
            let id = BillId::new(bill).in_field("bill")?;
            fields.create(id, own.currency, writing.now)?
        };
        let vendor = tables::vendor(&mut writing.tx, company, row.vendor.as_str()).await?;
        if vendor.is_none() {
            return Err(FieldError::new("vendor", format!("no vendor `{}`", row.vendor)).into());
        }
        let account = tables::resolve_named(&mut writing.tx, company, &row, &named).await?;
        if account.is_none() && matches!(named, crate::fields::NamedAccount::Number(_)) {
            return Err(FieldError::new("payee_iban", "nobody has that account").into());
        }
        row.named_account = account;
        tables::write_bills(&mut writing.tx, company, std::slice::from_ref(&row)).await?;
        let record = record(&mut writing.tx, company, &row).await?;
        writing.commit().await?;
        Ok(record)
    }

    /// Somebody pays an open bill by hand, more than is left of it if they like.
    pub async fn pay_by_hand(
        &self,
        company: &str,
        bill: &str,
        amount: &str,
    ) -> Result<BillRecord, ControlError> {
        let mut writing = self.inner.write().await?;
        let own = company_row(&mut writing.tx, company).await?;
        let mut row = bill_row(&mut writing.tx, company, bill).await?;
        let amount = Amount::parse(amount, row.currency()).in_field("amount")?;
        if !amount.is_positive() {
            return Err(FieldError::new("amount", "must be greater than zero").into());
        }
        if row.state_word() != StateWord::Open {
            return Err(ControlError::NothingToPay(bill.to_owned()));
        }
        let (_, source) = own
            .journals
            .first()
            .ok_or_else(|| ControlError::NoSourceAccount(company.to_owned()))?;
        row.paid = row.paid.checked_add(amount).in_field("amount")?;
        let vendor = tables::vendor(&mut writing.tx, company, row.vendor.as_str()).await?;
        let accounts = vendor.map(|vendor| vendor.accounts).unwrap_or_default();
        let payee = accounts
            .iter()
            .find(|account| Some(&account.id) == row.named_account.as_ref())
            .or_else(|| accounts.iter().find(|account| account.active));
        sqlx::query(
            "insert into payment (company, bill, vendor, account, number, amount_minor, currency,
                 source_iban, memo, date, stands)
             values ($1, $2, $3, $4, $5, $6, $7, $8, 'paid by hand', $9, 1)",
        )
        .bind(company)
        .bind(bill)
        .bind(row.vendor.as_str())
        .bind(payee.map(|account| account.id.as_str()))
        .bind(payee.map(|account| account.number.whole()))
        .bind(amount.minor())
        .bind(amount.currency().code())
        .bind(source.electronic())
        .bind(writing.now.to_utc().date_naive().to_string())
        .execute(&mut *writing.tx)
        .await?;
        tables::write_bills(&mut writing.tx, company, std::slice::from_ref(&row)).await?;
        let record = record(&mut writing.tx, company, &row).await?;
        writing.commit().await?;
        Ok(record)
    }

    /// Somebody cancels the newest payment of a bill, so that its amount is open again. The order
    /// behind it, if there was one, stays.
    pub async fn undo_payment(
        &self,
        company: &str,
        bill: &str,
    ) -> Result<BillRecord, ControlError> {
        let mut writing = self.inner.write().await?;
        company_row(&mut writing.tx, company).await?;
        let mut row = bill_row(&mut writing.tx, company, bill).await?;
        let undone: Option<i64> = sqlx::query_scalar(
            "update payment set stands = 0
             where id = (select max(id) from payment
                 where company = $1 and bill = $2 and stands = 1)
             returning amount_minor",
        )
        .bind(company)
        .bind(bill)
        .fetch_optional(&mut *writing.tx)
        .await?;
        let undone = undone.ok_or_else(|| ControlError::NoPayment(bill.to_owned()))?;
        let left = row.paid.minor().saturating_sub(undone).max(0);
        row.paid = Amount::from_minor(left, row.currency());
        tables::write_bills(&mut writing.tx, company, std::slice::from_ref(&row)).await?;
        let record = record(&mut writing.tx, company, &row).await?;
        writing.commit().await?;
        Ok(record)
    }

    /// Changes what Verification of Payee answers for a pair.
    pub async fn put_vop(&self, entry: &VopEntry) -> Result<(), ControlError> {
        let iban = entry.check()?;
        let mut writing = self.inner.write().await?;
        tables::write_vop(&mut writing.tx, entry, &iban).await?;
        Ok(writing.commit().await?)
    }

    /// Puts an account on the sanctions list, or takes it off.
    pub async fn put_sanctions(&self, entry: &SanctionEntry) -> Result<(), ControlError> {
        let iban = Iban::parse(&entry.iban).in_field("iban")?;
        let mut writing = self.inner.write().await?;
        let change = if entry.listed {
            sqlx::query("insert or ignore into sanctioned (iban) values ($1)")
        } else {
            sqlx::query("delete from sanctioned where iban = $1")
        };
        change.bind(iban.electronic()).execute(&mut *writing.tx).await?;
        Ok(writing.commit().await?)
    }

    /// Lets the next calls made for an operation fail; none any more with `times` 0.
    pub async fn put_fault(&self, request: &FaultRequest) -> Result<(), ControlError> {
        if request.times == 0 {
            let mut writing = self.inner.write().await?;
            faults::take_back(&mut writing.tx, request).await?;
            return Ok(writing.commit().await?);
        }
        let lasts = match (&request.lasts, request.what) {
            (Some(text), _) => parse_duration("for", text, SLOW_MAX)?,
            (None, FaultKind::Slow) => {
                return Err(FieldError::new("for", "is needed with `slow`").into());
            }
            (None, _) => Duration::ZERO,
        };
        let mut writing = self.inner.write().await?;
        faults::add(&mut writing.tx, request, lasts).await?;
        Ok(writing.commit().await?)
    }

    /// Moves the clock forward, for every process that shares the file, and tells the new time.
    pub async fn advance_clock(&self, by: &str) -> Result<Timestamp, ControlError> {
        let by = parse_duration("advance", by, ADVANCE_MAX)?;
        let mut writing = self.inner.write().await?;
        sqlx::query("update erp set clock_offset_ms = clock_offset_ms + $1")
            .bind(i64::try_from(by.as_millis()).unwrap_or(0))
            .execute(&mut *writing.tx)
            .await?;
        writing.commit().await?;
        self.inner.sync_clock().await?;
        Ok(self.now())
    }
}

async fn company_row(
    conn: &mut SqliteConnection,
    company: &str,
) -> Result<CompanyRow, ControlError> {
    let row = tables::company(conn, company).await?;
    row.ok_or_else(|| ControlError::NoSuchCompany(company.to_owned()))
}

async fn bill_row(
    conn: &mut SqliteConnection,
    company: &str,
    bill: &str,
) -> Result<BillRow, ControlError> {
    let row = tables::bill(conn, company, bill).await?;
    row.ok_or_else(|| ControlError::NoSuchBill(bill.to_owned()))
}

async fn record(
    conn: &mut SqliteConnection,
    company: &str,
    row: &BillRow,
) -> Result<BillRecord, ControlError> {
    let mut number = None;
    if let Some(account) = &row.named_account {
        number = sqlx::query_scalar("select number from account where company = $1 and id = $2")
            .bind(company)
            .bind(account.as_str())
            .fetch_optional(conn)
            .await?;
    }
    Ok(row.record(number))
}
