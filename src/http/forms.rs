//! The forms of what is sent to us, as JSON schemas: for callers to read. Who reads a value decides
//! whether it has its form.

use serde_json::{Value, json};

use crate::domain::operation::Status;
use crate::domain::role::Role;

/// No control character, as of Unicode.
const PLAIN: &str = r"^[^\x00-\x1f\x7f-\x9f]+$";

/// A text for people.
pub(super) fn text() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": PLAIN })
}

/// A text of any characters that nobody prints.
pub(super) fn secret() -> Value {
    json!({ "type": "string", "format": "password" })
}

/// The end of an account, as the vendor read it out.
pub(super) fn read_back() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 500,
        "pattern": PLAIN,
        "description": "At least six letters or digits with `confirmed`: the end of the account, or \
                        all of it, as the vendor read it out.",
    })
}

/// Who answered the telephone.
pub(super) fn spoke_to() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 500,
        "pattern": PLAIN,
        "description": "Who answered. Needed with `confirmed`.",
    })
}

/// A telephone number, in whichever spelling.
pub(super) fn phone() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 500,
        "pattern": PLAIN,
        "description": "Every spelling is the same number; an extension follows `ext.`.",
        "examples": ["+33 1 40 00 00 00"],
    })
}

/// What a vendor said.
pub(super) fn call_outcome() -> Value {
    json!({ "type": "string", "enum": ["confirmed", "denied", "no_answer"] })
}

/// A moment.
pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "description": "RFC 3339, in UTC." })
}

pub(super) fn alarm_status() -> Value {
    json!({ "type": "string", "enum": ["open", "all"], "default": "all" })
}

pub(super) fn freeze_scope() -> Value {
    json!({ "type": "string", "enum": ["company", "vendor"] })
}

/// A password that somebody new is to have.
pub(super) fn new_password() -> Value {
    json!({ "type": "string", "format": "password", "minLength": 8, "maxLength": 128 })
}

/// The name of a human or an agent.
pub(super) fn name() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9._@-]{1,64}$" })
}

pub(super) fn role() -> Value {
    json!({ "type": "string", "enum": Role::ALL.map(Role::code) })
}

pub(super) fn company() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "description": "Which of the human's companies. Needed by who holds roles in several; no \
                        agent has it.",
    })
}

/// An id of the ERP's.
pub(super) fn erp_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 128, "pattern": PLAIN })
}

pub(super) fn vendor_reference() -> Value {
    json!({ "type": "string", "description": "Compared in normalised form." })
}

pub(super) fn bill_state() -> Value {
    json!({ "type": "string", "enum": ["open", "paid"] })
}

pub(super) fn date() -> Value {
    json!({ "type": "string", "format": "date" })
}

pub(super) fn status() -> Value {
    json!({ "type": "string", "enum": Status::ALL.map(Status::code) })
}

pub(super) fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 })
}

pub(super) fn cursor() -> Value {
    json!({
        "type": "string",
        "maxLength": 1024,
        "description": "The `next_cursor` of an earlier answer to the same call. Opaque.",
    })
}

/// The number of a receipt.
pub(super) fn seq() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX })
}

pub(super) fn wait() -> Value {
    json!({
        "type": "string",
        "description": "How long to wait for it to leave a waiting state, like `30s`; at most `60s`.",
        "examples": ["30s"],
    })
}

pub(super) fn duration() -> Value {
    json!({
        "type": "string",
        "minLength": 2,
        "description": "A duration like `8h`.",
        "examples": ["8h"],
    })
}

/// The hash of an operation.
pub(super) fn operation_hash() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

pub(super) fn iban() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "description": "An IBAN; spaces and small letters are accepted.",
        "examples": ["FR7630006000011234567890189"],
    })
}

pub(super) fn currency() -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Z]{3}$",
        "description": "ISO 4217.",
        "examples": ["EUR"],
    })
}

pub(super) fn money() -> Value {
    json!({
        "type": "string",
        "pattern": r"^[0-9]{1,15}(\.[0-9]{1,4})?$",
        "description": "Digits and at most one point, with at most as many decimals as the currency \
                        has; greater than zero.",
        "examples": ["1240.00"],
    })
}

/// A whole number above zero.
pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000_000 })
}

/// Names of actions.
pub(super) fn scopes() -> Value {
    json!({ "type": "array", "items": text(), "minItems": 1, "maxItems": 50 })
}

pub(super) fn outcome() -> Value {
    json!({ "type": "string", "enum": ["booked", "not_booked"] })
}

pub(super) fn payment_ref() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": PLAIN,
        "description": "The ERP's id of the payment: with `booked`, and only with it.",
    })
}

pub(super) fn idempotency_key() -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._:-]{1,64}$",
        "description": "The same key with the same content answers the same operation.",
    })
}

/// A proposal. What is wrong inside `args` is an operation, denied.
pub(super) fn proposal() -> Value {
    let or_reference = |form: Value, about: &str| {
        let reference = json!({
            "type": "object",
            "properties": { "ref": { "type": "string", "description": about } },
            "required": ["ref"],
            "additionalProperties": false,
        });
        json!({ "anyOf": [form, reference] })
    };
    let proposal = |action: &str, args: Value, required: &[&str]| {
        json!({
            "type": "object",
            "properties": {
                "action": { "type": "string", "const": action },
                "args": {
                    "type": "object",
                    "properties": args,
                    "required": required,
                    "additionalProperties": false,
                },
                "mode": { "type": "string", "enum": ["commit", "prepare"], "default": "commit" },
            },
            "required": ["action", "args"],
            "additionalProperties": false,
        })
    };
    let payment = json!({
        "invoice_ref": erp_id(),
        "payee_iban": or_reference(iban(), "The id of the vendor: the account on file."),
        "amount": money(),
        "currency": currency(),
        "source_account": or_reference(iban(), "The journal."),
    });
    let change = json!({ "vendor_id": erp_id(), "new_iban": iban(), "reason": text() });
    json!({ "oneOf": [
        proposal(crate::ap::INVOICE_PAY, payment, crate::ap::INVOICE_PAY_ARGUMENTS),
        proposal(
            crate::ap::UPDATE_BANK_DETAILS,
            change,
            crate::ap::UPDATE_BANK_DETAILS_ARGUMENTS,
        ),
    ] })
}
