//! Handing a sealed order over, looking for one, and what the guard answered. It decides nothing:
//! it carries a text that was sealed elsewhere, and keeps every doubt.

use std::collections::BTreeMap;

use countersign_erp_source::{
    AccountId, AccountNumber, Amount, BillId, BillState, Booked, BookedState, CompanyId,
    Contradiction, Currency, ErpCompanyId, Iban, Identity, LookUp, LookUpAnswer, Marker,
    OrderError, PaymentId, ReadError, RecordedOrder, Refusal, Review, Reviewed, SealedOrder,
    Timestamp,
};
use serde::Deserialize;
use serde_json::json;

use crate::guard::name;
use crate::mapping::{self, record_id};
use crate::odoo::{Odoo, Told};
use crate::rpc::{CallError, Session};
use crate::xmlrpc::Fault;

/// Payments of which one call asks what became.
const REVIEWED_PER_CALL: usize = 200;

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

/// What the action that reviews answers of one order: at most one booking, and at most one figure,
/// none for a bill that is not there.
#[derive(Debug, Deserialize)]
struct ReviewedRecord {
    booked: Vec<BookedRecord>,
    overpaid: Vec<OverpaidRecord>,
}

#[derive(Debug, Deserialize)]
struct OverpaidRecord {
    amount: String,
    currency: String,
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
        let wanted = order.order();
        self.check_configured(&wanted.company, &wanted.erp_company)?;
        let action = self.action_of_order(name::PAY).await?;
        let told = json!({ "order": order.text(), "seal": order.seal() });
        let answer: Told<Looked> = self.carry(&self.payer, action, told).await?;
        let answer = answer.countersign;
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

    /// What became of booked payments, by the table of orders and the records of now.
    pub(crate) async fn review_payments(
        &self,
        wanted: &Review,
    ) -> Result<Vec<Reviewed>, ReadError> {
        let company = self.erp_company(&wanted.company)?;
        let mut found = BTreeMap::new();
        let known: Vec<_> = wanted
            .orders
            .iter()
            .filter(|(_, bill)| record_id(bill.as_str()).is_some())
            .map(|(marker, bill)| (marker.to_hex(), bill.as_str()))
            .collect();
        for some in known.chunks(REVIEWED_PER_CALL) {
            let told = json!({ "company": company.to_string(), "orders": some });
            let answer: Told<Vec<ReviewedRecord>> = self.run_as_payer(name::REVIEW, told).await?;
            if answer.countersign.len() != some.len() {
                let what = "a review tells of other payments than asked".to_owned();
                return Err(ReadError::Malformed { what });
            }
            found.extend(some.iter().cloned().zip(answer.countersign));
        }
        let orders = wanted.orders.iter();
        orders
            .map(|(marker, bill)| {
                let record = found.get(&(marker.to_hex(), bill.as_str()));
                reviewed(marker, record).ok_or_else(|| ReadError::Malformed {
                    what: "what became of a payment cannot be read".to_owned(),
                })
            })
            .collect()
    }

    async fn run_as_payer<T: serde::de::DeserializeOwned>(
        &self,
        action: &str,
        told: serde_json::Value,
    ) -> Result<Told<T>, ReadError> {
        self.run_as(&self.payer, Identity::Payer, action, told).await
    }

    /// Runs an action that only answers.
    pub(crate) async fn run_as<T: serde::de::DeserializeOwned>(
        &self,
        session: &Session,
        identity: Identity,
        action: &str,
        told: serde_json::Value,
    ) -> Result<Told<T>, ReadError> {
        let id = self.find_action(action).await?.ok_or_else(|| ReadError::Unavailable {
            reason: format!("the guard in Odoo has no `{action}`: run `countersign odoo install`"),
        })?;
        let answer = session.run(id, told).await;
        if answer.as_ref().is_err_and(CallError::may_be_stale) {
            self.forget_actions().await;
        }
        answer.map_err(|error| error.of_read(identity))
    }

    pub(crate) fn check_configured(
        &self,
        company: &CompanyId,
        erp_company: &ErpCompanyId,
    ) -> Result<(), OrderError> {
        let configured = self.companies.get(company).map(i32::to_string);
        if configured.as_deref() == Some(erp_company.as_str()) {
            return Ok(());
        }
        let reason = format!("company `{company}` is not configured so");
        Err(OrderError::NotSent { reason })
    }

    /// The action that carries an order out.
    pub(crate) async fn action_of_order(&self, name: &str) -> Result<i32, OrderError> {
        let not_sent = |reason: String| OrderError::NotSent { reason };
        self.find_action(name)
            .await
            .map_err(|error| not_sent(format!("the guard was not found: {error}")))?
            .ok_or_else(|| {
                not_sent(format!(
                    "the guard in Odoo has no `{name}`: run `countersign odoo install`"
                ))
            })
    }

    /// Hands what was sealed to an action, once.
    pub(crate) async fn carry<T: serde::de::DeserializeOwned>(
        &self,
        session: &Session,
        action: i32,
        told: serde_json::Value,
    ) -> Result<Told<T>, OrderError> {
        let answer = session.run(action, told).await;
        if answer.as_ref().is_err_and(CallError::may_be_stale) {
            self.forget_actions().await;
        }
        answer.map_err(order_error)
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

fn reviewed(marker: &Marker, record: Option<&ReviewedRecord>) -> Option<Reviewed> {
    let (mut booked, mut overpaid_minor) = (None, 0);
    if let Some(record) = record {
        if let [payment] = record.booked.as_slice() {
            booked = Some(of_record(payment)?);
        }
        if let [overpaid] = record.overpaid.as_slice() {
            let currency = Currency::from_code(&overpaid.currency).ok()?;
            overpaid_minor = mapping::amount(&overpaid.amount, currency)?.minor();
        }
    }
    Some(Reviewed { marker: marker.clone(), booked, overpaid_minor })
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
pub(crate) mod tests;
