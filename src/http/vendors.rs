//! What humans do about a vendor's details (API 4): record a call, confirm a number or an account, and
//! read how an account came to be on file.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use countersign_erp_source::{CompanyId, Iban, Timestamp, VendorId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call as CallOf, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::About;
use super::fields::{Fields, invalid};
use super::forms;
use super::operation_view::{
    DENIED, DENIED_AT_CONTRACT, DENIED_AT_ERROR, EXECUTED, NOT_DONE, OperationView, WAITS,
    http_status,
};
use super::operations::to_its_end;
use super::problem::{self, Problem};
use super::query::Segments;
use super::shapes::one;
use crate::ap;
use crate::ap::reading::Eyes;
use crate::ap::vendor::callback::{self, Call, CallbackError, Outcome};
use crate::ap::vendor::history::HistoryView;
use crate::domain::reason::Reason;
use crate::domain::role::Role;
use crate::gateway::Gateway;
use crate::gateway::contract::Proposal;
use crate::gateway::sessions::Human;

/// What the body of a call-back may hold.
const TOLD: [Field; 7] = [
    Field::must("new_iban", forms::iban),
    Field::must("number_dialled", forms::phone),
    Field::may("spoke_to", forms::spoke_to),
    Field::may("read_back", forms::read_back),
    Field::must("outcome", forms::call_outcome),
    Field::may("request_received_at", forms::time),
    Field::may("note", forms::text),
];
/// What the body of a telephone's confirmation holds.
const PHONE: [Field; 2] = [Field::must("phone", forms::phone), Field::must("how", forms::text)];
/// What the body of an account's confirmation holds.
const ACCOUNT: [Field; 1] = [Field::must("iban", forms::iban)];
/// What an operation that a human begins may come to.
const BEGUN: [Reply; 6] = [NOT_DONE, EXECUTED, WAITS, DENIED, DENIED_AT_CONTRACT, DENIED_AT_ERROR];

pub(super) const CALL: CallOf =
    CallOf::by_humans("recordCallback", "Somebody called the vendor about a new account")
        .of_company()
        .takes(Takes::Members(&TOLD))
        .answers(&[Reply::created("Written down, whether it counts or not.", one::<RecordedView>)])
        .refuses(&[Code::NOT_AN_ACCOUNTANT, Code::BASELINE_MISSING, Code::ERP_UNAVAILABLE]);

pub(super) const CONFIRM_PHONE: CallOf =
    CallOf::by_humans("confirmPhone", "Makes a changed telephone number one to call back on")
        .of_company()
        .takes(Takes::Members(&PHONE))
        .answers(&BEGUN)
        .refuses(&[Code::NOT_AN_ACCOUNTANT]);

pub(super) const CONFIRM_ACCOUNT: CallOf =
    CallOf::by_humans("confirmAccount", "Makes an account that is on file the baseline")
        .of_company()
        .takes(Takes::Members(&ACCOUNT))
        .answers(&BEGUN)
        .refuses(&[Code::NOT_AN_ACCOUNTANT]);

pub(super) const HISTORY: CallOf =
    CallOf::by_humans("getBankHistory", "How accounts and telephones came to be on file")
        .of_company()
        .answers(&[Reply::ok("What is known.", one::<HistoryView>)])
        .refuses(&[Code::ERP_UNAVAILABLE]);

/// A call that was written down.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Callback")]
pub(super) struct RecordedView {
    id: String,
    /// Whether a change may rest on it.
    counts: bool,
    /// Why not.
    why_not: Vec<&'static str>,
}

