//! A plan played on a running daemon, step by step, each answer compared with what the oracle says.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::answers::{Answer, Tally, Truth};
use super::audit::Audit;
use super::books::{Books, Caller};
use super::edits::{Errand, Shows};
use super::judge::foreign;
use super::stage::Stage;
use super::steps::{Call, Step};
use super::words::Proposal;
use super::world::{COMPANIES, World, date, euros};
use crate::daemon::{Daemon, http};

/// After so many steps everything that the ERP holds is looked at.
const AUDIT_EVERY: usize = 40;
/// So many things that were done last are told of a failure.
const STORY_MAX: usize = 40;

/// What went wrong, at which step.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) step: usize,
    pub(super) text: String,
    /// What was done before, in the words that were sent.
    pub(super) story: Vec<String>,
}

/// The truth, and the daemon that it is about.
pub(super) struct Play<'a> {
    pub(super) truth: Truth,
    pub(super) audit: Audit,
    pub(super) daemon: &'a Daemon,
    stage: &'a Stage,
    pub(super) client: Client,
    /// Tokens of humans, and since when.
    pub(super) sessions: BTreeMap<&'static str, (String, i64)>,
    /// The next new key.
    pub(super) fresh: usize,
    story: Vec<String>,
}

type Done = Result<(), String>;

/// Somebody who calls.
#[derive(Debug, Clone)]
pub(super) struct Line {
    client: Client,
    base: String,
    token: String,
    /// Another token of the same caller, which stands when this one does not any more.
    watcher: String,
    company: usize,
}

impl Line {
    pub(super) async fn propose(&self, key: &str, body: &Value) -> Result<Answer, String> {
        let request = self.client.post(format!("{}/v1/operations", self.base));
        let request = request.bearer_auth(&self.token).header("Idempotency-Key", key).json(body);
        self.to_its_end(Answer::of(request).await?).await
    }

    pub(super) async fn on_operation(&self, id: &str, call: &str) -> Result<Answer, String> {
        let method = if call.is_empty() { Method::GET } else { Method::POST };
        let request =
            self.client.request(method, format!("{}/v1/operations/{id}{call}", self.base));
        self.to_its_end(Answer::of(request.bearer_auth(&self.token)).await?).await
    }

    /// An operation that is still on its way is followed to its end.
    async fn to_its_end(&self, answer: Answer) -> Result<Answer, String> {
        answer.tells_nothing_of(&foreign(self.company))?;
        let mut last = answer;
        while matches!(last.text("/status"), "executing" | "unknown") {
            let id = last.text("/id").to_owned();
            let request = self.client.get(format!("{}/v1/operations/{id}?wait=30s", self.base));
            let now = Answer::of(request.bearer_auth(&self.watcher)).await?;
            // As if the answer had waited: only how it is said differs.
            let status = if now.text("/status") == "executed" { 201 } else { now.status };
            last = Answer { status, replayed: last.replayed, ..now };
        }
        Ok(last)
    }
}

/// Plays a plan in a new world of its own.
pub(super) async fn play(stage: &Stage, world: World, steps: &[Step]) -> Result<Tally, Failure> {
    let daemon = stage.start().await;
    let mut books = Books { mandates: stage.mandates.clone(), ..Books::default() };
    books.adopt(&world);
    let audit = Audit::new(&world);
    let truth = Truth { world, books, tally: Tally::default(), racing: BTreeSet::new() };
    let mut play = Play {
        truth,
        audit,
        daemon: &daemon,
        stage,
        client: http(),
        sessions: BTreeMap::new(),
        fresh: 0,
        story: Vec::new(),
    };
    for (at, step) in steps.iter().enumerate() {
        let mut done = play.step(step).await;
        if done.is_ok() && (at % AUDIT_EVERY == 0 || at + 1 == steps.len()) {
            done = play.look().await;
        }
        if let Err(text) = done {
            return Err(Failure { step: at, text, story: play.story });
        }
    }
    let tally = play.truth.tally.clone();
    daemon.stop();
    match stage.verify() {
        Ok(()) => Ok(tally),
        Err(text) => Err(Failure { step: steps.len() - 1, text, story: Vec::new() }),
    }
}

