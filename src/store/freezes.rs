//! Freezes and alarms.

use countersign_erp_source::{CompanyId, Timestamp};

use super::{Conn, Question, Row, StoreError};
use crate::domain::names::{AlarmId, FreezeId, OperationId};

/// What a freeze stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreezeScope {
    /// Everything.
    All,
    /// One company.
    Company(String),
    /// One vendor of one company.
    Vendor {
        /// The company.
        company: String,
        /// The vendor.
        vendor: String,
    },
}

impl FreezeScope {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Company(_) => "company",
            Self::Vendor { .. } => "vendor",
        }
    }

    pub(super) fn parts(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::All => (None, None),
            Self::Company(company) => (Some(company.clone()), None),
            Self::Vendor { company, vendor } => (Some(company.clone()), Some(vendor.clone())),
        }
    }
}

/// A freeze.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    /// Its id.
    pub id: FreezeId,
    /// What it stops.
    pub scope: FreezeScope,
    /// Why.
    pub reason: String,
    /// For an automatic one: the stable code of what caused it.
    pub cause: Option<String>,
    /// For an automatic one: the operation that caused it, where one did.
    pub operation: Option<OperationId>,
    /// Who placed it; the daemon's own name for an automatic one.
    pub placed_by: String,
    /// When.
    pub placed_at: Timestamp,
}

/// An alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Its id.
    pub id: AlarmId,
    /// The stable code.
    pub kind: String,
    /// The company, where it is about one.
    pub company: Option<String>,
    /// The vendor, where it is about one.
    pub counterparty: Option<String>,
    /// The operation, where it is about one.
    pub operation: Option<String>,
    /// What it is about, where it is raised once for each.
    pub subject: Option<String>,
    /// What happened and what to do.
    pub detail: String,
    /// When.
    pub raised_at: Timestamp,
    /// When, by whom and why it was closed.
    pub closed: Option<Closed>,
}

/// That somebody looked at an alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What he found.
    pub because: String,
}

/// Whether anything in force stops payments to that vendor of that company.
pub fn is_frozen(company: &CompanyId, counterparty: &str) -> Question<bool> {
    let sql = "select count(*) as found from freezes where removed_at is null and (scope = 'all' \
               or (scope = 'company' and company = $1) \
               or (scope = 'vendor' and company = $1 and counterparty = $2))";
    Question::any(sql, [company.as_str().into(), counterparty.into()])
}

/// Places a freeze.
pub async fn place(conn: &mut Conn<'_>, freeze: &Freeze) -> Result<(), StoreError> {
    let (company, counterparty) = freeze.scope.parts();
    let sql = "insert into freezes (id, scope, company, counterparty, reason, cause, automatic, \
               placed_by, placed_at, operation) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let args = [
        freeze.id.as_str().into(),
        freeze.scope.code().into(),
        company.into(),
        counterparty.into(),
        freeze.reason.as_str().into(),
        freeze.cause.clone().into(),
        freeze.cause.is_some().into(),
        freeze.placed_by.as_str().into(),
        freeze.placed_at.as_millis().into(),
        freeze.operation.as_ref().map(OperationId::as_str).into(),
    ];
    conn.execute_one(sql, &args).await
}

/// Whether an automatic freeze of that cause and scope is in force already.
pub async fn stands(
    conn: &mut Conn<'_>,
    scope: &FreezeScope,
    cause: &str,
) -> Result<bool, StoreError> {
    Ok(conn
        .ask(in_force())
        .await?
        .iter()
        .any(|freeze| freeze.scope == *scope && freeze.cause.as_deref() == Some(cause)))
}

/// The freezes in force, the oldest first.
pub fn in_force() -> Question<Vec<Freeze>> {
    let sql = "select id, scope, company, counterparty, reason, cause, placed_by, placed_at, \
               operation from freezes where removed_at is null order by id";
    Question::all(sql, [], freeze_from_row)
}

/// Removes a freeze. `false` if it is not in force.
pub async fn remove(
    conn: &mut Conn<'_>,
    id: &FreezeId,
    by: &str,
    because: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update freezes set removed_by = $1, removed_because = $2, removed_at = $3 \
               where id = $4 and removed_at is null";
    let args = [by.into(), because.into(), at.as_millis().into(), id.as_str().into()];
    Ok(conn.execute(sql, &args).await? == 1)
}

/// Raises an alarm. `false` if one of its kind and subject was raised before.
pub async fn raise(conn: &mut Conn<'_>, alarm: &Alarm) -> Result<bool, StoreError> {
    let sql = "insert into alarm (id, kind, company, counterparty, operation, detail, raised_at, \
               subject) values ($1, $2, $3, $4, $5, $6, $7, $8) \
               on conflict (company, kind, subject) where subject is not null do nothing";
    let args = [
        alarm.id.as_str().into(),
        alarm.kind.as_str().into(),
        alarm.company.clone().into(),
        alarm.counterparty.clone().into(),
        alarm.operation.clone().into(),
        alarm.detail.as_str().into(),
        alarm.raised_at.as_millis().into(),
        alarm.subject.clone().into(),
    ];
    Ok(conn.execute(sql, &args).await? == 1)
}

