//! What the daemon counts and measures, as text for Prometheus.
//!
//! Anybody who can reach the daemon may read it, so it names no company, vendor, account, person,
//! agent, operation or amount: only closed lists of ours, ids of policies and templates of routes
//! become labels. Whatever callers send, the number of series stays bounded.
//!
//! It knows neither HTTP nor the store: whoever does something tells it here.

mod figures;
mod series;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign_erp_source::{Call, Ended, Observer, Timestamp};
use metrics::{Counter, Gauge, Histogram, IntoF64, Key, Label, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::domain::decision::{Effect, Stage};
use crate::domain::reason::Reason;

pub use figures::{Figures, Live};

/// Where a series comes from; the recorder wants to be told and does not use it.
const SOURCE: Metadata<'static> = Metadata::new("countersign", metrics::Level::INFO, None);
/// Seconds at which times are told apart: from a statement of the store to the longest call.
const SECONDS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0];
/// Units of work in one group at which groups are told apart.
const UNITS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// What was counted since the process began; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    queue: Gauge,
    group_units: Histogram,
    group_seconds: Histogram,
    commit_seconds: Histogram,
    groups_failed: Counter,
    connections: Gauge,
    unreadable: Counter,
    figures: Mutex<Option<(Figures, Instant)>>,
    /// Every rule that was in force since the process began.
    rules: Mutex<BTreeSet<String>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let units = metrics_exporter_prometheus::Matcher::Full(series::GROUP_UNITS.to_owned());
        let builder = PrometheusBuilder::new();
        // Refused are only lists of buckets that are empty, and without them there are summaries.
        let builder = builder.set_buckets(&SECONDS).unwrap_or_default();
        let builder = builder.set_buckets_for_metric(units, &UNITS).unwrap_or_default();
        let recorder = builder.build_recorder();
        series::describe(&recorder);
        let handle = recorder.handle();
        let counter = |name| recorder.register_counter(&Key::from_static_name(name), &SOURCE);
        let gauge = |name| recorder.register_gauge(&Key::from_static_name(name), &SOURCE);
        let histogram = |name| recorder.register_histogram(&Key::from_static_name(name), &SOURCE);
        let inner = Inner {
            queue: gauge(series::QUEUE),
            group_units: histogram(series::GROUP_UNITS),
            group_seconds: histogram(series::GROUP_SECONDS),
            commit_seconds: histogram(series::COMMIT_SECONDS),
            groups_failed: counter(series::GROUPS_FAILED),
            connections: gauge(series::HTTP_CONNECTIONS),
            unreadable: counter(series::HTTP_UNREADABLE),
            figures: Mutex::default(),
            rules: Mutex::default(),
            handle,
            recorder,
        };
        let metrics = Self(Arc::new(inner));
        let version = Label::from_static_parts("version", env!("CARGO_PKG_VERSION"));
        metrics.gauge(series::BUILD, vec![version]).set(1);
        metrics.set_ready(false);
        metrics.gauge(series::STORE_WENT_BACK, Vec::new()).set(0);
        metrics
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A connection that is counted while this lives.
#[derive(Debug)]
pub struct Connected(Metrics);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.0.connections.decrement(1);
    }
}

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Where.
    pub stage: Stage,
    /// What it does.
    pub effect: Effect,
    /// Codes of the gateway's and ids of policies; any other is counted as `other`.
    pub reasons: Vec<String>,
}

/// How the policies were read anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// Another set took over.
    Changed,
    /// They were those in force.
    Unchanged,
    /// They cannot be used; those in force stay.
    Refused,
}

impl Reload {
    fn code(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        }
    }
}

/// How a call over HTTP went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<'a> {
    /// The method; one word for all that nobody uses.
    pub method: &'static str,
    /// The template of the route; none where there is no such address.
    pub route: Option<&'a str>,
    /// The status of the answer.
    pub status: u16,
    /// From the head of the request to the answer.
    pub took: Duration,
}

impl Metrics {
    /// A decision was written down.
    pub fn decided(&self, decided: &Decided) {
        let Decided { stage, effect, reasons } = decided;
        let labels = || {
            vec![
                Label::from_static_parts("stage", stage.code()),
                Label::from_static_parts("effect", effect.code()),
            ]
        };
        self.counter(series::DECISIONS, labels()).increment(1);
        for reason in reasons {
            let mut labels = labels();
            labels.push(Label::new("reason", self.known(reason)));
            self.counter(series::DECISION_REASONS, labels).increment(1);
        }
    }

    /// A receipt of that kind was written down.
    pub fn receipt(&self, kind: &'static str) {
        let kind = Label::from_static_parts("kind", kind);
        self.counter(series::RECEIPTS_WRITTEN, vec![kind]).increment(1);
    }

