//! The second half of the story: a vendor really changes banks, and how that goes.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cli::agent::Agent;
use crate::cli::operator::{COMPANY, Operator, PRINCIPALS_PASSWORD, issue_mandate};

/// Umbrella's new account, as its registered letter says.
const NEW: &str = "GB29NWBK60161331926819";
/// Umbrella's number on file.
const PHONE: &str = "+33140000003";
const VENDOR: &str = "V-400";

/// The people beside marie: who calls, and who approves.
const PEOPLE: [(&str, &str); 2] = [("anna", "accountant"), ("paul", "approver")];

/// Adds the people, on the host.
pub(super) fn people(operator: &Operator) -> anyhow::Result<()> {
    for (name, role) in PEOPLE {
        let add = ["user", "add", name, "--role", role, "--company", COMPANY, "--password-stdin"];
        operator.run(&add, PRINCIPALS_PASSWORD)?;
    }
    Ok(())
}

/// One step: who, what, what came of it, and what must.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) who: &'static str,
    pub(super) what: &'static str,
    pub(super) came: String,
    must: &'static str,
}

impl Step {
    pub(super) fn is_as_it_must_be(&self) -> bool {
        self.came == self.must
    }
}

struct Play<'a> {
    agent: &'a Agent,
    steps: Vec<Step>,
}

/// Plays it.
pub(super) async fn play(
    agent: &Agent,
    operator: &Operator,
    source: &str,
) -> anyhow::Result<Vec<Step>> {
    let mut play = Play { agent, steps: Vec::new() };
    let asked = play.ask("change-1").await?;
    play.step(
        "agent",
        "asks to change Umbrella's bank details, as its letter says",
        of(&asked),
        "denied at policy: bank-change-needs-callback",
    );
    let anna = play.sign_in("anna").await?;
    let called = play.call(&anna).await?;
    let came =
        if called.get("counts") == Some(&json!(true)) { "it counts" } else { "it does not count" };
    play.step(
        "anna",
        "calls Umbrella on the number on file, and hears the account",
        came,
        "it counts",
    );
    let pending = play.ask("change-2").await?;
    play.step(
        "agent",
        "asks again",
        of(&pending),
        "pending at policy: bank-change-needs-four-eyes",
    );
    let refused = play.approve(&anna, &pending).await?;
    let came = text(&refused, "code").to_owned();
    play.step("anna", "approves what she called about", came, "caller_cannot_approve");
    let paul = play.sign_in("paul").await?;
    let changed = play.approve(&paul, &pending).await?;
    let came = if changed.get("status") == Some(&json!("executed")) {
        "changed".to_owned()
    } else {
        of(&changed)
    };
    play.step("paul", "approves, with old and new account before him", came, "changed");
    let prepared = play.prepare(agent, "prepare-1").await?;
    let came = of(&prepared);
    let must = "prepared at policy: fresh-account-needs-four-eyes";
    play.step("agent", "prepares a payment to it the same day", came, must);
    play.advance("8d").await?;
    let token = operator.run(&issue_mandate(source), "")?;
    let later = agent.with_token(token.trim());
    let prepared = play.prepare(&later, "prepare-2").await?;
    let must = "prepared at policy: invoice-pay-permitted";
    play.step("agent", "prepares it again eight days later", of(&prepared), must);
    Ok(play.steps)
}

impl Play<'_> {
    fn step(
        &mut self,
        who: &'static str,
        what: &'static str,
        came: impl Into<String>,
        must: &'static str,
    ) {
        self.steps.push(Step { who, what, came: came.into(), must });
    }

    async fn ask(&self, key: &str) -> anyhow::Result<Value> {
        let args = json!({ "vendor_id": VENDOR, "new_iban": NEW, "reason": "their letter" });
        let proposal = json!({ "action": "vendor.update_bank_details", "args": args });
        self.agent.propose_whole(key, &proposal).await
    }

    async fn prepare(&self, agent: &Agent, key: &str) -> anyhow::Result<Value> {
        let args = json!({
            "invoice_ref": "INV-2294", "payee_iban": { "ref": VENDOR }, "amount": "450.00",
            "currency": "EUR", "source_account": { "ref": "BNK1" },
        });
        let proposal = json!({ "action": "invoice.pay", "args": args, "mode": "prepare" });
        agent.propose_whole(key, &proposal).await
    }

    async fn sign_in(&self, user: &str) -> anyhow::Result<String> {
        let body = json!({ "user": user, "password": PRINCIPALS_PASSWORD });
        let request = self.agent.http().post(self.agent.url("/v1/sessions")).json(&body);
        let answer: Value = request.send().await?.json().await.context("the session")?;
        match answer.get("token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => bail!("{user} could not sign in: {answer}"),
        }
    }

    async fn post(&self, token: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.agent.http().post(self.agent.url(path)).bearer_auth(token).json(body);
        request.send().await?.json().await.context("the daemon's answer")
    }

    async fn call(&self, token: &str) -> anyhow::Result<Value> {
        let body = json!({
            "new_iban": NEW, "number_dialled": PHONE, "spoke_to": "Ms Martin, accounts",
            "read_back": "331926819", "outcome": "confirmed",
        });
        self.post(token, &format!("/v1/vendors/{VENDOR}/callbacks"), &body).await
    }

    async fn approve(&self, token: &str, operation: &Value) -> anyhow::Result<Value> {
        let id = text(operation, "id");
        let body = json!({ "operation_hash": text(operation, "operation_hash") });
        self.post(token, &format!("/v1/operations/{id}/approve"), &body).await
    }

    async fn advance(&self, by: &str) -> anyhow::Result<()> {
        let url = self.agent.url("/sandbox/clock");
        let answer = self.agent.http().post(url).json(&json!({ "advance": by })).send().await?;
        answer.error_for_status().context("the sandbox")?;
        Ok(())
    }
}

/// An operation in one line.
fn of(operation: &Value) -> String {
    let text = |pointer| operation.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    let reasons = operation.pointer("/decision/reasons").and_then(Value::as_array);
    let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{} at {}: {}", text("/status"), text("/decision/stage"), reasons.join(", "))
}

fn text<'v>(answer: &'v Value, name: &str) -> &'v str {
    answer.get(name).and_then(Value::as_str).unwrap_or("?")
}
