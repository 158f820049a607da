//! Who calls: the bearer of a mandate token. It knows the header; whether the token stands is the
//! gateway's to say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};

use super::Shared;
use super::problem::Problem;
use super::rates::Kind;
use crate::domain::reason::Reason;
use crate::gateway::authn::{AuthnError, Caller};

/// A caller with a mandate that stands, who has not called too often.
#[derive(Debug)]
pub(super) struct Agent(pub(super) Caller);

impl FromRequestParts<Shared> for Agent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let gateway = shared.gateway();
        let outcome = match bearer(&parts.headers) {
            Some(token) => gateway.authenticate(token).await,
            None => Err(AuthnError::Refused(Reason::TokenInvalid)),
        };
        if let Err(AuthnError::Refused(reason)) = &outcome {
            shared.state().refusals.note(address(parts), *reason, gateway.now());
        }
        let caller = outcome?;
        // Withdrawing counts as a read: a caller that proposed too much may still take it back.
        let withdraws = parts.uri.path().ends_with("/cancel");
        let kind = if withdraws || matches!(parts.method, Method::GET | Method::HEAD) {
            Kind::Read
        } else {
            Kind::Proposal
        };
        let counted = shared.0.rates.count(&caller.mandate.id, kind, gateway.now());
        counted.map_err(Problem::rate_limited)?;
        Ok(Self(caller))
    }
}

/// The token of the one header that there may be.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (sent.next(), sent.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Where the connection comes from. What a proxy claims about it is anybody's claim.
fn address(parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(values: &[&'static str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
        }
        assert_eq!(bearer(&headers), expected, "{values:?}");
    }

    #[test]
    fn a_token_comes_in_exactly_one_header() {
        check(&["Bearer abc"], Some("abc"));
        check(&["bearer abc"], Some("abc"));
        check(&[], None);
        check(&["abc"], None);
        check(&["Basic abc"], None);
        check(&["Bearer abc", "Bearer abc"], None);
    }
}
