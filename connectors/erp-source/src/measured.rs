//! How long the calls of the ports take and how they end, told to whoever counts. In one place, so
//! that no caller and no connector measures by itself.
//!
//! It passes every call and every answer on as they are, once each: what is measured behaves as if
//! nobody looked.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::{
    Attestation, Beside, BesideQuery, BillId, BillQuery, BillReading, Booked, ChangeLookUp,
    Changed, CompanyId, ErpCompanyId, ErpSource, Iban, LoggedChange, LookUp, LookUpAnswer,
    NoAnswer, OrderError, PayeeVerifier, ReadError, RecordedOrder, Review, Reviewed,
    SanctionsScreen, Screening, SealedBankChange, SealedOrder, SourceAccount, Vendor, VendorId,
    VopReport,
};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$each])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
        }
    };
}

codes! {
    /// A call of a port.
    Call {
        /// [`ErpSource::find_bill`].
        FindBill = "find_bill",
        /// [`ErpSource::list_bills`].
        ListBills = "list_bills",
        /// [`ErpSource::look_beside`].
        LookBeside = "look_beside",
        /// [`ErpSource::find_vendor`].
        FindVendor = "find_vendor",
        /// [`ErpSource::list_vendors`].
        ListVendors = "list_vendors",
        /// [`ErpSource::source_accounts`].
        SourceAccounts = "source_accounts",
        /// [`ErpSource::register_payment`].
        RegisterPayment = "register_payment",
        /// [`ErpSource::look_up`].
        LookUp = "look_up",
        /// [`ErpSource::change_bank_details`].
        ChangeBankDetails = "change_bank_details",
        /// [`ErpSource::look_up_change`].
        LookUpChange = "look_up_change",
        /// [`ErpSource::list_changes`].
        ListChanges = "list_changes",
        /// [`ErpSource::review`].
        Review = "review",
        /// [`ErpSource::list_orders`].
        ListOrders = "list_orders",
        /// [`ErpSource::attest`].
        Attest = "attest",
        /// [`PayeeVerifier::verify`].
        VerifyPayee = "verify_payee",
        /// [`SanctionsScreen::screen`].
        ScreenPayee = "screen_payee",
    }
}

codes! {
    /// How a call ended: with an answer, or as the kind of error that it gave.
    Ended {
        /// With an answer, whatever it says.
        Answered = "answered",
        /// [`OrderError::Refused`].
        Refused = "refused",
        /// [`OrderError::NotSent`].
        NotSent = "not_sent",
        /// [`OrderError::OutcomeUnknown`].
        OutcomeUnknown = "outcome_unknown",
        /// [`OrderError::Contradicted`].
        Contradicted = "contradicted",
        /// [`ReadError::Unavailable`], and a provider's [`NoAnswer`].
        Unavailable = "unavailable",
        /// [`ReadError::Denied`].
        Denied = "denied",
        /// [`ReadError::Malformed`].
        Malformed = "malformed",
        /// [`ReadError::UnknownCompany`].
        UnknownCompany = "unknown_company",
        /// Nobody waited for it any more.
        Dropped = "dropped",
    }
}

/// Is told of every call that ended.
pub trait Observer: Send + Sync + fmt::Debug {
    /// A call ended after that time.
    fn ended(&self, call: Call, ended: Ended, took: Duration);
}

/// A port whose calls are measured.
pub struct Measured<P: ?Sized> {
    port: Arc<P>,
    observer: Arc<dyn Observer>,
}

impl<P: ?Sized> Measured<P> {
    /// Measures that port.
    pub fn new(port: Arc<P>, observer: Arc<dyn Observer>) -> Self {
        Self { port, observer }
    }

    async fn measure<T, E: Kind>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut running = Running {
            observer: self.observer.as_ref(),
            call,
            began: Instant::now(),
            ended: Ended::Dropped,
        };
        let answer = work.await;
        running.ended = answer.as_ref().err().map_or(Ended::Answered, Kind::kind);
        answer
    }
}

