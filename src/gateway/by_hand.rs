//! A human ends an `unknown` that the daemon could not settle (API 4): what the ERP itself can still
//! say comes first, and only then a human's word counts.

use std::collections::BTreeMap;

use countersign_erp_source::Timestamp;

use super::approval::{ApprovalError, barred, callers, standing_of, visible};
use super::pack::{Booking, Found, Sent};
use super::proposals::EXECUTING_WAIT;
use super::settling::{Settled, write_down};
use super::{Gateway, Stored, receipt};
use crate::domain::decision::{Level, Stage};
use crate::domain::names::{Name, OperationId};
use crate::domain::operation::{Operation, OperationResult, Status};
use crate::domain::reason::Reason;
use crate::domain::vote::may_vote;
use crate::receipts::ReceiptKind;
use crate::store::attempts::{self, Attempt, AttemptState};
use crate::store::{StoreError, Unit, operations};

/// What a human found in the ERP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByHand {
    /// It is booked, as this payment.
    Booked {
        /// The ERP's id of the payment.
        payment_ref: String,
    },
    /// It is not booked.
    NotBooked,
}

/// Why a human's word on an unknown operation is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    /// As for a vote.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The order may still be booked.
    #[error("the order may still be booked; ask again after its deadline")]
    OrderStillValid,
    /// The ERP proves that the order is not booked.
    #[error("the ERP proves that this order is not booked; a payment made by hand is another one")]
    ProvedAbsent,
}

impl From<StoreError> for ByHandError {
    fn from(fault: StoreError) -> Self {
        Self::Approval(fault.into())
    }
}

/// A human's word.
struct Word {
    human: Name,
    id: OperationId,
    found: ByHand,
    reason: String,
    now: Timestamp,
}

impl Gateway {
    /// Ends an unknown operation by a human's word. Where the ERP can say by now what became of the
    /// order, that is written down instead.
    ///
    /// # Errors
    /// [`ByHandError`]; nothing is changed then.
    pub async fn settle_by_hand(
        &self,
        human: &Name,
        id: &OperationId,
        found: ByHand,
        reason: &str,
    ) -> Result<Operation, ByHandError> {
        let word = Word {
            human: human.clone(),
            id: id.clone(),
            found,
            reason: reason.to_owned(),
            now: self.now(),
        };
        let (who, which, now) = (word.human.clone(), word.id.clone(), word.now);
        let asked = self.store().write_or_undo(move |unit| {
            Box::pin(async move {
                Ok(may_settle(unit, &who, &which, now).await?.map_err(ByHandError::from))
            })
        });
        let operation = asked.await??.value;
        if let Some(attempt) = self.open_attempt(&operation).await?
            && self.erp_knows(&operation, &attempt, &word).await?
        {
            let settled = self.settled(operation.id, EXECUTING_WAIT).await;
            return Ok(settled.map_err(ApprovalError::from)?);
        }
        let written = self
            .store()
            .write_or_undo(move |unit| Box::pin(async move { take_word(unit, &word).await }))
            .await??;
        self.0.changed.notify_waiters();
        Ok(written.value)
    }

    /// Asks the ERP once more, and writes down what it knows for sure.
    async fn erp_knows(
        &self,
        operation: &Operation,
        attempt: &Attempt,
        word: &Word,
    ) -> Result<bool, ByHandError> {
        let Some(pack) = self.pack_of(&operation.action) else { return Ok(false) };
        match pack.look_up(&operation.action, &operation.origins.company, &attempt.order_text).await
        {
            Ok(Found::Booked(booking)) => {
                self.settle(operation, attempt, Sent::Booked(booking)).await?;
                Ok(true)
            }
            Ok(Found::ProvedAbsent { .. }) if word.found != ByHand::NotBooked => {
                Err(ByHandError::ProvedAbsent)
            }
            Ok(Found::ProvedAbsent { .. } | Found::NotYet) | Err(_) => Ok(false),
        }
    }
}

async fn may_settle(
    unit: &mut Unit<'_>,
    human: &Name,
    id: &OperationId,
    now: Timestamp,
) -> Stored<Result<Operation, ApprovalError>> {
    let (found, roles) = match visible(unit, human, id).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    // The same two persons as for four eyes, whatever level it was decided at.
    let callers = callers(unit, &found, now).await?;
    let may = may_vote(Level::FourEyes, barred(&found, &callers), human, standing_of(&roles));
    Ok(match may {
        Err(refusal) => Err(refusal.into()),
        Ok(()) if found.status != Status::Unknown => {
            Err(ApprovalError::AlreadyDecided(found.status))
        }
        Ok(()) => Ok(found),
    })
}

async fn take_word(unit: &mut Unit<'_>, word: &Word) -> Stored<Result<Operation, ByHandError>> {
    let before = match may_settle(unit, &word.human, &word.id, word.now).await? {
        Ok(before) => before,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    let Some(attempt) = unit.ask(attempts::find_open(&before.id)).await? else {
        return Ok(Err(ApprovalError::AlreadyDecided(before.status).into()));
    };
    // INVARIANT (I2): an order that may still be booked is not said to be absent.
    if word.found == ByHand::NotBooked && word.now <= attempt.not_after {
        return Ok(Err(ByHandError::OrderStillValid));
    }
    let mut noted = Operation { updated_at: word.now, ..before.clone() };
    let (outcome, payment) = match &word.found {
        ByHand::Booked { payment_ref } => ("booked", Some(payment_ref.as_str())),
        ByHand::NotBooked => ("not_booked", None),
    };
    let data = serde_json::json!({
        "by": word.human.as_str(), "outcome": outcome, "payment_ref": payment,
        "reason": word.reason, "seq": attempt.seq,
    });
    receipt::leave(unit, &mut noted, ReceiptKind::SettledByHand, word.now, data)?;
    write_down(unit, &before, &attempt, &settled(word, &attempt), word.now).await?;
    let after = unit.ask(operations::find(&before.id)).await?;
    let after = after.ok_or_else(|| StoreError::inconsistent("operation", "id", "is gone"))?;
    Ok(Ok(after))
}

/// What an attempt is noted for that somebody settled by hand.
pub(super) fn by_whom(human: &Name) -> String {
    format!("settled by hand by {human}")
}

fn settled(word: &Word, attempt: &Attempt) -> Settled {
    let said = by_whom(&word.human);
    match &word.found {
        ByHand::NotBooked => Settled {
            attempt: AttemptState::Absent,
            status: Status::Failed,
            booking: None,
            reason: Some((Stage::Execution, Reason::NotBooked)),
            said,
            alarm: None,
        },
        ByHand::Booked { payment_ref } => Settled {
            attempt: AttemptState::Booked,
            status: Status::Executed,
            booking: Some(Booking {
                result: OperationResult::unread(payment_ref, &attempt.counterparty, attempt.sum),
                amount: attempt.sum.map(|sum| sum.amount),
                differences: Vec::new(),
                evidence: BTreeMap::new(),
            }),
            reason: None,
            said,
            alarm: None,
        },
    }
}
