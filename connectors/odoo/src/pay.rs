//! Handing a sealed order over, looking for one, and what the guard answered. It decides nothing:
//! it carries a text that was sealed elsewhere, and keeps every doubt.

use countersign_erp_source::{
    AccountId, AccountNumber, Amount, BillId, BillState, Booked, BookedState, Contradiction,
    Currency, ErpCompanyId, Iban, Identity, LookUp, LookUpAnswer, Marker, OrderError, PaymentId,
    ReadError, RecordedOrder, Refusal, SealedOrder, Timestamp,
};
use serde::Deserialize;
use serde_json::json;

use crate::guard::name;
use crate::mapping::{self, record_id};
use crate::odoo::{Odoo, Told};
use crate::rpc::CallError;
use crate::xmlrpc::Fault;

/// What the pay and look-up actions answer: at most one booking.
#[derive(Debug, Deserialize)]
struct Looked {
    erp_time: String,
    booked: Vec<BookedRecord>,
}

#[derive(Debug, Deserialize)]
struct BookedRecord {
    payment: String,
    number: String,
    state: String,
    amount: String,
    currency: String,
    account: String,
    bills: Vec<String>,
    date: String,
    bill_state: String,
    bill_currency: String,
    residual: String,
}

/// An order as the action that lists them writes it.
#[derive(Debug, Deserialize)]
struct OrderRow {
    marker: String,
    seq: u64,
    company: String,
    bill: String,
    account: String,
    iban: String,
    amount: String,
    total: String,
    currency: String,
    payment: String,
    at: Timestamp,
}

impl Odoo {
    pub(crate) async fn hand_over(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        let not_sent = |reason: String| OrderError::NotSent { reason };
        let wanted = order.order();
        let configured = self.companies.get(&wanted.company).map(i32::to_string);
        if configured.as_deref() != Some(wanted.erp_company.as_str()) {
            return Err(not_sent(format!("company `{}` is not configured so", wanted.company)));
        }
        let action = self
            .find_action(name::PAY)
            .await
            .map_err(|error| not_sent(format!("the guard was not found: {error}")))?
            .ok_or_else(|| not_sent("the guard is not installed in Odoo".to_owned()))?;
        let told = json!({ "order": order.text(), "seal": order.seal() });
        let answer: Result<Told<Looked>, _> = self.payer.run(action, told).await;
        let answer = match answer {
            Ok(answer) => answer.countersign,
            Err(error) => {
                if error.may_be_stale() {
                    self.forget_actions().await;
                }
                return Err(order_error(error));
            }
        };
        let unknown = |reason: &str| OrderError::OutcomeUnknown { reason: reason.to_owned() };
        let booked = booked(&answer).map_err(unknown)?;
        booked.ok_or_else(|| unknown("Odoo answered without a payment"))
    }

    pub(crate) async fn look_for(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        let company = self.erp_company(&wanted.company)?;
        let malformed = |what: &str| ReadError::Malformed { what: what.to_owned() };
        if record_id(wanted.bill.as_str()).is_none() {
            return Err(malformed("the id of the bill is none of Odoo's"));
        }
        let told = json!({
            "company": company.to_string(), "bill": wanted.bill.as_str(),
            "marker": wanted.marker.to_hex(),
        });
        let answer: Told<Looked> = self.run_as_payer(name::LOOK_UP, told).await?;
        let erp_time = Timestamp::parse(&answer.countersign.erp_time)
            .map_err(|_no_time| malformed("Odoo's own time"))?;
        let booked = booked(&answer.countersign).map_err(malformed)?;
        Ok(LookUpAnswer { erp_time, booked })
    }

