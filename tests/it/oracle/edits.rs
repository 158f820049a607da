//! What clerks, thieves with a clerk's login, banks and lists do in the world between two proposals.

use serde_json::{Value, json};

use super::dice::Dice;
use super::genesis::AMOUNTS;
use super::world::{Bill, COMPANIES, Entry, OWN, State, Vendor, Vop, World, date, euros};

/// Something that somebody does: in which company, to which of its things (modulo how many there
/// are), and a number for whatever else is to be chosen.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) company: usize,
    pub(super) kind: Kind,
    pub(super) which: usize,
    pub(super) more: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    NewBill(New),
    Bill(OfBill),
    PayByHand,
    NewVendor,
    Accounts(OfAccounts),
    Rename,
    Verify,
    Sanction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum New {
    Honest,
    /// Of the same vendor as another one, and the same in something.
    Twin,
    Note,
    Foreign,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum OfBill {
    Draft,
    Cancel,
    Open,
    Amount,
    Reference,
    Date,
    MoveToVendor,
    NameAccount,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum OfAccounts {
    /// The number becomes somebody else's.
    Number,
    /// The number becomes the vendor's real one again.
    Restore,
    Add,
    Remove,
    Archive,
    Allow,
    Reorder,
}

const KINDS: [(usize, Kind); 24] = [
    (30, Kind::NewBill(New::Honest)),
    (6, Kind::NewBill(New::Twin)),
    (2, Kind::NewBill(New::Note)),
    (1, Kind::NewBill(New::Foreign)),
    (2, Kind::Bill(OfBill::Draft)),
    (2, Kind::Bill(OfBill::Cancel)),
    (8, Kind::Bill(OfBill::Open)),
    (5, Kind::Bill(OfBill::Amount)),
    (5, Kind::Bill(OfBill::Reference)),
    (3, Kind::Bill(OfBill::Date)),
    (3, Kind::Bill(OfBill::MoveToVendor)),
    (3, Kind::Bill(OfBill::NameAccount)),
    (10, Kind::PayByHand),
    (4, Kind::NewVendor),
    (4, Kind::Accounts(OfAccounts::Number)),
    (4, Kind::Accounts(OfAccounts::Restore)),
    (2, Kind::Accounts(OfAccounts::Add)),
    (1, Kind::Accounts(OfAccounts::Remove)),
    (2, Kind::Accounts(OfAccounts::Archive)),
    (3, Kind::Accounts(OfAccounts::Allow)),
    (2, Kind::Accounts(OfAccounts::Reorder)),
    (1, Kind::Rename),
    (4, Kind::Verify),
    (4, Kind::Sanction),
];

/// What has to be sent to the sandbox, and which record it gives back.
#[derive(Debug, Clone)]
pub(super) struct Errand {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) shows: Shows,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Shows {
    Nothing,
    Bill(usize, usize),
    Vendor(usize, usize),
}

impl Edit {
    pub(super) fn thrown(dice: &mut Dice) -> Self {
        Self {
            company: dice.weighted(&[(85, 0), (15, 1)]),
            kind: dice.weighted(&KINDS),
            which: dice.index(),
            more: dice.index(),
        }
    }

    /// Does it to the truth, and says what to send. Nothing where there is nothing to do it to.
    pub(super) fn perform(&self, world: &mut World) -> Vec<Errand> {
        let one = match self.kind {
            Kind::NewBill(new) => Some(self.new_bill(new, world)),
            Kind::Bill(what) => self.edit_bill(what, world),
            Kind::PayByHand => self.pay(world),
            Kind::NewVendor => return self.new_vendor(world),
            Kind::Accounts(what) => self.edit_accounts(what, world),
            Kind::Rename => Some(self.rename(world)),
            Kind::Verify => self.verify(world),
            Kind::Sanction => self.sanction(world),
        };
        one.into_iter().collect()
    }

    /// The bill that is meant: mostly one that somebody looked at lately.
    fn bill(&self, world: &World) -> usize {
        let company = &world.companies[self.company];
        if !self.more.is_multiple_of(3) && !company.hot.is_empty() {
            company.hot[self.which % company.hot.len()]
        } else {
            self.which % company.bills.len()
        }
    }

    fn vendor(&self, world: &World) -> usize {
        let company = &world.companies[self.company];
        if self.more.is_multiple_of(2) {
            company.bills[self.bill(world)].vendor
        } else {
            self.which % company.vendors.len()
        }
    }

    fn new_bill(&self, new: New, world: &mut World) -> Errand {
        let twin = self.bill(world);
        let id = world.new_id(self.company, "B");
        let company = &world.companies[self.company];
        let twin = company.bills[twin].clone();
        let vendor = if new == New::Honest { self.vendor(world) } else { twin.vendor };
        let company = &world.companies[self.company];
        let mut dice = Dice::new(u64::try_from(self.more).unwrap());
        let mut bill = Bill {
            vendor,
            reference: dice.weighted(&[(92, Some(format!("Ref/{id}"))), (8, None)]),
            date: 10 * i64::try_from(company.bills.len()).unwrap(),
            currency: "EUR",
            total: dice.weighted(&AMOUNTS),
            paid: 0,
            state: State::Posted,
            is_note: false,
            named: company.vendors[vendor].first().map(|record| (vendor, record)),
            id,
        };
        match new {
            New::Honest => {}
            New::Twin => {
                match dice.below(5) {
                    0 => {
                        let reference = twin.reference.as_deref();
                        bill.reference = reference.map(|text| respelt(text, self.more));
                    }
                    1 => bill.reference = twin.reference,
                    2 => (bill.total, bill.date) = (twin.total, twin.date + 5),
                    3 => (bill.total, bill.date) = (twin.total, twin.date - 6),
                    _ => (bill.total, bill.date) = (twin.total, twin.date),
                }
                if twin.currency != "EUR" {
                    bill.total = 100;
                }
            }
            New::Note => bill.is_note = true,
            New::Foreign => bill.currency = "JPY",
        }
        let amount =
            if bill.currency == "JPY" { bill.total.to_string() } else { euros(bill.total) };
        let body = json!({
            "vendor": company.vendors[vendor].id, "vendor_reference": bill.reference,
            "amount": amount, "currency": bill.currency, "date": date(bill.date),
            "kind": if bill.is_note { "credit_note" } else { "bill" },
        });
        world.companies[self.company].bills.push(bill);
        let made = world.companies[self.company].bills.len() - 1;
        world.touch(self.company, made);
        self.put_bill(world, made, body)
    }

    fn put_bill(&self, world: &World, bill: usize, body: Value) -> Errand {
        let id = &world.companies[self.company].bills[bill].id;
        Errand {
            method: "PUT",
            path: format!("companies/{}/bills/{id}", COMPANIES[self.company]),
            body,
            shows: Shows::Bill(self.company, bill),
        }
    }

    fn edit_bill(&self, what: OfBill, world: &mut World) -> Option<Errand> {
        let at = self.bill(world);
        let company = &mut world.companies[self.company];
        let vendors = company.vendors.len();
        let others: Vec<Option<String>> =
            company.bills.iter().map(|bill| bill.reference.clone()).collect();
        let bill = &mut company.bills[at];
        let body = match what {
            OfBill::Draft => {
                bill.state = State::Draft;
                json!({ "state": "draft" })
            }
            OfBill::Cancel => {
                bill.state = State::Cancelled;
                json!({ "state": "cancelled" })
            }
            OfBill::Open => {
                if bill.residual() <= 0 {
                    bill.paid = 0;
                }
                bill.state = State::Posted;
                json!({ "state": "open" })
            }
            OfBill::Amount => {
                let choices = [bill.total + 1, bill.total * 2, bill.total - 1, bill.paid, 500_000];
                let total = choices[self.more % choices.len()];
                if total <= 0 || bill.currency != "EUR" {
                    return None;
                }
                bill.total = total;
                json!({ "amount": euros(total) })
            }
            OfBill::Reference => {
                let other = &others[self.more % others.len()];
                bill.reference = match self.more % 4 {
                    0 => other.clone(),
                    1 => other.as_deref().map(|text| respelt(text, self.more / 4)),
                    2 => None,
                    _ => Some(format!("New/{}", self.more)),
                };
                json!({ "vendor_reference": bill.reference })
            }
            OfBill::Date => {
                bill.date += [-5, 5, 6, -6, 1][self.more % 5];
                json!({ "date": date(bill.date) })
            }
            OfBill::MoveToVendor => {
                let to = self.more % vendors;
                let (id, first) = (company.vendors[to].id.clone(), company.vendors[to].first());
                let bill = &mut company.bills[at];
                if bill.vendor != to {
                    bill.named = first.map(|record| (to, record));
                }
                bill.vendor = to;
                json!({ "vendor": id })
            }
            OfBill::NameAccount => {
                let vendor =
                    if self.more.is_multiple_of(3) { self.more % vendors } else { bill.vendor };
                let accounts = &company.vendors[vendor].accounts;
                let account = accounts.get(self.more % accounts.len().max(1))?;
                let number = account.number.clone();
                let named = named(&company.vendors, company.bills[at].vendor, &number)?;
                company.bills[at].named = Some(named);
                json!({ "payee_iban": number })
            }
        };
        world.touch(self.company, at);
        Some(self.put_bill(world, at, body))
    }

    fn pay(&self, world: &mut World) -> Option<Errand> {
        let at = self.bill(world);
        let company = &mut world.companies[self.company];
        let bill = &mut company.bills[at];
        if bill.word() != "open" || bill.currency != "EUR" {
            return None;
        }
        let left = bill.residual();
        let amount = [left, left, left / 2, 1, left + 1][self.more % 5].max(1);
        bill.paid += amount;
        let path = format!("companies/{}/bills/{}/pay", COMPANIES[self.company], bill.id);
        world.touch(self.company, at);
        let shows = Shows::Bill(self.company, at);
        Some(Errand { method: "POST", path, body: json!({ "amount": euros(amount) }), shows })
    }

    fn put_vendor(&self, world: &World, vendor: usize, body: Value) -> Errand {
        let id = &world.companies[self.company].vendors[vendor].id;
        Errand {
            method: "PUT",
            path: format!("companies/{}/vendors/{id}", COMPANIES[self.company]),
            body,
            shows: Shows::Vendor(self.company, vendor),
        }
    }

    fn new_vendor(&self, world: &mut World) -> Vec<Errand> {
        let id = world.new_id(self.company, "V");
        let real = world.new_number();
        let number = match self.more % 4 {
            0 => self.somebodys_number(world),
            _ => real.clone(),
        };
        let mut vendor =
            Vendor { name: format!("Vendor {id}"), id, accounts: Vec::new(), records: 0, real };
        let entry = Entry { number, active: true, allowed: true };
        vendor.replace(std::slice::from_ref(&entry));
        let body = json!({
            "name": vendor.name, "iban": entry.number, "iban_age_days": self.more % 900,
        });
        let known = says(world, &vendor.name, &entry.number, Vop::ALL[self.more % 7 % 4]);
        let company = &mut world.companies[self.company];
        company.vendors.push(vendor);
        let made = company.vendors.len() - 1;
        vec![self.put_vendor(world, made, body), known]
    }

    /// A number that is not this vendor's: a thief's, another vendor's, the company's own, another
    /// company's, another company's vendor's.
    fn somebodys_number(&self, world: &mut World) -> String {
        let of = |company: usize| {
            let vendors = &world.companies[company].vendors;
            vendors[self.which % vendors.len()].real.clone()
        };
        match self.more / 4 % 6 {
            0 | 1 => world.new_number(),
            2 => of(self.company),
            3 => of(1 - self.company),
            4 => OWN[self.company][self.which % OWN[self.company].len()].1.to_owned(),
            _ => OWN[1 - self.company][0].1.to_owned(),
        }
    }

    fn edit_accounts(&self, what: OfAccounts, world: &mut World) -> Option<Errand> {
        let at = self.vendor(world);
        let stranger = self.somebodys_number(world);
        let vendor = &mut world.companies[self.company].vendors[at];
        let mut entries: Vec<Entry> = vendor
            .accounts
            .iter()
            .map(|account| Entry {
                number: account.number.clone(),
                active: account.active,
                allowed: account.allowed,
            })
            .collect();
        let one = self.more % entries.len().max(1);
        match what {
            OfAccounts::Number => entries.get_mut(one)?.number = stranger,
            OfAccounts::Restore => entries.get_mut(0)?.number.clone_from(&vendor.real),
            OfAccounts::Add => {
                let entry = Entry { number: stranger, active: true, allowed: true };
                entries.insert(self.more % (entries.len() + 1), entry);
            }
            OfAccounts::Remove => {
                entries.get(one)?;
                entries.remove(one);
            }
            OfAccounts::Archive => {
                let entry = entries.get_mut(one)?;
                entry.active = !entry.active;
            }
            OfAccounts::Allow => {
                // What is not allowed is allowed again before anything else.
                let barred = entries.iter().position(|entry| !entry.allowed);
                let entry = entries.get_mut(barred.unwrap_or(one))?;
                entry.allowed = !entry.allowed;
            }
            OfAccounts::Reorder => entries.reverse(),
        }
        let numbers: std::collections::BTreeSet<_> =
            entries.iter().map(|entry| &entry.number).collect();
        if numbers.len() != entries.len() {
            return None;
        }
        vendor.replace(&entries);
        let list: Vec<Value> = entries
            .iter()
            .map(|entry| {
                json!({ "iban": entry.number, "active": entry.active, "allowed": entry.allowed })
            })
            .collect();
        Some(self.put_vendor(world, at, json!({ "accounts": list })))
    }

    fn rename(&self, world: &mut World) -> Errand {
        let at = self.vendor(world);
        let vendor = &mut world.companies[self.company].vendors[at];
        let usual = format!("Vendor {}", vendor.id);
        let other = format!("{usual} Holding");
        vendor.name = if vendor.name == usual { other } else { usual };
        let body = json!({ "name": vendor.name });
        self.put_vendor(world, at, body)
    }

    fn verify(&self, world: &mut World) -> Option<Errand> {
        let vendor = &world.companies[self.company].vendors[self.vendor(world)];
        let account = vendor.accounts.get(self.more % vendor.accounts.len().max(1))?;
        let (name, iban) = (vendor.name.clone(), account.number.clone());
        let answer = [Vop::Match, Vop::Match, Vop::ALL[self.more % 4]][self.more / 4 % 3];
        Some(says(world, &name, &iban, answer))
    }

    fn sanction(&self, world: &mut World) -> Option<Errand> {
        let vendor = &world.companies[self.company].vendors[self.vendor(world)];
        let account = vendor.accounts.get(self.more % vendor.accounts.len().max(1))?;
        let mut iban = account.number.clone();
        // Whoever is listed comes off it again, so that not all are listed in the end.
        let before = world.sanctioned.iter().nth(self.more % world.sanctioned.len().max(1));
        let listed = self.more.is_multiple_of(3);
        match before {
            Some(before) if !listed => iban = before.clone(),
            _ if !listed => return None,
            _ => {}
        }
        if listed {
            world.sanctioned.insert(iban.clone());
        } else {
            world.sanctioned.remove(&iban);
        }
        let body = json!({ "iban": iban, "listed": listed });
        Some(Errand { method: "PUT", path: "sanctions".to_owned(), body, shows: Shows::Nothing })
    }
}

/// A bank says from now on that about a name and a number.
fn says(world: &mut World, name: &str, iban: &str, answer: Vop) -> Errand {
    world.vop.insert((name.to_owned(), iban.to_owned()), answer);
    let body = json!({ "name": name, "iban": iban, "result": answer.word() });
    Errand { method: "PUT", path: "vop".to_owned(), body, shows: Shows::Nothing }
}

/// The account that a bill of that vendor names by a number: the vendor's own, or else anybody's,
/// where only one other has it.
fn named(vendors: &[Vendor], own: usize, number: &str) -> Option<(usize, u32)> {
    let of = |at: usize| {
        let found = vendors[at].accounts.iter().find(|account| account.number == number);
        found.map(|account| (at, account.record))
    };
    if let Some(found) = of(own) {
        return Some(found);
    }
    let mut others = (0..vendors.len()).filter_map(of);
    others.next().filter(|_| others.next().is_none())
}

/// The same reference as people, or thieves, write it differently.
fn respelt(reference: &str, nth: usize) -> String {
    let (words, number) = reference.rsplit_once('-').unwrap_or((reference, ""));
    match nth % 5 {
        0 => format!(" {}", reference.to_lowercase().replace('/', " - ")),
        1 => format!("{words}-000{number}"),
        2 => format!("{words}{number}"),
        3 => reference.replace('1', "l").replace('0', "O"),
        _ => reference.chars().map(wide).collect(),
    }
}

/// A digit of the width that Chinese texts have.
fn wide(c: char) -> char {
    let digit = c.to_digit(10).and_then(|digit| char::from_u32(0xff10 + digit));
    digit.unwrap_or(c)
}
