//! Freezes: a human's, at once; and automatic ones, each with an alarm that says what to do.

use countersign_erp_source::{CompanyId, Timestamp};
use uuid::Uuid;

use super::by_hand::by_whom;
use super::{Gateway, Stored, alarm};
use crate::domain::names::{AlarmId, FreezeId, Name, OperationId};
use crate::domain::operation::Operation;
use crate::domain::role::Role;
use crate::ids::{self, NoRandomness, Randomness};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::freezes::{self, Alarm};
use crate::store::{Store, StoreError, Unit, attempts, operations, people, votes};

pub use crate::store::freezes::{Freeze, FreezeScope};

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
        operation: None,
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
    store.ask(freezes::in_force()).await.map_err(FreezeError::Store)
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

/// What a human freezes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HumanScope {
    /// His company.
    Company,
    /// A vendor of it.
    Vendor(String),
}

/// Why a human's freeze or thaw was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ByHumanError {
    /// No such freeze in a company of this human's.
    #[error("no such freeze is in force")]
    NotFound,
    /// An auditor reads only.
    #[error("accountants, approvers and admins freeze; an auditor changes nothing")]
    MayNotFreeze,
    /// It stops everything, or needs the store to be looked at.
    #[error("only the operator thaws this, with `countersign freeze remove`")]
    OperatorOnly,
    /// Only an approver thaws.
    #[error("this takes an approver of the company")]
    NotAnApprover,
    /// He approved what caused it.
    #[error("whoever approved, called for or settled what caused this freeze does not thaw it")]
    CausedByOwnApproval,
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

impl Gateway {
    /// The freezes in force that stop payments of that company, after that id, ascending.
    ///
    /// # Errors
    /// The store failed.
    pub async fn freezes_of(
        &self,
        company: &CompanyId,
        after: String,
        limit: u16,
    ) -> Stored<Vec<Freeze>> {
        let all = self.store().ask(freezes::in_force()).await?;
        let ours = |freeze: &Freeze| match &freeze.scope {
            FreezeScope::All => true,
            FreezeScope::Company(of) | FreezeScope::Vendor { company: of, .. } => {
                of == company.as_str()
            }
        };
        let later = all.into_iter().filter(ours).filter(|freeze| freeze.id.as_str() > &*after);
        Ok(later.take(usize::from(limit)).collect())
    }

    /// A human freezes his company, or a vendor of it, at once.
    ///
    /// # Errors
    /// [`ByHumanError`].
    pub async fn freeze_for(
        &self,
        human: &Name,
        company: &CompanyId,
        scope: HumanScope,
        reason: &str,
    ) -> Result<Freeze, ByHumanError> {
        let id = FreezeId::from_uuid(self.ordered_id().map_err(ByHumanError::Randomness)?);
        let of = company.to_string();
        let freeze = Freeze {
            id,
            scope: match scope {
                HumanScope::Company => FreezeScope::Company(of),
                HumanScope::Vendor(vendor) => FreezeScope::Vendor { company: of, vendor },
            },
            reason: reason.to_owned(),
            cause: None,
            operation: None,
            placed_by: human.to_string(),
            placed_at: self.now(),
        };
        let (human, company) = (human.clone(), company.clone());
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move {
                    let roles = people::roles(unit.conn(), &human, &company).await?;
                    if roles.iter().all(|role| *role == Role::Auditor) {
                        return Ok(Err(ByHumanError::MayNotFreeze));
                    }
                    place(unit, &freeze).await?;
                    Ok(Ok(freeze))
                })
            })
            .await??;
        self.0.changed.notify_waiters();
        Ok(written.value)
    }

    /// A human thaws (DESIGN 4): an approver, and not the one who approved what caused it.
    ///
    /// # Errors
    /// [`ByHumanError`].
    pub async fn thaw_for(
        &self,
        human: &Name,
        id: &FreezeId,
        because: &str,
    ) -> Result<Freeze, ByHumanError> {
        let (human, id, because) = (human.clone(), id.clone(), because.to_owned());
        let now = self.now();
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move {
                    let freeze = match may_thaw(unit, &human, &id).await? {
                        Ok(freeze) => freeze,
                        Err(refusal) => return Ok(Err(refusal)),
                    };
                    if !thaw(unit, &id, &because, human.as_str(), now).await? {
                        return Ok(Err(ByHumanError::NotFound));
                    }
                    Ok(Ok(freeze))
                })
            })
            .await??;
        self.0.changed.notify_waiters();
        Ok(written.value)
    }
}

