//! Signing in and out (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::Shared;
use super::body::{JsonBytes, NoBody};
use super::caller::{HumanCaller, Stranger};
use super::fields::Fields;
use super::problem::{self, Problem};
use super::query::NoParams;
use crate::domain::reason::Reason;
use crate::gateway::passwords::PasswordError;
use crate::gateway::sessions::SignInError;

/// `POST /v1/sessions`
pub(super) async fn sign_in(
    State(shared): State<Shared>,
    stranger: Stranger,
    _no_params: NoParams,
    JsonBytes(body): JsonBytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let fields = Fields::read(&body, &["user", "password"])?;
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
    let answer = json!({
        "token": signed_in.token.expose_secret(), "expires_at": signed_in.expires_at,
    });
    Ok((StatusCode::CREATED, Json(answer)))
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
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail)
                    .after(*retry_after_secs)
                    .counted()
            }
            SignInError::Password(PasswordError::Busy) => Self::busy(),
            SignInError::Store(_) => {
                problem::log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
            SignInError::Password(_) | SignInError::Randomness(_) => {
                problem::log(&error);
                Self::internal()
            }
        }
    }
}
