//! Stages `delegation`, `budget`, `approval` and the sums of `execution`: how things stand for one
//! proposal in the store at one moment. Read before policy is asked, and again under the claim's own
//! lock.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_erp_source::{Amount, CompanyId, Currency, Timestamp};

use super::pack::{Denial, Resolved, Volume};
use crate::domain::decision::{Level, Stage};
use crate::domain::mandate::{Authority, Mandate};
use crate::domain::names::{CallbackId, MandateId, Name, OperationId};
use crate::domain::operation::{Operation, Sum};
use crate::domain::reason::Reason;
use crate::domain::vote::{Barred, Vote};
use crate::store::attempts::{self, Claimed};
use crate::store::people::{self, Role};
use crate::store::{Questions, callbacks, freezes, operations, votes};

/// The most operations of one mandate that may be pending.
pub const PENDING_MAX: i64 = 20;
/// How long a thing that a human rejected is not accepted again from the same principal's agents.
const REJECTED_FOR: Duration = Duration::from_hours(24);
/// What the sums of a day look back on.
const DAY: Duration = Duration::from_hours(24);
/// What the sums of a month look back on.
const MONTH: Duration = Duration::from_hours(30 * 24);

/// What the store holds that concerns one proposal.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// By whose right it is, as the registry has it now.
    right: Right,
    /// The company.
    company: CompanyId,
    /// The human who answers for it.
    principal: Name,
    /// Minor units of the budget that other operations hold.
    pub(super) reserved_minor: i64,
    /// Calls that other operations hold.
    pub(super) calls: i64,
    /// The live operation on the thing, if it is another one.
    pub(super) live: Option<Operation>,
    /// What other operations have claimed or booked on the thing, and the pinned total.
    pub(super) claimed: Claimed,
    /// Whether a freeze is in force.
    pub(super) frozen: bool,
    /// How many operations of the mandate are pending.
    pub(super) pending: i64,
    /// Whether a human rejected the same thing of the same principal's agents not long ago.
    pub(super) recently_rejected: bool,
    /// Whether the call-back that it rests on is still its to spend; `true` where it rests on none.
    pub(super) callback_stands: bool,
    /// What went out without a human.
    pub(super) volume: Volume,
    /// The operation's own votes that are not void.
    pub(super) votes: Vec<Vote>,
    /// When it was read, by the daemon's clock.
    pub(super) at: Timestamp,
}

/// By whose right an operation is, as the store has it at one moment.
#[derive(Debug, Clone)]
enum Right {
    /// An agent's, under a mandate.
    Mandate {
        /// The mandate, if the registry has it.
        mandate: Option<Box<Mandate>>,
        /// Whether its principal is an active accountant of the company.
        principal_active: bool,
    },
    /// A human's own.
    Own {
        /// Whether he is an active accountant or approver of the company.
        active: bool,
    },
}

/// Of which operation it is asked how things stand.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) company: CompanyId,
    pub(super) principal: Name,
    pub(super) mandate: Option<MandateId>,
    pub(super) operation: OperationId,
    pub(super) thing: String,
    pub(super) counterparty: String,
    /// The call-back that it rests on.
    pub(super) callback: Option<CallbackId>,
    /// In what the sums are counted, where money moves.
    pub(super) currency: Option<Currency>,
    pub(super) at: Timestamp,
}

