//! One receipt in its place in the chain.

use super::{BadReceipt, Digest, Receipt};

/// A receipt with its place, as the store keeps it. `kind`, `company`, `operation` and `at_ms`
/// repeat what the bytes say, so that a database can search; verification compares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// 1 for the first.
    pub seq: i64,
    pub at_ms: i64,
    pub kind: String,
    pub company: Option<String>,
    pub operation: Option<String>,
    /// What is hashed and what counts.
    pub bytes: Vec<u8>,
    pub content: Digest,
    pub prev: Digest,
    pub hash: Digest,
}

impl Entry {
    /// Puts the receipt behind the entry with hash `prev`.
    pub fn behind(
        prev: Digest,
        seq: i64,
        receipt: Receipt,
        store: &str,
    ) -> Result<Self, BadReceipt> {
        let bytes = receipt.to_bytes(store)?;
        let content = Digest::of(&[&bytes]);
        Ok(Self {
            seq,
            at_ms: receipt.at.as_millis(),
            kind: receipt.kind.code().to_owned(),
            company: receipt.company,
            operation: receipt.operation,
            bytes,
            content,
            prev,
            hash: link(prev, content),
        })
    }
}

/// What the first entry of that store follows.
pub fn genesis(store: &str) -> Digest {
    Digest::of(&[b"countersign/genesis/v1\n", store.as_bytes()])
}

/// The hash of the entry with that content behind the entry with hash `prev`.
pub fn link(prev: Digest, content: Digest) -> Digest {
    Digest::of(&[prev.as_bytes(), content.as_bytes()])
}
