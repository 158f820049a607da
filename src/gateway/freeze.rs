//! Freezes: a human's, at once; and automatic ones, each with an alarm that says what to do.

use countersign_erp_source::Timestamp;
use uuid::Uuid;

use super::{Gateway, Stored};
use crate::domain::names::{AlarmId, FreezeId};
use crate::domain::operation::Operation;
use crate::ids::{self, NoRandomness, Randomness};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::freezes::{self, Alarm, Freeze, FreezeScope};
use crate::store::{Store, StoreError, Unit, votes};

/// An alarm that freezes by itself.
#[derive(Debug, Clone)]
pub struct Automatic {
    /// What is frozen.
    pub scope: FreezeScope,
    /// The stable code of what happened.
    pub cause: &'static str,
    /// What happened and what to do.
    pub detail: String,
}

/// Why a freeze could not be placed or removed.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// No such freeze is in force.
    #[error("no freeze `{0}` is in force")]
    NotInForce(FreezeId),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

/// Freezes at once, for every daemon of the store. Needs the store alone, so that it works where
/// policies or ERP are broken.
///
/// # Errors
/// [`FreezeError`].
pub async fn add(
    store: &Store,
    randomness: &dyn Randomness,
    scope: FreezeScope,
    reason: &str,
    by: &str,
    now: Timestamp,
) -> Result<FreezeId, FreezeError> {
    let number = ids::ordered(randomness, now).map_err(FreezeError::Randomness)?;
    let id = FreezeId::from_uuid(number);
    let freeze = Freeze {
        id: id.clone(),
        scope,
        reason: reason.to_owned(),
        cause: None,
        placed_by: by.to_owned(),
        placed_at: now,
    };
    store
        .write(move |unit| Box::pin(async move { place(unit, &freeze).await }))
        .await
        .map_err(FreezeError::Store)?;
    Ok(id)
}

/// The freezes in force.
///
/// # Errors
/// [`FreezeError::Store`].
pub async fn in_force(store: &Store) -> Result<Vec<Freeze>, FreezeError> {
    store
        .read(|conn| Box::pin(async move { freezes::in_force(conn).await }))
        .await
        .map_err(FreezeError::Store)
}

/// Removes a freeze.
///
/// # Errors
/// [`FreezeError`].
pub async fn remove(
    store: &Store,
    id: &FreezeId,
    because: &str,
    by: &str,
    now: Timestamp,
) -> Result<(), FreezeError> {
    let (wanted, because, by) = (id.clone(), because.to_owned(), by.to_owned());
    let written = store
        .write(move |unit| Box::pin(async move { thaw(unit, &wanted, &because, &by, now).await }))
        .await
        .map_err(FreezeError::Store)?;
    if written.value { Ok(()) } else { Err(FreezeError::NotInForce(id.clone())) }
}

impl Gateway {
    /// Freezes by itself, once for each scope and cause, and raises the alarm.
    ///
    /// # Errors
    /// [`FreezeError`].
    pub async fn freeze_automatically(&self, alarm: Automatic) -> Result<(), FreezeError> {
        let freeze_id = self.ordered_id().map_err(FreezeError::Randomness)?;
        let alarm_id = self.ordered_id().map_err(FreezeError::Randomness)?;
        let now = self.now();
        self.store()
            .write(move |unit| {
                Box::pin(
                    async move { automatic(unit, &alarm, None, freeze_id, alarm_id, now).await },
                )
            })
            .await
            .map_err(FreezeError::Store)?;
        Ok(())
    }
}

fn data(freeze: &Freeze) -> serde_json::Value {
    let (company, vendor) = match &freeze.scope {
        FreezeScope::All => (None, None),
        FreezeScope::Company(company) => (Some(company), None),
        FreezeScope::Vendor { company, vendor } => (Some(company), Some(vendor)),
    };
    serde_json::json!({
        "by": freeze.placed_by, "cause": freeze.cause, "company": company,
        "freeze": freeze.id.as_str(), "reason": freeze.reason, "scope": freeze.scope.code(),
        "vendor": vendor,
    })
}

