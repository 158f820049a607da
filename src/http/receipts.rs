//! Receipts, for the auditors of a company (API 4). Each as its exact bytes and its hashes, so that
//! it can be held against an export.

use std::str::FromStr as _;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::call::{Call, Field, Reply};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::{About, requires};
use super::forms;
use super::problem::{self, Problem};
use super::query::{LIMIT, NoParams, Segments};
use super::shapes;
use crate::domain::role::Role;
use crate::gateway::oversight::{OversightError, ReceiptShown};

/// What the list is asked with.
const AFTER: [Field; 2] = [Field::may("after", forms::seq), LIMIT];

pub(super) const LIST: Call =
    Call::by_humans("listReceipts", "The receipts of a company, in order")
        .of_company()
        .asks(&AFTER)
        .answers(&[Reply::ok("A page.", shapes::one::<ReceiptsView>)])
        .refuses(&[Code::NOT_AN_AUDITOR]);

pub(super) const ONE: Call = Call::by_humans("getReceipt", "One receipt")
    .answers(&[Reply::ok("The receipt.", shapes::one::<ReceiptView>)])
    .refuses(&[Code::NOT_AN_AUDITOR]);

/// A receipt in its place in the chain. `hash` and `receipt` are as in a line of an export.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
pub(super) struct ReceiptView {
    seq: i64,
    #[schemars(with = "shapes::Sha256")]
    hash: String,
    #[schemars(with = "shapes::Sha256")]
    prev_hash: String,
    #[schemars(with = "shapes::Sha256")]
    content_hash: String,
    /// The exact text that was hashed.
    receipt: String,
}

impl From<ReceiptShown> for ReceiptView {
    fn from(shown: ReceiptShown) -> Self {
        Self {
            seq: shown.seq,
            hash: shown.hash,
            prev_hash: shown.prev,
            content_hash: shown.content,
            receipt: shown.text,
        }
    }
}

/// One page of receipts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipts")]
pub(super) struct ReceiptsView {
    items: Vec<ReceiptView>,
    /// After which number the next page begins; `null` on the last one.
    next_after: Option<i64>,
}

/// `GET /v1/receipts`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Json<ReceiptsView>, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &AFTER)?;
    requires(&human, &company, Role::Auditor)?;
    let after = params.parse("after", "the number of a receipt", number)?.unwrap_or(0);
    let (page, is_last) = shared.gateway().receipts_of(&company, after, params.limit()?).await?;
    let next_after = page.last().filter(|_| !is_last).map(|last| last.seq);
    let items = page.into_iter().map(ReceiptView::from).collect();
    Ok(Json(ReceiptsView { items, next_after }))
}

/// `GET /v1/receipts/{seq}`
pub(super) async fn one(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(seq): Segments<String>,
    _no_params: NoParams,
) -> Result<Json<ReceiptView>, Problem> {
    let seq = number(&seq).ok_or_else(Problem::not_found)?;
    let shown = shared.gateway().receipt_for(&human, seq).await?;
    Ok(Json(shown.into()))
}

/// A number as we write them: digits, without a sign.
fn number(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    i64::from_str(text).ok().filter(|_| digits)
}

impl From<OversightError> for Problem {
    fn from(error: OversightError) -> Self {
        match error {
            OversightError::NotFound => Self::not_found(),
            OversightError::NotAnAuditor => {
                Self::new(Code::NOT_AN_AUDITOR, "this takes an auditor of the company")
            }
            OversightError::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
        }
    }
}
