//! Stage `authn`: whose mandate is this? A token is an Ed25519 JWS that names a mandate in this
//! store's registry; what it grants is read from the registry, never from the token.

use aws_lc_rs::{constant_time, digest};
use countersign_erp_source::Timestamp;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};

use super::{Gateway, hex};
use crate::domain::mandate::Mandate;
use crate::domain::names::MandateId;
use crate::domain::reason::Reason;
use crate::keys::MandateKey;
use crate::store::StoreError;
use crate::store::people::{self, Granted};

/// What a token is, in its header.
const TYPE: &str = "countersign-mandate+jwt";
/// Longer texts are not looked at.
const TOKEN_CHARS_MAX: usize = 2048;

/// What a token says. No scope and no account number stands in it but the account's fingerprint.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    aud: String,
    exp: i64,
    fpr: String,
    iat: i64,
    jti: String,
    jrn: String,
    sub: String,
}

/// Why a caller is not let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthnError {
    /// The token does not stand; the reason is the same text for all that is wrong with it.
    #[error("{}", .0.text())]
    Refused(Reason),
    /// The registry could not be read.
    #[error("the registry of mandates could not be read")]
    Store(#[source] StoreError),
}

/// A caller with a mandate that stands.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The mandate, from the registry.
    pub mandate: Mandate,
}

/// Writes the token of a mandate.
///
/// # Errors
/// The signature could not be made.
pub fn token(
    key: &MandateKey,
    store: &str,
    mandate: &Mandate,
) -> Result<String, jsonwebtoken::errors::Error> {
    let claims = Claims {
        aud: store.to_owned(),
        exp: mandate.expires_at.as_secs(),
        fpr: mandate.source_fingerprint.clone(),
        iat: mandate.issued_at.as_secs(),
        jti: mandate.id.to_string(),
        jrn: mandate.journal.to_string(),
        sub: mandate.principal.to_string(),
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some(TYPE.to_owned());
    header.kid = Some(key.id().to_owned());
    jsonwebtoken::encode(&header, &claims, key.encoding())
}

/// What the registry keeps of a token.
pub fn token_digest(token: &str) -> String {
    hex(digest::digest(&digest::SHA256, token.as_bytes()).as_ref())
}

fn mandate_id(key: &MandateKey, store: &str, token: &str) -> Option<MandateId> {
    if token.len() > TOKEN_CHARS_MAX {
        return None;
    }
    let header = jsonwebtoken::decode_header(token).ok()?;
    if header.typ.as_deref() != Some(TYPE) || header.kid.as_deref() != Some(key.id()) {
        return None;
    }
    let mut wanted = Validation::new(Algorithm::EdDSA);
    // Expiry is judged by our clock, from the registry.
    wanted.validate_exp = false;
    wanted.set_required_spec_claims(&["aud"]);
    wanted.set_audience(&[store]);
    let claims = jsonwebtoken::decode::<Claims>(token, key.decoding(), &wanted).ok()?.claims;
    if claims.aud != store {
        return None;
    }
    MandateId::parse(&claims.jti).ok()
}

impl Gateway {
    /// Lets a caller in.
    ///
    /// # Errors
    /// [`AuthnError`].
    pub async fn authenticate(&self, token: &str) -> Result<Caller, AuthnError> {
        let invalid = || AuthnError::Refused(Reason::TokenInvalid);
        let id = mandate_id(self.keys().mandate(), self.store().id(), token).ok_or_else(invalid)?;
        let found = self.store().ask(people::granted(&id)).await.map_err(AuthnError::Store)?;
        let Granted { mandate, token_digest: registered, principal_active } =
            found.ok_or_else(invalid)?;
        // Only the very token that was issued, not another one that our key once signed.
        let same = constant_time::verify_slices_are_equal(
            token_digest(token).as_bytes(),
            registered.as_bytes(),
        );
        if same.is_err() {
            return Err(invalid());
        }
        judge(&mandate, principal_active, self.now())?;
        Ok(Caller { mandate })
    }
}

fn judge(mandate: &Mandate, principal_active: bool, now: Timestamp) -> Result<(), AuthnError> {
    if mandate.revoked_at.is_some() || !principal_active {
        return Err(AuthnError::Refused(Reason::MandateRevoked));
    }
    if mandate.is_expired(now) {
        return Err(AuthnError::Refused(Reason::MandateExpired));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::EncodingKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::keys::Keys;

    const STORE: &str = "st_ours";
    const ID: &str = "md_00000000000000000000000000000007";

    fn claims() -> Value {
        json!({
            "aud": STORE, "exp": 2_000_000_000, "fpr": "f", "iat": 1_000_000_000, "jti": ID,
            "jrn": "BNK1", "sub": "marie",
        })
    }

    fn named(key: &MandateKey, typ: &str, id: &str, claims: &Value, by: &EncodingKey) -> bool {
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(typ.to_owned());
        header.kid = Some(id.to_owned());
        let token = jsonwebtoken::encode(&header, claims, by).unwrap();
        mandate_id(key, STORE, &token).is_some()
    }

    #[test]
    fn a_token_of_ours_is_no_other_kind_of_token() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::open(&folder.path().join("ours")).unwrap();
        let others = Keys::open(&folder.path().join("others")).unwrap();
        let (key, ours) = (keys.mandate(), keys.mandate().encoding());
        let changed = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            claims
        };
        assert!(named(key, TYPE, key.id(), &claims(), ours));
        assert!(!named(key, TYPE, key.id(), &claims(), others.mandate().encoding()));
        assert!(!named(key, "JWT", key.id(), &claims(), ours));
        assert!(!named(key, TYPE, "another", &claims(), ours));
        assert!(!named(key, TYPE, key.id(), &changed("aud", json!("st_other")), ours));
        assert!(!named(key, TYPE, key.id(), &changed("aud", json!([STORE, "st_other"])), ours));
        assert!(!named(key, TYPE, key.id(), &changed("aud", Value::Null), ours));
        assert!(!named(key, TYPE, key.id(), &changed("jti", json!("op_7")), ours));
        assert!(!named(key, TYPE, key.id(), &changed("scope", json!("everything")), ours));
        assert!(!named(key, TYPE, key.id(), &changed("sub", json!("m".repeat(2048))), ours));
    }
}
