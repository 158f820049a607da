//! Answers where no operation exists (RFC 9457): a stable code and a sentence that a person can act
//! on. It knows nothing of what happened inside: that goes to the log, never into an answer.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::code::Code;
use crate::domain::reason::Reason;
use crate::gateway::CallError;
use crate::gateway::authn::AuthnError;

/// In how many seconds to try again when too many passwords are being looked at.
const BUSY_RETRY_SECS: u64 = 5;

/// A problem as an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    retry_after_secs: Option<u64>,
    /// Whether it was counted where it is said, and is not to be counted again.
    counted: bool,
}

impl Problem {
    pub(super) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), retry_after_secs: None, counted: false }
    }

    /// The one answer for what is not there, is another's, or cannot be an id at all (I8).
    pub(super) fn not_found() -> Self {
        Self::new(Code::NOT_FOUND, "there is no such thing, or it is not yours")
    }

    pub(super) fn no_such_route() -> Self {
        Self::new(Code::NOT_FOUND, "there is no such address")
    }

    pub(super) fn wrong_method() -> Self {
        let detail =
            "this address does not take that method; the header `Allow` names those it takes";
        Self::new(Code::METHOD_NOT_ALLOWED, detail)
    }

    /// Who is not let in. Whoever says so has counted it, under its own reason.
    pub(super) fn refused(reason: Reason) -> Self {
        Self::new(Code::refused(reason), reason.text()).counted()
    }

    /// Says that it was counted already.
    pub(super) fn counted(self) -> Self {
        Self { counted: true, ..self }
    }

    pub(super) fn rate_limited(retry_after_secs: u64) -> Self {
        let detail = "too many calls with this token; try again when `Retry-After` is over";
        Self::new(Code::RATE_LIMITED, detail).after(retry_after_secs)
    }

    /// Says in how many seconds to try again.
    pub(super) fn after(self, secs: u64) -> Self {
        Self { retry_after_secs: Some(secs), ..self }
    }

    /// Too many passwords are being looked at.
    pub(super) fn busy() -> Self {
        let detail = "too many passwords are being looked at; try again";
        Self::new(Code::BUSY, detail).after(BUSY_RETRY_SECS)
    }

    pub(super) fn internal() -> Self {
        let detail = "something went wrong inside; the log has it under the id of this request";
        Self::new(Code::INTERNAL, detail)
    }

    pub(super) fn store_unavailable() -> Self {
        Self::unavailable(Code::STORE_UNAVAILABLE, Reason::StoreUnavailable)
    }

    pub(super) fn erp_unavailable() -> Self {
        Self::unavailable(Code::ERP_UNAVAILABLE, Reason::ErpUnavailable)
    }

    fn unavailable(code: Code, reason: Reason) -> Self {
        Self::new(code, format!("{}; try again", reason.text()))
    }
}

/// The code of the problem that an answer is, where it is still to be counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uncounted(pub(super) &'static str);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or_default(),
            "status": status.as_u16(),
            "code": self.code.text(),
            "detail": self.detail,
        });
        let mut response = (status, body.to_string()).into_response();
        if !self.counted {
            response.extensions_mut().insert(Uncounted(self.code.text()));
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
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
                Self::store_unavailable()
            }
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match &error {
            CallError::KeyReused => Self::new(
                Code::IDEMPOTENCY_KEY_REUSED,
                "the idempotency key was used for another proposal; use a new key",
            ),
            CallError::NotFound => Self::not_found(),
            CallError::WrongState(operation) => {
                let detail = format!("the operation is {}", operation.status.code());
                Self::new(Code::WRONG_STATE, detail)
            }
            CallError::Store(_) => {
                log(&error);
                Self::store_unavailable()
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