    /// INVARIANT: a reason makes a series only if it is a code of ours or the id of a policy that
    /// was in force, so that no row of the store and no caller makes new ones.
    fn known(&self, reason: &str) -> String {
        let ours = Reason::ALL.iter().any(|ours| ours.code() == reason);
        let rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if ours || rules.contains(reason) { reason.to_owned() } else { "other".to_owned() }
    }

    /// A caller was not let in.
    pub fn refused(&self, code: &'static str) {
        let reason = Label::from_static_parts("reason", code);
        self.counter(series::REFUSALS, vec![reason]).increment(1);
    }

    /// A caller was told to come later.
    pub fn rate_limited(&self, kind: &'static str) {
        let kind = Label::from_static_parts("kind", kind);
        self.counter(series::RATE_LIMITED, vec![kind]).increment(1);
    }

    /// A call over HTTP was answered.
    pub fn answered(&self, answered: Answered<'_>) {
        let route = answered.route.unwrap_or("none").to_owned();
        let labels = vec![
            Label::from_static_parts("method", answered.method),
            Label::new("route", route.clone()),
            Label::from_static_parts("status", series::status_class(answered.status)),
        ];
        self.counter(series::HTTP_REQUESTS, labels).increment(1);
        let route = vec![Label::new("route", route)];
        self.histogram(series::HTTP_SECONDS, route).record(answered.took);
    }

    /// A connection was taken.
    #[must_use]
    pub fn connected(&self) -> Connected {
        self.0.connections.increment(1);
        Connected(self.clone())
    }

    /// What came over a connection was no request.
    pub fn unreadable(&self) {
        self.0.unreadable.increment(1);
    }

    /// A unit of work waits for the store's writer.
    pub fn queued(&self) {
        self.0.queue.increment(1);
    }

    /// A unit of work does not wait any more.
    pub fn unqueued(&self) {
        self.0.queue.decrement(1);
    }

    /// A group of that many units of work was written, or not, in that time.
    pub fn group(&self, units: usize, written: bool, took: Duration) {
        self.0.group_units.record(narrow(units));
        self.0.group_seconds.record(took);
        if !written {
            self.0.groups_failed.increment(1);
        }
    }

    /// A commit took that long.
    pub fn committed(&self, took: Duration) {
        self.0.commit_seconds.record(took);
    }

    /// The database does not hold any more what was written there.
    pub fn store_went_back(&self) {
        self.gauge(series::STORE_WENT_BACK, Vec::new()).set(1);
    }

    /// The chain's head of that receipt is in the checkpoint file.
    pub fn checkpoint_kept(&self, seq: i64) {
        self.counter(series::CHECKPOINT, Vec::new()).absolute(seq.unsigned_abs());
        self.gauge(series::CHECKPOINT_FAILS, Vec::new()).set(0);
    }

    /// The checkpoint file could not be written.
    pub fn checkpoint_failed(&self) {
        self.gauge(series::CHECKPOINT_FAILS, Vec::new()).set(1);
    }

    /// The policies were read anew.
    pub fn policies_reloaded(&self, outcome: Reload) {
        let label = Label::from_static_parts("outcome", outcome.code());
        self.counter(series::POLICY_RELOADS, vec![label]).increment(1);
        let refused = u8::from(outcome == Reload::Refused);
        self.gauge(series::POLICY_REFUSED, Vec::new()).set(refused);
    }

    /// These rules are in force.
    pub fn policies_in_force<'a>(&self, rules: impl IntoIterator<Item = &'a str>) {
        let rules: Vec<&str> = rules.into_iter().collect();
        self.gauge(series::POLICY_RULES, Vec::new()).set(narrow(rules.len()));
        let mut known = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(rules.into_iter().map(str::to_owned));
    }

    /// Whether the daemon is ready to pay.
    pub fn set_ready(&self, ready: bool) {
        self.gauge(series::READY, Vec::new()).set(u8::from(ready));
    }

    /// The newest figures of the store.
    pub fn set_figures(&self, figures: Figures) {
        let mut kept = self.0.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = figures.after(kept.as_ref().map(|(before, _)| before));
        *kept = Some((figures, Instant::now()));
        drop(kept);
        // Times that nobody asks for would pile up.
        self.0.handle.run_upkeep();
    }

    /// Everything, as Prometheus reads it. `now` is what ages are counted to.
    pub fn render(&self, now: Timestamp) -> String {
        if let Some((figures, read)) =
            &*self.0.figures.lock().unwrap_or_else(PoisonError::into_inner)
        {
            figures.show(self, now);
            self.gauge(series::FIGURES_AGE, Vec::new()).set(read.elapsed());
        }
        self.0.handle.render()
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.0.recorder.register_counter(&Key::from_parts(name, labels), &SOURCE)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.0.recorder.register_gauge(&Key::from_parts(name, labels), &SOURCE)
    }

    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        self.0.recorder.register_histogram(&Key::from_parts(name, labels), &SOURCE)
    }
}

