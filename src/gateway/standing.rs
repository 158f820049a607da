//! Stages `delegation`, `budget`, `approval` and the sums of `execution`: how things stand for one
//! proposal in the store at one moment. Read before policy is asked, and again under the claim's own
//! lock.

use std::time::Duration;

use countersign_erp_source::{Amount, CompanyId, Currency, Timestamp};

use super::pack::{Denial, Resolved, Volume};
use crate::domain::decision::{Level, Stage};
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, OperationId};
use crate::domain::operation::Operation;
use crate::domain::reason::Reason;
use crate::domain::vote::Vote;
use crate::store::attempts::{self, Claimed};
use crate::store::people::{self, Role};
use crate::store::{Conn, StoreError, freezes, operations, votes};

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
    /// The mandate as the registry has it now.
    pub(super) mandate: Option<Mandate>,
    /// Whether its principal is an active accountant of the company.
    pub(super) principal_active: bool,
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
    /// What went out without a human.
    pub(super) volume: Volume,
    /// The operation's own votes that are not void.
    pub(super) votes: Vec<Vote>,
    /// When it was read, by the daemon's clock.
    pub(super) at: Timestamp,
}

/// Of which operation it is asked how things stand.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) company: CompanyId,
    pub(super) mandate: MandateId,
    pub(super) operation: OperationId,
    pub(super) thing: String,
    pub(super) counterparty: String,
    /// In what the sums are counted.
    pub(super) currency: Currency,
    pub(super) at: Timestamp,
}

/// Reads how things stand for that operation.
pub(super) async fn read(conn: &mut Conn<'_>, asked: &Asked) -> Result<Standing, StoreError> {
    let Asked { company, mandate, operation, thing, counterparty, currency, at } = asked;
    let registered = people::find_mandate(conn, mandate).await?.map(|(mandate, _)| mandate);
    let principal_active = match &registered {
        Some(mandate) => {
            people::holds_role(conn, &mandate.principal, company, Role::Accountant).await?
        }
        None => false,
    };
    let (reserved_minor, calls) = operations::reserved(conn, mandate, operation).await?;
    let recently_rejected = match &registered {
        Some(mandate) => {
            let since = at.minus(REJECTED_FOR);
            operations::was_rejected(conn, company, thing, &mandate.principal, since).await?
        }
        None => false,
    };
    let since = (at.minus(DAY), at.minus(MONTH));
    let automatic = operations::automatic(conn, company, counterparty, operation, since).await?;
    let e2 = |minor| Amount::from_minor(minor, *currency).hundredths_rounded_up();
    let live = operations::find_live(conn, company, thing).await?;
    Ok(Standing {
        mandate: registered,
        principal_active,
        reserved_minor,
        calls,
        live: live.filter(|live| live.id != *operation),
        claimed: attempts::claimed(conn, company, thing, operation).await?,
        frozen: freezes::is_frozen(conn, company, counterparty).await?,
        pending: operations::count_pending(conn, mandate).await?,
        recently_rejected,
        volume: Volume {
            counterparty_day: e2(automatic.counterparty_day),
            company_day: e2(automatic.company_day),
            counterparty_month: e2(automatic.counterparty_month),
            company_month: e2(automatic.company_month),
        },
        votes: votes::standing(conn, operation).await?,
        at: *at,
    })
}

impl Standing {
    /// What forbids the operation now, in the order of the stages; gives the mandate, which is in
    /// force.
    ///
    /// # Errors
    /// The first denial.
    pub(super) fn judge(&self, action: &str, resolved: &Resolved) -> Result<&Mandate, Denial> {
        let mandate = self.in_force()?;
        if !mandate.holds(action) {
            return Err(Denial::new(Stage::Delegation, Reason::ScopeNotHeld));
        }
        self.within_budget(mandate, resolved.amount)?;
        self.not_paid(resolved)?;
        if let Some(live) = &self.live {
            return Err(in_progress(live, mandate));
        }
        if self.frozen {
            return Err(Denial::new(Stage::Execution, Reason::Frozen));
        }
        if self.recently_rejected {
            return Err(Denial::new(Stage::Execution, Reason::RecentlyRejected));
        }
        Ok(mandate)
    }

    /// Stage `approval`: whether the right humans voted for this very hash.
    ///
    /// INVARIANT (I5): a vote counts for its own operation and hash, until it expires, and only
    /// while its human may still give it.
    pub(super) fn is_approved(&self, level: Level, hash: &str) -> bool {
        let Some(mandate) = &self.mandate else { return false };
        level == Level::None
            || self
                .votes
                .iter()
                .any(|vote| vote.completes(level, &mandate.principal, hash, self.at))
    }

    /// The mandate, if it may still execute. Its expiry is judged where it is presented.
    fn in_force(&self) -> Result<&Mandate, Denial> {
        self.mandate
            .as_ref()
            .filter(|mandate| mandate.revoked_at.is_none() && self.principal_active)
            .ok_or_else(|| Denial::new(Stage::Authn, Reason::MandateRevoked))
    }

    fn within_budget(&self, mandate: &Mandate, amount: Amount) -> Result<(), Denial> {
        if let Some(budget) = mandate.budget {
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

    fn not_paid(&self, resolved: &Resolved) -> Result<(), Denial> {
        let pinned = self.pinned_total(resolved);
        // What only may be booked is somebody's live operation, not a paid bill.
        if self.claimed.booked_minor > 0 && self.claimed.booked_minor >= pinned.minor() {
            return Err(Denial::new(Stage::Execution, Reason::AlreadyPaid));
        }
        Ok(())
    }

    /// The total that binds: the one of the first claim that may be booked, else the present one.
    pub(super) fn pinned_total(&self, resolved: &Resolved) -> Amount {
        self.claimed.total.unwrap_or(resolved.total)
    }

    /// What forbids claiming, beside [`Standing::judge`]: the sum of the bill against the pinned
    /// total. Asked before anything is said to be permitted, and again under the claim's lock.
    ///
    /// # Errors
    /// A denial.
    pub(super) fn judge_sums(&self, resolved: &Resolved) -> Result<(), Denial> {
        let pinned = self.pinned_total(resolved);
        if pinned != resolved.total {
            return Err(Denial::new(Stage::Policy, Reason::FloorTotalChanged));
        }
        // INVARIANT (I2): what may be booked for a bill never adds up to more than its pinned
        // total. The attempt's own constraint and the ERP's guard each keep this as well.
        let within = self
            .claimed
            .sum_minor
            .checked_add(resolved.amount.minor())
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

fn in_progress(live: &Operation, mandate: &Mandate) -> Denial {
    let denial = Denial::new(Stage::Execution, Reason::OperationInProgress);
    let own = live.origins.company == mandate.company
        && live.origins.principal == mandate.principal
        && live.origins.agent == mandate.agent;
    // Another agent's operation is none of the caller's business (I8).
    if own {
        let detail = format!("{}: {}", denial.detail, live.id);
        Denial { detail, ..denial }
    } else {
        denial
    }
}
