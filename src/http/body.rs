//! Bodies: JSON and nothing else, small, sent in time.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::Shared;
use super::code::Code;
use super::problem::Problem;
use crate::gateway::contract::{self, Unreadable};

/// The largest body.
pub(super) const BYTES_MAX: usize = 64 * 1024;
/// How long a caller may take to send one.
const SENT_WITHIN: Duration = Duration::from_secs(20);

/// A body that says of itself to be JSON.
#[derive(Debug)]
pub(super) struct JsonBytes(pub(super) Bytes);

impl FromRequest<Shared> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Problem> {
        if !is_json(request.headers())? {
            return Err(unsupported());
        }
        read(request, shared).await.map(Self)
    }
}

/// No body, or an empty object.
#[derive(Debug)]
pub(super) struct NoBody;

impl FromRequest<Shared> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Problem> {
        let named = request.headers().contains_key(header::CONTENT_TYPE);
        let json = is_json(request.headers())?;
        let body = read(request, shared).await?;
        if body.is_empty() && !named {
            return Ok(Self);
        }
        if !json {
            return Err(unsupported());
        }
        if body.is_empty() {
            return Ok(Self);
        }
        let value = contract::strict_json(&body)?;
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        let detail = "this call takes no body, or `{}`";
        is_empty.then_some(Self).ok_or_else(|| Problem::new(Code::MALFORMED_BODY, detail))
    }
}

impl From<Unreadable> for Problem {
    fn from(why: Unreadable) -> Self {
        Self::new(Code::MALFORMED_BODY, why.to_string())
    }
}

/// The value of a header that may stand once.
pub(super) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h [u8]>, Problem> {
    let mut sent = headers.get_all(name).iter();
    let only = sent.next().map(HeaderValue::as_bytes);
    if sent.next().is_none() {
        return Ok(only);
    }
    let detail = format!("the header `{name}` stands twice");
    Err(Problem::new(Code::DUPLICATE_HEADER, detail))
}

/// Whether the body is JSON as it stands: in no other type, with no parameter, not compressed.
fn is_json(headers: &HeaderMap) -> Result<bool, Problem> {
    let kind = single(headers, &header::CONTENT_TYPE)?;
    Ok(kind == Some(b"application/json") && !headers.contains_key(header::CONTENT_ENCODING))
}

async fn read(request: Request, shared: &Shared) -> Result<Bytes, Problem> {
    let sent = tokio::time::timeout(SENT_WITHIN, Bytes::from_request(request, shared)).await;
    match sent {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(rejection)) => Err(unread(&rejection)),
        Err(_elapsed) => {
            let detail = "the body was not sent in time";
            Err(Problem::new(Code::REQUEST_TIMEOUT, detail))
        }
    }
}

fn unread(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_large()
    } else {
        Problem::new(Code::MALFORMED_BODY, "the body could not be read to its end")
    }
}

/// The answer to a body over the limit.
pub(super) fn too_large() -> Problem {
    let detail = "a body has at most 64 KiB";
    Problem::new(Code::BODY_TOO_LARGE, detail)
}

fn unsupported() -> Problem {
    let detail = "the body is `application/json`, without parameters and not compressed";
    Problem::new(Code::UNSUPPORTED_MEDIA_TYPE, detail)
}
