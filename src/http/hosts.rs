//! Under which names the daemon is served. A page that points its own name at our address (DNS
//! rebinding) sends its own name as `Host` and is refused, also on loopback.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderMap, Uri, header};

/// A `public_url` that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not like `https://pay.example.com` or `http://127.0.0.1:8490`, without a path")]
pub struct BadPublicUrl(String);

/// The values of `Host` and `Origin` that are the daemon's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

/// The names of a daemon that listens there and is known as `public_url`.
///
/// # Errors
/// [`BadPublicUrl`].
pub fn hosts(listen: SocketAddr, public_url: &str) -> Result<Hosts, BadPublicUrl> {
    let mut all = Hosts { hosts: BTreeSet::new(), origins: BTreeSet::new() };
    // "All addresses" is no address that anybody calls.
    if !listen.ip().is_unspecified() {
        all.add("http", &listen.to_string(), 80);
    }
    let bad = || BadPublicUrl(public_url.to_owned());
    let url: Uri = public_url.parse().ok().ok_or_else(bad)?;
    let authority = url.authority().filter(|name| is_plain(name)).ok_or_else(bad)?;
    if !matches!(url.path(), "" | "/") || url.query().is_some() || public_url.contains('#') {
        return Err(bad());
    }
    let scheme = url.scheme().ok_or_else(bad)?;
    let port = if *scheme == Scheme::HTTPS {
        443
    } else if *scheme == Scheme::HTTP {
        80
    } else {
        return Err(bad());
    };
    all.add(scheme.as_str(), authority.as_str(), port);
    Ok(all)
}

impl Hosts {
    /// Adds a name, with and without the port if it is the one that clients leave out.
    fn add(&mut self, scheme: &str, host: &str, default_port: u16) {
        let host = host.to_ascii_lowercase();
        let default = format!(":{default_port}");
        let bare = host.strip_suffix(&default).unwrap_or(&host);
        let has_port = bare.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        self.origins.insert(format!("{scheme}://{bare}"));
        self.hosts.insert(bare.to_owned());
        if !has_port {
            self.hosts.insert(format!("{bare}{default}"));
        }
    }

    /// Whether exactly one `Host` was sent and it, and the name in an absolute address, is ours.
    pub(super) fn are_asked(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut sent = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (sent.next(), sent.next()) else { return false };
        let ours = |name: &str| self.hosts.contains(&name.to_ascii_lowercase());
        host.to_str().is_ok_and(ours) && uri.authority().is_none_or(|name| ours(name.as_str()))
    }

    /// Whether the call comes from no web page, or from one of ours.
    pub(super) fn are_origin(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        match (sent.next(), sent.next()) {
            (None, _) => true,
            (Some(origin), None) => origin
                .to_str()
                .is_ok_and(|origin| self.origins.contains(&origin.to_ascii_lowercase())),
            (Some(_), Some(_)) => false,
        }
    }
}

fn is_plain(name: &Authority) -> bool {
    !name.host().is_empty() && !name.as_str().contains('@')
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn hosts() -> Hosts {
        super::hosts("127.0.0.1:8490".parse().unwrap(), "https://pay.example.com").unwrap()
    }

    fn with(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[track_caller]
    fn asked(values: &[&str], uri: &str, expected: bool) {
        let headers = with(&header::HOST, values);
        assert_eq!(
            hosts().are_asked(&headers, &uri.parse().unwrap()),
            expected,
            "{values:?} {uri}"
        );
    }

    #[test]
    fn only_our_own_names_are_served() {
        asked(&["127.0.0.1:8490"], "/healthz", true);
        asked(&["PAY.example.com"], "/healthz", true);
        asked(&["pay.example.com:443"], "/healthz", true);
        asked(&["pay.example.com"], "http://127.0.0.1:8490/healthz", true);
        asked(&["127.0.0.1"], "/healthz", false);
        asked(&["localhost:8490"], "/healthz", false);
        asked(&["0.0.0.0:8490"], "/healthz", false);
        asked(&["pay.example.com:80"], "/healthz", false);
        asked(&["pay.example.com."], "/healthz", false);
        asked(&["evil.test"], "/healthz", false);
        asked(&[""], "/healthz", false);
        asked(&[], "/healthz", false);
        asked(&["pay.example.com", "pay.example.com"], "/healthz", false);
        asked(&["pay.example.com"], "http://evil.test/healthz", false);
        asked(&["pay.example.com"], "http://a@pay.example.com/healthz", false);
    }

    #[test]
    fn all_addresses_is_no_name() {
        let hosts = super::hosts("0.0.0.0:80".parse().unwrap(), "http://[::1]:8490/").unwrap();
        let uri = Uri::from_static("/");
        assert!(!hosts.are_asked(&with(&header::HOST, &["0.0.0.0"]), &uri));
        assert!(hosts.are_asked(&with(&header::HOST, &["[::1]:8490"]), &uri));
        assert!(!hosts.are_asked(&with(&header::HOST, &["[::1]"]), &uri));
    }

    #[test]
    fn a_page_of_somebody_else_is_no_origin() {
        let from = |values: &[&str]| hosts().are_origin(&with(&header::ORIGIN, values));
        assert!(from(&[]));
        assert!(from(&["https://pay.example.com"]));
        assert!(from(&["http://127.0.0.1:8490"]));
        for foreign in ["null", "http://pay.example.com", "https://evil.test", ""] {
            assert!(!from(&[foreign]), "`{foreign}`");
        }
        assert!(!from(&["https://pay.example.com", "https://pay.example.com"]));
    }

    #[test]
    fn a_public_url_is_scheme_and_host() {
        for bad in [
            "",
            "pay.example.com",
            "ftp://pay.example.com",
            "https://",
            "https://a:b@pay.example.com",
            "https://pay.example.com/x",
            "https://pay.example.com?x=1",
            "https://pay.example.com/#x",
        ] {
            assert!(super::hosts("127.0.0.1:1".parse().unwrap(), bad).is_err(), "`{bad}`");
        }
    }
}
