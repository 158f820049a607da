//! The key that signs the ledger's heads, and the public half that verifies them.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::Digest;

/// Signs heads. Its `Debug` shows only the public half's id.
pub struct LedgerKey {
    pair: Ed25519KeyPair,
    public: LedgerPublicKey,
}

/// Verifies heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerPublicKey {
    bytes: [u8; 32],
}

/// Bytes or text that are no Ed25519 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an Ed25519 key")]
pub struct NotAKey;

impl LedgerKey {
    /// The key that grows from those 32 secret random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, NotAKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok().ok_or(NotAKey)?;
        let bytes = pair.public_key().as_ref().try_into().ok().ok_or(NotAKey)?;
        Ok(Self { pair, public: LedgerPublicKey { bytes } })
    }

    pub fn public(&self) -> &LedgerPublicKey {
        &self.public
    }

    pub(super) fn sign(&self, text: &str) -> Vec<u8> {
        self.pair.sign(text.as_bytes()).as_ref().to_vec()
    }
}

impl std::fmt::Debug for LedgerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LedgerKey({})", self.public.id())
    }
}

impl LedgerPublicKey {
    /// Reads the 64 hexadecimal digits that [`Self::to_hex`] writes.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let bytes = *Digest::parse(text).ok().ok_or(NotAKey)?.as_bytes();
        Ok(Self { bytes })
    }

    pub fn to_hex(&self) -> String {
        Digest::from_bytes(self.bytes).to_string()
    }

    /// A short name of the key: the first 16 digits of a digest of it.
    pub fn id(&self) -> String {
        let whole = Digest::of(&[b"countersign/ledger-key/v1\n", &self.bytes]).to_string();
        whole.chars().take(16).collect()
    }

    pub(super) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(text.as_bytes(), signature).is_ok()
    }
}
