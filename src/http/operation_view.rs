//! An operation as JSON (API 3), as a caller with a mandate sees it: values masked, of the facts
//! only those that agents see, of the receipt only its hash.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use countersign_erp_source::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::domain::decision::{Level, Stage};
use crate::domain::operation::{Operation, OperationResult, Origin, Param, Status};

/// The members of an operation, in the order in which they are sent.
#[derive(Debug, Serialize)]
pub(super) struct OperationView<'a> {
    id: &'a str,
    action: &'a str,
    status: &'static str,
    company: &'a str,
    principal: &'a str,
    agent: &'a str,
    decision: DecisionView<'a>,
    operation_hash: Option<&'a str>,
    params: BTreeMap<&'a str, ParamView<'a>>,
    facts: BTreeMap<&'a str, &'a Value>,
    approval: Option<ApprovalView>,
    result: Option<&'a OperationResult>,
    receipt: ReceiptView<'a>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct DecisionView<'a> {
    effect: &'static str,
    stage: &'static str,
    reasons: &'a [String],
    detail: &'a str,
    policy: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ParamView<'a> {
    value: &'a str,
    origin: Origin,
    #[serde(rename = "ref")]
    reference: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ApprovalView {
    level: &'static str,
    url: String,
    expires_at: Option<Timestamp>,
    granted_by: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ReceiptView<'a> {
    hash: &'a str,
}

impl<'a> OperationView<'a> {
    /// The operation for its own agent.
    pub(super) fn for_agent(operation: &'a Operation, public_url: &str) -> Self {
        let (origins, decision) = (&operation.origins, &operation.decision);
        let substance = &operation.substance;
        Self {
            id: operation.id.as_str(),
            action: &operation.action,
            status: operation.status.code(),
            company: origins.company.as_str(),
            principal: origins.principal.as_str(),
            agent: origins.agent.as_str(),
            decision: DecisionView {
                effect: decision.effect.code(),
                stage: decision.stage.code(),
                reasons: &decision.reasons,
                detail: &decision.detail,
                policy: decision.policy.as_deref(),
            },
            operation_hash: substance.hash.as_deref(),
            params: substance
                .params
                .iter()
                .map(|(name, param)| (name.as_str(), masked(param)))
                .collect(),
            facts: substance
                .facts
                .iter()
                .filter(|(_, fact)| fact.agents_see)
                .map(|(name, fact)| (name.as_str(), &fact.value))
                .collect(),
            approval: approval(operation, public_url),
            result: operation.result.as_ref(),
            receipt: ReceiptView { hash: &operation.receipt.hash },
            created_at: operation.created_at,
            updated_at: operation.updated_at,
        }
    }
}

fn masked(param: &Param) -> ParamView<'_> {
    ParamView {
        value: &param.masked,
        origin: param.origin,
        reference: &param.reference,
        bound: param.bound.as_deref(),
    }
}

/// What a pending operation waits for. Nobody is asked about any other.
fn approval(operation: &Operation, public_url: &str) -> Option<ApprovalView> {
    if operation.status != Status::Pending {
        return None;
    }
    let level = match operation.level {
        Level::None => return None,
        Level::StepUp => "step_up",
        Level::FourEyes => "four_eyes",
    };
    let base = public_url.trim_end_matches('/');
    Some(ApprovalView {
        level,
        url: format!("{base}/console/operations/{}", operation.id),
        expires_at: operation.waits_until,
        granted_by: Vec::new(),
    })
}

/// The HTTP status of an operation as the answer to a call that moves it.
pub(super) fn http_status(operation: &Operation) -> StatusCode {
    match operation.status {
        Status::Prepared
        | Status::Failed
        | Status::Rejected
        | Status::Expired
        | Status::Cancelled => StatusCode::OK,
        Status::Executed => StatusCode::CREATED,
        Status::Pending | Status::Executing | Status::Unknown => StatusCode::ACCEPTED,
        Status::Denied => match operation.decision.stage {
            Stage::Contract => StatusCode::UNPROCESSABLE_ENTITY,
            Stage::Error => StatusCode::SERVICE_UNAVAILABLE,
            Stage::Authn
            | Stage::Provenance
            | Stage::Delegation
            | Stage::Budget
            | Stage::Policy
            | Stage::Approval
            | Stage::Execution => StatusCode::FORBIDDEN,
        },
    }
}
