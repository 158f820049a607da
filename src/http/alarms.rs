//! Alarms of a company, and what is frozen in it (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use countersign_erp_source::{Timestamp, VendorId};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::About;
use super::fields::{Fields, invalid};
use super::forms;
use super::operations::to_its_end;
use super::problem::{self, Problem};
use super::query::{CURSOR, LIMIT, List, NoParams, PAGED, Segments};
use super::shapes::{self, one, page};
use crate::domain::names::{AlarmId, FreezeId, OperationId};
use crate::gateway::Gateway;
use crate::gateway::alarm::{Alarm, AlarmError};
use crate::gateway::freeze::{ByHumanError, Freeze, FreezeScope, HumanScope};

/// What a list of alarms is asked with.
const ALARMS: [Field; 3] = [Field::may("status", forms::alarm_status), LIMIT, CURSOR];
/// The body of what ends an alarm or a freeze.
const REASON: [Field; 1] = [Field::must("reason", forms::text)];
/// The body of a freeze.
const FROZEN: [Field; 3] = [
    Field::must("scope", forms::freeze_scope),
    Field::may("vendor_id", forms::erp_id),
    Field::must("reason", forms::text),
];

pub(super) const LIST: Call = Call::by_humans("listAlarms", "What the company must look at")
    .of_company()
    .asks(&ALARMS)
    .answers(&[Reply::ok("A page.", page::<AlarmView<'static>>)]);

pub(super) const CLOSE: Call =
    Call::by_humans("closeAlarm", "Somebody looked at an alarm; nothing is unblocked by it")
        .takes(Takes::Members(&REASON))
        .answers(&[Reply::ok("It is closed.", one::<AlarmView<'static>>)])
        .refuses(&[Code::AUDITORS_READ_ONLY, Code::ALREADY_CLOSED]);

pub(super) const FREEZES: Call = Call::by_humans("listFreezes", "What stops payments now")
    .of_company()
    .asks(&PAGED)
    .answers(&[Reply::ok("A page.", page::<FreezeView<'static>>)]);

pub(super) const FREEZE: Call = Call::by_humans("freeze", "Stops payments at once")
    .of_company()
    .takes(Takes::Members(&FROZEN))
    .answers(&[Reply::created("It is in force.", one::<FreezeView<'static>>)])
    .refuses(&[Code::AUDITORS_READ_ONLY, Code::OPERATOR_ONLY, Code::NOT_FOUND]);

pub(super) const THAW: Call = Call::by_humans("thaw", "Lets payments go on")
    .takes(Takes::Members(&REASON))
    .answers(&[Reply::ok("It was in force until now.", one::<FreezeView<'static>>)])
    .refuses(&[Code::NOT_AN_APPROVER, Code::OPERATOR_ONLY, Code::SELF_APPROVAL]);

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Alarm", description = "Something that a human has to look at.")]
pub(super) struct AlarmView<'a> {
    id: &'a str,
    kind: &'a str,
    vendor_id: Option<&'a str>,
    operation: Option<&'a str>,
    /// What happened and what to do.
    detail: &'a str,
    #[schemars(with = "shapes::Time")]
    raised_at: Timestamp,
    status: &'static str,
    #[schemars(with = "Option<shapes::Time>")]
    closed_at: Option<Timestamp>,
    closed_by: Option<&'a str>,
    closed_because: Option<&'a str>,
}

impl<'a> AlarmView<'a> {
    fn of(alarm: &'a Alarm) -> Self {
        let closed = alarm.closed.as_ref();
        Self {
            id: alarm.id.as_str(),
            kind: &alarm.kind,
            vendor_id: alarm.counterparty.as_deref(),
            operation: alarm.operation.as_deref(),
            detail: &alarm.detail,
            raised_at: alarm.raised_at,
            status: if closed.is_some() { "closed" } else { "open" },
            closed_at: closed.map(|closed| closed.at),
            closed_by: closed.map(|closed| closed.by.as_str()),
            closed_because: closed.map(|closed| closed.because.as_str()),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Freeze", description = "What stops payments.")]
pub(super) struct FreezeView<'a> {
    id: &'a str,
    scope: &'static str,
    vendor_id: Option<&'a str>,
    reason: &'a str,
    /// What happened, where the daemon froze by itself.
    cause: Option<&'a str>,
    operation: Option<&'a str>,
    placed_by: &'a str,
    #[schemars(with = "shapes::Time")]
    placed_at: Timestamp,
}

impl<'a> FreezeView<'a> {
    fn of(freeze: &'a Freeze) -> Self {
        // INVARIANT (I8): what stops everything may have happened in another company.
        let (vendor_id, is_ours) = match &freeze.scope {
            FreezeScope::All => (None, false),
            FreezeScope::Company(_) => (None, true),
            FreezeScope::Vendor { vendor, .. } => (Some(vendor.as_str()), true),
        };
        let operation = freeze.operation.as_ref().filter(|_| is_ours);
        Self {
            id: freeze.id.as_str(),
            scope: freeze.scope.code(),
            vendor_id,
            reason: if is_ours { &freeze.reason } else { "the operator knows why" },
            cause: freeze.cause.as_deref(),
            operation: operation.map(OperationId::as_str),
            placed_by: &freeze.placed_by,
            placed_at: freeze.placed_at,
        }
    }
}

/// `GET /v1/alarms`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &ALARMS)?;
    let status = |text: &str| match text {
        "open" => Some(true),
        "all" => Some(false),
        _ => None,
    };
    let open_only = params.parse("status", "`open` or `all`", status)?.unwrap_or(false);
    let page = params.page(List::Alarms)?;
    let found = shared.gateway().alarms(&company, open_only, page.after(), page.more()).await;
    let found = found.map_err(AlarmError::Store)?;
    Ok(page.answer(&found, |found| found.id.as_str(), AlarmView::of))
}

/// `POST /v1/alarms/{id}/close`
pub(super) async fn close(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let reason = Fields::read(&body, &REASON)?.text("reason")?.to_owned();
    let id = AlarmId::parse(&id).map_err(|_bad| Problem::not_found())?;
    let work = async move |gateway: Gateway| gateway.close_alarm(human.name(), &id, &reason).await;
    let closed = to_its_end(&shared, work).await??;
    Ok(Json(AlarmView::of(&closed)).into_response())
}

/// `GET /v1/freezes`
pub(super) async fn freezes(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &PAGED)?;
    let page = params.page(List::Freezes)?;
    let found = shared.gateway().freezes_of(&company, page.after(), page.more()).await;
    let found = found.map_err(ByHumanError::Store)?;
    Ok(page.answer(&found, |found| found.id.as_str(), FreezeView::of))
}

/// `POST /v1/freezes`
pub(super) async fn freeze(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    let fields = Fields::read(&body, &FROZEN)?;
    let reason = fields.text("reason")?.to_owned();
    let vendor = fields.opt_text("vendor_id")?.map(ToOwned::to_owned);
    let scope = match (fields.text("scope")?, vendor) {
        ("company", None) => HumanScope::Company,
        ("company", Some(_)) => return Err(invalid("vendor_id", "only for the scope `vendor`")),
        ("vendor", Some(vendor)) => {
            // A slip of the pen freezes nobody; an ERP that does not answer keeps nobody from it.
            let id = VendorId::new(vendor.clone()).map_err(|_bad| Problem::not_found())?;
            let found = shared.state().ap.ports().erp.find_vendor(&company, &id).await;
            if matches!(found, Ok(None)) {
                return Err(Problem::not_found());
            }
            HumanScope::Vendor(vendor)
        }
        ("vendor", None) => return Err(invalid("vendor_id", "needed for the scope `vendor`")),
        ("all", _) => {
            let detail = "everything is frozen by the operator, with `countersign freeze add`";
            return Err(Problem::new(Code::OPERATOR_ONLY, detail));
        }
        _ => return Err(invalid("scope", "`company` or `vendor`")),
    };
    let work = async move |gateway: Gateway| {
        gateway.freeze_for(human.name(), &company, scope, &reason).await
    };
    let placed = to_its_end(&shared, work).await??;
    Ok((StatusCode::CREATED, Json(FreezeView::of(&placed))).into_response())
}

/// `DELETE /v1/freezes/{id}`
pub(super) async fn thaw(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let reason = Fields::read(&body, &REASON)?.text("reason")?.to_owned();
    let id = FreezeId::parse(&id).map_err(|_bad| Problem::not_found())?;
    let work = async move |gateway: Gateway| gateway.thaw_for(human.name(), &id, &reason).await;
    let thawed = to_its_end(&shared, work).await??;
    Ok(Json(FreezeView::of(&thawed)).into_response())
}

impl From<AlarmError> for Problem {
    fn from(error: AlarmError) -> Self {
        match &error {
            AlarmError::NotFound => Self::not_found(),
            AlarmError::AuditorsChangeNothing => {
                Self::new(Code::AUDITORS_READ_ONLY, error.to_string())
            }
            AlarmError::Closed => Self::new(Code::ALREADY_CLOSED, error.to_string()),
            AlarmError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
        }
    }
}

impl From<ByHumanError> for Problem {
    fn from(error: ByHumanError) -> Self {
        let forbidden = |code| Self::new(code, error.to_string());
        match &error {
            ByHumanError::NotFound => Self::not_found(),
            ByHumanError::MayNotFreeze => forbidden(Code::AUDITORS_READ_ONLY),
            ByHumanError::OperatorOnly => forbidden(Code::OPERATOR_ONLY),
            ByHumanError::NotAnApprover => forbidden(Code::NOT_AN_APPROVER),
            ByHumanError::CausedByOwnApproval => forbidden(Code::SELF_APPROVAL),
            ByHumanError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
            ByHumanError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}
