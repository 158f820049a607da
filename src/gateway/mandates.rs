//! Mandates: issued by the operator or by admins, revoked at once with all consequences.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_erp_source::{Amount, CompanyId, Currency, SourceAccount, Timestamp};

use super::people::By;
use super::sessions::Human;
use super::{CallError, Gateway, authn, proposals};
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, Name};
use crate::domain::operation::Status;
use crate::ids::NoRandomness;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::people::{self, Role};
use crate::store::{Store, StoreError, Unit, operations};

/// The longest time that a mandate may be issued for.
pub const TTL_MAX: Duration = Duration::from_hours(90 * 24);
/// The most calls that it may limit to.
pub const CALLS_MAX: i64 = 1_000_000_000;

/// What a new mandate grants.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The company.
    pub company: CompanyId,
    /// The human who grants it: an active accountant of the company.
    pub principal: Name,
    /// The caller who acts under it.
    pub agent: Name,
    /// The actions.
    pub scopes: BTreeSet<String>,
    /// The account that payments leave from.
    pub source: SourceAccount,
    /// The only currency.
    pub currency: Currency,
    /// The most that may be claimed.
    pub budget: Option<Amount>,
    /// The most operations that may be claimed.
    pub calls_max: Option<i64>,
    /// For how long.
    pub ttl: Duration,
}

/// Why a mandate was not issued or revoked.
#[derive(Debug, thiserror::Error)]
pub enum MandateError {
    /// The principal may not grant it.
    #[error("`{principal}` is no active accountant of `{company}`")]
    NotAPrincipal {
        /// Who.
        principal: Name,
        /// Of which company.
        company: CompanyId,
    },
    /// A scope that is no action.
    #[error("no action `{0}`")]
    UnknownScope(String),
    /// No scope at all.
    #[error("a mandate needs at least one scope")]
    NoScope,
    /// The journal is in another currency.
    #[error("the source account is in {account}, not in {mandate}")]
    OtherCurrency {
        /// The account's.
        account: Currency,
        /// The mandate's.
        mandate: Currency,
    },
    /// Budget or number of calls is not above zero.
    #[error("a budget, a number of calls and a time are greater than zero")]
    Nothing,
    /// Too long a time, or too many calls to be a limit.
    #[error("a mandate is for at most {} days and {CALLS_MAX} calls", TTL_MAX.as_secs() / 86_400)]
    TooMuch,
    /// Whoever issues it is no active admin of the company any more.
    #[error("`{admin}` is no active admin of `{company}`")]
    NotAnAdmin {
        /// Who.
        admin: Name,
        /// Of which company.
        company: CompanyId,
    },
    /// No such mandate, or revoked before.
    #[error("no mandate `{0}` is in force")]
    NotInForce(MandateId),
    /// The token could not be signed.
    #[error("the token could not be signed")]
    Signature(#[source] jsonwebtoken::errors::Error),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

impl Gateway {
    /// Issues a mandate and gives its token, which is shown this once.
    ///
    /// # Errors
    /// [`MandateError`].
    pub async fn issue(&self, grant: Grant, by: By) -> Result<(Mandate, String), MandateError> {
        self.check_grant(&grant)?;
        let id = MandateId::from_uuid(self.ordered_id().map_err(MandateError::Randomness)?);
        let now = self.now();
        let mandate = Mandate {
            id,
            company: grant.company,
            principal: grant.principal,
            agent: grant.agent,
            scopes: grant.scopes,
            source_fingerprint: self.keys().fingerprint(&grant.source.iban),
            journal: grant.source.journal,
            currency: grant.currency,
            budget: grant.budget,
            calls_max: grant.calls_max,
            issued_at: now,
            expires_at: now.plus(grant.ttl),
            revoked_at: None,
        };
        let token = authn::token(self.keys().mandate(), self.store().id(), &mandate)
            .map_err(MandateError::Signature)?;
        let (kept, digest) = (mandate.clone(), authn::token_digest(&token));
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move { issue(unit, &kept, &digest, &by).await })
            })
            .await
            .map_err(MandateError::Store)?;
        written.map(|_| (mandate, token))
    }

    /// The mandates of a company after that id, ascending; of one principal where one is given.
    ///
    /// # Errors
    /// [`CallError::Store`].
    pub async fn mandates_of(
        &self,
        company: &CompanyId,
        principal: Option<&Name>,
        after: String,
        limit: u16,
    ) -> Result<Vec<Mandate>, CallError> {
        let (company, principal) = (company.clone(), principal.cloned());
        let limit = i64::from(limit);
        let found = self.store().read(move |conn| {
            Box::pin(async move {
                people::mandates_of(conn, &company, principal.as_ref(), &after, limit).await
            })
        });
        Ok(found.await?)
    }

    /// A mandate of one of the human's companies.
    ///
    /// INVARIANT (I8): another company's is as good as none.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn mandate_for(&self, human: &Human, id: &MandateId) -> Result<Mandate, CallError> {
        let found = self.store().ask(people::find_mandate(id)).await?;
        let mandate = found.map(|(mandate, _)| mandate);
        mandate.filter(|mandate| human.belongs_to(&mandate.company)).ok_or(CallError::NotFound)
    }

    /// Revokes a mandate, for its principal or an admin; one that was revoked stays as it was. Gives
    /// it as it is.
    ///
    /// # Errors
    /// [`MandateError`].
    pub async fn revoke_for(
        &self,
        human: &Human,
        id: &MandateId,
        because: &str,
    ) -> Result<Mandate, MandateError> {
        let (by, wanted, now) = (human.name().clone(), id.clone(), self.now());
        let because = because.to_owned();
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move { revoke_by(unit, &by, &wanted, &because, now).await })
            })
            .await
            .map_err(MandateError::Store)??;
        self.0.changed.notify_waiters();
        Ok(written.value)
    }

    fn check_grant(&self, grant: &Grant) -> Result<(), MandateError> {
        if grant.scopes.is_empty() {
            return Err(MandateError::NoScope);
        }
        // What humans begin for themselves is no agent's to propose.
        let of_agents = |scope: &&String| {
            self.pack_of(scope).is_some_and(|pack| pack.actions().contains(&scope.as_str()))
        };
        if let Some(unknown) = grant.scopes.iter().find(|scope| !of_agents(scope)) {
            return Err(MandateError::UnknownScope(unknown.clone()));
        }
        if grant.source.currency != grant.currency {
            let (account, mandate) = (grant.source.currency, grant.currency);
            return Err(MandateError::OtherCurrency { account, mandate });
        }
        let some = grant.budget.is_none_or(Amount::is_positive)
            && grant.calls_max.is_none_or(|most| most > 0)
            && !grant.ttl.is_zero();
        if !some {
            return Err(MandateError::Nothing);
        }
        let few = grant.calls_max.is_none_or(|most| most <= CALLS_MAX);
        if few && grant.ttl <= TTL_MAX { Ok(()) } else { Err(MandateError::TooMuch) }
    }
}

