//! The log, on standard error: JSON lines, or text for people where that is a terminal. Never an
//! IBAN, a token, a password or a body.
//!
//! Other libraries are heard only where they warn: what they tell of their inside, at any level that
//! is asked for, may hold what callers and databases sent.

use std::io::IsTerminal as _;
use std::panic::PanicHookInfo;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::settings::LogFormat;

/// How the names of all our own targets begin.
const OURS: &str = "countersign";

/// Starts the log at the level that `RUST_LOG` asks for, `info` by default, and has panics go there
/// too.
pub fn start(format: LogFormat) {
    let terminal = std::io::stderr().is_terminal();
    let as_json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A full disk or a closed pipe behind standard error must not end anything.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = if as_json {
        let json = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
        json.with_filter(filter_fn(may_be_heard)).boxed()
    } else {
        lines.with_ansi(terminal).with_filter(filter_fn(may_be_heard)).boxed()
    };
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_err() {
        tracing::debug!("the log was started before");
    }
    std::panic::set_hook(Box::new(panicked));
}

fn may_be_heard(said: &Metadata<'_>) -> bool {
    said.target().starts_with(OURS) || *said.level() <= Level::WARN
}

/// INVARIANT: a message that was put together while the program ran may hold anything and is not
/// written down; the place says enough.
fn panicked(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(|| "somewhere".to_owned(), ToString::to_string);
    let said = panic.payload().downcast_ref::<&'static str>().unwrap_or(&"(not shown)");
    tracing::error!(panic.at = %place, "panicked at {place}: {said}");
}
