//! The control surface of the sandbox ERP (API 7), for demonstrations and tests: somebody edits the
//! ERP behind the gateway's back, time passes, calls fail. It needs no credential, so it is there
//! only with the sandbox and on loopback.
//!
//! It knows the addresses; what the fields are is the sandbox's own, behind [`SandboxControl`], which
//! also says how they are to be described.

use std::fmt;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call, Content, Reply, Takes};
use super::code::Code;
use super::problem::{self, Problem};
use super::query::{NoParams, Segments};
use super::routes::Routes;
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

/// What is sent to the control surface, and what it answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxShape {
    /// All payments.
    Payments,
    /// A vendor as it is.
    Vendor,
    /// The fields of a vendor.
    VendorFields,
    /// A bill as it is.
    Bill,
    /// The fields of a bill.
    BillFields,
    /// A payment by hand.
    HandPayment,
    /// How far the clock is to move.
    Advance,
    /// The time.
    Clock,
    /// An answer of Verification of Payee.
    VopEntry,
    /// An account on the sanctions list, or not.
    SanctionEntry,
    /// A fault.
    Fault,
    /// `null`.
    Nothing,
}

/// Describes them.
pub type SandboxShapes = fn(SandboxShape, &mut SchemaGenerator) -> Schema;

/// What a call of the control surface gives: the JSON of the answer.
pub type SandboxAnswer = Result<Value, SandboxError>;

/// The sandbox behind its control surface: JSON in, JSON out. Bodies have no key twice; unknown
/// fields and wrong types are [`SandboxError::Invalid`].
#[async_trait]
pub trait SandboxControl: Send + Sync + fmt::Debug {
    /// How what is sent and answered is described.
    fn shapes(&self) -> SandboxShapes;
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

const fn reads(id: &'static str, about: &'static str, answers: &'static [Reply]) -> Call {
    Call::by_anybody(id, about).answers(answers).refuses(&[Code::NOT_FOUND])
}

const fn edits(
    id: &'static str,
    about: &'static str,
    sent: SandboxShape,
    answers: &'static [Reply],
) -> Call {
    Call::by_anybody(id, about)
        .takes(Takes::Sandbox(sent))
        .answers(answers)
        .refuses(&[Code::NOT_FOUND, Code::INVALID_FIELDS])
}

const fn given(about: &'static str, shape: SandboxShape) -> Reply {
    Reply::new(StatusCode::OK, about, Content::Sandbox(shape))
}

/// Adds the calls of the control surface.
pub(super) fn routes(routes: Routes) -> Routes {
    use SandboxShape::{
        Advance, Bill, BillFields, Clock, Fault, HandPayment, Nothing, Payments, SanctionEntry,
        Vendor, VendorFields, VopEntry,
    };
    const VENDOR: &[Reply] = &[given("The vendor as it is then.", Vendor)];
    const BILL: &[Reply] = &[given("The bill as it is then.", Bill)];
    const DONE: &[Reply] = &[given("Done.", Nothing)];
    const PAYMENTS: Call =
        reads("sandboxPayments", "Every payment that the ERP holds", &[given("All.", Payments)]);
    const GET_VENDOR: Call = reads("sandboxVendor", "A vendor as the ERP holds it", VENDOR);
    const PUT_VENDOR: Call = edits("putSandboxVendor", "Edits a vendor", VendorFields, VENDOR);
    const GET_BILL: Call = reads("sandboxBill", "A bill as the ERP holds it", BILL);
    const PUT_BILL: Call = edits("putSandboxBill", "Edits a bill", BillFields, BILL);
    const PAY: Call = edits("paySandboxBill", "Somebody pays by hand", HandPayment, BILL);
    const CLOCK: Call =
        edits("moveSandboxClock", "Time passes", Advance, &[given("The new time.", Clock)]);
    const VOP: Call =
        edits("putSandboxVop", "Changes what Verification of Payee answers", VopEntry, DONE);
    const SANCTIONS: Call =
        edits("putSandboxSanctions", "Changes the sanctions list", SanctionEntry, DONE);
    const FAULTS: Call = edits("addSandboxFault", "The next calls fail so", Fault, DONE);
    routes
        .get("/sandbox/payments", PAYMENTS, payments)
        .get("/sandbox/companies/{company}/vendors/{vendor}", GET_VENDOR, vendor)
        .put("/sandbox/companies/{company}/vendors/{vendor}", PUT_VENDOR, put_vendor)
        .get("/sandbox/companies/{company}/bills/{bill}", GET_BILL, bill)
        .put("/sandbox/companies/{company}/bills/{bill}", PUT_BILL, put_bill)
        .post("/sandbox/companies/{company}/bills/{bill}/pay", PAY, pay)
        .post("/sandbox/clock", CLOCK, clock)
        .put("/sandbox/vop", VOP, vop)
        .put("/sandbox/sanctions", SANCTIONS, sanctions)
        .post("/sandbox/faults", FAULTS, faults)
}

fn control(shared: &Shared) -> Result<&dyn SandboxControl, Problem> {
    shared.state().sandbox.as_deref().ok_or_else(Problem::no_such_route)
}

fn answer(given: SandboxAnswer) -> Answered {
    given.map(Json).map_err(|error| match &error {
        SandboxError::NotFound => Problem::new(Code::NOT_FOUND, error.to_string()),
        SandboxError::Invalid(_) => Problem::new(Code::INVALID_FIELDS, error.to_string()),
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