/// How things stand for that operation.
pub(super) fn of(asked: Asked) -> impl Questions<Answer = Standing> {
    let Asked { company, principal, mandate, operation, thing, counterparty, .. } = &asked;
    let at = asked.at;
    let callback = asked.callback.as_ref();
    let mandate = mandate.as_ref();
    let right = (
        mandate.map(|mandate| Right::by_mandate(mandate, company)),
        mandate.is_none().then(|| Right::own(principal, company)),
    );
    let of_caller = (
        mandate.map(|mandate| operations::reserved(mandate, operation)),
        match mandate {
            Some(mandate) => operations::count_pending(mandate),
            None => operations::count_own_pending(company, principal),
        },
        mandate
            .map(|_| operations::was_rejected(company, thing, principal, at.minus(REJECTED_FOR))),
        asked.currency.map(|currency| volume(&asked, currency)),
    );
    let of_thing = (
        operations::find_live(company, thing),
        attempts::claimed(company, thing, operation),
        freezes::is_frozen(company, counterparty),
        votes::standing(operation),
        callback.map(|callback| callbacks::may_be_spent(callback, operation, at)),
    );
    (right, of_caller, of_thing).then(move |((by_mandate, own), of_caller, of_thing)| {
        let (reserved, pending, recently_rejected, volume) = of_caller;
        let (live, claimed, frozen, votes, callback_stands) = of_thing;
        let (reserved_minor, calls) = reserved.unwrap_or((0, 0));
        Ok(Standing {
            right: by_mandate.or(own).unwrap_or(Right::NONE),
            reserved_minor,
            calls,
            live: live.filter(|live| live.id != asked.operation),
            claimed,
            frozen,
            pending,
            recently_rejected: recently_rejected.unwrap_or(false),
            callback_stands: callback_stands.unwrap_or(true),
            volume: volume.unwrap_or(Volume::NONE),
            votes,
            company: asked.company,
            principal: asked.principal,
            at,
        })
    })
}

impl Right {
    /// Nobody's.
    const NONE: Self = Self::Own { active: false };

    fn by_mandate(
        mandate: &MandateId,
        company: &CompanyId,
    ) -> impl Questions<Answer = Self> + use<> {
        let company = company.clone();
        people::granted(mandate).then(move |granted| {
            let principal_active = granted.as_ref().is_some_and(|granted| {
                granted.principal_active && granted.mandate.company == company
            });
            let mandate = granted.map(|granted| Box::new(granted.mandate));
            Ok(Self::Mandate { mandate, principal_active })
        })
    }

    fn own(human: &Name, company: &CompanyId) -> impl Questions<Answer = Self> + use<> {
        let roles = (
            people::holds_role(human, company, Role::Accountant),
            people::holds_role(human, company, Role::Approver),
        );
        roles.then(|(accountant, approver)| Ok(Self::Own { active: accountant || approver }))
    }
}

fn volume(asked: &Asked, currency: Currency) -> impl Questions<Answer = Volume> + use<> {
    let since = (asked.at.minus(DAY), asked.at.minus(MONTH));
    let (company, counterparty) = (&asked.company, &asked.counterparty);
    let went_out = operations::automatic(company, counterparty, &asked.operation, since);
    went_out.then(move |went_out| {
        let e2 = |minor| Amount::from_minor(minor, currency).hundredths_rounded_up();
        Ok(Volume {
            counterparty_day: e2(went_out.counterparty_day),
            company_day: e2(went_out.company_day),
            counterparty_month: e2(went_out.counterparty_month),
            company_month: e2(went_out.company_month),
        })
    })
}

impl Standing {
    /// What forbids the operation now, in the order of the stages; gives by whose right it is, which
    /// is in force.
    ///
    /// # Errors
    /// The first denial.
    pub(super) fn judge(&self, action: &str, resolved: &Resolved) -> Result<Authority, Denial> {
        let authority = self.in_force()?;
        if let Some(mandate) = authority.mandate() {
            if !mandate.holds(action) {
                return Err(Denial::new(Stage::Delegation, Reason::ScopeNotHeld));
            }
            self.within_budget(mandate, resolved.sum)?;
        }
        if let Some(sum) = resolved.sum {
            self.not_paid(sum)?;
        }
        if let Some(live) = &self.live {
            return Err(in_progress(live, &authority));
        }
        // INVARIANT (I4): a call-back that is void, over, or another operation's by now carries
        // nothing.
        if !self.callback_stands {
            return Err(Denial::new(Stage::Policy, Reason::FloorNoCallback));
        }
        if self.frozen {
            return Err(Denial::new(Stage::Execution, Reason::Frozen));
        }
        if self.recently_rejected {
            return Err(Denial::new(Stage::Execution, Reason::RecentlyRejected));
        }
        Ok(authority)
    }

    /// Stage `approval`: whether the right humans voted for this very hash.
    ///
    /// INVARIANT (I5): a vote counts for its own operation and hash, until it expires, and only
    /// while its human may still give it.
    pub(super) fn is_approved(&self, level: Level, hash: &str, not_by: &BTreeSet<Name>) -> bool {
        let barred = Barred { principal: &self.principal, others: not_by };
        level == Level::None
            || self.votes.iter().any(|vote| vote.completes(level, barred, hash, self.at))
    }

