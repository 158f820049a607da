//! An operation: one proposal and all that became of it, with the states it may go through.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::{Amount, CompanyId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decision::{Effect, Level, Stage};
use super::names::{CallbackId, MandateId, Name, OperationId};

/// The states of an operation (DESIGN 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Decided, nothing booked, waits for a commit. Holds no slot.
    Prepared,
    /// Waits for a human.
    Pending,
    /// Claimed; the ERP is being called, or will be.
    Executing,
    /// The ERP was called and its answer was lost.
    Unknown,
    /// Done in the ERP.
    Executed,
    /// Refused.
    Denied,
    /// Surely not booked, and will not be.
    Failed,
    /// A human said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// Withdrawn.
    Cancelled,
}

impl Status {
    /// All states.
    pub const ALL: [Self; 10] = [
        Self::Prepared,
        Self::Pending,
        Self::Executing,
        Self::Unknown,
        Self::Executed,
        Self::Denied,
        Self::Failed,
        Self::Rejected,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Unknown => "unknown",
            Self::Executed => "executed",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Whether it holds the one slot of its bill or vendor.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Executing | Self::Unknown)
    }

    /// Whether nothing will come of it any more.
    pub fn is_final(self) -> bool {
        !self.is_live() && self != Self::Prepared
    }

    /// Whether a step from this state to `next` exists at all. Every write of a state asks this.
    pub fn may_become(self, next: Self) -> bool {
        use Status::{
            Cancelled, Denied, Executed, Executing, Expired, Failed, Pending, Prepared, Rejected,
            Unknown,
        };
        match self {
            Prepared => matches!(next, Pending | Executing | Denied | Expired | Cancelled),
            Pending => matches!(next, Executing | Denied | Rejected | Expired | Cancelled),
            Executing => matches!(next, Executed | Failed | Unknown | Denied | Pending),
            Unknown => matches!(next, Executed | Executing | Failed),
            // A denial at stage `error` binds nothing: the same call decides anew.
            Denied => matches!(next, Prepared | Pending | Executing | Denied),
            Executed | Failed | Rejected | Expired | Cancelled => false,
        }
    }
}

/// Where the value of a parameter came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A claim of the mandate.
    Mandate,
    /// A record that the gateway itself read.
    SystemOfRecord,
    /// Between nothing and a bound that the gateway itself read.
    BoundedBySystemOfRecord,
    /// The caller's own word.
    Untrusted,
}

/// A parameter after resolution: the record's value, never the spelling that was sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The value, whole.
    pub value: String,
    /// What a caller with a mandate sees of it.
    pub masked: String,
    /// Where it came from.
    pub origin: Origin,
    /// Which record.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The bound, for [`Origin::BoundedBySystemOfRecord`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<String>,
    /// What humans see of it, where they must not see it whole yet: they are to hear it from somebody
    /// else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blind: Option<String>,
}

impl std::fmt::Debug for Param {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Param")
            .field("masked", &self.masked)
            .field("origin", &self.origin)
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

/// Parameters by name.
pub type Params = BTreeMap<String, Param>;

/// A fact as it is kept with the operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFact {
    /// Yes or no, a whole number, or a word.
    pub value: serde_json::Value,
    /// Where it was read.
    pub source: String,
    /// When.
    pub at: Timestamp,
    /// Whether a caller with a mandate sees it.
    pub agents_see: bool,
}

/// What was decided last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What it does.
    pub effect: Effect,
    /// Where it was decided.
    pub stage: Stage,
    /// Stable codes, or ids of policies.
    pub reasons: Vec<String>,
    /// A sentence for whoever has to act on it.
    pub detail: String,
    /// The digest of the policy text, where policy was asked.
    pub policy: Option<String>,
}

/// Who proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    /// The company.
    pub company: CompanyId,
    /// The mandate's principal, or the human who acts for himself.
    pub principal: Name,
    /// Who acts for the principal.
    pub through: Through,
}

/// Who acts for a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// An agent.
    Agent {
        /// The mandate's agent.
        agent: Name,
        /// The mandate of the newest call.
        mandate: MandateId,
    },
    /// The human himself.
    Nobody,
}

impl Origins {
    /// The agent, where one acts.
    pub fn agent(&self) -> Option<&Name> {
        match &self.through {
            Through::Agent { agent, .. } => Some(agent),
            Through::Nobody => None,
        }
    }

    /// The mandate of the newest call, where an agent acts.
    pub fn mandate(&self) -> Option<&MandateId> {
        match &self.through {
            Through::Agent { mandate, .. } => Some(mandate),
            Through::Nobody => None,
        }
    }

    /// The same, under another mandate of the same agent.
    #[must_use]
    pub fn under(&self, mandate: &MandateId) -> Self {
        let through = match &self.through {
            Through::Agent { agent, .. } => {
                Through::Agent { agent: agent.clone(), mandate: mandate.clone() }
            }
            Through::Nobody => Through::Nobody,
        };
        Self { through, ..self.clone() }
    }
}

/// What an operation claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// How much.
    pub amount: Amount,
    /// The most that may ever be claimed for the thing: pinned at its first claim.
    pub total: Amount,
}

/// What was resolved and found out, as far as the pipeline came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Substance {
    /// What it is about, for the one-live-operation rule: `bill/INV-2291`.
    pub thing: Option<String>,
    /// The vendor, for freezes.
    pub counterparty: Option<String>,
    /// The amount that it claims.
    pub amount: Option<Amount>,
    /// The resolved parameters.
    pub params: Params,
    /// The facts.
    pub facts: BTreeMap<String, KeptFact>,
    /// The hash that approvals are bound to.
    pub hash: Option<String>,
    /// The ERP's own record ids and figures that it is bound to, by name.
    pub records: BTreeMap<String, String>,
    /// Humans whose vote does not count for it, beside its principal: those who called the vendor.
    pub not_by: BTreeSet<Name>,
    /// The call-back that it rests on.
    pub callback: Option<CallbackId>,
}

