//! Verification of Payee and sanctions providers that need no network: answers from a file, and
//! none at all.
//!
//! It knows no ERP, no policy and no sandbox, and it never guesses: a name is compared exactly, and
//! what a provider does not answer is never taken for a match.
#![warn(missing_docs)]

mod file;
mod sanctions;
mod verification;

pub use file::{FileError, Problem};
pub use sanctions::{FileSanctions, NoSanctions};
pub use verification::{FileVop, NoVop};
