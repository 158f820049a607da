//! What callers read: bills and vendors of their company, and agents their own mandate.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use chrono::NaiveDate;
use countersign_erp_source::{Amount, BillId, Timestamp, VendorId};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::call::{Call, Field, Reply};
use super::caller::{Agent, Anyone};
use super::code::Code;
use super::company::About;
use super::forms;
use super::problem::{self, Problem};
use super::query::{CURSOR, LIMIT, List, NoParams, Segments};
use super::shapes::{self, one, page};
use crate::ap::reading::{BillFilter, BillView, ReadingError, VendorView};

/// The states that a list of bills can be narrowed to: what is no bill yet, or no more, is in none.
const STATES: [&str; 2] = ["open", "paid"];
/// What a list of bills can be narrowed by.
const BILL_PARAMS: [Field; 6] = [
    Field::may("state", forms::bill_state),
    Field::may("vendor_id", forms::erp_id),
    Field::may("vendor_reference", forms::vendor_reference),
    Field::may("due_before", forms::date),
    LIMIT,
    CURSOR,
];

pub(super) const BILLS: Call = Call::by_both("listBills", "The bills of the company")
    .of_company()
    .asks(&BILL_PARAMS)
    .answers(&[Reply::ok("A page.", page::<BillView>)])
    .refuses(&[Code::ERP_UNAVAILABLE]);

pub(super) const BILL: Call = Call::by_both("getBill", "A bill")
    .of_company()
    .answers(&[Reply::ok("The bill.", one::<BillView>)])
    .refuses(&[Code::ERP_UNAVAILABLE]);

pub(super) const VENDOR: Call = Call::by_both("getVendor", "A vendor")
    .of_company()
    .answers(&[Reply::ok("The vendor.", one::<VendorView>)])
    .refuses(&[Code::ERP_UNAVAILABLE]);

pub(super) const MANDATE: Call = Call::by_agents("getCurrentMandate", "The mandate of the call")
    .answers(&[Reply::ok("The mandate.", one::<CurrentView>)])
    .refuses(&[Code::ERP_UNAVAILABLE]);

/// What the caller's mandate grants, and what is left of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CurrentMandate")]
pub(super) struct CurrentView {
    #[schemars(with = "shapes::MandateRef")]
    id: String,
    scopes: Vec<String>,
    company: String,
    principal: String,
    agent: String,
    source_account: SourceView,
    #[schemars(with = "shapes::CurrencyCode")]
    currency: &'static str,
    /// `null` where there is no such limit.
    budget: Option<BudgetView>,
    /// `null` where there is no such limit.
    calls: Option<CallsView>,
    #[schemars(with = "shapes::Time")]
    expires_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SourceAccount")]
struct SourceView {
    journal: String,
    /// Masked; `null` where the journal holds another account now.
    iban: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Budget")]
struct BudgetView {
    #[schemars(with = "shapes::Money")]
    amount: String,
    #[schemars(with = "shapes::Money")]
    left: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Calls")]
struct CallsView {
    max: i64,
    left: i64,
}

/// A page of bills.
#[derive(Debug, Serialize)]
pub(super) struct BillsView {
    items: Vec<BillView>,
    next_cursor: Option<String>,
}

impl From<ReadingError> for Problem {
    fn from(error: ReadingError) -> Self {
        problem::log(&error);
        match error {
            ReadingError::Erp(_) => Self::erp_unavailable(),
            ReadingError::Store(_) => Self::store_unavailable(),
        }
    }
}

/// `GET /v1/bills`
pub(super) async fn bills(
    State(shared): State<Shared>,
    caller: Anyone,
    uri: Uri,
) -> Result<Json<BillsView>, Problem> {
    let About { company, eyes, params } = About::read(&caller, &uri, &BILL_PARAMS)?;
    let state = |text: &str| STATES.contains(&text).then(|| text.to_owned());
    let date = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let vendor = |text: &str| VendorId::new(text).ok();
    let id = |text: String| {
        let bad = || Problem::new(Code::INVALID_QUERY, "`cursor` is not one of ours");
        BillId::new(text).ok().ok_or_else(bad)
    };
    let filter = BillFilter {
        state: params.parse("state", "`open` or `paid`", state)?,
        vendor: params.parse("vendor_id", "the id of a vendor", vendor)?,
        reference: params.text("vendor_reference").map(ToOwned::to_owned),
        due_before: params.parse("due_before", "a date like `2026-12-31`", date)?,
        after: params.after(List::Bills)?.map(id).transpose()?,
        limit: params.limit()?,
    };
    let (items, after) = shared.state().ap.bills(&company, &filter, eyes).await?;
    let next_cursor = after.map(|last| List::Bills.cursor(last.as_str()));
    Ok(Json(BillsView { items, next_cursor }))
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
) -> Result<Json<CurrentView>, Problem> {
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
        BudgetView { amount: most.to_decimal_string(), left: left.to_decimal_string() }
    });
    let left = |most: i64| most.saturating_sub(calls).max(0);
    let calls = mandate.calls_max.map(|most| CallsView { max: most, left: left(most) });
    Ok(Json(CurrentView {
        id: mandate.id.as_str().to_owned(),
        scopes: mandate.scopes.iter().cloned().collect(),
        company: mandate.company.to_string(),
        principal: mandate.principal.as_str().to_owned(),
        agent: mandate.agent.as_str().to_owned(),
        source_account: SourceView {
            journal: mandate.journal.to_string(),
            iban: account.map(|account| account.iban.masked()),
        },
        currency: mandate.currency.code(),
        budget,
        calls,
        expires_at: mandate.expires_at,
    }))
}