/// Revokes a mandate and cancels what waits under it, at once. What is claimed is settled. Needs the
/// store alone, so that it works where policies or ERP are broken.
///
/// # Errors
/// [`MandateError`].
pub async fn revoke(
    store: &Store,
    id: &MandateId,
    because: &str,
    by: &str,
    now: Timestamp,
) -> Result<(), MandateError> {
    let (wanted, because, by) = (id.clone(), because.to_owned(), by.to_owned());
    let written = store
        .write(move |unit| {
            Box::pin(async move { revoke_within(unit, &wanted, &because, &by, now).await })
        })
        .await
        .map_err(MandateError::Store)?;
    if written.value { Ok(()) } else { Err(MandateError::NotInForce(id.clone())) }
}

async fn issue(
    unit: &mut Unit<'_>,
    mandate: &Mandate,
    token_digest: &str,
    by: &By,
) -> Result<Result<(), MandateError>, StoreError> {
    let (principal, company) = (&mandate.principal, &mandate.company);
    if let By::Human(admin) = by {
        // What held when he was let in may not hold any more.
        if !unit.conn().ask(people::holds_role(admin, company, Role::Admin)).await? {
            let (admin, company) = (admin.clone(), company.clone());
            return Ok(Err(MandateError::NotAnAdmin { admin, company }));
        }
    }
    if !unit.conn().ask(people::holds_role(principal, company, Role::Accountant)).await? {
        let (principal, company) = (principal.clone(), company.clone());
        return Ok(Err(MandateError::NotAPrincipal { principal, company }));
    }
    people::insert_mandate(unit.conn(), mandate, token_digest).await?;
    unit.receipt(Receipt {
        kind: ReceiptKind::MandateIssued,
        at: mandate.issued_at,
        company: Some(company.to_string()),
        operation: None,
        data: serde_json::json!({
            "agent": mandate.agent.as_str(),
            "budget": mandate.budget.map(|budget| budget.to_string()),
            "by": by.as_str(),
            "calls_max": mandate.calls_max,
            "currency": mandate.currency.code(),
            "expires_at": mandate.expires_at,
            "fingerprint": mandate.source_fingerprint,
            "journal": mandate.journal,
            "mandate": mandate.id.as_str(),
            "principal": principal.as_str(),
            "scopes": mandate.scopes,
            "token": token_digest,
        }),
    })?;
    Ok(Ok(()))
}

/// Revokes for a human, if he may still.
async fn revoke_by(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &MandateId,
    because: &str,
    now: Timestamp,
) -> Result<Result<Mandate, MandateError>, StoreError> {
    let found = unit.ask(people::find_mandate(id)).await?.map(|(mandate, _)| mandate);
    let Some(mandate) = found else { return Ok(Err(MandateError::NotInForce(id.clone()))) };
    let company = &mandate.company;
    // What held when he was let in may not hold any more.
    let roles = people::roles(unit.conn(), human, company).await?;
    let is_principal = mandate.principal == *human && !roles.is_empty();
    if !is_principal && !roles.contains(&Role::Admin) {
        let (admin, company) = (human.clone(), company.clone());
        return Ok(Err(MandateError::NotAnAdmin { admin, company }));
    }
    // One that is not in force was revoked before.
    revoke_within(unit, id, because, human.as_str(), now).await?;
    let found = unit.ask(people::find_mandate(id)).await?.map(|(mandate, _)| mandate);
    Ok(found.ok_or_else(|| MandateError::NotInForce(id.clone())))
}

/// Revokes within a unit of work, with the operations that wait under the mandate.
pub(crate) async fn revoke_within(
    unit: &mut Unit<'_>,
    id: &MandateId,
    because: &str,
    by: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some((mandate, _)) = unit.ask(people::find_mandate(id)).await? else {
        return Ok(false);
    };
    if !people::revoke_mandate(unit.conn(), id, because, now).await? {
        return Ok(false);
    }
    unit.receipt(Receipt {
        kind: ReceiptKind::MandateRevoked,
        at: now,
        company: Some(mandate.company.to_string()),
        operation: None,
        data: serde_json::json!({ "because": because, "by": by, "mandate": id.as_str() }),
    })?;
    for operation in operations::waiting_under(unit.conn(), id).await? {
        let because = "the mandate was revoked";
        proposals::end_waiting(unit, &operation, Status::Cancelled, because, now).await?;
    }
    Ok(true)
}
