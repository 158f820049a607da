//! What is true: what the ERP holds, what banks and lists would say, what time it is. Kept by the
//! test beside the sandbox, by the meaning that the API gives to an edit, and compared with what the
//! sandbox says of itself after each.

use std::collections::{BTreeMap, BTreeSet};

/// Two companies that book in euros; attackers know the names of both one's things.
pub(super) const COMPANIES: [&str; 2] = ["blue-sparrow", "red-fox"];

/// The accounts of the companies themselves: journal and number. The first is the mandates'.
pub(super) const OWN: [&[(&str, &str)]; 2] = [
    &[("BNK1", "FR1420041010050500013M02606"), ("BNK2", "BE62510007547061")],
    &[("BNK1", "BE68539007547034")],
];

/// Hours in a day.
pub(super) const DAY: i64 = 24;

/// What Verification of Payee answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vop {
    Match,
    Close,
    NoMatch,
    NotPossible,
}

impl Vop {
    pub(super) const ALL: [Self; 4] = [Self::Match, Self::Close, Self::NoMatch, Self::NotPossible];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Close => "close_match",
            Self::NoMatch => "no_match",
            Self::NotPossible => "not_possible",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Draft,
    Posted,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// The record, which stays the same when its number is edited.
    pub(super) record: u32,
    pub(super) number: String,
    pub(super) active: bool,
    pub(super) allowed: bool,
    /// How old it is at first contact.
    pub(super) age_days: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Vendor {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) accounts: Vec<Account>,
    /// How many records it ever had.
    pub(super) records: u32,
    /// The number that it really has, and is restored to.
    pub(super) real: String,
}

impl Vendor {
    pub(super) fn active(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().filter(|account| account.active)
    }

    /// The account that a bill of this vendor names where nobody says another.
    pub(super) fn first(&self) -> Option<u32> {
        self.active().next().or_else(|| self.accounts.first()).map(|account| account.record)
    }

    /// Edits the list of accounts as the API says: an entry whose number is on file keeps its
    /// record; another one changes the number of the record in its place, unless that one is kept by
    /// its own number; all others are new; what no entry stands for is deleted.
    pub(super) fn replace(&mut self, entries: &[Entry]) {
        let mut before: Vec<Option<Account>> = self.accounts.drain(..).map(Some).collect();
        let mut kept: Vec<Option<Account>> = entries
            .iter()
            .map(|entry| {
                before
                    .iter_mut()
                    .find(|slot| slot.as_ref().is_some_and(|kept| kept.number == entry.number))
                    .and_then(Option::take)
            })
            .collect();
        for (place, slot) in before.iter_mut().zip(&mut kept) {
            if slot.is_none() {
                *slot = place.take();
            }
        }
        for (entry, slot) in entries.iter().zip(kept) {
            let record = slot.map_or_else(
                || {
                    self.records += 1;
                    self.records
                },
                |kept| kept.record,
            );
            let Entry { number, active, allowed } = entry.clone();
            self.accounts.push(Account { record, number, active, allowed, age_days: 0 });
        }
    }
}

/// One account as an edit writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: String,
    pub(super) active: bool,
    pub(super) allowed: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Bill {
    pub(super) id: String,
    pub(super) vendor: usize,
    pub(super) reference: Option<String>,
    /// Days since the first of 2026.
    pub(super) date: i64,
    pub(super) currency: &'static str,
    /// Minor units.
    pub(super) total: i64,
    pub(super) paid: i64,
    pub(super) state: State,
    pub(super) is_note: bool,
    /// The account that it names: whose, and which record.
    pub(super) named: Option<(usize, u32)>,
}

impl Bill {
    pub(super) fn residual(&self) -> i64 {
        self.total - self.paid
    }

    /// Posted, a bill, and something left.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Posted && !self.is_note && self.residual() > 0
    }

    /// The word that the sandbox has for it.
    pub(super) fn word(&self) -> &'static str {
        match self.state {
            State::Draft => "draft",
            State::Cancelled => "cancelled",
            State::Posted if self.residual() <= 0 => "paid",
            State::Posted => "open",
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Company {
    pub(super) vendors: Vec<Vendor>,
    pub(super) bills: Vec<Bill>,
    /// Bills that somebody did something about, the newest last.
    pub(super) hot: Vec<usize>,
}

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) companies: [Company; 2],
    pub(super) vop: BTreeMap<(String, String), Vop>,
    pub(super) sanctioned: BTreeSet<String>,
    /// How far the clock was moved, in hours.
    pub(super) hour: i64,
    /// Which of the humans are there.
    pub(super) crew: usize,
    /// Numbers that were made up so far.
    numbers: u32,
    /// Bills and vendors that were made up so far.
    made: u32,
}

impl World {
    pub(super) fn empty() -> Self {
        Self {
            companies: [Company::default(), Company::default()],
            vop: BTreeMap::new(),
            sanctioned: BTreeSet::new(),
            hour: 0,
            crew: 0,
            numbers: 0,
            made: 0,
        }
    }

    /// A number of an account that nobody in the world has: no German bank has eight zeros.
    pub(super) fn new_number(&mut self) -> String {
        self.numbers += 1;
        iban("DE", &format!("00000000{:010}", self.numbers))
    }

    /// A name for something new, never used before, that tells whose it is.
    pub(super) fn new_id(&mut self, company: usize, kind: &str) -> String {
        self.made += 1;
        let whose = ["BS", "RF"][company];
        format!("{whose}-{kind}-{}", self.made)
    }

    pub(super) fn says(&self, name: &str, number: &str) -> Vop {
        let pair = (name.to_owned(), number.to_owned());
        self.vop.get(&pair).copied().unwrap_or(Vop::NoMatch)
    }

    /// Notes that somebody did something about a bill.
    pub(super) fn touch(&mut self, company: usize, bill: usize) {
        let hot = &mut self.companies[company].hot;
        hot.retain(|kept| *kept != bill);
        hot.push(bill);
        if hot.len() > 12 {
            hot.remove(0);
        }
    }
}

/// A number with the check digits that it needs (ISO 13616).
pub(crate) fn iban(country: &str, rest: &str) -> String {
    let check = 98 - remainder(&format!("{rest}{country}00"));
    format!("{country}{check:02}{rest}")
}

/// Whether that is a number in electronic form: form, length and check digits.
pub(super) fn is_iban(text: &str) -> bool {
    let length = match text.get(..2) {
        Some("FR") => 27,
        Some("DE" | "GB") => 22,
        Some("NL") => 18,
        Some("BE") => 16,
        _ => return false,
    };
    let plain = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let Some((head, rest)) = text.split_at_checked(4) else { return false };
    let check = head.trim_start_matches(|c: char| c.is_ascii_uppercase());
    plain
        && text.len() == length
        && check.len() == 2
        && !["00", "01", "99"].contains(&check)
        && remainder(&format!("{rest}{head}")) == 1
}

fn remainder(text: &str) -> u32 {
    text.chars().fold(0, |left, c| {
        let digit = c.to_digit(36).unwrap();
        let shifted = if digit < 10 { left * 10 } else { left * 100 };
        (shifted + digit) % 97
    })
}

/// Euros and cents as the API writes them.
pub(super) fn euros(minor: i64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

/// A day as the API writes it.
pub(super) fn date(days: i64) -> String {
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    (first + chrono::Duration::days(days)).to_string()
}
