//! The words of the trade and what is always true of them. Pure: no time but what is passed in, no
//! I/O, no ERP, no policy engine.
#![warn(missing_docs)]

pub mod decision;
pub mod facts;
pub mod mandate;
pub mod names;
pub mod operation;
pub mod reason;
pub mod role;
pub mod vote;
