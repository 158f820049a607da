//! What a caller may do with operations: propose, commit, cancel, follow its own.

use std::sync::Arc;
use std::time::Duration;

use countersign_erp_source::{CompanyId, Timestamp};

use super::authn::Caller;
use super::contract::{Mode, Proposal};
use super::execution::{Recorded, Submission};
use super::pack::Denial;
use super::pipeline::Subject;
use super::{Gateway, receipt};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::mandate::Authority;
use crate::domain::names::{AlarmId, Name, OperationId};
use crate::domain::operation::{
    Decision, Held, Operation, Origins, ReceiptRef, Status, Substance, Through,
};
use crate::domain::reason::Reason;
use crate::ids::NoRandomness;
use crate::receipts::ReceiptKind;
use crate::store::operations::{self, Owner};
use crate::store::{StoreError, votes};

/// How long a call waits for an operation to leave `executing`.
pub(super) const EXECUTING_WAIT: Duration = Duration::from_secs(5);
/// How often a waiting call looks for what another daemon did.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// An operation as an answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The operation.
    pub operation: Operation,
    /// Whether the key had been used for the same content before.
    pub replayed: bool,
}

/// Why a call has no operation for an answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The key was used for other content.
    #[error("the idempotency key was used for another proposal")]
    KeyReused,
    /// No such operation of this caller.
    #[error("no such operation")]
    NotFound,
    /// The operation is not in a state in which this can be done.
    #[error("the operation is {}", .0.status.code())]
    WrongState(Box<Operation>),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

impl From<StoreError> for CallError {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

impl From<NoRandomness> for CallError {
    fn from(fault: NoRandomness) -> Self {
        Self::Randomness(fault)
    }
}

/// Whose operations a caller may see.
pub(super) fn owner(caller: &Caller) -> Owner {
    Owner {
        company: caller.mandate.company.clone(),
        principal: caller.mandate.principal.clone(),
        agent: Some(caller.mandate.agent.clone()),
    }
}

/// A denial at stage `error` binds no key: the same call decides anew, on the same operation.
fn may_decide_anew(operation: &Operation) -> bool {
    operation.status == Status::Denied && operation.decision.stage == Stage::Error
}

impl Gateway {
    /// Decides on a proposal and, where it is permitted and to be committed, executes it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn propose(
        &self,
        caller: &Caller,
        key: &str,
        proposal: Proposal,
    ) -> Result<Answer, CallError> {
        let owner = owner(caller);
        let before = self.find_by_key(&owner, key).await?;
        if let Some(before) = &before {
            if before.request_digest != proposal.digest {
                return Err(CallError::KeyReused);
            }
            if !may_decide_anew(before) {
                let operation = self.settled(before.id.clone(), EXECUTING_WAIT).await?;
                return Ok(Answer { operation, replayed: true });
            }
        }
        let now = self.now();
        let operation = if let Some(before) = &before {
            let origins = before.origins.under(&caller.mandate.id);
            Operation { origins, updated_at: now, ..before.clone() }
        } else {
            let (agent, mandate) = (caller.mandate.agent.clone(), caller.mandate.id.clone());
            let origins = Origins {
                company: caller.mandate.company.clone(),
                principal: caller.mandate.principal.clone(),
                through: Through::Agent { agent, mandate },
            };
            self.draft(origins, key, &proposal, now)?
        };
        self.submit(&caller.mandate.clone().into(), before, operation, proposal.mode).await
    }