/// `POST /v1/vendors/{vendor_id}/callbacks`
pub(super) async fn call(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(vendor): Segments<String>,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    accountant_or_approver(&human, &company)?;
    let vendor = VendorId::new(vendor).map_err(|_bad| Problem::not_found())?;
    let fields = Fields::read(&body, &TOLD)?;
    let outcome = "`confirmed`, `denied` or `no_answer`";
    let outcome = fields.parse("outcome", outcome, Outcome::from_code)?;
    let iban = Iban::parse(fields.text("new_iban")?);
    let iban = iban.map_err(|fault| invalid("new_iban", &fault.to_string()))?;
    let said = |name: &str| -> Result<String, Problem> {
        // Where nobody answered there is nobody to name, and nothing to repeat.
        let needed = outcome == Outcome::Confirmed;
        if needed {
            fields.text(name).map(ToOwned::to_owned)
        } else {
            Ok(fields.opt_text(name)?.unwrap_or_default().to_owned())
        }
    };
    let when = |text: &str| Timestamp::parse(text).ok();
    let received = fields.opt_text("request_received_at")?.map(|text| {
        let form = "a time in UTC like `2026-11-29T10:00:00Z`";
        when(text).ok_or_else(|| invalid("request_received_at", form))
    });
    let call = Call {
        new_iban: iban,
        number_dialled: fields.text("number_dialled")?.to_owned(),
        spoke_to: said("spoke_to")?,
        read_back: said("read_back")?,
        outcome,
        request_received_at: received.transpose()?,
        note: fields.opt_text("note")?.map(ToOwned::to_owned),
    };
    let (ap, by) = (shared.state().ap.clone(), human.name().clone());
    let work =
        async move |_gateway: Gateway| callback::record(&ap, &company, &vendor, &by, call).await;
    let recorded = to_its_end(&shared, work).await??;
    let answer = RecordedView {
        id: recorded.id.to_string(),
        counts: recorded.counts,
        why_not: recorded.why_not.iter().map(|why| why.code()).collect(),
    };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// `POST /v1/vendors/{vendor_id}/phone-confirmations`
pub(super) async fn confirm_phone(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(vendor): Segments<String>,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    accountant_or_approver(&human, &company)?;
    let fields = Fields::read(&body, &PHONE)?;
    let args = json!({
        "vendor_id": vendor, "phone": fields.text("phone")?, "how": fields.text("how")?,
    });
    begin(&shared, &human, company, Proposal::of(ap::CONFIRM_PHONE, &args)).await
}

/// `POST /v1/vendors/{vendor_id}/bank-confirmations`
pub(super) async fn confirm_account(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(vendor): Segments<String>,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    accountant_or_approver(&human, &company)?;
    let fields = Fields::read(&body, &ACCOUNT)?;
    let args = json!({ "vendor_id": vendor, "iban": fields.text("iban")? });
    begin(&shared, &human, company, Proposal::of(ap::CONFIRM_BANK_DETAILS, &args)).await
}

/// `GET /v1/vendors/{vendor_id}/bank-history`
pub(super) async fn history(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(vendor): Segments<String>,
    uri: Uri,
) -> Result<Json<HistoryView>, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    let vendor = VendorId::new(vendor).map_err(|_bad| Problem::not_found())?;
    let found = shared.state().ap.bank_history(&company, &vendor).await?;
    found.map(Json).ok_or_else(Problem::not_found)
}

/// Begins an operation of a human's own. A vendor that is not there is no operation of anybody's.
async fn begin(
    shared: &Shared,
    human: &Human,
    company: CompanyId,
    proposal: Proposal,
) -> Result<Response, Problem> {
    let by = human.name().clone();
    let work = async move |gateway: Gateway| gateway.begin_own(company, by, proposal).await;
    let operation = to_its_end(shared, work).await??;
    let missing = Reason::VendorNotFound.code();
    if operation.decision.reasons.iter().any(|code| code == missing) {
        return Err(Problem::not_found());
    }
    let view = OperationView::of(&operation, Eyes::Human, &shared.state().public_url);
    Ok((http_status(&operation), Json(view)).into_response())
}

/// Those who may call a vendor, and begin to confirm what they found.
fn accountant_or_approver(human: &Human, company: &CompanyId) -> Result<(), Problem> {
    if human.holds(company, Role::Accountant) || human.holds(company, Role::Approver) {
        return Ok(());
    }
    let detail = "this takes an accountant or an approver of the company";
    Err(Problem::new(Code::NOT_AN_ACCOUNTANT, detail))
}

impl From<CallbackError> for Problem {
    fn from(error: CallbackError) -> Self {
        let text = error.to_string();
        match &error {
            CallbackError::NoVendor => Self::not_found(),
            CallbackError::NotACaller => Self::new(Code::NOT_AN_ACCOUNTANT, text),
            CallbackError::NoBaseline => Self::new(Code::BASELINE_MISSING, text),
            CallbackError::Number(_)
            | CallbackError::ReadBackTooShort
            | CallbackError::RequestLater => Self::new(Code::INVALID_FIELD, text),
            CallbackError::Erp(_) => {
                problem::log(&error);
                Self::erp_unavailable()
            }
            CallbackError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
            CallbackError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}
