//! Facts: what the gateway itself found out, each with its source and time. A fact that cannot be
//! had is absent, and an absent fact is a denial, never `false`.

use std::collections::BTreeMap;

use countersign_erp_source::Timestamp;

/// The value of a fact, in the kinds that a policy can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactValue {
    /// Yes or no.
    Bool(bool),
    /// A whole number: days, hundredths of the company's currency.
    Long(i64),
    /// A word of a closed list; `list` is the policy schema's name for it (`Vop`, `BankStatus`).
    Word {
        /// The list.
        list: &'static str,
        /// The word.
        word: &'static str,
    },
    /// A text for the humans, which no policy can read.
    Text(String),
}

/// A fact with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The value.
    pub value: FactValue,
    /// Where it was read: `erp`, `baseline`, `vop:sandbox`, `store`, `mandate`, `configuration`.
    pub source: String,
    /// When, by the daemon's clock.
    pub at: Timestamp,
    /// Whether an approval is bound to it. Ages and totals move by themselves and are not.
    pub binds: bool,
    /// Whether a caller with a mandate may see it.
    pub agents_see: bool,
}

/// All facts of one evaluation, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(BTreeMap<&'static str, Fact>);

impl Facts {
    /// Notes a fact; a second one of the same name takes its place.
    pub fn set(&mut self, name: &'static str, fact: Fact) {
        self.0.insert(name, fact);
    }

    /// The fact of that name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.get(name)
    }

    /// Whether that fact is there and true.
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name).map(|fact| &fact.value), Some(FactValue::Bool(true)))
    }

    /// The word of that fact, where it is one.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.get(name).map(|fact| &fact.value) {
            Some(FactValue::Word { word, .. }) => Some(word),
            Some(FactValue::Bool(_) | FactValue::Long(_) | FactValue::Text(_)) | None => None,
        }
    }

    /// All facts, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Fact)> {
        self.0.iter().map(|(name, fact)| (*name, fact))
    }
}
