//! Faults on demand. They wait in the file; the count goes down durably before a fault acts, so
//! that one that kills the daemon does not kill the next one too.

use std::time::Duration;

use countersign_erp_source::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;

use crate::tables::TableError;

/// Which calls a fault hits. Only those that a connector handle for operations makes
/// ([`Sandbox::without_faults`](crate::Sandbox::without_faults)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultPoint {
    /// `register_payment`.
    RegisterPayment,
    /// `change_bank_details`.
    UpdateBankDetails,
    /// `look_up` and `look_up_change`.
    FindPayment,
    /// `find_bill`, `find_vendor` and `look_beside`.
    Read,
    /// `verify`.
    Vop,
}

impl FaultPoint {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RegisterPayment => "register_payment",
            Self::UpdateBankDetails => "update_bank_details",
            Self::FindPayment => "find_payment",
            Self::Read => "read",
            Self::Vop => "vop",
        }
    }
}

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The ERP says no.
    Refuse,
    /// The ERP does the work; its answer is lost.
    LostAnswer,
    /// The call never leaves.
    Unreachable,
    /// The call takes that long, and does its work all the same.
    Slow,
    /// The daemon dies before the ERP does the work.
    AbortBefore,
    /// The daemon dies after the ERP did the work.
    AbortAfter,
}

impl FaultKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::LostAnswer => "lost_answer",
            Self::Unreachable => "unreachable",
            Self::Slow => "slow",
            Self::AbortBefore => "abort_before",
            Self::AbortAfter => "abort_after",
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        [
            Self::Refuse,
            Self::LostAnswer,
            Self::Unreachable,
            Self::Slow,
            Self::AbortBefore,
            Self::AbortAfter,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}

/// A fault, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultRequest {
    /// Which calls.
    pub on: FaultPoint,
    /// What happens to them.
    pub what: FaultKind,
    /// How many of them; 0 takes back what was asked for and has not happened.
    #[serde(default = "once")]
    pub times: u32,
    /// With `slow`, how long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

fn once() -> u32 {
    1
}

/// A fault that is spent and must act now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) lasts: Duration,
}

impl Fault {
    /// What happens before the work. For a kind that the caller has not answered already.
    pub(crate) async fn before(self) {
        match self.kind {
            FaultKind::Slow => tokio::time::sleep(self.lasts).await,
            FaultKind::AbortBefore => std::process::abort(),
            FaultKind::Refuse
            | FaultKind::LostAnswer
            | FaultKind::Unreachable
            | FaultKind::AbortAfter => {}
        }
    }

    /// What happens after the work, once it is durable.
    pub(crate) fn after(self) {
        if self.kind == FaultKind::AbortAfter {
            std::process::abort();
        }
    }
}

/// Does a read as the fault wants it.
pub(crate) async fn hit<T>(
    fault: Option<Fault>,
    work: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, ReadError> {
    let unavailable = |reason: &str| Err(ReadError::Unavailable { reason: reason.to_owned() });
    let Some(fault) = fault else { return work.await };
    match fault.kind {
        FaultKind::Refuse => return unavailable("the sandbox refuses, as asked"),
        FaultKind::Unreachable => return unavailable("the sandbox is not reachable, as asked"),
        FaultKind::LostAnswer
        | FaultKind::Slow
        | FaultKind::AbortBefore
        | FaultKind::AbortAfter => {}
    }
    fault.before().await;
    let answer = work.await;
    fault.after();
    if fault.kind == FaultKind::LostAnswer {
        return unavailable("the sandbox's answer is lost, as asked");
    }
    answer
}

/// Puts a fault into the file.
pub(crate) async fn add(
    conn: &mut SqliteConnection,
    request: &FaultRequest,
    lasts: Duration,
) -> Result<(), TableError> {
    sqlx::query("insert into fault (hits, what, times_left, for_ms) values ($1, $2, $3, $4)")
        .bind(request.on.as_str())
        .bind(request.what.as_str())
        .bind(i64::from(request.times))
        .bind(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX))
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes back the faults of that kind that wait there.
pub(crate) async fn take_back(
    conn: &mut SqliteConnection,
    request: &FaultRequest,
) -> Result<(), TableError> {
    sqlx::query("update fault set times_left = 0 where hits = $1 and what = $2")
        .bind(request.on.as_str())
        .bind(request.what.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether a fault waits there, and the clock's offset: a cheap look before the file is locked for
/// writing.
pub(crate) async fn waits(
    conn: &mut SqliteConnection,
    point: FaultPoint,
) -> Result<(bool, i64), TableError> {
    let (waiting, offset_ms): (i64, i64) = sqlx::query_as(
        "select exists (select 1 from fault where hits = $1 and times_left > 0), clock_offset_ms
         from erp",
    )
    .bind(point.as_str())
    .fetch_one(conn)
    .await?;
    Ok((waiting == 1, offset_ms))
}

/// Spends the oldest fault that waits there.
pub(crate) async fn spend(
    conn: &mut SqliteConnection,
    point: FaultPoint,
) -> Result<Option<Fault>, TableError> {
    let spent: Option<(String, i64)> = sqlx::query_as(
        "update fault set times_left = times_left - 1
         where id = (select id from fault where hits = $1 and times_left > 0 order by id limit 1)
         returning what, for_ms",
    )
    .bind(point.as_str())
    .fetch_optional(conn)
    .await?;
    let Some((what, for_ms)) = spent else { return Ok(None) };
    let Some(kind) = FaultKind::from_text(&what) else {
        return Err(TableError::Inconsistent {
            table: "fault",
            row: what,
            what: "kind".to_owned(),
        });
    };
    Ok(Some(Fault { kind, lasts: Duration::from_millis(u64::try_from(for_ms).unwrap_or(0)) }))
}
