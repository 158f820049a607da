//! Calls of humans that are not there yet. No agent opens them (API 2).

use super::call::Call;
use super::caller::HumanCaller;
use super::code::Code;
use super::problem::Problem;

/// The description of one.
pub(super) const fn later(id: &'static str) -> Call {
    Call::by_humans(id, "Not there yet").whatever_is_asked().refuses(&[Code::NOT_IMPLEMENTED])
}

/// The answer to a human; everybody else is refused before it.
pub(super) async fn not_yet(_human: HumanCaller) -> Problem {
    let detail = "this call is not there yet";
    Problem::new(Code::NOT_IMPLEMENTED, detail)
}
