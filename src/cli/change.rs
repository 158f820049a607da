//! The second half of the story: a vendor really changes banks, and how that goes. The demonstration
//! and the example with a real ERP play it.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::agent::Agent;
use super::operator::{COMPANY, Operator, PRINCIPALS_PASSWORD};
use super::table;

/// The people beside marie: who calls, and who approves.
const PEOPLE: [(&str, &str); 2] = [("anna", "accountant"), ("paul", "approver")];

/// How much of the new number the vendor reads back.
const READ_BACK: usize = 9;

/// Adds the people, on the host.
///
/// # Errors
/// A command that failed.
pub fn add_people(operator: &Operator) -> anyhow::Result<()> {
    for (name, role) in PEOPLE {
        let add = ["user", "add", name, "--role", role, "--company", COMPANY, "--password-stdin"];
        operator.run(&add, PRINCIPALS_PASSWORD)?;
    }
    Ok(())
}

/// Who changes to which account, and what is to be paid to it.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// The vendor's name, for those who read along.
    pub name: &'a str,
    /// The vendor, by the ERP's id.
    pub vendor: &'a str,
    /// The account that its letter names.
    pub new_iban: &'a str,
    /// Its number on file.
    pub phone: &'a str,
    /// An open bill of it, by the ERP's id.
    pub bill: &'a str,
    /// What that bill is over, as decimal text.
    pub amount: &'a str,
}

/// One step: who, what, what came of it, and what must.
#[derive(Debug)]
pub struct Step {
    who: &'static str,
    what: String,
    came: String,
    must: &'static str,
}

impl Step {
    /// A step of that person's.
    pub fn new(
        who: &'static str,
        what: impl Into<String>,
        came: impl Into<String>,
        must: &'static str,
    ) -> Self {
        Self { who, what: what.into(), came: came.into(), must }
    }
}

/// Shows what was done, and says which of it is not as it must be.
///
/// # Errors
/// Standard output is closed.
pub fn show(steps: &[Step]) -> anyhow::Result<Vec<String>> {
    let row = |step: &Step| vec![step.who.to_owned(), step.what.clone(), step.came.clone()];
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    table(&["WHO", "DOES", "WHAT COMES OF IT"], &rows)?;
    let wrong = steps.iter().filter(|step| step.came != step.must);
    Ok(wrong.map(|step| format!("{}: {}", step.what, step.came)).collect())
}

/// The story so far.
#[derive(Debug)]
pub struct Play<'a> {
    agent: &'a Agent,
    change: Change<'a>,
    steps: Vec<Step>,
}

impl<'a> Play<'a> {
    /// Plays the change itself: refused without a call-back, refused to who called, done for who
    /// did not.
    ///
    /// # Errors
    /// The daemon does not answer, or not as it promises.
    pub async fn change(agent: &'a Agent, change: Change<'a>) -> anyhow::Result<Self> {
        let mut play = Self { agent, change, steps: Vec::new() };
        let asked = play.ask("change-1").await?;
        let what =
            format!("asks to change {}'s bank details, as its letter says", play.change.name);
        play.step("agent", what, outcome(&asked), "denied at policy: bank-change-needs-callback");
        let anna = play.sign_in("anna").await?;
        let called = play.call(&anna).await?;
        let counts = called.get("counts") == Some(&json!(true));
        let came = if counts { "it counts" } else { "it does not count" };
        let what =
            format!("calls {} on the number on file, and hears the account", play.change.name);
        play.step("anna", what, came, "it counts");
        let pending = play.ask("change-2").await?;
        let must = "pending at policy: bank-change-needs-four-eyes";
        play.step("agent", "asks again", outcome(&pending), must);
        let refused = play.approve(&anna, &pending).await?;
        let came = text(&refused, "code");
        play.step("anna", "approves what she called about", came, "caller_cannot_approve");
        let paul = play.sign_in("paul").await?;
        let changed = play.approve(&paul, &pending).await?;
        let what = "approves, with old and new account before him";
        play.step("paul", what, status(&changed), "executed");
        Ok(play)
    }

