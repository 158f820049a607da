//! Stage `receipt`: what was sent, what was resolved and from where, which facts, what was decided.
//! Receipts hold whole values: they are evidence that only auditors read.

use std::collections::BTreeMap;

use countersign_erp_source::{Marker, Timestamp};
use serde_json::{Value, json};

use super::pack::{Booking, Denial};
use crate::domain::names::{MandateId, Name};
use crate::domain::operation::{Decision, Operation, ReceiptRef};
use crate::metrics::Decided;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::attempts::Attempt;
use crate::store::{StoreError, Unit};

/// Leaves a receipt about an operation and notes it there as the newest.
pub(super) fn leave(
    unit: &mut Unit<'_>,
    operation: &mut Operation,
    kind: ReceiptKind,
    at: Timestamp,
    data: Value,
) -> Result<(), StoreError> {
    let head = unit.receipt(Receipt {
        kind,
        at,
        company: Some(operation.origins.company.to_string()),
        operation: Some(operation.id.to_string()),
        data,
    })?;
    if kind == ReceiptKind::Decision {
        let Decision { stage, effect, reasons, .. } = operation.decision.clone();
        unit.decided(Decided { stage, effect, reasons });
    }
    operation.receipt = ReceiptRef { seq: head.seq, hash: head.hash };
    Ok(())
}

/// Says in the log what was decided on an operation, without any of its values.
pub(super) fn log_decision(operation: &Operation) {
    let (id, decision) = (&operation.id, &operation.decision);
    let (stage, effect) = (decision.stage.code(), decision.effect.code());
    let reasons = decision.reasons.join(", ");
    tracing::info!(
        operation.id = %id,
        decision.stage = stage,
        decision.effect = effect,
        decision.reasons = reasons,
        "operation {id}: {effect} at {stage}: {reasons}"
    );
}

/// What a decision says. `hashed` is the text that the operation hash is made of.
pub(super) fn decision(
    operation: &Operation,
    denial: Option<&Denial>,
    hashed: Option<&str>,
) -> Value {
    let evidence = denial.map(|denial| &denial.evidence);
    json!({
        "action": operation.action,
        "agent": operation.origins.agent().map(Name::as_str),
        "args": operation.args,
        "decision": {
            "detail": operation.decision.detail,
            "effect": operation.decision.effect.code(),
            "policy": operation.decision.policy,
            "reasons": operation.decision.reasons,
            "stage": operation.decision.stage.code(),
        },
        "evidence": evidence,
        "facts": operation.substance.facts,
        "hash": operation.substance.hash,
        "hashed": hashed,
        "key": operation.key,
        "mandate": operation.origins.mandate().map(MandateId::as_str),
        "params": operation.substance.params,
        "principal": operation.origins.principal.as_str(),
        "request": operation.request_digest,
        "status": operation.status.code(),
    })
}

/// What is written ahead of the call to the ERP. The marker stands in it only by its digest.
pub(super) fn claim(attempt: &Attempt, marker: &Marker) -> Value {
    json!({
        "amount": attempt.sum.map(|sum| sum.amount.to_string()),
        "hash": attempt.operation_hash,
        "marker": marker.digest(),
        "not_after": attempt.not_after,
        "order": order_without_marker(attempt),
        "seq": attempt.seq,
        "thing": attempt.thing,
        "total": attempt.sum.map(|sum| sum.total.to_string()),
    })
}

fn order_without_marker(attempt: &Attempt) -> Value {
    let mut order: Value = serde_json::from_str(&attempt.order_text).unwrap_or(Value::Null);
    if let Some(fields) = order.as_object_mut() {
        fields.remove("marker");
    }
    order
}

/// What the ERP said, or why nothing came of an attempt.
pub(super) fn outcome(
    operation: &Operation,
    seq: i64,
    said: &str,
    booking: Option<&Booking>,
) -> Value {
    let none = BTreeMap::new();
    json!({
        "booked": booking.map_or(&none, |booking| &booking.evidence),
        "differences": booking.map_or(&[][..], |booking| &booking.differences),
        "said": said,
        "seq": seq,
        "status": operation.status.code(),
    })
}
