//! The sandbox's control surface for HTTP, so that HTTP knows no connector.

use async_trait::async_trait;
use countersign_sandbox::{ControlError, HandPayment, Sandbox};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{SandboxAnswer, SandboxControl, SandboxError};

/// The control surface.
#[derive(Debug, Clone)]
pub struct Control {
    sandbox: Sandbox,
}

/// How far the clock is to move.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance: String,
}

impl Control {
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
        answer(now.map(|now| serde_json::json!({ "now": now })))
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
