//! Operations that something must become of, in queues that can be walked from any place.

use countersign_erp_source::CompanyId;

use super::from_row;
use crate::domain::operation::{Operation, Status};
use crate::store::{Conn, Row, StoreError};

/// What the settle worker takes up: operations that something must become of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Executing.
    Executing,
    /// Unknown.
    Unknown,
    /// Pending with a vote that is neither spent nor void.
    Voted,
}

/// A place in a queue: that of the operation last touched then, with that id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    at: i64,
    id: String,
}

impl Place {
    /// Before all others.
    pub const FIRST: Self = Self { at: -1, id: String::new() };

    /// Where that operation stands.
    pub fn of(operation: &Operation) -> Self {
        Self { at: operation.updated_at.as_millis(), id: operation.id.as_str().to_owned() }
    }
}

/// How many operations stand in that queue.
pub async fn count_queued(conn: &mut Conn<'_>, queue: Queue) -> Result<i64, StoreError> {
    let voted = "select count(*) as found from operation where status = 'pending' \
                 and id in (select operation from vote where state = 'cast')";
    let found = match queue {
        Queue::Voted => conn.fetch_one(voted, &[]).await?,
        Queue::Executing => count_in_state(conn, Status::Executing).await?,
        Queue::Unknown => count_in_state(conn, Status::Unknown).await?,
    };
    found.int("found")
}

async fn count_in_state(conn: &mut Conn<'_>, status: Status) -> Result<Row, StoreError> {
    let sql = "select count(*) as found from operation where status = $1";
    conn.fetch_one(sql, &[status.code().into()]).await
}

/// The operations in that queue behind that place, the longest untouched first.
pub async fn queued(
    conn: &mut Conn<'_>,
    queue: Queue,
    after: &Place,
    limit: i64,
) -> Result<Vec<Operation>, StoreError> {
    let voted = select!(
        "where status = $1 and (updated_at, id) > ($2, $3) \
         and id in (select operation from vote where state = 'cast') \
         order by updated_at, id limit $4"
    );
    let in_state = select!(
        "where status = $1 and (updated_at, id) > ($2, $3) order by updated_at, id limit $4"
    );
    let (sql, status) = match queue {
        Queue::Executing => (in_state, Status::Executing),
        Queue::Unknown => (in_state, Status::Unknown),
        Queue::Voted => (voted, Status::Pending),
    };
    let args = [status.code().into(), after.at.into(), after.id.as_str().into(), limit.into()];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// Prepared and pending operations on that thing.
pub async fn waiting_on(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    thing: &str,
) -> Result<Vec<Operation>, StoreError> {
    let sql = select!(
        "where company = $1 and thing = $2 and status in ('prepared', 'pending') order by id"
    );
    let args = [company.as_str().into(), thing.into()];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}
