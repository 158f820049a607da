//! Stage `execution`: claim, decide once more, hand the order over, settle (DESIGN 3).
//!
//! INVARIANT (I2): only a claim makes an attempt, only an attempt's own order is ever sent, and an
//! order is sent once. A claim is one unit of work under the store's lock, in which the one live
//! operation, the budget and the sum of the bill are read again.

use countersign_erp_source::{Marker, Timestamp};

use super::claim::{ClaimContext, Judging, make_attempt, permits, under_lock};
use super::pack::{Denial, Sent};
use super::pipeline::{Evaluated, Permitted, Subject};
use super::{Gateway, Stored, alarm, claim, kill_point, receipt};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::mandate::Authority;
use crate::domain::names::AlarmId;
use crate::domain::operation::{Decision, Held, Operation, Origins, Status};
use crate::domain::reason::Reason;
use crate::ids::NoRandomness;
use crate::receipts::ReceiptKind;
use crate::store::attempts::{self, Attempt, AttemptState};
use crate::store::operations::{self, Owner, Reservation};
use crate::store::{StoreError, Unit, callbacks, people, votes};

/// How long a prepared operation waits for its commit.
const PREPARED_WAITS: std::time::Duration = std::time::Duration::from_hours(24);
/// A claim is left to its daemon for this much longer than its order may be booked.
const LEASE_SLACK: std::time::Duration = std::time::Duration::from_secs(2);
/// How long an operation that cannot be sent, or is not booked, is tried again.
pub(super) const TRIED_FOR: std::time::Duration = std::time::Duration::from_mins(15);
/// The longest arguments that are kept of a proposal that was refused at stage `contract`, in bytes.
const REFUSED_ARGS_MAX: usize = 2048;
/// Nothing reserved.
pub(super) const FREE: Reservation = Reservation { reserved: false, executing_since: None };

/// A decision that is to be written down, and a claim with it where it permits.
#[derive(Debug)]
pub(super) struct Submission {
    /// The operation as it was read, where it is there already.
    pub(super) before: Option<Operation>,
    /// The operation with what is known of it.
    pub(super) operation: Operation,
    /// What the pipeline said.
    pub(super) evaluated: Evaluated,
    /// Only decide.
    pub(super) prepare: bool,
    /// For the claim.
    pub(super) marker: Marker,
    /// For what the humans are told.
    pub(super) alarm: AlarmId,
}

/// An operation that was claimed, with its attempt.
pub(super) type Claimed = (Box<Operation>, Box<Attempt>);

/// What was written down.
#[derive(Debug)]
pub(super) enum Recorded {
    /// The decision, with the attempt where it was claimed.
    Decided(Box<Operation>, Option<Box<Attempt>>),
    /// Somebody else used the same key for the same content first.
    Replay(Box<Operation>),
    /// Somebody else used the same key for other content first.
    KeyReused,
}

impl Gateway {
    pub(super) fn marker(&self) -> Result<Marker, NoRandomness> {
        Ok(Marker::from_bytes(self.random::<16>()?))
    }

    pub(super) fn claim_context(&self, marker: Marker) -> ClaimContext {
        let now = self.now();
        let not_after = now.plus(self.rules().call_deadline);
        ClaimContext {
            marker,
            rulebook: self.rulebook(),
            daemon: self.daemon().to_owned(),
            not_after,
            lease_until: not_after.plus(LEASE_SLACK),
            now,
            waits_until: now.plus(self.rules().expires_after),
        }
    }

    /// Writes a decision down, durably, with its receipt; and claims where it permits.
    pub(super) async fn record(&self, submission: Submission) -> Stored<Recorded> {
        let context = self.claim_context(submission.marker.clone());
        let written = self
            .store()
            .write(move |unit| Box::pin(async move { record(unit, submission, &context).await }))
            .await?;
        Ok(written.value)
    }

    /// Carries a claimed operation through, in a task of its own that no hung-up client and no
    /// shutdown drops half way.
    pub(super) fn drive(&self, operation: Box<Operation>, attempt: Attempt) {
        kill_point("after_claim");
        receipt::log_decision(&operation);
        let gateway = self.clone();
        self.0.tasks.spawn(async move {
            let id = operation.id.clone();
            if let Err(fault) = gateway.carry_through(*operation, attempt).await {
                let fault = anyhow::Error::new(fault);
                tracing::error!(operation.id = %id, "operation {id} is left to the settle worker: {fault:#}");
            }
            gateway.0.changed.notify_waiters();
        });
    }

