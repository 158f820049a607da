//! The oracle: what may be answered to a proposal, said from what is true in the world and from the
//! text of the design alone. No code of the gateway is asked.
//!
//! Where the design leaves open what the gateway can have noticed, there are several answers.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::books::{Books, Deal, Known, Status};
use super::forms::{Asked, Payee, Source};
use super::rules::{self, Bank, Duplicate, Facts};
use super::world::{Account, Bill, COMPANIES, DAY, OWN, State, Vendor, World};

/// One answer that may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Refused at that stage, for one of these reasons.
    Denied(&'static str, Vec<&'static str>),
    /// Refused by exactly these rules.
    Barred(BTreeSet<&'static str>),
    /// Permitted with so many humans, because of exactly these rules.
    Permitted(u8, BTreeSet<&'static str>),
}

/// An answer that may be given, and what a human's vote would be bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answerable {
    pub(super) verdict: Verdict,
    /// All that is decided on, in words. Another text is another hash.
    pub(super) bound: String,
}

impl Verdict {
    /// A level, with its rules, never falls while an operation is pending (API 3).
    fn not_below(self, held: Option<&Held>) -> Self {
        let (Self::Permitted(level, rules), Some((least, kept))) = (&self, held) else {
            return self;
        };
        match level.cmp(least) {
            Ordering::Less => Self::Permitted(*least, kept.clone()),
            Ordering::Equal => Self::Permitted(*level, rules | kept),
            Ordering::Greater => self,
        }
    }

    pub(super) fn unbound(self) -> Answerable {
        Answerable { verdict: self, bound: String::new() }
    }
}

/// A proposal that came through to the records.
pub(super) struct Found {
    pub(super) bill: usize,
    pub(super) vendor: usize,
    pub(super) account: Account,
    /// Whether it is the one account that can be meant.
    certain: bool,
}

/// Who asks, and which operation it is, if it is one that is there already.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) mandate: usize,
    pub(super) operation: Option<usize>,
    /// What asked for humans while it is pending, and never lets go.
    pub(super) held: Option<Held>,
}

/// A level, and the rules that asked for it.
pub(super) type Held = (u8, BTreeSet<&'static str>);

pub(super) struct Judge<'a> {
    pub(super) world: &'a World,
    pub(super) books: &'a Books,
    /// Bills, by company and id, that several call about at this very moment.
    pub(super) racing: &'a BTreeSet<(usize, String)>,
}

