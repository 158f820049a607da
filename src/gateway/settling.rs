//! Settling: what became of an order, written down once; and the worker that finds out what nobody
//! knows. It takes no input and is safe to repeat, in several daemons at once.

use std::sync::{Arc, PoisonError};

use countersign_erp_source::Timestamp;

use super::execution::{FREE, TRIED_FOR, get, moved};
use super::freeze::{self, Automatic};
use super::pack::{Booking, Done, Found, Sent};
use super::{Gateway, Stored, receipt};
use crate::domain::decision::{Level, Stage};
use crate::domain::names::OperationId;
use crate::domain::operation::{Operation, Status};
use crate::domain::reason::Reason;
use crate::receipts::ReceiptKind;
use crate::store::attempts::{self, Attempt, AttemptState};
use crate::store::freezes::FreezeScope;
use crate::store::operations::{self, Reservation};
use crate::store::{Unit, callbacks};

/// Operations that are worked on at once.
pub(super) const AT_ONCE: usize = 16;
/// Operations of each kind that one round of the worker reads.
pub(super) const ROUND_MAX: i64 = 200;

/// An operation that is worked on here; dropped when that ends, by a panic too.
struct Busy {
    gateway: Gateway,
    id: OperationId,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut busy = self.gateway.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.remove(&self.id);
    }
}

/// How an attempt is written down.
pub(super) struct Settled {
    pub(super) attempt: AttemptState,
    pub(super) status: Status,
    pub(super) booking: Option<Booking>,
    pub(super) reason: Option<(Stage, Reason)>,
    pub(super) said: String,
    pub(super) alarm: Option<Automatic>,
}

impl Settled {
    /// What was carried out, where it is what was decided.
    fn as_decided(&self) -> Option<&Booking> {
        self.booking.as_ref().filter(|booking| booking.differences.is_empty())
    }
}

fn settled(operation: &Operation, attempt: &Attempt, sent: Sent) -> Settled {
    let plain = |attempt, status, reason, said: String| Settled {
        attempt,
        status,
        booking: None,
        reason,
        said,
        alarm: None,
    };
    match sent {
        Sent::Booked(booking) if booking.differences.is_empty() => Settled {
            booking: Some(booking),
            ..plain(AttemptState::Booked, Status::Executed, None, "booked".to_owned())
        },
        Sent::Booked(booking) => {
            let detail = format!(
                "what the ERP booked for {} is not what was decided ({}); look at the payment there \
                 before you thaw the vendor",
                operation.id,
                booking.differences.join("; ")
            );
            let scope = FreezeScope::Vendor {
                company: attempt.company.to_string(),
                vendor: attempt.counterparty.clone(),
            };
            let reason = Some((Stage::Execution, Reason::BookedOtherwise));
            Settled {
                booking: Some(booking),
                alarm: Some(Automatic { scope, cause: Reason::BookedOtherwise.code(), detail }),
                ..plain(
                    AttemptState::Booked,
                    Status::Executed,
                    reason,
                    "booked otherwise".to_owned(),
                )
            }
        }
        Sent::Refused { code, too_late: true } => {
            plain(AttemptState::Refused, Status::Executing, None, code.to_owned())
        }
        Sent::Refused { code, too_late: false } => {
            let reason = Some((Stage::Execution, Reason::ErpRefused));
            plain(AttemptState::Refused, Status::Failed, reason, code.to_owned())
        }
        Sent::NotSent { reason } => plain(AttemptState::NotSent, Status::Executing, None, reason),
        Sent::Unknown { reason } => plain(AttemptState::Open, Status::Unknown, None, reason),
        Sent::Contradicted { code } => {
            let detail = format!(
                "the ERP answered `{code}` to an order of {}: store and ERP do not belong together \
                 any more; nothing is paid until the operator has looked",
                operation.id
            );
            let alarm = Automatic { scope: FreezeScope::All, cause: code, detail };
            let reason = Some((Stage::Execution, Reason::ErpContradicts));
            Settled {
                alarm: Some(alarm),
                ..plain(AttemptState::Open, Status::Unknown, reason, code.to_owned())
            }
        }
    }
}

