//! Whose turn it is with the settle worker. However many operations cannot be settled, each of the
//! others is reached: a round begins where the last one ended, and no queue waits for another one.
//!
//! All of it is in the memory of one process and decides nothing about money: a daemon that starts
//! begins at the beginning, and several daemons each go round by themselves.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use countersign_erp_source::Timestamp;

use super::settling::ROUND_MAX;
use super::{Gateway, Stored};
use crate::domain::names::OperationId;
use crate::domain::operation::Operation;
use crate::store::Conn;
use crate::store::operations::{self, Place, Queue};

/// An operation is looked at again after half the time that it has been open, within these bounds,
/// so that an ERP in trouble is not kept busy with it.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(250);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(15);
/// When an operation was looked at is forgotten where its turn did not come for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(10);

/// The queues, each with where it is.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    lanes: [Lane; 3],
    /// The lane that the next round takes the first operation from: where places are few, the same
    /// lane would have them all.
    first: usize,
}

/// One queue. A lap takes as many operations as stood there when it began, so that it ends even
/// where more come in than are taken up.
#[derive(Debug, Clone)]
struct Lane {
    queue: Queue,
    after: Place,
    left: i64,
}

impl Default for Turns {
    fn default() -> Self {
        let lane = |queue| Lane { queue, after: Place::FIRST, left: 0 };
        Self { lanes: [Queue::Executing, Queue::Unknown, Queue::Voted].map(lane), first: 0 }
    }
}

impl Turns {
    /// The operation had its turn, whatever came of it.
    pub(super) fn passed(&mut self, lane: usize, operation: &Operation) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.after = Place::of(operation);
            lane.left = lane.left.saturating_sub(1);
        }
    }
}

impl Lane {
    async fn next(&mut self, conn: &mut Conn<'_>) -> Stored<Vec<Operation>> {
        let found = match self.left {
            0 => Vec::new(),
            left => operations::queued(conn, self.queue, &self.after, left.min(ROUND_MAX)).await?,
        };
        if !found.is_empty() {
            return Ok(found);
        }
        self.after = Place::FIRST;
        self.left = operations::count_queued(conn, self.queue).await?;
        operations::queued(conn, self.queue, &self.after, self.left.min(ROUND_MAX)).await
    }
}

/// One of each lane after the other, from the lane with that number on.
fn one_of_each<T>(lanes: Vec<Vec<T>>, first: usize) -> Vec<(usize, T)> {
    let mut waiting: Vec<_> = lanes.into_iter().map(Vec::into_iter).enumerate().collect();
    waiting.rotate_left(first);
    let mut found = Vec::new();
    while !waiting.is_empty() {
        waiting.retain_mut(|(lane, queue)| {
            queue.next().map(|next| found.push((*lane, next))).is_some()
        });
    }
    found
}

/// When operations were looked at.
#[derive(Debug, Default)]
pub(super) struct LookedAt(BTreeMap<OperationId, Looks>);

#[derive(Debug)]
struct Looks {
    first: Timestamp,
    last: Timestamp,
    turn: Instant,
}

impl LookedAt {
    /// Whether it is time to look at the operation again; if so, the next time is later.
    fn is_due(&mut self, id: &OperationId, now: Timestamp, turn: Instant) -> bool {
        self.0.retain(|_, looks| turn.duration_since(looks.turn) < FORGOTTEN_AFTER);
        let new = Looks { first: now, last: now, turn };
        let Some(looks) = self.0.get_mut(id) else {
            self.0.insert(id.clone(), new);
            return true;
        };
        // A clock that was set back says nothing about how long ago it was.
        if now < looks.last {
            *looks = new;
            return true;
        }
        looks.turn = turn;
        let wait = (looks.last.since(looks.first) / 2).clamp(LOOK_AGAIN_MIN, LOOK_AGAIN_MAX);
        let due = now.since(looks.last) >= wait;
        if due {
            looks.last = now;
        }
        due
    }
}

impl Gateway {
    pub(super) fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operations whose turn it is, each with its lane.
    pub(super) async fn next_in_turn(&self, turns: &mut Turns) -> Stored<Vec<(usize, Operation)>> {
        let mut lanes = turns.lanes.clone();
        let (lanes, found) = self
            .store()
            .read(move |conn| {
                Box::pin(async move {
                    let mut found = Vec::new();
                    for lane in &mut lanes {
                        found.push(lane.next(conn).await?);
                    }
                    Ok((lanes, found))
                })
            })
            .await?;
        let first = turns.first;
        turns.first = first.saturating_add(1) % lanes.len();
        turns.lanes = lanes;
        Ok(one_of_each(found, first))
    }

    /// Whether it is time to look at the operation again; if so, the next time is later.
    pub(super) fn is_due(&self, operation: &Operation) -> bool {
        let mut looked_at = self.0.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.is_due(&operation.id, self.now(), Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lane_waits_for_another() {
        let lanes = || vec![vec!["a1", "a2", "a3"], vec![], vec!["c1", "c2"]];
        let names = |first| -> Vec<&str> {
            one_of_each(lanes(), first).into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names(0), ["a1", "c1", "a2", "c2", "a3"]);
        assert_eq!(names(1), ["c1", "a1", "c2", "a2", "a3"]);
        assert_eq!(one_of_each(lanes(), 2)[0], (2, "c1"));
        assert_eq!(one_of_each(Vec::<Vec<u8>>::new(), 0), []);
    }

    #[test]
    fn an_operation_is_looked_at_less_and_less_often_and_again_after_a_clock_that_went_back() {
        let mut looked_at = LookedAt::default();
        let id = OperationId::parse("op_019ac0de00007000800000000000000a").unwrap();
        let (start, turn) = (Timestamp::from_millis(1_000_000_000), Instant::now());
        let mut due =
            |ms: i64| looked_at.is_due(&id, Timestamp::from_millis(start.as_millis() + ms), turn);
        assert!(due(0) && !due(249) && due(250) && !due(499) && due(500));
        assert!(due(60_000) && !due(74_999) && due(75_000));
        assert!(due(-3_600_000) && !due(-3_599_751) && due(-3_599_750));
        // One whose turn did not come for long is as good as new, and nothing else is kept of it.
        let other = OperationId::parse("op_019ac0de00007000800000000000000b").unwrap();
        assert!(looked_at.is_due(&other, start, turn + FORGOTTEN_AFTER));
        assert!(looked_at.0.keys().eq([&other]));
    }
}
