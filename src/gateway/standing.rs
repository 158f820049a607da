//! Stages `delegation`, `budget` and the sums of `execution`: how things stand for one proposal in
//! the store at one moment. Read before policy is asked, and again under the claim's own lock.

use countersign_erp_source::{Amount, CompanyId};

use super::pack::{Denial, Resolved};
use crate::domain::decision::Stage;
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, OperationId};
use crate::domain::operation::Operation;
use crate::domain::reason::Reason;
use crate::store::attempts::{self, Claimed};
use crate::store::people::{self, Role};
use crate::store::{Conn, StoreError, freezes, operations};

/// The most operations of one mandate that may be pending.
pub const PENDING_MAX: i64 = 20;

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
}

/// Reads how things stand for that operation.
pub(super) async fn read(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    thing: &str,
    counterparty: &str,
    mandate: &MandateId,
    operation: &OperationId,
) -> Result<Standing, StoreError> {
    let registered = people::find_mandate(conn, mandate).await?.map(|(mandate, _)| mandate);
    let principal_active = match &registered {
        Some(mandate) => {
            people::holds_role(conn, &mandate.principal, company, Role::Accountant).await?
        }
        None => false,
    };
    let (reserved_minor, calls) = operations::reserved(conn, mandate, operation).await?;
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
    })
}

impl Standing {
    /// What forbids the operation now, in the order of the stages.
    ///
    /// # Errors
    /// The first denial.
    pub(super) fn judge(&self, action: &str, resolved: &Resolved) -> Result<(), Denial> {
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
        Ok(())
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
