//! Answers, and whether they are what the oracle allows; what is known after them.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::RequestBuilder;
use serde_json::Value;

use super::books::{Books, Deal, Known, Operation, Status};
use super::forms::{self, Asked};
use super::judge::{Answerable, Asking, Found, Judge, Verdict, erp_refuses, http_status};
use super::words::Proposal;
use super::world::{World, euros};
use crate::described::Exchange;

/// An answer of the daemon.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) replayed: bool,
    pub(super) text: String,
    pub(super) json: Value,
}

type Done = Result<(), String>;

impl Answer {
    pub(super) async fn of(request: RequestBuilder) -> Result<Self, String> {
        let (client, request) = request.build_split();
        let request = request.map_err(|fault| format!("no request: {fault:?}"))?;
        let sent = request.try_clone().ok_or("a body that cannot be sent twice")?;
        let answer = client.execute(sent).await.map_err(|fault| format!("no answer: {fault:?}"))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let replayed = headers.contains_key("idempotent-replayed");
        let text = answer.text().await.map_err(|fault| format!("half an answer: {fault:?}"))?;
        Exchange::of(&request, status, &headers, &text).described()?;
        let status = status.as_u16();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Self { status, replayed, text, json })
    }

    pub(super) fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The gist of it.
    pub(super) fn short(&self) -> String {
        let [status, stage, code] =
            ["/status", "/decision/stage", "/code"].map(|pointer| self.text(pointer));
        format!("{} {status} {stage} {code} {:?}", self.status, self.reasons())
    }

    fn reasons(&self) -> BTreeSet<&str> {
        let reasons = self.json.pointer("/decision/reasons").and_then(Value::as_array);
        reasons.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Nothing of the other company, and no whole number: those of the world hold eight zeros.
    pub(super) fn tells_nothing_of(&self, foreign: &[&str]) -> Done {
        let numbers =
            ["00000000", "FR1420041010050500013M02606", "BE62510007547061", "BE68539007547034"];
        self.hides(foreign)?;
        self.hides(&numbers)
    }

    pub(super) fn hides(&self, secrets: &[&str]) -> Done {
        match secrets.iter().find(|text| self.text.contains(**text)) {
            Some(told) => Err(format!("`{told}` is told: {}", self.text)),
            None => Ok(()),
        }
    }

    pub(super) fn is_problem(&self, status: u16, codes: &[&str]) -> Done {
        if self.status == status && codes.contains(&self.text("/code")) {
            Ok(())
        } else {
            Err(format!("answered {} {}, not {status} {codes:?}", self.status, self.text))
        }
    }

    /// Whether it is that verdict on a proposal.
    fn is(&self, verdict: &Verdict, comes_to: Comes) -> bool {
        let found = (self.status, self.text("/status"), self.text("/decision/effect"));
        let stage = self.text("/decision/stage");
        let reasons = self.reasons();
        match verdict {
            Verdict::Denied(at, any) => {
                let status = if *at == "contract" { 422 } else { 403 };
                found == (status, "denied", "deny")
                    && stage == *at
                    && !reasons.is_empty()
                    && reasons.iter().all(|reason| any.contains(reason))
            }
            Verdict::Barred(rules) => {
                found == (403, "denied", "deny") && stage == "policy" && reasons == *rules
            }
            Verdict::Permitted(level, rules) => {
                let effect = ["allow", "step_up", "four_eyes"][usize::from(*level)];
                let (status, word) = match comes_to {
                    Comes::Preparing => (200, "prepared"),
                    Comes::Waiting => (202, "pending"),
                    Comes::Paying => (201, "executed"),
                    Comes::Refusing => (200, "failed"),
                };
                if word == "failed" {
                    let why = stage == "execution" && reasons.contains("erp_refused");
                    return found == (status, word, effect) && why;
                }
                let asks = word != "pending" || self.text("/approval/level") == effect;
                found == (status, word, effect) && stage == "policy" && reasons == *rules && asks
            }
        }
    }
}

/// What a permitted proposal comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// Nothing yet: it is prepared.
    Preparing,
    /// It waits for a human.
    Waiting,
    Paying,
    /// An order that the ERP's own side refuses.
    Refusing,
}

