//! Receipts: their exact bytes, the chain they form, signed heads, and verification of all of it.
//!
//! Pure: it knows no database, no file and no time but what is passed in. It does not know what a
//! receipt's data means, only that every byte of it is still what was written.
#![deny(clippy::arithmetic_side_effects)]

mod chain;
mod digest;
mod entry;
mod export;
mod head;
mod key;
mod receipt;

pub use chain::{ChainFault, Verified, Verifier, verify};
pub use digest::{Digest, NotADigest};
pub use entry::{Entry, genesis, link};
pub use export::{ExportFault, ExportHeader, ExportWriter, VerifiedExport, verify_export};
pub use head::{Head, HeadError, SignedHead};
pub use key::{LedgerKey, LedgerPublicKey, NotAKey};
pub use receipt::{BadReceipt, Receipt, ReceiptKind};
