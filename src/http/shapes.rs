//! The shapes of words and values in answers, as JSON schemas: closed lists from the domain itself,
//! and texts in a form of their own. A view says which of its members has which.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::domain::decision::{Effect, Stage};
use crate::domain::operation::Status;
use crate::domain::role::Role;

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $title:literal $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($title)
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

shapes! {
    /// The state of an operation.
    StatusWord = "Status" one_of(&Status::ALL.map(Status::code));
    /// Where it was decided.
    StageWord = "Stage" one_of(&Stage::ALL.map(Stage::code));
    /// What a decision does.
    EffectWord = "Effect" one_of(&Effect::ALL.map(Effect::code));
    /// Which humans are asked.
    LevelWord = "Level" one_of(&["step_up", "four_eyes"]);
    /// What a human may do in a company.
    RoleWord = "Role" one_of(&Role::ALL.map(Role::code));
    /// How a mandate stands.
    MandateWord = "MandateStatus" one_of(&["in_force", "expired", "revoked"]);
    /// A moment.
    Time = "Time" json_schema!({
        "type": "string",
        "format": "date-time",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
        "description": "RFC 3339, in UTC.",
    });
    /// A SHA-256.
    Sha256 = "Sha256" json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
    /// An amount of money.
    Money = "Money" json_schema!({
        "type": "string",
        "pattern": "^[0-9]{1,15}(\\.[0-9]{1,4})?$",
        "description": "Digits and at most one point; the currency stands beside it.",
    });
    /// A currency.
    CurrencyCode = "Currency" json_schema!({
        "type": "string",
        "pattern": "^[A-Z]{3}$",
        "description": "ISO 4217.",
    });
    /// The value of a fact.
    FactValue = "FactValue" json_schema!({ "type": ["boolean", "integer", "string"] });
    /// The id of an operation.
    OperationRef = "OperationId" json_schema!({ "type": "string", "pattern": "^op_[0-9a-f]{32}$" });
    /// The id of a mandate.
    MandateRef = "MandateId" json_schema!({ "type": "string", "pattern": "^md_[0-9a-f]{32}$" });
}

fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// One page of a list.
pub(super) fn page<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let item = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "properties": {
            "items": { "type": "array", "items": item, "maxItems": 200 },
            "next_cursor": {
                "type": ["string", "null"],
                "description": "What the next page is asked for with; `null` on the last one.",
            },
        },
        "required": ["items", "next_cursor"],
    })
}

/// That view.
pub(super) fn one<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
