//! How things stand, in numbers, for whoever watches the daemon.

use std::collections::BTreeMap;

use countersign_erp_source::Timestamp;

use super::{Conn, Row, StoreError, query};
use crate::domain::operation::Status;
use crate::metrics::{Figures, Live};

const OPERATIONS: &str = "
select status, count(*) as found, min(coalesce(executing_since, created_at)) as since
from operation where status in ('pending', 'executing', 'unknown') group by status";
const ALARMS: &str = "
select kind, count(*) as found from alarm where closed_at is null group by kind order by kind";
const FREEZES: &str = "
select scope, count(*) as found from freezes where removed_at is null group by scope";
const SESSIONS: &str = "select count(*) as found from session where expires_at > $1";
/// The words of scopes; a series is made of no other.
const SCOPES: [&str; 3] = ["all", "company", "vendor"];

/// Counts what waits, what alarms, what is frozen and who is signed in.
pub async fn read(conn: &mut Conn<'_>, now: Timestamp) -> Result<Figures, StoreError> {
    let mut operations = BTreeMap::new();
    for row in conn.fetch_all(OPERATIONS, &[]).await? {
        let status = Status::from_code(&row.text("status")?)
            .ok_or_else(|| row.inconsistent("status", "cannot be read"))?;
        let since = Timestamp::from_millis(row.int("since")?);
        operations.insert(status, Live { count: count(&row)?, since });
    }
    let mut alarms = BTreeMap::new();
    for row in conn.fetch_all(ALARMS, &[]).await? {
        alarms.insert(row.text("kind")?, count(&row)?);
    }
    let mut freezes = BTreeMap::new();
    for row in conn.fetch_all(FREEZES, &[]).await? {
        let found = row.text("scope")?;
        let scope = SCOPES.into_iter().find(|scope| *scope == found);
        let scope = scope.ok_or_else(|| row.inconsistent("scope", "is no scope"))?;
        freezes.insert(scope, count(&row)?);
    }
    let newest_receipt = conn.fetch_one(query::HEAD, &[]).await?.int("seq")?;
    let sessions = count(&conn.fetch_one(SESSIONS, &[now.into()]).await?)?;
    Ok(Figures { operations, alarms, freezes, sessions, newest_receipt })
}

fn count(row: &Row) -> Result<usize, StoreError> {
    usize::try_from(row.int("found")?).map_err(|_negative| row.inconsistent("found", "is negative"))
}
