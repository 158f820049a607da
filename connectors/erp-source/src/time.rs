//! Moments in UTC with milliseconds, and the clock they come from.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// Milliseconds in a day.
const DAY_MS: i64 = 86_400_000;

/// A moment in UTC, in whole milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// A text or number that is no moment we can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time in RFC 3339 between the years 1970 and 9999")]
pub struct TimestampError;

impl Timestamp {
    /// The moment that many milliseconds after 1970 began; earlier ones become 1970.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, 253_402_300_799_999))
    }

    /// Reads RFC 3339.
    ///
    /// # Errors
    /// [`TimestampError`] if the text is something else.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let parsed = DateTime::parse_from_rfc3339(text).ok().ok_or(TimestampError)?;
        Ok(Self::from_millis(parsed.timestamp_millis()))
    }

    /// Midnight at which that day begins in UTC.
    pub fn start_of(date: NaiveDate) -> Self {
        Self::from_millis(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis())
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The moment later by `wait`; the last one we can hold if that is beyond it.
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// The moment earlier by `wait`; 1970 if that is before it.
    #[must_use]
    pub fn minus(self, wait: Duration) -> Self {
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }

    /// Whole days from `earlier` until now; 0 if `earlier` is later.
    pub fn whole_days_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).max(0).div_euclid(DAY_MS)
    }

    /// Time from `earlier` until now; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same moment for chrono.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::UNIX_EPOCH)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;
    fn try_from(text: String) -> Result<Self, TimestampError> {
        Self::parse(&text)
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        at.to_string()
    }
}

/// Where the time comes from. Passed in everywhere, so that tests and the sandbox can move it.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_counts_only_when_it_is_whole() {
        let start = Timestamp::parse("2026-11-01T10:00:00Z").unwrap();
        let almost = Timestamp::parse("2026-11-08T09:59:59.999Z").unwrap();
        assert_eq!(almost.whole_days_since(start), 6);
        assert_eq!(almost.plus(Duration::from_millis(1)).whole_days_since(start), 7);
        assert_eq!(start.whole_days_since(almost), 0);
    }

    #[test]
    fn text_survives_the_round_trip() {
        let at = Timestamp::parse("2026-11-01T10:00:00.120Z").unwrap();
        assert_eq!(at.to_string(), "2026-11-01T10:00:00.120Z");
        assert_eq!(Timestamp::parse("2026-11-01T11:00:00.12+01:00").unwrap(), at);
        assert_eq!(Timestamp::parse("yesterday"), Err(TimestampError));
    }
}
