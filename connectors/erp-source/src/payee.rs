//! The ports to those who say whose account a number is, and whether it may be paid at all.

use async_trait::async_trait;

use crate::{Iban, Timestamp};

/// What Verification of Payee answered, in the words of the scheme (EPC218-23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VopResult {
    /// The name is the account holder's.
    Match,
    /// Nearly; the scheme gives the holder's name with it.
    CloseMatch {
        /// The name that the bank gave. For signed-in humans only.
        actual_name: Option<String>,
    },
    /// Not the holder's name.
    NoMatch,
    /// The check could not be made. Never a match, and never a mismatch either.
    NotPossible,
}

impl VopResult {
    /// The name that the bank gave, where it gave one.
    pub fn actual_name(&self) -> Option<&str> {
        match self {
            Self::CloseMatch { actual_name } => actual_name.as_deref(),
            Self::Match | Self::NoMatch | Self::NotPossible => None,
        }
    }
}

/// An answer with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VopReport {
    /// The answer.
    pub result: VopResult,
    /// Which provider, as configured (`sandbox`, `file`, `none`).
    pub provider: String,
    /// When it was asked, by the daemon's clock.
    pub at: Timestamp,
}

/// No answer. It is never taken for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} did not answer: {reason}")]
pub struct NoAnswer {
    /// Which provider.
    pub provider: String,
    /// For the log.
    pub reason: String,
}

/// Verification of Payee.
#[async_trait]
pub trait PayeeVerifier: Send + Sync + std::fmt::Debug {
    /// Asks whether the account is held under that name.
    async fn verify(&self, name: &str, iban: &Iban) -> Result<VopReport, NoAnswer>;
}

/// Whether a payee is on a sanctions list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screening {
    /// Not on the list.
    NotListed,
    /// On the list.
    Listed,
    /// No list is configured.
    NotChecked,
}

/// A sanctions list.
#[async_trait]
pub trait SanctionsScreen: Send + Sync + std::fmt::Debug {
    /// Which list, as configured (`sandbox`, `file`, `none`).
    fn list(&self) -> &str;
    /// Looks the account up.
    async fn screen(&self, iban: &Iban) -> Result<Screening, NoAnswer>;
}
