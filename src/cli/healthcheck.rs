//! `healthcheck`: asks the daemon of this configuration whether it lives, or is ready. For whatever
//! watches over the process and has no client of its own, like a container without a shell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use reqwest::header::HOST;
use reqwest::{Client, Url};

use super::say;
use crate::settings::Settings;

/// A daemon that takes longer to say that it lives is as good as dead.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// What is asked.
#[derive(Debug, Args)]
pub(super) struct Healthcheck {
    /// Asks whether it is ready to pay, and not only whether it lives.
    #[arg(long)]
    ready: bool,
}

pub(super) async fn run(settings: &Settings, asked: &Healthcheck) -> anyhow::Result<()> {
    let address = reached_at(settings.server.listen);
    ensure!(address.port() != 0, "`server.listen` has port 0: the daemon took any that was free");
    let path = if asked.ready { "readyz" } else { "healthz" };
    let http = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(ANSWER_WITHIN)
        .build()?;
    let mut request = http.get(format!("http://{address}/{path}"));
    if settings.server.listen.ip().is_unspecified() {
        // Such a daemon is known by its public name only.
        request = request.header(HOST, public_name(&settings.server.public_url)?);
    }
    let answer = request.send().await.with_context(|| format!("no answer from {address}"))?;
    let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
    if !status.is_success() {
        bail!("{path}: {status} {text}");
    }
    say(text.trim_end())
}

/// Where a daemon that listens there is reached from its own host.
fn reached_at(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

/// Host and port of the public address, as a client would send them.
fn public_name(url: &str) -> anyhow::Result<String> {
    let url = Url::parse(url).context("`server.public_url`")?;
    let host = url.host_str().context("`server.public_url` has no host")?;
    Ok(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_on_all_addresses_is_reached_on_loopback() {
        let reached = |listen: &str| reached_at(listen.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:8490"), "127.0.0.1:8490");
        assert_eq!(reached("[::]:8490"), "[::1]:8490");
        assert_eq!(reached("10.1.2.3:8490"), "10.1.2.3:8490");
    }

    #[test]
    fn a_public_name_is_sent_as_clients_do() {
        for (url, name) in [
            ("https://pay.example.com", "pay.example.com"),
            ("https://pay.example.com:443/", "pay.example.com"),
            ("http://pay.example.com:8490", "pay.example.com:8490"),
            ("http://[::1]:8490", "[::1]:8490"),
        ] {
            assert_eq!(public_name(url).unwrap(), name);
        }
        assert!(public_name("pay").is_err());
    }
}
