//! The accounts-payable pack: its actions, where their values are looked up, which facts decide,
//! what the floor refuses, and the hands that book.
//!
//! It knows the ports to ERP, Verification of Payee and sanctions; not HTTP, not Cedar, not SQL.

pub mod adoption;
pub mod baseline;
pub mod duplicates;
mod facts;
mod invoice_pay;
mod kept;
mod orders;
pub mod phones;
pub mod reading;
pub mod sighting;
mod source;
pub mod vendor;
pub mod watching;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono_tz::Tz;
use countersign_erp_source::{
    Clock, CompanyId, ErpSource, PayeeVerifier, SanctionsScreen, SealKey,
};

use crate::domain::decision::Stage;
use crate::domain::reason::Reason;
use crate::gateway::contract::Terms;
use crate::gateway::pack::{Asking, Case, Denial, Done, Found, Pack, Sent};
use crate::ids::Randomness;
use crate::keys::Keys;
use crate::store::{Store, StoreError, Unit};

/// The action that pays a vendor bill; also its scope.
pub const INVOICE_PAY: &str = "invoice.pay";
/// Its arguments, all required.
pub const INVOICE_PAY_ARGUMENTS: &[&str] = &invoice_pay::ARGUMENTS;

/// The action that changes a vendor's bank details; also its scope.
pub const UPDATE_BANK_DETAILS: &str = "vendor.update_bank_details";
/// Its arguments, all required.
pub const UPDATE_BANK_DETAILS_ARGUMENTS: &[&str] = &vendor::account::CHANGE;

/// The action by which a human makes an account that is on file in the ERP the baseline.
pub const CONFIRM_BANK_DETAILS: &str = "vendor.confirm_bank_details";

/// The action by which a human makes a changed telephone number one to call back on.
pub const CONFIRM_PHONE: &str = "vendor.confirm_phone";

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
    /// Ids.
    pub randomness: Arc<dyn Randomness>,
}

/// Settings of the pack.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long an account must have been on file unchanged.
    pub cooling_off: Duration,
    /// Of business dates.
    pub time_zone: Tz,
    /// So many accounts that are not the right ones may one agent name in 24 hours.
    pub wrong_accounts_per_day: u32,
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
        &[INVOICE_PAY, UPDATE_BANK_DETAILS]
    }

    fn own_actions(&self) -> &'static [&'static str] {
        &[CONFIRM_BANK_DETAILS, CONFIRM_PHONE]
    }

    fn arguments(&self, action: &str) -> &'static [&'static str] {
        match action {
            INVOICE_PAY => INVOICE_PAY_ARGUMENTS,
            UPDATE_BANK_DETAILS => UPDATE_BANK_DETAILS_ARGUMENTS,
            CONFIRM_BANK_DETAILS => &vendor::account::CONFIRM,
            CONFIRM_PHONE => &vendor::phone::ARGUMENTS,
            _ => &[],
        }
    }

    async fn resolve(
        &self,
        action: &str,
        terms: &Terms,
        asking: &Asking<'_>,
    ) -> Result<Arc<dyn Case>, Denial> {
        match action {
            INVOICE_PAY => invoice_pay::resolve(self, terms, asking).await,
            UPDATE_BANK_DETAILS => vendor::account::change(self, terms, asking).await,
            CONFIRM_BANK_DETAILS => vendor::account::confirm(self, terms, asking).await,
            CONFIRM_PHONE => vendor::phone::confirm(self, terms, asking).await,
            _ => Err(Denial::new(Stage::Contract, Reason::UnknownAction)),
        }
    }

    fn not_ready(&self) -> Vec<String> {
        self.0.not_ready.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send(&self, action: &str, company: &CompanyId, order: &str) -> Sent {
        match action {
            UPDATE_BANK_DETAILS => orders::change(self, company, order).await,
            CONFIRM_BANK_DETAILS => kept::confirm_account(order),
            CONFIRM_PHONE => kept::confirm_phone(order),
            _ => orders::send(self, company, order).await,
        }
    }

    async fn keep(&self, unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError> {
        kept::keep(unit, done).await
    }

    async fn look_up(
        &self,
        action: &str,
        company: &CompanyId,
        order: &str,
    ) -> Result<Found, String> {
        match action {
            UPDATE_BANK_DETAILS => orders::look_up_change(self, company, order).await,
            // What is kept here is written in the unit of work that settles: what is not settled was
            // not done.
            CONFIRM_BANK_DETAILS | CONFIRM_PHONE => {
                Ok(Found::ProvedAbsent { erp_time: self.ports().clock.now() })
            }
            _ => orders::look_up(self, company, order).await,
        }
    }
}
