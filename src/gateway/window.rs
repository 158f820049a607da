//! Counting calls by the minute, of the gateway's own clock, so that a sandbox whose clock is moved
//! forward begins a new minute. Kept in the memory of one process.

use std::time::Duration;

use countersign_erp_source::Timestamp;

/// How long calls are counted together.
const WINDOW: Duration = Duration::from_mins(1);

/// The calls of one minute.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    since: Timestamp,
    calls: u32,
}

impl Window {
    /// A minute that begins now, without a call.
    pub fn new(now: Timestamp) -> Self {
        Self { since: now, calls: 0 }
    }

    /// Whether the minute is over. A clock that was set back also ends it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now < self.since || now.since(self.since) >= WINDOW
    }

    /// Counts a call, in a new minute where the last one is over.
    ///
    /// # Errors
    /// In how many seconds to try again, if it is one more than `most`.
    pub fn count(&mut self, most: u32, now: Timestamp) -> Result<(), u64> {
        if self.is_over(now) {
            *self = Self::new(now);
        }
        if self.calls >= most {
            let left = self.since.plus(WINDOW).since(now);
            return Err(left.as_secs().saturating_add(1));
        }
        self.calls = self.calls.saturating_add(1);
        Ok(())
    }

    /// Takes back a call that is not to count.
    pub fn take_back(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }
}
