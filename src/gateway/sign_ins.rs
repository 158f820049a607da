//! How often somebody may try to sign in: guessing is slow, and a flood on one name shuts its owner
//! out no longer than it must.
//!
//! Attempts are counted before a password is looked at, whether the name exists or not; those that
//! succeed are taken back, so that it is failures that are limited. Each name has a limit from each
//! address, and one for all addresses together; from an address where its owner signed in before,
//! the latter neither counts nor stops anybody. So strangers elsewhere cannot keep an owner out who
//! comes from where he always comes from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_erp_source::Timestamp;

use super::window::Window;
use crate::domain::names::Name;

/// Failures in a minute for one name from one address.
const PER_NAME_AND_ADDRESS: u32 = 10;
/// Failures in a minute for one name from all addresses where its owner is not known.
const PER_NAME: u32 = 30;
/// Failures in a minute from one address, for whatever names.
const PER_ADDRESS: u32 = 60;
/// Attempts in a minute from one address, right ones as well: each costs a hash and a receipt.
const ATTEMPTS_PER_ADDRESS: u32 = 300;
/// How many windows are kept; with more, strangers wait until a minute is over.
const WINDOWS_KEPT: usize = 16_384;
/// How long an address stays known for a name.
const KNOWN_FOR: Duration = Duration::from_hours(30 * 24);
/// How many names and addresses are known.
const KNOWN_KEPT: usize = 4096;
/// How long who finds no room is told to wait, in seconds.
const NO_ROOM_SECS: u64 = 60;

/// The counts of one process.
#[derive(Debug, Default)]
pub(super) struct SignIns(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    windows: HashMap<Key, Window>,
    /// When minutes that were over were last forgotten.
    forgot_at: Option<Timestamp>,
    /// Where each name signed in, and when last.
    known: HashMap<(Name, IpAddr), Timestamp>,
}

/// What is counted together. A text that cannot be a name is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Attempts(IpAddr),
    Address(IpAddr),
    Both(Option<Name>, IpAddr),
    Name(Option<Name>),
}

impl SignIns {
    /// Counts an attempt.
    ///
    /// # Errors
    /// In how many seconds to try again, if it is one too many.
    pub(super) fn count(
        &self,
        name: Option<&Name>,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<(), u64> {
        let from = network(from);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = name.is_some_and(|name| counts.is_known(name, from, now));
        counts.count(Key::Attempts(from), ATTEMPTS_PER_ADDRESS, known, now)?;
        // What the first limits stop does not count for the name, which others need.
        counts.count(Key::Address(from), PER_ADDRESS, known, now)?;
        counts.count(Key::Both(name.cloned(), from), PER_NAME_AND_ADDRESS, known, now)?;
        if known {
            return Ok(());
        }
        counts.count(Key::Name(name.cloned()), PER_NAME, known, now)
    }

    /// Notes that an attempt that was counted was the name's owner.
    pub(super) fn succeeded(&self, name: &Name, from: IpAddr, now: Timestamp) {
        let from = network(from);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = counts.is_known(name, from, now);
        counts.take_back(&Key::Address(from));
        counts.take_back(&Key::Both(Some(name.clone()), from));
        if !known {
            counts.take_back(&Key::Name(Some(name.clone())));
        }
        let key = (name.clone(), from);
        if counts.known.len() >= KNOWN_KEPT && !counts.known.contains_key(&key) {
            let oldest = counts.known.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                counts.known.remove(&oldest);
            }
        }
        counts.known.insert(key, now);
    }
}

impl Counts {
    fn is_known(&self, name: &Name, from: IpAddr, now: Timestamp) -> bool {
        let last = self.known.get(&(name.clone(), from));
        last.is_some_and(|last| now.since(*last) < KNOWN_FOR)
    }

    fn count(&mut self, key: Key, most: u32, known: bool, now: Timestamp) -> Result<(), u64> {
        if self.windows.len() >= WINDOWS_KEPT && !self.windows.contains_key(&key) {
            self.forget_what_is_over(now);
            if self.windows.len() >= WINDOWS_KEPT {
                return if known { Ok(()) } else { Err(NO_ROOM_SECS) };
            }
        }
        self.windows.entry(key).or_insert_with(|| Window::new(now)).count(most, now)
    }

    fn take_back(&mut self, key: &Key) {
        if let Some(window) = self.windows.get_mut(key) {
            window.take_back();
        }
    }

    /// Once a second at most: it looks at all of them.
    fn forget_what_is_over(&mut self, now: Timestamp) {
        let just_now = |at: Timestamp| at <= now && now.since(at) < Duration::from_secs(1);
        if self.forgot_at.is_some_and(just_now) {
            return;
        }
        self.forgot_at = Some(now);
        self.windows.retain(|_, window| !window.is_over(now));
    }
}

