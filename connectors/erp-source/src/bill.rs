//! A vendor bill: what its header claims, what its payable lines prove, and whether they agree.

use chrono::NaiveDate;

use crate::{
    AccountId, Amount, BillId, CompanyId, Currency, ErpCompanyId, Iban, JournalId, Timestamp,
    Vendor, VendorId,
};

/// What kind of document it is. Only a bill is ever paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillKind {
    /// A vendor bill.
    Bill,
    /// A vendor credit note.
    CreditNote,
    /// Anything else (receipts, entries).
    Other,
}

/// The document's own state. Whether anything is left to pay is a figure, not a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillState {
    /// Not confirmed yet.
    Draft,
    /// Confirmed.
    Posted,
    /// Withdrawn.
    Cancelled,
}

/// What the header says. People with billing rights can write it in some ERPs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderFigures {
    /// The contact exactly as entered, by its own id: the vendor, or a contact of the vendor's.
    pub entered: VendorId,
    /// The vendor as entered, by its commercial id.
    pub vendor: VendorId,
    /// The commercial vendor that the header stores.
    pub commercial_vendor: VendorId,
    /// The total.
    pub total: Amount,
    /// What is left.
    pub residual: Amount,
}

/// What the payable lines say, summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayableFigures {
    /// The vendors of the lines, without repetition, by their commercial ids.
    pub vendors: Vec<VendorId>,
    /// The total.
    pub total: Amount,
    /// What is left.
    pub residual: Amount,
}

/// A bill, as the ERP holds it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// The company it belongs to.
    pub company: CompanyId,
    /// The ERP's own id of that company.
    pub erp_company: ErpCompanyId,
    /// The ERP's immutable id.
    pub id: BillId,
    /// The number that people use in the ERP.
    pub number: Option<String>,
    /// The vendor's own reference, as written.
    pub reference: Option<String>,
    /// What kind of document.
    pub kind: BillKind,
    /// Its state.
    pub state: BillState,
    /// The header.
    pub header: HeaderFigures,
    /// The payable lines.
    pub payable: PayableFigures,
    /// The account that the bill itself names, where it names one.
    pub named_account: Option<AccountId>,
    /// The bill's date.
    pub date: Option<NaiveDate>,
    /// When it is due (the last date, where there are instalments).
    pub due: Option<NaiveDate>,
}

/// Why header and lines of a bill contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// The vendors of header and lines are not one.
    #[error("header, commercial vendor and payable lines do not name one vendor")]
    Vendors,
    /// Total or residual differ.
    #[error("the header's total or residual is not that of the payable lines")]
    Figures,
    /// No payable line at all.
    #[error("the bill has no payable line")]
    NoPayableLine,
}

impl Bill {
    /// A posted vendor bill with something left to pay, by header and lines both. Never the ERP's
    /// status word.
    pub fn is_open(&self) -> bool {
        self.kind == BillKind::Bill
            && self.state == BillState::Posted
            && self.header.residual.is_positive()
            && self.payable.residual.is_positive()
    }

    /// The one vendor of the bill, where header and lines agree in vendor, total and residual.
    ///
    /// # Errors
    /// [`Inconsistency`] says what does not agree.
    pub fn consistent_vendor(&self) -> Result<&VendorId, Inconsistency> {
        if self.payable.vendors.is_empty() {
            return Err(Inconsistency::NoPayableLine);
        }
        let vendor = &self.header.commercial_vendor;
        if self.header.vendor != *vendor || self.payable.vendors.iter().any(|line| line != vendor) {
            return Err(Inconsistency::Vendors);
        }
        let agrees = self.header.total == self.payable.total
            && self.header.residual == self.payable.residual;
        if agrees { Ok(vendor) } else { Err(Inconsistency::Figures) }
    }

    /// The currency.
    pub fn currency(&self) -> Currency {
        self.header.total.currency()
    }
}

/// A bill with all that is needed to decide about it, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillReading {
    /// The bill.
    pub bill: Bill,
    /// The commercial vendor of the header; `None` if the ERP does not show it.
    pub vendor: Option<Vendor>,
    /// The company's own currency.
    pub company_currency: Currency,
    /// The numbers of all bank accounts of the company itself.
    pub own_accounts: Vec<Iban>,
    /// When it was read, by the daemon's clock.
    pub read_at: Timestamp,
}

/// Which bills to list, ascending by id.
#[derive(Debug, Clone, Default)]
pub struct BillQuery {
    /// Only open ones ([`Bill::is_open`]) where true; all posted ones else.
    pub open_only: bool,
    /// Only of this vendor.
    pub vendor: Option<VendorId>,
    /// Only due on or before this date.
    pub due_before: Option<NaiveDate>,
    /// Only with an id after this one.
    pub after: Option<BillId>,
    /// At most so many.
    pub limit: u16,
}

/// An account of the company that payments leave from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAccount {
    /// The bank journal.
    pub journal: JournalId,
    /// Its number.
    pub iban: Iban,
    /// Its currency.
    pub currency: Currency,
}