/// An operation as the store holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// The action's name, as it was sent.
    pub action: String,
    /// Who proposed.
    pub origins: Origins,
    /// The caller's idempotency key.
    pub key: String,
    /// SHA-256 of the canonical proposal.
    pub request_digest: String,
    /// The `args` as they were sent.
    pub args: String,
    /// Whether it was sent to be prepared only.
    pub prepare: bool,
    /// Its state.
    pub status: Status,
    /// What was decided last.
    pub decision: Decision,
    /// What it is about.
    pub substance: Substance,
    /// The level that it needs or needed.
    pub level: Level,
    /// The rules that barred the levels below.
    pub barred_by: Vec<String>,
    /// The humans whose votes for it, as it stands, count.
    pub granted_by: Vec<String>,
    /// Until when a prepared or pending one waits.
    pub waits_until: Option<Timestamp>,
    /// What the ERP holds, as read back.
    pub result: Option<OperationResult>,
    /// Its newest receipt.
    pub receipt: ReceiptRef,
    /// When it was proposed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Counts its changes; every write compares it.
    pub version: i64,
}

impl Operation {
    /// The level that it holds on to while it waits or executes.
    pub fn held(&self) -> Held {
        Held { level: self.level, barred_by: self.barred_by.clone() }
    }
}

/// A level that was asked for, with the rules that asked. It never falls while an operation waits or
/// executes: who wants less proposes anew (API 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The level.
    pub level: Level,
    /// The rules that barred the levels below.
    pub barred_by: Vec<String>,
}

impl Held {
    /// Nothing was asked for before.
    pub const NOTHING: Self = Self { level: Level::None, barred_by: Vec::new() };
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What was sent may hold whole account numbers.
        f.debug_struct("Operation")
            .field("id", &self.id)
            .field("status", &self.status)
            .field("decision", &self.decision)
            .field("level", &self.level)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Where a receipt stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRef {
    /// Its number.
    pub seq: i64,
    /// The entry's hash in hexadecimal.
    pub hash: String,
}

/// What came of an executed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Result")]
pub enum OperationResult {
    /// A payment.
    Payment(PaymentResult),
    /// A change or a confirmation of a vendor's details.
    Vendor(VendorResult),
}

impl OperationResult {
    /// What a human says was done, of which the ERP itself could not be asked.
    pub fn unread(reference: &str, counterparty: &str, sum: Option<Sum>) -> Self {
        match sum {
            Some(sum) => Self::Payment(PaymentResult::unread(reference, sum.amount)),
            None => Self::Vendor(VendorResult {
                vendor_id: counterparty.to_owned(),
                account_ref: Some(reference.to_owned()),
                iban: None,
                phone: None,
                bills: Vec::new(),
            }),
        }
    }

    /// The record that it made or changed in the ERP.
    pub fn reference(&self) -> &str {
        match self {
            Self::Payment(payment) => &payment.payment_ref,
            Self::Vendor(vendor) => vendor.account_ref.as_deref().unwrap_or(&vendor.vendor_id),
        }
    }
}

/// What is known of a vendor after its details were changed or confirmed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VendorResult {
    /// The vendor.
    pub vendor_id: String,
    /// The ERP's record of the account, where it was about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account_ref: Option<String>,
    /// The account's number, whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iban: Option<String>,
    /// The telephone number, where it was about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phone: Option<String>,
    /// The open bills that name the new account from then on.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bills: Vec<String>,
}

impl std::fmt::Debug for VendorResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VendorResult")
            .field("vendor_id", &self.vendor_id)
            .field("account_ref", &self.account_ref)
            .field("bills", &self.bills)
            .finish_non_exhaustive()
    }
}

/// What the ERP holds for an executed payment, as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentResult {
    /// The payment's id.
    pub payment_ref: String,
    /// What was paid.
    pub amount: String,
    /// In which currency.
    pub currency: String,
    /// The state of the bill then.
    pub bill_state: String,
    /// What was left of the bill then; `None` where a human settled it, and the ERP did not say.
    pub amount_due: Option<String>,
}

impl PaymentResult {
    fn unread(payment_ref: &str, amount: Amount) -> Self {
        Self {
            payment_ref: payment_ref.to_owned(),
            amount: amount.to_decimal_string(),
            currency: amount.currency().code().to_owned(),
            bill_state: "unknown".to_owned(),
            amount_due: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_shows_only_its_mask() {
        let param = Param {
            value: "FR7630006000011234567890189".to_owned(),
            masked: "FR76…0189".to_owned(),
            origin: Origin::SystemOfRecord,
            reference: "vendors/V-100".to_owned(),
            bound: None,
            blind: None,
        };
        let shown = format!("{param:?}");
        assert!(shown.contains("FR76…0189") && !shown.contains("3000600001"), "{shown}");
    }

    #[test]
    fn final_states_stay_what_they_are() {
        for status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(status));
            for next in Status::ALL {
                if status.is_final() && status != Status::Denied {
                    assert!(!status.may_become(next), "{status:?} to {next:?}");
                }
            }
        }
        assert!(!Status::Pending.may_become(Status::Executed), "nothing executes unclaimed");
        assert!(!Status::Unknown.may_become(Status::Denied), "what may be booked is not denied");
        assert!(!Status::Unknown.may_become(Status::Pending), "what may be booked does not wait");
        assert!(
            !Status::Executing.may_become(Status::Cancelled),
            "what is claimed is not withdrawn"
        );
    }
}
