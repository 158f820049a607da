//! The daemon's own secrets: what signs the ledger and the mandates, what names accounts without
//! showing them, and what seals orders to the ERP.
//!
//! It knows how they are kept on disk. It does not know what is signed or sealed with them.

mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use countersign_erp_source::{Iban, SealKey};
use jsonwebtoken::{DecodingKey, EncodingKey};

use crate::receipts::{Digest, LedgerKey, NotAKey};

/// All keys of one installation, from one folder.
#[derive(Clone)]
pub struct Keys {
    ledger: Arc<LedgerKey>,
    mandate: MandateKey,
    fingerprint: hmac::Key,
    seal: SealKey,
}

/// Signs and verifies mandate tokens (Ed25519, `EdDSA` in a JWS).
#[derive(Clone)]
pub struct MandateKey {
    encoding: EncodingKey,
    decoding: DecodingKey,
    id: String,
}

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot use `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("others than its owner can read the key `{}` (mode {mode:o}); make it 0600", path.display())]
    ReadableByOthers { path: PathBuf, mode: u32 },
    #[error("others than its owner can write to the folder of keys `{}` (mode {mode:o}); make it 0700", path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error("`{}` does not hold a key of 32 bytes in base64", path.display())]
    Malformed { path: PathBuf },
    #[error("no random bytes to be had")]
    NoRandomness,
}

impl Keys {
    /// Reads the keys of that folder, and makes the folder and those that are not there yet.
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        file::make_folder(folder)?;
        let seed = file::read_or_make(&folder.join("ledger.key"))?;
        let malformed = |NotAKey| KeysError::Malformed { path: folder.join("ledger.key") };
        let ledger = LedgerKey::from_seed(&seed).map_err(malformed)?;
        let path = folder.join("mandate.key");
        let mandate = MandateKey::from_seed(&file::read_or_make(&path)?)
            .map_err(|NotAKey| KeysError::Malformed { path })?;
        let fingerprint = file::read_or_make(&folder.join("fingerprint.key"))?;
        let seal = file::read_or_make(&folder.join("seal.key"))?;
        Ok(Self {
            ledger: Arc::new(ledger),
            mandate,
            fingerprint: hmac::Key::new(hmac::HMAC_SHA256, &fingerprint),
            seal: SealKey::from_bytes(seal),
        })
    }

    pub fn ledger(&self) -> &Arc<LedgerKey> {
        &self.ledger
    }

    pub fn mandate(&self) -> &MandateKey {
        &self.mandate
    }

    pub fn seal(&self) -> &SealKey {
        &self.seal
    }

    /// Names an account without showing it: the same for the same IBAN, in this installation only.
    pub fn fingerprint(&self, iban: &Iban) -> String {
        hex(hmac::sign(&self.fingerprint, iban.electronic().as_bytes()).as_ref())
    }
}

impl MandateKey {
    fn from_seed(seed: &[u8; 32]) -> Result<Self, NotAKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok().ok_or(NotAKey)?;
        let private = pair.to_pkcs8v1().ok().ok_or(NotAKey)?;
        let public = pair.public_key().as_ref();
        let id = Digest::of(&[b"countersign/mandate-key/v1\n", public]).to_string();
        Ok(Self {
            encoding: EncodingKey::from_ed_der(private.as_ref()),
            // Despite its name this takes the raw 32 bytes of the public key.
            decoding: DecodingKey::from_ed_der(public),
            id: id.chars().take(16).collect(),
        })
    }

    pub fn encoding(&self) -> &EncodingKey {
        &self.encoding
    }

    pub fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }

    /// The key's name in a token's header (`kid`).
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("ledger", &self.ledger)
            .field("mandate", &self.mandate)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for MandateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MandateKey({})", self.id)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use jsonwebtoken::{Algorithm, Header, Validation, decode, encode};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_same_folder_gives_the_same_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/keys");
        let (first, again) = (Keys::open(&path).unwrap(), Keys::open(&path).unwrap());
        let iban = Iban::parse("DE89370400440532013000").unwrap();
        assert_eq!(first.ledger().public(), again.ledger().public());
        assert_eq!(first.mandate().id(), again.mandate().id());
        assert_eq!(first.fingerprint(&iban), again.fingerprint(&iban));
        assert_eq!(first.seal().bytes(), again.seal().bytes());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);

        let other = Keys::open(&folder.path().join("other")).unwrap();
        assert_ne!(first.fingerprint(&iban), other.fingerprint(&iban));
        let shown = format!("{first:?}");
        let secret = fs::read_to_string(path.join("seal.key")).unwrap();
        assert!(!shown.contains(secret.trim()), "{shown}");
    }

    #[test]
    fn keys_that_others_can_read_or_replace_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        Keys::open(&path).unwrap();
        let open = |path: &Path| Keys::open(path).unwrap_err().to_string();

        let seal = path.join("seal.key");
        fs::set_permissions(&seal, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open(&path).contains("seal.key` (mode 640)"), "{}", open(&path));
        fs::set_permissions(&seal, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(open(&path).contains("keys` (mode 777)"), "{}", open(&path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&seal, "c2hvcnQ=").unwrap();
        assert!(open(&path).contains("seal.key` does not hold a key"), "{}", open(&path));
    }

    #[test]
    fn a_mandate_token_verifies_under_its_own_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::open(&folder.path().join("a")).unwrap();
        let other = Keys::open(&folder.path().join("b")).unwrap();
        let claims = json!({"sub": "agent"});
        let token =
            encode(&Header::new(Algorithm::EdDSA), &claims, keys.mandate().encoding()).unwrap();

        let mut form = Validation::new(Algorithm::EdDSA);
        form.validate_exp = false;
        form.required_spec_claims.clear();
        let read = decode::<Value>(&token, keys.mandate().decoding(), &form).unwrap();
        assert_eq!(read.claims, claims);
        assert!(decode::<Value>(&token, other.mandate().decoding(), &form).is_err());
    }
}
