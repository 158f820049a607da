//! How often one mandate or one session may call. Counted per process, by the minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use countersign_erp_source::Timestamp;

use crate::domain::names::{MandateId, SessionId};
use crate::gateway::window::Window;

/// When so many are counted, those whose window is over are forgotten.
const WINDOWS_KEPT: usize = 4096;

/// The most calls of one mandate, or of one session, in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls that may change something.
    pub proposals_per_minute: u32,
    /// Calls that only read.
    pub reads_per_minute: u32,
}

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Proposal,
    Read,
}

impl Kind {
    /// The stable code.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Proposal => "proposal",
            Self::Read => "read",
        }
    }
}

/// Whose calls are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Mandate(MandateId),
    Session(SessionId),
}

/// The counts.
#[derive(Debug)]
pub(super) struct Rates {
    limits: Limits,
    windows: Mutex<HashMap<(Holder, Kind), Window>>,
}

impl Rates {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, windows: Mutex::default() }
    }

    /// Counts a call.
    ///
    /// # Errors
    /// In how many seconds to try again, if it is one too many.
    pub(super) fn count(&self, holder: Holder, kind: Kind, now: Timestamp) -> Result<(), u64> {
        let most = match kind {
            Kind::Proposal => self.limits.proposals_per_minute,
            Kind::Read => self.limits.reads_per_minute,
        };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= WINDOWS_KEPT {
            windows.retain(|_, window| !window.is_over(now));
        }
        windows.entry((holder, kind)).or_insert_with(|| Window::new(now)).count(most, now)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_next_minute_begins_anew_for_each_holder_and_kind() {
        let rates = Rates::new(Limits { proposals_per_minute: 2, reads_per_minute: 1 });
        let one = || Holder::Mandate(MandateId::from_uuid(Uuid::from_u128(1)));
        let other = || Holder::Session(SessionId::from_uuid(Uuid::from_u128(1)));
        let at = Timestamp::from_millis;
        assert_eq!(rates.count(one(), Kind::Proposal, at(10_000)), Ok(()));
        assert_eq!(rates.count(one(), Kind::Proposal, at(20_000)), Ok(()));
        assert_eq!(rates.count(one(), Kind::Proposal, at(30_000)), Err(41));
        assert_eq!(rates.count(one(), Kind::Read, at(30_000)), Ok(()));
        assert_eq!(rates.count(one(), Kind::Read, at(30_000)), Err(61));
        assert_eq!(rates.count(other(), Kind::Proposal, at(30_000)), Ok(()));
        assert_eq!(rates.count(one(), Kind::Proposal, at(69_999)), Err(1));
        assert_eq!(rates.count(one(), Kind::Proposal, at(70_000)), Ok(()));
        assert_eq!(rates.count(one(), Kind::Read, at(0)), Ok(()), "a clock that was set back");
    }
}