    async fn carry_through(&self, operation: Operation, attempt: Attempt) -> Stored<()> {
        match self.decide_again(&operation, &attempt).await? {
            Again::Stands => {}
            Again::Retry(because) => return self.not_sent(&operation, &attempt, &because).await,
            Again::Withdraw(withdrawal) => return self.withdraw(&attempt, withdrawal).await,
        }
        // A daemon that was stopped for longer than its lease sends nothing any more.
        if self.now() >= attempt.not_after {
            return self.not_sent(&operation, &attempt, "the order's time was over").await;
        }
        kill_point("before_send");
        let Some(pack) = self.pack_of(&operation.action) else {
            return self.not_sent(&operation, &attempt, "no pack for this action").await;
        };
        let company = &operation.origins.company;
        let sent = pack.send(&operation.action, company, &attempt.order_text).await;
        kill_point("after_send");
        self.settle(&operation, &attempt, sent).await?;
        kill_point("after_settle");
        Ok(())
    }

    /// Runs the stages again for an operation, under its mandate as the registry has it now.
    pub(super) async fn evaluate_again(&self, operation: &Operation) -> Stored<Evaluated> {
        let authority = self.authority(&operation.origins).await?;
        let subject = Subject {
            operation: &operation.id,
            action: &operation.action,
            args: &operation.args,
            authority: &authority,
            held: &operation.held(),
        };
        Ok(self.evaluate(subject).await)
    }

    /// By whose right an operation is, as the registry has it now.
    async fn authority(&self, origins: &Origins) -> Stored<Authority> {
        let Some(id) = origins.mandate() else {
            let (company, human) = (origins.company.clone(), origins.principal.clone());
            return Ok(Authority::Own { company, human });
        };
        let found = self.store().ask(people::find_mandate(id)).await?;
        let (mandate, _) = found.ok_or_else(|| {
            StoreError::inconsistent("operation", "mandate", "is not in the registry")
        })?;
        Ok(mandate.into())
    }

    /// Decides once more on the facts after the claim.
    async fn decide_again(&self, operation: &Operation, attempt: &Attempt) -> Stored<Again> {
        let evaluated = self.evaluate_again(operation).await?;
        let not_ready = self.pack_of(&operation.action).map(|pack| pack.not_ready());
        let same_hash = evaluated.substance.hash.as_deref() == Some(&attempt.operation_hash);
        let hashed = evaluated.hashed().map(ToOwned::to_owned);
        Ok(match &evaluated.verdict {
            Err(denial) if denial.is_error() => {
                Again::Retry(format!("{}: {:?}", denial.detail, denial.evidence))
            }
            Err(denial) => {
                let because = denial.detail.clone();
                let after = Box::new(denied(operation, &evaluated, denial, self.now()));
                Again::withdraw(after, Some(denial.clone()), hashed, because)
            }
            Ok(_) if not_ready.is_none_or(|problems| !problems.is_empty()) => {
                Again::Retry("the ERP's side is not proved safe".to_owned())
            }
            // The votes that were spent were for another hash, or there are none for this level.
            Ok(permitted) if !evaluated.approved => {
                let because = format!("needs a human now: {}", permitted.reasons.join(", "));
                let waits_until = self.now().plus(self.rules().expires_after);
                let after = pending(operation, &evaluated, permitted, waits_until, self.now());
                Again::withdraw(Box::new(after), None, hashed, because)
            }
            Ok(_) if same_hash => Again::Stands,
            Ok(_) => Again::Retry("what was decided on has changed".to_owned()),
        })
    }

    async fn not_sent(&self, operation: &Operation, attempt: &Attempt, why: &str) -> Stored<()> {
        self.settle(operation, attempt, Sent::NotSent { reason: why.to_owned() }).await
    }