impl Judge<'_> {
    /// What the values are by the records; else the codes of stage `provenance`.
    pub(super) fn find(&self, asked: &Asked, company: usize) -> Result<Found, Vec<&'static str>> {
        let own = &self.world.companies[company];
        let bill = own.bills.iter().position(|bill| bill.id == asked.bill);
        let bill = bill.ok_or(vec!["bill_not_found"])?;
        let mut wrong = Vec::new();
        let (journal, number) = OWN[company][0];
        let source_fits = match &asked.source {
            Source::Journal(named) => named == journal,
            Source::Number(named) => named == number,
        };
        if !source_fits || asked.currency != "EUR" {
            wrong.push("not_in_mandate");
        }
        let vendor = own.bills[bill].vendor;
        let account = payee(&own.vendors[vendor], vendor, &own.bills[bill], &asked.payee);
        match account {
            Some((account, certain)) if wrong.is_empty() => {
                Ok(Found { bill, vendor, account: account.clone(), certain })
            }
            found => {
                if found.is_none() {
                    wrong.push("payee_not_on_file");
                }
                Err(wrong)
            }
        }
    }

    /// What may be answered to a proposal in good form.
    pub(super) fn answers(&self, asked: &Asked, asking: &Asking) -> Vec<Answerable> {
        let company = self.books.mandates[asking.mandate].caller.company;
        let found = match self.find(asked, company) {
            Ok(found) => found,
            Err(wrong) => return vec![Verdict::Denied("provenance", wrong).unbound()],
        };
        let mut answers = Vec::new();
        // Of two calls at the same moment one may see the other half done.
        let raced = self.is_raced(company, found.bill);
        if raced {
            answers.push(Verdict::Denied("execution", vec!["operation_in_progress"]).unbound());
        }
        let refused = self.standing(asked, company, &found, asking);
        let blocked = refused.is_some();
        if let Some(refused) = refused {
            let in_the_way = matches!(&refused, Verdict::Denied("execution", _));
            answers.push(refused.unbound());
            if !in_the_way || !raced {
                return answers;
            }
        }
        let bill = &self.world.companies[company].bills[found.bill];
        if bill.currency != "EUR" {
            answers.push(Verdict::Denied("policy", vec!["currency_needs_rate"]).unbound());
            return answers;
        }
        for facts in self.possible_facts(asked, company, &found) {
            let mut verdict = rules::decide(&facts).not_below(asking.held.as_ref());
            let mut bound = String::new();
            if let Verdict::Permitted(level, rules) = &verdict {
                bound = self.bound(&facts, company, &found, *level, rules);
                let refused = self.sums(asked, company, &found, asking, *level);
                verdict = refused.unwrap_or(verdict);
            }
            let answer = Answerable { verdict, bound };
            let may_be = !blocked || !matches!(answer.verdict, Verdict::Permitted(..));
            if may_be && !answers.contains(&answer) {
                answers.push(answer);
            }
        }
        answers
    }

    /// What the operation hash covers of it (DESIGN 2, "What an approval covers"): no age, no sum.
    fn bound(
        &self,
        facts: &Facts,
        company: usize,
        found: &Found,
        level: u8,
        rules: &BTreeSet<&'static str>,
    ) -> String {
        let own = &self.world.companies[company];
        let (bill, vendor) = (&own.bills[found.bill], &own.vendors[found.vendor]);
        let barred = if level == 0 { &BTreeSet::new() } else { rules };
        let ageless = Facts {
            approved_days: 0,
            amount: 0,
            vendor_day: 0,
            vendor_month: 0,
            company_day: 0,
            ..facts.clone()
        };
        format!(
            "{ageless:?} {:?} {} {} {} {} {} {level} {barred:?}",
            bill.reference,
            bill.total,
            bill.residual(),
            vendor.name,
            found.account.record,
            found.account.number,
        )
    }

    /// Whether something was just done about the bill by a call of the same moment.
    fn is_raced(&self, company: usize, bill: usize) -> bool {
        let id = self.world.companies[company].bills[bill].id.clone();
        let now = |deal: &Deal| deal.hour == self.world.hour;
        let done =
            self.books.live(company, bill).is_some() || self.books.deals_of(company, bill).any(now);
        done && self.racing.contains(&(company, id))
    }

    /// Budget, and what stands in the way on the bill.
    fn standing(
        &self,
        asked: &Asked,
        company: usize,
        found: &Found,
        asking: &Asking,
    ) -> Option<Verdict> {
        let mandate = &self.books.mandates[asking.mandate];
        let (spent, calls) = self.books.taken(asking.mandate);
        let mut over = Vec::new();
        if mandate.budget.is_some_and(|budget| spent.saturating_add(asked.amount) > budget) {
            over.push("budget_exceeded");
        }
        if mandate.calls.is_some_and(|most| calls >= most) {
            over.push("calls_exceeded");
        }
        if !over.is_empty() {
            return Some(Verdict::Denied("budget", over));
        }
        let mut held = Vec::new();
        let paid: i64 = self.books.deals_of(company, found.bill).map(|deal| deal.amount).sum();
        if self.pinned(company, found.bill).is_some_and(|total| paid >= total) {
            held.push("already_paid");
        }
        let rejected = |(hour, principal): &(i64, &str)| {
            *principal == mandate.caller.principal && self.world.hour - hour < DAY
        };
        let rejections = self.books.rejections.get(&(company, found.bill));
        if rejections.is_some_and(|all| all.iter().any(rejected)) && asking.held.is_none() {
            held.push("recently_rejected");
        }
        let live = self.books.live(company, found.bill);
        if live.is_some_and(|live| Some(live) != asking.operation) {
            held.push("operation_in_progress");
        }
        if self.books.is_frozen(company, found.vendor) {
            held.push("frozen");
        }
        (!held.is_empty()).then_some(Verdict::Denied("execution", held))
    }

    /// The bill's total as it was when the first payment of ours was decided on.
    fn pinned(&self, company: usize, bill: usize) -> Option<i64> {
        self.books.deals_of(company, bill).map(|deal| deal.total).next()
    }

    /// What is refused below the rules: more than the pinned total in sum, another total, too many
    /// that wait.
    fn sums(
        &self,
        asked: &Asked,
        company: usize,
        found: &Found,
        asking: &Asking,
        level: u8,
    ) -> Option<Verdict> {
        let bill = &self.world.companies[company].bills[found.bill];
        let paid: i64 = self.books.deals_of(company, found.bill).map(|deal| deal.amount).sum();
        let mut wrong = Vec::new();
        if let Some(pinned) = self.pinned(company, found.bill) {
            if pinned != bill.total {
                wrong.push("floor_total_changed");
            }
            if paid + asked.amount > pinned {
                wrong.push("floor_over_residual");
            }
        }
        if !wrong.is_empty() {
            return Some(Verdict::Denied("policy", wrong));
        }
        let waits = level > 0 && asking.held.is_none();
        let crowded = self.books.pending_under(asking.mandate) >= 20;
        (waits && crowded).then_some(Verdict::Denied("execution", vec!["too_many_pending"]))
    }

    /// The facts of a payment, in every combination of what may be noticed.
    fn possible_facts(&self, asked: &Asked, company: usize, found: &Found) -> Vec<Facts> {
        let own = &self.world.companies[company];
        let bill = &own.bills[found.bill];
        let vendor = &own.vendors[found.vendor];
        let number = &found.account.number;
        let hour = self.world.hour;
        let mut facts = Facts {
            open: bill.is_open(),
            within: asked.amount <= bill.residual(),
            partial: asked.amount < bill.residual(),
            has_reference: bill.reference.as_deref().is_some_and(|text| !folded(text).is_empty()),
            unapplied: self.has_credit(company, found.vendor),
            duplicate: Duplicate::None,
            bank: Bank::Adopted,
            cooling_off: false,
            allowed: found.account.allowed,
            own: OWN[company].iter().any(|(_, own)| own == number),
            vop: self.world.says(&vendor.name, number),
            sanctioned: self.world.sanctioned.contains(number),
            shared_with: self.shared_with(company, found),
            approved_days: 0,
            amount: asked.amount,
            vendor_day: self.books.automatic(company, Some(found.vendor), hour, DAY),
            vendor_month: self.books.automatic(company, Some(found.vendor), hour, 30 * DAY),
            company_day: self.books.automatic(company, None, hour, DAY),
        };
        let mut all = Vec::new();
        for (bank, since) in self.bank(company, found) {
            for duplicate in self.duplicates(company, found.bill) {
                (facts.bank, facts.duplicate) = (bank, duplicate);
                facts.cooling_off = hour - since < 7 * DAY;
                facts.approved_days = self.approved_days(company, found, since);
                all.push(facts.clone());
            }
        }
        all
    }

    /// How the account may be known, and since when.
    fn bank(&self, company: usize, found: &Found) -> Vec<(Bank, i64)> {
        let vendor = &self.world.companies[company].vendors[found.vendor];
        let several = vendor.active().count() > 1;
        let now = self.world.hour;
        let changed = (Bank::Changed, now);
        let Some(seen) = self.books.seen.get(&(company, found.vendor)) else {
            // A vendor that nobody told the gateway of before.
            let bank = if several || !found.certain { Bank::Ambiguous } else { Bank::Unverified };
            return vec![(bank, now)];
        };
        let Some(seen) = seen.get(&found.account.record) else { return vec![changed] };
        let same = seen.number == found.account.number && seen.active == found.account.active;
        let another = self.books.is_another(self.world, company, found.vendor);
        if !same || seen.known == Known::Changed || another {
            return vec![changed];
        }
        let bank = match seen.known {
            _ if !found.certain => Bank::Ambiguous,
            Known::Unverified if several => Bank::Ambiguous,
            Known::Unverified => Bank::Unverified,
            Known::Adopted | Known::Changed => Bank::Adopted,
        };
        // Who edits and edits back between two looks may go unnoticed.
        let flickered = seen.flickered || self.books.may_be_another(company, found.vendor);
        if flickered { vec![(bank, seen.since), changed] } else { vec![(bank, seen.since)] }
    }

    /// Whole days since a payment to this very account that a human approved.
    fn approved_days(&self, company: usize, found: &Found, since: i64) -> i64 {
        let to_it = |deal: &&Deal| {
            deal.company == company
                && deal.vendor == found.vendor
                && deal.record == found.account.record
                && deal.number == found.account.number
                && deal.level > 0
                && deal.hour >= since
        };
        let first = self.books.deals().filter(to_it).map(|deal| deal.hour).min();
        first.map_or(0, |hour| (self.world.hour - hour) / DAY)
    }

    /// Whether the vendor owes something back: an open credit note, more paid than a bill says, or
    /// something paid on what is no posted bill any more.
    fn has_credit(&self, company: usize, vendor: usize) -> bool {
        let owes = |bill: &Bill| {
            let posted = bill.state == State::Posted;
            if bill.is_note {
                posted && bill.residual() > 0
            } else {
                bill.residual() < 0 || (!posted && bill.paid > 0)
            }
        };
        let bills = &self.world.companies[company].bills;
        bills.iter().any(|bill| bill.vendor == vendor && owes(bill))
    }

    /// How many other vendors of the company have the number on an active account, or had it when
    /// the gateway last looked.
    fn shared_with(&self, company: usize, found: &Found) -> usize {
        let number = &found.account.number;
        let vendors = self.world.companies[company].vendors.iter().enumerate();
        let now = vendors
            .filter(|(_, vendor)| vendor.active().any(|account| account.number == *number))
            .map(|(other, _)| other);
        let before = self
            .books
            .seen
            .iter()
            .filter(|((of, _), _)| *of == company)
            .filter(|(_, all)| all.values().any(|seen| seen.active && seen.number == *number))
            .map(|((_, other), _)| *other);
        let mut others: BTreeSet<usize> = now.chain(before).collect();
        others.remove(&found.vendor);
        others.len()
    }

    /// Whether another bill looks like this one. A draft or a cancelled one may count or not.
    fn duplicates(&self, company: usize, bill: usize) -> Vec<Duplicate> {
        let this = &self.world.companies[company].bills[bill];
        let reference = this.reference.as_deref().map(folded).filter(|text| !text.is_empty());
        let near = |other: i64| (other - this.date).abs() <= 5;
        let same = |other: Option<&str>| {
            reference.is_some() && other.map(folded).as_deref() == reference.as_deref()
        };
        let word = |other: Option<&str>, total: i64, currency: &str, date: i64| {
            if same(other) {
                Duplicate::Likely
            } else if (total, currency) == (this.total, this.currency) && near(date) {
                Duplicate::Similar
            } else {
                Duplicate::None
            }
        };
        let (mut least, mut most) = (Duplicate::None, Duplicate::None);
        for (at, other) in self.world.companies[company].bills.iter().enumerate() {
            if at == bill || other.vendor != this.vendor {
                continue;
            }
            let found = word(other.reference.as_deref(), other.total, other.currency, other.date);
            most = most.max(found);
            if other.state == State::Posted && !other.is_note {
                least = least.max(found);
            }
        }
        for deal in self.books.deals() {
            if deal.company == company && deal.bill != bill && deal.vendor == this.vendor {
                let found = word(deal.reference.as_deref(), deal.total, "EUR", deal.date);
                (least, most) = (least.max(found), most.max(found));
            }
        }
        Duplicate::ALL.into_iter().filter(|word| (least..=most).contains(word)).collect()
    }
}