    /// Adds a step.
    pub fn step(
        &mut self,
        who: &'static str,
        what: impl Into<String>,
        came: impl Into<String>,
        must: &'static str,
    ) {
        self.steps.push(Step::new(who, what, came, must));
    }

    /// What was done.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Proposes to pay the bill to the account on file, in that mode.
    ///
    /// # Errors
    /// As of [`Agent::send`].
    pub async fn pay(&self, agent: &Agent, key: &str, mode: &str) -> anyhow::Result<Value> {
        let Change { vendor, bill, amount, .. } = self.change;
        let args = json!({
            "invoice_ref": bill, "payee_iban": { "ref": vendor }, "amount": amount,
            "currency": "EUR", "source_account": { "ref": "BNK1" },
        });
        let proposal = json!({ "action": "invoice.pay", "args": args, "mode": mode });
        agent.propose_whole(key, &proposal).await
    }

    /// A session of one of the people.
    ///
    /// # Errors
    /// The daemon does not let them in.
    pub async fn sign_in(&self, user: &str) -> anyhow::Result<Agent> {
        let body = json!({ "user": user, "password": PRINCIPALS_PASSWORD });
        let request = self.agent.http().post(self.agent.url("/v1/sessions")).json(&body);
        let answer: Value = request.send().await?.json().await.context("the session")?;
        match answer.get("token").and_then(Value::as_str) {
            Some(token) => Ok(self.agent.with_token(token)),
            None => bail!("{user} could not sign in: {answer}"),
        }
    }

    /// Votes for an operation as it is, and follows it until it waits for nobody.
    ///
    /// # Errors
    /// As of [`Agent::send`].
    pub async fn approve(&self, human: &Agent, operation: &Value) -> anyhow::Result<Value> {
        let id = text(operation, "id");
        let body = json!({ "operation_hash": text(operation, "operation_hash") });
        let path = format!("/v1/operations/{id}/approve");
        human.follow(post(human, &path, &body).await?).await
    }

    async fn ask(&self, key: &str) -> anyhow::Result<Value> {
        let Change { vendor, new_iban, .. } = self.change;
        let args = json!({ "vendor_id": vendor, "new_iban": new_iban, "reason": "their letter" });
        let proposal = json!({ "action": "vendor.update_bank_details", "args": args });
        self.agent.propose_whole(key, &proposal).await
    }

    async fn call(&self, human: &Agent) -> anyhow::Result<Value> {
        let Change { vendor, new_iban, phone, .. } = self.change;
        let hidden = new_iban.chars().count().saturating_sub(READ_BACK);
        let heard: String = new_iban.chars().skip(hidden).collect();
        let body = json!({
            "new_iban": new_iban, "number_dialled": phone, "spoke_to": "Ms Martin, accounts",
            "read_back": heard, "outcome": "confirmed",
        });
        post(human, &format!("/v1/vendors/{vendor}/callbacks"), &body).await
    }
}

async fn post(human: &Agent, path: &str, body: &Value) -> anyhow::Result<Value> {
    human.send(human.http().post(human.url(path)).json(body)).await
}

/// An operation in one line.
pub fn outcome(operation: &Value) -> String {
    let text = |pointer| operation.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    let reasons = operation.pointer("/decision/reasons").and_then(Value::as_array);
    let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{} at {}: {}", text("/status"), text("/decision/stage"), reasons.join(", "))
}

/// Its status; what was decided, where it is not executed.
pub fn status(operation: &Value) -> String {
    match text(operation, "status") {
        "executed" => "executed".to_owned(),
        _ => outcome(operation),
    }
}

fn text<'v>(answer: &'v Value, name: &str) -> &'v str {
    answer.get(name).and_then(Value::as_str).unwrap_or("?")
}
