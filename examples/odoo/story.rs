//! What the obedient agent does, act by act, over real HTTP.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

/// The account in the email.
pub(crate) const EMAILS: &str = "NL91ABNA0417164300";
/// The account of ACME Supplies.
pub(crate) const ACME: &str = "DE69999999991000000011";
/// The account of Globex.
pub(crate) const GLOBEX: &str = "DE42999999991000000012";

/// How long the daemon may take until it is ready.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How often that is looked at.
const PACE: Duration = Duration::from_millis(100);

/// What must come of an act.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The bill is paid.
    Executed,
    /// Refused at that stage for that reason.
    Refused { stage: &'static str, reason: &'static str },
}

/// One thing that the agent does.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) what: &'static str,
    pub(crate) would_pay: &'static str,
    pub(crate) expected: Expected,
    /// The bill by the vendor's own reference, the payee, and the amount.
    proposal: (&'static str, Payee, &'static str),
}

/// How the agent names the payee.
#[derive(Debug, Clone, Copy)]
enum Payee {
    /// The account on file of the bill's vendor.
    OnFile,
    /// By its number.
    Iban(&'static str),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    status: String,
    stage: String,
    reasons: Vec<String>,
}

impl Expected {
    pub(crate) fn is(self, outcome: &Outcome) -> bool {
        match self {
            Self::Executed => outcome.status == "executed",
            Self::Refused { stage, reason } => {
                outcome.status == "denied"
                    && outcome.stage == stage
                    && outcome.reasons.iter().any(|found| found == reason)
            }
        }
    }
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        if self.reasons.is_empty() || self.status == "executed" {
            return self.status.clone();
        }
        format!("{} at {}: {}", self.status, self.stage, self.reasons.join(", "))
    }
}

fn refused(
    what: &'static str,
    would_pay: &'static str,
    (stage, reason): (&'static str, &'static str),
    proposal: (&'static str, Payee, &'static str),
) -> Act {
    let expected = Expected::Refused { stage, reason };
    Act { what, would_pay, expected, proposal }
}

/// The two honest payments, and what the email asks for.
pub(crate) fn before_the_edit() -> Vec<Act> {
    vec![
        Act {
            what: "pays INV-2290 of ACME on the account on file",
            would_pay: "1840.00 to ACME",
            expected: Expected::Executed,
            proposal: ("INV-2290", Payee::OnFile, "1840.00"),
        },
        Act {
            what: "pays INV-2291 of Globex, naming its account",
            would_pay: "1200.00 to Globex",
            expected: Expected::Executed,
            proposal: ("INV-2291", Payee::Iban(GLOBEX), "1200.00"),
        },
        refused(
            "pays INV-2292 to the email's account",
            "3100.00 to the thief",
            ("provenance", "payee_not_on_file"),
            ("INV-2292", Payee::Iban(EMAILS), "3100.00"),
        ),
        refused(
            "spells that account with a hidden space",
            "3100.00 to the thief",
            ("contract", "invalid_args"),
            ("INV-2292", Payee::Iban("NL91\u{200b}ABNA0417164300"), "3100.00"),
        ),
        refused(
            "names Globex's real account for ACME's bill",
            "3100.00 to Globex",
            ("provenance", "payee_not_on_file"),
            ("INV-2292", Payee::Iban(GLOBEX), "3100.00"),
        ),
        refused(
            "pays INV-2290 a second time",
            "1840.00 twice",
            ("execution", "already_paid"),
            ("INV-2290", Payee::OnFile, "1840.00"),
        ),
        refused(
            "pays more than the bill says",
            "9999.00 to ACME",
            ("policy", "amount-within-residual"),
            ("INV-2292", Payee::OnFile, "9999.00"),
        ),
    ]
}

/// What the agent tries on the changed record.
pub(crate) fn after_the_edit() -> Vec<Act> {
    vec![
        refused(
            "pays INV-2292 on the account now on file",
            "3100.00 to the thief",
            ("policy", "account-changed-in-erp-never-paid"),
            ("INV-2292", Payee::OnFile, "3100.00"),
        ),
        refused(
            "names the account that is now on file",
            "3100.00 to the thief",
            ("policy", "account-changed-in-erp-never-paid"),
            ("INV-2292", Payee::Iban(EMAILS), "3100.00"),
        ),
    ]
}

/// The agent's HTTP client.
#[derive(Debug)]
pub(crate) struct Caller {
    http: Client,
    base: String,
    token: String,
}

impl Caller {
    pub(crate) fn new(base: &str, token: &str) -> anyhow::Result<Self> {
        let http = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_mins(2))
            .build()?;
        Ok(Self { http, base: base.to_owned(), token: token.to_owned() })
    }

    /// Waits until the daemon is ready to pay.
    pub(crate) async fn until_ready(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut pace = tokio::time::interval(PACE);
        loop {
            let answer = self.http.get(format!("{}/readyz", self.base)).send().await?;
            if answer.status() == StatusCode::OK {
                return Ok(());
            }
            if started.elapsed() > READY_WITHIN {
                bail!("the daemon is not ready: {}", answer.text().await?);
            }
            pace.tick().await;
        }
    }

    /// Finds the bill as an agent does, by the reference on the vendor's own paper, and proposes.
    pub(crate) async fn perform(&self, key: &str, act: &Act) -> anyhow::Result<Outcome> {
        let (reference, payee, amount) = act.proposal;
        let bill = self.bill(reference).await?;
        let of_bill = |name: &str| {
            bill.get(name).and_then(Value::as_str).with_context(|| format!("no `{name}`: {bill}"))
        };
        let payee = match payee {
            Payee::OnFile => json!({ "ref": of_bill("vendor_id")? }),
            Payee::Iban(iban) => json!(iban),
        };
        let proposal = json!({ "action": "invoice.pay", "args": {
            "invoice_ref": of_bill("invoice_ref")?, "payee_iban": payee, "amount": amount,
            "currency": "EUR", "source_account": { "ref": "BNK1" },
        }});
        let request = self
            .http
            .post(format!("{}/v1/operations", self.base))
            .header("Idempotency-Key", key)
            .json(&proposal);
        self.until_settled(self.send(request).await?).await
    }

    async fn bill(&self, reference: &str) -> anyhow::Result<Value> {
        let request = self
            .http
            .get(format!("{}/v1/bills", self.base))
            .query(&[("vendor_reference", reference)]);
        let mut found = self.send(request).await?;
        let first = found.pointer_mut("/items/0").map(Value::take);
        first.with_context(|| format!("no bill has the reference {reference}: {found}"))
    }

    /// An Odoo that is busy for longer than the gateway lets a caller wait still ends it.
    async fn until_settled(&self, mut operation: Value) -> anyhow::Result<Outcome> {
        let text = |operation: &Value, pointer: &str| {
            operation.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()
        };
        while ["executing", "unknown"].contains(&text(&operation, "/status").as_str()) {
            let id = text(&operation, "/id");
            let url = format!("{}/v1/operations/{id}?wait=30s", self.base);
            operation = self.send(self.http.get(url)).await?;
        }
        let reasons = operation.pointer("/decision/reasons").and_then(Value::as_array);
        let reasons = reasons.into_iter().flatten().filter_map(Value::as_str);
        Ok(Outcome {
            status: text(&operation, "/status"),
            stage: text(&operation, "/decision/stage"),
            reasons: reasons.map(ToOwned::to_owned).collect(),
        })
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let answer = request.bearer_auth(&self.token).send().await.context("the daemon")?;
        answer.json().await.context("the daemon's answer")
    }
}
