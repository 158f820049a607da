//! Alarms: what the humans of a company must look at. Closing one unblocks nothing.

use countersign_erp_source::{CompanyId, Timestamp};

use super::pack::Notice;
use super::{Gateway, Stored};
use crate::domain::names::{AlarmId, Name};
use crate::domain::operation::Operation;
use crate::domain::role::Role;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::freezes::{self, Closed};
use crate::store::{StoreError, Unit, people};

pub use crate::store::freezes::Alarm;

/// So many alarms of one kind about one counterparty may be open before requests raise no more.
const NOTICES_OPEN_MAX: i64 = 5;

/// Why an alarm was not closed.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// No such alarm in a company of this human's.
    #[error("no such alarm")]
    NotFound,
    /// An auditor reads only.
    #[error("an auditor changes nothing")]
    AuditorsChangeNothing,
    /// Somebody closed it before.
    #[error("the alarm was closed before")]
    Closed,
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

impl Gateway {
    /// The alarms of a company after that id, ascending.
    ///
    /// # Errors
    /// The store failed.
    pub async fn alarms(
        &self,
        company: &CompanyId,
        open_only: bool,
        after: String,
        limit: u16,
    ) -> Stored<Vec<Alarm>> {
        let (company, limit) = (company.clone(), i64::from(limit));
        self.store()
            .read(move |conn| {
                Box::pin(async move {
                    freezes::alarms_of(conn, &company, open_only, &after, limit).await
                })
            })
            .await
    }

    /// Notes that a human looked at an alarm.
    ///
    /// # Errors
    /// [`AlarmError`].
    pub async fn close_alarm(
        &self,
        human: &Name,
        id: &AlarmId,
        because: &str,
    ) -> Result<Alarm, AlarmError> {
        let (human, id) = (human.clone(), id.clone());
        let closed = Closed { by: human.to_string(), at: self.now(), because: because.to_owned() };
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move { close(unit, &human, &id, closed).await })
            })
            .await??;
        Ok(written.value)
    }
}

async fn close(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &AlarmId,
    closed: Closed,
) -> Stored<Result<Alarm, AlarmError>> {
    let Some(found) = freezes::find_alarm(unit.conn(), id).await? else {
        return Ok(Err(AlarmError::NotFound));
    };
    // INVARIANT (I8): another company's alarm is as good as none, and so is the whole store's, which
    // is the operator's.
    let Some(Ok(company)) = found.company.clone().map(CompanyId::new) else {
        return Ok(Err(AlarmError::NotFound));
    };
    let roles = people::roles(unit.conn(), human, &company).await?;
    if roles.is_empty() {
        return Ok(Err(AlarmError::NotFound));
    }
    if roles.iter().all(|role| *role == Role::Auditor) {
        return Ok(Err(AlarmError::AuditorsChangeNothing));
    }
    if !freezes::close_alarm(unit.conn(), id, &closed).await? {
        return Ok(Err(AlarmError::Closed));
    }
    unit.receipt(Receipt {
        kind: ReceiptKind::AlarmClosed,
        at: closed.at,
        company: found.company.clone(),
        operation: found.operation.clone(),
        data: serde_json::json!({
            "alarm": found.id.as_str(), "because": closed.because, "by": closed.by,
            "kind": found.kind,
        }),
    })?;
    Ok(Ok(Alarm { closed: Some(closed), ..found }))
}

/// Raises an alarm within a unit of work. `false` if one of its kind and subject was raised before.
pub async fn raise(unit: &mut Unit<'_>, alarm: &Alarm) -> Stored<bool> {
    if !freezes::raise(unit.conn(), alarm).await? {
        return Ok(false);
    }
    let (id, kind) = (&alarm.id, alarm.kind.as_str());
    // What happened stands in the alarm, where only people of the company read it.
    tracing::error!(alarm.id = %id, alarm.kind = kind, "alarm {id}: {kind}");
    unit.receipt(Receipt {
        kind: ReceiptKind::Alarm,
        at: alarm.raised_at,
        company: alarm.company.clone(),
        operation: alarm.operation.clone(),
        data: serde_json::json!({
            "alarm": alarm.id.as_str(), "detail": alarm.detail, "kind": alarm.kind,
        }),
    })?;
    Ok(true)
}

/// Tells the humans of an operation's company what it was refused for. A caller who makes up one
/// request after the other gets no more than a few alarms about one counterparty, and one a day that
/// says so: nobody is to look for the true one among thousands.
pub(super) async fn notify(
    unit: &mut Unit<'_>,
    notice: &Notice,
    operation: &Operation,
    id: AlarmId,
    now: Timestamp,
) -> Stored<()> {
    let company = operation.origins.company.as_str();
    let counterparty = operation.substance.counterparty.clone();
    let about = counterparty.as_deref();
    let open = freezes::count_open(unit.conn(), Some(company), notice.kind, about).await?;
    let (subject, detail) = if open < NOTICES_OPEN_MAX {
        (notice.subject.clone(), notice.detail.clone())
    } else {
        let about = about.unwrap_or("one counterparty");
        let day = now.to_utc().date_naive();
        let detail = format!(
            "More requests like the open ones about {about} came in, and no more alarms are raised \
             for them before those are closed. Each is an operation with a receipt. Nothing was \
             changed. An agent that asks so often is broken or in somebody else's hands: look at its \
             operations, and revoke its mandate."
        );
        (format!("{about}/more/{day}"), detail)
    };
    let alarm = Alarm {
        id,
        kind: notice.kind.to_owned(),
        company: Some(company.to_owned()),
        counterparty,
        operation: Some(operation.id.to_string()),
        subject: Some(subject),
        detail,
        raised_at: now,
        closed: None,
    };
    raise(unit, &alarm).await?;
    Ok(())
}
