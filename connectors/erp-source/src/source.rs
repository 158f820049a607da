//! The port: what a connector answers, and how it fails.

use async_trait::async_trait;

use crate::{
    Beside, BesideQuery, BillId, BillQuery, BillReading, Booked, ChangeLookUp, Changed, CompanyId,
    ErpCompanyId, LoggedChange, LookUp, LookUpAnswer, RecordedOrder, Review, Reviewed,
    SealedBankChange, SealedOrder, SourceAccount, Timestamp, Vendor, VendorId,
};

/// A read that gave no answer. Nothing follows from it: neither that a thing exists nor that it
/// does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not reached, or no whole answer in time.
    #[error("the ERP did not answer: {reason}")]
    Unavailable {
        /// For the log; no record of the ERP's.
        reason: String,
    },
    /// The ERP refused the credential or the right.
    #[error("the ERP refused `{identity}`: {reason}")]
    Denied {
        /// Whose credential.
        identity: Identity,
        /// For the log.
        reason: String,
    },
    /// An answer that is not of the form it must have.
    #[error("the ERP's answer cannot be used: {what}")]
    Malformed {
        /// What does not fit, for the log.
        what: String,
    },
    /// The company is not in the connector's configuration.
    #[error("no company `{0}` in this ERP's configuration")]
    UnknownCompany(CompanyId),
}

/// How an order that was given to the ERP failed. The kinds call for different things and cannot
/// stand for each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The ERP said no, and surely booked nothing.
    #[error("the ERP refused the order: {}", .0.code())]
    Refused(Refusal),
    /// The order surely never left this host.
    #[error("the order was not sent: {reason}")]
    NotSent {
        /// For the log.
        reason: String,
    },
    /// Everything else: a lost, cut, late or unreadable answer. It may be booked.
    #[error("the outcome of the order is unknown: {reason}")]
    OutcomeUnknown {
        /// For the log.
        reason: String,
    },
    /// The ERP and the store do not belong together any more. Everything must stop.
    #[error("the ERP contradicts the store: {}", .0.code())]
    Contradicted(Contradiction),
}

/// Why the ERP's side refused an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No such bill in this company.
    NoSuchBill,
    /// No such vendor in this company.
    NoSuchVendor,
    /// Not a posted vendor bill with payable lines.
    BillNotPayable,
    /// Vendor of header, lines, account and order are not one.
    VendorInconsistent,
    /// The account is not there, archived, of another company, or has another number.
    AccountMismatch,
    /// The ERP does not allow paying to the account.
    AccountUntrusted,
    /// The account is one of the company's own.
    AccountIsOwn,
    /// Header and lines disagree, or the total is not the pinned one.
    FiguresInconsistent,
    /// More than is left, or more than the pinned total with what was already booked.
    AmountExceedsResidual,
    /// Not exactly one journal with that number and currency.
    JournalMismatch,
    /// The vendor has several active accounts, and it cannot be said which is replaced.
    SeveralAccounts,
    /// The order's deadline had passed.
    TooLate,
    /// What was booked did not read back as ordered, and was rolled back.
    PostCheckFailed,
    /// The order was not of the form that the guard reads.
    BadRequest,
    /// The ERP refused for a reason of its own (lock dates, rules of other modules).
    Other,
}

impl Refusal {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoSuchBill => "no_such_bill",
            Self::NoSuchVendor => "no_such_vendor",
            Self::BillNotPayable => "bill_not_payable",
            Self::VendorInconsistent => "vendor_inconsistent",
            Self::AccountMismatch => "bank_mismatch",
            Self::AccountUntrusted => "bank_untrusted",
            Self::AccountIsOwn => "bank_is_own",
            Self::FiguresInconsistent => "figures_inconsistent",
            Self::AmountExceedsResidual => "amount_exceeds_residual",
            Self::JournalMismatch => "journal_mismatch",
            Self::SeveralAccounts => "several_accounts",
            Self::TooLate => "too_late",
            Self::PostCheckFailed => "post_check_failed",
            Self::BadRequest => "bad_request",
            Self::Other => "erp_refused",
        }
    }

    /// The refusal with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        [
            Self::NoSuchBill,
            Self::NoSuchVendor,
            Self::BillNotPayable,
            Self::VendorInconsistent,
            Self::AccountMismatch,
            Self::AccountUntrusted,
            Self::AccountIsOwn,
            Self::FiguresInconsistent,
            Self::AmountExceedsResidual,
            Self::JournalMismatch,
            Self::SeveralAccounts,
            Self::TooLate,
            Self::PostCheckFailed,
            Self::BadRequest,
            Self::Other,
        ]
        .into_iter()
        .find(|refusal| refusal.code() == code)
    }
}

/// How ERP and store contradict each other (DESIGN 3). Never a mere failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contradiction {
    /// The seal does not verify: another key, or somebody else's order.
    BadSeal,
    /// Another marker already used this store's sequence number: the store is an older copy.
    StoreBehind,
    /// The marker is known, with other content.
    MarkerUsedOtherwise,
}

impl Contradiction {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::BadSeal => "bad_seal",
            Self::StoreBehind => "store_behind",
            Self::MarkerUsedOtherwise => "marker_used_otherwise",
        }
    }

    /// The contradiction with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::BadSeal, Self::StoreBehind, Self::MarkerUsedOtherwise]
            .into_iter()
            .find(|contradiction| contradiction.code() == code)
    }
}

/// The three credentials, each with one job (I9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Reads bills, vendors, accounts.
    Reader,
    /// Hands sealed orders over.
    Payer,
    /// Hands sealed changes of bank details over.
    BankAdmin,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reader => "reader",
            Self::Payer => "payer",
            Self::BankAdmin => "bank-admin",
        })
    }
}

