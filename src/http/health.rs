//! Whether the process lives and whether the daemon is ready to pay. For whoever runs it; no
//! credential is needed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Shared;
use super::problem::Problem;

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
