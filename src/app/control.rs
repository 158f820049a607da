//! The sandbox's control surface for HTTP, so that HTTP knows no connector.

use async_trait::async_trait;
use countersign_erp_source::Timestamp;
use countersign_sandbox::{
    BillFields, BillRecord, ControlError, FaultRequest, HandPayment, PaymentRecord, SanctionEntry,
    Sandbox, VendorFields, VendorRecord, VopEntry,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{SandboxAnswer, SandboxControl, SandboxError, SandboxShape, SandboxShapes};

/// The control surface.
#[derive(Debug, Clone)]
pub struct Control {
    sandbox: Sandbox,
}

/// How far the clock is to move.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Advance {
    /// A duration like `8d`.
    advance: String,
}

/// The time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SandboxTime")]
struct Now {
    #[schemars(with = "String", extend("format" = "date-time"))]
    now: Timestamp,
}

fn shape(of: SandboxShape, generator: &mut SchemaGenerator) -> Schema {
    match of {
        SandboxShape::Payments => generator.subschema_for::<Vec<PaymentRecord>>(),
        SandboxShape::Vendor => generator.subschema_for::<VendorRecord>(),
        SandboxShape::VendorFields => generator.subschema_for::<VendorFields>(),
        SandboxShape::Bill => generator.subschema_for::<BillRecord>(),
        SandboxShape::BillFields => generator.subschema_for::<BillFields>(),
        SandboxShape::HandPayment => generator.subschema_for::<HandPayment>(),
        SandboxShape::Advance => generator.subschema_for::<Advance>(),
        SandboxShape::Clock => generator.subschema_for::<Now>(),
        SandboxShape::VopEntry => generator.subschema_for::<VopEntry>(),
        SandboxShape::SanctionEntry => generator.subschema_for::<SanctionEntry>(),
        SandboxShape::Fault => generator.subschema_for::<FaultRequest>(),
        SandboxShape::Nothing => generator.subschema_for::<()>(),
    }
}

impl Control {
    /// How what is sent to the control surface, and what it answers with, is described.
    pub const SHAPES: SandboxShapes = shape;

    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }
}

fn read<T: DeserializeOwned>(body: Value) -> Result<T, SandboxError> {
    // A struct would also be read from an array.
    if !body.is_object() {
        return Err(SandboxError::Invalid("the body is not a JSON object".to_owned()));
    }
    serde_json::from_value(body).map_err(|fault| SandboxError::Invalid(fault.to_string()))
}

fn answer<T: Serialize>(done: Result<T, ControlError>) -> SandboxAnswer {
    let value = done.map_err(|fault| match fault {
        ControlError::NoSuchCompany { .. }
        | ControlError::NoSuchVendor { .. }
        | ControlError::NoSuchBill { .. } => SandboxError::NotFound,
        ControlError::Field(_)
        | ControlError::NothingToPay { .. }
        | ControlError::NoSourceAccount { .. }
        | ControlError::NoPayment { .. } => SandboxError::Invalid(fault.to_string()),
        ControlError::File(_) => SandboxError::Failed(fault.to_string()),
    })?;
    serde_json::to_value(value).map_err(|fault| SandboxError::Failed(fault.to_string()))
}

#[async_trait]
impl SandboxControl for Control {
    fn shapes(&self) -> SandboxShapes {
        Self::SHAPES
    }

    async fn payments(&self) -> SandboxAnswer {
        answer(self.sandbox.payments().await)
    }

    async fn vendor(&self, company: &str, vendor: &str) -> SandboxAnswer {
        answer(self.sandbox.vendor(company, vendor).await)
    }

    async fn bill(&self, company: &str, bill: &str) -> SandboxAnswer {
        answer(self.sandbox.bill(company, bill).await)
    }

    async fn put_vendor(&self, company: &str, vendor: &str, fields: Value) -> SandboxAnswer {
        answer(self.sandbox.put_vendor(company, vendor, &read(fields)?).await)
    }

    async fn put_bill(&self, company: &str, bill: &str, fields: Value) -> SandboxAnswer {
        answer(self.sandbox.put_bill(company, bill, &read(fields)?).await)
    }

    async fn pay(&self, company: &str, bill: &str, body: Value) -> SandboxAnswer {
        let payment: HandPayment = read(body)?;
        answer(self.sandbox.pay_by_hand(company, bill, &payment.amount).await)
    }

    async fn advance_clock(&self, body: Value) -> SandboxAnswer {
        let moved: Advance = read(body)?;
        let now = self.sandbox.advance_clock(&moved.advance).await;
        answer(now.map(|now| Now { now }))
    }

    async fn put_vop(&self, body: Value) -> SandboxAnswer {
        answer(self.sandbox.put_vop(&read(body)?).await)
    }

    async fn put_sanctions(&self, body: Value) -> SandboxAnswer {
        answer(self.sandbox.put_sanctions(&read(body)?).await)
    }

    async fn add_fault(&self, body: Value) -> SandboxAnswer {
        answer(self.sandbox.put_fault(&read(body)?).await)
    }
}
