//! What humans do with operations (API 4): look at what waits for them, approve, reject, and end what
//! nobody could find out.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::body::JsonBytes;
use super::caller::HumanCaller;
use super::company::About;
use super::fields::{Fields, invalid};
use super::operation_view::{OperationView, http_status};
use super::operations::{operation_id, to_its_end};
use super::problem::{self, Problem};
use super::query::{List, NoParams, Segments};
use crate::ap::reading::Eyes;
use crate::domain::operation::Operation;
use crate::domain::reason::Reason;
use crate::domain::vote::NoVote;
use crate::gateway::{ApprovalError, ByHand, ByHandError, Gateway};

/// The digits of an operation hash.
const HASH_DIGITS: usize = 64;
/// The most characters of a payment's id in the ERP.
const PAYMENT_REF_CHARS: usize = 64;

/// `GET /v1/approvals`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &["limit", "cursor"])?;
    let page = params.page(List::Approvals)?;
    let found = shared.gateway().awaiting(human.name(), &company, page.after(), page.more()).await;
    let found = found.map_err(ApprovalError::Store)?;
    let url = &shared.state().public_url;
    let view = |found| OperationView::of(found, Eyes::Human, url);
    Ok(page.answer(&found, |found| found.id.as_str(), view))
}

/// `POST /v1/operations/{id}/approve`
pub(super) async fn approve(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let fields = Fields::read(&body, &["operation_hash"])?;
    let form = "the operation's hash: 64 digits of 0-9 a-f";
    let hash = fields.parse("operation_hash", form, hash)?;
    let id = operation_id(&id)?;
    let work = async move |gateway: Gateway| gateway.approve(human.name(), &id, &hash).await;
    Ok(answered(&shared, &to_its_end(&shared, work).await??))
}

/// `POST /v1/operations/{id}/reject`
pub(super) async fn reject(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let reason = Fields::read(&body, &["reason"])?.text("reason")?.to_owned();
    let id = operation_id(&id)?;
    let work = async move |gateway: Gateway| gateway.reject(human.name(), &id, &reason).await;
    Ok(answered(&shared, &to_its_end(&shared, work).await??))
}

/// `POST /v1/operations/{id}/settle`
pub(super) async fn settle(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let fields = Fields::read(&body, &["outcome", "payment_ref", "reason"])?;
    let reason = fields.text("reason")?.to_owned();
    let payment_ref = fields.opt_text("payment_ref")?.map(ToOwned::to_owned);
    if payment_ref.as_ref().is_some_and(|text| text.chars().count() > PAYMENT_REF_CHARS) {
        return Err(invalid("payment_ref", "the ERP's id of the payment, at most 64 characters"));
    }
    let found = match (fields.text("outcome")?, payment_ref) {
        ("booked", Some(payment_ref)) => ByHand::Booked { payment_ref },
        ("booked", None) => return Err(invalid("payment_ref", "needed for what is booked")),
        ("not_booked", None) => ByHand::NotBooked,
        ("not_booked", Some(_)) => {
            return Err(invalid("payment_ref", "only for what is booked"));
        }
        _ => return Err(invalid("outcome", "`booked` or `not_booked`")),
    };
    let id = operation_id(&id)?;
    let work = async move |gateway: Gateway| {
        gateway.settle_by_hand(human.name(), &id, found, &reason).await
    };
    Ok(answered(&shared, &to_its_end(&shared, work).await??))
}

fn answered(shared: &Shared, operation: &Operation) -> Response {
    let view = OperationView::of(operation, Eyes::Human, &shared.state().public_url);
    (http_status(operation), Json(view)).into_response()
}

fn hash(text: &str) -> Option<String> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == HASH_DIGITS && text.bytes().all(digit)).then(|| text.to_owned())
}

impl From<ApprovalError> for Problem {
    fn from(error: ApprovalError) -> Self {
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, error.to_string());
        match &error {
            ApprovalError::NotFound => Self::not_found(),
            ApprovalError::NoVote(NoVote::SelfApproval) => {
                Self::forbidden("self_approval", error.to_string())
            }
            ApprovalError::NoVote(NoVote::Caller) => {
                Self::forbidden("caller_cannot_approve", error.to_string())
            }
            ApprovalError::NoVote(NoVote::NotAnApprover) => {
                Self::forbidden("not_an_approver", error.to_string())
            }
            ApprovalError::AlreadyDecided(_) => conflict("already_decided"),
            ApprovalError::Expired => conflict("approval_expired"),
            ApprovalError::Changed => conflict("operation_changed"),
            ApprovalError::Frozen => conflict(Reason::Frozen.code()),
            ApprovalError::Store(_) => {
                problem::log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
            ApprovalError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}

impl From<ByHandError> for Problem {
    fn from(error: ByHandError) -> Self {
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, error.to_string());
        match error {
            ByHandError::OrderStillValid => conflict("order_still_valid"),
            ByHandError::ProvedAbsent => conflict(Reason::ProvedAbsent.code()),
            ByHandError::Approval(error) => error.into(),
        }
    }
}