impl Observer for Metrics {
    fn ended(&self, call: Call, ended: Ended, took: Duration) {
        let call = Label::from_static_parts("call", call.code());
        let outcome = Label::from_static_parts("outcome", ended.code());
        self.counter(series::CALLS, vec![call.clone(), outcome]).increment(1);
        self.histogram(series::CALL_SECONDS, vec![call]).record(took);
    }
}

/// A count as a number that a gauge takes.
fn narrow(count: usize) -> impl IntoF64 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        metrics.render(Timestamp::from_millis(0))
    }

    #[track_caller]
    fn holds(metrics: &Metrics, line: &str) {
        let text = text(metrics);
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }

    fn denied(reasons: &[&str]) -> Decided {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        Decided { stage: Stage::Policy, effect: Effect::Deny, reasons }
    }

    #[test]
    fn what_is_told_is_counted() {
        let metrics = Metrics::default();
        holds(&metrics, "countersign_ready 0");
        metrics.set_ready(true);
        holds(&metrics, "countersign_ready 1");
        metrics.policies_in_force(["a-rule", "no-permit"]);
        metrics.decided(&denied(["a-rule", "floor_own_account"].as_slice()));
        metrics.decided(&denied(["a-rule"].as_slice()));
        holds(&metrics, "countersign_decisions_total{stage=\"policy\",effect=\"deny\"} 2");
        let of_rule = "countersign_decision_reasons_total\
                       {stage=\"policy\",effect=\"deny\",reason=\"a-rule\"} 2";
        holds(&metrics, of_rule);
        metrics.refused("token_invalid");
        holds(&metrics, "countersign_refusals_total{reason=\"token_invalid\"} 1");
        metrics.ended(Call::LookUp, Ended::Unavailable, Duration::from_millis(3));
        let ended = "countersign_calls_total{call=\"look_up\",outcome=\"unavailable\"} 1";
        holds(&metrics, ended);
        holds(&metrics, "countersign_call_seconds_bucket{call=\"look_up\",le=\"0.0025\"} 0");
        holds(&metrics, "countersign_call_seconds_bucket{call=\"look_up\",le=\"0.005\"} 1");
        metrics.group(3, true, Duration::from_millis(2));
        metrics.group(1, false, Duration::from_millis(2));
        holds(&metrics, "countersign_store_group_units_bucket{le=\"2\"} 1");
        holds(&metrics, "countersign_store_group_units_bucket{le=\"4\"} 2");
        holds(&metrics, "countersign_store_groups_failed_total 1");
        let (first, second) = (metrics.connected(), metrics.connected());
        holds(&metrics, "countersign_http_connections 2");
        drop((first, second));
        holds(&metrics, "countersign_http_connections 0");
    }

    #[test]
    fn a_policy_that_was_refused_stays_seen_until_one_is_taken() {
        let metrics = Metrics::default();
        for (outcome, refused) in [
            (Reload::Refused, 1),
            (Reload::Unchanged, 0),
            (Reload::Refused, 1),
            (Reload::Changed, 0),
        ] {
            metrics.policies_reloaded(outcome);
            holds(&metrics, &format!("countersign_policy_refused {refused}"));
        }
        holds(&metrics, "countersign_policy_reloads_total{outcome=\"refused\"} 2");
    }

    #[test]
    fn what_callers_write_makes_no_series() {
        let metrics = Metrics::default();
        let answered = |status| {
            let took = Duration::from_millis(1);
            metrics.answered(Answered { method: "other", route: None, status, took });
        };
        answered(404);
        let before = text(&metrics).lines().count();
        for number in 0..1000_u16 {
            answered(400 + number % 100);
        }
        assert_eq!(text(&metrics).lines().count(), before);
        metrics.decided(&denied(["written-by-hand"].as_slice()));
        let before = text(&metrics).lines().count();
        for number in 0..1000 {
            metrics.decided(&denied([format!("rule-{number}").as_str()].as_slice()));
        }
        assert_eq!(text(&metrics).lines().count(), before);
        let line = "countersign_http_requests_total\
                    {method=\"other\",route=\"none\",status=\"4xx\"} 1001";
        holds(&metrics, line);
    }
}
