//! What a call is to whoever makes it: who may, what it takes, all that it may answer. A route is
//! served together with its description or not at all, and the fields that a description names are
//! those that the handler reads, so that neither knows one that the other does not.

use axum::http::StatusCode;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::code::Code;
use super::sandbox::SandboxShape;

/// The JSON schema of a value that is sent to us.
pub(super) type Form = fn() -> Value;
/// The JSON schema of an answer of ours.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// A member of a body, a parameter in an address, or a header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
}

impl Field {
    /// One that must be there.
    pub(super) const fn must(name: &'static str, form: Form) -> Self {
        Self { name, form, required: true }
    }

    /// One that may be left out.
    pub(super) const fn may(name: &'static str, form: Form) -> Self {
        Self { name, form, required: false }
    }
}

/// The names of fields, as a sentence lists them.
pub(super) fn names(fields: &[Field]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// Who may make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callers {
    /// Whoever comes.
    Anybody,
    /// Somebody who signs in.
    Strangers,
    /// Callers with a mandate.
    Agents,
    /// Signed-in humans.
    Humans,
    /// Both of them.
    Both,
}

/// What a call reads of its body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    /// It is not read.
    Nothing,
    /// No body, or an empty object.
    Empty,
    /// An object of those members.
    Members(&'static [Field]),
    /// An object in a form of its own.
    Form(Form),
    /// What the sandbox understands.
    Sandbox(SandboxShape),
}

/// What is in an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    Nothing,
    Json(Shape),
    /// The text that Prometheus reads.
    Metrics,
    Sandbox(SandboxShape),
}

/// An answer of a call that is not refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) about: &'static str,
    pub(super) content: Content,
}

impl Reply {
    pub(super) const fn new(status: StatusCode, about: &'static str, content: Content) -> Self {
        Self { status, about, content }
    }

    /// Answered with 200.
    pub(super) const fn ok(about: &'static str, shape: Shape) -> Self {
        Self::new(StatusCode::OK, about, Content::Json(shape))
    }

    /// Answered with 201.
    pub(super) const fn created(about: &'static str, shape: Shape) -> Self {
        Self::new(StatusCode::CREATED, about, Content::Json(shape))
    }
}

/// The description of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) id: &'static str,
    pub(super) about: &'static str,
    pub(super) callers: Callers,
    /// The parameters that it knows; none where the query is not looked at.
    pub(super) query: Option<&'static [Field]>,
    /// Whether it is about one company, which humans may have to name.
    pub(super) of_company: bool,
    pub(super) headers: &'static [Field],
    pub(super) takes: Takes,
    pub(super) answers: &'static [Reply],
    /// Whether its answers may say that they are replayed.
    pub(super) replays: bool,
    refuses: &'static [Code],
}

impl Call {
    pub(super) const fn new(callers: Callers, id: &'static str, about: &'static str) -> Self {
        Self {
            id,
            about,
            callers,
            query: Some(&[]),
            of_company: false,
            headers: &[],
            takes: Takes::Nothing,
            answers: &[],
            replays: false,
            refuses: &[],
        }
    }

    pub(super) const fn by_agents(id: &'static str, about: &'static str) -> Self {
        Self::new(Callers::Agents, id, about)
    }

    pub(super) const fn by_humans(id: &'static str, about: &'static str) -> Self {
        Self::new(Callers::Humans, id, about)
    }

    pub(super) const fn by_both(id: &'static str, about: &'static str) -> Self {
        Self::new(Callers::Both, id, about)
    }

    pub(super) const fn by_anybody(id: &'static str, about: &'static str) -> Self {
        Self::new(Callers::Anybody, id, about)
    }

    pub(super) const fn asks(self, query: &'static [Field]) -> Self {
        Self { query: Some(query), ..self }
    }

    pub(super) const fn whatever_is_asked(self) -> Self {
        Self { query: None, ..self }
    }

    pub(super) const fn of_company(self) -> Self {
        Self { of_company: true, ..self }
    }

    pub(super) const fn headers(self, headers: &'static [Field]) -> Self {
        Self { headers, ..self }
    }

    pub(super) const fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    pub(super) const fn answers(self, answers: &'static [Reply]) -> Self {
        Self { answers, ..self }
    }

    pub(super) const fn replays(self) -> Self {
        Self { replays: true, ..self }
    }

    /// Refused for reasons of its own, beside those that what it is brings along.
    pub(super) const fn refuses(self, refuses: &'static [Code]) -> Self {
        Self { refuses, ..self }
    }

    /// All that it may be refused with, at that address.
    pub(super) fn refusals(&self, method: &str, path: &str) -> Vec<Code> {
        let mut all =
            vec![Code::HOST_NOT_ALLOWED, Code::BODY_TOO_LARGE, Code::INTERNAL, Code::TIMED_OUT];
        if method != "get" {
            all.push(Code::ORIGIN_NOT_ALLOWED);
        }
        if self.query.is_some() {
            all.push(Code::INVALID_QUERY);
        }
        if path.contains('{') {
            all.push(Code::NOT_FOUND);
        }
        if self.of_company {
            all.extend([Code::COMPANY_REQUIRED, Code::NOT_FOUND]);
        }
        all.extend(self.not_let_in());
        all.extend(self.unread());
        all.extend(self.refuses);
        all
    }

    fn not_let_in(&self) -> Vec<Code> {
        let mut all = match self.callers {
            Callers::Anybody => return Vec::new(),
            Callers::Agents => vec![Code::AGENTS_ONLY],
            Callers::Humans | Callers::Strangers => vec![Code::HUMANS_ONLY],
            Callers::Both => Vec::new(),
        };
        if self.callers != Callers::Strangers {
            all.extend([
                Code::TOKEN_INVALID,
                Code::MANDATE_EXPIRED,
                Code::MANDATE_REVOKED,
                Code::SESSION_INVALID,
            ]);
        }
        all.extend([Code::RATE_LIMITED, Code::STORE_UNAVAILABLE]);
        all
    }

    fn unread(&self) -> Vec<Code> {
        let mut all = match self.takes {
            Takes::Nothing => return Vec::new(),
            Takes::Members(_) => vec![Code::INVALID_FIELD],
            Takes::Empty | Takes::Form(_) | Takes::Sandbox(_) => Vec::new(),
        };
        all.extend([
            Code::MALFORMED_BODY,
            Code::DUPLICATE_HEADER,
            Code::REQUEST_TIMEOUT,
            Code::UNSUPPORTED_MEDIA_TYPE,
        ]);
        all
    }
}
