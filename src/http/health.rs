//! Whether the process lives, whether the daemon is ready to pay, and what it counted. For whoever
//! runs it; no credential is needed, and nothing of a company's is told.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Shared;
use super::problem::Problem;

/// The form of the text that Prometheus reads.
const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The process lives.
pub(super) async fn live() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

/// Whether everything that a payment needs is there.
pub(super) async fn ready(State(shared): State<Shared>) -> Result<Json<Value>, Problem> {
    let problems = shared.state().readiness.problems().await;
    if problems.is_empty() {
        Ok(Json(json!({ "status": "ready" })))
    } else {
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", problems.join("; ")))
    }
}

/// What was counted and measured.
pub(super) async fn metrics(State(shared): State<Shared>) -> Response {
    let (metrics, now) = (shared.gateway().metrics(), shared.gateway().now());
    metrics.set_ready(shared.state().readiness.problems().await.is_empty());
    ([(header::CONTENT_TYPE, PROMETHEUS)], metrics.render(now)).into_response()
}
