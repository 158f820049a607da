//! An operation as JSON (API 3). A caller with a mandate sees values masked, of the facts only those
//! that agents see, of the receipt only its hash; a signed-in human sees all.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use countersign_erp_source::{AccountNumber, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::call::{Content, Reply};
use super::shapes::{self, one};
use crate::ap::reading::Eyes;
use crate::domain::decision::{Level, Stage};
use crate::domain::names::Name;
use crate::domain::operation::{Operation, OperationResult, Origin, Param, Status, VendorResult};

/// As the answer to a call that moves it, by its state.
pub(super) const NOT_DONE: Reply = Reply::new(
    StatusCode::OK,
    "It is `prepared`, `failed`, `rejected`, `expired` or `cancelled`.",
    OPERATION,
);
pub(super) const EXECUTED: Reply = Reply::new(StatusCode::CREATED, "It is `executed`.", OPERATION);
pub(super) const WAITS: Reply =
    Reply::new(StatusCode::ACCEPTED, "It is `pending`, `executing` or `unknown`.", OPERATION);
pub(super) const DENIED: Reply = Reply::new(StatusCode::FORBIDDEN, "It is `denied`.", OPERATION);
pub(super) const DENIED_AT_CONTRACT: Reply =
    Reply::new(StatusCode::UNPROCESSABLE_ENTITY, "It is `denied` at stage `contract`.", OPERATION);
pub(super) const DENIED_AT_ERROR: Reply = Reply::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "It is `denied` at stage `error`: nothing was done, and the same call may be made again.",
    OPERATION,
);
const OPERATION: Content = Content::Json(one::<OperationView<'static>>);

/// The members of an operation, in the order in which they are sent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Operation", description = "A proposal and all that became of it.")]
pub(super) struct OperationView<'a> {
    #[schemars(with = "shapes::OperationRef")]
    id: &'a str,
    /// As it was sent.
    action: &'a str,
    #[schemars(with = "shapes::StatusWord")]
    status: &'static str,
    company: &'a str,
    principal: &'a str,
    agent: Option<&'a str>,
    decision: DecisionView<'a>,
    /// What a vote is for.
    #[schemars(with = "Option<shapes::Sha256>")]
    operation_hash: Option<&'a str>,
    /// The values that the gateway looked up, by name; masked for agents.
    params: BTreeMap<&'a str, ParamView<'a>>,
    /// What was found out, by name; for agents a part of it.
    #[schemars(with = "BTreeMap<String, shapes::FactValue>")]
    facts: BTreeMap<&'a str, &'a Value>,
    /// When that was found out, for the decision that is shown. The ERP may have been edited since:
    /// the next decision, after a vote at the latest, finds everything out anew.
    #[schemars(with = "Option<shapes::Time>")]
    facts_at: Option<Timestamp>,
    /// What humans look at before they vote: the ERP's own ids and figures.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    records: BTreeMap<&'a str, &'a str>,
    approval: Option<ApprovalView>,
    #[schemars(with = "Option<OperationResult>")]
    result: Option<Value>,
    receipt: ReceiptView<'a>,
    #[schemars(with = "shapes::Time")]
    created_at: Timestamp,
    #[schemars(with = "shapes::Time")]
    updated_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Decision")]
struct DecisionView<'a> {
    #[schemars(with = "shapes::EffectWord")]
    effect: &'static str,
    #[schemars(with = "shapes::StageWord")]
    stage: &'static str,
    /// Stable codes; at stage `policy` ids of policies.
    reasons: &'a [String],
    /// For whoever has to act on it.
    detail: &'a str,
    /// The digest of the policies, where they were asked.
    policy: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Param")]
struct ParamView<'a> {
    value: &'a str,
    origin: Origin,
    /// Which record.
    #[serde(rename = "ref")]
    reference: &'a str,
    /// With `bounded_by_system_of_record`, the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
struct ApprovalView {
    #[schemars(with = "shapes::LevelWord")]
    level: &'static str,
    url: String,
    #[schemars(with = "Option<shapes::Time>")]
    expires_at: Option<Timestamp>,
    granted_by: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReceiptRef")]
struct ReceiptView<'a> {
    /// For humans.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    #[schemars(with = "shapes::Sha256")]
    hash: &'a str,
}

impl<'a> OperationView<'a> {
    /// The operation as those eyes see it: its own agent's, or a human's of its company.
    pub(super) fn of(operation: &'a Operation, eyes: Eyes, public_url: &str) -> Self {
        let (origins, decision) = (&operation.origins, &operation.decision);
        let substance = &operation.substance;
        Self {
            id: operation.id.as_str(),
            action: &operation.action,
            status: operation.status.code(),
            company: origins.company.as_str(),
            principal: origins.principal.as_str(),
            agent: origins.agent().map(Name::as_str),
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
                .map(|(name, param)| (name.as_str(), param_view(eyes, param)))
                .collect(),
            facts: substance
                .facts
                .iter()
                .filter(|(_, fact)| eyes == Eyes::Human || fact.agents_see)
                .map(|(name, fact)| (name.as_str(), &fact.value))
                .collect(),
            facts_at: substance.facts.values().map(|fact| fact.at).max(),
            records: records(eyes, operation),
            approval: approval(operation, public_url),
            result: operation.result.as_ref().map(|result| result_view(eyes, result)),
            receipt: ReceiptView {
                seq: (eyes == Eyes::Human).then_some(operation.receipt.seq),
                hash: &operation.receipt.hash,
            },
            created_at: operation.created_at,
            updated_at: operation.updated_at,
        }
    }
}

/// The records that a human sees. The account's fingerprint says nothing to anybody.
fn records(eyes: Eyes, operation: &Operation) -> BTreeMap<&str, &str> {
    let records = &operation.substance.records;
    records
        .iter()
        .filter(|(name, _)| eyes == Eyes::Human && *name != "account_fingerprint")
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// What came of it; an account number masked for agents.
fn result_view(eyes: Eyes, result: &OperationResult) -> Value {
    let shown = match result {
        OperationResult::Payment(_) => result.clone(),
        OperationResult::Vendor(vendor) => {
            let iban = vendor.iban.as_deref().map(|iban| match eyes {
                Eyes::Human => iban.to_owned(),
                Eyes::Agent => AccountNumber::from_erp(iban).masked(),
            });
            let phone = vendor.phone.clone().filter(|_| eyes == Eyes::Human);
            OperationResult::Vendor(VendorResult { iban, phone, ..vendor.clone() })
        }
    };
    serde_json::to_value(shown).unwrap_or(Value::Null)
}

fn param_view(eyes: Eyes, param: &Param) -> ParamView<'_> {
    ParamView {
        value: match eyes {
            Eyes::Human => param.blind.as_ref().unwrap_or(&param.value),
            Eyes::Agent => &param.masked,
        },
        origin: param.origin,
        reference: &param.reference,
        bound: param.bound.as_deref(),
    }
}

/// What a pending operation waits for, or who approved one that has left that state. Nobody is asked
/// about any other.
fn approval(operation: &Operation, public_url: &str) -> Option<ApprovalView> {
    if operation.status != Status::Pending && operation.granted_by.is_empty() {
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
        granted_by: operation.granted_by.clone(),
    })
}

