//! The names of all series, what each means, and the labels that are made of what others sent.

use metrics::{Recorder, Unit};
use metrics_exporter_prometheus::PrometheusRecorder;

macro_rules! series {
    ($($kind:ident $name:ident = $text:literal, $means:literal;)*) => {
        $(pub(super) const $name: &str = $text;)*

        /// Tells the recorder what each series means.
        pub(super) fn describe(recorder: &PrometheusRecorder) {
            $(describe_one(recorder, Kind::$kind, $name, $means);)*
        }
    };
}

series! {
    Gauge BUILD = "countersign_build_info", "1; which version this is.";
    Gauge READY = "countersign_ready", "1 if the daemon is ready to pay, else 0.";
    Counter DECISIONS = "countersign_decisions_total", "Decisions written down.";
    Counter DECISION_REASONS = "countersign_decision_reasons_total",
        "The same by reason; a decision with several counts once for each.";
    Counter REFUSALS = "countersign_refusals_total", "Callers that were not let in.";
    Counter RATE_LIMITED = "countersign_rate_limited_total", "Calls above a limit.";
    Counter HTTP_REQUESTS = "countersign_http_requests_total", "Answers to calls.";
    Histogram HTTP_SECONDS = "countersign_http_request_seconds",
        "From the head of a request to its answer.";
    Gauge HTTP_CONNECTIONS = "countersign_http_connections", "Connections that are open.";
    Counter HTTP_UNREADABLE = "countersign_http_unreadable_total",
        "Connections that ended because what came was no request.";
    Counter CALLS = "countersign_calls_total",
        "Calls to the ERP and to who verifies payees, by how they ended.";
    Histogram CALL_SECONDS = "countersign_call_seconds", "How long those took.";
    Gauge QUEUE = "countersign_store_queue", "Units of work that wait for the store's writer.";
    Histogram GROUP_UNITS = "countersign_store_group_units", "Units of work in one transaction.";
    Histogram GROUP_SECONDS = "countersign_store_group_seconds",
        "How long one transaction took, its commit included.";
    Histogram COMMIT_SECONDS = "countersign_store_commit_seconds", "How long one commit took.";
    Counter GROUPS_FAILED = "countersign_store_groups_failed_total",
        "Transactions that were not written.";
    Gauge STORE_WENT_BACK = "countersign_store_went_back",
        "1 if the database does not hold any more what this daemon wrote or saw there.";
    Counter RECEIPTS = "countersign_ledger_receipts_total", "The number of the newest receipt.";
    Counter RECEIPTS_WRITTEN = "countersign_receipts_written_total",
        "Receipts that this daemon wrote, by kind.";
    Counter CHECKPOINT = "countersign_checkpoint_receipts_total",
        "The number of the newest receipt that the checkpoint file vouches for.";
    Gauge CHECKPOINT_FAILS = "countersign_checkpoint_fails",
        "1 while the checkpoint file cannot be written.";
    Gauge OPERATIONS = "countersign_operations", "Operations in that state now.";
    Gauge OPERATIONS_OLDEST = "countersign_operations_oldest_seconds",
        "How long the oldest of them is in that state; 0 if there is none.";
    Gauge ALARMS = "countersign_alarms_open", "Alarms that nobody closed, by kind.";
    Gauge FREEZES = "countersign_freezes", "Freezes in force, by what is frozen.";
    Gauge SESSIONS = "countersign_sessions", "Sessions of humans in force.";
    Gauge FIGURES_AGE = "countersign_figures_age_seconds",
        "How old the counts of operations, alarms, freezes, sessions and receipts are.";
    Counter POLICY_RELOADS = "countersign_policy_reloads_total", "Policies read anew, by outcome.";
    Gauge POLICY_REFUSED = "countersign_policy_refused",
        "1 if the policies that were read last cannot be used, and the older ones are in force.";
    Gauge POLICY_RULES = "countersign_policy_rules", "Rules in force.";
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

fn describe_one(
    recorder: &PrometheusRecorder,
    kind: Kind,
    name: &'static str,
    means: &'static str,
) {
    let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
    match kind {
        Kind::Counter => recorder.describe_counter(name.into(), unit, means.into()),
        Kind::Gauge => recorder.describe_gauge(name.into(), unit, means.into()),
        Kind::Histogram => recorder.describe_histogram(name.into(), unit, means.into()),
    }
}

/// The class of a status.
pub(super) fn status_class(status: u16) -> &'static str {
    match status {
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500..=599 => "5xx",
        _ => "other",
    }
}
