//! A small real ERP in a SQLite file of its own, so that it survives the daemon's death as a real
//! one would. It keeps the order contract of [`ErpSource`](countersign_erp_source::ErpSource) to
//! the letter, and fails on demand.
//!
//! It knows nothing of policies, operations or receipts, and nothing of the daemon's store. Several
//! daemons and commands, in several processes, may share one file: all that must hold holds by
//! transactions and constraints of that file.
//!
//! - `world` reads the world file, `fields` what a vendor or bill may say, in it and in the control
//!   surface; `tables` moves rows in and out.
//! - `guard` carries orders out; `connector` is the port; `faults` fail it.
//! - `control` is what a test or a demonstration does behind the gateway's back; `edits` tells what
//!   that changed, for the log.

mod connector;
mod control;
mod edits;
mod faults;
mod fields;
mod guard;
mod payees;
mod sandbox;
mod tables;
mod world;

pub use control::{ControlError, HandPayment, PaymentRecord, SanctionEntry};
pub use faults::{FaultKind, FaultPoint, FaultRequest};
pub use fields::{
    AccountFields, AccountRecord, BillFields, BillRecord, FieldError, KindWord, StateWord,
    VendorFields, VendorRecord, VopEntry, VopWord,
};
pub use sandbox::{OpenError, Options, Sandbox};
pub use world::WorldError;
