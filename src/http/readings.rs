//! What callers read: bills and vendors of their company, and agents their own mandate.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use chrono::NaiveDate;
use countersign_erp_source::{Amount, BillId, VendorId};
use serde_json::{Value, json};

use super::Shared;
use super::caller::{Agent, Anyone};
use super::company::About;
use super::problem::{self, Problem};
use super::query::{List, NoParams, Segments};
use crate::ap::reading::{BillFilter, BillView, ReadingError, VendorView};
use crate::domain::reason::Reason;

/// The states of a bill.
const STATES: [&str; 4] = ["draft", "open", "paid", "cancelled"];
/// What a list of bills can be narrowed by.
const BILL_PARAMS: [&str; 6] =
    ["state", "vendor_id", "vendor_reference", "due_before", "limit", "cursor"];

impl From<ReadingError> for Problem {
    fn from(error: ReadingError) -> Self {
        problem::log(&error);
        match error {
            ReadingError::Erp(_) => Self::unavailable(Reason::ErpUnavailable),
            ReadingError::Store(_) => Self::unavailable(Reason::StoreUnavailable),
        }
    }
}

/// `GET /v1/bills`
pub(super) async fn bills(
    State(shared): State<Shared>,
    caller: Anyone,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let About { company, eyes, params } = About::read(&caller, &uri, &BILL_PARAMS)?;
    let state = |text: &str| STATES.contains(&text).then(|| text.to_owned());
    let date = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let vendor = |text: &str| VendorId::new(text).ok();
    let id = |text: String| {
        let bad = || Problem::bad_request("invalid_query", "`cursor` is not one of ours");
        BillId::new(text).ok().ok_or_else(bad)
    };
    let filter = BillFilter {
        state: params.parse("state", "draft, open, paid or cancelled", state)?,
        vendor: params.parse("vendor_id", "the id of a vendor", vendor)?,
        reference: params.text("vendor_reference").map(ToOwned::to_owned),
        due_before: params.parse("due_before", "a date like `2026-12-31`", date)?,
        after: params.after(List::Bills)?.map(id).transpose()?,
        limit: params.limit()?,
    };
    let (items, after) = shared.state().ap.bills(&company, &filter, eyes).await?;
    let next_cursor = after.map(|last| List::Bills.cursor(last.as_str()));
    Ok(Json(json!({ "items": items, "next_cursor": next_cursor })))
}

/// `GET /v1/bills/{invoice_ref}`
pub(super) async fn bill(
    State(shared): State<Shared>,
    caller: Anyone,
    Segments(bill): Segments<String>,
    uri: Uri,
) -> Result<Json<BillView>, Problem> {
    let About { company, eyes, .. } = About::read(&caller, &uri, &[])?;
    let bill = BillId::new(bill).map_err(|_bad| Problem::not_found())?;
    let found = shared.state().ap.bill(&company, &bill, eyes).await?;
    found.map(Json).ok_or_else(Problem::not_found)
}

/// `GET /v1/vendors/{vendor_id}`
pub(super) async fn vendor(
    State(shared): State<Shared>,
    caller: Anyone,
    Segments(vendor): Segments<String>,
    uri: Uri,
) -> Result<Json<VendorView>, Problem> {
    let About { company, eyes, .. } = About::read(&caller, &uri, &[])?;
    let vendor = VendorId::new(vendor).map_err(|_bad| Problem::not_found())?;
    let found = shared.state().ap.vendor(&company, &vendor, eyes).await?;
    found.map(Json).ok_or_else(Problem::not_found)
}

/// `GET /v1/mandates/current`
pub(super) async fn mandate(
    State(shared): State<Shared>,
    Agent(caller): Agent,
    _no_params: NoParams,
) -> Result<Json<Value>, Problem> {
    let (gateway, ap) = (shared.gateway(), &shared.state().ap);
    let mandate = &caller.mandate;
    let accounts = ap.ports().erp.source_accounts(&mandate.company).await;
    let accounts = accounts.map_err(ReadingError::Erp)?;
    // The mandate names the account by journal and fingerprint; the journal may hold another now.
    let account = accounts.iter().find(|account| {
        account.journal == mandate.journal
            && gateway.keys().fingerprint(&account.iban) == mandate.source_fingerprint
    });
    let (taken_minor, calls) = gateway.reserved(&caller).await?;
    let budget = mandate.budget.map(|most| {
        let left = most.minor().saturating_sub(taken_minor).max(0);
        let left = Amount::from_minor(left, most.currency());
        json!({ "amount": most.to_decimal_string(), "left": left.to_decimal_string() })
    });
    let calls = mandate
        .calls_max
        .map(|most| json!({ "max": most, "left": most.saturating_sub(calls).max(0) }));
    Ok(Json(json!({
        "id": mandate.id.as_str(),
        "scopes": mandate.scopes,
        "company": mandate.company,
        "principal": mandate.principal.as_str(),
        "agent": mandate.agent.as_str(),
        "source_account": {
            "journal": mandate.journal,
            "iban": account.map(|account| account.iban.masked()),
        },
        "currency": mandate.currency.code(),
        "budget": budget,
        "calls": calls,
        "expires_at": mandate.expires_at,
    })))
}
