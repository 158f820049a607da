//! The pipeline: one file for each stage. It knows no accounts payable, no SQL and no HTTP.

pub mod contract;
pub mod pack;
pub mod policy;

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        // Writing into a text cannot fail.
        let _: std::fmt::Result = write!(text, "{byte:02x}");
        text
    })
}