/// How much was tried, and what came of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) proposals: usize,
    /// How often each effect, and each reason, was rightly answered.
    pub(super) answered: BTreeMap<String, usize>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.proposals += other.proposals;
        for (what, times) in other.answered {
            *self.answered.entry(what).or_default() += times;
        }
    }

    fn count(&mut self, answer: &Answer) {
        let problem = Some(answer.text("/code")).filter(|code| !code.is_empty());
        let status = Some(answer.text("/status")).filter(|status| !status.is_empty());
        for what in status.into_iter().chain(problem).chain(answer.reasons()) {
            *self.answered.entry(what.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn times(&self, what: &str) -> usize {
        self.answered.get(what).copied().unwrap_or_default()
    }
}

/// What is true, and what follows from it.
#[derive(Debug, Clone)]
pub(super) struct Truth {
    pub(super) world: World,
    pub(super) books: Books,
    pub(super) tally: Tally,
    /// Bills that several call about at this very moment.
    pub(super) racing: BTreeSet<(usize, String)>,
}

impl Truth {
    /// Why a caller is not let in, if he is not.
    pub(super) fn not_let_in(&self, mandate: usize) -> Option<Vec<&'static str>> {
        let mandate = &self.books.mandates[mandate];
        let mut why = Vec::new();
        if mandate.revoked {
            why.push("mandate_revoked");
        }
        if mandate.over <= self.world.hour {
            why.push("mandate_expired");
        }
        (!why.is_empty()).then_some(why)
    }

    /// Whether a freeze stands in the way of an operation.
    pub(super) fn is_frozen(&self, at: usize) -> bool {
        let operation = &self.books.operations[at];
        let company = operation.caller.company;
        let vendor = operation.vendor;
        vendor.is_some_and(|vendor| self.books.is_frozen(company, vendor))
    }

    /// Takes the answer to a proposal in.
    pub(super) fn proposed(&mut self, proposal: &Proposal, answer: &Answer) -> Done {
        self.tally.proposals += 1;
        self.tally.count(answer);
        if let Some(why) = self.not_let_in(proposal.mandate) {
            return answer.is_problem(401, &why);
        }
        let caller = self.books.mandates[proposal.mandate].caller;
        let key = (caller, proposal.key.clone());
        let mut content = proposal.body.clone();
        if content.get("mode").is_none() {
            content["mode"] = Value::from("commit");
        }
        if let Some(before) = self.books.keys.get(&key).copied() {
            if self.books.operations[before].content != content {
                return answer.is_problem(409, &["idempotency_key_reused"]);
            }
            return self.repeated(before, answer, true);
        }
        if answer.replayed {
            return Err(format!("a new key is answered as an old one: {}", answer.text));
        }
        let asking = Asking { mandate: proposal.mandate, operation: None, held: None };
        let operation = Operation {
            id: answer.text("/id").to_owned(),
            mandate: proposal.mandate,
            caller,
            status: Status::Denied,
            stage: answer.text("/decision/stage").to_owned(),
            prepared: content["mode"] == "prepare",
            content,
            until: 0,
            bill: None,
            vendor: None,
            held: (0, BTreeSet::new()),
            hash: String::new(),
            bound: String::new(),
            deal: None,
        };
        self.books.operations.push(operation);
        let at = self.books.operations.len() - 1;
        let done = self.decided(at, &asking, answer);
        self.books.keys.insert(key, at);
        done
    }

    /// Finds the verdict that an answer is, and notes what follows.
    pub(super) fn decided(&mut self, at: usize, asking: &Asking, answer: &Answer) -> Done {
        let operation = &self.books.operations[at];
        if operation.id.is_empty() || operation.id != answer.text("/id") {
            return Err(format!("another operation is answered: {}", answer.text));
        }
        if answer.text("/receipt/hash").len() != 64 {
            return Err(format!("no receipt: {}", answer.text));
        }
        let judge = Judge { world: &self.world, books: &self.books, racing: &self.racing };
        let read = forms::read(&operation.content);
        let answers = match &read {
            Err(wrong) => vec![Verdict::Denied("contract", wrong.clone()).unbound()],
            Ok(asked) => judge.answers(asked, asking),
        };
        let found = read.as_ref().ok().map(|asked| judge.find(asked, operation.caller.company));
        let refuses = match &found {
            Some(Ok(found)) => erp_refuses(operation.caller.company, &found.account.number),
            Some(Err(_)) | None => false,
        };
        let comes = |one: &Answerable| {
            let asks = matches!(one.verdict, Verdict::Permitted(level, _) if level > 0);
            let approved = asking.held.is_some() && one.bound == operation.bound;
            if operation.prepared && asking.operation.is_none() {
                Comes::Preparing
            } else if asks && !approved {
                Comes::Waiting
            } else if refuses {
                Comes::Refusing
            } else {
                Comes::Paying
            }
        };
        let right = answers.iter().find(|one| answer.is(&one.verdict, comes(one)));
        let Some(right) = right.cloned() else {
            return Err(format!("answered {} {}, not {answers:?}", answer.status, answer.text));
        };
        let comes = comes(&right);
        let (Ok(asked), Some(Ok(found))) = (&read, found) else {
            let operation = &mut self.books.operations[at];
            operation.status = Status::Denied;
            operation.stage = answer.text("/decision/stage").to_owned();
            operation.prepared &= asking.operation.is_none();
            return Ok(());
        };
        self.learned(at, asking, asked, &found, (right, comes), answer)
    }

    fn learned(
        &mut self,
        at: usize,
        asking: &Asking,
        asked: &Asked,
        found: &Found,
        right: (Answerable, Comes),
        answer: &Answer,
    ) -> Done {
        let (Answerable { verdict, bound }, comes) = right;
        let company = self.books.operations[at].caller.company;
        let looked = match &verdict {
            Verdict::Denied(stage, reasons) => {
                (*stage == "policy" && !reasons.contains(&"currency_needs_rate"))
                    || reasons.contains(&"too_many_pending")
            }
            Verdict::Barred(_) | Verdict::Permitted(..) => true,
        };
        if looked {
            self.books.observe(&self.world, company, found.vendor);
            if let Verdict::Barred(rules) = &verdict
                && rules.contains("account-changed-in-erp-never-paid")
                && let Some(all) = self.books.seen.get_mut(&(company, found.vendor))
                && let Some(seen) = all.get_mut(&found.account.record)
            {
                seen.known = Known::Changed;
            }
        }
        self.world.touch(company, found.bill);
        let hour = self.world.hour;
        let operation = &mut self.books.operations[at];
        (operation.bill, operation.vendor) = (Some(found.bill), Some(found.vendor));
        operation.mandate = asking.mandate;
        operation.stage = answer.text("/decision/stage").to_owned();
        operation.prepared &= asking.operation.is_none();
        let Verdict::Permitted(level, rules) = verdict else {
            operation.status = Status::Denied;
            return Ok(());
        };
        answer.text("/operation_hash").clone_into(&mut operation.hash);
        (operation.held, operation.bound) = ((level, rules), bound);
        match comes {
            Comes::Preparing => {
                (operation.status, operation.until) = (Status::Prepared, hour + 24);
            }
            Comes::Waiting => {
                operation.status = Status::Pending;
                if asking.held.is_none() {
                    operation.until = hour + 72;
                }
            }
            Comes::Refusing => operation.status = Status::Failed,
            Comes::Paying => {
                operation.status = Status::Executed;
                self.executed(at, asked, found, level);
                self.check_result(asked, company, found, answer)?;
            }
        }
        Ok(())
    }

    /// Notes that money went.
    fn executed(&mut self, at: usize, asked: &Asked, found: &Found, level: u8) {
        let company = self.books.operations[at].caller.company;
        let bill = &mut self.world.companies[company].bills[found.bill];
        self.books.operations[at].deal = Some(Deal {
            hour: self.world.hour,
            company,
            bill: found.bill,
            vendor: found.vendor,
            record: found.account.record,
            number: found.account.number.clone(),
            amount: asked.amount,
            total: bill.total,
            reference: bill.reference.clone(),
            date: bill.date,
            level,
        });
        bill.paid += asked.amount;
    }

    fn check_result(&self, asked: &Asked, company: usize, found: &Found, answer: &Answer) -> Done {
        let bill = &self.world.companies[company].bills[found.bill];
        let says = ["amount", "currency", "bill_state", "amount_due"]
            .map(|name| answer.text(&format!("/result/{name}")).to_owned());
        let expected = [
            euros(asked.amount),
            "EUR".to_owned(),
            bill.word().to_owned(),
            euros(bill.residual().max(0)),
        ];
        if says == expected && !answer.text("/result/payment_ref").is_empty() {
            Ok(())
        } else {
            Err(format!("the result is not {expected:?}: {}", answer.text))
        }
    }

    /// An answer that only says how an operation is.
    pub(super) fn repeated(&self, at: usize, answer: &Answer, replay: bool) -> Done {
        let operation = &self.books.operations[at];
        let word = operation.status.word();
        let status = if replay { http_status(operation.status, &operation.stage) } else { 200 };
        let same = answer.text("/id") == operation.id
            && answer.text("/status") == word
            && answer.status == status
            && answer.replayed == replay;
        if same {
            Ok(())
        } else {
            let id = &operation.id;
            Err(format!("answered {} {}, not {status} {word} of {id}", answer.status, answer.text))
        }
    }

    /// Why nothing is told of an operation: the caller is not let in, or it is not his.
    fn closed(&self, at: usize, mandate: usize, answer: &Answer) -> Option<Done> {
        if let Some(why) = self.not_let_in(mandate) {
            return Some(answer.is_problem(401, &why));
        }
        let own = self.books.mandates[mandate].caller == self.books.operations[at].caller;
        (!own).then(|| answer.is_problem(404, &["not_found"]))
    }

    pub(super) fn committed(&mut self, at: usize, mandate: usize, answer: &Answer) -> Done {
        if let Some(closed) = self.closed(at, mandate, answer) {
            return closed;
        }
        let operation = &self.books.operations[at];
        if !operation.prepared {
            return self.repeated(at, answer, true);
        }
        if operation.status != Status::Prepared {
            return answer.is_problem(409, &["not_committable"]);
        }
        let asking = Asking { mandate, operation: Some(at), held: None };
        self.decided(at, &asking, answer)
    }

    pub(super) fn cancelled(&mut self, at: usize, mandate: usize, answer: &Answer) -> Done {
        if let Some(closed) = self.closed(at, mandate, answer) {
            return closed;
        }
        let operation = &mut self.books.operations[at];
        let waits = matches!(operation.status, Status::Prepared | Status::Pending);
        if !waits && operation.status != Status::Cancelled {
            return answer.is_problem(409, &["not_cancellable"]);
        }
        operation.status = Status::Cancelled;
        self.repeated(at, answer, false)
    }

    pub(super) fn followed(&self, at: usize, mandate: usize, answer: &Answer) -> Done {
        match self.closed(at, mandate, answer) {
            Some(closed) => closed,
            None => self.repeated(at, answer, false),
        }
    }
}
