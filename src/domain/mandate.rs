//! A mandate: what a human, the principal, lets an agent propose. It moves no money by itself.

use std::collections::BTreeSet;

use countersign_erp_source::{Amount, CompanyId, Currency, JournalId, Timestamp};

use super::names::{MandateId, Name};

/// What a mandate grants. Everything here was signed by the gateway and is read from its own
/// registry; a token only names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    /// Its id in this store's registry.
    pub id: MandateId,
    /// The one company it is for.
    pub company: CompanyId,
    /// The human who grants it.
    pub principal: Name,
    /// The caller who acts under it.
    pub agent: Name,
    /// The actions it may propose.
    pub scopes: BTreeSet<String>,
    /// The journal that payments leave from.
    pub journal: JournalId,
    /// The fingerprint of that journal's account; the number itself is in no token.
    pub source_fingerprint: String,
    /// The only currency.
    pub currency: Currency,
    /// The most that may be claimed under it; `None` is no such limit.
    pub budget: Option<Amount>,
    /// The most operations that may be claimed under it; `None` is no such limit.
    pub calls_max: Option<i64>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Until when it may propose and commit.
    pub expires_at: Timestamp,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// By whose right somebody acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// An agent, under the mandate that a human granted.
    Mandate(Box<Mandate>),
    /// A human, by the roles that he holds in the company.
    Own {
        /// The company.
        company: CompanyId,
        /// The human.
        human: Name,
    },
}

impl Authority {
    /// The company that it is about.
    pub fn company(&self) -> &CompanyId {
        match self {
            Self::Mandate(mandate) => &mandate.company,
            Self::Own { company, .. } => company,
        }
    }

    /// The human who answers for it.
    pub fn principal(&self) -> &Name {
        match self {
            Self::Mandate(mandate) => &mandate.principal,
            Self::Own { human, .. } => human,
        }
    }

    /// The mandate, where it is one.
    pub fn mandate(&self) -> Option<&Mandate> {
        match self {
            Self::Mandate(mandate) => Some(mandate),
            Self::Own { .. } => None,
        }
    }
}

impl From<Mandate> for Authority {
    fn from(mandate: Mandate) -> Self {
        Self::Mandate(Box::new(mandate))
    }
}

impl Mandate {
    /// Whether its time is over at that moment. The last moment is the one before `expires_at`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Whether it may propose that action.
    pub fn holds(&self, scope: &str) -> bool {
        self.scopes.contains(scope)
    }
}
