//! What the file holds beside bills.

use chrono::NaiveDate;
use countersign_erp_source::{
    Amount, Beside, BesideQuery, BillId, Currency, Document, Iban, ReferenceKey, Traits, VendorId,
};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::{TableError, fits};

macro_rules! rows_max {
    () => {
        20000
    };
}

/// Rows of one answer. Many more documents resemble each other only where somebody made them.
const ROWS_MAX: usize = rows_max!();

/// One statement, which sees one moment by itself; each way of resembling has an index of its own. A
/// limit that were an argument would have it planned anew each time.
pub(super) const BESIDE: &str = concat!(
    "
    select 'document' as what, b.id, b.vendor, b.reference, b.date, b.currency, b.total_minor
        from json_each($2) w cross join bill b indexed by bill_by_part
        where b.company = $1 and b.vendor = w.value ->> 0
            and b.reference_by_part = w.value ->> 1 and b.state = 'posted' and b.kind = 'bill'
    union all
    select 'document', b.id, b.vendor, b.reference, b.date, b.currency, b.total_minor
        from json_each($2) w cross join bill b indexed by bill_as_one
        where b.company = $1 and b.vendor = w.value ->> 0
            and b.reference_as_one = w.value ->> 2 and b.state = 'posted' and b.kind = 'bill'
    union all
    select 'document', b.id, b.vendor, b.reference, b.date, b.currency, b.total_minor
        from json_each($2) w cross join bill b indexed by bill_by_total
        where b.company = $1 and b.vendor = w.value ->> 0
            and b.total_minor = w.value ->> 3 and b.currency = w.value ->> 4
            and b.date >= w.value ->> 5 and b.date <= w.value ->> 6
            and b.state = 'posted' and b.kind = 'bill'
    union all
    select 'credit', null, w.value ->> 0, null, null, null, null
        from json_each($2) w
        where exists (select 1 from bill b indexed by bill_owed_back
            where b.company = $1 and b.vendor = w.value ->> 0
                and ((b.kind = 'credit_note' and b.state = 'posted'
                        and b.paid_minor < b.total_minor)
                    or (b.kind = 'bill' and (b.paid_minor > b.total_minor
                        or (b.state <> 'posted' and b.paid_minor > 0)))))
    union all
    select 'holder', null, a.vendor, null, null, null, null
        from account a indexed by account_by_number
        where a.company = $1 and a.number = $3 and a.vendor <> $4 and a.active = 1
    limit ",
    rows_max!()
);

pub(crate) async fn beside(
    conn: &mut SqliteConnection,
    company: &str,
    query: &BesideQuery,
) -> Result<Beside, TableError> {
    let wanted: Vec<_> = query.bills.iter().map(|bill| wanted(&bill.traits)).collect();
    let held = query.held.as_ref();
    let rows = sqlx::query(BESIDE)
        .bind(company)
        .bind(json!(wanted).to_string())
        .bind(held.map(|(number, _)| Iban::electronic(number)))
        .bind(held.map(|(_, vendor)| vendor.as_str()))
        .fetch_all(conn)
        .await?;
    let mut found = Beside::default();
    for row in &rows {
        let vendor: String = row.try_get("vendor")?;
        let vendor = fits("bill", &vendor, VendorId::new(vendor.clone()))?;
        match row.try_get::<String, _>("what")?.as_str() {
            "document" => found.documents.push(document(row, vendor)?),
            "credit" => {
                found.with_credit.insert(vendor);
            }
            _ => {
                found.holders.insert(vendor);
            }
        }
    }
    found.documents.sort_by(|one, other| one.id.cmp(&other.id));
    found.documents.dedup_by(|one, other| one.id == other.id);
    if rows.len() >= ROWS_MAX {
        found.cut = query.bills.iter().map(|bill| bill.id.clone()).collect();
    }
    Ok(found)
}

fn wanted(traits: &Traits) -> serde_json::Value {
    let key = traits.reference.as_ref();
    // As text, any date lies between these two.
    let (first, last) =
        traits.near_dates().map_or(("0".to_owned(), "9".to_owned()), |(first, last)| {
            (first.to_string(), last.to_string())
        });
    json!([
        traits.vendor.as_str(),
        key.map(ReferenceKey::by_part),
        key.map(ReferenceKey::as_one),
        traits.total.map(Amount::minor),
        traits.total.map(|total| total.currency().code()),
        first,
        last,
    ])
}

fn document(row: &SqliteRow, vendor: VendorId) -> Result<Document, TableError> {
    let id: String = row.try_get("id")?;
    let currency: String = row.try_get("currency")?;
    let currency = fits("bill", &id, Currency::from_code(&currency))?;
    let date: String = row.try_get("date")?;
    let reference: Option<String> = row.try_get("reference")?;
    Ok(Document {
        traits: Traits {
            vendor,
            reference: reference.as_deref().and_then(ReferenceKey::of),
            total: Some(Amount::from_minor(row.try_get("total_minor")?, currency)),
            date: Some(fits("bill", &id, date.parse::<NaiveDate>())?),
        },
        id: fits("bill", &id, BillId::new(id.clone()))?,
    })
}
