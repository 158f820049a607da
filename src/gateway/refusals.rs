//! Calls of which no operation came, counted: callers that were not let in, and what could not be
//! taken for a call. One receipt for each address, reason and minute, so that knocking on the door
//! cannot fill the ledger.
//!
//! It knows no HTTP: whoever lets callers in says from where one came.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_erp_source::Timestamp;
use serde_json::{Value, json};

use super::Gateway;
use crate::domain::reason::Reason;
use crate::metrics::Metrics;
use crate::receipts::{Receipt, ReceiptKind};

/// How many addresses, reasons and minutes are kept apart; what comes beyond is counted together.
const ENTRIES_MAX: usize = 10_000;
/// How many receipts are written in one unit of work.
const RECEIPTS_IN_ONE_UNIT: usize = 500;
/// Milliseconds in a minute.
const MINUTE_MS: i64 = 60_000;

/// The count of refusals since the last receipts; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    counts: Arc<Mutex<BTreeMap<Entry, u64>>>,
    metrics: Metrics,
}

/// What is counted together. Ordered by the minute, so that minutes that are over come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    minute: i64,
    /// A code of the closed lists of reasons and problems, never a caller's text.
    code: &'static str,
    /// None stands for all addresses that came when there was no room.
    address: Option<IpAddr>,
}

impl Entry {
    fn data(self, count: u64) -> Value {
        json!({
            "address": self.address.map(|address| address.to_string()),
            "count": count,
            "minute": Timestamp::from_millis(self.minute.saturating_mul(MINUTE_MS)),
            "reason": self.code,
        })
    }
}

impl Refusals {
    /// Counts, and tells what it counts.
    pub fn new(metrics: Metrics) -> Self {
        Self { counts: Arc::default(), metrics }
    }

    /// Counts a caller that was not let in.
    pub fn note(&self, address: IpAddr, reason: Reason, at: Timestamp) {
        self.count(address, reason.code(), at);
    }

    /// Counts a refusal by its code.
    pub fn count(&self, address: IpAddr, code: &'static str, at: Timestamp) {
        self.metrics.refused(code);
        let minute = minute_of(at);
        let mut counts = self.counts();
        let mut entry = Entry { minute, code, address: Some(address.to_canonical()) };
        if counts.len() >= ENTRIES_MAX && !counts.contains_key(&entry) {
            // The oldest such entry takes all, so that these do not grow in number either.
            let lumped =
                counts.keys().find(|kept| kept.address.is_none() && kept.code == code).copied();
            entry = lumped.unwrap_or(Entry { address: None, ..entry });
        }
        add(&mut counts, entry, 1);
    }

    /// Writes a receipt for each entry whose minute is over. What cannot be written stays counted.
    pub async fn flush(&self, gateway: &Gateway) {
        let minute = minute_of(gateway.now());
        let over = {
            let mut counts = self.counts();
            let first = Entry { minute, code: "", address: None };
            let present = counts.split_off(&first);
            std::mem::replace(&mut *counts, present)
        };
        self.write(gateway, over).await;
    }

    /// Writes a receipt for every entry: at the end of the process.
    pub async fn flush_all(&self, gateway: &Gateway) {
        let all = std::mem::take(&mut *self.counts());
        self.write(gateway, all).await;
    }

    async fn write(&self, gateway: &Gateway, counted: BTreeMap<Entry, u64>) {
        let now = gateway.now();
        let mut left: Vec<(Entry, u64)> = counted.into_iter().collect();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(RECEIPTS_IN_ONE_UNIT));
            let data: Vec<Value> = left.iter().map(|(entry, count)| entry.data(*count)).collect();
            let written = gateway
                .store()
                .write(move |unit| {
                    Box::pin(async move {
                        for data in data {
                            let kind = ReceiptKind::DenialCount;
                            unit.receipt(Receipt {
                                kind,
                                at: now,
                                company: None,
                                operation: None,
                                data,
                            })?;
                        }
                        Ok(())
                    })
                })
                .await;
            if let Err(fault) = written {
                tracing::error!(error = %fault, "refusals could not be written down: {fault}");
                // Rather twice in the ledger than never.
                let mut counts = self.counts();
                for (entry, count) in left.into_iter().chain(rest) {
                    add(&mut counts, entry, count);
                }
                return;
            }
            left = rest;
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Entry, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(MINUTE_MS)
}

fn add(counts: &mut BTreeMap<Entry, u64>, entry: Entry, more: u64) {
    let count = counts.entry(entry).or_insert(0);
    *count = count.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn many_addresses_are_counted_together_beyond_the_limit() {
        let refusals = Refusals::default();
        let refuse = |number, minute: i64| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            let at = Timestamp::from_millis(minute * MINUTE_MS + 1);
            refusals.note(address, Reason::TokenInvalid, at);
        };
        (0..20_000).for_each(|number| refuse(number, 5));
        refuse(1, 5);
        refuse(1, 6);
        let counts = refusals.counts();
        assert_eq!(counts.len(), ENTRIES_MAX + 1);
        let first = Entry { minute: 5, code: Reason::TokenInvalid.code(), address: None };
        assert_eq!(counts.get(&first), Some(&10_001));
        assert_eq!(counts.values().sum::<u64>(), 20_002);
        let at = first.data(3).get("minute").cloned();
        assert_eq!(at, Some(json!("1970-01-01T00:05:00.000Z")));
    }
}
