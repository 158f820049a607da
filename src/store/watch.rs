//! How far the ERP's log of changes was read, and which of our bookings are looked at again.

use countersign_erp_source::{CompanyId, Timestamp};

use super::{Conn, StoreError};
use crate::domain::names::OperationId;

/// Where the watcher stands for one company.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watch {
    /// The highest number of the log that was read.
    pub after_id: u64,
    /// When all vendors were last compared to the end.
    pub compared_at: Option<Timestamp>,
    /// The last vendor of the comparison that is under way.
    pub compare_after: Option<String>,
    /// The sequence number of the last order of the review that is under way.
    pub reviewed_seq: i64,
    /// When all orders were last reviewed to the end.
    pub reviewed_at: Option<Timestamp>,
}

/// Where the watcher stands.
pub async fn read(conn: &mut Conn<'_>, company: &CompanyId) -> Result<Watch, StoreError> {
    let sql = "select after_id, compared_at, compare_after, reviewed_seq, reviewed_at from watch \
               where company = $1";
    let row = conn.fetch_optional(sql, &[company.as_str().into()]).await?;
    let Some(row) = row else { return Ok(Watch::default()) };
    Ok(Watch {
        after_id: u64::try_from(row.int("after_id")?).unwrap_or(0),
        compared_at: row.opt_int("compared_at")?.map(Timestamp::from_millis),
        compare_after: row.opt_text("compare_after")?,
        reviewed_seq: row.int("reviewed_seq")?,
        reviewed_at: row.opt_int("reviewed_at")?.map(Timestamp::from_millis),
    })
}

/// Keeps where the watcher stands. Another daemon that was further in the log stays further.
pub async fn keep(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    watch: &Watch,
) -> Result<(), StoreError> {
    let sql = "insert into watch (company, after_id, compared_at, compare_after, reviewed_seq, \
               reviewed_at) values ($1, $2, $3, $4, $5, $6) \
               on conflict (company) do update set \
               after_id = case when watch.after_id > excluded.after_id then watch.after_id \
               else excluded.after_id end, \
               compared_at = excluded.compared_at, compare_after = excluded.compare_after, \
               reviewed_seq = excluded.reviewed_seq, reviewed_at = excluded.reviewed_at";
    let args = [
        company.as_str().into(),
        i64::try_from(watch.after_id).unwrap_or(i64::MAX).into(),
        watch.compared_at.map(Timestamp::as_millis).into(),
        watch.compare_after.clone().into(),
        watch.reviewed_seq.into(),
        watch.reviewed_at.map(Timestamp::as_millis).into(),
    ];
    conn.execute_one(sql, &args).await
}

/// Which of those entries of the log were looked at before.
pub async fn seen(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    from: u64,
) -> Result<Vec<u64>, StoreError> {
    let sql = "select id from watched_change where company = $1 and id > $2";
    let args = [company.as_str().into(), i64::try_from(from).unwrap_or(i64::MAX).into()];
    let rows = conn.fetch_all(sql, &args).await?;
    rows.iter().map(|row| Ok(u64::try_from(row.int("id")?).unwrap_or(0))).collect()
}

/// Notes entries of the log as looked at, and forgets those up to `forget`.
pub async fn note(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    ids: &[u64],
    forget: u64,
) -> Result<(), StoreError> {
    for id in ids {
        let sql = "insert into watched_change (company, id) values ($1, $2) \
                   on conflict (company, id) do nothing";
        let args = [company.as_str().into(), i64::try_from(*id).unwrap_or(i64::MAX).into()];
        conn.execute(sql, &args).await?;
    }
    let sql = "delete from watched_change where company = $1 and id <= $2";
    let args = [company.as_str().into(), i64::try_from(forget).unwrap_or(i64::MAX).into()];
    conn.execute(sql, &args).await?;
    Ok(())
}

/// An order that was booked, or is held to be absent.
#[derive(Clone, PartialEq, Eq)]
pub struct BookedOrder {
    /// The sequence number.
    pub seq: i64,
    /// Whose.
    pub operation: OperationId,
    /// The vendor.
    pub counterparty: String,
    /// The exact order.
    pub order_text: String,
    /// Whether it is held to be absent: proved so by the ERP, or by a human's word.
    pub absent: bool,
}

impl std::fmt::Debug for BookedOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BookedOrder").field("seq", &self.seq).finish_non_exhaustive()
    }
}

/// The company's payments that were booked, or found absent, at or after that moment, with a higher number than `after`,
/// ascending.
pub async fn booked(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    since: Timestamp,
    after: i64,
    limit: i64,
) -> Result<Vec<BookedOrder>, StoreError> {
    let sql = "select seq, operation, counterparty, order_text, state from attempt \
               where company = $1 and state in ('booked', 'absent') and amount_minor is not null \
               and settled_at >= $2 and seq > $3 order by seq limit $4";
    let args = [company.as_str().into(), since.as_millis().into(), after.into(), limit.into()];
    let rows = conn.fetch_all(sql, &args).await?;
    rows.iter()
        .map(|row| {
            Ok(BookedOrder {
                seq: row.int("seq")?,
                operation: OperationId::parse(&row.text("operation")?)
                    .map_err(|_fault| row.inconsistent("operation", "cannot be read"))?,
                counterparty: row.text("counterparty")?,
                order_text: row.text("order_text")?,
                absent: row.text("state")? == "absent",
            })
        })
        .collect()
}
