//! Pairs of bills that an approver has looked at and found to be two.

use countersign_erp_source::{BillId, CompanyId, Timestamp};

use super::{Conn, Question, StoreError};
use crate::domain::names::Name;

/// What an approver said of two bills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearance {
    /// The bill that is to be paid.
    pub bill: BillId,
    /// The one that it was taken for.
    pub other: BillId,
    /// Who looked.
    pub cleared_by: Name,
    /// Why they are two.
    pub reason: String,
    /// The first one's traits, as they were seen.
    pub bill_seen: String,
    /// The other one's.
    pub other_seen: String,
    /// When.
    pub at: Timestamp,
}

/// A clearance that counts, from the side of one bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// The other bill.
    pub other: String,
    /// The traits of the bill that was asked about, as they were seen.
    pub bill_seen: String,
    /// The other one's.
    pub other_seen: String,
}

/// Keeps a clearance, in the place of an earlier one of the same pair by the same person.
pub async fn keep(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    clearance: &Clearance,
) -> Result<(), StoreError> {
    let sql = "insert into duplicate_clearance (company, bill, other, cleared_by, reason, \
               bill_seen, other_seen, cleared_at) values ($1, $2, $3, $4, $5, $6, $7, $8) \
               on conflict (company, bill, other, cleared_by) do update set \
               reason = excluded.reason, bill_seen = excluded.bill_seen, \
               other_seen = excluded.other_seen, cleared_at = excluded.cleared_at";
    let args = [
        company.as_str().into(),
        clearance.bill.as_str().into(),
        clearance.other.as_str().into(),
        clearance.cleared_by.as_str().into(),
        clearance.reason.as_str().into(),
        clearance.bill_seen.as_str().into(),
        clearance.other_seen.as_str().into(),
        clearance.at.into(),
    ];
    conn.execute_one(sql, &args).await
}

/// The clearances of that bill, from whichever side, that were given by somebody who is an active
/// approver of the company now, and not by `but`.
pub fn of_bill(company: &CompanyId, bill: &BillId, but: Option<&Name>) -> Question<Vec<Cleared>> {
    let sql = "select pair.other, pair.bill_seen, pair.other_seen from \
               (select other, bill_seen, other_seen, cleared_by from duplicate_clearance \
               where company = $1 and bill = $2 \
               union all select bill, other_seen, bill_seen, cleared_by from duplicate_clearance \
               where company = $1 and other = $2) as pair \
               join person on person.name = pair.cleared_by and person.disabled_at is null \
               join person_role on person_role.person = pair.cleared_by \
               and person_role.company = $1 and person_role.role = 'approver' \
               where pair.cleared_by <> $3";
    let args = [company.as_str().into(), bill.as_str().into(), but.map_or("", Name::as_str).into()];
    Question::all(sql, args, |row| {
        Ok(Cleared {
            other: row.text("other")?,
            bill_seen: row.text("bill_seen")?,
            other_seen: row.text("other_seen")?,
        })
    })
}

/// Whether any operation on that thing, whatever became of it, was under a mandate of that person.
pub async fn is_principal_of(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    thing: &str,
    person: &Name,
) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from operation \
               where company = $1 and thing = $2 and principal = $3";
    let args = [company.as_str().into(), thing.into(), person.as_str().into()];
    Ok(conn.fetch_one(sql, &args).await?.int("found")? > 0)
}
