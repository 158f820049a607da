//! Calls of humans that are not there yet. No agent opens them (API 2).

use axum::http::StatusCode;

use super::caller::HumanCaller;
use super::problem::Problem;

/// The answer to a human; everybody else is refused before it.
pub(super) async fn not_yet(_human: HumanCaller) -> Problem {
    let detail = "this call is not there yet";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", detail)
}
