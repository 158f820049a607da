//! The hands: an order goes to the ERP sealed, and what it did is read back and compared.

use std::collections::BTreeMap;

use countersign_erp_source::{
    BillState, Booked, CompanyId, LookUp, OrderError, PaymentOrder, Refusal,
};

use super::AccountsPayable;
use crate::domain::operation::OperationResult;
use crate::gateway::pack::{Booking, Found, Sent};

/// Seals the order and hands it over. The only place that writes to the ERP.
pub(super) async fn send(pack: &AccountsPayable, company: &CompanyId, text: &str) -> Sent {
    let order = match PaymentOrder::from_exact_text(text, company.clone()) {
        Ok(order) => order,
        // Nothing was sent, and nothing ever will be from this text.
        Err(fault) => return Sent::NotSent { reason: fault.to_string() },
    };
    let sealed = pack.seal_key().seal(order);
    match pack.ports().erp.register_payment(&sealed).await {
        Ok(booked) => Sent::Booked(booking(&booked, sealed.order())),
        Err(OrderError::Refused(refusal)) => {
            Sent::Refused { code: refusal.code(), too_late: refusal == Refusal::TooLate }
        }
        Err(OrderError::NotSent { reason }) => Sent::NotSent { reason },
        Err(OrderError::OutcomeUnknown { reason }) => Sent::Unknown { reason },
        Err(OrderError::Contradicted(what)) => Sent::Contradicted { code: what.code() },
    }
}

/// Looks for the order under the bill's lock.
pub(super) async fn look_up(
    pack: &AccountsPayable,
    company: &CompanyId,
    text: &str,
) -> Result<Found, String> {
    let order =
        PaymentOrder::from_exact_text(text, company.clone()).map_err(|fault| fault.to_string())?;
    let wanted =
        LookUp { company: company.clone(), bill: order.bill.clone(), marker: order.marker.clone() };
    let answer = pack.ports().erp.look_up(&wanted).await.map_err(|fault| fault.to_string())?;
    let absent = answer.proves_absence(order.not_after);
    Ok(match answer.booked {
        Some(booked) => Found::Booked(booking(&booked, &order)),
        None if absent => Found::ProvedAbsent { erp_time: answer.erp_time },
        None => Found::NotYet,
    })
}

fn booking(booked: &Booked, order: &PaymentOrder) -> Booking {
    let open = booked.residual.is_positive();
    let bill_state = match booked.bill_state {
        BillState::Draft => "draft",
        BillState::Cancelled => "cancelled",
        BillState::Posted if open => "open",
        BillState::Posted => "paid",
    };
    let differences = booked
        .differences(order)
        .into_iter()
        .map(|found| format!("{}: ordered {}, booked {}", found.what, found.ordered, found.booked))
        .collect();
    let evidence = BTreeMap::from([
        ("account".to_owned(), booked.account.whole().to_owned()),
        ("amount".to_owned(), booked.amount.to_string()),
        ("date".to_owned(), booked.date.to_string()),
        ("number".to_owned(), booked.number.clone()),
        ("payment".to_owned(), booked.payment.to_string()),
        ("residual".to_owned(), booked.residual.to_string()),
    ]);
    Booking {
        result: OperationResult {
            payment_ref: booked.payment.to_string(),
            amount: booked.amount.to_decimal_string(),
            currency: booked.amount.currency().code().to_owned(),
            bill_state: bill_state.to_owned(),
            amount_due: Some(booked.residual.to_decimal_string()),
        },
        amount: booked.amount,
        differences,
        evidence,
    }
}
