//! How things stand in the store: read by a worker every few seconds, not by whoever asks for the
//! metrics, so that asking often costs the store nothing.

use std::collections::BTreeMap;

use countersign_erp_source::Timestamp;
use metrics::{IntoF64, Label};

use super::{Metrics, narrow, series};
use crate::domain::operation::Status;

/// The states whose operations are counted.
const COUNTED: [Status; 3] = [Status::Pending, Status::Executing, Status::Unknown];

/// The operations of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// How many.
    pub count: usize,
    /// Since when the oldest is in it.
    pub since: Timestamp,
}

/// How things stand in the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    /// The operations that wait for somebody, by state; a state that has none may be absent.
    pub operations: BTreeMap<Status, Live>,
    /// Alarms that nobody closed, by kind.
    pub alarms: BTreeMap<String, usize>,
    /// Freezes in force, by scope.
    pub freezes: BTreeMap<&'static str, usize>,
    /// Sessions of humans whose time is not over.
    pub sessions: usize,
    /// The number of the newest receipt.
    pub newest_receipt: i64,
}

impl Figures {
    /// Takes what `before` counted and is gone since as 0, so that it does not stay as it was.
    pub(super) fn after(mut self, before: Option<&Self>) -> Self {
        if let Some(before) = before {
            for kind in before.alarms.keys() {
                self.alarms.entry(kind.clone()).or_default();
            }
            for scope in before.freezes.keys() {
                self.freezes.entry(scope).or_default();
            }
        }
        self
    }

    pub(super) fn show(&self, metrics: &Metrics, now: Timestamp) {
        let set = |name, key: &'static str, label: String, value: f64| {
            metrics.gauge(name, vec![Label::new(key, label)]).set(value);
        };
        for status in COUNTED {
            let live = self.operations.get(&status);
            let age = live.map(|live| now.since(live.since)).unwrap_or_default();
            let count = narrow(live.map_or(0, |live| live.count));
            let state = status.code().to_owned();
            set(series::OPERATIONS, "state", state.clone(), count.into_f64());
            set(series::OPERATIONS_OLDEST, "state", state, age.into_f64());
        }
        for (kind, count) in &self.alarms {
            set(series::ALARMS, "kind", kind.clone(), narrow(*count).into_f64());
        }
        for (scope, count) in &self.freezes {
            set(series::FREEZES, "scope", (*scope).to_owned(), narrow(*count).into_f64());
        }
        metrics.gauge(series::SESSIONS, Vec::new()).set(narrow(self.sessions));
        let newest = self.newest_receipt.unsigned_abs();
        metrics.counter(series::RECEIPTS, Vec::new()).absolute(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_grow_by_themselves_and_what_is_gone_is_zero() {
        let metrics = Metrics::default();
        let since = Timestamp::from_millis(10_000);
        let operations = BTreeMap::from([(Status::Unknown, Live { count: 2, since })]);
        let alarms = BTreeMap::from([("bad_seal".to_owned(), 1)]);
        let freezes = BTreeMap::from([("all", 1)]);
        metrics.set_figures(Figures {
            operations,
            alarms,
            freezes,
            sessions: 3,
            newest_receipt: 7,
        });
        let text = metrics.render(Timestamp::from_millis(13_500));
        for line in [
            "countersign_operations{state=\"unknown\"} 2",
            "countersign_operations{state=\"pending\"} 0",
            "countersign_operations_oldest_seconds{state=\"unknown\"} 3.5",
            "countersign_operations_oldest_seconds{state=\"pending\"} 0",
            "countersign_alarms_open{kind=\"bad_seal\"} 1",
            "countersign_freezes{scope=\"all\"} 1",
            "countersign_sessions 3",
            "countersign_ledger_receipts_total 7",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
        let later = metrics.render(Timestamp::from_millis(20_000));
        assert!(later.contains("oldest_seconds{state=\"unknown\"} 10\n"), "{later}");
        // A clock that was set back.
        let back = metrics.render(Timestamp::from_millis(5_000));
        assert!(back.contains("oldest_seconds{state=\"unknown\"} 0\n"), "{back}");
        metrics.set_figures(Figures { newest_receipt: 8, ..Figures::default() });
        let text = metrics.render(Timestamp::from_millis(20_000));
        for line in [
            "countersign_operations{state=\"unknown\"} 0",
            "countersign_alarms_open{kind=\"bad_seal\"} 0",
            "countersign_freezes{scope=\"all\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }
}
