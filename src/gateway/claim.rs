//! What is judged under the claim's lock, and what a claim makes (DESIGN 3): one transaction in which
//! how things stand in the store is read again, and policy asked again where the sums have moved.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_erp_source::{Marker, Timestamp};

use super::Stored;
use super::pack::{Case, Claim, Denial};
use super::pipeline::{self, Evaluated, Permitted, Rulebook, Subject};
use super::standing::{self, Asked, Standing};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::operation::{Decision, Held, KeptFact, Operation, Substance, Sum};
use crate::domain::reason::Reason;
use crate::store::attempts::{self, Attempt, AttemptState};
use crate::store::{StoreError, Unit, callbacks, precedents};

/// What a claim needs beside the case.
#[derive(Debug, Clone)]
pub(super) struct ClaimContext {
    pub(super) marker: Marker,
    pub(super) rulebook: Rulebook,
    pub(super) daemon: String,
    pub(super) not_after: Timestamp,
    pub(super) lease_until: Timestamp,
    pub(super) now: Timestamp,
    /// Until when an operation that begins to wait now waits for a human.
    pub(super) waits_until: Timestamp,
}

/// What stands under the claim's lock.
pub(super) struct Stands {
    /// What the policy permits, on the sums of this moment.
    pub(super) permitted: Permitted,
    /// Whether the right humans have voted for exactly that.
    pub(super) approved: bool,
    case: Arc<dyn Case>,
    standing: Standing,
    facts: BTreeMap<String, KeptFact>,
}

impl Stands {
    /// Notes what was decided with the operation.
    pub(super) fn put_into(&self, operation: &mut Operation, evaluated: &Evaluated) {
        let permitted = &self.permitted;
        operation.decision = permits(permitted, evaluated.policy.as_deref());
        operation.level = permitted.level;
        operation.barred_by = match permitted.level {
            Level::None => Vec::new(),
            Level::StepUp | Level::FourEyes => permitted.reasons.clone(),
        };
        operation.substance = Substance {
            facts: self.facts.clone(),
            hash: Some(permitted.hash.clone()),
            ..evaluated.substance.clone()
        };
    }
}

/// What is judged under the lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judging<'a> {
    pub(super) operation: &'a Operation,
    /// What the pipeline said before the lock.
    pub(super) evaluated: &'a Evaluated,
    /// The level that the operation holds on to.
    pub(super) held: &'a Held,
    /// Whether the operation may begin to wait for a human: then one more of its mandate does.
    pub(super) may_begin_to_wait: bool,
}

/// What the pipeline permitted, judged again under the store's lock, in pure code: on the sums of
/// the mandate, of the thing, and of what went out without a human.
///
/// INVARIANT (I2, and the limits on what goes out without a human): nothing is claimed on sums that
/// were read before the lock.
pub(super) async fn under_lock(
    unit: &mut Unit<'_>,
    judging: Judging<'_>,
    context: &ClaimContext,
) -> Stored<Result<Stands, Denial>> {
    let evaluated = judging.evaluated;
    let permitted = match &evaluated.verdict {
        Ok(permitted) => permitted.clone(),
        Err(denial) => return Ok(Err(denial.clone())),
    };
    let Some(case) = evaluated.case.clone() else {
        return Ok(Err(Denial::new(Stage::Error, Reason::PolicyFailed)));
    };
    let origins = &judging.operation.origins;
    let resolved = case.resolved();
    let asked = Asked {
        company: origins.company.clone(),
        principal: origins.principal.clone(),
        mandate: origins.mandate().cloned(),
        operation: judging.operation.id.clone(),
        thing: resolved.thing.clone(),
        counterparty: resolved.counterparty.clone(),
        callback: resolved.callback.clone(),
        currency: resolved.sum.map(|sum| sum.amount.currency()),
        at: context.now,
    };
    let standing = unit.conn().ask(standing::of(asked)).await?;
    Ok(judging.stands(&context.rulebook, permitted, case, standing))
}

