//! Who calls: the bearer of a mandate token, or of a session's. It knows the header; whether the
//! token stands is the gateway's to say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, header};

use super::Shared;
use super::code::Code;
use super::problem::Problem;
use super::rates::{Holder, Kind};
use crate::domain::reason::Reason;
use crate::gateway::authn::{AuthnError, Caller};
use crate::gateway::sessions::{Human, is_session_token};

/// A caller with a mandate that stands, who has not called too often.
#[derive(Debug)]
pub(super) struct Agent(pub(super) Caller);

/// A human who is signed in and has not called too often.
#[derive(Debug)]
pub(super) struct HumanCaller(pub(super) Human);

/// Either of the two.
#[derive(Debug)]
pub(super) enum Anyone {
    Agent(Caller),
    Human(Human),
}

/// Somebody who is not yet anybody: for signing in. No agent signs in (API 2).
#[derive(Debug)]
pub(super) struct Stranger {
    /// Where he calls from.
    pub(super) address: IpAddr,
}

impl FromRequestParts<Shared> for Anyone {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let gateway = shared.gateway();
        let outcome = match bearer(&parts.headers) {
            Some(token) if is_session_token(token) => {
                gateway.authenticate_human(token).await.map(Self::Human)
            }
            Some(token) => gateway.authenticate(token).await.map(Self::Agent),
            None => Err(AuthnError::Refused(Reason::TokenInvalid)),
        };
        if let Err(AuthnError::Refused(reason)) = &outcome {
            shared.state().refusals.note(address(&parts.extensions), *reason, gateway.now());
        }
        let caller = outcome?;
        // Withdrawing counts as a read: a caller that proposed too much may still take it back.
        let withdraws = parts.uri.path().ends_with("/cancel");
        let kind = if withdraws || matches!(parts.method, Method::GET | Method::HEAD) {
            Kind::Read
        } else {
            Kind::Proposal
        };
        caller.count(kind, shared)?;
        Ok(caller)
    }
}

impl Anyone {
    /// Whose calls these are, for counting.
    pub(super) fn holder(&self) -> Holder {
        match self {
            Self::Agent(caller) => Holder::Mandate(caller.mandate.id.clone()),
            Self::Human(human) => Holder::Session(human.session().clone()),
        }
    }

    fn count(&self, kind: Kind, shared: &Shared) -> Result<(), Problem> {
        let counted = shared.0.rates.count(self.holder(), kind, shared.gateway().now());
        counted.map_err(|retry_after_secs| {
            shared.gateway().metrics().rate_limited(kind.code());
            Problem::rate_limited(retry_after_secs)
        })
    }
}

impl FromRequestParts<Shared> for Agent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        match Anyone::from_request_parts(parts, shared).await? {
            Anyone::Agent(caller) => Ok(Self(caller)),
            Anyone::Human(_) => {
                let detail = "this call is for callers with a mandate; a session does not open it";
                Err(Problem::new(Code::AGENTS_ONLY, detail))
            }
        }
    }
}

impl FromRequestParts<Shared> for HumanCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        match Anyone::from_request_parts(parts, shared).await? {
            Anyone::Human(human) => Ok(Self(human)),
            Anyone::Agent(_) => Err(humans_only()),
        }
    }
}

impl FromRequestParts<Shared> for Stranger {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        // A credential that stands no more keeps nobody from signing in.
        if let Some(token) = bearer(&parts.headers).filter(|token| !is_session_token(token))
            && let Ok(caller) = shared.gateway().authenticate(token).await
        {
            Anyone::Agent(caller).count(Kind::Proposal, shared)?;
            return Err(humans_only());
        }
        Ok(Self { address: address(&parts.extensions) })
    }
}

fn humans_only() -> Problem {
    let detail = "this call is for signed-in humans; a mandate does not open it";
    Problem::new(Code::HUMANS_ONLY, detail)
}

/// The token of the one header that there may be.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (sent.next(), sent.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Where the connection comes from. What a proxy claims about it is anybody's claim.
pub(super) fn address(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
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