impl Gateway {
    /// Writes down what became of an order. Whoever comes second changes nothing.
    pub(super) async fn settle(
        &self,
        operation: &Operation,
        attempt: &Attempt,
        sent: Sent,
    ) -> Stored<()> {
        let outcome = settled(operation, attempt, sent);
        let (id, attempt, now) = (operation.id.clone(), attempt.clone(), self.now());
        let became = outcome.status.code();
        let (Ok(freeze_id), Ok(alarm_id)) = (self.ordered_id(), self.ordered_id()) else {
            // Without random numbers there is no id for an alarm; the worker comes back.
            return Ok(());
        };
        let pack = self.pack_of(&operation.action).cloned();
        let written = self
            .store()
            .write(move |unit| {
                Box::pin(async move {
                    let before = get(unit, &id).await?;
                    if !is_open(unit, &before, &attempt).await? {
                        let late = too_late_to_be_true(unit, &before, &attempt, &outcome).await?;
                        if let Some(alarm) = late {
                            let operation = Some(&before);
                            freeze::automatic(unit, &alarm, operation, freeze_id, alarm_id, now)
                                .await?;
                        }
                        return Ok(false);
                    }
                    write_down(unit, &before, &attempt, &outcome, now).await?;
                    if let (Some(pack), Some(booking)) = (&pack, outcome.as_decided()) {
                        let order = attempt.order_text.as_str();
                        let done = Done { operation: &before, order, booking, now };
                        pack.keep(unit, &done).await?;
                    }
                    if let Some(alarm) = &outcome.alarm {
                        let operation = Some(&before);
                        freeze::automatic(unit, alarm, operation, freeze_id, alarm_id, now).await?;
                    }
                    Ok(true)
                })
            })
            .await?;
        if written.value {
            let id = &operation.id;
            tracing::info!(operation.id = %id, operation.status = became, "operation {id}: {became}");
        }
        self.0.changed.notify_waiters();
        Ok(())
    }

    /// One round of the settle worker: what no daemon works on any more becomes unknown, what is
    /// unknown is looked up, what was never sent is decided again, and so is what has votes. Each operation in a task of its
    /// own that the round does not wait for, so that one that hangs keeps no other waiting; an
    /// operation that is still worked on is left alone. A round ends when no place is free, and the
    /// next one begins where it ended.
    ///
    /// # Errors
    /// The store could not be read; the next round comes.
    pub async fn settle_round(&self, alone: bool) -> Stored<()> {
        let mut turns = self.turns().clone();
        for (lane, operation) in self.next_in_turn(&mut turns).await? {
            let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { break };
            turns.passed(lane, &operation);
            let Some(busy) = self.begin(&operation.id) else { continue };
            let gateway = self.clone();
            self.0.tasks.spawn(async move {
                gateway.take_up(operation, alone).await;
                drop((busy, place));
            });
        }
        *self.turns() = turns;
        Ok(())
    }