    pub(crate) async fn recorded_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        // Sequence numbers beyond what the table can hold have none after them.
        if i64::try_from(after).is_err() {
            return Ok(Vec::new());
        }
        let told = json!({ "store": store, "after": after.to_string(), "limit": limit });
        let answer: Told<String> = self.run_as_payer(name::LIST_ORDERS, told).await?;
        let unreadable =
            || ReadError::Malformed { what: "an order in the table cannot be read".to_owned() };
        let rows: Vec<OrderRow> =
            serde_json::from_str(&answer.countersign).map_err(|_unread| unreadable())?;
        rows.into_iter().map(|row| recorded(row).ok_or_else(unreadable)).collect()
    }

    async fn run_as_payer<T: serde::de::DeserializeOwned>(
        &self,
        action: &str,
        told: serde_json::Value,
    ) -> Result<Told<T>, ReadError> {
        let id = self.find_action(action).await?.ok_or_else(|| ReadError::Unavailable {
            reason: "the guard is not installed in Odoo: run `countersign odoo install`".to_owned(),
        })?;
        let answer = self.payer.run(id, told).await;
        if answer.as_ref().is_err_and(CallError::may_be_stale) {
            self.forget_actions().await;
        }
        answer.map_err(|error| error.of_read(Identity::Payer))
    }
}

/// What a failed call proves about the order that it carried.
fn order_error(error: CallError) -> OrderError {
    match error {
        // The sign-in comes before the order.
        CallError::NotSent(reason) | CallError::Denied(reason) => OrderError::NotSent { reason },
        CallError::Fault(fault) => of_fault(&fault),
        CallError::Lost(reason) | CallError::Unreadable(reason) => {
            OrderError::OutcomeUnknown { reason }
        }
    }
}

fn of_fault(fault: &Fault) -> OrderError {
    if let Some(code) = fault.marker() {
        if let Some(contradiction) = Contradiction::from_code(code) {
            return OrderError::Contradicted(contradiction);
        }
        let refusal = match code {
            // The daemon gives no such deadline, so it is not its order that the guard read.
            "deadline_too_far" => Refusal::BadRequest,
            code => Refusal::from_code(code).unwrap_or(Refusal::Other),
        };
        return OrderError::Refused(refusal);
    }
    // INVARIANT: only the guard's own words prove that nothing was booked. Whatever else is refused,
    // a right or a password included, may have been refused by code that Odoo runs after the commit,
    // and an answer that could not be written is reported as a fault too.
    OrderError::OutcomeUnknown { reason: fault.for_log() }
}

fn booked(answer: &Looked) -> Result<Option<Booked>, &'static str> {
    match answer.booked.as_slice() {
        [] => Ok(None),
        [record] => of_record(record).map(Some).ok_or("what Odoo says it booked cannot be read"),
        _ => Err("Odoo answered with several payments for one order"),
    }
}

fn of_record(record: &BookedRecord) -> Option<Booked> {
    let currency = Currency::from_code(&record.currency).ok()?;
    let bill_currency = Currency::from_code(&record.bill_currency).ok()?;
    let bill = |id: &String| BillId::new(id.clone()).ok();
    Some(Booked {
        payment: PaymentId::new(record.payment.clone()).ok()?,
        number: record.number.clone(),
        state: match record.state.as_str() {
            "posted" => BookedState::Posted,
            "draft" => BookedState::Draft,
            "cancel" => BookedState::Cancelled,
            "deleted" => BookedState::Deleted,
            _ => return None,
        },
        amount: mapping::amount(&record.amount, currency)?,
        account: AccountNumber::from_erp(&record.account),
        bills: record.bills.iter().map(bill).collect::<Option<_>>()?,
        date: mapping::day(&record.date)?,
        bill_state: match record.bill_state.as_str() {
            "posted" => BillState::Posted,
            "draft" => BillState::Draft,
            "cancel" => BillState::Cancelled,
            _ => return None,
        },
        residual: mapping::amount(&record.residual, bill_currency)?,
    })
}

fn recorded(row: OrderRow) -> Option<RecordedOrder> {
    let currency = Currency::from_code(&row.currency).ok()?;
    let amount = |text: &str| -> Option<Amount> { mapping::amount(text, currency) };
    Some(RecordedOrder {
        marker: Marker::parse(&row.marker).ok()?,
        seq: row.seq,
        erp_company: ErpCompanyId::new(row.company).ok()?,
        bill: BillId::new(row.bill).ok()?,
        account: AccountId::new(row.account).ok()?,
        iban: Iban::parse(&row.iban).ok()?,
        amount: amount(&row.amount)?,
        total: amount(&row.total)?,
        payment: PaymentId::new(row.payment).ok()?,
        at: row.at,
    })
}

#[cfg(test)]
mod tests;
