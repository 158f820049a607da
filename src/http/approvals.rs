//! What humans do with operations (API 4): look at what waits for them, approve, reject, and end what
//! nobody could find out.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::About;
use super::fields::{Fields, invalid};
use super::forms;
use super::operation_view::{DENIED, EXECUTED, NOT_DONE, OperationView, WAITS, http_status};
use super::operations::{operation_id, to_its_end};
use super::problem::{self, Problem};
use super::query::{List, NoParams, PAGED, Segments};
use super::shapes::{one, page};
use crate::ap::reading::Eyes;
use crate::domain::operation::Operation;
use crate::domain::vote::NoVote;
use crate::gateway::{ApprovalError, ByHand, ByHandError, Gateway};

/// The digits of an operation hash.
const HASH_DIGITS: usize = 64;
/// The most characters of a payment's id in the ERP.
const PAYMENT_REF_CHARS: usize = 64;

/// The members of a vote's body.
const VOTE: [Field; 1] = [Field::must("operation_hash", forms::operation_hash)];
/// The members of a rejection's body.
const REJECTION: [Field; 1] = [Field::must("reason", forms::text)];
/// The members of the body that settles by hand.
const SETTLEMENT: [Field; 3] = [
    Field::must("outcome", forms::outcome),
    Field::may("payment_ref", forms::payment_ref),
    Field::must("reason", forms::text),
];

pub(super) const LIST: Call =
    Call::by_humans("listApprovals", "Operations waiting for somebody this human could be")
        .of_company()
        .asks(&PAGED)
        .answers(&[Reply::ok("A page.", page::<OperationView<'static>>)]);

pub(super) const APPROVE: Call = Call::by_humans("approve", "A vote for exactly that hash")
    .takes(Takes::Members(&VOTE))
    .answers(&[NOT_DONE, EXECUTED, WAITS, DENIED])
    .refuses(&[
        Code::CALLER_CANNOT_APPROVE,
        Code::SELF_APPROVAL,
        Code::NOT_AN_APPROVER,
        Code::ALREADY_DECIDED,
        Code::APPROVAL_EXPIRED,
        Code::OPERATION_CHANGED,
        Code::FROZEN,
    ]);

pub(super) const REJECT: Call = Call::by_humans("reject", "Ends an operation that waits")
    .takes(Takes::Members(&REJECTION))
    .answers(&[Reply::ok("It is `rejected`.", one::<OperationView<'static>>)])
    .refuses(&[
        Code::SELF_APPROVAL,
        Code::NOT_AN_APPROVER,
        Code::ALREADY_DECIDED,
        Code::APPROVAL_EXPIRED,
        Code::FROZEN,
    ]);

pub(super) const SETTLE: Call =
    Call::by_humans("settle", "Ends an `unknown` operation that the daemon could not settle")
        .takes(Takes::Members(&SETTLEMENT))
        .answers(&[NOT_DONE, EXECUTED, WAITS])
        .refuses(&[
            Code::CALLER_CANNOT_APPROVE,
            Code::SELF_APPROVAL,
            Code::NOT_AN_APPROVER,
            Code::ALREADY_DECIDED,
            Code::FROZEN,
            Code::ORDER_STILL_VALID,
            Code::PROVED_ABSENT,
        ]);

/// `GET /v1/approvals`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &PAGED)?;
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
    let fields = Fields::read(&body, &VOTE)?;
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
    let reason = Fields::read(&body, &REJECTION)?.text("reason")?.to_owned();
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
    let fields = Fields::read(&body, &SETTLEMENT)?;
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
        let refused = |code| Self::new(code, error.to_string());
        match &error {
            ApprovalError::NotFound => Self::not_found(),
            ApprovalError::NoVote(NoVote::SelfApproval) => refused(Code::SELF_APPROVAL),
            ApprovalError::NoVote(NoVote::Caller) => refused(Code::CALLER_CANNOT_APPROVE),
            ApprovalError::NoVote(NoVote::NotAnApprover | NoVote::NotThePrincipal)
            | ApprovalError::MayNotReject => refused(Code::NOT_AN_APPROVER),
            ApprovalError::AlreadyDecided(_) => refused(Code::ALREADY_DECIDED),
            ApprovalError::Expired => refused(Code::APPROVAL_EXPIRED),
            ApprovalError::Changed => refused(Code::OPERATION_CHANGED),
            ApprovalError::Frozen => refused(Code::FROZEN),
            ApprovalError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
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
        let refused = |code| Self::new(code, error.to_string());
        match error {
            ByHandError::OrderStillValid => refused(Code::ORDER_STILL_VALID),
            ByHandError::ProvedAbsent => refused(Code::PROVED_ABSENT),
            ByHandError::Approval(error) => error.into(),
        }
    }
}
