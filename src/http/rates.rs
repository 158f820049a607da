//! How often one mandate may call. Counted per process, in minutes of the gateway's own clock, so
//! that a sandbox whose clock is moved forward begins a new minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_erp_source::Timestamp;

use crate::domain::names::MandateId;

/// How long calls are counted together.
const WINDOW: Duration = Duration::from_mins(1);
/// When so many mandates are counted, those whose window is over are forgotten.
const MANDATES_KEPT: usize = 4096;

/// The most calls of one mandate in a minute.
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

/// The counts.
#[derive(Debug)]
pub(super) struct Rates {
    limits: Limits,
    windows: Mutex<HashMap<(MandateId, Kind), Window>>,
}

#[derive(Debug)]
struct Window {
    since: Timestamp,
    calls: u32,
}

impl Window {
    /// A clock that was set back also ends it.
    fn is_over(&self, now: Timestamp) -> bool {
        now < self.since || now.since(self.since) >= WINDOW
    }
}

impl Rates {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, windows: Mutex::default() }
    }

    /// Counts a call.
    ///
    /// # Errors
    /// In how many seconds to try again, if it is one too many.
    pub(super) fn count(&self, mandate: &MandateId, kind: Kind, now: Timestamp) -> Result<(), u64> {
        let most = match kind {
            Kind::Proposal => self.limits.proposals_per_minute,
            Kind::Read => self.limits.reads_per_minute,
        };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MANDATES_KEPT {
            windows.retain(|_, window| !window.is_over(now));
        }
        let window = windows
            .entry((mandate.clone(), kind))
            .and_modify(|window| {
                if window.is_over(now) {
                    *window = Window { since: now, calls: 0 };
                }
            })
            .or_insert(Window { since: now, calls: 0 });
        if window.calls >= most {
            let left = window.since.plus(WINDOW).since(now);
            return Err(left.as_secs().saturating_add(1));
        }
        window.calls = window.calls.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_next_minute_begins_anew_for_each_mandate_and_kind() {
        let rates = Rates::new(Limits { proposals_per_minute: 2, reads_per_minute: 1 });
        let (one, other) =
            (MandateId::from_uuid(Uuid::from_u128(1)), MandateId::from_uuid(Uuid::from_u128(2)));
        let at = Timestamp::from_millis;
        assert_eq!(rates.count(&one, Kind::Proposal, at(10_000)), Ok(()));
        assert_eq!(rates.count(&one, Kind::Proposal, at(20_000)), Ok(()));
        assert_eq!(rates.count(&one, Kind::Proposal, at(30_000)), Err(41));
        assert_eq!(rates.count(&one, Kind::Read, at(30_000)), Ok(()));
        assert_eq!(rates.count(&one, Kind::Read, at(30_000)), Err(61));
        assert_eq!(rates.count(&other, Kind::Proposal, at(30_000)), Ok(()));
        assert_eq!(rates.count(&one, Kind::Proposal, at(69_999)), Err(1));
        assert_eq!(rates.count(&one, Kind::Proposal, at(70_000)), Ok(()));
        assert_eq!(rates.count(&one, Kind::Read, at(0)), Ok(()), "a clock that was set back");
    }
}