    /// Decides on what a human begins for himself and, where it is permitted, executes it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn begin_own(
        &self,
        company: CompanyId,
        human: Name,
        proposal: Proposal,
    ) -> Result<Operation, CallError> {
        let origins = Origins {
            company: company.clone(),
            principal: human.clone(),
            through: Through::Nobody,
        };
        // Nobody repeats it by a key: what keeps it from being begun twice is its thing.
        let mut operation = self.draft(origins, "", &proposal, self.now())?;
        operation.key = operation.id.to_string();
        let authority = Authority::Own { company, human };
        Ok(self.submit(&authority, None, operation, Some(Mode::Commit)).await?.operation)
    }

    /// Decides on a prepared operation again, on the facts of this moment, and executes it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn commit(&self, caller: &Caller, id: &OperationId) -> Result<Answer, CallError> {
        let before = self.own(caller, id).await?;
        if !before.prepare {
            // A commit that was answered before is answered again with what came of it.
            let operation = self.settled(before.id, EXECUTING_WAIT).await?;
            return Ok(Answer { operation, replayed: true });
        }
        // One whose time is over is as good as expired, before the worker comes to it.
        let over = before.waits_until.is_some_and(|until| until <= self.now());
        if before.status != Status::Prepared || over {
            return Err(CallError::WrongState(Box::new(before)));
        }
        let operation = Operation {
            origins: before.origins.under(&caller.mandate.id),
            prepare: false,
            updated_at: self.now(),
            ..before.clone()
        };
        let authority = caller.mandate.clone().into();
        self.submit(&authority, Some(before), operation, Some(Mode::Commit)).await
    }

    /// Withdraws an operation that has not executed.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cancel(&self, caller: &Caller, id: &OperationId) -> Result<Operation, CallError> {
        let before = self.own(caller, id).await?;
        if before.status == Status::Cancelled {
            return Ok(before);
        }
        if !matches!(before.status, Status::Prepared | Status::Pending) {
            return Err(CallError::WrongState(Box::new(before)));
        }
        let cancelled =
            self.end_waiting(&before, Status::Cancelled, "the caller withdrew it").await?;
        match cancelled {
            Some(operation) => Ok(operation),
            // Somebody was first; if he withdrew it as well, it is withdrawn.
            None => match self.own(caller, id).await? {
                now if now.status == Status::Cancelled => Ok(now),
                now => Err(CallError::WrongState(Box::new(now))),
            },
        }
    }

    /// One of the caller's own operations, waiting for it to leave a waiting state.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn follow(
        &self,
        caller: &Caller,
        id: &OperationId,
        wait: Duration,
    ) -> Result<Operation, CallError> {
        let found = self.own(caller, id).await?;
        if wait.is_zero() || found.status.is_final() {
            return Ok(found);
        }
        self.wait_until(found.id, wait, |operation| operation.status.is_final()).await
    }

    /// The caller's own operations after that id, ascending.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn own_operations(
        &self,
        caller: &Caller,
        status: Option<Status>,
        after: String,
        limit: u16,
    ) -> Result<Vec<Operation>, CallError> {
        let owner = owner(caller);
        let limit = i64::from(limit);
        Ok(self
            .store()
            .read(move |conn| {
                Box::pin(async move { operations::list(conn, &owner, status, &after, limit).await })
            })
            .await?)
    }

    /// What the mandate's operations hold of its budget (minor units) and calls.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reserved(&self, caller: &Caller) -> Result<(i64, i64), CallError> {
        let mandate = &caller.mandate.id;
        let none = OperationId::from_uuid(uuid::Uuid::nil());
        Ok(self.store().ask(operations::reserved(mandate, &none)).await?)
    }

    async fn submit(
        &self,
        authority: &Authority,
        before: Option<Operation>,
        operation: Operation,
        mode: Option<Mode>,
    ) -> Result<Answer, CallError> {
        let subject = Subject {
            operation: &operation.id,
            action: &operation.action,
            args: &operation.args,
            authority,
            held: &Held::NOTHING,
        };
        let mut evaluated = self.evaluate(subject).await;
        if mode.is_none()
            && evaluated.verdict.as_ref().err().map(|d| d.stage) != Some(Stage::Contract)
        {
            evaluated.verdict = Err(Denial::new(Stage::Contract, Reason::InvalidMode));
        }
        let prepare = mode == Some(Mode::Prepare);
        if !prepare {
            self.check_ready(&operation.action, &mut evaluated);
        }
        let (marker, alarm) = (self.marker()?, AlarmId::from_uuid(self.ordered_id()?));
        let submission = Submission { before, operation, evaluated, prepare, marker, alarm };
        match self.record(submission).await? {
            Recorded::Decided(operation, None) => {
                receipt::log_decision(&operation);
                self.0.changed.notify_waiters();
                Ok(Answer { operation: *operation, replayed: false })
            }
            Recorded::Decided(operation, Some(attempt)) => {
                let id = operation.id.clone();
                self.drive(operation, *attempt);
                let operation = self.settled(id, EXECUTING_WAIT).await?;
                Ok(Answer { operation, replayed: false })
            }
            Recorded::Replay(operation) => {
                let operation = self.settled(operation.id, EXECUTING_WAIT).await?;
                Ok(Answer { operation, replayed: true })
            }
            Recorded::KeyReused => Err(CallError::KeyReused),
        }
    }

    fn draft(
        &self,
        origins: Origins,
        key: &str,
        proposal: &Proposal,
        now: Timestamp,
    ) -> Result<Operation, CallError> {
        Ok(Operation {
            id: OperationId::from_uuid(self.ordered_id()?),
            action: proposal.action.clone(),
            origins,
            key: key.to_owned(),
            request_digest: proposal.digest.clone(),
            args: proposal.args.clone(),
            prepare: proposal.mode == Some(Mode::Prepare),
            status: Status::Denied,
            decision: Decision {
                effect: Effect::Deny,
                stage: Stage::Error,
                reasons: Vec::new(),
                detail: String::new(),
                policy: None,
            },
            substance: Substance::default(),
            level: Level::None,
            barred_by: Vec::new(),
            granted_by: Vec::new(),
            waits_until: None,
            result: None,
            receipt: ReceiptRef { seq: 0, hash: String::new() },
            created_at: now,
            updated_at: now,
            version: 1,
        })
    }

    async fn find_by_key(&self, owner: &Owner, key: &str) -> Result<Option<Operation>, CallError> {
        Ok(self.store().ask(operations::find_by_key(owner, key)).await?)
    }

    /// INVARIANT (I8): another caller's operation is as good as none.
    async fn own(&self, caller: &Caller, id: &OperationId) -> Result<Operation, CallError> {
        let found = self.find(id).await?.ok_or(CallError::NotFound)?;
        let owner = owner(caller);
        let is_own = found.origins.company == owner.company
            && found.origins.principal == owner.principal
            && found.origins.agent() == owner.agent.as_ref();
        if is_own { Ok(found) } else { Err(CallError::NotFound) }
    }

    pub(super) async fn find(&self, id: &OperationId) -> Result<Option<Operation>, StoreError> {
        self.store().ask(operations::find(id)).await
    }

    /// The operation once it has left `executing`, or as it is when the wait is over.
    pub(super) async fn settled(
        &self,
        id: OperationId,
        wait: Duration,
    ) -> Result<Operation, CallError> {
        self.wait_until(id, wait, |operation| operation.status != Status::Executing).await
    }

    pub(super) async fn wait_until(
        &self,
        id: OperationId,
        wait: Duration,
        done: impl Fn(&Operation) -> bool,
    ) -> Result<Operation, CallError> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let changed = self.0.changed.notified();
            let operation = self.find(&id).await?.ok_or(CallError::NotFound)?;
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if done(&operation) || left.is_zero() {
                return Ok(operation);
            }
            // Another daemon's work wakes nobody here: look again after a while.
            drop(tokio::time::timeout(left.min(LOOK_AGAIN), changed).await);
        }
    }

    /// Ends an operation that only waits. `None` if it moved meanwhile.
    pub(super) async fn end_waiting(
        &self,
        before: &Operation,
        status: Status,
        because: &str,
    ) -> Result<Option<Operation>, StoreError> {
        let before = before.clone();
        let (now, because) = (self.now(), because.to_owned());
        let written = self
            .store()
            .write(move |unit| {
                Box::pin(async move { end_waiting(unit, &before, status, &because, now).await })
            })
            .await?;
        self.0.changed.notify_waiters();
        Ok(written.value)
    }
}

