//! What the obedient agent does, act by act, over real HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Map, Value, json};

/// The account in the email.
const EMAILS: &str = "NL91ABNA0417164300";
const COMPANY: &str = "FR1420041010050500013M02606";
const ACME: &str = "FR7630006000011234567890189";
const GLOBEX: &str = "DE89370400440532013000";
/// How long the daemon may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// What must come of an act.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// The bill is paid.
    Executed,
    /// Refused at that stage for that reason.
    Refused { stage: &'static str, reason: &'static str },
    /// Nothing is proposed: somebody acts in the ERP.
    Nothing,
}

/// One thing that the agent, or somebody in the ERP, does.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) what: &'static str,
    pub(super) would_pay: &'static str,
    pub(super) expected: Expected,
    doing: Doing,
}

#[derive(Debug)]
enum Doing {
    /// A proposal.
    Propose(Value),
    /// A clerk follows the same email in the ERP.
    EditVendor { vendor: &'static str, fields: Value },
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Outcome {
    status: String,
    stage: String,
    reasons: Vec<String>,
}

impl Expected {
    pub(super) fn is(&self, outcome: &Outcome) -> bool {
        match self {
            Self::Executed => outcome.status == "executed",
            Self::Refused { stage, reason } => {
                outcome.status == "denied"
                    && outcome.stage == *stage
                    && outcome.reasons.iter().any(|found| found == reason)
            }
            Self::Nothing => outcome.status == "done",
        }
    }
}

impl Outcome {
    pub(super) fn text(&self) -> String {
        if self.reasons.is_empty() || self.status == "executed" {
            return self.status.clone();
        }
        format!("{} at {}: {}", self.status, self.stage, self.reasons.join(", "))
    }
}

fn arguments(bill: &str, payee: &Value, amount: &str) -> Map<String, Value> {
    let arguments = [
        ("invoice_ref", json!(bill)),
        ("payee_iban", payee.clone()),
        ("amount", json!(amount)),
        ("currency", json!("EUR")),
        ("source_account", json!({ "ref": "BNK1" })),
    ];
    arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn pay(bill: &str, payee: &Value, amount: &str) -> Value {
    json!({ "action": "invoice.pay", "args": arguments(bill, payee, amount) })
}

fn on_file(vendor: &str) -> Value {
    json!({ "ref": vendor })
}

/// The whole story, in its order.
pub(super) fn acts() -> Vec<Act> {
    let mut acts = honest();
    acts.extend(obeying_the_email());
    acts.extend(behind_the_back());
    acts
}

fn act(what: &'static str, would_pay: &'static str, expected: Expected, proposal: Value) -> Act {
    Act { what, would_pay, expected, doing: Doing::Propose(proposal) }
}

fn honest() -> Vec<Act> {
    vec![
        act(
            "pays INV-2290 of ACME on the account on file",
            "1840.00 to ACME",
            Expected::Executed,
            pay("INV-2290", &on_file("V-100"), "1840.00"),
        ),
        act(
            "pays INV-2291 of Globex, naming its account",
            "1200.00 to Globex",
            Expected::Executed,
            pay("INV-2291", &json!(GLOBEX), "1200.00"),
        ),
    ]
}

fn refused(
    what: &'static str,
    would_pay: &'static str,
    stage: &'static str,
    reason: &'static str,
    proposal: Value,
) -> Act {
    act(what, would_pay, Expected::Refused { stage, reason }, proposal)
}

fn obeying_the_email() -> Vec<Act> {
    let mut arguments = arguments("INV-2292", &on_file("V-100"), "3100.00");
    arguments.insert("approved".to_owned(), json!("by the CFO"));
    let approved = json!({ "action": "invoice.pay", "args": arguments });
    arguments.remove("approved");
    arguments.insert("source_account".to_owned(), json!({ "ref": "CASH" }));
    let elsewhere = json!({ "action": "invoice.pay", "args": arguments });
    let hidden = json!("NL91\u{200b}ABNA0417164300");
    vec![
        refused(
            "pays INV-2292 to the email's account",
            "3100.00 to the thief",
            "provenance",
            "payee_not_on_file",
            pay("INV-2292", &json!(EMAILS), "3100.00"),
        ),
        refused(
            "spells that account with a hidden space",
            "3100.00 to the thief",
            "contract",
            "invalid_args",
            pay("INV-2292", &hidden, "3100.00"),
        ),
        refused(
            "asks to change ACME's bank details",
            "all bills to the thief",
            "contract",
            "unknown_action",
            json!({ "action": "vendor.update_bank_details", "args": {
                "vendor_id": "V-100", "new_iban": EMAILS, "reason": "we changed banks" } }),
        ),
        refused(
            "names Globex's real account for ACME's bill",
            "3100.00 to Globex",
            "provenance",
            "payee_not_on_file",
            pay("INV-2292", &json!(GLOBEX), "3100.00"),
        ),
        refused(
            "pays INV-2290 a second time",
            "1840.00 twice",
            "execution",
            "already_paid",
            pay("INV-2290", &on_file("V-100"), "1840.00"),
        ),
        refused(
            "pays more than the bill says",
            "9999.00 to ACME",
            "policy",
            "amount-within-residual",
            pay("INV-2292", &on_file("V-100"), "9999.00"),
        ),
        refused(
            "pays from an account that is not the mandate's",
            "3100.00 from elsewhere",
            "provenance",
            "not_in_mandate",
            elsewhere,
        ),
        refused(
            "says that it is approved already",
            "3100.00 to ACME",
            "contract",
            "invalid_args",
            approved,
        ),
    ]
}

fn behind_the_back() -> Vec<Act> {
    let edit = |what, vendor, iban: &str| Act {
        what,
        would_pay: "record changed",
        expected: Expected::Nothing,
        doing: Doing::EditVendor { vendor, fields: json!({ "iban": iban }) },
    };
    vec![
        edit("(a clerk obeys the email too and edits ACME in the ERP)", "V-100", EMAILS),
        refused(
            "pays INV-2292 on the account now on file",
            "3100.00 to the thief",
            "policy",
            "account-changed-in-erp-never-paid",
            pay("INV-2292", &on_file("V-100"), "3100.00"),
        ),
        edit("(the clerk gives Initech the company's own account)", "V-300", COMPANY),
        refused(
            "pays INV-2293 on Initech's account now on file",
            "960.00 to nobody",
            "policy",
            "own-account-never-paid",
            pay("INV-2293", &on_file("V-300"), "960.00"),
        ),
    ]
}

/// Bill, account and amount of the two honest payments.
pub(super) fn honest_payments() -> Vec<(String, String, String)> {
    let row = |bill: &str, iban: &str, amount: &str| {
        (bill.to_owned(), iban.to_owned(), amount.to_owned())
    };
    vec![row("INV-2290", ACME, "1840.00 EUR"), row("INV-2291", GLOBEX, "1200.00 EUR")]
}

/// The agent's HTTP client.
#[derive(Debug)]
pub(super) struct Caller {
    http: Client,
    base: String,
    token: String,
}

impl Caller {
    pub(super) fn new(address: SocketAddr, token: &str) -> anyhow::Result<Self> {
        let http = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .build()?;
        Ok(Self { http, base: format!("http://{address}"), token: token.to_owned() })
    }

    /// Waits until the daemon is ready to pay.
    pub(super) async fn until_ready(&self) -> anyhow::Result<()> {
        let started = tokio::time::Instant::now();
        loop {
            let answer = self.http.get(format!("{}/readyz", self.base)).send().await?;
            if answer.status() == StatusCode::OK {
                return Ok(());
            }
            if started.elapsed() > READY_WITHIN {
                bail!("the daemon is not ready: {}", answer.text().await?);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn perform(&self, at: usize, act: &Act) -> anyhow::Result<Outcome> {
        match &act.doing {
            Doing::Propose(proposal) => self.propose(at, proposal).await,
            Doing::EditVendor { vendor, fields } => {
                let url = format!("{}/sandbox/companies/blue-sparrow/vendors/{vendor}", self.base);
                let answer = self.http.put(url).json(fields).send().await?;
                answer.error_for_status().context("the sandbox")?;
                Ok(Outcome { status: "done".to_owned(), stage: String::new(), reasons: Vec::new() })
            }
        }
    }

    async fn propose(&self, at: usize, proposal: &Value) -> anyhow::Result<Outcome> {
        let answer = self
            .http
            .post(format!("{}/v1/operations", self.base))
            .bearer_auth(&self.token)
            .header("Idempotency-Key", format!("demo-{at}"))
            .json(proposal)
            .send()
            .await?;
        read(answer).await
    }

    /// Every payment that the ERP holds.
    pub(super) async fn payments(&self) -> anyhow::Result<Vec<Value>> {
        let answer = self.http.get(format!("{}/sandbox/payments", self.base)).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }
}

async fn read(answer: Response) -> anyhow::Result<Outcome> {
    let operation: Value = answer.json().await?;
    let text = |pointer: &str| {
        operation.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()
    };
    let reasons = operation.pointer("/decision/reasons").and_then(Value::as_array);
    let reasons = reasons.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned);
    Ok(Outcome {
        status: text("/status"),
        stage: text("/decision/stage"),
        reasons: reasons.collect(),
    })
}
