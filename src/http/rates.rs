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

/// The most calls of one mandate, or of one session, that wait for something at once. Connections are
/// not without number, and humans need some to stop what agents do.
const WAITING_MAX: usize = 16;

/// Who waits.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<HashMap<Holder, usize>>);

/// A call that waits; dropped when it does no more, by a client that hangs up too.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    waits: &'a Waits,
    holder: Holder,
}

impl Waits {
    /// Lets one more call wait, unless too many of that caller's do.
    pub(super) fn begin(&self, holder: Holder) -> Option<Waiting<'_>> {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waits.entry(holder.clone()).or_default();
        if *count >= WAITING_MAX {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Waiting { waits: self, holder })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = waits.get(&self.holder).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            waits.remove(&self.holder);
        } else {
            waits.insert(self.holder.clone(), left);
        }
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

    #[test]
    fn so_many_calls_of_one_caller_wait_and_no_more() {
        let waits = Waits::default();
        let holder = || Holder::Session(SessionId::from_uuid(Uuid::nil()));
        let other = Holder::Mandate(MandateId::from_uuid(Uuid::nil()));
        let mut waiting: Vec<Waiting<'_>> =
            (0..WAITING_MAX).map(|_| waits.begin(holder()).unwrap()).collect();
        assert!(waits.begin(holder()).is_none());
        assert!(waits.begin(other).is_some(), "everybody for himself");
        waiting.pop();
        assert!(waits.begin(holder()).is_some(), "that one waits no more");
        drop(waiting);
        assert!(waits.0.lock().unwrap().is_empty(), "nobody is kept who does not wait");
    }
}
