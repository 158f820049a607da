//! The hands: an order goes to the ERP sealed, and what it did is read back and compared.

use std::collections::BTreeMap;

use countersign_erp_source::{
    BankChange, BillState, Booked, ChangeLookUp, Changed, CompanyId, Difference, LookUp,
    OrderError, PaymentOrder, Refusal,
};

use super::AccountsPayable;
use crate::domain::operation::{OperationResult, PaymentResult, VendorResult};
use crate::gateway::pack::{Booking, Found, Sent};

/// Seals a payment and hands it over. The only place that writes payments to the ERP.
pub(super) async fn send(pack: &AccountsPayable, company: &CompanyId, text: &str) -> Sent {
    let order = match PaymentOrder::from_exact_text(text, company.clone()) {
        Ok(order) => order,
        // Nothing was sent, and nothing ever will be from this text.
        Err(fault) => return Sent::NotSent { reason: fault.to_string() },
    };
    let sealed = pack.seal_key().seal(order);
    match pack.ports().erp.register_payment(&sealed).await {
        Ok(booked) => Sent::Booked(booking(&booked, sealed.order())),
        Err(fault) => not_booked(fault),
    }
}

/// Seals a change of bank details and hands it over. The only place that writes vendors to the ERP.
pub(super) async fn change(pack: &AccountsPayable, company: &CompanyId, text: &str) -> Sent {
    let order = match BankChange::from_exact_text(text, company.clone()) {
        Ok(order) => order,
        // Nothing was sent, and nothing ever will be from this text.
        Err(fault) => return Sent::NotSent { reason: fault.to_string() },
    };
    let sealed = pack.seal_key().seal(order);
    match pack.ports().erp.change_bank_details(&sealed).await {
        Ok(changed) => Sent::Booked(done(&changed, sealed.order())),
        Err(fault) => not_booked(fault),
    }
}

fn not_booked(fault: OrderError) -> Sent {
    match fault {
        OrderError::Refused(refusal) => {
            Sent::Refused { code: refusal.code(), too_late: refusal == Refusal::TooLate }
        }
        OrderError::NotSent { reason } => Sent::NotSent { reason },
        OrderError::OutcomeUnknown { reason } => Sent::Unknown { reason },
        OrderError::Contradicted(what) => Sent::Contradicted { code: what.code() },
    }
}

/// Looks for a change under the vendor's lock.
pub(super) async fn look_up_change(
    pack: &AccountsPayable,
    company: &CompanyId,
    text: &str,
) -> Result<Found, String> {
    let order =
        BankChange::from_exact_text(text, company.clone()).map_err(|fault| fault.to_string())?;
    let wanted = ChangeLookUp {
        company: company.clone(),
        vendor: order.vendor.clone(),
        marker: order.marker.clone(),
    };
    let answer = pack.ports().erp.look_up_change(&wanted).await;
    let answer = answer.map_err(|fault| fault.to_string())?;
    let absent = answer.proves_absence(order.not_after);
    Ok(match answer.booked {
        Some(changed) => Found::Booked(done(&changed, &order)),
        None if absent => Found::ProvedAbsent { erp_time: answer.erp_time },
        None => Found::NotYet,
    })
}

fn done(changed: &Changed, order: &BankChange) -> Booking {
    let account = changed.account.as_ref();
    let bills: Vec<String> = changed.bills.iter().map(ToString::to_string).collect();
    let number = account.map(|account| account.number.whole().to_owned());
    let record = account.map(|account| account.id.to_string());
    let evidence = BTreeMap::from([
        ("account".to_owned(), record.clone().unwrap_or_default()),
        ("bills".to_owned(), bills.join(" ")),
        ("number".to_owned(), number.clone().unwrap_or_default()),
    ]);
    Booking {
        result: OperationResult::Vendor(VendorResult {
            vendor_id: order.vendor.to_string(),
            account_ref: record,
            iban: number,
            phone: None,
            bills,
        }),
        amount: None,
        differences: in_words(changed.differences(order)),
        evidence,
    }
}

fn in_words(differences: Vec<Difference>) -> Vec<String> {
    let said = |found: Difference| {
        format!("{}: ordered {}, booked {}", found.what, found.ordered, found.booked)
    };
    differences.into_iter().map(said).collect()
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
    let differences = in_words(booked.differences(order));
    let evidence = BTreeMap::from([
        ("account".to_owned(), booked.account.whole().to_owned()),
        ("amount".to_owned(), booked.amount.to_string()),
        ("date".to_owned(), booked.date.to_string()),
        ("number".to_owned(), booked.number.clone()),
        ("payment".to_owned(), booked.payment.to_string()),
        ("residual".to_owned(), booked.residual.to_string()),
    ]);
    Booking {
        result: OperationResult::Payment(PaymentResult {
            payment_ref: booked.payment.to_string(),
            amount: booked.amount.to_decimal_string(),
            currency: booked.amount.currency().code().to_owned(),
            bill_state: bill_state.to_owned(),
            amount_due: Some(booked.residual.to_decimal_string()),
        }),
        amount: Some(booked.amount),
        differences,
        evidence,
    }
}
