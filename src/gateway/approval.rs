//! Stage `approval`: have the right humans voted for this very hash? A human votes, or rejects; when
//! the votes are complete everything is decided again, and executes by itself (DESIGN 2, API 4).
//!
//! A vote is durable before anything is decided with it. So a failure on the way loses none: the
//! settle worker takes up what stands complete, after a crash too.

use std::collections::BTreeSet;

use countersign_erp_source::{CompanyId, Timestamp};

use super::claim::{ClaimContext, Judging, make_attempt, under_lock};
use super::execution::{Claimed, FREE, denied, get, moved};
use super::pipeline::Evaluated;
use super::proposals::EXECUTING_WAIT;
use super::{CallError, Gateway, Stored, claim, kill_point, receipt};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::names::{Name, OperationId, VoteId};
use crate::domain::operation::{Operation, Status};
use crate::domain::reason::Reason;
use crate::domain::role::Role;
use crate::domain::vote::{Barred, NoVote, Standing, may_vote};
use crate::ids::NoRandomness;
use crate::receipts::ReceiptKind;
use crate::store::operations::{self, Reservation};
use crate::store::votes::{self, NewVote};
use crate::store::{StoreError, Unit, callbacks, freezes, people};

/// Why a human's word on an operation is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// No such operation in a company of this human's.
    #[error("no such operation")]
    NotFound,
    /// This human's vote would not count.
    #[error("{0}")]
    NoVote(#[from] NoVote),
    /// This human could not approve it, and it is not his to end.
    #[error("whoever could approve this may reject it, its principal, and an admin of the company")]
    MayNotReject,
    /// It is not pending any more.
    #[error("the operation is {}, and this is not for one that is", .0.code())]
    AlreadyDecided(Status),
    /// Its time is over.
    #[error("nobody answered in time; the operation can be proposed anew")]
    Expired,
    /// The vote is for another hash than the operation has now.
    #[error("the operation is not what was looked at any more; look at it again")]
    Changed,
    /// A freeze is in force.
    #[error("a freeze is in force; nothing that it stops is approved before it is thawed")]
    Frozen,
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

impl From<StoreError> for ApprovalError {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

impl From<CallError> for ApprovalError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotFound | CallError::KeyReused => Self::NotFound,
            CallError::WrongState(operation) => Self::AlreadyDecided(operation.status),
            CallError::Store(fault) => Self::Store(fault),
            CallError::Randomness(fault) => Self::Randomness(fault),
        }
    }
}

/// Nothing but that was written, or why nothing was.
type Undone<T> = Stored<Result<T, ApprovalError>>;

impl Gateway {
    /// A human's vote for exactly that hash. When it completes the level, the operation is decided
    /// again and executes; the answer is the operation as it is then.
    ///
    /// # Errors
    /// [`ApprovalError`]; the vote is not taken then.
    pub async fn approve(
        &self,
        human: &Name,
        id: &OperationId,
        hash: &str,
    ) -> Result<Operation, ApprovalError> {
        let number = self.ordered_id().map_err(ApprovalError::Randomness)?;
        let ballot = Ballot {
            id: VoteId::from_uuid(number),
            operation: id.clone(),
            hash: hash.to_owned(),
            human: human.clone(),
            now: self.now(),
        };
        let voted = self
            .store()
            .write_or_undo(move |unit| Box::pin(async move { cast(unit, &ballot).await }))
            .await??
            .value;
        self.0.changed.notify_waiters();
        kill_point("after_vote");
        if let Err(fault) = self.decide_voted(&voted).await {
            // The vote is durable; the settle worker comes by.
            let fault = anyhow::Error::new(fault);
            tracing::error!(operation.id = %id, "operation {id} could not be decided after a vote: {fault:#}");
        }
        Ok(self.settled(voted.id, EXECUTING_WAIT).await?)
    }

    /// Ends a pending operation: a human says no.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub async fn reject(
        &self,
        human: &Name,
        id: &OperationId,
        reason: &str,
    ) -> Result<Operation, ApprovalError> {
        let (human, id, now) = (human.clone(), id.clone(), self.now());
        let reason = reason.to_owned();
        let rejected = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move { reject(unit, &human, &id, &reason, now).await })
            })
            .await??;
        self.0.changed.notify_waiters();
        Ok(rejected.value)
    }

    /// The company's pending operations after that id that this human could approve.
    ///
    /// # Errors
    /// The store failed.
    pub async fn awaiting(
        &self,
        human: &Name,
        company: &CompanyId,
        after: String,
        limit: u16,
    ) -> Result<Vec<Operation>, StoreError> {
        let (human, company, limit) = (human.clone(), company.clone(), i64::from(limit));
        let now = self.now();
        self.store()
            .read(move |conn| {
                Box::pin(async move {
                    let roles = people::roles(conn, &human, &company).await?;
                    let as_whom =
                        (roles.contains(&Role::Accountant), roles.contains(&Role::Approver));
                    let page = (after.as_str(), limit);
                    operations::awaiting(conn, &company, &human, as_whom, now, page).await
                })
            })
            .await
    }

    /// Decides again on a pending operation that has votes, on the facts of this moment.
    ///
    /// An error ends and voids nothing: the operation stays pending with its votes (API 3).
    pub(super) async fn decide_voted(&self, operation: &Operation) -> Stored<()> {
        let mut evaluated = self.evaluate_again(operation).await?;
        self.check_ready(&operation.action, &mut evaluated);
        if let Err(denial) = &evaluated.verdict
            && denial.is_error()
        {
            let (id, detail) = (&operation.id, &denial.detail);
            tracing::warn!(operation.id = %id, "operation {id} is approved and waits: {detail}");
            return Ok(());
        }
        let Ok(marker) = self.marker() else { return Ok(()) };
        let context = self.claim_context(marker);
        let before = operation.clone();
        let written = self
            .store()
            .write(move |unit| {
                Box::pin(async move { carry_on(unit, &before, &evaluated, &context).await })
            })
            .await?;
        if let Some((operation, attempt)) = written.value {
            self.drive(operation, *attempt);
        }
        self.0.changed.notify_waiters();
        Ok(())
    }
}