macro_rules! select_alarm {
    ($rest:literal) => {
        concat!(
            "select id, kind, company, counterparty, operation, subject, detail, raised_at, ",
            "closed_at, closed_by, closed_because from alarm ",
            $rest
        )
    };
}

/// The alarms that nobody closed, the oldest first.
pub async fn open_alarms(conn: &mut Conn<'_>) -> Result<Vec<Alarm>, StoreError> {
    let sql = select_alarm!("where closed_at is null order by id");
    conn.fetch_all(sql, &[]).await?.iter().map(alarm_from_row).collect()
}

/// How many alarms of that kind about a counterparty nobody closed yet.
pub async fn count_open(
    conn: &mut Conn<'_>,
    company: Option<&str>,
    kind: &str,
    counterparty: Option<&str>,
) -> Result<i64, StoreError> {
    let sql = "select count(*) as open from alarm where closed_at is null and kind = $1 \
               and company = $2 and counterparty = $3";
    let args = [kind.into(), company.into(), counterparty.into()];
    conn.fetch_one(sql, &args).await?.int("open")
}

/// The alarms of a company after that id, ascending.
pub async fn alarms_of(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    open_only: bool,
    after: &str,
    limit: i64,
) -> Result<Vec<Alarm>, StoreError> {
    let sql = select_alarm!(
        "where company = $1 and id > $2 \
         and ($3 = 0 or closed_at is null) order by id limit $4"
    );
    let args = [company.as_str().into(), after.into(), open_only.into(), limit.into()];
    conn.fetch_all(sql, &args).await?.iter().map(alarm_from_row).collect()
}

/// The alarm with that id.
pub async fn find_alarm(conn: &mut Conn<'_>, id: &AlarmId) -> Result<Option<Alarm>, StoreError> {
    let row = conn.fetch_optional(select_alarm!("where id = $1"), &[id.as_str().into()]).await?;
    row.map(|row| alarm_from_row(&row)).transpose()
}

/// Closes an alarm. `false` if it is closed already.
pub async fn close_alarm(
    conn: &mut Conn<'_>,
    id: &AlarmId,
    closed: &Closed,
) -> Result<bool, StoreError> {
    let sql = "update alarm set closed_at = $1, closed_by = $2, closed_because = $3 \
               where id = $4 and closed_at is null";
    let args = [
        closed.at.as_millis().into(),
        closed.by.as_str().into(),
        closed.because.as_str().into(),
        id.as_str().into(),
    ];
    Ok(conn.execute(sql, &args).await? == 1)
}

fn alarm_from_row(row: &Row) -> Result<Alarm, StoreError> {
    let closed = match (
        row.opt_int("closed_at")?,
        row.opt_text("closed_by")?,
        row.opt_text("closed_because")?,
    ) {
        (Some(at), Some(by), Some(because)) => {
            Some(Closed { by, at: Timestamp::from_millis(at), because })
        }
        _ => None,
    };
    Ok(Alarm {
        id: AlarmId::parse(&row.text("id")?)
            .map_err(|fault| row.inconsistent("id", fault.to_string()))?,
        kind: row.text("kind")?,
        company: row.opt_text("company")?,
        counterparty: row.opt_text("counterparty")?,
        operation: row.opt_text("operation")?,
        subject: row.opt_text("subject")?,
        detail: row.text("detail")?,
        raised_at: Timestamp::from_millis(row.int("raised_at")?),
        closed,
    })
}

fn freeze_from_row(row: &Row) -> Result<Freeze, StoreError> {
    let bad = |what: &str| row.inconsistent("scope", what);
    let scope = match (
        row.text("scope")?.as_str(),
        row.opt_text("company")?,
        row.opt_text("counterparty")?,
    ) {
        ("all", None, None) => FreezeScope::All,
        ("company", Some(company), None) => FreezeScope::Company(company),
        ("vendor", Some(company), Some(vendor)) => FreezeScope::Vendor { company, vendor },
        _ => return Err(bad("scope, company and vendor do not fit")),
    };
    Ok(Freeze {
        id: FreezeId::parse(&row.text("id")?).map_err(|fault| bad(&fault.to_string()))?,
        scope,
        reason: row.text("reason")?,
        cause: row.opt_text("cause")?,
        operation: row
            .opt_text("operation")?
            .map(|id| OperationId::parse(&id).map_err(|fault| bad(&fault.to_string())))
            .transpose()?,
        placed_by: row.text("placed_by")?,
        placed_at: Timestamp::from_millis(row.int("placed_at")?),
    })
}
