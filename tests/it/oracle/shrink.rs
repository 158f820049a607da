//! Steps left out of a plan that fails, as long as it still fails.

use std::time::{Duration, Instant};

use super::Plan;
use super::play::Failure;
use super::stage::Template;
use super::steps::Step;

/// How long is tried.
const PATIENCE: Duration = Duration::from_mins(1);

/// The fewest steps that were found, and how they fail.
pub(super) fn shrunk(
    template: &Template,
    plan: &Plan,
    mut failure: Failure,
) -> (Vec<Step>, Failure) {
    let began = Instant::now();
    let mut steps = plan.steps[..=failure.step].to_vec();
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut from = 0;
        let mut fewer = false;
        while from < steps.len() {
            if began.elapsed() > PATIENCE {
                return (steps, failure);
            }
            let to = steps.len().min(from + size);
            let rest = [&steps[..from], &steps[to..]].concat();
            match plan.play(template, &rest) {
                Err(again) if !rest.is_empty() => {
                    steps = rest[..=again.step.min(rest.len() - 1)].to_vec();
                    failure = again;
                    fewer = true;
                }
                _ => from = to,
            }
        }
        if !fewer || size > 1 {
            size /= 2;
        }
    }
    (steps, failure)
}
