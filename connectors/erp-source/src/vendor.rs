//! A vendor with all that decides where its money may go.

use crate::{AccountId, AccountNumber, CompanyId, Timestamp, VendorId};

/// A vendor of one company, as the ERP holds it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vendor {
    /// The company it was read for.
    pub company: CompanyId,
    /// The ERP's immutable id.
    pub id: VendorId,
    /// The name, as people wrote it: untrusted text.
    pub name: String,
    /// VAT or registration number, where there is one.
    pub tax_number: Option<String>,
    /// The vendor it belongs to, where there is one.
    pub parent: Option<VendorId>,
    /// All bank accounts, archived ones too, in the order in which the ERP would choose.
    pub accounts: Vec<VendorAccount>,
    /// All telephone numbers.
    pub phones: Vec<Phone>,
}

/// A bank account record of a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorAccount {
    /// The record's id, which outlives a change of the number.
    pub id: AccountId,
    /// Whose it is. Equal to the vendor it was read with, or the ERP contradicts itself.
    pub owner: VendorId,
    /// The number.
    pub number: AccountNumber,
    /// The name of the holder, where it differs from the vendor's.
    pub holder: Option<String>,
    /// Archived accounts are not active.
    pub active: bool,
    /// Whether the ERP itself allows paying to it (in Odoo: trusted, and of this company or all).
    pub erp_allows: bool,
    /// Since when, by all that the ERP can prove, number, owner and activity are what they are.
    /// `None` where it can prove nothing.
    pub unchanged_since: Option<Timestamp>,
    /// Whether the ERP's record shows a change of number, owner or activity after its creation.
    /// `true` where it cannot tell. A change of trust or order is none.
    pub changed_after_creation: bool,
}

/// Which of a vendor's numbers it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PhoneKind {
    /// The main number.
    Phone,
    /// The mobile number.
    Mobile,
}

/// A telephone number on file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    /// Which one.
    pub kind: PhoneKind,
    /// As it was written.
    pub raw: String,
    /// Since when it is on file, by what the ERP can prove.
    pub since: Option<Timestamp>,
}

impl Vendor {
    /// The account with that record id, archived or not.
    pub fn account(&self, id: &AccountId) -> Option<&VendorAccount> {
        self.accounts.iter().find(|account| account.id == *id)
    }

    /// The accounts that are not archived.
    pub fn active_accounts(&self) -> impl Iterator<Item = &VendorAccount> {
        self.accounts.iter().filter(|account| account.active)
    }
}