    /// By whose right it is, if it may still execute. A mandate's expiry is judged where it is
    /// presented.
    fn in_force(&self) -> Result<Authority, Denial> {
        match &self.right {
            Right::Mandate { mandate: Some(mandate), principal_active: true }
                if mandate.revoked_at.is_none() =>
            {
                Ok(Authority::Mandate(mandate.clone()))
            }
            Right::Own { active: true } => {
                Ok(Authority::Own { company: self.company.clone(), human: self.principal.clone() })
            }
            Right::Mandate { .. } => Err(Denial::new(Stage::Authn, Reason::MandateRevoked)),
            Right::Own { .. } => Err(Denial::new(Stage::Authn, Reason::RoleNotHeld)),
        }
    }

    fn within_budget(&self, mandate: &Mandate, sum: Option<Sum>) -> Result<(), Denial> {
        if let (Some(budget), Some(Sum { amount, .. })) = (mandate.budget, sum) {
            let fits = amount.currency() == budget.currency()
                && self
                    .reserved_minor
                    .checked_add(amount.minor())
                    .is_some_and(|sum| sum <= budget.minor());
            if !fits {
                return Err(Denial::new(Stage::Budget, Reason::BudgetExceeded));
            }
        }
        if mandate.calls_max.is_some_and(|most| self.calls >= most) {
            return Err(Denial::new(Stage::Budget, Reason::CallsExceeded));
        }
        Ok(())
    }

    fn not_paid(&self, sum: Sum) -> Result<(), Denial> {
        let pinned = self.pinned_total(sum);
        // What only may be booked is somebody's live operation, not a paid bill.
        if self.claimed.booked_minor > 0 && self.claimed.booked_minor >= pinned.minor() {
            return Err(Denial::new(Stage::Execution, Reason::AlreadyPaid));
        }
        Ok(())
    }

    /// The total that binds: the one of the first claim that may be booked, else the present one.
    pub(super) fn pinned_total(&self, sum: Sum) -> Amount {
        self.claimed.total.unwrap_or(sum.total)
    }

    /// What forbids claiming, beside [`Standing::judge`]: the sum of the bill against the pinned
    /// total. Asked before anything is said to be permitted, and again under the claim's lock.
    ///
    /// # Errors
    /// A denial.
    pub(super) fn judge_sums(&self, resolved: &Resolved) -> Result<(), Denial> {
        let Some(sum) = resolved.sum else { return Ok(()) };
        let pinned = self.pinned_total(sum);
        if pinned != sum.total {
            return Err(Denial::new(Stage::Policy, Reason::FloorTotalChanged));
        }
        // INVARIANT (I2): what may be booked for a bill never adds up to more than its pinned
        // total. The attempt's own constraint and the ERP's guard each keep this as well.
        let within = self
            .claimed
            .sum_minor
            .checked_add(sum.amount.minor())
            .is_some_and(|sum| sum <= pinned.minor());
        if within { Ok(()) } else { Err(Denial::new(Stage::Policy, Reason::FloorOverResidual)) }
    }

    /// Whether one more operation of the mandate may wait for a human.
    ///
    /// # Errors
    /// A denial.
    pub(super) fn judge_pending(&self) -> Result<(), Denial> {
        if self.pending >= PENDING_MAX {
            return Err(Denial::new(Stage::Execution, Reason::TooManyPending));
        }
        Ok(())
    }
}

fn in_progress(live: &Operation, authority: &Authority) -> Denial {
    let denial = Denial::new(Stage::Execution, Reason::OperationInProgress);
    let origins = &live.origins;
    let own = match authority.mandate() {
        Some(mandate) => {
            origins.company == mandate.company
                && origins.principal == mandate.principal
                && origins.agent() == Some(&mandate.agent)
        }
        // A human of the company sees all of its operations.
        None => origins.company == *authority.company(),
    };
    // Another agent's operation is none of the caller's business (I8).
    if own {
        let detail = format!("{}: {}", denial.detail, live.id);
        Denial { detail, ..denial }
    } else {
        denial
    }
}