/// A vote that is to be cast.
struct Ballot {
    id: VoteId,
    operation: OperationId,
    hash: String,
    human: Name,
    now: Timestamp,
}

/// An operation of a company in which that human has a role, with the roles.
///
/// INVARIANT (I8): another company's operation is as good as none.
pub(super) async fn visible(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &OperationId,
) -> Undone<(Operation, BTreeSet<Role>)> {
    let Some(found) = unit.ask(operations::find(id)).await? else {
        return Ok(Err(ApprovalError::NotFound));
    };
    let roles = people::roles(unit.conn(), human, &found.origins.company).await?;
    if roles.is_empty() {
        return Ok(Err(ApprovalError::NotFound));
    }
    Ok(Ok((found, roles)))
}

/// Whoever called about what that operation is about: when it was decided last, or since.
///
/// INVARIANT (I4): who is not the second person is known by the calls of this moment. A call that came
/// while the operation waited is in no decision yet.
pub(super) async fn callers(
    unit: &mut Unit<'_>,
    operation: &Operation,
    now: Timestamp,
) -> Stored<BTreeSet<Name>> {
    let mut all = operation.substance.not_by.clone();
    if let Some(callback) = &operation.substance.callback {
        let since = callbacks::callers(callback, &operation.id, now);
        all.extend(unit.conn().ask(since).await?);
    }
    Ok(all)
}

/// Who may not be the second person for that operation, of which these called.
pub(super) fn barred<'a>(operation: &'a Operation, callers: &'a BTreeSet<Name>) -> Barred<'a> {
    Barred { principal: &operation.origins.principal, others: callers }
}

/// What those roles make of a human for a vote.
pub(super) fn standing_of(roles: &BTreeSet<Role>) -> Standing {
    Standing {
        is_accountant: roles.contains(&Role::Accountant),
        is_approver: roles.contains(&Role::Approver),
    }
}

fn still_pending(operation: &Operation, now: Timestamp) -> Result<(), ApprovalError> {
    match operation.status {
        Status::Expired => Err(ApprovalError::Expired),
        // One whose time is over is as good as expired, before the worker comes to it.
        Status::Pending if operation.waits_until.is_none_or(|until| until <= now) => {
            Err(ApprovalError::Expired)
        }
        Status::Pending => Ok(()),
        status @ (Status::Prepared
        | Status::Executing
        | Status::Unknown
        | Status::Executed
        | Status::Denied
        | Status::Failed
        | Status::Rejected
        | Status::Cancelled) => Err(ApprovalError::AlreadyDecided(status)),
    }
}

async fn cast(unit: &mut Unit<'_>, ballot: &Ballot) -> Undone<Operation> {
    let (found, roles) = match visible(unit, &ballot.human, &ballot.operation).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let callers = callers(unit, &found, ballot.now).await?;
    if let Err(refusal) = may_be_cast(&found, &callers, &roles, ballot) {
        return Ok(Err(refusal));
    }
    let counterparty = found.substance.counterparty.as_deref().unwrap_or_default();
    if unit.conn().ask(freezes::is_frozen(&found.origins.company, counterparty)).await? {
        return Ok(Err(ApprovalError::Frozen));
    }
    let vote = NewVote {
        id: ballot.id.clone(),
        operation: found.id.clone(),
        hash: ballot.hash.clone(),
        level: found.level,
        voter: ballot.human.clone(),
        cast_at: ballot.now,
        expires_at: found.waits_until.unwrap_or(ballot.now),
    };
    if !votes::cast(unit.conn(), &vote).await? {
        // The same human for the same hash: the vote stands.
        return Ok(Ok(found));
    }
    let mut after = Operation { updated_at: ballot.now, ..found.clone() };
    let data = serde_json::json!({
        "by": ballot.human.as_str(), "expires_at": vote.expires_at, "hash": vote.hash,
        "level": Effect::of_level(vote.level).code(), "vote": vote.id.as_str(),
    });
    receipt::leave(unit, &mut after, ReceiptKind::Vote, ballot.now, data)?;
    moved(operations::update(unit.conn(), &found, &after, FREE).await?)?;
    get(unit, &found.id).await.map(Ok)
}

