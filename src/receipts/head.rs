//! Signed heads: how far the chain went and with which hash, in words that a human can keep.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_erp_source::Timestamp;

use super::{Digest, LedgerKey, LedgerPublicKey};

const TITLE: &str = "countersign/head/v1";
const SIGNATURE: &str = "\u{2014} countersign ";

/// The newest entry of a chain at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub store: String,
    pub seq: i64,
    pub hash: Digest,
    pub at: Timestamp,
}

/// A head with the ledger's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHead {
    head: Head,
    key_id: String,
    signature: Vec<u8>,
}

/// Text that is no signed head, or one that the key did not sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("not a signed head")]
    Malformed,
    #[error("the head of store `{store}` is signed by key `{key_id}`, not by `{expected}`")]
    OtherKey { store: String, key_id: String, expected: String },
    #[error("the signature on the head of store `{store}` at {seq} is wrong")]
    BadSignature { store: String, seq: i64 },
}

impl Head {
    pub fn sign(self, key: &LedgerKey) -> SignedHead {
        let signature = key.sign(&self.signed_text());
        SignedHead { head: self, key_id: key.public().id(), signature }
    }

    fn signed_text(&self) -> String {
        let Self { store, seq, hash, at } = self;
        format!("{TITLE}\n{store}\n{seq}\n{hash}\n{at}\n")
    }
}

impl SignedHead {
    /// Reads a head without believing it; [`Self::verify`] says whether to.
    pub fn parse(text: &str) -> Result<Self, HeadError> {
        Self::read(text).ok_or(HeadError::Malformed)
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.trim_end_matches('\n').split('\n');
        if lines.next()? != TITLE {
            return None;
        }
        let store = lines.next()?.to_owned();
        let seq = lines.next()?.parse().ok()?;
        let hash = Digest::parse(lines.next()?).ok()?;
        let at = Timestamp::parse(lines.next()?).ok()?;
        if !lines.next()?.is_empty() {
            return None;
        }
        let (key_id, signature) = lines.next()?.strip_prefix(SIGNATURE)?.split_once(' ')?;
        let signature = STANDARD.decode(signature).ok().filter(|bytes| bytes.len() == 64)?;
        let signed =
            Self { head: Head { store, seq, hash, at }, key_id: key_id.to_owned(), signature };
        // One head has one text: another spelling of the same number or time is not ours.
        (lines.next().is_none() && signed.to_text().trim_end() == text.trim_end_matches('\n'))
            .then_some(signed)
    }

    /// The text to keep: the head in lines, an empty one, and the signature in a last one.
    pub fn to_text(&self) -> String {
        let Self { head, key_id, signature } = self;
        format!("{}\n{SIGNATURE}{key_id} {}\n", head.signed_text(), STANDARD.encode(signature))
    }

    pub fn verify(&self, key: &LedgerPublicKey) -> Result<&Head, HeadError> {
        let store = self.head.store.clone();
        let expected = key.id();
        if self.key_id != expected {
            return Err(HeadError::OtherKey { store, key_id: self.key_id.clone(), expected });
        }
        if !key.verifies(&self.head.signed_text(), &self.signature) {
            return Err(HeadError::BadSignature { store, seq: self.head.seq });
        }
        Ok(&self.head)
    }

    /// What it says, whoever signed it.
    pub fn head(&self) -> &Head {
        &self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> (LedgerKey, SignedHead) {
        let key = LedgerKey::from_seed(&[7; 32]).unwrap();
        let at = Timestamp::parse("2026-11-01T10:00:00.000Z").unwrap();
        let head = Head { store: "st_1".to_owned(), seq: 42, hash: Digest::of(&[b"x"]), at };
        let signed = head.sign(&key);
        (key, signed)
    }

    #[test]
    fn a_head_survives_its_text() {
        let (key, signed) = signed();
        let read = SignedHead::parse(&signed.to_text()).unwrap();
        assert_eq!(read, signed);
        assert_eq!(read.verify(key.public()).unwrap().seq, 42);
    }

    #[test]
    fn any_other_text_is_no_head_of_this_key() {
        let (key, signed) = signed();
        let text = signed.to_text();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let believed =
                SignedHead::parse(&changed).is_ok_and(|head| head.verify(key.public()).is_ok());
            // The last line's end carries no meaning, all the rest does.
            assert!(!believed, "byte {at} of {text}");
        }
        for cut in 0..text.len().saturating_sub(1) {
            let Some(short) = text.get(..cut) else { continue };
            assert!(SignedHead::parse(short).is_err(), "{short}");
        }
        let other = LedgerKey::from_seed(&[8; 32]).unwrap();
        assert!(matches!(signed.verify(other.public()), Err(HeadError::OtherKey { .. })));
    }
}
