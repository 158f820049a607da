//! What became of payments that were booked.

use countersign_erp_source::{Marker, Review, Reviewed};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::{TableError, fits, read_bill};
use crate::guard::PaymentRow;

/// One statement for any number of orders, which sees one moment by itself.
pub(super) const REVIEW: &str = "
    select b.id, b.vendor, b.reference, b.date, b.due, b.currency, b.total_minor,
        b.paid_minor, b.state, b.kind, b.named_account, p.id as payment, p.number,
        p.amount_minor, p.currency as payment_currency, p.date as payment_date, p.stands
    from json_each($2) w
        left join bill b on b.company = $1 and b.id = w.value ->> 1
        left join payment_order o
            on o.marker = w.value ->> 0 and o.company = $1 and o.bill = w.value ->> 1
        left join payment p on p.id = o.payment";

pub(crate) async fn review(
    conn: &mut SqliteConnection,
    wanted: &Review,
) -> Result<Vec<Reviewed>, TableError> {
    let orders: Vec<_> = wanted
        .orders
        .iter()
        .map(|(marker, bill)| json!([marker.to_hex(), bill.as_str()]))
        .collect();
    let rows = sqlx::query(REVIEW)
        .bind(wanted.company.as_str())
        .bind(json!(orders).to_string())
        .fetch_all(conn)
        .await?;
    // The table function gives its elements in their order.
    let answers = wanted.orders.iter().zip(&rows);
    answers.map(|((marker, _), row)| reviewed(marker, row)).collect()
}

fn reviewed(marker: &Marker, row: &SqliteRow) -> Result<Reviewed, TableError> {
    let (mut booked, mut overpaid_minor) = (None, 0);
    if row.try_get::<Option<String>, _>("id")?.is_some() {
        let bill = read_bill(row)?;
        let left = fits("bill", bill.id.as_str(), bill.residual())?;
        overpaid_minor = left.minor().saturating_neg().max(0);
        booked = payment(row)?.map(|payment| payment.booked(bill)).transpose()?;
    }
    Ok(Reviewed { marker: marker.clone(), booked, overpaid_minor })
}

fn payment(row: &SqliteRow) -> Result<Option<PaymentRow>, TableError> {
    let Some(id) = row.try_get("payment")? else { return Ok(None) };
    Ok(Some(PaymentRow {
        id,
        number: row.try_get("number")?,
        amount_minor: row.try_get("amount_minor")?,
        currency: row.try_get("payment_currency")?,
        date: row.try_get("payment_date")?,
        stands: row.try_get("stands")?,
    }))
}