    /// Gives a claim up before anything was sent.
    async fn withdraw(&self, attempt: &Attempt, withdrawal: Withdrawal) -> Stored<()> {
        let (id, marker, now) = (attempt.operation.clone(), attempt.marker.clone(), self.now());
        let Withdrawal { mut after, denial, hashed, because } = withdrawal;
        let withdrawn = after.clone();
        self.store()
            .write(move |unit| {
                Box::pin(async move {
                    let state = AttemptState::Withdrawn;
                    if !attempts::settle(unit.conn(), &marker, state, None, &because, now).await? {
                        return Ok(());
                    }
                    let before = get(unit, &id).await?;
                    votes::void(unit.conn(), &id, &because, now).await?;
                    callbacks::give_back(unit.conn(), &id).await?;
                    after.version = before.version;
                    let data = receipt::decision(&after, denial.as_ref(), hashed.as_deref());
                    receipt::leave(unit, &mut after, ReceiptKind::Decision, now, data)?;
                    moved(operations::update(unit.conn(), &before, &after, FREE).await?)
                })
            })
            .await?;
        receipt::log_decision(&withdrawn);
        Ok(())
    }

    /// Decides anew on an operation that executes without an open attempt, or whose attempt is
    /// proved absent, and claims again where it still stands.
    pub(super) async fn try_again(
        &self,
        operation: &Operation,
        proved_absent: Option<&Attempt>,
    ) -> Stored<()> {
        let mut evaluated = self.evaluate_again(operation).await?;
        self.check_ready(&operation.action, &mut evaluated);
        if evaluated.verdict.as_ref().is_err_and(|denial| ends_nothing(operation, denial)) {
            return Ok(());
        }
        let Ok(marker) = self.marker() else { return Ok(()) };
        let context = self.claim_context(marker);
        let (before, absent) = (operation.clone(), proved_absent.cloned());
        let written = self
            .store()
            .write(move |unit| {
                Box::pin(async move {
                    reclaim(unit, &before, absent.as_ref(), evaluated, &context).await
                })
            })
            .await?;
        if let Some((operation, attempt)) = written.value {
            self.drive(operation, *attempt);
        }
        self.0.changed.notify_waiters();
        Ok(())
    }
}

/// Whether the worker only comes back later: after an error; and while the freeze stands that the
/// ERP's contradiction of this very order caused, which is never a mere failure.
fn ends_nothing(operation: &Operation, denial: &Denial) -> bool {
    let contradicted = Reason::ErpContradicts.code();
    denial.is_error()
        || (operation.decision.reasons.iter().any(|code| code == contradicted)
            && denial.says(Reason::Frozen))
}

/// What the decision after the claim came to.
enum Again {
    /// The order may be sent.
    Stands,
    /// Nothing is sent from this claim; the operation stays executing and is decided again.
    Retry(String),
    /// The claim is given up.
    Withdraw(Withdrawal),
}

/// A claim that is given up before anything was sent.
struct Withdrawal {
    /// The operation then: denied, or waiting for a human.
    after: Box<Operation>,
    denial: Option<Denial>,
    hashed: Option<String>,
    because: String,
}

impl Again {
    fn withdraw(
        after: Box<Operation>,
        denial: Option<Denial>,
        hashed: Option<String>,
        because: String,
    ) -> Self {
        Self::Withdraw(Withdrawal { after, denial, hashed, because })
    }
}

