//! Plays a sequence on the gateway, and holds everything that was done against the rules.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::ap::vendor::callback::{self, Outcome};
use countersign::ap::{self, watching};
use countersign::domain::decision::Level;
use countersign::domain::names::OperationId;
use countersign::domain::operation::{Operation, Status};
use countersign::domain::vote::NoVote;
use countersign::gateway::contract::Proposal;
use countersign::gateway::{ApprovalError, CallError};
use countersign_erp_source::{Clock as _, Iban, Timestamp};
use serde_json::{Value, json};

use super::books::{self, Books, Vote};
use super::edits::a_vendor;
use super::erp::{Erp, Event, Shown};
use super::judge::{Judge, Wrong};
use super::numbers;
use super::port::{bill_id, vendor_id};
use super::scene::{Company, Scene, name};
use super::steps::{About, Call, Dial, Step};
use super::tally::Tally;
use super::world::Genesis;

/// What every step takes.
const PACE: Duration = Duration::from_mins(3);

/// What went wrong, at which step, and all that happened until then.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) step: usize,
    pub(super) text: Wrong,
    pub(super) story: Vec<String>,
}

/// One that waits, as somebody saw it last.
#[derive(Debug, Clone)]
struct Waiting {
    id: OperationId,
    hash: String,
}

struct Play<'a> {
    scene: &'a Scene,
    company: Company,
    books: Books,
    waiting: Vec<Waiting>,
    executed: BTreeSet<String>,
    keys: usize,
    tally: &'a mut Tally,
    story: Vec<String>,
}

/// Plays it in a company of its own.
pub(super) async fn play(
    scene: &mut Scene,
    genesis: &Genesis,
    steps: &[Step],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let company = scene.begin(genesis).await;
    let books = {
        let mut erp = scene.port.lock();
        erp.events.clear();
        Books::adopt(&erp)
    };
    let mut play = Play {
        scene,
        company,
        books,
        waiting: Vec::new(),
        executed: BTreeSet::new(),
        keys: 0,
        tally,
        story: Vec::new(),
    };
    for (at, step) in steps.iter().enumerate() {
        play.tell(&format!("{step:?}"));
        if let Err(text) = play.step(step).await {
            return Err(Failure { step: at, text, story: play.story });
        }
    }
    Ok(())
}

