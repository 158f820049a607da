//! The log: JSON lines on standard error. Never an IBAN, a token or a body.

use tracing_subscriber::EnvFilter;

/// Starts the log at the level that `RUST_LOG` asks for, `info` by default.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let started = tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    if started.is_err() {
        tracing::debug!("the log was started before");
    }
}
