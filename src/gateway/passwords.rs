//! Passwords, kept as argon2id hashes. A hash takes memory and time on purpose, so only a few are
//! made or compared at once, on threads that serve nobody meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// The shortest password that is taken.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// The longest.
pub const PASSWORD_CHARS_MAX: usize = 128;
/// How many hashes are made or compared at once: 19 MiB of memory and one core for each.
const AT_ONCE: usize = 2;
/// How long one waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// What a password is compared with where there is none: a hash with the parameters of a new one.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                       AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a text is not taken as a password, or a hash could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too short or too long.
    #[error("a password has {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters")]
    Length,
    /// The hash failed.
    #[error("the password could not be hashed: {0}")]
    NotHashed(String),
    /// Too many wait for a hash.
    #[error("too many passwords are being looked at; try again")]
    Busy,
}

/// A new password of a length that is taken.
#[derive(Debug, Clone)]
pub struct NewPassword(SecretString);

impl NewPassword {
    /// Takes the text as a password.
    ///
    /// # Errors
    /// [`PasswordError::Length`].
    pub fn new(text: SecretString) -> Result<Self, PasswordError> {
        let length = text.expose_secret().chars().count();
        let fits = (PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&length);
        if fits { Ok(Self(text)) } else { Err(PasswordError::Length) }
    }

    /// Its argon2id hash, with salt and parameters. Takes long: not for a thread that serves.
    ///
    /// # Errors
    /// [`PasswordError::NotHashed`].
    pub fn hash(&self) -> Result<String, PasswordError> {
        let hash = Argon2::default().hash_password(self.0.expose_secret().as_bytes());
        hash.map(|hash| hash.to_string())
            .map_err(|fault| PasswordError::NotHashed(fault.to_string()))
    }
}

/// Hashes a few passwords at once.
#[derive(Debug)]
pub(super) struct Hashing {
    places: Arc<Semaphore>,
    hashed: AtomicU64,
}

impl Default for Hashing {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), hashed: AtomicU64::new(0) }
    }
}

impl Hashing {
    /// How many times a hash was made.
    pub(super) fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    /// Whether the password is the one of that hash. Without a hash it is not, and takes as long.
    pub(super) async fn is_password(
        &self,
        tasks: &TaskTracker,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<bool, PasswordError> {
        self.in_turn(tasks, move || {
            is_password(&password, hash.as_deref(), |password, hash| {
                Argon2::default().verify_password(password, hash).is_ok()
            })
        })
        .await
    }

    /// The hash of a new password.
    pub(super) async fn hash(
        &self,
        tasks: &TaskTracker,
        password: NewPassword,
    ) -> Result<String, PasswordError> {
        self.in_turn(tasks, move || password.hash()).await?
    }

    /// Runs the work on a thread of its own. It keeps its place until it ends, also where nobody
    /// waits for it any more.
    async fn in_turn<T: Send + 'static>(
        &self,
        tasks: &TaskTracker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let turn = tokio::time::timeout(TURN_WITHIN, Arc::clone(&self.places).acquire_owned());
        let Ok(Ok(place)) = turn.await else { return Err(PasswordError::Busy) };
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let work = tasks.spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        work.await.map_err(|fault| PasswordError::NotHashed(fault.to_string()))
    }
}

/// Compares with the hash, or with nobody's where there is none.
fn is_password(
    password: &SecretString,
    hash: Option<&str>,
    compare: impl FnOnce(&[u8], &str) -> bool,
) -> bool {
    let same = compare(password.expose_secret().as_bytes(), hash.unwrap_or(NOBODYS));
    same && hash.is_some()
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::Error;

    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    #[test]
    fn who_does_not_exist_costs_what_everybody_costs() {
        // The same kind of hash with the same parameters and lengths as a new one.
        let new = NewPassword::new(secret("a password")).unwrap().hash().unwrap();
        let parameters =
            |hash: &str| hash.split('$').take(4).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parameters(&new), parameters(NOBODYS));
        assert_eq!(new.len(), NOBODYS.len());
        // It is a hash that is computed and compared to its end, not a text that is refused.
        let compared = Argon2::default().verify_password(b"a password", NOBODYS);
        assert_eq!(compared, Err(Error::PasswordInvalid));
        // And it is compared once, as with a hash of somebody's, and is never right.
        for hash in [None, Some(new.as_str())] {
            let mut with = Vec::new();
            let right = is_password(&secret("a password"), hash, |_, hash| {
                with.push(hash.to_owned());
                true
            });
            assert_eq!(right, hash.is_some());
            assert_eq!(with, [hash.unwrap_or(NOBODYS)]);
        }
    }

    #[tokio::test]
    async fn a_password_is_right_or_wrong() {
        let (hashing, tasks) = (Hashing::default(), TaskTracker::new());
        let hash = NewPassword::new(secret("pässword")).unwrap().hash().unwrap();
        let is = async |text: &str| {
            hashing.is_password(&tasks, secret(text), Some(hash.clone())).await.unwrap()
        };
        assert!(is("pässword").await);
        assert!(!is("password").await);
        assert!(!is("").await);
        assert!(!is(&"p".repeat(60_000)).await);
        assert_eq!(hashing.hashed(), 4);
    }

    #[test]
    fn a_password_has_a_length() {
        let length = |count: usize| NewPassword::new(secret(&"é".repeat(count))).is_ok();
        assert!(!length(7));
        assert!(length(8));
        assert!(length(128));
        assert!(!length(129));
    }

    #[tokio::test]
    async fn only_a_few_are_looked_at_at_once_whoever_waits() {
        let (hashing, tasks) = (Hashing::default(), TaskTracker::new());
        let (free, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let mut first = Vec::new();
        for _ in 0..AT_ONCE {
            let held = Arc::clone(&held);
            let work = hashing.in_turn(&tasks, move || held.lock().unwrap().recv().is_ok());
            let mut work = Box::pin(work);
            // Begun, and then nobody waits for it.
            assert!(futures_poll(work.as_mut()).is_pending());
            first.push(work);
        }
        assert_eq!(hashing.places.available_permits(), 0);
        drop(first);
        assert_eq!(hashing.places.available_permits(), 0, "what was begun keeps its place");
        (0..AT_ONCE).for_each(|_| free.send(()).unwrap());
        tasks.close();
        tasks.wait().await;
        assert_eq!(hashing.places.available_permits(), AT_ONCE);
    }

    fn futures_poll<T>(work: std::pin::Pin<&mut impl Future<Output = T>>) -> std::task::Poll<T> {
        work.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
