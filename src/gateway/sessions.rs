//! Humans who are signed in: a session has a secret token, of which the store keeps the digest, and
//! gives its human the roles that the store holds for him at each call.
//!
//! It knows no HTTP: whoever lets callers in hands over what they sent and from where.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_erp_source::{CompanyId, Timestamp};
use secrecy::SecretString;

use super::authn::{self, AuthnError};
use super::passwords::PasswordError;
use super::{CallError, Gateway, Stored};
use crate::domain::names::{Name, SessionId};
use crate::domain::reason::Reason;
use crate::domain::role::Role;
use crate::ids::NoRandomness;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::sessions::{self, Roles, Session};
use crate::store::{StoreError, Unit, people};

/// How long a session lives.
pub const SESSION_LIFE: Duration = Duration::from_hours(12);
/// How many sessions one human may have; a further one ends his oldest.
const SESSIONS_MAX: i64 = 100;
/// What a token begins with, which a mandate token never does.
const PREFIX: &str = "cs_";
/// How many random bytes a token is.
const TOKEN_BYTES: usize = 32;

/// A human who is signed in, with the roles that he held when he was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Human {
    session: SessionId,
    name: Name,
    roles: Roles,
}

impl Human {
    /// Somebody with those roles.
    pub fn new(session: SessionId, name: Name, roles: Roles) -> Self {
        Self { session, name, roles }
    }

    /// The session that he called with.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// His name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The companies in which he holds any role.
    pub fn companies(&self) -> impl Iterator<Item = &CompanyId> {
        self.roles.keys()
    }

    /// Whether he holds any role in that company. If not, the company is as good as none to him.
    pub fn belongs_to(&self, company: &CompanyId) -> bool {
        self.roles.contains_key(company)
    }

    /// Whether he holds that role in that company.
    pub fn holds(&self, company: &CompanyId, role: Role) -> bool {
        self.roles.get(company).is_some_and(|roles| roles.contains(&role))
    }
}

/// A new session.
#[derive(Debug)]
pub struct SignedIn {
    /// The token, which is shown this once.
    pub token: SecretString,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// Why somebody was not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// No such human, another password, or one who may not act: the same for all of these.
    #[error("user or password is not right")]
    Refused,
    /// Too many attempts.
    #[error("too many attempts to sign in")]
    TooMany {
        /// When to try again.
        retry_after_secs: u64,
    },
    /// The password could not be looked at.
    #[error("the password could not be looked at")]
    Password(#[source] PasswordError),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] NoRandomness),
}

impl From<StoreError> for SignInError {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

/// Whether the text could be the token of a session, and so no mandate's.
pub fn is_session_token(token: &str) -> bool {
    token.starts_with(PREFIX)
}

impl Gateway {
    /// Signs a human in.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn sign_in(
        &self,
        user: &str,
        password: SecretString,
        from: IpAddr,
    ) -> Result<SignedIn, SignInError> {
        let name = Name::parse(user).ok();
        let counted = self.0.sign_ins.count(name.as_ref(), from, self.now());
        counted.map_err(|retry_after_secs| SignInError::TooMany { retry_after_secs })?;
        let hash = match name.clone() {
            Some(name) => self.password_of(name).await?,
            None => None,
        };
        // Who does not exist or may not act takes as long as anybody.
        let compared = self.0.hashing.is_password(password, hash.clone()).await;
        let right = compared.map_err(SignInError::Password)?;
        let (true, Some(name), Some(hash)) = (right, name, hash) else {
            return Err(SignInError::Refused);
        };
        let signed_in = self.begin_session(name.clone(), hash).await?;
        self.0.sign_ins.succeeded(&name, from, self.now());
        Ok(signed_in)
    }

    /// Ends the human's own session.
    ///
    /// # Errors
    /// [`CallError::Store`].
    pub async fn sign_out(&self, human: &Human) -> Result<(), CallError> {
        let id = human.session().clone();
        let work = self
            .store()
            .write(move |unit| Box::pin(async move { sessions::end(unit.conn(), &id).await }));
        work.await?;
        Ok(())
    }

    /// Lets a human in.
    ///
    /// # Errors
    /// [`AuthnError`].
    pub async fn authenticate_human(&self, token: &str) -> Result<Human, AuthnError> {
        let invalid = || AuthnError::Refused(Reason::SessionInvalid);
        let (digest, now) = (authn::token_digest(token), self.now());
        let found =
            self.store().ask(sessions::find(&digest, now)).await.map_err(AuthnError::Store)?;
        let Session { id, person, roles } = found.ok_or_else(invalid)?;
        Ok(Human::new(id, person, roles))
    }

