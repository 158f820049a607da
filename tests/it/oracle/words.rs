//! Wishes put into words: the JSON that is sent.

use serde_json::{Value, json};

use super::books::Books;
use super::steps::{Form, From, Much, To, Which, Wish};
use super::world::{COMPANIES, OWN, World, euros};

/// Signs that hide in a number.
const HIDDEN: [&str; 6] = ["\u{200b}", "\u{a0}", "-", "\u{202e}", "\u{ff10}", "\u{2060}"];

/// A proposal as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    pub(super) mandate: usize,
    pub(super) key: String,
    pub(super) body: Value,
}

impl Wish {
    pub(super) fn bill(&self, world: &World, company: usize) -> Option<(usize, usize)> {
        let bills = &world.companies[company].bills;
        let pick = |from: &[usize], nth: usize| from.get(nth % from.len().max(1)).copied();
        match self.bill {
            Which::Open(nth) => {
                let open: Vec<usize> = (0..bills.len()).filter(|at| bills[*at].is_open()).collect();
                pick(&open, nth).map(|at| (company, at))
            }
            Which::Hot(nth) => pick(&world.companies[company].hot, nth).map(|at| (company, at)),
            Which::Any(nth) => Some((company, nth % bills.len())),
            Which::Foreign(nth) => {
                let other = 1 - company;
                Some((other, nth % world.companies[other].bills.len()))
            }
            Which::Missing => None,
        }
    }

    /// The words of it; the key is a new one unless an earlier one is wanted.
    pub(super) fn words(&self, world: &World, books: &Books, fresh: usize) -> Proposal {
        let mandate = self.by % books.mandates.len();
        let caller = books.mandates[mandate].caller;
        let of = self.bill(world, caller.company);
        let (company, bill) = of.unwrap_or((caller.company, 0));
        let bill = &world.companies[company].bills[bill];
        let id = if of.is_some() { bill.id.clone() } else { "BS-B-0".to_owned() };
        let left = bill.residual();
        let amount = match self.amount {
            Much::Left(more) => left + more,
            Much::Total => bill.total,
            Much::Half => left / 2,
            Much::Exactly(amount) => amount,
            Much::Budget(more) => {
                let budget = books.mandates[mandate].budget.unwrap_or(left);
                budget - books.taken(mandate).0 + more
            }
        };
        let amount = euros(amount.max(1));
        let mut args = json!({
            "invoice_ref": id, "payee_iban": self.payee(world, company, bill.vendor),
            "amount": amount, "currency": "EUR", "source_account": self.source(caller.company),
        });
        let mut body = json!({ "action": "invoice.pay" });
        if self.prepare {
            body["mode"] = json!("prepare");
        }
        match self.form {
            Form::Sound => {}
            Form::Currency(code) => {
                args["currency"] = json!(code);
                if code == "JPY" {
                    args["amount"] = json!("1200");
                }
            }
            Form::Amount(text) => args["amount"] = json!(text),
            Form::AmountAsNumber => args["amount"] = json!(1200),
            Form::Action(action) => body["action"] = json!(action),
            Form::Mode(mode) => body["mode"] = json!(mode),
            Form::More(name) => args[name] = json!("true"),
            Form::Without(name) => {
                args.as_object_mut().unwrap().remove(name);
            }
            Form::Reference(name) => args[name] = json!({ "ref": args[name] }),
        }
        body["args"] = args;
        let own: Vec<&String> =
            books.keys.keys().filter(|(owner, _)| *owner == caller).map(|(_, key)| key).collect();
        let key = match self.key_of {
            Some(nth) if !own.is_empty() => own[own.len() - 1 - nth % own.len()].clone(),
            _ => format!("key-{fresh:06}"),
        };
        Proposal { mandate, key, body }
    }

    fn payee(&self, world: &World, company: usize, vendor: usize) -> Value {
        let vendors = &world.companies[company].vendors;
        let other = 1 - company;
        let own = &vendors[vendor];
        let on_file =
            own.active().next().map_or_else(|| own.real.clone(), |one| one.number.clone());
        let of = |from: usize, nth: usize| {
            let vendors = &world.companies[from].vendors;
            &vendors[nth % vendors.len()]
        };
        match self.payee {
            To::OnFile => json!({ "ref": own.id }),
            To::Number(nth) => json!(spelt(&on_file, nth)),
            To::Other(nth) => {
                let all = &own.accounts;
                json!(all.get(nth % all.len().max(1)).map_or(on_file, |one| one.number.clone()))
            }
            To::Neighbour(nth) => json!(of(company, nth).real),
            To::NeighbourOnFile(nth) => json!({ "ref": of(company, nth).id }),
            To::Foreign(nth) => json!(of(other, nth).real),
            To::ForeignOnFile(nth) => json!({ "ref": of(other, nth).id }),
            To::Own(nth) => {
                let of_both = [OWN[company][0].1, OWN[other][0].1];
                json!(of_both[nth % 2])
            }
            To::Nobody => json!("NL91ABNA0417164300"),
            To::Disguised(nth) => {
                let mut hidden = on_file;
                hidden.insert_str(nth % hidden.len(), HIDDEN[nth % HIDDEN.len()]);
                json!(hidden)
            }
        }
    }

    fn source(&self, company: usize) -> Value {
        let (journal, number) = OWN[company][0];
        match self.source {
            From::Journal => json!({ "ref": journal }),
            From::Number => json!(spelt(number, self.by)),
            From::Other(nth) => {
                let choices = [
                    json!({ "ref": "BNK2" }),
                    json!({ "ref": "bnk1" }),
                    json!("BE62510007547061"),
                    json!(OWN[1 - company][0].1),
                    json!({ "ref": COMPANIES[company] }),
                ];
                choices[nth % choices.len()].clone()
            }
        }
    }
}

/// One number in the spellings that people use.
fn spelt(number: &str, nth: usize) -> String {
    let groups = |text: &str| {
        let chars: Vec<char> = text.chars().collect();
        let groups: Vec<String> = chars.chunks(4).map(|four| four.iter().collect()).collect();
        groups.join(" ")
    };
    match nth % 4 {
        0 => number.to_owned(),
        1 => groups(number),
        2 => number.to_lowercase(),
        _ => format!(" {} ", groups(&number.to_lowercase())),
    }
}
