//! Where ids and random bits come from. Passed in, so that a simulation can repeat itself.

use std::fmt;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use countersign_erp_source::Timestamp;
use uuid::Uuid;

/// The operating system gave no random bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandomness;

/// A source of random bits.
pub trait Randomness: Send + Sync + fmt::Debug {
    /// Fills the bytes.
    ///
    /// # Errors
    /// [`NoRandomness`]; whoever asked does nothing then.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness>;
}

/// The operating system's.
#[derive(Debug, Default)]
pub struct SystemRandomness(SystemRandom);

impl Randomness for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.0.fill(bytes).ok().ok_or(NoRandomness)
    }
}

/// That many random bytes.
pub fn random<const N: usize>(source: &dyn Randomness) -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    source.fill(&mut bytes)?;
    Ok(bytes)
}

/// A number that orders by time (version 7 of RFC 9562).
pub fn ordered(source: &dyn Randomness, at: Timestamp) -> Result<Uuid, NoRandomness> {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random::<10>(source)?).into_uuid())
}
