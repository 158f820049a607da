//! Odoo 17 behind the port, over its external API (XML-RPC).
//!
//! Reads go through one identity, sealed payments through another, sealed changes of bank details
//! through a third; none can do another's job ([`guard`] installs and proves that). A payment or a
//! change is one call to one action in Odoo, which does exactly what was sealed, once, or nothing.
//!
//! It knows no policy, no store and no approval, and it never sees the key that seals orders but
//! while it is being installed.

mod beside;
mod change;
pub mod guard;
mod http;
mod mapping;
mod notes;
mod odoo;
mod options;
mod pay;
mod read;
mod remembered;
mod rpc;
pub mod seed;
mod wire;
mod xmlrpc;

pub use crate::odoo::Odoo;
pub use crate::options::{Credential, Options, OptionsError};