impl<P: ?Sized + fmt::Debug> fmt::Debug for Measured<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.port.fmt(f)
    }
}

/// A call under way; tells how it ended when it goes, also where nobody waits for it any more.
struct Running<'a> {
    observer: &'a dyn Observer,
    call: Call,
    began: Instant,
    ended: Ended,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.observer.ended(self.call, self.ended, self.began.elapsed());
    }
}

/// An error as a way to end.
trait Kind {
    fn kind(&self) -> Ended;
}

impl Kind for ReadError {
    fn kind(&self) -> Ended {
        match self {
            Self::Unavailable { .. } => Ended::Unavailable,
            Self::Denied { .. } => Ended::Denied,
            Self::Malformed { .. } => Ended::Malformed,
            Self::UnknownCompany(_) => Ended::UnknownCompany,
        }
    }
}

impl Kind for OrderError {
    fn kind(&self) -> Ended {
        match self {
            Self::Refused(_) => Ended::Refused,
            Self::NotSent { .. } => Ended::NotSent,
            Self::OutcomeUnknown { .. } => Ended::OutcomeUnknown,
            Self::Contradicted(_) => Ended::Contradicted,
        }
    }
}

impl Kind for NoAnswer {
    fn kind(&self) -> Ended {
        Ended::Unavailable
    }
}

#[async_trait]
impl<P: ErpSource + ?Sized> ErpSource for Measured<P> {
    fn companies(&self) -> Vec<CompanyId> {
        self.port.companies()
    }

    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId> {
        self.port.company_of(erp_company)
    }

    async fn find_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        self.measure(Call::FindBill, self.port.find_bill(company, bill)).await
    }

    async fn list_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        self.measure(Call::ListBills, self.port.list_bills(company, query)).await
    }

    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        self.measure(Call::LookBeside, self.port.look_beside(company, query)).await
    }

    async fn find_vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        self.measure(Call::FindVendor, self.port.find_vendor(company, vendor)).await
    }

    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        self.measure(Call::ListVendors, self.port.list_vendors(company, after, limit)).await
    }

    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError> {
        self.measure(Call::SourceAccounts, self.port.source_accounts(company)).await
    }

    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        self.measure(Call::RegisterPayment, self.port.register_payment(order)).await
    }

    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        self.measure(Call::LookUp, self.port.look_up(wanted)).await
    }

    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError> {
        self.measure(Call::ChangeBankDetails, self.port.change_bank_details(order)).await
    }

    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        self.measure(Call::LookUpChange, self.port.look_up_change(wanted)).await
    }

    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        self.measure(Call::ListChanges, self.port.list_changes(company, after, limit)).await
    }

    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError> {
        self.measure(Call::Review, self.port.review(wanted)).await
    }

    async fn list_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        self.measure(Call::ListOrders, self.port.list_orders(store, after, limit)).await
    }

    async fn attest(&self, store: &str) -> Result<Attestation, ReadError> {
        self.measure(Call::Attest, self.port.attest(store)).await
    }
}

#[async_trait]
impl<P: PayeeVerifier + ?Sized> PayeeVerifier for Measured<P> {
    async fn verify(&self, name: &str, iban: &Iban) -> Result<VopReport, NoAnswer> {
        self.measure(Call::VerifyPayee, self.port.verify(name, iban)).await
    }
}

#[async_trait]
impl<P: SanctionsScreen + ?Sized> SanctionsScreen for Measured<P> {
    fn list(&self) -> &str {
        self.port.list()
    }

    async fn screen(&self, iban: &Iban) -> Result<Screening, NoAnswer> {
        self.measure(Call::ScreenPayee, self.port.screen(iban)).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_its_own() {
        let calls: BTreeSet<_> = Call::ALL.iter().map(|call| call.code()).collect();
        assert_eq!(calls.len(), Call::ALL.len());
        let ends: BTreeSet<_> = Ended::ALL.iter().map(|ended| ended.code()).collect();
        assert_eq!(ends.len(), Ended::ALL.len());
    }
}
