//! What a receipt says, and the exact bytes that say it.

use countersign_erp_source::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest integer that every reader of JSON keeps exactly (RFC 8785 writes doubles).
const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Deeper data could be written and then not be read back.
const DEPTH_MAX: usize = 32;
/// A receipt is evidence of one step, not an archive.
const BYTES_MAX: usize = 1 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// What happened. Closed; the codes are stable and only ever added to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ReceiptKind { $($(#[$doc])* $name,)* }

        impl ReceiptKind {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

kinds! {
    /// What was proposed, resolved and decided.
    Decision = "decision",
    /// Written ahead of a call to the ERP.
    Claim = "claim",
    /// What the ERP said, read back.
    Outcome = "outcome",
    /// An order that was not sent, or is tried again.
    Attempt = "attempt",
    /// Refusals of callers that were not authenticated, counted.
    DenialCount = "denial_count",
    MandateIssued = "mandate_issued",
    MandateRevoked = "mandate_revoked",
    UserAdded = "user_added",
    UserChanged = "user_changed",
    FreezeAdded = "freeze_added",
    FreezeRemoved = "freeze_removed",
    BaselineAdopted = "baseline_adopted",
    BaselineChanged = "baseline_changed",
    Alarm = "alarm",
    /// An alarm that a human looked at.
    AlarmClosed = "alarm_closed",
    /// A human called a vendor.
    Callback = "callback",
    /// A human's vote for one operation and hash.
    Vote = "vote",
    Rejected = "rejected",
    /// A human's word on an operation whose outcome nobody could find out.
    SettledByHand = "settled_by_hand",
    Cancelled = "cancelled",
    Expired = "expired",
    /// The first entry of every chain.
    StoreCreated = "store_created",
    /// An approver found two bills to be two.
    DuplicateCleared = "duplicate_cleared",
    /// Orders of the ERP's table that a restored store took over.
    OrdersAdopted = "orders_adopted",
    DaemonStarted = "daemon_started",
    /// A human signed in: one for each session.
    SignedIn = "signed_in",
    /// A daemon took other policies while it ran.
    PolicyChanged = "policy_changed",
}

impl ReceiptKind {
    /// The kind with that code.
    pub fn find(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }
}

/// One thing that happened, before it has its place in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    pub kind: ReceiptKind,
    pub at: Timestamp,
    /// The company whose auditors may read it; none for what concerns the whole store.
    pub company: Option<String>,
    pub operation: Option<String>,
    /// Integers, texts, booleans and what is made of them; money is text.
    pub data: Value,
}

/// Data that cannot be written down exactly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReceipt {
    #[error("the receipt's data holds a number that is not a whole one below 2^53")]
    NotWhole,
    #[error("the receipt's data is nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("the receipt is larger than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("the receipt cannot be written as JSON")]
    NotJson,
}

/// The members of a receipt's bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiptText {
    pub(super) at: String,
    pub(super) company: Option<String>,
    pub(super) data: Value,
    pub(super) kind: String,
    pub(super) operation: Option<String>,
    pub(super) store: String,
    pub(super) v: u8,
}

impl Receipt {
    /// The exact bytes: canonical JSON (RFC 8785) of the receipt and the store it belongs to.
    pub fn to_bytes(&self, store: &str) -> Result<Vec<u8>, BadReceipt> {
        let text = ReceiptText {
            at: self.at.to_string(),
            company: self.company.clone(),
            data: self.data.clone(),
            kind: self.kind.code().to_owned(),
            operation: self.operation.clone(),
            store: store.to_owned(),
            v: 1,
        };
        text.canonical()
    }
}

impl ReceiptText {
    /// The one spelling that a receipt with these members has.
    pub(super) fn canonical(&self) -> Result<Vec<u8>, BadReceipt> {
        check(&self.data, 0)?;
        let bytes = serde_json_canonicalizer::to_vec(self).ok().ok_or(BadReceipt::NotJson)?;
        if bytes.len() > BYTES_MAX {
            return Err(BadReceipt::TooLarge);
        }
        Ok(bytes)
    }
}

fn check(value: &Value, depth: usize) -> Result<(), BadReceipt> {
    if depth > DEPTH_MAX {
        return Err(BadReceipt::TooDeep);
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) => {
            let size = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
            // The text is looked at too: with serde_json's arbitrary precision, which any
            // dependency can switch on, `1.0` and `1e3` could pass for integers.
            let digits = number.to_string();
            let plain = digits.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            match size {
                Some(size) if plain && size <= INTEGER_MAX => Ok(()),
                Some(_) | None => Err(BadReceipt::NotWhole),
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| check(item, deeper)),
        Value::Object(members) => members.values().try_for_each(|member| check(member, deeper)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn receipt(data: Value) -> Receipt {
        Receipt {
            kind: ReceiptKind::Decision,
            at: Timestamp::parse("2026-11-01T10:00:00.120Z").unwrap(),
            company: Some("blue-sparrow".to_owned()),
            operation: None,
            data,
        }
    }

    #[test]
    fn the_bytes_are_canonical_and_do_not_change() {
        let bytes =
            receipt(json!({"z": "é\n\"", "a": [1, -2, true, null]})).to_bytes("st_1").unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\"at\":\"2026-11-01T10:00:00.120Z\",\"company\":\"blue-sparrow\",\
             \"data\":{\"a\":[1,-2,true,null],\"z\":\"é\\n\\\"\"},\"kind\":\"decision\",\
             \"operation\":null,\"store\":\"st_1\",\"v\":1}"
        );
    }

    #[track_caller]
    fn refuses(data: Value, why: &BadReceipt) {
        assert_eq!(receipt(data).to_bytes("st_1").as_ref(), Err(why));
    }

    #[test]
    fn data_that_cannot_be_kept_exactly_is_refused() {
        refuses(json!({"a": [0.5]}), &BadReceipt::NotWhole);
        refuses(json!(1.0), &BadReceipt::NotWhole);
        refuses(json!(9_007_199_254_740_992_u64), &BadReceipt::NotWhole);
        refuses(json!(i64::MIN), &BadReceipt::NotWhole);
        refuses(json!("x".repeat(BYTES_MAX)), &BadReceipt::TooLarge);
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        refuses(deep, &BadReceipt::TooDeep);
        let largest = receipt(json!(9_007_199_254_740_991_i64)).to_bytes("st_1").unwrap();
        assert!(String::from_utf8(largest).unwrap().contains("\"data\":9007199254740991,"));
    }

    #[test]
    fn every_code_is_its_own_and_finds_its_kind() {
        for kind in ReceiptKind::ALL {
            assert_eq!(ReceiptKind::find(kind.code()), Some(*kind));
        }
        assert_eq!(ReceiptKind::find("decisions"), None);
    }
}
