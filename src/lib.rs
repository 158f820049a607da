//! Countersign: the caller proposes, the gateway decides, humans countersign.
#![expect(missing_docs, reason = "a daemon's inside; `domain` and the connectors are documented")]

pub mod domain;
pub mod gateway;
pub mod keys;
pub mod receipts;
pub mod store;
