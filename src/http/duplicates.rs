//! `POST /v1/bills/{invoice_ref}/not-duplicate`: an approver clears a suspicion (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use countersign_erp_source::{BillId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::body::JsonBytes;
use super::call::{Call, Field, Reply, Takes};
use super::caller::HumanCaller;
use super::code::Code;
use super::company::{About, requires};
use super::fields::{Fields, invalid};
use super::forms;
use super::problem::{self, Problem};
use super::query::Segments;
use super::shapes::{self, one};
use crate::ap::duplicates::NotCleared;
use crate::domain::role::Role;

/// The members of the body.
const CLEARANCE: [Field; 2] =
    [Field::must("other", forms::erp_id), Field::must("reason", forms::text)];

pub(super) const CLEAR: Call =
    Call::by_humans("clearDuplicate", "Says that a bill and another one are two")
        .of_company()
        .takes(Takes::Members(&CLEARANCE))
        .answers(&[Reply::created("Cleared.", one::<ClearanceView>)])
        .refuses(&[
            Code::NOT_AN_APPROVER,
            Code::SELF_APPROVAL,
            Code::OTHER_VENDOR,
            Code::ERP_UNAVAILABLE,
        ]);

/// The word of an approver that two bills are two.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Clearance")]
pub(super) struct ClearanceView {
    invoice_ref: String,
    other: String,
    cleared_by: String,
    reason: String,
    #[schemars(with = "shapes::Time")]
    cleared_at: Timestamp,
}

/// Clears the suspicion that a bill and another one are the same.
pub(super) async fn clear(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(bill): Segments<String>,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<(StatusCode, Json<ClearanceView>), Problem> {
    let About { company, .. } = About::by_human(&human, &uri, &[])?;
    requires(&human, &company, Role::Approver)?;
    let fields = Fields::read(&body, &CLEARANCE)?;
    let bill = BillId::new(bill).map_err(|_bad| Problem::not_found())?;
    let other = fields.parse("other", "the id of a bill", |text| BillId::new(text).ok())?;
    let reason = fields.text("reason")?.to_owned();
    let (ap, by) = (shared.state().ap.clone(), human.name().clone());
    let work = async move { ap.clear_duplicate(&company, &by, &bill, &other, &reason).await };
    let cleared = shared.gateway().spawn(work).await.map_err(|fault| {
        problem::log(&fault);
        Problem::internal()
    })??;
    let answer = ClearanceView {
        invoice_ref: cleared.bill.to_string(),
        other: cleared.other.to_string(),
        cleared_by: cleared.cleared_by.as_str().to_owned(),
        reason: cleared.reason,
        cleared_at: cleared.at,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

impl From<NotCleared> for Problem {
    fn from(error: NotCleared) -> Self {
        let refused = |code| Self::new(code, error.to_string());
        match &error {
            NotCleared::SameBill => invalid("other", "another bill"),
            NotCleared::BadReason => invalid("reason", "a text of 1 to 500 characters"),
            NotCleared::UnknownBill(_) => Self::not_found(),
            NotCleared::OtherVendor => refused(Code::OTHER_VENDOR),
            NotCleared::NotAnApprover => refused(Code::NOT_AN_APPROVER),
            NotCleared::SelfApproval => refused(Code::SELF_APPROVAL),
            NotCleared::Erp(_) => {
                problem::log(&error);
                Self::erp_unavailable()
            }
            NotCleared::Store(_) => {
                problem::log(&error);
                Self::store_unavailable()
            }
        }
    }
}