fn company_of(scope: &FreezeScope) -> Option<String> {
    match scope {
        FreezeScope::All => None,
        FreezeScope::Company(company) | FreezeScope::Vendor { company, .. } => {
            Some(company.clone())
        }
    }
}

async fn place(unit: &mut Unit<'_>, freeze: &Freeze) -> Stored<()> {
    freezes::place(unit.conn(), freeze).await?;
    // What was approved before is looked at again after the thaw (DESIGN 4).
    votes::void_in(unit.conn(), &freeze.scope, "frozen", freeze.placed_at).await?;
    unit.receipt(Receipt {
        kind: ReceiptKind::FreezeAdded,
        at: freeze.placed_at,
        company: company_of(&freeze.scope),
        operation: None,
        data: data(freeze),
    })?;
    Ok(())
}

async fn thaw(
    unit: &mut Unit<'_>,
    id: &FreezeId,
    because: &str,
    by: &str,
    now: Timestamp,
) -> Stored<bool> {
    let in_force = freezes::in_force(unit.conn()).await?;
    let Some(freeze) = in_force.into_iter().find(|freeze| freeze.id == *id) else {
        return Ok(false);
    };
    if !freezes::remove(unit.conn(), id, by, because, now).await? {
        return Ok(false);
    }
    let mut said = data(&freeze);
    if let Some(fields) = said.as_object_mut() {
        fields.insert("removed_because".to_owned(), because.into());
        fields.insert("removed_by".to_owned(), by.into());
    }
    unit.receipt(Receipt {
        kind: ReceiptKind::FreezeRemoved,
        at: now,
        company: company_of(&freeze.scope),
        operation: None,
        data: said,
    })?;
    Ok(true)
}

/// Freezes within a unit of work, once for each scope and cause, and raises an alarm each time.
pub(super) async fn automatic(
    unit: &mut Unit<'_>,
    alarm: &Automatic,
    operation: Option<&Operation>,
    freeze_id: Uuid,
    alarm_id: Uuid,
    now: Timestamp,
) -> Stored<()> {
    // Frozen once is frozen; but what happened again is said again.
    let stands = freezes::stands(unit.conn(), &alarm.scope, alarm.cause).await?;
    let freeze = Freeze {
        id: FreezeId::from_uuid(freeze_id),
        scope: alarm.scope.clone(),
        reason: alarm.detail.clone(),
        cause: Some(alarm.cause.to_owned()),
        placed_by: "countersign".to_owned(),
        placed_at: now,
    };
    if !stands {
        place(unit, &freeze).await?;
    }
    let (company, counterparty) = match &alarm.scope {
        FreezeScope::All => (None, None),
        FreezeScope::Company(company) => (Some(company.clone()), None),
        FreezeScope::Vendor { company, vendor } => (Some(company.clone()), Some(vendor.clone())),
    };
    let raised = Alarm {
        id: AlarmId::from_uuid(alarm_id),
        kind: alarm.cause.to_owned(),
        company: company.clone(),
        counterparty,
        operation: operation.map(|operation| operation.id.to_string()),
        detail: alarm.detail.clone(),
        raised_at: now,
    };
    freezes::raise(unit.conn(), &raised).await?;
    let (id, kind) = (&raised.id, alarm.cause);
    // What happened stands in the alarm, where only people of the company read it.
    tracing::error!(alarm.id = %id, alarm.kind = kind, "alarm {id}: {kind}");
    unit.receipt(Receipt {
        kind: ReceiptKind::Alarm,
        at: now,
        company,
        operation: raised.operation.clone(),
        data: serde_json::json!({
            "alarm": raised.id.as_str(), "detail": raised.detail, "kind": raised.kind,
        }),
    })?;
    Ok(())
}
