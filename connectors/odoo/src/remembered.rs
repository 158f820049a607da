//! What costs a call of the ERP and holds for many: asked for once, however many want it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::rpc::CallError;

/// A value that is asked for when it is wanted, and remembered.
///
/// Whoever wants it while it is being asked for waits for that answer and takes it, a failure too.
/// One asking after the other, each until its own deadline, would queue all work up behind a
/// server that does not answer.
#[derive(Debug)]
pub(crate) struct Remembered<T> {
    failures: AtomicU64,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    last_failure: Option<CallError>,
}

/// An answer, and whether it holds for the next that wants it.
pub(crate) enum Asked<T> {
    /// It holds until it is forgotten.
    Holds(T),
    /// It was so at this moment.
    JustNow(T),
}

impl<T: Clone> Remembered<T> {
    pub(crate) fn nothing() -> Self {
        let state = State { value: None, last_failure: None };
        Self { failures: AtomicU64::new(0), state: Mutex::new(state) }
    }

    pub(crate) async fn get(
        &self,
        ask: impl Future<Output = Result<Asked<T>, CallError>>,
    ) -> Result<T, CallError> {
        let seen = self.failures.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if let Some(value) = &state.value {
            return Ok(value.clone());
        }
        if self.failures.load(Ordering::Acquire) != seen
            && let Some(failure) = &state.last_failure
        {
            return Err(failure.clone());
        }
        match ask.await {
            Ok(Asked::Holds(value)) => {
                state.value = Some(value.clone());
                Ok(value)
            }
            Ok(Asked::JustNow(value)) => Ok(value),
            Err(failure) => {
                state.last_failure = Some(failure.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(failure)
            }
        }
    }

    pub(crate) async fn forget(&self) {
        self.state.lock().await.value.take();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn failure() -> CallError {
        CallError::NotSent("no".to_owned())
    }

    #[tokio::test]
    async fn those_who_wait_take_the_one_answer() {
        for answer in [Ok(7), Err(failure())] {
            let (known, asked) = (Remembered::nothing(), AtomicU32::new(0));
            let get = || {
                known.get(async {
                    asked.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    answer.clone().map(Asked::Holds)
                })
            };
            let (first, second, third) = tokio::join!(get(), get(), get());
            assert_eq!([first, second, third], [(); 3].map(|()| answer.clone()));
            assert_eq!(asked.into_inner(), 1);
        }
    }

    #[tokio::test]
    async fn a_failure_is_no_answer_to_who_comes_later() {
        let known = Remembered::nothing();
        assert_eq!(known.get(async { Err(failure()) }).await, Err(failure()));
        assert_eq!(known.get(async { Ok(Asked::JustNow(1)) }).await, Ok(1));
        assert_eq!(known.get(async { Ok(Asked::Holds(2)) }).await, Ok(2));
        assert_eq!(known.get(async { Ok(Asked::Holds(3)) }).await, Ok(2));
        known.forget().await;
        assert_eq!(known.get(async { Ok(Asked::Holds(4)) }).await, Ok(4));
    }
}
