//! One POST, one answer. It knows no XML-RPC and resends nothing; of every failure it knows whether
//! a byte of the request can have left this host.

use std::error::Error as _;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, StatusCode, Url};

use crate::options::OptionsError;

/// The longest that a connection may take to stand, within the deadline of the call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer that is read. The largest page asked for stays far below.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection came to stand, so the request surely stayed here.
    NotSent(String),
    /// The request may have arrived.
    Lost(String),
}

/// A server with the services of its external API.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    client: Client,
    common: Url,
    object: Url,
}

/// Which service of the external API is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    /// Credentials.
    Common,
    /// Records.
    Object,
}

impl Endpoint {
    /// Takes the address of a server.
    pub(crate) fn new(
        url: &str,
        allow_plaintext: bool,
        deadline: Duration,
    ) -> Result<Self, OptionsError> {
        let base = base_url(url, allow_plaintext)?;
        let service = |name: &str| {
            base.join(name).map_err(|_unjoined| OptionsError::Url { url: url.to_owned() })
        };
        let client = Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A connection that was idle may be closed by the other side at the moment it is used,
            // and then nobody knows whether the request arrived.
            .pool_max_idle_per_host(0)
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT.min(deadline))
            .timeout(deadline)
            .build()
            .map_err(|error| OptionsError::Client { reason: chain(error) })?;
        let (common, object) = (service("xmlrpc/2/common")?, service("xmlrpc/2/object")?);
        Ok(Self { client, common, object })
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn post(&self, service: Service, body: String) -> Result<Vec<u8>, Failure> {
        let url = match service {
            Service::Common => self.common.clone(),
            Service::Object => self.object.clone(),
        };
        let request = self.client.post(url).header(CONTENT_TYPE, "text/xml; charset=utf-8");
        let mut response = request.body(body).send().await.map_err(|error| {
            // Only a connection that never stood proves that nothing was sent.
            if error.is_connect() {
                Failure::NotSent(chain(error))
            } else {
                Failure::Lost(chain(error))
            }
        })?;
        if response.status() != StatusCode::OK {
            return Err(Failure::Lost(format!("HTTP status {}", response.status().as_u16())));
        }
        if !is_xml(response.headers()) {
            return Err(Failure::Lost("an answer that is not text/xml".to_owned()));
        }
        let mut whole = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| Failure::Lost(chain(error)))?
        {
            if whole.len().saturating_add(chunk.len()) > BODY_BYTES_MAX {
                return Err(Failure::Lost(format!("an answer over {BODY_BYTES_MAX} bytes")));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }
}

fn base_url(text: &str, allow_plaintext: bool) -> Result<Url, OptionsError> {
    let unusable = || OptionsError::Url { url: text.to_owned() };
    let mut url = Url::parse(text).map_err(|_no_url| unusable())?;
    let bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(unusable)?;
    match url.scheme() {
        "https" if bare => {}
        "http" if bare => {
            if !allow_plaintext && !is_loopback(host) {
                return Err(OptionsError::Plaintext { url: text.to_owned() });
            }
        }
        _ => return Err(unusable()),
    }
    // Without it the last part of the path would be replaced, not continued.
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_xml(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/xml") || kind.eq_ignore_ascii_case("application/xml")
}

/// The whole chain of causes in one line; the address is known from the configuration.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        // Writing to a string cannot fail.
        if write!(text, ": {next}").is_err() {
            break;
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, allow_plaintext: bool, expected: Option<&str>) {
        let base = base_url(url, allow_plaintext);
        let joined = base.map(|base| base.join("xmlrpc/2/object").unwrap().to_string());
        assert_eq!(joined.ok().as_deref(), expected, "`{url}`");
    }

    #[test]
    fn passwords_travel_only_under_tls_or_within_this_host() {
        check("https://odoo.test", false, Some("https://odoo.test/xmlrpc/2/object"));
        check("https://odoo.test/erp", false, Some("https://odoo.test/erp/xmlrpc/2/object"));
        check("http://127.0.0.1:8069", false, Some("http://127.0.0.1:8069/xmlrpc/2/object"));
        check("http://localhost:8069/", false, Some("http://localhost:8069/xmlrpc/2/object"));
        check("http://[::1]:8069", false, Some("http://[::1]:8069/xmlrpc/2/object"));
        check("http://odoo:8069", true, Some("http://odoo:8069/xmlrpc/2/object"));
        for wrong in [
            "http://odoo:8069",
            "http://127.0.0.1.odoo.test",
            "http://localhost.odoo.test",
            "http://192.168.0.1",
            "ftp://127.0.0.1",
            "https://user:secret@odoo.test",
            "https://odoo.test/?a=b",
            "https://odoo.test/#a",
            "odoo.test",
            "",
        ] {
            check(wrong, false, None);
        }
    }
}
