//! How often what happened: a run in which nothing happens tries nothing.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<String, usize>);

impl Tally {
    pub(super) fn count(&mut self, name: &str) {
        if let Some(count) = self.0.get_mut(name) {
            *count += 1;
        } else {
            self.0.insert(name.to_owned(), 1);
        }
    }

    pub(super) fn times(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// One line for each.
    pub(super) fn lines(&self) -> String {
        let lines: Vec<String> =
            self.0.iter().map(|(name, count)| format!("{count:>8} {name}")).collect();
        lines.join("\n")
    }
}