/// Whoever has one IPv6 address has all that share its first 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let kept = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(kept))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn one_name_from_one_address_is_guessed_ten_times_a_minute() {
        let all = SignIns::default();
        let marie = name("marie");
        for _ in 0..10 {
            assert_eq!(all.count(Some(&marie), address(1), at(100)), Ok(()));
        }
        assert_eq!(all.count(Some(&marie), address(1), at(130)), Err(31));
        assert_eq!(all.count(Some(&marie), address(2), at(130)), Ok(()), "somewhere else");
        assert_eq!(all.count(Some(&name("jean")), address(1), at(130)), Ok(()), "somebody else");
        assert_eq!(all.count(Some(&marie), address(1), at(160)), Ok(()), "a new minute");
    }

    #[test]
    fn who_signs_in_is_not_limited_as_who_fails() {
        let all = SignIns::default();
        let marie = name("marie");
        for _ in 0..300 {
            assert_eq!(all.count(Some(&marie), address(1), at(0)), Ok(()));
            all.succeeded(&marie, address(1), at(0));
        }
        assert_eq!(all.count(Some(&marie), address(1), at(0)), Err(61), "but so often only");
        for _ in 0..10 {
            assert_eq!(all.count(Some(&marie), address(2), at(0)), Ok(()));
        }
        assert!(all.count(Some(&marie), address(2), at(0)).is_err());
    }

    #[test]
    fn one_address_tries_sixty_names_a_minute() {
        let all = SignIns::default();
        for number in 0..60 {
            let name = name(&format!("user-{number}"));
            assert_eq!(all.count(Some(&name), address(1), at(0)), Ok(()));
        }
        assert_eq!(all.count(Some(&name("another")), address(1), at(0)), Err(61));
        assert_eq!(all.count(None, address(1), at(0)), Err(61), "and what is no name");
    }

    #[test]
    fn a_flood_from_many_addresses_stops_strangers_and_not_the_owner() {
        let all = SignIns::default();
        let marie = name("marie");
        all.succeeded(&marie, address(7), at(0));
        for number in 100..130 {
            assert_eq!(all.count(Some(&marie), address(number), at(1)), Ok(()));
        }
        assert_eq!(all.count(Some(&marie), address(200), at(1)), Err(61), "one more stranger");
        for _ in 0..10 {
            assert_eq!(all.count(Some(&marie), address(7), at(2)), Ok(()), "the owner");
        }
        assert_eq!(all.count(Some(&marie), address(7), at(2)), Err(61), "even he only so often");
        assert_eq!(all.count(Some(&marie), address(200), at(62)), Ok(()), "the next minute");
    }

    #[test]
    fn an_address_is_known_for_thirty_days_and_for_its_own_name() {
        let all = SignIns::default();
        let (marie, jean) = (name("marie"), name("jean"));
        all.succeeded(&marie, address(7), at(0));
        let flood = |who: &Name, now: i64| {
            for number in 100..130 {
                all.count(Some(who), address(number), at(now)).unwrap_or_default();
            }
        };
        flood(&jean, 10);
        assert!(all.count(Some(&jean), address(7), at(10)).is_err());
        let day = 24 * 3600;
        flood(&marie, 29 * day);
        assert!(all.count(Some(&marie), address(7), at(29 * day)).is_ok());
        flood(&marie, 31 * day);
        assert!(all.count(Some(&marie), address(7), at(31 * day)).is_err());
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let all = SignIns::default();
        let marie = name("marie");
        all.succeeded(&marie, address(7), at(0));
        let mut refused = 0;
        for number in 1000..30_000 {
            refused += i32::from(all.count(None, address(number), at(1)) == Err(NO_ROOM_SECS));
        }
        assert!(refused > 0);
        assert_eq!(all.0.lock().unwrap().windows.len(), WINDOWS_KEPT);
        assert_eq!(all.count(Some(&marie), address(7), at(1)), Ok(()), "the owner finds room");
        assert_eq!(all.count(None, address(1), at(62)), Ok(()), "a new minute has room");
        for number in 0..5000 {
            all.succeeded(&marie, address(number), at(i64::from(number)));
        }
        assert_eq!(all.0.lock().unwrap().known.len(), KNOWN_KEPT);
        // Who is known already pushes nobody out.
        let before: Vec<_> = all.0.lock().unwrap().known.keys().cloned().collect();
        all.succeeded(&marie, address(4999), at(5000));
        assert!(before.iter().all(|key| all.0.lock().unwrap().known.contains_key(key)));
    }

    #[test]
    fn one_network_is_one_address() {
        let all = SignIns::default();
        let from = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(network(from("2001:db8::1")), network(from("2001:db8::ffff:1")));
        assert_ne!(network(from("2001:db8::1")), network(from("2001:db8:0:1::1")));
        assert_eq!(network(from("::ffff:192.0.2.1")), from("192.0.2.1"));
        let marie = name("marie");
        for host in 0..10 {
            let from = from(&format!("2001:db8::{host}"));
            assert_eq!(all.count(Some(&marie), from, at(0)), Ok(()));
        }
        assert!(all.count(Some(&marie), from("2001:db8::99"), at(0)).is_err());
    }
}
