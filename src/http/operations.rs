//! Proposing, committing, cancelling and following operations (API 3). What was begun goes on when
//! the caller hangs up. Humans follow those of their companies.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::body::{JsonBytes, NoBody, single};
use super::call::{Call, Field, Reply, Takes};
use super::caller::{Agent, Anyone};
use super::code::Code;
use super::company::About;
use super::forms;
use super::operation_view::{
    DENIED, DENIED_AT_CONTRACT, DENIED_AT_ERROR, EXECUTED, NOT_DONE, OperationView, WAITS,
    http_status,
};
use super::problem::Problem;
use super::query::{CURSOR, LIMIT, List, NoParams, Params, Segments};
use super::shapes::{one, page};
use crate::ap::reading::Eyes;
use crate::domain::names::OperationId;
use crate::domain::operation::{Operation, Status};
use crate::gateway::contract::Proposal;
use crate::gateway::{Answer, CallError, Gateway};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What a list of operations is asked with.
const FILTER: [Field; 3] = [Field::may("status", forms::status), LIMIT, CURSOR];
/// What following an operation is asked with.
const WAIT: [Field; 1] = [Field::may("wait", forms::wait)];

pub(super) const PROPOSE: Call = Call::by_agents("propose", "Proposes an operation")
    .headers(&[Field::must("Idempotency-Key", forms::idempotency_key)])
    .takes(Takes::Form(forms::proposal))
    .answers(&[NOT_DONE, EXECUTED, WAITS, DENIED, DENIED_AT_CONTRACT, DENIED_AT_ERROR])
    .replays()
    .refuses(&[
        Code::IDEMPOTENCY_KEY_MISSING,
        Code::IDEMPOTENCY_KEY_INVALID,
        Code::IDEMPOTENCY_KEY_REUSED,
    ]);

pub(super) const COMMIT: Call =
    Call::by_agents("commit", "Commits an operation that was prepared, decided anew")
        .takes(Takes::Empty)
        // One that was denied before answers as it stands, at whatever stage that was.
        .answers(&[NOT_DONE, EXECUTED, WAITS, DENIED, DENIED_AT_CONTRACT, DENIED_AT_ERROR])
        .replays()
        .refuses(&[Code::NOT_COMMITTABLE]);