    /// How many passwords were hashed since the start, to keep them or to compare them.
    pub fn passwords_hashed(&self) -> u64 {
        self.0.hashing.hashed()
    }

    async fn password_of(&self, name: Name) -> Stored<Option<String>> {
        self.store()
            .read(move |conn| {
                Box::pin(async move { people::find_active_password(conn, &name).await })
            })
            .await
    }

    async fn begin_session(&self, name: Name, hash: String) -> Result<SignedIn, SignInError> {
        let random = self.random::<TOKEN_BYTES>().map_err(SignInError::Randomness)?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let id = SessionId::from_uuid(self.ordered_id().map_err(SignInError::Randomness)?);
        let (digest, now) = (authn::token_digest(&token), self.now());
        let expires_at = now.plus(SESSION_LIFE);
        let begun = self
            .store()
            .write(move |unit| {
                Box::pin(async move {
                    begin(unit, NewSession { id, digest, name, now, expires_at }, &hash).await
                })
            })
            .await?;
        if begun.value {
            Ok(SignedIn { token: SecretString::from(token), expires_at })
        } else {
            Err(SignInError::Refused)
        }
    }
}

struct NewSession {
    id: SessionId,
    digest: String,
    name: Name,
    now: Timestamp,
    expires_at: Timestamp,
}

/// Begins a session, if its human may still act and his password is still the one that was compared.
async fn begin(unit: &mut Unit<'_>, new: NewSession, hash: &str) -> Stored<bool> {
    let present = people::find_active_password(unit.conn(), &new.name).await?;
    if present.as_deref() != Some(hash) {
        return Ok(false);
    }
    sessions::forget_expired(unit.conn(), new.now).await?;
    let NewSession { id, digest, name, now, expires_at } = &new;
    sessions::insert(unit.conn(), id, digest, name, *now, *expires_at).await?;
    sessions::keep_newest(unit.conn(), name, SESSIONS_MAX).await?;
    let companies = people::companies_of(unit.conn(), name).await?;
    // A receipt is read by auditors of its company; who acts in several is the store's business.
    let company = match companies.as_slice() {
        [only] => Some(only.to_string()),
        _ => None,
    };
    unit.receipt(Receipt {
        kind: ReceiptKind::SignedIn,
        at: *now,
        company,
        operation: None,
        data: serde_json::json!({
            "expires_at": expires_at, "session": id.as_str(), "user": name.as_str(),
        }),
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemClock;
    use crate::receipts::LedgerKey;
    use crate::store::{self, Store, StoreOptions};

    fn marie() -> Name {
        Name::parse("marie").unwrap()
    }

    async fn begins(store: &Store, hash: &'static str) -> bool {
        let now = Timestamp::from_millis(1_793_520_000_123);
        let new = NewSession {
            id: SessionId::from_uuid(Uuid::from_u128(7)),
            digest: "d".to_owned(),
            name: marie(),
            now,
            expires_at: now.plus(SESSION_LIFE),
        };
        let work = store.write(move |unit| Box::pin(async move { begin(unit, new, hash).await }));
        work.await.unwrap().value
    }

    #[tokio::test]
    async fn a_password_that_was_changed_meanwhile_begins_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions {
            url: format!("sqlite://{}", folder.path().join("store.db").display()),
            allow_plaintext: false,
            key: Arc::new(LedgerKey::from_seed(&[7; 32]).unwrap()),
            checkpoint_file: None,
            clock: Arc::new(SystemClock),
            role: store::Role::Command,
            metrics: crate::metrics::Metrics::default(),
        };
        let store = Store::open(options).await.unwrap();
        let at = Timestamp::from_millis(1);
        let added = store.write(move |unit| {
            Box::pin(async move { people::insert(unit.conn(), &marie(), "the new hash", at).await })
        });
        added.await.unwrap();
        // The password was compared with the hash that was there a moment before.
        assert!(!begins(&store, "the old hash").await);
        let disabled = store.write(move |unit| {
            Box::pin(async move { people::set_disabled(unit.conn(), &marie(), Some(at)).await })
        });
        assert!(disabled.await.unwrap().value);
        assert!(!begins(&store, "the new hash").await);
        let enabled = store.write(move |unit| {
            Box::pin(async move { people::set_disabled(unit.conn(), &marie(), None).await })
        });
        assert!(enabled.await.unwrap().value);
        assert!(begins(&store, "the new hash").await);
        store.close().await;
    }
}