impl Judging<'_> {
    fn stands(
        self,
        rulebook: &Rulebook,
        permitted: Permitted,
        case: Arc<dyn Case>,
        standing: Standing,
    ) -> Result<Stands, Denial> {
        let (operation, evaluated) = (self.operation, self.evaluated);
        let resolved = case.resolved();
        let authority = standing.judge(&operation.action, resolved)?;
        standing.judge_sums(resolved)?;
        let mut facts = evaluated.facts.clone();
        case.add_volume(&mut facts, &standing.volume);
        let permitted = if evaluated.volume == Some(standing.volume) {
            permitted
        } else {
            let subject = Subject {
                operation: &operation.id,
                action: &operation.action,
                args: &operation.args,
                authority: &authority,
                held: self.held,
            };
            rulebook.decide(subject, case.as_ref(), &facts, &standing)?
        };
        if self.may_begin_to_wait && permitted.level != Level::None {
            standing.judge_pending()?;
        }
        let approved = standing.is_approved(permitted.level, &permitted.hash, &resolved.not_by);
        Ok(Stands { permitted, approved, case, standing, facts: pipeline::keep(&facts) })
    }
}

/// Makes the attempt of an operation that stands, with the order's exact text.
pub(super) async fn make_attempt(
    unit: &mut Unit<'_>,
    operation: &Operation,
    stands: &Stands,
    context: &ClaimContext,
) -> Stored<Attempt> {
    let resolved = stands.case.resolved();
    let seq = unit.next_order_seq().await?;
    let sum = resolved.sum.map(|sum| Sum { total: stands.standing.pinned_total(sum), ..sum });
    let claim = Claim {
        marker: context.marker.clone(),
        store: context.rulebook.store.clone(),
        seq: u64::try_from(seq)
            .map_err(|_negative| StoreError::inconsistent("store", "order_seq", "is negative"))?,
        total: sum.map(|sum| sum.total),
        not_after: context.not_after,
    };
    Ok(Attempt {
        marker: context.marker.to_hex(),
        seq,
        operation: operation.id.clone(),
        company: operation.origins.company.clone(),
        thing: resolved.thing.clone(),
        counterparty: resolved.counterparty.clone(),
        sum,
        order_text: stands.case.order(&claim),
        operation_hash: stands.permitted.hash.clone(),
        not_after: context.not_after,
        lease_until: context.lease_until,
        daemon: context.daemon.clone(),
        state: AttemptState::Open,
        payment: None,
        claimed_at: context.now,
    })
}

/// Writes an attempt down, and what it was made for, which later decisions compare with.
pub(super) async fn keep(
    unit: &mut Unit<'_>,
    attempt: &Attempt,
    case: Option<&Arc<dyn Case>>,
) -> Stored<()> {
    let case =
        case.ok_or_else(|| StoreError::inconsistent("attempt", "operation", "has no case"))?;
    let resolved = case.resolved();
    attempts::insert(unit.conn(), attempt).await?;
    if let Some(callback) = &resolved.callback {
        // Looked at before under the same lock; now it is taken.
        let (id, at) = (&attempt.operation, attempt.claimed_at);
        if !callbacks::spend(unit.conn(), callback, id, at).await? {
            return Err(StoreError::inconsistent("callback", "state", "is not open any more"));
        }
    }
    let (Some(precedent), Some(sum)) = (&resolved.precedent, attempt.sum) else { return Ok(()) };
    let reference = precedent.reference.as_ref();
    let payee = &precedent.payee;
    precedents::keep(unit.conn(), attempt, sum.total, payee, reference, precedent.dated).await
}

pub(super) fn permits(permitted: &Permitted, policy: Option<&str>) -> Decision {
    let because = &permitted.because;
    Decision {
        effect: Effect::of_level(permitted.level),
        stage: Stage::Policy,
        reasons: permitted.reasons.clone(),
        detail: match permitted.level {
            Level::None => "permitted".to_owned(),
            Level::StepUp => format!("Needs the principal's vote. {because}"),
            Level::FourEyes => format!("Needs an approver's vote. {because}"),
        },
        policy: policy.map(ToOwned::to_owned),
    }
}
