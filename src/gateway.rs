//! The pipeline: one file for each stage. It knows no accounts payable, no SQL and no HTTP.
pub mod policy;
