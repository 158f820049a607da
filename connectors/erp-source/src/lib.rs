//! The port to an ERP: the vocabulary that crosses it, what a connector MUST answer, the kinds of
//! error that cannot be confused, and (behind `conformance`) the suite every connector must pass.
//!
//! It knows no ERP, no policy, no store and no HTTP. Ids are the ERP's own, as text.

mod amount;
mod beside;
mod bill;
mod change;
mod iban;
mod ids;
mod log;
mod measured;
mod order;
mod payee;
mod reference;
mod seal;
mod source;
mod time;
mod vendor;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use amount::{Amount, AmountError, Currency, UnknownCurrency};
pub use beside::{Beside, BesideQuery, Document, Likeness, RESEMBLING_DAYS, Traits};
pub use bill::{
    Bill, BillKind, BillQuery, BillReading, BillState, HeaderFigures, Inconsistency,
    PayableFigures, SourceAccount,
};
pub use change::{BankChange, ChangeLookUp, Changed, ChangedAccount, OldAccount, SealedBankChange};
pub use iban::{AccountNumber, Iban, IbanError};
pub use ids::{AccountId, BadId, BillId, CompanyId, ErpCompanyId, JournalId, PaymentId, VendorId};
pub use log::{LoggedChange, LoggedField, Review, Reviewed};
pub use measured::{Call, Ended, Measured, Observer};
pub use order::{
    Booked, BookedState, Difference, LookUp, LookUpAnswer, OrderTextError, PaymentOrder,
    RecordedOrder, SealedOrder,
};
pub use payee::{NoAnswer, PayeeVerifier, SanctionsScreen, Screening, VopReport, VopResult};
pub use reference::{ReferenceKey, look_alikes};
pub use seal::{Marker, MarkerError, Order, SealKey, Sealed};
pub use source::{
    Attestation, Contradiction, ErpSource, Identity, IdentityProof, OrderError, ReadError, Refusal,
};
pub use time::{Clock, Timestamp, TimestampError};
pub use vendor::{Phone, PhoneKind, Vendor, VendorAccount};