impl Play<'_> {
    /// Tells what is done, so that a failure can be read.
    pub(super) fn tell(&mut self, what: String) {
        self.story.push(what);
        if self.story.len() > STORY_MAX {
            self.story.remove(0);
        }
    }

    /// Who acts under that mandate.
    pub(super) fn name(&self, mandate: usize) -> String {
        let mandate = &self.truth.books.mandates[mandate];
        let Caller { principal, agent, .. } = mandate.caller;
        format!("{agent} of {principal} ({})", mandate.id)
    }

    async fn step(&mut self, step: &Step) -> Done {
        match step {
            Step::Call(call) => self.call(call).await,
            Step::Burst { calls, twice } => self.burst(calls, *twice).await,
            Step::Clerk(edit) => {
                for errand in edit.perform(&mut self.truth.world) {
                    self.run(&errand).await?;
                }
                Ok(())
            }
            Step::Clock(hours) => self.clock(*hours).await,
            Step::Revoke(nth) => {
                // Those that most is tried with stay.
                let mandate = [1, 2, 4, 5, 9][nth % 5];
                if !self.truth.books.mandates[mandate].revoked {
                    self.tell(format!("the mandate of {} is revoked", self.name(mandate)));
                    self.stage.revoke(&self.truth.books.mandates[mandate].id);
                    self.truth.books.revoke(mandate);
                }
                Ok(())
            }
            Step::Vote { nth, by, word } => self.vote(*nth, *by, *word).await,
            Step::Freeze(nth) => {
                self.freeze(*nth);
                Ok(())
            }
            Step::Read { by, which, more } => self.read(*by, *which, *more).await,
        }
    }

    /// The operator freezes a vendor or a company, or thaws the one that is frozen.
    fn freeze(&mut self, nth: usize) {
        if let Some((id, ..)) = self.truth.books.frozen.take() {
            self.tell("the freeze is removed".to_owned());
            self.stage.thaw(&id);
            return;
        }
        let company = usize::from(nth.is_multiple_of(5));
        let vendors = &self.truth.world.companies[company].vendors;
        let vendor = (!nth.is_multiple_of(4)).then_some(nth % vendors.len());
        let name = vendor.map(|vendor| vendors[vendor].id.clone());
        let id = self.stage.freeze(COMPANIES[company], name.as_deref());
        self.tell(format!("{} {name:?} is frozen", COMPANIES[company]));
        self.truth.books.frozen = Some((id, company, vendor));
    }

    async fn call(&mut self, call: &Call) -> Done {
        match call {
            Call::Propose(wish) => {
                let proposal = wish.words(&self.truth.world, &self.truth.books, self.fresh);
                self.fresh += 1;
                self.propose(&proposal).await
            }
            Call::Again { nth, altered, by } => {
                let Some(before) = self.latest(*nth) else { return Ok(()) };
                let operation = &self.truth.books.operations[before];
                let key = self.truth.books.keys.iter().find(|(_, at)| **at == before);
                let ((caller, key), _) = key.ok_or("an operation without a key")?;
                let own = |mandate: &usize| self.truth.books.mandates[*mandate].caller == *caller;
                let mandates: Vec<usize> =
                    (0..self.truth.books.mandates.len()).filter(own).collect();
                let mut body = operation.content.clone();
                if *altered {
                    body["args"]["amount"] = json!("7.77");
                }
                let proposal =
                    Proposal { mandate: mandates[by % mandates.len()], key: key.clone(), body };
                self.propose(&proposal).await
            }
            Call::Commit { nth, by, own } => {
                let Some((operation, mandate)) = self.whose(*nth, *by, *own) else { return Ok(()) };
                let answer = self.on_operation(operation, mandate, "/commit").await?;
                self.truth.committed(operation, mandate, &answer)
            }
            Call::Cancel { nth, by, own } => {
                let Some((operation, mandate)) = self.whose(*nth, *by, *own) else { return Ok(()) };
                let answer = self.on_operation(operation, mandate, "/cancel").await?;
                self.truth.cancelled(operation, mandate, &answer)
            }
            Call::Follow { nth, by, own } => {
                let Some((operation, mandate)) = self.whose(*nth, *by, *own) else { return Ok(()) };
                let answer = self.on_operation(operation, mandate, "").await?;
                self.truth.followed(operation, mandate, &answer)
            }
        }
    }

    /// The nth latest operation.
    pub(super) fn latest(&self, nth: usize) -> Option<usize> {
        let count = self.truth.books.operations.len();
        (count > 0).then(|| count - 1 - nth % count)
    }

    /// An operation, and whoever asks for it: its own caller, or anybody.
    pub(super) fn whose(&self, nth: usize, by: usize, own: bool) -> Option<(usize, usize)> {
        let operation = self.latest(nth)?;
        let caller = self.truth.books.operations[operation].caller;
        let mandates: Vec<usize> = (0..self.truth.books.mandates.len())
            .filter(|mandate| !own || self.truth.books.mandates[*mandate].caller == caller)
            .collect();
        Some((operation, mandates[by % mandates.len()]))
    }

    async fn propose(&mut self, proposal: &Proposal) -> Done {
        let line = self.line(proposal.mandate);
        let answer = line.propose(&proposal.key, &proposal.body).await?;
        let who = self.name(proposal.mandate);
        let Proposal { key, body, .. } = proposal;
        self.tell(format!("{who} proposes, {key}: {body}\n    {}", answer.short()));
        self.truth.proposed(proposal, &answer)
    }

    /// The line of whoever acts under that mandate.
    pub(super) fn line(&self, mandate: usize) -> Line {
        Line {
            client: self.client.clone(),
            base: self.daemon.base.clone(),
            token: self.truth.books.mandates[mandate].token.clone(),
            watcher: self.stage.watchers[mandate].clone(),
            company: self.truth.books.mandates[mandate].caller.company,
        }
    }

    async fn on_operation(
        &mut self,
        operation: usize,
        mandate: usize,
        call: &str,
    ) -> Result<Answer, String> {
        let id = self.truth.books.operations[operation].id.clone();
        let answer = self.line(mandate).on_operation(&id, call).await?;
        let who = self.name(mandate);
        self.tell(format!("{who} calls {id}{call}\n    {}", answer.short()));
        Ok(answer)
    }

    /// Does an edit, and compares what the sandbox shows then with the truth.
    async fn run(&mut self, errand: &Errand) -> Done {
        let method = if errand.method == "PUT" { Method::PUT } else { Method::POST };
        self.tell(format!("somebody edits {}: {}", errand.path, errand.body));
        let shown = self.sandbox(method, &errand.path, Some(&errand.body)).await?;
        let (shown, expected) = match errand.shows {
            Shows::Nothing => return Ok(()),
            Shows::Bill(company, bill) => {
                if errand.method == "POST" {
                    let id = &self.truth.world.companies[company].bills[bill].id;
                    let amount = errand.body["amount"].as_str().unwrap_or_default();
                    self.audit.by_hand(COMPANIES[company], id, amount);
                }
                (shown_bill(&shown), self.true_bill(company, bill))
            }
            Shows::Vendor(company, vendor) => {
                self.truth.books.note_edit(&self.truth.world, company, vendor);
                (shown_vendor(&shown), self.true_vendor(company, vendor))
            }
        };
        if shown == expected {
            Ok(())
        } else {
            let (path, body) = (&errand.path, &errand.body);
            Err(format!(
                "the test's own world is not the sandbox's after {path} {body}: {shown} is not {expected}"
            ))
        }
    }

    fn true_bill(&self, company: usize, bill: usize) -> Value {
        let own = &self.truth.world.companies[company];
        let bill = &own.bills[bill];
        let figure =
            |minor: i64| if bill.currency == "JPY" { minor.to_string() } else { euros(minor) };
        let named = bill.named.and_then(|(vendor, record)| {
            let mut all = own.vendors[vendor].accounts.iter();
            all.find(|account| account.record == record).map(|account| account.number.clone())
        });
        json!([
            own.vendors[bill.vendor].id,
            bill.reference,
            date(bill.date),
            figure(bill.total),
            figure(bill.paid),
            bill.word(),
            named,
        ])
    }

    fn true_vendor(&self, company: usize, vendor: usize) -> Value {
        let vendor = &self.truth.world.companies[company].vendors[vendor];
        let accounts: Vec<Value> = vendor
            .accounts
            .iter()
            .map(|account| json!([account.number, account.active, account.allowed]))
            .collect();
        json!([vendor.name, accounts])
    }

    pub(super) async fn sandbox(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let mut request =
            self.client.request(method, format!("{}/sandbox/{path}", self.daemon.base));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = Answer::of(request).await?;
        if answer.status == 200 {
            Ok(answer.json)
        } else {
            Err(format!("the sandbox refuses {path} {body:?}: {}", answer.text))
        }
    }

    async fn clock(&mut self, hours: i64) -> Done {
        self.truth.world.hour += hours;
        self.tell(format!("{hours} hours pass"));
        let by = json!({ "advance": format!("{hours}h") });
        self.sandbox(Method::POST, "clock", Some(&by)).await?;
        for over in self.truth.books.expire(self.truth.world.hour) {
            let operation = &self.truth.books.operations[over];
            let address = format!("{}/v1/operations/{}", self.daemon.base, operation.id);
            let token = &self.stage.watchers[operation.mandate];
            self.daemon
                .until("expired", async || {
                    let request = self.client.get(&address).bearer_auth(token);
                    Answer::of(request).await.is_ok_and(|now| now.text("/status") == "expired")
                })
                .await;
        }
        Ok(())
    }

    async fn read(&mut self, by: usize, which: usize, more: usize) -> Done {
        let mandate = by % self.truth.books.mandates.len();
        let company = self.truth.books.mandates[mandate].caller.company;
        let of = if more.is_multiple_of(3) { 1 - company } else { company };
        let bills = &self.truth.world.companies[of].bills;
        let vendors = &self.truth.world.companies[of].vendors;
        let (path, there) = match more % 4 {
            0 => {
                let bill = &bills[which % bills.len()];
                (format!("bills/{}", bill.id), of == company && !bill.is_note)
            }
            1 => (format!("vendors/{}", vendors[which % vendors.len()].id), of == company),
            2 => (format!("bills?limit=200&vendor_id={}", vendors[which % vendors.len()].id), true),
            _ => ("mandates/current".to_owned(), true),
        };
        let request = self.client.get(format!("{}/v1/{path}", self.daemon.base));
        let answer =
            Answer::of(request.bearer_auth(&self.truth.books.mandates[mandate].token)).await?;
        answer.tells_nothing_of(&foreign(company))?;
        let expected = match self.truth.not_let_in(mandate) {
            Some(_) => 401,
            None if there => 200,
            None => 404,
        };
        if answer.status == expected {
            Ok(())
        } else {
            Err(format!("{path} is answered {}, not {expected}: {}", answer.status, answer.text))
        }
    }

    /// Everything that must hold of what the ERP holds now.
    async fn look(&mut self) -> Done {
        let payments = self.sandbox(Method::GET, "payments", None).await?;
        self.audit.check(&payments, &self.truth.world, &self.truth.books)
    }
}

fn shown_bill(shown: &Value) -> Value {
    let members = ["vendor", "vendor_reference", "date", "amount", "paid", "state", "payee_iban"];
    members.iter().map(|name| shown[name].clone()).collect()
}

fn shown_vendor(shown: &Value) -> Value {
    let account = |account: &Value| {
        // Whether the ERP allows it is said only where it does not.
        let allowed = account["allowed"].as_bool().unwrap_or(true);
        json!([account["iban"], account["active"], allowed])
    };
    let accounts = shown["accounts"].as_array().into_iter().flatten().map(account);
    json!([shown["name"], accounts.collect::<Vec<_>>()])
}
