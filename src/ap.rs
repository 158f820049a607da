//! The accounts-payable pack: its actions, where their values are looked up, which facts decide,
//! what the floor refuses, and the hands that book.
//!
//! It knows the ports to ERP, Verification of Payee and sanctions; not HTTP, not Cedar, not SQL.

pub mod adoption;
pub mod baseline;
pub mod duplicates;
mod facts;
mod invoice_pay;
mod orders;
pub mod reading;
mod source;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono_tz::Tz;
use countersign_erp_source::{
    Clock, CompanyId, ErpSource, PayeeVerifier, SanctionsScreen, SealKey,
};

use crate::domain::decision::Stage;
use crate::domain::mandate::Mandate;
use crate::domain::reason::Reason;
use crate::gateway::contract::Terms;
use crate::gateway::pack::{Case, Denial, Found, Pack, Sent};
use crate::keys::Keys;
use crate::store::Store;

/// The action that pays a vendor bill; also its scope.
pub const INVOICE_PAY: &str = "invoice.pay";
/// Its arguments, all required.
pub const INVOICE_PAY_ARGUMENTS: &[&str] = &invoice_pay::ARGUMENTS;

/// What the pack works with.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The ERP.
    pub erp: Arc<dyn ErpSource>,
    /// Verification of Payee.
    pub vop: Arc<dyn PayeeVerifier>,
    /// The sanctions list.
    pub sanctions: Arc<dyn SanctionsScreen>,
    /// The store, for the baseline.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fingerprints and the seal.
    pub keys: Arc<Keys>,
}

/// Settings of the pack.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long an account must have been on file unchanged.
    pub cooling_off: Duration,
    /// Of business dates.
    pub time_zone: Tz,
}

/// The pack.
#[derive(Debug, Clone)]
pub struct AccountsPayable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ports: Ports,
    rules: Rules,
    seal_key: SealKey,
    not_ready: RwLock<Vec<String>>,
}

impl AccountsPayable {
    /// Until [`AccountsPayable::set_not_ready`] is told otherwise, the ERP counts as not proved.
    pub fn new(ports: Ports, rules: Rules) -> Self {
        let not_ready = RwLock::new(vec!["the ERP has not been proved yet".to_owned()]);
        let seal_key = ports.keys.seal().clone();
        Self(Arc::new(Inner { ports, rules, seal_key, not_ready }))
    }

    /// The ports.
    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// The rules.
    pub fn rules(&self) -> Rules {
        self.0.rules
    }

    /// Notes what the newest proof of the ERP's side found; empty if all is right.
    pub fn set_not_ready(&self, problems: Vec<String>) {
        *self.0.not_ready.write().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    fn seal_key(&self) -> &SealKey {
        &self.0.seal_key
    }
}

#[async_trait]
impl Pack for AccountsPayable {
    fn actions(&self) -> &'static [&'static str] {
        &[INVOICE_PAY]
    }

    fn arguments(&self, action: &str) -> &'static [&'static str] {
        match action {
            INVOICE_PAY => INVOICE_PAY_ARGUMENTS,
            _ => &[],
        }
    }

    async fn resolve(
        &self,
        action: &str,
        terms: &Terms,
        mandate: &Mandate,
    ) -> Result<Arc<dyn Case>, Denial> {
        match action {
            INVOICE_PAY => invoice_pay::resolve(self, terms, mandate).await,
            _ => Err(Denial::new(Stage::Contract, Reason::UnknownAction)),
        }
    }

    fn not_ready(&self) -> Vec<String> {
        self.0.not_ready.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send(&self, company: &CompanyId, order: &str) -> Sent {
        orders::send(self, company, order).await
    }

    async fn look_up(&self, company: &CompanyId, order: &str) -> Result<Found, String> {
        orders::look_up(self, company, order).await
    }
}