/// Ends an operation that only waits, within a unit of work.
pub(super) async fn end_waiting(
    unit: &mut crate::store::Unit<'_>,
    before: &Operation,
    status: Status,
    because: &str,
    now: Timestamp,
) -> Result<Option<Operation>, StoreError> {
    let Some(found) = unit.ask(operations::find(&before.id)).await? else { return Ok(None) };
    // What moved since it was read is judged anew, by whoever comes next.
    let moved = found.version != before.version;
    if moved || !matches!(found.status, Status::Prepared | Status::Pending) {
        return Ok(None);
    }
    let kind =
        if status == Status::Expired { ReceiptKind::Expired } else { ReceiptKind::Cancelled };
    votes::void(unit.conn(), &found.id, because, now).await?;
    let mut ended = Operation {
        status,
        waits_until: None,
        granted_by: Vec::new(),
        updated_at: now,
        ..found.clone()
    };
    let data = serde_json::json!({ "because": because, "status": status.code() });
    receipt::leave(unit, &mut ended, kind, now, data)?;
    let reservation = operations::Reservation { reserved: false, executing_since: None };
    if operations::update(unit.conn(), &found, &ended, reservation).await? {
        ended.version = found.version.saturating_add(1);
        Ok(Some(ended))
    } else {
        Err(StoreError::inconsistent("operation", "version", "moved within one unit of work"))
    }
}

/// Refuses a prepared or pending operation for what became known meanwhile, within a unit of work.
///
/// # Errors
/// The store failed.
pub async fn refuse_waiting(
    unit: &mut crate::store::Unit<'_>,
    before: &Operation,
    denial: &Denial,
    now: Timestamp,
) -> Result<(), StoreError> {
    votes::void(unit.conn(), &before.id, &denial.detail, now).await?;
    let mut refused = Operation {
        status: Status::Denied,
        waits_until: None,
        granted_by: Vec::new(),
        updated_at: now,
        ..before.clone()
    };
    refused.decision.effect = Effect::Deny;
    refused.decision.stage = denial.stage;
    refused.decision.reasons = denial.reasons.clone();
    refused.decision.detail = denial.detail.clone();
    let data = receipt::decision(&refused, Some(denial), None);
    receipt::leave(unit, &mut refused, ReceiptKind::Decision, now, data)?;
    let reservation = operations::Reservation { reserved: false, executing_since: None };
    if operations::update(unit.conn(), before, &refused, reservation).await? {
        Ok(())
    } else {
        Err(StoreError::inconsistent("operation", "version", "moved within one unit of work"))
    }
}

impl Gateway {
    /// Where the ERP's side is not proved safe, nothing is executed.
    pub(super) fn check_ready(&self, action: &str, evaluated: &mut super::pipeline::Evaluated) {
        if evaluated.verdict.is_err() {
            return;
        }
        let problems = self.pack_of(action).map(|pack| Arc::clone(pack).not_ready());
        if let Some(problems) = problems.filter(|problems| !problems.is_empty()) {
            evaluated.verdict = Err(Denial::error(Reason::ErpNotReady, problems.join("; ")));
        }
    }
}
