//! A vendor's details: how they change, and how what changed elsewhere becomes the baseline again.
//!
//! A change rests on a call-back ([`callback`]); [`account`] is the new bank account, whether it is to
//! be written to the ERP or is there already; [`phone`] the number that is called; `before` what was on
//! file before somebody edited it.

pub mod account;
mod before;
pub mod callback;
pub(super) mod denied;
pub mod history;
pub mod phone;
mod whom;

use countersign_erp_source::{CompanyId, Vendor, VendorId};

use super::AccountsPayable;
use super::invoice_pay::unavailable;
use super::sighting::{self, LookError, Sighting, Told};
use crate::domain::decision::Stage;
use crate::domain::operation::{Origin, Param};
use crate::domain::reason::Reason;
use crate::gateway::contract::{Terms, invalid};
use crate::gateway::pack::Denial;

fn form(name: &str, fault: impl std::fmt::Display) -> Denial {
    invalid(&format!("`{name}`: {fault}"))
}

/// The vendor that the arguments name, as the ERP and the baseline have it now.
async fn resolved_vendor(
    pack: &AccountsPayable,
    company: &CompanyId,
    terms: &Terms,
) -> Result<(Vendor, Sighting), Denial> {
    let id = VendorId::new(terms.text("vendor_id")?).map_err(|bad| form("vendor_id", bad))?;
    let not_found = || Denial::new(Stage::Provenance, Reason::VendorNotFound);
    let found = pack.ports().erp.find_vendor(company, &id).await;
    let vendor = found.map_err(|fault| unavailable(&fault))?.ok_or_else(not_found)?;
    // INVARIANT (I8): a vendor of another company is as good as none.
    if vendor.company != *company {
        return Err(not_found());
    }
    let sighting = sighting::look(pack.ports(), company, &vendor, &Told::default()).await;
    let sighting = sighting.map_err(|fault| match fault {
        LookError::Store(fault) => Denial::error(Reason::StoreUnavailable, fault),
        LookError::Randomness(fault) => Denial::error(Reason::StoreUnavailable, fault),
    })?;
    Ok((vendor, sighting))
}

/// A parameter that is what the caller said, or what a record of ours says.
fn param(value: &str, origin: Origin, reference: &str) -> Param {
    Param {
        value: value.to_owned(),
        masked: value.to_owned(),
        origin,
        reference: reference.to_owned(),
        bound: None,
        blind: None,
    }
}

/// What at most one live operation may hold.
fn bank_of(vendor: &VendorId) -> String {
    format!("vendor/{vendor}/bank")
}
