//! Passwords, kept as argon2id hashes. A hash takes memory and time on purpose, so they are made and
//! compared one after another, on a thread that serves nobody.

mod argon;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::oneshot;

use argon::Argon;

/// The shortest password that is taken.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// The longest.
pub const PASSWORD_CHARS_MAX: usize = 128;
/// How many passwords may wait for their turn.
const QUEUE_MAX: usize = 64;
/// How long one waits.
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
        self.hash_in(&Argon::default())
    }

    fn hash_in(&self, argon: &Argon) -> Result<String, PasswordError> {
        let hash = argon.hash_password(self.0.expose_secret().as_bytes());
        hash.map(|hash| hash.to_string())
            .map_err(|fault| PasswordError::NotHashed(fault.to_string()))
    }
}

type Job = Box<dyn FnOnce(&Argon) + Send>;

/// Makes hashes one after another.
///
/// One thread of its own, begun by the first password, with 19 MiB of memory that it keeps.
#[derive(Debug, Default)]
pub(super) struct Hashing {
    queue: OnceLock<Option<SyncSender<Job>>>,
    hashed: Arc<AtomicU64>,
}

impl Hashing {
    /// How many times a hash was made.
    pub(super) fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    /// Whether the password is the one of that hash. Without a hash it is not, and takes as long.
    pub(super) async fn is_password(
        &self,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<bool, PasswordError> {
        self.in_turn(move |argon| {
            is_password(&password, hash.as_deref(), |password, hash| {
                let hash = PasswordHash::new(hash);
                hash.is_ok_and(|hash| argon.verify_password(password, &hash).is_ok())
            })
        })
        .await
    }

    /// The hash of a new password.
    pub(super) async fn hash(&self, password: NewPassword) -> Result<String, PasswordError> {
        self.in_turn(move |argon| password.hash_in(argon)).await?
    }

    /// Does the work when it is its turn; not at all if nobody waits for it any more.
    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Argon) -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let not_hashed = |what: &str| PasswordError::NotHashed(what.to_owned());
        let queue =
            self.queue.get_or_init(begin).as_ref().ok_or_else(|| not_hashed("no thread"))?;
        let (answer, answered) = oneshot::channel();
        let hashed = Arc::clone(&self.hashed);
        let job: Job = Box::new(move |argon| {
            if !answer.is_closed() {
                hashed.fetch_add(1, Ordering::Relaxed);
                drop(answer.send(work(argon)));
            }
        });
        queue.try_send(job).map_err(|_full| PasswordError::Busy)?;
        match tokio::time::timeout(TURN_WITHIN, answered).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_dropped)) => Err(not_hashed("the work was given up")),
            Err(_elapsed) => Err(PasswordError::Busy),
        }
    }
}

/// Begins the thread. It ends when nobody has a password for it any more.
fn begin() -> Option<SyncSender<Job>> {
    let (queue, jobs) = sync_channel(QUEUE_MAX);
    let thread = std::thread::Builder::new().name("passwords".to_owned());
    thread.spawn(move || work_off(&jobs)).ok().map(|_thread| queue)
}

fn work_off(jobs: &Receiver<Job>) {
    let argon = Argon::default();
    for job in jobs {
        // Whoever waits for one that failed sees that no answer comes.
        if catch_unwind(AssertUnwindSafe(|| job(&argon))).is_err() {
            tracing::error!("a password could not be looked at");
        }
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
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

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
        let nobodys = PasswordHash::new(NOBODYS).unwrap();
        let compared = Argon::default().verify_password(b"a password", &nobodys);
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
        let hashing = Hashing::default();
        let hash = NewPassword::new(secret("pässword")).unwrap().hash().unwrap();
        let is =
            async |text: &str| hashing.is_password(secret(text), Some(hash.clone())).await.unwrap();
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
    async fn one_after_another_is_looked_at_and_nobody_waits_in_vain() {
        let hashing = Hashing::default();
        let (free, held) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(hashing.in_turn(move |_| held.recv().is_ok()));
        assert!(poll(first.as_mut()).is_pending());
        // While the first one is looked at: one more than may wait, one of whom leaves.
        let mut waiting: Vec<_> =
            (0..=QUEUE_MAX).map(|_| Box::pin(hashing.in_turn(|_| 7))).collect();
        let busy: Vec<_> = waiting
            .iter_mut()
            .filter_map(|work| match poll(work.as_mut()) {
                Poll::Ready(done) => Some(done),
                Poll::Pending => None,
            })
            .collect();
        // The thread may have taken the first one out of the queue, or not yet.
        assert!(!busy.is_empty() && busy.iter().all(|done| *done == Err(PasswordError::Busy)));
        assert!(hashing.hashed() <= 1);
        let stay = QUEUE_MAX - busy.len();
        waiting.truncate(stay);
        free.send(()).unwrap();
        assert_eq!(first.await, Ok(true));
        for work in waiting {
            assert_eq!(work.await, Ok(7));
        }
        assert_eq!(hashing.in_turn(|_| 8).await, Ok(8));
        assert_eq!(hashing.hashed(), u64::try_from(stay).unwrap() + 2, "not for who left");
    }

    #[tokio::test]
    async fn work_that_fails_ends_nobody_elses() {
        let hashing = Hashing::default();
        let fails = |_: &Argon| -> u8 { panic!("as planned") };
        let failed = hashing.in_turn(fails).await;
        assert!(matches!(failed, Err(PasswordError::NotHashed(_))), "{failed:?}");
        assert_eq!(hashing.in_turn(|_| 8).await, Ok(8));
    }

    fn poll<T>(work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }
}
