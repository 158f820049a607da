//! Receipts: their exact bytes, the chain they form, signed heads, and verification of all of it.
//!
//! Pure: it knows no database, no file and no time but what is passed in. It does not know what a
//! receipt's data means, only that every byte of it is still what was written.
#![deny(clippy::arithmetic_side_effects)]

mod digest;
mod entry;
mod head;
mod key;
mod receipt;

pub use digest::{Digest, NotADigest};
pub use entry::{Entry, genesis, link};
pub use head::{Head, HeadError, SignedHead};
pub use key::{LedgerKey, LedgerPublicKey, NotAKey};
pub use receipt::{BadReceipt, Receipt, ReceiptKind};