/// The HTTP status of an operation as the answer to a call that moves it.
pub(super) fn http_status(operation: &Operation) -> StatusCode {
    match operation.status {
        // A commit that met an error: nothing was done, and it may be sent again.
        Status::Prepared if operation.decision.stage == Stage::Error => {
            StatusCode::SERVICE_UNAVAILABLE
        }
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

#[cfg(test)]
mod tests {
    use countersign_erp_source::CompanyId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::domain::decision::Effect;
    use crate::domain::names::{MandateId, OperationId};
    use crate::domain::operation::{Decision, KeptFact, Origins, ReceiptRef, Substance, Through};

    fn pending() -> Operation {
        let at = Timestamp::from_millis(1_793_520_000_123);
        let name = |text: &str| Name::parse(text).unwrap();
        let fact =
            |value: Value, agents_see| KeptFact { value, source: "erp".to_owned(), at, agents_see };
        let param = Param {
            value: "FR7630006000011234567890189".to_owned(),
            masked: "FR76…0189".to_owned(),
            origin: Origin::SystemOfRecord,
            reference: "vendors/V-100".to_owned(),
            bound: None,
            blind: None,
        };
        Operation {
            id: OperationId::from_uuid(Uuid::from_u128(7)),
            action: "invoice.pay".to_owned(),
            origins: Origins {
                company: CompanyId::new("blue-sparrow").unwrap(),
                principal: name("marie"),
                through: Through::Agent {
                    agent: name("ap-agent"),
                    mandate: MandateId::from_uuid(Uuid::from_u128(8)),
                },
            },
            key: "k".to_owned(),
            request_digest: String::new(),
            args: "{}".to_owned(),
            prepare: false,
            status: Status::Pending,
            decision: Decision {
                effect: Effect::FourEyes,
                stage: Stage::Policy,
                reasons: vec!["fresh-account-needs-four-eyes".to_owned()],
                detail: "waits".to_owned(),
                policy: Some("sha256:00".to_owned()),
            },
            substance: Substance {
                params: [("payee_iban".to_owned(), param)].into(),
                facts: [
                    ("iban_age_days".to_owned(), fact(json!(2), true)),
                    ("vendor_auto_24h_e2".to_owned(), fact(json!(124_000), false)),
                ]
                .into(),
                hash: Some("ab".to_owned()),
                records: [
                    ("account_fingerprint".to_owned(), "f0".to_owned()),
                    ("vendor_name".to_owned(), "ACME SAS".to_owned()),
                ]
                .into(),
                ..Substance::default()
            },
            level: Level::FourEyes,
            barred_by: vec!["fresh-account-needs-four-eyes".to_owned()],
            granted_by: Vec::new(),
            waits_until: Some(at),
            result: None,
            receipt: ReceiptRef { seq: 41, hash: "cd".to_owned() },
            created_at: at,
            updated_at: at,
            version: 1,
        }
    }

    #[test]
    fn an_agent_sees_its_operation_masked() {
        let operation = pending();
        let view = OperationView::of(&operation, Eyes::Agent, "https://pay.example.com/");
        let text = serde_json::to_string(&view).unwrap();
        let expected = concat!(
            r#"{"id":"op_00000000000000000000000000000007","action":"invoice.pay","#,
            r#""status":"pending","company":"blue-sparrow","principal":"marie","#,
            r#""agent":"ap-agent","decision":{"effect":"four_eyes","stage":"policy","#,
            r#""reasons":["fresh-account-needs-four-eyes"],"detail":"waits","#,
            r#""policy":"sha256:00"},"operation_hash":"ab","params":{"payee_iban":"#,
            r#"{"value":"FR76…0189","origin":"system_of_record","ref":"vendors/V-100"}},"#,
            r#""facts":{"iban_age_days":2},"facts_at":"2026-11-01T08:00:00.123Z","#,
            r#""approval":{"level":"four_eyes","url":"#,
            r#""https://pay.example.com/console/operations/op_00000000000000000000000000000007","#,
            r#""expires_at":"2026-11-01T08:00:00.123Z","granted_by":[]},"result":null,"#,
            r#""receipt":{"hash":"cd"},"created_at":"2026-11-01T08:00:00.123Z","#,
            r#""updated_at":"2026-11-01T08:00:00.123Z"}"#,
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_human_sees_whole_values_all_facts_and_the_receipt() {
        let operation = pending();
        let human = OperationView::of(&operation, Eyes::Human, "https://pay.example.com/");
        let human = serde_json::to_value(&human).unwrap();
        assert_eq!(human["params"]["payee_iban"]["value"], "FR7630006000011234567890189");
        assert_eq!(human["facts"], json!({ "iban_age_days": 2, "vendor_auto_24h_e2": 124_000 }));
        assert_eq!(human["receipt"], json!({ "seq": 41, "hash": "cd" }));
        assert_eq!(human["records"], json!({ "vendor_name": "ACME SAS" }));
        // All else is the same.
        let agent = OperationView::of(&operation, Eyes::Agent, "https://pay.example.com/");
        let mut agent = serde_json::to_value(&agent).unwrap();
        for name in ["params", "facts", "records", "receipt"] {
            agent[name] = human[name].clone();
        }
        assert_eq!(agent, human);
    }

    #[test]
    fn a_denial_has_the_status_of_its_stage() {
        let denied = |stage| {
            let mut operation = pending();
            operation.status = Status::Denied;
            operation.decision.stage = stage;
            http_status(&operation).as_u16()
        };
        assert_eq!(http_status(&pending()).as_u16(), 202);
        assert_eq!(denied(Stage::Contract), 422);
        assert_eq!(denied(Stage::Error), 503);
        assert_eq!(denied(Stage::Execution), 403);
    }
}
