//! Receipts, for the auditors of a company (API 4). Each as its exact bytes and its hashes, so that
//! it can be held against an export.

use std::str::FromStr as _;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use serde_json::{Value, json};

use super::Shared;
use super::caller::HumanCaller;
use super::company::{About, requires};
use super::problem::{self, Problem};
use super::query::{NoParams, Segments};
use crate::domain::reason::Reason;
use crate::domain::role::Role;
use crate::gateway::oversight::{OversightError, ReceiptShown};

/// A receipt in its place in the chain. `hash` and `receipt` are as in a line of an export.
#[derive(Debug, Serialize)]
struct ReceiptView<'a> {
    seq: i64,
    hash: &'a str,
    prev_hash: &'a str,
    content_hash: &'a str,
    receipt: &'a str,
}

impl<'a> ReceiptView<'a> {
    fn of(shown: &'a ReceiptShown) -> Self {
        Self {
            seq: shown.seq,
            hash: &shown.hash,
            prev_hash: &shown.prev,
            content_hash: &shown.content,
            receipt: &shown.text,
        }
    }
}

/// `GET /v1/receipts`
pub(super) async fn list(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let About { company, params, .. } = About::by_human(&human, &uri, &["after", "limit"])?;
    requires(&human, &company, Role::Auditor)?;
    let after = params.parse("after", "the number of a receipt", number)?.unwrap_or(0);
    let (page, is_last) = shared.gateway().receipts_of(&company, after, params.limit()?).await?;
    let next_after = page.last().filter(|_| !is_last).map(|last| last.seq);
    let items: Vec<ReceiptView<'_>> = page.iter().map(ReceiptView::of).collect();
    Ok(Json(json!({ "items": items, "next_after": next_after })))
}

/// `GET /v1/receipts/{seq}`
pub(super) async fn one(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(seq): Segments<String>,
    _no_params: NoParams,
) -> Result<Json<Value>, Problem> {
    let seq = number(&seq).ok_or_else(Problem::not_found)?;
    let shown = shared.gateway().receipt_for(&human, seq).await?;
    Ok(Json(json!(ReceiptView::of(&shown))))
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
                Self::forbidden("not_an_auditor", "this takes an auditor of the company")
            }
            OversightError::Store(_) => {
                problem::log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
        }
    }
}