fn may_be_cast(
    found: &Operation,
    callers: &BTreeSet<Name>,
    roles: &BTreeSet<Role>,
    ballot: &Ballot,
) -> Result<(), ApprovalError> {
    // Where nobody was asked, nobody's vote is refused for who he is.
    if found.level != Level::None {
        may_vote(found.level, barred(found, callers), &ballot.human, standing_of(roles))?;
    }
    still_pending(found, ballot.now)?;
    if found.substance.hash.as_deref() != Some(&*ballot.hash) {
        return Err(ApprovalError::Changed);
    }
    Ok(())
}

async fn reject(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &OperationId,
    reason: &str,
    now: Timestamp,
) -> Undone<Operation> {
    let (found, roles) = match visible(unit, human, id).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let callers = callers(unit, &found, now).await?;
    let could = may_vote(found.level, barred(&found, &callers), human, standing_of(&roles));
    let may = human == &found.origins.principal || roles.contains(&Role::Admin);
    if could.is_err() && !may {
        return Ok(Err(ApprovalError::MayNotReject));
    }
    if let Err(refusal) = still_pending(&found, now) {
        return Ok(Err(refusal));
    }
    votes::void(unit.conn(), &found.id, "the operation was rejected", now).await?;
    let mut after = Operation {
        status: Status::Rejected,
        waits_until: None,
        granted_by: Vec::new(),
        updated_at: now,
        ..found.clone()
    };
    after.decision.effect = Effect::Deny;
    after.decision.stage = Stage::Approval;
    after.decision.reasons = vec![Reason::Rejected.code().to_owned()];
    after.decision.detail = format!("rejected by {human}: {reason}");
    let data = serde_json::json!({
        "by": human.as_str(), "hash": found.substance.hash, "reason": reason,
    });
    receipt::leave(unit, &mut after, ReceiptKind::Rejected, now, data)?;
    moved(operations::update(unit.conn(), &found, &after, FREE).await?)?;
    after.version = found.version.saturating_add(1);
    Ok(Ok(after))
}

/// Executes a pending operation whose votes are complete, or notes what is true now.
async fn carry_on(
    unit: &mut Unit<'_>,
    before: &Operation,
    evaluated: &Evaluated,
    context: &ClaimContext,
) -> Stored<Option<Claimed>> {
    let found = get(unit, &before.id).await?;
    let over = found.waits_until.is_none_or(|until| until <= context.now);
    if found.version != before.version || found.status != Status::Pending || over {
        return Ok(None);
    }
    let mut after = Operation { updated_at: context.now, ..found.clone() };
    let held = found.held();
    let judging = Judging { operation: &found, evaluated, held: &held, may_begin_to_wait: false };
    let verdict = under_lock(unit, judging, context).await?;
    let (reservation, claimed) = match verdict {
        Ok(stands) if stands.approved => {
            stands.put_into(&mut after, evaluated);
            after.status = Status::Executing;
            after.waits_until = None;
            votes::spend(unit.conn(), &found.id, &stands.permitted.hash, context.now).await?;
            let hashed = Some(stands.permitted.hashed.as_str());
            let data = receipt::decision(&after, None, hashed);
            receipt::leave(unit, &mut after, ReceiptKind::Decision, context.now, data)?;
            let attempt = make_attempt(unit, &after, &stands, context).await?;
            let data = receipt::claim(&attempt, &context.marker);
            receipt::leave(unit, &mut after, ReceiptKind::Claim, context.now, data)?;
            let held = Reservation { reserved: true, executing_since: Some(context.now) };
            (held, Some(attempt))
        }
        // Nothing has changed; the votes are not complete (any more).
        Ok(stands) if found.substance.hash.as_ref() == Some(&stands.permitted.hash) => {
            return Ok(None);
        }
        Ok(stands) => {
            let because = "what was approved is not what is true now";
            votes::void(unit.conn(), &found.id, because, context.now).await?;
            stands.put_into(&mut after, evaluated);
            after.granted_by = Vec::new();
            let data = receipt::decision(&after, None, Some(&stands.permitted.hashed));
            receipt::leave(unit, &mut after, ReceiptKind::Decision, context.now, data)?;
            (FREE, None)
        }
        // What is pending stays pending through an error, and while a freeze stands (API 4).
        Err(denial) if denial.is_error() || denial.says(Reason::Frozen) => return Ok(None),
        Err(denial) => {
            votes::void(unit.conn(), &found.id, &denial.detail, context.now).await?;
            after = denied(&found, evaluated, &denial, context.now);
            let data = receipt::decision(&after, Some(&denial), None);
            receipt::leave(unit, &mut after, ReceiptKind::Decision, context.now, data)?;
            (FREE, None)
        }
    };
    moved(operations::update(unit.conn(), &found, &after, reservation).await?)?;
    after.version = found.version.saturating_add(1);
    let Some(attempt) = claimed else { return Ok(None) };
    claim::keep(unit, &attempt, evaluated.case.as_ref()).await?;
    Ok(Some((Box::new(after), Box::new(attempt))))
}