async fn may_thaw(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &FreezeId,
) -> Stored<Result<Freeze, ByHumanError>> {
    let in_force = unit.ask(freezes::in_force()).await?;
    let Some(freeze) = in_force.into_iter().find(|freeze| freeze.id == *id) else {
        return Ok(Err(ByHumanError::NotFound));
    };
    let (FreezeScope::Company(company) | FreezeScope::Vendor { company, .. }) = &freeze.scope
    else {
        return Ok(Err(ByHumanError::OperatorOnly));
    };
    let company = CompanyId::new(company.clone())
        .map_err(|_fault| StoreError::inconsistent("freezes", "company", "cannot be read"))?;
    let roles = people::roles(unit.conn(), human, &company).await?;
    if roles.is_empty() {
        return Ok(Err(ByHumanError::NotFound));
    }
    if !roles.contains(&Role::Approver) {
        return Ok(Err(ByHumanError::NotAnApprover));
    }
    if let Some(operation) = &freeze.operation {
        // Whoever voted for it, made the call that it rested on, or said what became of it.
        let caused = unit.ask(operations::find(operation)).await?;
        let called = caused.is_some_and(|caused| caused.substance.not_by.contains(human));
        let settled = attempts::has_note(unit.conn(), operation, &by_whom(human)).await?;
        if called || settled || votes::voted_for(unit.conn(), operation, human).await? {
            return Ok(Err(ByHumanError::CausedByOwnApproval));
        }
    }
    Ok(Ok(freeze))
}

impl Gateway {
    /// Freezes by itself for what became of an operation, and raises the alarm; once for each
    /// subject, so that a thaw by a human stays one.
    ///
    /// # Errors
    /// [`FreezeError`].
    pub async fn freeze_once(
        &self,
        found: Automatic,
        operation: &OperationId,
        subject: &str,
    ) -> Result<(), FreezeError> {
        let freeze_id = self.ordered_id().map_err(FreezeError::Randomness)?;
        let alarm_id = self.ordered_id().map_err(FreezeError::Randomness)?;
        let (id, subject, now) = (operation.clone(), subject.to_owned(), self.now());
        let written = self.store().write(move |unit| {
            Box::pin(async move {
                let operation = unit.ask(operations::find(&id)).await?;
                let raised = raised(&found, operation.as_ref(), Some(subject), alarm_id, now);
                if alarm::raise(unit, &raised).await? {
                    freeze_unless_frozen(unit, &found, operation.as_ref(), freeze_id, now).await?;
                }
                Ok(())
            })
        });
        written.await.map_err(FreezeError::Store)?;
        Ok(())
    }

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
    let in_force = unit.ask(freezes::in_force()).await?;
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
///
/// # Errors
/// The store failed.
pub async fn automatic(
    unit: &mut Unit<'_>,
    automatic: &Automatic,
    operation: Option<&Operation>,
    freeze_id: Uuid,
    alarm_id: Uuid,
    now: Timestamp,
) -> Stored<()> {
    freeze_unless_frozen(unit, automatic, operation, freeze_id, now).await?;
    // Frozen once is frozen; but what happened again is said again.
    alarm::raise(unit, &raised(automatic, operation, None, alarm_id, now)).await?;
    Ok(())
}

async fn freeze_unless_frozen(
    unit: &mut Unit<'_>,
    automatic: &Automatic,
    operation: Option<&Operation>,
    id: Uuid,
    now: Timestamp,
) -> Stored<()> {
    if freezes::stands(unit.conn(), &automatic.scope, automatic.cause).await? {
        return Ok(());
    }
    let freeze = Freeze {
        id: FreezeId::from_uuid(id),
        scope: automatic.scope.clone(),
        reason: automatic.detail.clone(),
        cause: Some(automatic.cause.to_owned()),
        operation: operation.map(|operation| operation.id.clone()),
        placed_by: "countersign".to_owned(),
        placed_at: now,
    };
    place(unit, &freeze).await
}

fn raised(
    automatic: &Automatic,
    operation: Option<&Operation>,
    subject: Option<String>,
    id: Uuid,
    now: Timestamp,
) -> Alarm {
    let (company, counterparty) = match &automatic.scope {
        // What stops everything is told where it happened.
        FreezeScope::All => (operation.map(|caused| caused.origins.company.to_string()), None),
        FreezeScope::Company(company) => (Some(company.clone()), None),
        FreezeScope::Vendor { company, vendor } => (Some(company.clone()), Some(vendor.clone())),
    };
    Alarm {
        id: AlarmId::from_uuid(id),
        kind: automatic.cause.to_owned(),
        company,
        counterparty,
        operation: operation.map(|operation| operation.id.to_string()),
        subject,
        detail: automatic.detail.clone(),
        raised_at: now,
        closed: None,
    }
}
