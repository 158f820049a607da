//! What agents cannot call: everything that approves, issues or widens anything (API 2).

use axum::http::StatusCode;

use super::caller::Agent;
use super::problem::Problem;

/// The answer to a caller with a mandate. One without is not let in at all.
pub(super) async fn humans_only(_agent: Agent) -> Problem {
    let detail = "this call is for signed-in humans; a mandate does not open it";
    Problem::new(StatusCode::FORBIDDEN, "humans_only", detail)
}