async fn record(
    unit: &mut Unit<'_>,
    submission: Submission,
    context: &ClaimContext,
) -> Stored<Recorded> {
    let Submission { before, mut operation, evaluated, prepare, alarm: submission_alarm, .. } =
        submission;
    let owner = Owner {
        company: operation.origins.company.clone(),
        principal: operation.origins.principal.clone(),
        agent: operation.origins.agent().cloned(),
    };
    // INVARIANT: under the store's lock a key belongs to one operation, and an operation that moved
    // since it was read is not written over.
    let found = unit.conn().ask(operations::find_by_key(&owner, &operation.key)).await?;
    if let Some(found) = &found {
        if found.request_digest != operation.request_digest {
            return Ok(Recorded::KeyReused);
        }
        let as_read = before
            .as_ref()
            .is_some_and(|before| before.id == found.id && before.version == found.version);
        if !as_read {
            return Ok(Recorded::Replay(Box::new(found.clone())));
        }
    }
    operation.substance = evaluated.substance.clone();
    operation.updated_at = context.now;
    operation.result = None;
    let judging = Judging {
        operation: &operation,
        evaluated: &evaluated,
        held: &Held::NOTHING,
        may_begin_to_wait: !prepare,
    };
    let verdict = under_lock(unit, judging, context).await?;
    let mut claimed = None;
    let mut hashed = None;
    let denial = match verdict {
        Ok(stands) => {
            stands.put_into(&mut operation, &evaluated);
            if prepare {
                operation.status = Status::Prepared;
                operation.waits_until = Some(context.now.plus(PREPARED_WAITS));
            } else if stands.permitted.level == Level::None {
                operation.status = Status::Executing;
                operation.waits_until = None;
                claimed = Some(make_attempt(unit, &operation, &stands, context).await?);
            } else {
                operation.status = Status::Pending;
                operation.waits_until = Some(context.waits_until);
            }
            hashed = Some(stands.permitted.hashed);
            None
        }
        Err(denial) => {
            operation = denied(&operation, &evaluated, &denial, context.now);
            // What was refused for its form is evidence by its digest; only what is short is kept
            // whole, so that nobody fills the ledger with it.
            if denial.stage == Stage::Contract && operation.args.len() > REFUSED_ARGS_MAX {
                operation.args = String::new();
            }
            // An error in a later decision ends nothing: what was prepared can be committed again.
            if let Some(prepared) =
                before.filter(|before| before.status == Status::Prepared && denial.is_error())
            {
                operation.status = Status::Prepared;
                operation.prepare = true;
                operation.waits_until = prepared.waits_until;
                operation.substance = prepared.substance;
            }
            Some(denial)
        }
    };
    if denial.as_ref().is_some_and(|denial| denial.stage == Stage::Policy)
        && let Some(notice) = evaluated.case.as_ref().and_then(|case| case.notice(&evaluated.facts))
    {
        alarm::notify(unit, &notice, &operation, submission_alarm, context.now).await?;
    }
    let data = receipt::decision(&operation, denial.as_ref(), hashed.as_deref());
    receipt::leave(unit, &mut operation, ReceiptKind::Decision, context.now, data)?;
    let mut reservation = FREE;
    if let Some(attempt) = &claimed {
        let data = receipt::claim(attempt, &context.marker);
        receipt::leave(unit, &mut operation, ReceiptKind::Claim, context.now, data)?;
        reservation = Reservation { reserved: true, executing_since: Some(context.now) };
    }
    match &found {
        None => operations::insert(unit.conn(), &operation, reservation).await?,
        Some(found) => {
            moved(operations::update(unit.conn(), found, &operation, reservation).await?)?;
            operation.version = found.version.saturating_add(1);
        }
    }
    if let Some(attempt) = &claimed {
        claim::keep(unit, attempt, evaluated.case.as_ref()).await?;
    }
    Ok(Recorded::Decided(Box::new(operation), claimed.map(Box::new)))
}