/// What was found out about one credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProof {
    /// Which credential.
    pub identity: Identity,
    /// What it can do that it must not, or cannot do that it must; empty if all is right. Each
    /// says what to do.
    pub problems: Vec<String>,
}

/// What the ERP's side proves about itself at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    /// The ERP's clock.
    pub erp_time: Timestamp,
    /// The highest sequence number that this store's orders of both kinds have there; 0 for none.
    pub newest_seq: u64,
    /// What is wrong with the guard itself (missing, altered, other database); empty if it is the
    /// one we know. Each says what to do.
    pub guard_problems: Vec<String>,
    /// What each credential can and cannot do.
    pub identities: Vec<IdentityProof>,
}

impl Attestation {
    /// Everything that forbids paying, in words. Empty means that paying is safe.
    pub fn problems(&self) -> Vec<String> {
        let of_identities = self.identities.iter().flat_map(|proof| {
            proof.problems.iter().map(move |problem| format!("{}: {problem}", proof.identity))
        });
        self.guard_problems.iter().cloned().chain(of_identities).collect()
    }
}

/// An ERP, as the gateway sees it.
///
/// A connector MUST answer with what the ERP holds at that moment, never from a cache. It MUST NOT
/// follow redirects, resend a write, or take a default where a record does not say. It MUST map
/// every doubt about a write to [`OrderError::OutcomeUnknown`].
#[async_trait]
pub trait ErpSource: Send + Sync + std::fmt::Debug {
    /// The companies in its configuration.
    fn companies(&self) -> Vec<CompanyId>;

    /// The company that the ERP knows by that id, if it is in the configuration.
    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId>;

    /// The ERP's own id of a company in its configuration.
    fn erp_company(&self, company: &CompanyId) -> Option<ErpCompanyId>;

    /// A document of that company by id, whatever its kind and state, with its vendor. `None` if
    /// the company has none: a document of another company MUST be `None`, and so MUST one that the
    /// ERP shows this company's reader only in part.
    async fn find_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError>;

    /// Vendor bills of that company, ascending by id.
    async fn list_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError>;

    /// What the company holds beside bills and may speak against paying them: posted bills and
    /// receipts of the same vendor with a reference that is the same by [`crate::ReferenceKey`], or
    /// with the same total and a date that is near ([`crate::Traits::likeness`]), paid ones above
    /// all; vendors that owe something back; other vendors with the same number.
    ///
    /// It MUST take a bounded number of calls, whatever the ERP holds and however many bills are
    /// asked about. Documents that do not resemble MAY be among the answer; one that does MUST be,
    /// or the bill that was asked about MUST be in [`Beside::cut`]. The same number on an account of
    /// another company's vendor MUST NOT count.
    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError>;

    /// A vendor of that company by id. `None` if it has none.
    async fn find_vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<Vendor>, ReadError>;

    /// Vendors of that company with an id after `after`, ascending, at most `limit`.
    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError>;

    /// The accounts that the company pays from.
    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError>;

    /// Registers one payment.
    ///
    /// The ERP's side MUST, in one transaction and under a lock on the bill: verify the seal before
    /// it reads the order; answer a known marker with what it booked, or
    /// [`Contradiction::MarkerUsedOtherwise`] where anything differs; refuse a sequence number that
    /// another marker of this store used, before it looks at anything else; refuse after
    /// `not_after` by its own clock, and a `not_after` more than 15 minutes ahead of it; check
    /// bill, vendor, account, figures and journal again; never book more for a bill than its pinned
    /// total; record the order where no user of the ERP reaches it; read back what it booked.
    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError>;

    /// Looks for an order by its marker, under the same lock on the bill that
    /// [`ErpSource::register_payment`] takes, and answers with the ERP's own time.
    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError>;

    /// Changes a vendor's bank details, through the bank-admin's identity.
    ///
    /// What [`ErpSource::register_payment`] MUST do about seal, marker, sequence number and deadline
    /// it MUST do here, with one row of sequence numbers and one set of markers for both kinds: a
    /// number that a payment used is [`Contradiction::StoreBehind`], a payment's marker
    /// [`Contradiction::MarkerUsedOtherwise`], and the other way round. Under a lock on the vendor,
    /// and in one transaction, it MUST: find exactly the old account, by record and number, as the
    /// only active one of the vendor (none where the order names none), or refuse
    /// ([`Refusal::AccountMismatch`], and [`Refusal::SeveralAccounts`] whichever of them it names);
    /// refuse a number that is the company's own, or the old one; archive the old account, never
    /// change its number; bring the vendor's archived account with the new number back, or add one;
    /// let it be paid; point the vendor's open bills that name the old account, or none, to the new
    /// one; record the order; read back what it did.
    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError>;

    /// Looks for a change by its marker, under the lock on the vendor that
    /// [`ErpSource::change_bank_details`] takes, and answers with the ERP's own time.
    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError>;

    /// What was changed about vendors and accounts of that company, by anybody: entries of the log
    /// with a number above `after`, ascending, at most `limit`. Nobody with ordinary rights in the
    /// ERP MUST be able to keep a change out of the log, or to change or delete an entry.
    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError>;

    /// What became of payments that were booked, as the ERP's records are now, in the order in which
    /// they were asked for and in a bounded number of calls. It MUST count every payment for the bill
    /// that stands, whoever booked it, with its whole amount.
    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError>;

    /// The payments of that store with a sequence number above `after`, ascending, at most `limit`.
    async fn list_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError>;

    /// Proves guard and credentials, by trying what each must not be able to do.
    async fn attest(&self, store: &str) -> Result<Attestation, ReadError>;
}
