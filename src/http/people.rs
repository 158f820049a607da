//! Users of a company, for its admins (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::body::{JsonBytes, NoBody};
use super::call::{Call, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::{About, company_in_body, requires};
use super::fields::Fields;
use super::forms;
use super::problem::{self, Problem};
use super::query::{List, PAGED, Segments};
use super::shapes::{self, one, page};
use crate::domain::names::Name;
use crate::domain::role::Role;
use crate::gateway::passwords::{NewPassword, PasswordError};
use crate::gateway::people::{NewRole, PeopleError, Person};

/// The form of a role, for who sent another text.
const ROLE_FORM: &str = "accountant, approver, admin or auditor";
/// The form of a name.
const NAME_FORM: &str = "1 to 64 of the characters A-Z a-z 0-9 . _ @ -";

/// The members of the body that adds a user, or a role to one.
const NEW_ROLE: [Field; 4] = [
    Field::must("name", forms::name),
    Field::must("role", forms::role),
    Field::may("company", forms::company),
    Field::may("password", forms::new_password),
];

pub(super) const LIST: Call = Call::by_humans("listUsers", "The users of a company, by name")
    .of_company()
    .asks(&PAGED)
    .answers(&[Reply::ok("A page.", page::<PersonView<'static>>)])
    .refuses(&[Code::NOT_AN_ADMIN]);

pub(super) const ADD: Call = Call::by_humans("addUser", "Adds a user, or a role to one")
    .of_company()
    .takes(Takes::Members(&NEW_ROLE))
    .answers(&[Reply::created("The user.", one::<PersonView<'static>>)])
    .refuses(&[
        Code::NOT_AN_ADMIN,
        Code::SELF_GRANT,
        Code::OPERATOR_ONLY,
        Code::USER_EXISTS,
        Code::ROLE_HELD,
        Code::PASSWORD_MISSING,
        Code::PASSWORD_LENGTH,
        Code::NAME_RESERVED,
        Code::BUSY,
    ]);

pub(super) const DISABLE: Call =
    Call::by_humans("disableUser", "Disables a user, and ends what he has begun")
        .of_company()
        .takes(Takes::Empty)
        .answers(&[Reply::ok("The user.", one::<PersonView<'static>>)])
        .refuses(&[Code::NOT_AN_ADMIN, Code::OPERATOR_ONLY, Code::LAST_ADMIN]);

/// A human, with his roles in one company.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "User")]
struct PersonView<'a> {
    name: &'a str,
    #[schemars(with = "Vec<shapes::RoleWord>")]
    roles: Vec<&'static str>,
    active: bool,
}

impl<'a> PersonView<'a> {
    fn of(person: &'a Person) -> Self {
        let roles = person.roles.iter().map(|role| role.code()).collect();
        Self { name: person.name.as_str(), roles, active: person.active }
    }
}

/// `GET /v1/users`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Response, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &PAGED)?;
    // An auditor reads everything of the company, and changes nothing.
    if !human.holds(&company, Role::Auditor) {
        requires(&human, &company, Role::Admin)?;
    }
    let page = params.page(List::Users)?;
    let found = shared.gateway().people_of(&company, page.after(), page.more()).await?;
    Ok(page.answer(&found, |person| person.name.as_str(), PersonView::of))
}

/// `POST /v1/users`
pub(super) async fn add(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let fields = Fields::read(&body, &NEW_ROLE)?;
    let company = company_in_body(&human, &uri, fields.opt_text("company")?)?;
    let name = fields.parse("name", NAME_FORM, |text| Name::parse(text).ok())?;
    let role = fields.parse("role", ROLE_FORM, Role::from_code)?;
    let password = fields.opt_secret("password")?.map(NewPassword::new).transpose();
    let password = password.map_err(PeopleError::Password)?;
    let new = NewRole { name, company, role };
    let person = shared.gateway().add_person(&human, new, password).await?;
    Ok(answer(StatusCode::CREATED, &person))
}

/// `POST /v1/users/{name}/disable`
pub(super) async fn disable(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(name): Segments<String>,
    uri: Uri,
    _no_body: NoBody,
) -> Result<Response, Problem> {
    let company = About::by_human(&human, &uri, &[])?.company;
    let name = Name::parse(&name).map_err(|_bad| Problem::not_found())?;
    let person = shared.gateway().disable_person(&human, &company, &name).await?;
    Ok(answer(StatusCode::OK, &person))
}

fn answer(status: StatusCode, person: &Person) -> Response {
    (status, Json(PersonView::of(person))).into_response()
}

impl From<PeopleError> for Problem {
    fn from(error: PeopleError) -> Self {
        match &error {
            PeopleError::NotAnAdmin => {
                Self::new(Code::NOT_AN_ADMIN, "this takes an admin of the company")
            }
            PeopleError::SelfGrant => {
                Self::new(Code::SELF_GRANT, "nobody gives a role to himself; ask another admin")
            }
            PeopleError::NotFound => Self::not_found(),
            PeopleError::Exists => Self::new(
                Code::USER_EXISTS,
                "there is a user of that name, who keeps the password: leave `password` out",
            ),
            PeopleError::PasswordMissing => {
                Self::new(Code::PASSWORD_MISSING, "a new user needs a `password`")
            }
            PeopleError::RoleHeld => Self::new(Code::ROLE_HELD, "the user holds this role already"),
            PeopleError::Reserved => Self::new(Code::NAME_RESERVED, "the name is reserved"),
            PeopleError::OperatorOnly => Self::new(
                Code::OPERATOR_ONLY,
                "the user holds roles in other companies too: the operator disables him, with \
                 `countersign user disable`",
            ),
            PeopleError::LastAdmin => Self::new(
                Code::LAST_ADMIN,
                "you are the last admin of a company; add another one first",
            ),
            PeopleError::Password(PasswordError::Length) => {
                Self::new(Code::PASSWORD_LENGTH, PasswordError::Length.to_string())
            }
            PeopleError::Password(PasswordError::Busy) => Self::busy(),
            PeopleError::Password(PasswordError::NotHashed(_)) => {
                problem::log(&error);
                Self::internal()
            }
            PeopleError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
        }
    }
}
