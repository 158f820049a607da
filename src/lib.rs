#![doc = include_str!("ARCHITECTURE.md")]
#![expect(
    missing_docs,
    reason = "the inside of a daemon; `domain` and the connectors are documented"
)]

pub mod ap;
pub mod app;
pub mod cli;
pub mod clock;
pub mod domain;
pub mod gateway;
pub mod http;
pub mod ids;
pub mod keys;
pub mod metrics;
pub mod receipts;
pub mod settings;
pub mod store;
pub mod telemetry;
pub mod worker;
