//! What is around every call, known route or not: its id, whether it was meant for us, a time
//! limit, headers that keep browsers from doing anything with the answer, one line in the log.

use std::any::Any;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use countersign_erp_source::Iban;
use tracing::Instrument as _;

use super::code::Code;
use super::problem::{Problem, Uncounted};
use super::{Shared, body, caller};
use crate::metrics::Answered;

/// How long a call may take, whatever it waits for. Beyond what an ERP is given for one payment.
pub(super) const CALL_LIMIT: Duration = Duration::from_mins(3);
/// The address that says that the process lives, whatever else does not work.
const LIVE: &str = "/healthz";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// On every answer: nothing of it is kept, framed, run or guessed at.
const PROTECTION: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// Takes a call in, or not, and sends its answer out.
pub(super) async fn around(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id(&shared, request.headers());
    let method = method_name(request.method());
    // The route, not the address: ids and parameters of callers stay out of the log.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let address = caller::address(request.extensions());
    // What is said while the call is worked on has its id.
    let span = tracing::info_span!("call", request.id = id.to_str().unwrap_or_default());
    let answered = answer(&shared, request, next).instrument(span);
    let mut response = match tokio::time::timeout(CALL_LIMIT, answered).await {
        Ok(response) => response,
        Err(_elapsed) => timed_out().into_response(),
    };
    count_refusal(&shared, &response, address);
    let headers = response.headers_mut();
    for (name, value) in PROTECTION {
        headers.insert(name, value);
    }
    let status = response.status().as_u16();
    let (route, took) = (route.as_ref().map(MatchedPath::as_str), began.elapsed());
    let answered = Answered { method, route, status, took };
    shared.gateway().metrics().answered(answered);
    let route = route.unwrap_or("-");
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        request.id = id.to_str().unwrap_or_default(),
        http.method = method,
        http.route = route,
        http.status = status,
        duration_ms,
        "{method} {route} {status}"
    );
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Counts what was refused without an operation. What went wrong inside is no refusal.
fn count_refusal(shared: &Shared, response: &Response, address: IpAddr) {
    if response.status().is_client_error()
        && let Some(Uncounted(code)) = response.extensions().get()
    {
        shared.state().refusals.count(address, code, shared.gateway().now());
    }
}

/// Whether the call is looked at, decided from its head alone: the body is not read before.
fn admit(shared: &Shared, request: &Request) -> Result<(), Problem> {
    let (hosts, headers) = (&shared.state().hosts, request.headers());
    if !hosts.are_asked(headers, request.uri()) {
        let detail = "the daemon is served under the hosts of `listen` and `public_url` only";
        return Err(Problem::new(Code::HOST_NOT_ALLOWED, detail));
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !reads && !hosts.are_origin(headers) {
        let detail = "pages of other origins may not call this";
        return Err(Problem::new(Code::ORIGIN_NOT_ALLOWED, detail));
    }
    if announced(headers).is_some_and(|bytes| bytes > body::BYTES_MAX) {
        return Err(body::too_large());
    }
    Ok(())
}

/// Passes the call on, at the present time, if it is looked at.
async fn answer(shared: &Shared, request: Request, next: Next) -> Response {
    if let Err(problem) = admit(shared, &request) {
        return problem.into_response();
    }
    if request.uri().path() != LIVE {
        (shared.state().sync)().await;
    }
    next.run(request).await
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The method, where it is one of those that somebody uses; what callers make up is not repeated.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The caller's id for the call, if it is a plain one; else a new one.
fn request_id(shared: &Shared, headers: &HeaderMap) -> HeaderValue {
    let mut sent = headers.get_all(REQUEST_ID).iter();
    if let (Some(only), None) = (sent.next(), sent.next())
        && is_plain(only.as_bytes())
    {
        return only.clone();
    }
    let number = shared.gateway().ordered_id().unwrap_or_default();
    let id = HeaderValue::from_str(&format!("req_{}", number.simple()));
    id.unwrap_or(HeaderValue::from_static("req_none"))
}

fn is_plain(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    // It is logged, so a whole account number is none.
    let is_iban = std::str::from_utf8(id).is_ok_and(|text| Iban::parse(text).is_ok());
    (1..=64).contains(&id.len()) && id.iter().all(plain) && !is_iban
}

fn timed_out() -> Problem {
    let detail = "the call took too long; what it began goes on: ask again with the same key";
    Problem::new(Code::TIMED_OUT, detail)
}

/// The answer where a handler panicked. What it said is the panic hook's to log.
pub(super) fn panicked(_said: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn an_id_of_a_caller_is_plain_and_short() {
        assert!(is_plain(b"A-z.0_9:"));
        assert!(is_plain(&[b'a'; 64]));
        for bad in [
            &b""[..],
            b"a b",
            b"a/b",
            b"a\"",
            "é".as_bytes(),
            &[b'a'; 65],
            b"FR7630006000011234567890189",
        ] {
            assert!(!is_plain(bad), "{bad:?}");
        }
    }
}