pub(super) const CANCEL: Call =
    Call::by_agents("cancel", "Withdraws an operation that has not executed")
        .takes(Takes::Empty)
        .answers(&[Reply::ok("It is `cancelled`.", one::<OperationView<'static>>)])
        .refuses(&[Code::NOT_CANCELLABLE]);

pub(super) const FOLLOW: Call = Call::by_both("getOperation", "An operation as it stands")
    .asks(&WAIT)
    .answers(&[Reply::ok("The operation.", one::<OperationView<'static>>)]);

pub(super) const LIST: Call =
    Call::by_both("listOperations", "An agent's own operations; for humans all of the company")
        .of_company()
        .asks(&FILTER)
        .answers(&[Reply::ok("A page.", page::<OperationView<'static>>)]);

/// `POST /v1/operations`
pub(super) async fn propose(
    State(shared): State<Shared>,
    Agent(caller): Agent,
    _no_params: NoParams,
    headers: HeaderMap,
    body: Result<JsonBytes, Problem>,
) -> Result<Response, Problem> {
    let key = key(&headers)?;
    let JsonBytes(body) = body?;
    let proposal = Proposal::from_body(&body)?;
    let work = async move |gateway: Gateway| gateway.propose(&caller, &key, proposal).await;
    let answer = to_its_end(&shared, work).await??;
    Ok(answered(&shared, &answer))
}

/// `POST /v1/operations/{id}/commit`
pub(super) async fn commit(
    State(shared): State<Shared>,
    Agent(caller): Agent,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    _no_body: NoBody,
) -> Result<Response, Problem> {
    let id = operation_id(&id)?;
    let work = async move |gateway: Gateway| gateway.commit(&caller, &id).await;
    match to_its_end(&shared, work).await? {
        Ok(answer) => Ok(answered(&shared, &answer)),
        Err(CallError::WrongState(operation)) => {
            Err(wrong_state(Code::NOT_COMMITTABLE, "committed", &operation))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /v1/operations/{id}/cancel`
pub(super) async fn cancel(
    State(shared): State<Shared>,
    Agent(caller): Agent,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    _no_body: NoBody,
) -> Result<Response, Problem> {
    let id = operation_id(&id)?;
    let work = async move |gateway: Gateway| gateway.cancel(&caller, &id).await;
    match to_its_end(&shared, work).await? {
        Ok(operation) => Ok(shown(&shared, Eyes::Agent, StatusCode::OK, &operation)),
        Err(CallError::WrongState(operation)) => {
            Err(wrong_state(Code::NOT_CANCELLABLE, "cancelled", &operation))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /v1/operations/{id}`
pub(super) async fn follow(
    State(shared): State<Shared>,
    caller: Anyone,
    Segments(id): Segments<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let asked = Params::read(&uri, &WAIT)?.wait()?;
    let (id, gateway) = (operation_id(&id)?, shared.gateway());
    let waiting = shared.0.waits.begin(caller.holder());
    let wait = if waiting.is_some() { asked } else { Duration::ZERO };
    let (operation, eyes) = match &caller {
        Anyone::Agent(caller) => (gateway.follow(caller, &id, wait).await?, Eyes::Agent),
        Anyone::Human(human) => (gateway.operation_for(human, &id, wait).await?, Eyes::Human),
    };
    Ok(shown(&shared, eyes, StatusCode::OK, &operation))
}

/// `GET /v1/operations`: an agent's own, or for a human all of the company.
pub(super) async fn list(
    State(shared): State<Shared>,
    caller: Anyone,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, eyes, params } = About::read(&caller, &uri, &FILTER)?;
    let status = params.parse("status", "one of the states", Status::from_code)?;
    let page = params.page(List::Operations)?;
    let gateway = shared.gateway();
    let found = match &caller {
        Anyone::Agent(caller) => {
            gateway.own_operations(caller, status, page.after(), page.more()).await?
        }
        Anyone::Human(_) => {
            gateway.operations_of(&company, status, page.after(), page.more()).await?
        }
    };
    let url = &shared.state().public_url;
    Ok(page.answer(&found, |found| found.id.as_str(), |found| OperationView::of(found, eyes, url)))
}

/// Does the work in a task of its own: a caller who hangs up drops the handler, not the work.
pub(super) async fn to_its_end<T, W, F>(shared: &Shared, work: W) -> Result<T, Problem>
where
    W: FnOnce(Gateway) -> F,
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let gateway = shared.gateway();
    gateway.spawn(work(gateway.clone())).await.map_err(|fault| {
        super::problem::log(&fault);
        Problem::internal()
    })
}

fn answered(shared: &Shared, answer: &Answer) -> Response {
    let mut response =
        shown(shared, Eyes::Agent, http_status(&answer.operation), &answer.operation);
    if answer.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn shown(shared: &Shared, eyes: Eyes, status: StatusCode, operation: &Operation) -> Response {
    let view = OperationView::of(operation, eyes, &shared.state().public_url);
    (status, Json(view)).into_response()
}

fn wrong_state(code: Code, done: &str, operation: &Operation) -> Problem {
    let detail = format!("the operation is {} and cannot be {done}", operation.status.code());
    Problem::new(code, detail)
}

pub(super) fn operation_id(text: &str) -> Result<OperationId, Problem> {
    OperationId::parse(text).map_err(|_bad| Problem::not_found())
}

/// The idempotency key: required, once, plain.
fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(sent) = single(headers, &IDEMPOTENCY_KEY)? else {
        let detail = "the header `Idempotency-Key` is missing";
        return Err(Problem::new(Code::IDEMPOTENCY_KEY_MISSING, detail));
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    if (1..=64).contains(&sent.len()) && sent.iter().all(plain) {
        Ok(String::from_utf8_lossy(sent).into_owned())
    } else {
        let detail = "`Idempotency-Key` has 1 to 64 of the characters A-Z a-z 0-9 . _ : -";
        Err(Problem::new(Code::IDEMPOTENCY_KEY_INVALID, detail))
    }
}
