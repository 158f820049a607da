//! Answers where no operation exists (RFC 9457): a stable code and a sentence that a person can act
//! on. It knows nothing of what happened inside: that goes to the log, never into an answer.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::domain::reason::Reason;
use crate::gateway::CallError;
use crate::gateway::authn::AuthnError;

/// In how many seconds to try again when too many passwords are being looked at.
const BUSY_RETRY_SECS: u64 = 5;

/// A problem as an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    retry_after_secs: Option<u64>,
    /// Whether it was counted where it is said, and is not to be counted again.
    counted: bool,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code, detail: detail.into(), retry_after_secs: None, counted: false }
    }

    pub(super) fn bad_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// The one answer for what is not there, is another's, or cannot be an id at all (I8).
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no such thing, or it is not yours")
    }

    pub(super) fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no such address")
    }

    pub(super) fn wrong_method() -> Self {
        let detail =
            "this address does not take that method; the header `Allow` names those it takes";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    /// Who is not let in. Whoever says so has counted it, under its own reason.
    pub(super) fn refused(reason: Reason) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, reason.code(), reason.text()).counted()
    }

    /// Says that it was counted already.
    pub(super) fn counted(self) -> Self {
        Self { counted: true, ..self }
    }

    pub(super) fn rate_limited(retry_after_secs: u64) -> Self {
        let detail = "too many calls with this token; try again when `Retry-After` is over";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        problem.after(retry_after_secs)
    }

    /// Says in how many seconds to try again.
    pub(super) fn after(self, secs: u64) -> Self {
        Self { retry_after_secs: Some(secs), ..self }
    }

    pub(super) fn forbidden(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// Too many passwords are being looked at.
    pub(super) fn busy() -> Self {
        let detail = "too many passwords are being looked at; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).after(BUSY_RETRY_SECS)
    }

    pub(super) fn internal() -> Self {
        let detail = "something went wrong inside; the log has it under the id of this request";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub(super) fn unavailable(reason: Reason) -> Self {
        let detail = format!("{}; try again", reason.text());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason.code(), detail)
    }
}

/// The code of the problem that an answer is, where it is still to be counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uncounted(pub(super) &'static str);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        if !self.counted {
            response.extensions_mut().insert(Uncounted(self.code));
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(secs) = self.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        response
    }
}

impl From<AuthnError> for Problem {
    fn from(error: AuthnError) -> Self {
        match error {
            AuthnError::Refused(reason) => Self::refused(reason),
            AuthnError::Store(_) => {
                log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match &error {
            CallError::KeyReused => Self::new(
                StatusCode::CONFLICT,
                "idempotency_key_reused",
                "the idempotency key was used for another proposal; use a new key",
            ),
            CallError::NotFound => Self::not_found(),
            CallError::WrongState(operation) => Self::new(
                StatusCode::CONFLICT,
                "wrong_state",
                format!("the operation is {}", operation.status.code()),
            ),
            CallError::Store(_) => {
                log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
            CallError::Randomness(_) => {
                log(&error);
                Self::internal()
            }
        }
    }
}

/// Logs what the answer does not tell, with all its causes.
pub(super) fn log(error: &dyn Error) {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        // Writing into a text cannot fail.
        write!(text, ": {deeper}").unwrap_or_default();
        cause = deeper.source();
    }
    tracing::error!(error = %text, "a call could not be answered: {text}");
}
