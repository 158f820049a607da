//! Countersign: the caller proposes, the gateway decides, humans countersign.

pub mod clock;
pub mod domain;
pub mod gateway;
pub mod ids;
