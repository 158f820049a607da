//! Mandates of a company: issued and revoked by its admins, revoked by their own principals
//! (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use countersign_erp_source::{Amount, Currency, Iban, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::{About, requires};
use super::fields::{Fields, invalid};
use super::forms;
use super::problem::{self, Problem};
use super::query::{List, NoParams, PAGED, Segments};
use super::shapes::{self, one, page};
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, Name};
use crate::domain::role::Role;
use crate::gateway::mandates::{Grant, MandateError};
use crate::gateway::people::By;

/// The members of the body of a new mandate.
const GRANT: [Field; 8] = [
    Field::must("principal", forms::name),
    Field::must("agent", forms::name),
    Field::must("scopes", forms::scopes),
    Field::must("source_account", forms::iban),
    Field::must("currency", forms::currency),
    Field::may("budget", forms::money),
    Field::may("max_calls", forms::count),
    Field::must("ttl", forms::duration),
];
/// The members of a revocation's body.
const REVOCATION: [Field; 1] = [Field::must("reason", forms::text)];
/// The form of a name.
const NAME_FORM: &str = "1 to 64 of the characters A-Z a-z 0-9 . _ @ -";

pub(super) const LIST: Call =
    Call::by_humans("listMandates", "The mandates of a company; for an accountant his own")
        .of_company()
        .asks(&PAGED)
        .answers(&[Reply::ok("A page.", page::<MandateView<'static>>)])
        .refuses(&[Code::NOT_AN_ADMIN]);

pub(super) const ISSUE: Call = Call::by_humans("issueMandate", "Grants a mandate to an agent")
    .of_company()
    .takes(Takes::Members(&GRANT))
    .answers(&[Reply::created(
        "The mandate, with its token and the whole account number this once.",
        one::<IssuedView<'static>>,
    )])
    .refuses(&[
        Code::NOT_AN_ADMIN,
        Code::NOT_A_PRINCIPAL,
        Code::UNKNOWN_SCOPE,
        Code::UNKNOWN_SOURCE_ACCOUNT,
        Code::OTHER_CURRENCY,
        Code::LIMIT_OUT_OF_RANGE,
        Code::ERP_UNAVAILABLE,
    ]);

pub(super) const REVOKE: Call =
    Call::by_humans("revokeMandate", "Revokes a mandate, and cancels what waits under it")
        .takes(Takes::Members(&REVOCATION))
        .answers(&[Reply::ok("The mandate.", one::<MandateView<'static>>)])
        .refuses(&[Code::NOT_AN_ADMIN]);

/// What a mandate grants, and how it stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Mandate")]
struct MandateView<'a> {
    #[schemars(with = "shapes::MandateRef")]
    id: &'a str,
    company: &'a str,
    principal: &'a str,
    agent: &'a str,
    scopes: Vec<&'a str>,
    source_account: SourceView<'a>,
    #[schemars(with = "shapes::CurrencyCode")]
    currency: &'static str,
    #[schemars(with = "Option<shapes::Money>")]
    budget: Option<String>,
    max_calls: Option<i64>,
    #[schemars(with = "shapes::Time")]
    issued_at: Timestamp,
    #[schemars(with = "shapes::Time")]
    expires_at: Timestamp,
    #[schemars(with = "Option<shapes::Time>")]
    revoked_at: Option<Timestamp>,
    #[schemars(with = "shapes::MandateWord")]
    status: &'static str,
}

/// The account that is paid from.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MandateAccount")]
struct SourceView<'a> {
    journal: &'a str,
    /// Whole, where the mandate is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    iban: Option<String>,
}

impl<'a> MandateView<'a> {
    fn of(mandate: &'a Mandate, now: Timestamp) -> Self {
        let status = match (mandate.revoked_at, mandate.is_expired(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "in_force",
        };
        Self {
            id: mandate.id.as_str(),
            company: mandate.company.as_str(),
            principal: mandate.principal.as_str(),
            agent: mandate.agent.as_str(),
            scopes: mandate.scopes.iter().map(String::as_str).collect(),
            source_account: SourceView { journal: mandate.journal.as_str(), iban: None },
            currency: mandate.currency.code(),
            budget: mandate.budget.map(Amount::to_decimal_string),
            max_calls: mandate.calls_max,
            issued_at: mandate.issued_at,
            expires_at: mandate.expires_at,
            revoked_at: mandate.revoked_at,
            status,
        }
    }
}

/// A new mandate with its token, which is shown this once.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IssuedMandate")]
struct IssuedView<'a> {
    #[serde(flatten)]
    mandate: MandateView<'a>,
    token: &'a str,
}

/// `GET /v1/mandates`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &PAGED)?;
    let all = human.holds(&company, Role::Admin) || human.holds(&company, Role::Auditor);
    if !all && !human.holds(&company, Role::Accountant) {
        requires(&human, &company, Role::Admin)?;
    }
    let principal = (!all).then_some(human.name());
    let page = params.page(List::Mandates)?;
    let gateway = shared.gateway();
    let found = gateway.mandates_of(&company, principal, page.after(), page.more()).await?;
    let now = gateway.now();
    Ok(page.answer(&found, |found| found.id.as_str(), |found| MandateView::of(found, now)))
}

/// `POST /v1/mandates`
pub(super) async fn issue(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    requires(&human, &company, Role::Admin)?;
    let fields = Fields::read(&body, &GRANT)?;
    let name = |member: &str| fields.parse(member, NAME_FORM, |text| Name::parse(text).ok());
    let (principal, agent) = (name("principal")?, name("agent")?);
    let scopes = fields.texts("scopes")?.into_iter().map(str::to_owned).collect();
    let currency = |text: &str| Currency::from_code(text).ok();
    let currency = fields.parse("currency", "a currency of ISO 4217 like `EUR`", currency)?;
    let budget = fields.opt_text("budget")?.map(|text| Amount::parse(text, currency));
    let budget = budget.transpose().map_err(|fault| invalid("budget", &fault.to_string()))?;
    let iban = Iban::parse(fields.text("source_account")?);
    let iban = iban.map_err(|fault| invalid("source_account", &fault.to_string()))?;
    let duration = |text: &str| humantime::parse_duration(text).ok();
    let ttl = fields.parse("ttl", "a duration like `8h`", duration)?;
    let calls_max = fields.opt_count("max_calls")?;
    let source = shared.state().ap.source_account(&company, &iban).await?;
    let source = source.ok_or_else(|| {
        Problem::new(
            Code::UNKNOWN_SOURCE_ACCOUNT,
            "the company pays from no account of that number",
        )
    })?;
    let number = source.iban.electronic().to_owned();
    let grant =
        Grant { company, principal, agent, scopes, source, currency, budget, calls_max, ttl };
    let by = By::Human(human.name().clone());
    let (mandate, token) = shared.gateway().issue(grant, by).await?;
    let mut view = MandateView::of(&mandate, shared.gateway().now());
    view.source_account.iban = Some(number);
    let issued = IssuedView { mandate: view, token: &token };
    Ok((StatusCode::CREATED, Json(issued)).into_response())
}

/// `POST /v1/mandates/{id}/revoke`
pub(super) async fn revoke(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(id): Segments<String>,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let gateway = shared.gateway();
    let id = MandateId::parse(&id).map_err(|_bad| Problem::not_found())?;
    let mandate = gateway.mandate_for(&human, &id).await?;
    if mandate.principal != *human.name() {
        requires(&human, &mandate.company, Role::Admin)?;
    }
    let fields = Fields::read(&body, &REVOCATION)?;
    let revoked = gateway.revoke_for(&human, &id, fields.text("reason")?).await?;
    Ok(Json(MandateView::of(&revoked, gateway.now())).into_response())
}

impl From<MandateError> for Problem {
    fn from(error: MandateError) -> Self {
        match &error {
            MandateError::NotAPrincipal { .. } => {
                Self::new(Code::NOT_A_PRINCIPAL, "the principal is no active accountant there")
            }
            MandateError::UnknownScope(_) => Self::new(
                Code::UNKNOWN_SCOPE,
                "a scope is the name of an action like `invoice.pay`",
            ),
            MandateError::NoScope => Self::new(Code::UNKNOWN_SCOPE, error.to_string()),
            MandateError::OtherCurrency { .. } => {
                Self::new(Code::OTHER_CURRENCY, error.to_string())
            }
            MandateError::Nothing | MandateError::TooMuch => {
                Self::new(Code::LIMIT_OUT_OF_RANGE, error.to_string())
            }
            MandateError::NotAnAdmin { .. } => {
                Self::new(Code::NOT_AN_ADMIN, "this takes an admin of the company")
            }
            MandateError::NotInForce(_) => Self::not_found(),
            MandateError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
            MandateError::Signature(_) | MandateError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}