impl Play<'_> {
    fn now(&self) -> Timestamp {
        self.scene.port.now()
    }

    fn tell(&mut self, text: &str) {
        self.story.push(format!("{} {text}", self.now()));
    }

    fn with_erp<T>(&self, of: impl FnOnce(&Erp) -> T) -> T {
        of(&self.scene.port.lock())
    }

    fn pass(&self, time: Duration) {
        let mut erp = self.scene.port.lock();
        erp.now = erp.now.plus(time);
    }

    async fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        self.pass(PACE);
        self.tally.count("steps");
        match *step {
            Step::Edit(edit) => {
                let made = edit.make(&mut self.scene.port.lock());
                if made {
                    self.tally.count(&format!("edit: {}", edit.kind()));
                }
                self.happened(None)
            }
            Step::Amid(looks, edit) => {
                self.scene.port.lock().armed = Some((looks, edit));
                Ok(())
            }
            Step::Wait(time) => {
                self.pass(time);
                Ok(())
            }
            Step::Watch => {
                let round = watching::round(&self.scene.pack, &self.company.id).await.unwrap();
                assert!(round.unread.is_none(), "{:?}", round.unread);
                watching::finish(&self.scene.pack, &self.company.id, round).await.unwrap();
                self.happened(None)
            }
            Step::Expire => {
                self.scene.gateway.settle_round(true).await.unwrap();
                self.happened(None)
            }
            Step::Pay { vendor, bill, by_number } => self.pay(vendor, bill, by_number).await,
            Step::Change { vendor, about } => self.change(vendor, about).await,
            Step::Confirm { vendor, nth, by } => {
                let about = self.about(vendor, About::OnFile(nth));
                let args = json!({ "vendor_id": about.0, "iban": about.1 });
                self.begin_own(ap::CONFIRM_BANK_DETAILS, &args, by).await
            }
            Step::ConfirmPhone { vendor, kind, by } => {
                let (vendor, phone) = self.with_erp(|erp| {
                    let vendor = a_vendor(erp, vendor);
                    let phone = erp.vendors[vendor].phones[kind % 2].clone();
                    (vendor, phone.map(|(number, _)| number))
                });
                let phone = phone.unwrap_or_else(|| numbers::phone(1));
                let args = json!({
                    "vendor_id": vendor_id(vendor).as_str(), "phone": phone, "how": "in person",
                });
                self.begin_own(ap::CONFIRM_PHONE, &args, by).await
            }
            Step::Call(call) => self.call(call).await,
            Step::Vote { nth, by, stale } => self.vote(nth, by, stale).await,
            Step::Reject { nth, by } => {
                let Some(at) = self.nth_waiting(nth) else { return Ok(()) };
                let id = self.waiting[at].id.clone();
                let answer = self.scene.gateway.reject(&name(by), &id, "no").await;
                match answer {
                    Ok(operation) => self.answered(&operation),
                    Err(refused) => self.refused(&refused, at),
                }
            }
        }
    }

    /// The vendor's id, and the number that is meant.
    fn about(&self, vendor: usize, about: About) -> (String, String) {
        self.with_erp(|erp| {
            let vendor = a_vendor(erp, vendor);
            let number = match about {
                About::New(nth) => numbers::account(nth),
                About::OnFile(nth) => {
                    let mut all: Vec<_> = erp.accounts(vendor).collect();
                    all.sort_by_key(|record| !record.active);
                    let one = all.get(nth % all.len().max(1));
                    one.map_or_else(|| numbers::account(nth), |record| record.number.clone())
                }
            };
            (vendor_id(vendor).to_string(), number)
        })
    }

    async fn pay(&mut self, vendor: usize, nth: usize, by_number: bool) -> Result<(), Wrong> {
        let found = self.with_erp(|erp| {
            let vendor = a_vendor(erp, vendor);
            let open: Vec<usize> = (0..erp.bills.len())
                .filter(|at| {
                    let bill = &erp.bills[*at];
                    erp.commercial(bill.entered) == vendor && bill.paid < bill.total
                })
                .collect();
            let bill = *open.get(nth % open.len().max(1))?;
            let left = erp.bills[bill].total - erp.bills[bill].paid;
            let named = erp.bills[bill].named.and_then(|named| erp.record(named));
            let payee = if by_number {
                json!(named.map_or_else(|| numbers::own_of(vendor), |named| named.number.clone()))
            } else {
                json!({ "ref": vendor_id(vendor).as_str() })
            };
            Some((bill, left, payee))
        });
        let Some((bill, left, payee)) = found else { return Ok(()) };
        let args = json!({
            "invoice_ref": bill_id(bill).as_str(), "payee_iban": payee, "currency": "EUR",
            "amount": format!("{}.{:02}", left / 100, left % 100),
            "source_account": { "ref": "BNK1" },
        });
        self.propose(ap::INVOICE_PAY, &args).await
    }

    async fn change(&mut self, vendor: usize, about: About) -> Result<(), Wrong> {
        let (vendor, number) = self.about(vendor, about);
        let args = json!({ "vendor_id": vendor, "new_iban": number, "reason": "they wrote" });
        self.propose(ap::UPDATE_BANK_DETAILS, &args).await
    }

    async fn propose(&mut self, action: &str, args: &Value) -> Result<(), Wrong> {
        self.keys += 1;
        let key = format!("key-{}", self.keys);
        let proposal = Proposal::of(action, args);
        let gateway = &self.scene.gateway;
        let answer = Box::pin(gateway.propose(&self.company.caller, &key, proposal)).await;
        self.called(answer.map(|answer| answer.operation))
    }

    async fn begin_own(&mut self, action: &str, args: &Value, by: usize) -> Result<(), Wrong> {
        let (company, proposal) = (self.company.id.clone(), Proposal::of(action, args));
        let begun = Box::pin(self.scene.gateway.begin_own(company, name(by), proposal)).await;
        self.called(begun)
    }

    fn called(&mut self, answer: Result<Operation, CallError>) -> Result<(), Wrong> {
        match answer {
            Ok(operation) => self.answered(&operation),
            Err(fault) => Err(format!("a call was not answered: {fault:?}")),
        }
    }

    async fn call(&mut self, call: Call) -> Result<(), Wrong> {
        let (vendor, number) = self.about(call.vendor, call.about);
        let at = self.with_erp(|erp| a_vendor(erp, call.vendor));
        let on_file = |kind: usize| self.with_erp(|erp| erp.vendors[at].phones[kind % 2].clone());
        let dialled = match call.dial {
            Dial::OnFile(kind) => on_file(kind).map(|(number, _)| number),
            Dial::Real(kind) => Some(numbers::own_phone(at, kind % 2)),
            Dial::Any(nth) => Some(numbers::phone(nth)),
        };
        let dialled = dialled.unwrap_or_else(|| numbers::own_phone(at, 0));
        let now = self.now();
        let asked = call.asked.map(|before| now.minus(before));
        let ending = number.get(number.len() - 6..).unwrap();
        let misread = ending != "000000" && call.misread;
        let told = callback::Call {
            new_iban: Iban::parse(&number).unwrap(),
            number_dialled: dialled.clone(),
            spoke_to: "Ms Martin".to_owned(),
            read_back: if misread { "000000".to_owned() } else { ending.to_owned() },
            outcome: call.outcome,
            request_received_at: asked,
            note: None,
        };
        let (pack, id) = (&self.scene.pack, &self.company.id);
        let vendor = countersign_erp_source::VendorId::new(vendor).unwrap();
        let recorded = callback::record(pack, id, &vendor, &name(call.by), told).await;
        let recorded = match recorded {
            Ok(recorded) => recorded,
            // It was merged away in the midst of it.
            Err(callback::CallbackError::NoVendor) => return self.happened(None),
            Err(fault) => return Err(format!("a call was not written down: {fault:?}")),
        };
        self.happened(None)?;
        let confirmed = call.outcome == Outcome::Confirmed && !misread;
        let may_count = confirmed
            && !self.books.is_shared_phone(at, &dialled)
            && self.books.phone(at, &dialled).is_some_and(|phone| {
                phone.is_trusted(now) && self.books.was_on_file(at, phone, &number, asked)
            });
        if recorded.counts && !may_count {
            let phone = self.books.phone(at, &dialled);
            return Err(format!("a call counts that must not: {dialled}, {phone:?}"));
        }
        self.tally.count(if recorded.counts { "call: counts" } else { "call: does not count" });
        for why in &recorded.why_not {
            self.tally.count(&format!("call: {}", why.code()));
        }
        if call.outcome == Outcome::Denied || (call.outcome == Outcome::Confirmed && misread) {
            self.books.denied(at, &number);
        }
        let by = call.by % super::scene::PEOPLE.len();
        let counts = recorded.counts;
        self.books.calls.push(books::Call { vendor: at, number, dialled, by, at: now, counts });
        Ok(())
    }

    /// One of those that wait, the newest first.
    fn nth_waiting(&self, nth: usize) -> Option<usize> {
        let count = self.waiting.len();
        (count > 0).then(|| count - 1 - nth % count)
    }

    async fn vote(&mut self, nth: usize, by: usize, stale: bool) -> Result<(), Wrong> {
        let Some(at) = self.nth_waiting(nth) else { return Ok(()) };
        let Waiting { id, mut hash } = self.waiting[at].clone();
        if stale {
            hash = "0".repeat(64);
        }
        let vote = Vote { operation: id.to_string(), hash: hash.clone(), by: by % 4 };
        match Box::pin(self.scene.gateway.approve(&name(by), &id, &hash)).await {
            Ok(operation) => {
                self.books.votes.push(vote);
                self.tally.count("vote: taken");
                self.answered(&operation)
            }
            Err(refused) => self.refused(&refused, at),
        }
    }

    /// A vote, or a no, that was not taken.
    fn refused(&mut self, refused: &ApprovalError, at: usize) -> Result<(), Wrong> {
        let (word, is_over) = match refused {
            ApprovalError::NoVote(NoVote::SelfApproval) => ("self_approval", false),
            ApprovalError::NoVote(NoVote::Caller) => ("caller_cannot_approve", false),
            ApprovalError::NoVote(NoVote::NotAnApprover | NoVote::NotThePrincipal)
            | ApprovalError::MayNotReject => ("not_an_approver", false),
            ApprovalError::AlreadyDecided(_) => ("already_decided", true),
            ApprovalError::Expired => ("approval_expired", true),
            ApprovalError::Changed => ("operation_changed", false),
            ApprovalError::Frozen => ("frozen", false),
            ApprovalError::NotFound | ApprovalError::Store(_) | ApprovalError::Randomness(_) => {
                return Err(format!("a vote was not answered: {refused:?}"));
            }
        };
        self.tell(word);
        self.tally.count(&format!("vote: {word}"));
        if is_over {
            self.waiting.remove(at);
        }
        self.happened(None)
    }

    /// Notes what came of an operation, and holds it against the rules.
    fn answered(&mut self, operation: &Operation) -> Result<(), Wrong> {
        let reasons = operation.decision.reasons.join(" ");
        let status = operation.status.code();
        self.tell(&format!("{} is {status}: {reasons}", operation.action));
        self.tally.count(&format!("{}: {status}", operation.action));
        if operation.status != Status::Executed {
            for reason in &operation.decision.reasons {
                self.tally.count(&format!("{status}: {reason}"));
            }
        }
        self.waiting.retain(|waiting| waiting.id != operation.id);
        let counterparty = operation.substance.counterparty.clone().unwrap_or_default();
        let vendor = counterparty.get(1..).and_then(|nth| nth.parse().ok()).unwrap_or(usize::MAX);
        if operation.action == ap::UPDATE_BANK_DETAILS {
            // One about a vendor that is not there is nobody's.
            if let Some(number) = operation.substance.params.get("new_iban") {
                self.books.requested(vendor, &number.value, operation.created_at);
            }
            let is_this = |kept: &(String, Timestamp)| kept.0 == operation.id.as_str();
            if self.books.changing.get(&vendor).is_some_and(is_this) {
                self.books.changing.remove(&vendor);
            }
        }
        if operation.status == Status::Pending {
            assert!(operation.level > Level::None, "{operation:?} waits for nobody");
            let hash = operation.substance.hash.clone().unwrap_or_default();
            self.waiting.push(Waiting { id: operation.id.clone(), hash });
            if let Some(until) = operation.waits_until
                && operation.action == ap::UPDATE_BANK_DETAILS
            {
                self.books.changing.insert(vendor, (operation.id.to_string(), until));
            }
        }
        self.happened(Some(operation))
    }

    /// Takes what happened in the ERP into the books, in its order.
    fn happened(&mut self, operation: Option<&Operation>) -> Result<(), Wrong> {
        let now = self.now();
        let events = std::mem::take(&mut self.scene.port.lock().events);
        let mut seen: Option<Shown> = None;
        // Then nobody can tell which of two looks the facts are from.
        let is_torn = events.iter().any(|event| matches!(event, Event::Amid));
        for event in events {
            let judge = |books| match operation {
                Some(operation) => Ok(Judge { books, operation, now }),
                None => Err(format!("nobody asked for it: {event:?}")),
            };
            match &event {
                Event::Amid => self.tally.count("amid"),
                Event::Edited { records, phones } => self.books.edited(records, phones),
                Event::Merged { into, records } => {
                    self.books.merged.entry(*into).or_default().extend(records);
                }
                Event::Shown { shown, with_bill: true } => {
                    self.books.may_have_seen(shown.clone(), now);
                }
                Event::Shown { shown, with_bill: false } => {
                    self.books.seen(shown, now);
                    seen = Some(shown.clone());
                }
                Event::Paid(paid) => {
                    for name in judge(&mut self.books)?.paid(paid)? {
                        self.tally.count(name);
                    }
                }
                Event::Changed { vendor, old, new, number } => {
                    let shown = seen.as_ref().ok_or("bank details changed without a look")?;
                    judge(&mut self.books)?.changed(shown, number)?;
                    self.books.changed(*vendor, *old, (*new, number), now);
                    self.tally.count("changed");
                }
            }
        }
        let Some(operation) = operation else { return Ok(()) };
        let mut judge = Judge { books: &mut self.books, operation, now };
        let is_of_now = operation.substance.facts.values().any(|fact| fact.at == now);
        if operation.action == ap::INVOICE_PAY && is_of_now && !is_torn {
            judge.books.looked(now);
            judge.facts()?;
        }
        let first =
            operation.status == Status::Executed && self.executed.insert(operation.id.to_string());
        if let (true, Some(shown)) = (first, &seen) {
            match operation.action.as_str() {
                ap::CONFIRM_BANK_DETAILS => {
                    let record = judge.confirmed(shown)?;
                    self.books.confirmed(shown, record);
                    self.tally.count("confirmed");
                }
                ap::CONFIRM_PHONE => {
                    judge.phone_confirmed(shown)?;
                    self.tally.count("phone confirmed");
                }
                _ => {}
            }
        }
        Ok(())
    }
}
