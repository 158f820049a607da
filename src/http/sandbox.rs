//! The control surface of the sandbox ERP (API 7), for demonstrations and tests: somebody edits the
//! ERP behind the gateway's back, time passes, calls fail. It needs no credential, so it is there
//! only with the sandbox and on loopback.
//!
//! It knows the addresses; what the fields are is the sandbox's own, behind [`SandboxControl`].

use std::fmt;

use async_trait::async_trait;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::Value;

use super::Shared;
use super::body::JsonBytes;
use super::problem::{self, Problem};
use super::query::{NoParams, Segments};
use crate::gateway::contract;

/// Why a call of the control surface did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// No such company, vendor or bill.
    #[error("there is no such company, vendor or bill in the sandbox")]
    NotFound,
    /// What was sent cannot be taken; the text is for the caller.
    #[error("{0}")]
    Invalid(String),
    /// The sandbox itself failed; the text is for the log.
    #[error("the sandbox failed: {0}")]
    Failed(String),
}

/// What a call of the control surface gives: the JSON of the answer.
pub type SandboxAnswer = Result<Value, SandboxError>;

/// The sandbox behind its control surface: JSON in, JSON out. Bodies have no key twice; unknown
/// fields and wrong types are [`SandboxError::Invalid`].
#[async_trait]
pub trait SandboxControl: Send + Sync + fmt::Debug {
    /// Every payment that the ERP holds.
    async fn payments(&self) -> SandboxAnswer;
    /// A vendor as the ERP holds it.
    async fn vendor(&self, company: &str, vendor: &str) -> SandboxAnswer;
    /// A bill as the ERP holds it.
    async fn bill(&self, company: &str, bill: &str) -> SandboxAnswer;
    /// Creates or edits a vendor; gives it as it is then.
    async fn put_vendor(&self, company: &str, vendor: &str, fields: Value) -> SandboxAnswer;
    /// Creates or edits a bill; gives it as it is then.
    async fn put_bill(&self, company: &str, bill: &str, fields: Value) -> SandboxAnswer;
    /// Pays by hand; gives the bill as it is then.
    async fn pay(&self, company: &str, bill: &str, body: Value) -> SandboxAnswer;
    /// Moves the clock forward; gives the new time.
    async fn advance_clock(&self, body: Value) -> SandboxAnswer;
    /// Changes what Verification of Payee answers.
    async fn put_vop(&self, body: Value) -> SandboxAnswer;
    /// Changes the sanctions list.
    async fn put_sanctions(&self, body: Value) -> SandboxAnswer;
    /// Lets the next calls fail.
    async fn add_fault(&self, body: Value) -> SandboxAnswer;
}

type Answered = Result<Json<Value>, Problem>;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/sandbox/payments", get(payments))
        .route("/sandbox/companies/{company}/vendors/{vendor}", get(vendor).put(put_vendor))
        .route("/sandbox/companies/{company}/bills/{bill}", get(bill).put(put_bill))
        .route("/sandbox/companies/{company}/bills/{bill}/pay", post(pay))
        .route("/sandbox/clock", post(clock))
        .route("/sandbox/vop", put(vop))
        .route("/sandbox/sanctions", put(sanctions))
        .route("/sandbox/faults", post(faults))
}

fn control(shared: &Shared) -> Result<&dyn SandboxControl, Problem> {
    shared.state().sandbox.as_deref().ok_or_else(Problem::no_such_route)
}

fn answer(given: SandboxAnswer) -> Answered {
    given.map(Json).map_err(|error| match &error {
        SandboxError::NotFound => {
            Problem::new(StatusCode::NOT_FOUND, "not_found", error.to_string())
        }
        SandboxError::Invalid(_) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_fields", error.to_string())
        }
        SandboxError::Failed(_) => {
            problem::log(&error);
            Problem::internal()
        }
    })
}

async fn payments(State(shared): State<Shared>, _: NoParams) -> Answered {
    answer(control(&shared)?.payments().await)
}

async fn vendor(
    State(shared): State<Shared>,
    Segments((company, vendor)): Segments<(String, String)>,
    _: NoParams,
) -> Answered {
    answer(control(&shared)?.vendor(&company, &vendor).await)
}

async fn bill(
    State(shared): State<Shared>,
    Segments((company, bill)): Segments<(String, String)>,
    _: NoParams,
) -> Answered {
    answer(control(&shared)?.bill(&company, &bill).await)
}

async fn put_vendor(
    State(shared): State<Shared>,
    Segments((company, vendor)): Segments<(String, String)>,
    _: NoParams,
    JsonBytes(body): JsonBytes,
) -> Answered {
    let fields = contract::strict_json(&body)?;
    answer(control(&shared)?.put_vendor(&company, &vendor, fields).await)
}

async fn put_bill(
    State(shared): State<Shared>,
    Segments((company, bill)): Segments<(String, String)>,
    _: NoParams,
    JsonBytes(body): JsonBytes,
) -> Answered {
    let fields = contract::strict_json(&body)?;
    answer(control(&shared)?.put_bill(&company, &bill, fields).await)
}

async fn pay(
    State(shared): State<Shared>,
    Segments((company, bill)): Segments<(String, String)>,
    _: NoParams,
    JsonBytes(body): JsonBytes,
) -> Answered {
    let body = contract::strict_json(&body)?;
    answer(control(&shared)?.pay(&company, &bill, body).await)
}

async fn clock(State(shared): State<Shared>, _: NoParams, JsonBytes(body): JsonBytes) -> Answered {
    let body = contract::strict_json(&body)?;
    answer(control(&shared)?.advance_clock(body).await)
}

async fn vop(State(shared): State<Shared>, _: NoParams, JsonBytes(body): JsonBytes) -> Answered {
    let body = contract::strict_json(&body)?;
    answer(control(&shared)?.put_vop(body).await)
}

async fn sanctions(
    State(shared): State<Shared>,
    _: NoParams,
    JsonBytes(body): JsonBytes,
) -> Answered {
    let body = contract::strict_json(&body)?;
    answer(control(&shared)?.put_sanctions(body).await)
}

async fn faults(State(shared): State<Shared>, _: NoParams, JsonBytes(body): JsonBytes) -> Answered {
    let body = contract::strict_json(&body)?;
    answer(control(&shared)?.add_fault(body).await)
}
