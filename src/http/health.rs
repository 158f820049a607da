//! Whether the process lives, whether the daemon is ready to pay, and what it counted. For whoever
//! runs it; no credential is needed, and nothing of a company's is told.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::call::{Call, Content, Reply};
use super::code::Code;
use super::problem::Problem;
use super::shapes::one;

/// The form of the text that Prometheus reads.
const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) const LIVE: Call = Call::by_anybody("live", "Whether the process lives")
    .whatever_is_asked()
    .answers(&[Reply::ok("It does.", one::<Health>)]);

pub(super) const READY: Call = Call::by_anybody("ready", "Whether the daemon is ready to pay")
    .whatever_is_asked()
    .answers(&[Reply::ok("It is.", one::<Health>)])
    .refuses(&[Code::NOT_READY]);

pub(super) const METRICS: Call = Call::by_anybody("metrics", "What was counted and measured")
    .whatever_is_asked()
    .answers(&[Reply::new(StatusCode::OK, "As Prometheus reads it.", Content::Metrics)]);

/// How it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    #[schemars(extend("enum" = ["alive", "ready"]))]
    status: &'static str,
}

/// The process lives.
pub(super) async fn live() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Whether everything that a payment needs is there.
pub(super) async fn ready(State(shared): State<Shared>) -> Result<Json<Health>, Problem> {
    let problems = shared.state().readiness.problems().await;
    if problems.is_empty() {
        Ok(Json(Health { status: "ready" }))
    } else {
        Err(Problem::new(Code::NOT_READY, problems.join("; ")))
    }
}

/// What was counted and measured.
pub(super) async fn metrics(State(shared): State<Shared>) -> Response {
    let (metrics, now) = (shared.gateway().metrics(), shared.gateway().now());
    metrics.set_ready(shared.state().readiness.problems().await.is_empty());
    ([(header::CONTENT_TYPE, PROMETHEUS)], metrics.render(now)).into_response()
}
