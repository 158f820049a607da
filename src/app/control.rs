//! The sandbox's control surface for HTTP, so that HTTP knows no connector.

use async_trait::async_trait;
use countersign_sandbox::{
    BillFields, ControlError, FaultRequest, HandPayment, SanctionEntry, Sandbox, VendorFields,
    VopEntry,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::{SandboxAnswer, SandboxControl, SandboxError};

/// The control surface.
#[derive(Debug, Clone)]
pub struct Control {
    sandbox: Sandbox,
}

impl Control {
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }

    /// The sandbox itself, for the demonstration.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance: String,
}

#[async_trait]
impl SandboxControl for Control {
    async fn payments(&self) -> SandboxAnswer {
        written(&self.sandbox.payments().await.map_err(refused)?)
    }

    async fn vendor(&self, company: &str, vendor: &str) -> SandboxAnswer {
        written(&self.sandbox.vendor(company, vendor).await.map_err(refused)?)
    }

    async fn bill(&self, company: &str, bill: &str) -> SandboxAnswer {
        written(&self.sandbox.bill(company, bill).await.map_err(refused)?)
    }

    async fn put_vendor(&self, company: &str, vendor: &str, fields: Value) -> SandboxAnswer {
        let fields: VendorFields = read(fields)?;
        written(&self.sandbox.put_vendor(company, vendor, &fields).await.map_err(refused)?)
    }

    async fn put_bill(&self, company: &str, bill: &str, fields: Value) -> SandboxAnswer {
        let fields: BillFields = read(fields)?;
        written(&self.sandbox.put_bill(company, bill, &fields).await.map_err(refused)?)
    }

    async fn pay(&self, company: &str, bill: &str, body: Value) -> SandboxAnswer {
        let HandPayment { amount } = read(body)?;
        written(&self.sandbox.pay_by_hand(company, bill, &amount).await.map_err(refused)?)
    }

    async fn advance_clock(&self, body: Value) -> SandboxAnswer {
        let Advance { advance } = read(body)?;
        let now = self.sandbox.advance_clock(&advance).await.map_err(refused)?;
        Ok(json!({ "now": now }))
    }

    async fn put_vop(&self, body: Value) -> SandboxAnswer {
        let entry: VopEntry = read(body)?;
        self.sandbox.put_vop(&entry).await.map_err(refused)?;
        written(&entry)
    }

    async fn put_sanctions(&self, body: Value) -> SandboxAnswer {
        let entry: SanctionEntry = read(body)?;
        self.sandbox.put_sanctions(&entry).await.map_err(refused)?;
        written(&entry)
    }

    async fn add_fault(&self, body: Value) -> SandboxAnswer {
        let request: FaultRequest = read(body)?;
        self.sandbox.put_fault(&request).await.map_err(refused)?;
        written(&request)
    }
}

fn read<T: DeserializeOwned>(body: Value) -> Result<T, SandboxError> {
    // A struct would also be read from an array.
    if !body.is_object() {
        return Err(SandboxError::Invalid("the body is not a JSON object".to_owned()));
    }
    serde_json::from_value(body).map_err(|fault| SandboxError::Invalid(fault.to_string()))
}

fn written<T: Serialize>(record: &T) -> SandboxAnswer {
    serde_json::to_value(record).map_err(|fault| SandboxError::Failed(fault.to_string()))
}

fn refused(error: ControlError) -> SandboxError {
    match error {
        ControlError::NoSuchCompany(_)
        | ControlError::NoSuchVendor(_)
        | ControlError::NoSuchBill(_) => SandboxError::NotFound,
        ControlError::Field(_)
        | ControlError::NothingToPay(_)
        | ControlError::NoSourceAccount(_)
        | ControlError::NoPayment(_) => SandboxError::Invalid(error.to_string()),
        ControlError::File(source) => SandboxError::Failed(source.to_string()),
    }
}
