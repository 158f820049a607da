//! Signing in and out (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use countersign_erp_source::Timestamp;
use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::Shared;
use super::body::{JsonBytes, NoBody};
use super::call::{Call, Callers, Content, Field, Reply, Takes};
use super::caller::{HumanCaller, Stranger};
use super::code::Code;
use super::fields::Fields;
use super::forms;
use super::problem::{self, Problem};
use super::query::NoParams;
use super::shapes::{self, one};
use crate::domain::reason::Reason;
use crate::gateway::passwords::PasswordError;
use crate::gateway::sessions::SignInError;

/// The members of the body that signs in.
const CREDENTIALS: [Field; 2] =
    [Field::must("user", forms::text), Field::must("password", forms::secret)];

pub(super) const SIGN_IN: Call = Call::new(Callers::Strangers, "signIn", "Signs a human in")
    .takes(Takes::Members(&CREDENTIALS))
    .answers(&[Reply::created("Signed in.", one::<SessionView>)])
    .refuses(&[Code::CREDENTIALS_INVALID, Code::BUSY]);

pub(super) const SIGN_OUT: Call = Call::by_humans("signOut", "Ends the session of the call")
    .takes(Takes::Empty)
    .answers(&[Reply::new(StatusCode::NO_CONTENT, "Signed out.", Content::Nothing)]);

/// A session with its token, which is shown this once.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(super) struct SessionView {
    token: String,
    /// When it ends by itself.
    #[schemars(with = "shapes::Time")]
    expires_at: Timestamp,
}

/// `POST /v1/sessions`
pub(super) async fn sign_in(
    State(shared): State<Shared>,
    stranger: Stranger,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<(StatusCode, Json<SessionView>), Problem> {
    let fields = Fields::read(&body, &CREDENTIALS)?;
    let (user, password) = (fields.text("user")?, fields.secret("password")?);
    let signed_in = shared.gateway().sign_in(user, password, stranger.address).await;
    let refused = match &signed_in {
        Err(SignInError::Refused) => Some(Reason::CredentialsInvalid),
        Err(SignInError::TooMany { .. }) => Some(Reason::SignInLimited),
        Ok(_)
        | Err(SignInError::Password(_) | SignInError::Store(_) | SignInError::Randomness(_)) => {
            None
        }
    };
    if let Some(reason) = refused {
        shared.state().refusals.note(stranger.address, reason, shared.gateway().now());
    }
    let signed_in = signed_in?;
    let token = signed_in.token.expose_secret().to_owned();
    let session = SessionView { token, expires_at: signed_in.expires_at };
    Ok((StatusCode::CREATED, Json(session)))
}

/// `DELETE /v1/sessions/current`
pub(super) async fn sign_out(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    _no_params: NoParams,
    _no_body: NoBody,
) -> Result<StatusCode, Problem> {
    shared.gateway().sign_out(&human).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        match &error {
            SignInError::Refused => Self::refused(Reason::CredentialsInvalid),
            SignInError::TooMany { retry_after_secs } => {
                let detail = "too many attempts to sign in; try again when `Retry-After` is over";
                Self::new(Code::RATE_LIMITED, detail).after(*retry_after_secs).counted()
            }
            SignInError::Password(PasswordError::Busy) => Self::busy(),
            SignInError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
            SignInError::Password(_) | SignInError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}