/// Claims again after a new decision. What comes of an operation whose order is proved absent is
/// never a denial: it was once permitted and executed, so it fails.
async fn reclaim(
    unit: &mut Unit<'_>,
    before: &Operation,
    absent: Option<&Attempt>,
    evaluated: Evaluated,
    context: &ClaimContext,
) -> Stored<Option<Claimed>> {
    let Some(found) = unit.ask(operations::find(&before.id)).await? else { return Ok(None) };
    if found.version != before.version {
        return Ok(None);
    }
    if let Some(absent) = absent {
        let note = "proved absent by the ERP";
        let state = AttemptState::Absent;
        if !attempts::settle(unit.conn(), &absent.marker, state, None, note, context.now).await? {
            return Ok(None);
        }
    } else if unit.ask(attempts::find_open(&before.id)).await?.is_some() {
        return Ok(None);
    }
    let reserved = unit.ask(operations::reservation(&before.id)).await?;
    // Surely nothing was changed by the attempt that is over.
    callbacks::give_back(unit.conn(), &found.id).await?;
    let mut after = Operation { updated_at: context.now, ..found.clone() };
    let judging = Judging {
        operation: &found,
        evaluated: &evaluated,
        held: &found.held(),
        may_begin_to_wait: false,
    };
    let verdict = under_lock(unit, judging, context).await?;
    let since = reserved.executing_since.unwrap_or(context.now);
    // An ERP that takes orders and never books them is not asked for ever.
    let in_time = context.now.since(since) < TRIED_FOR;
    let (kind, data, reservation, claimed) = match verdict {
        // After a proof of absence only what was decided before may be tried again.
        Ok(stands)
            if stands.approved
                && (absent.is_none()
                    || (found.substance.hash.as_ref() == Some(&stands.permitted.hash)
                        && in_time)) =>
        {
            stands.put_into(&mut after, &evaluated);
            after.status = Status::Executing;
            let hashed = Some(stands.permitted.hashed.as_str());
            let data = receipt::decision(&after, None, hashed);
            receipt::leave(unit, &mut after, ReceiptKind::Decision, context.now, data)?;
            let attempt = make_attempt(unit, &after, &stands, context).await?;
            let data = receipt::claim(&attempt, &context.marker);
            let held = Reservation { reserved: true, executing_since: Some(since) };
            (ReceiptKind::Claim, data, held, Some(attempt))
        }
        Ok(stands) if absent.is_none() => {
            let because = "what was approved is not what is true now";
            votes::void(unit.conn(), &found.id, because, context.now).await?;
            stands.put_into(&mut after, &evaluated);
            after.status = Status::Pending;
            after.waits_until = Some(context.waits_until);
            after.granted_by = Vec::new();
            let data = receipt::decision(&after, None, Some(&stands.permitted.hashed));
            (ReceiptKind::Decision, data, FREE, None)
        }
        Err(denial) if absent.is_none() => {
            votes::void(unit.conn(), &found.id, &denial.detail, context.now).await?;
            after = denied(&found, &evaluated, &denial, context.now);
            let data = receipt::decision(&after, Some(&denial), None);
            (ReceiptKind::Decision, data, FREE, None)
        }
        Ok(_) | Err(_) => {
            let because = Reason::ProvedAbsent;
            after.status = Status::Failed;
            after.decision.stage = Stage::Execution;
            after.decision.reasons = vec![because.code().to_owned()];
            because.text().clone_into(&mut after.decision.detail);
            let seq = absent.map_or(0, |attempt| attempt.seq);
            let data = receipt::outcome(&after, seq, because.code(), None);
            (ReceiptKind::Outcome, data, FREE, None)
        }
    };
    receipt::leave(unit, &mut after, kind, context.now, data)?;
    moved(operations::update(unit.conn(), &found, &after, reservation).await?)?;
    after.version = found.version.saturating_add(1);
    let Some(attempt) = claimed else { return Ok(None) };
    claim::keep(unit, &attempt, evaluated.case.as_ref()).await?;
    Ok(Some((Box::new(after), Box::new(attempt))))
}

pub(super) fn denied(
    operation: &Operation,
    evaluated: &Evaluated,
    denial: &Denial,
    now: Timestamp,
) -> Operation {
    // What was found out is what the denial rests on, as far as it came.
    let substance = match &evaluated.substance {
        found if found.thing.is_some() => found.clone(),
        _ => operation.substance.clone(),
    };
    Operation {
        status: Status::Denied,
        decision: Decision {
            effect: Effect::Deny,
            stage: denial.stage,
            reasons: denial.reasons.clone(),
            detail: denial.detail.clone(),
            policy: evaluated.policy.clone(),
        },
        substance,
        waits_until: None,
        updated_at: now,
        ..operation.clone()
    }
}

pub(super) fn pending(
    operation: &Operation,
    evaluated: &Evaluated,
    permitted: &Permitted,
    waits_until: Timestamp,
    now: Timestamp,
) -> Operation {
    Operation {
        status: Status::Pending,
        decision: permits(permitted, evaluated.policy.as_deref()),
        substance: evaluated.substance.clone(),
        level: permitted.level,
        barred_by: permitted.reasons.clone(),
        granted_by: Vec::new(),
        waits_until: Some(waits_until),
        updated_at: now,
        ..operation.clone()
    }
}

/// The operation, which must be there.
pub(super) async fn get(
    unit: &mut Unit<'_>,
    id: &crate::domain::names::OperationId,
) -> Stored<Operation> {
    let found = unit.ask(operations::find(id)).await?;
    found.ok_or_else(|| StoreError::inconsistent("operation", "id", "is gone"))
}

/// Within one unit of work nothing else moves a row.
pub(super) fn moved(updated: bool) -> Stored<()> {
    if updated {
        Ok(())
    } else {
        Err(StoreError::inconsistent("operation", "version", "moved within one unit of work"))
    }
}
