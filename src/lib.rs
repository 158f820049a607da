//! Countersign: the caller proposes, the gateway decides, humans countersign.

pub mod domain;
pub mod gateway;