/// The account of the vendor that is meant, and whether it can be no other.
fn payee<'a>(
    vendor: &'a Vendor,
    at: usize,
    bill: &Bill,
    asked: &Payee,
) -> Option<(&'a Account, bool)> {
    let is_named = |account: &Account| bill.named == Some((at, account.record));
    let account = match asked {
        Payee::Number(number) => vendor.active().find(|account| account.number == *number)?,
        Payee::OnFile(id) if *id == vendor.id => {
            vendor.active().find(|account| is_named(account)).or_else(|| vendor.active().next())?
        }
        Payee::OnFile(_) => return None,
    };
    let certain = match bill.named {
        Some(_) => is_named(account),
        None => vendor.active().count() == 1,
    };
    Some((account, certain))
}

/// A reference as it is compared: its letters and digits in one case, look-alikes as one, without
/// the zeros that lead a number.
fn folded(reference: &str) -> String {
    let mut text = String::new();
    for c in reference.chars().flat_map(char::to_uppercase) {
        let plain = match c {
            '\u{ff10}'..='\u{ff19}' => char::from_digit(u32::from(c) - 0xff10, 10).unwrap_or(c),
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        };
        let leads = !text.ends_with(|last: char| last.is_ascii_digit());
        if plain.is_alphanumeric() && !(plain == '0' && leads) {
            text.push(plain);
        }
    }
    text
}

/// Whether the ERP's own side refuses an order to that account, which no fact of the company tells:
/// it is another company's own.
pub(super) fn erp_refuses(company: usize, number: &str) -> bool {
    OWN[1 - company].iter().any(|(_, own)| *own == number)
}

/// The HTTP status of an operation as an answer.
pub(super) fn http_status(status: Status, stage: &str) -> u16 {
    match status {
        Status::Executed => 201,
        Status::Pending => 202,
        Status::Denied if stage == "contract" => 422,
        Status::Denied => 403,
        Status::Prepared
        | Status::Cancelled
        | Status::Expired
        | Status::Rejected
        | Status::Failed => 200,
    }
}

/// What must not stand in an answer to that company's callers: the other one's names.
pub(super) fn foreign(company: usize) -> [&'static str; 2] {
    [COMPANIES[1 - company], ["RF-", "BS-"][company]]
}
