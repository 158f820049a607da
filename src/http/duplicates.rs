//! `POST /v1/bills/{invoice_ref}/not-duplicate`: an approver clears a suspicion (API 4).

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use countersign_erp_source::BillId;
use serde_json::{Value, json};

use super::Shared;
use super::body::JsonBytes;
use super::caller::HumanCaller;
use super::company::{About, requires};
use super::fields::{Fields, invalid};
use super::problem::{self, Problem};
use super::query::Segments;
use crate::ap::duplicates::NotCleared;
use crate::domain::reason::Reason;
use crate::domain::role::Role;

/// Clears the suspicion that a bill and another one are the same.
pub(super) async fn clear(
    State(shared): State<Shared>,
    HumanCaller(human): HumanCaller,
    Segments(bill): Segments<String>,
    uri: Uri,
    JsonBytes(body): JsonBytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let About { company, .. } = About::by_human(&human, &uri, &[])?;
    requires(&human, &company, Role::Approver)?;
    let fields = Fields::read(&body, &["other", "reason"])?;
    let bill = BillId::new(bill).map_err(|_bad| Problem::not_found())?;
    let other = fields.parse("other", "the id of a bill", |text| BillId::new(text).ok())?;
    let reason = fields.text("reason")?.to_owned();
    let (ap, by) = (shared.state().ap.clone(), human.name().clone());
    let work = async move { ap.clear_duplicate(&company, &by, &bill, &other, &reason).await };
    let cleared = shared.gateway().spawn(work).await.map_err(|fault| {
        problem::log(&fault);
        Problem::internal()
    })??;
    let answer = json!({
        "invoice_ref": cleared.bill, "other": cleared.other, "cleared_by": cleared.cleared_by.as_str(),
        "reason": cleared.reason, "cleared_at": cleared.at,
    });
    Ok((StatusCode::CREATED, Json(answer)))
}

impl From<NotCleared> for Problem {
    fn from(error: NotCleared) -> Self {
        let (code, text) = (error.code(), error.to_string());
        match &error {
            NotCleared::SameBill => invalid("other", "another bill"),
            NotCleared::BadReason => invalid("reason", "a text of 1 to 500 characters"),
            NotCleared::UnknownBill(_) => Self::not_found(),
            NotCleared::OtherVendor => Self::new(StatusCode::CONFLICT, code, text),
            NotCleared::NotAnApprover | NotCleared::SelfApproval => Self::forbidden(code, text),
            NotCleared::Erp(_) => {
                problem::log(&error);
                Self::unavailable(Reason::ErpUnavailable)
            }
            NotCleared::Store(_) => {
                problem::log(&error);
                Self::unavailable(Reason::StoreUnavailable)
            }
        }
    }
}