    /// Whether anything that a round took up is still worked on.
    pub fn is_settling(&self) -> bool {
        !self.0.busy.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn begin(&self, id: &OperationId) -> Option<Busy> {
        let mut busy = self.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.insert(id.clone()).then(|| Busy { gateway: self.clone(), id: id.clone() })
    }

    /// What goes wrong with one operation is logged and leaves the others alone.
    async fn take_up(&self, operation: Operation, alone: bool) {
        let id = operation.id.clone();
        if let Err(fault) = self.take_one_up(&operation, alone).await {
            let fault = anyhow::Error::new(fault);
            tracing::error!(operation.id = %id, "operation {id} could not be settled: {fault:#}");
        }
    }

    async fn take_one_up(&self, operation: &Operation, alone: bool) -> Stored<()> {
        if operation.status == Status::Pending {
            return if self.is_due(operation) {
                self.decide_voted(operation).await
            } else {
                Ok(())
            };
        }
        let attempt = self.open_attempt(operation).await?;
        match attempt {
            None if self.is_due(operation) => self.try_unsent(operation).await,
            Some(attempt) if operation.status == Status::Unknown && self.is_due(operation) => {
                self.look_up(operation, &attempt).await
            }
            Some(attempt)
                if operation.status == Status::Executing && self.is_orphan(&attempt, alone) =>
            {
                let reason = "the daemon that claimed it is gone".to_owned();
                self.settle(operation, &attempt, Sent::Unknown { reason }).await
            }
            None | Some(_) => Ok(()),
        }
    }

    /// One round of the expire worker: what waited too long for a commit or a human expires.
    ///
    /// # Errors
    /// The store failed; the next round comes.
    pub async fn expire_round(&self) -> Stored<()> {
        let now = self.now();
        let overdue = self
            .store()
            .read(move |conn| {
                Box::pin(async move { operations::overdue(conn, now, ROUND_MAX).await })
            })
            .await?;
        for operation in overdue {
            self.end_waiting(&operation, Status::Expired, "nobody answered in time").await?;
        }
        Ok(())
    }

    /// Whether nobody works on the attempt any more. The only daemon of a store knows its own.
    fn is_orphan(&self, attempt: &Attempt, alone: bool) -> bool {
        let foreign = attempt.daemon != self.daemon();
        (alone && foreign) || self.now() > attempt.lease_until
    }

    async fn look_up(&self, operation: &Operation, attempt: &Attempt) -> Stored<()> {
        let Some(pack) = self.pack_of(&operation.action) else { return Ok(()) };
        let company = &operation.origins.company;
        match pack.look_up(&operation.action, company, &attempt.order_text).await {
            Ok(Found::Booked(booking)) => {
                self.settle(operation, attempt, Sent::Booked(booking)).await
            }
            Ok(Found::ProvedAbsent { .. }) => self.try_again(operation, Some(attempt)).await,
            Ok(Found::NotYet) => Ok(()),
            Err(fault) => {
                let id = &operation.id;
                tracing::warn!(operation.id = %id, "operation {id} is still unknown: {fault}");
                Ok(())
            }
        }
    }

    async fn try_unsent(&self, operation: &Operation) -> Stored<()> {
        let held = self.store().ask(operations::reservation(&operation.id)).await?;
        let since = held.executing_since.unwrap_or(operation.updated_at);
        if self.now().since(since) < TRIED_FOR {
            return self.try_again(operation, None).await;
        }
        let (before, now) = (operation.clone(), self.now());
        self.store()
            .write(move |unit| Box::pin(async move { give_up(unit, &before, now).await }))
            .await?;
        self.0.changed.notify_waiters();
        Ok(())
    }

    pub(super) async fn open_attempt(&self, operation: &Operation) -> Stored<Option<Attempt>> {
        self.store().ask(attempts::find_open(&operation.id)).await
    }
}

async fn is_open(unit: &mut Unit<'_>, operation: &Operation, attempt: &Attempt) -> Stored<bool> {
    let live = matches!(operation.status, Status::Executing | Status::Unknown);
    let open = unit.ask(attempts::find_open(&operation.id)).await?;
    Ok(live && open.is_some_and(|open| open.marker == attempt.marker))
}

/// An answer for an attempt that is closed already. One that agrees is no news; a booking for an
/// attempt that counts for nothing, and any contradiction, stops everything.
async fn too_late_to_be_true(
    unit: &mut Unit<'_>,
    operation: &Operation,
    attempt: &Attempt,
    outcome: &Settled,
) -> Stored<Option<Automatic>> {
    let booked_unseen = outcome.attempt == AttemptState::Booked
        && !attempts::counts(unit.conn(), &attempt.marker).await?;
    if booked_unseen {
        let detail = format!(
            "the ERP booked an order of {} that was given up here as proved absent; look at the \
             bill's payments there before you thaw",
            operation.id
        );
        let (scope, cause) = (FreezeScope::All, "booked_after_absent");
        return Ok(Some(Automatic { scope, cause, detail }));
    }
    Ok(outcome.alarm.clone().filter(|alarm| alarm.scope == FreezeScope::All))
}

pub(super) async fn write_down(
    unit: &mut Unit<'_>,
    before: &Operation,
    attempt: &Attempt,
    outcome: &Settled,
    now: Timestamp,
) -> Stored<()> {
    // Still unknown is no news, unless the ERP contradicted.
    if before.status == Status::Unknown
        && outcome.status == Status::Unknown
        && outcome.reason.is_none()
    {
        return Ok(());
    }
    let held = unit.ask(operations::reservation(&before.id)).await?;
    let mut after = Operation { status: outcome.status, updated_at: now, ..before.clone() };
    if let Some((stage, reason)) = outcome.reason {
        after.decision.stage = stage;
        after.decision.reasons = vec![reason.code().to_owned()];
        after.decision.detail = if reason == Reason::ErpRefused {
            format!("{}: {}", reason.text(), outcome.said)
        } else {
            reason.text().to_owned()
        };
    }
    after.result = outcome.booking.as_ref().map(|booking| booking.result.clone());
    if outcome.attempt != AttemptState::Open {
        let booked = outcome.booking.as_ref().map(|booking| {
            let minor = booking.amount.zip(attempt.sum).and_then(|(amount, sum)| {
                let same_currency = amount.currency() == sum.amount.currency();
                same_currency.then(|| amount.minor())
            });
            (booking.result.reference(), minor)
        });
        let closed = attempts::settle(
            unit.conn(),
            &attempt.marker,
            outcome.attempt,
            booked,
            &outcome.said,
            now,
        )
        .await?;
        moved(closed)?;
    }
    // Budget and call stay taken while anything may be booked, and are given back on `failed`; so is
    // the call-back.
    let reservation = if outcome.status == Status::Failed {
        callbacks::give_back(unit.conn(), &before.id).await?;
        FREE
    } else {
        Reservation { reserved: true, ..held }
    };
    let kind = if outcome.status == Status::Executing {
        ReceiptKind::Attempt
    } else {
        ReceiptKind::Outcome
    };
    let data = receipt::outcome(&after, attempt.seq, &outcome.said, outcome.booking.as_ref());
    receipt::leave(unit, &mut after, kind, now, data)?;
    moved(operations::update(unit.conn(), before, &after, reservation).await?)
}

async fn give_up(unit: &mut Unit<'_>, before: &Operation, now: Timestamp) -> Stored<()> {
    let found = get(unit, &before.id).await?;
    if found.version != before.version || unit.ask(attempts::find_open(&before.id)).await?.is_some()
    {
        return Ok(());
    }
    let reason = Reason::NeverSent;
    let mut after =
        Operation { status: Status::Failed, level: Level::None, updated_at: now, ..found.clone() };
    after.decision.stage = Stage::Execution;
    after.decision.reasons = vec![reason.code().to_owned()];
    reason.text().clone_into(&mut after.decision.detail);
    callbacks::give_back(unit.conn(), &before.id).await?;
    let data = receipt::outcome(&after, 0, reason.code(), None);
    receipt::leave(unit, &mut after, ReceiptKind::Outcome, now, data)?;
    moved(operations::update(unit.conn(), &found, &after, FREE).await?)
}
