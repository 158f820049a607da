//! An agent as the demonstration and the example with a real ERP play it: it calls the daemon over
//! real HTTP, and each of its acts has an outcome that must come of it.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;

/// How often is looked whether the daemon is ready.
const PACE: Duration = Duration::from_millis(50);
/// How long one call may take; longer than the longest wait that a call may ask for.
const CALL_WITHIN: Duration = Duration::from_mins(2);

/// What must come of an act.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// The bill is paid.
    Executed,
    /// Refused at that stage for that reason.
    Refused {
        /// The stage's code.
        stage: &'static str,
        /// One of the reasons.
        reason: &'static str,
    },
    /// Nothing is proposed: somebody acts in the ERP.
    Nothing,
}

/// What came of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    status: String,
    stage: String,
    reasons: Vec<String>,
}

impl Expected {
    /// Whether that came of it.
    pub fn is(self, outcome: &Outcome) -> bool {
        match self {
            Self::Executed => outcome.status == "executed",
            Self::Refused { stage, reason } => {
                outcome.status == "denied"
                    && outcome.stage == stage
                    && outcome.reasons.iter().any(|found| found == reason)
            }
            Self::Nothing => *outcome == Outcome::done(),
        }
    }
}

impl Outcome {
    /// What comes of an act that proposes nothing.
    pub fn done() -> Self {
        Self { status: "done".to_owned(), stage: String::new(), reasons: Vec::new() }
    }

    /// In one line.
    pub fn text(&self) -> String {
        if self.reasons.is_empty() || self.status == "executed" {
            return self.status.clone();
        }
        format!("{} at {}: {}", self.status, self.stage, self.reasons.join(", "))
    }

    fn of(operation: &Value) -> Self {
        let reasons = operation.pointer("/decision/reasons").and_then(Value::as_array);
        let reasons = reasons.into_iter().flatten().filter_map(Value::as_str);
        Self {
            status: text(operation, "/status"),
            stage: text(operation, "/decision/stage"),
            reasons: reasons.map(ToOwned::to_owned).collect(),
        }
    }
}

/// A caller with a mandate, or a human with a session.
#[derive(Debug)]
pub struct Agent {
    http: Client,
    base: String,
    token: String,
}

impl Agent {
    /// Calls the daemon at `base`, like `http://127.0.0.1:8490`.
    ///
    /// # Errors
    /// No client can be made here.
    pub fn new(base: &str, token: &str) -> anyhow::Result<Self> {
        let http = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(CALL_WITHIN)
            .build()?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { http, base, token: token.to_owned() })
    }

    /// Waits until the daemon is ready to pay.
    ///
    /// # Errors
    /// It is not within that time, or does not answer.
    pub async fn until_ready(&self, within: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut pace = tokio::time::interval(PACE);
        loop {
            let answer = self.http.get(self.url("/readyz")).send().await.context("the daemon")?;
            if answer.status() == StatusCode::OK {
                return Ok(());
            }
            if started.elapsed() > within {
                bail!("the daemon is not ready: {}", answer.text().await?);
            }
            pace.tick().await;
        }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The client, for calls that carry no mandate.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Sends a call with the caller's token and reads the answer.
    ///
    /// # Errors
    /// The daemon did not answer, or not in JSON.
    pub async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let answer = request.bearer_auth(&self.token).send().await.context("the daemon")?;
        answer.json().await.context("the daemon's answer")
    }

    /// Proposes, and follows the operation until it waits for nobody but humans.
    ///
    /// # Errors
    /// As of [`Agent::send`].
    pub async fn propose(&self, key: &str, proposal: &Value) -> anyhow::Result<Outcome> {
        Ok(Outcome::of(&self.propose_whole(key, proposal).await?))
    }

    /// The same caller under another mandate.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { http: self.http.clone(), base: self.base.clone(), token: token.to_owned() }
    }

    /// The same as [`Agent::propose`], with the whole operation.
    ///
    /// # Errors
    /// As of [`Agent::send`].
    pub async fn propose_whole(&self, key: &str, proposal: &Value) -> anyhow::Result<Value> {
        let request = self
            .http
            .post(self.url("/v1/operations"))
            .header("Idempotency-Key", key)
            .json(proposal);
        self.follow(self.send(request).await?).await
    }

    /// Follows an operation until it waits for nobody but humans.
    ///
    /// # Errors
    /// As of [`Agent::send`].
    pub async fn follow(&self, mut operation: Value) -> anyhow::Result<Value> {
        // An ERP that is busy for longer than the gateway lets a caller wait still ends it.
        while ["executing", "unknown"].contains(&text(&operation, "/status").as_str()) {
            let path = format!("/v1/operations/{}?wait=30s", text(&operation, "/id"));
            operation = self.send(self.http.get(self.url(&path))).await?;
        }
        Ok(operation)
    }
}

fn text(operation: &Value, pointer: &str) -> String {
    operation.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()
}
