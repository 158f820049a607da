//! Mandates: issued by the operator (later by admins), revoked at once with all consequences.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_erp_source::{Amount, CompanyId, Currency, SourceAccount, Timestamp};

use super::{Gateway, authn, proposals};
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, Name};
use crate::domain::operation::Status;
use crate::ids::NoRandomness;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::people::{self, Role};
use crate::store::{Store, StoreError, Unit, operations};

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
    pub async fn issue(&self, grant: Grant, by: &str) -> Result<(Mandate, String), MandateError> {
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
        let (kept, digest, by) = (mandate.clone(), authn::token_digest(&token), by.to_owned());
        let written = self
            .store()
            .write(move |unit| Box::pin(async move { issue(unit, &kept, &digest, &by).await }))
            .await
            .map_err(MandateError::Store)?;
        if written.value {
            Ok((mandate, token))
        } else {
            let (principal, company) = (mandate.principal, mandate.company);
            Err(MandateError::NotAPrincipal { principal, company })
        }
    }

    fn check_grant(&self, grant: &Grant) -> Result<(), MandateError> {
        if grant.scopes.is_empty() {
            return Err(MandateError::NoScope);
        }
        if let Some(unknown) = grant.scopes.iter().find(|scope| self.pack_of(scope).is_none()) {
            return Err(MandateError::UnknownScope(unknown.clone()));
        }
        if grant.source.currency != grant.currency {
            let (account, mandate) = (grant.source.currency, grant.currency);
            return Err(MandateError::OtherCurrency { account, mandate });
        }
        let some = grant.budget.is_none_or(Amount::is_positive)
            && grant.calls_max.is_none_or(|most| most > 0)
            && !grant.ttl.is_zero();
        if some { Ok(()) } else { Err(MandateError::Nothing) }
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
    by: &str,
) -> Result<bool, StoreError> {
    let (principal, company) = (&mandate.principal, &mandate.company);
    if !people::holds_role(unit.conn(), principal, company, Role::Accountant).await? {
        return Ok(false);
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
            "by": by,
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
    Ok(true)
}

/// Revokes within a unit of work, with the operations that wait under the mandate.
pub(crate) async fn revoke_within(
    unit: &mut Unit<'_>,
    id: &MandateId,
    because: &str,
    by: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some((mandate, _)) = people::find_mandate(unit.conn(), id).await? else {
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
