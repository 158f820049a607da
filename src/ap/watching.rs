//! Watching the ERP: who changed which vendor, and what became of what we booked. It takes no input and
//! is safe to repeat, in several daemons at once. What it is late for, a payment finds at its own
//! moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_erp_source::{
    CompanyId, LoggedChange, LoggedField, PaymentOrder, ReadError, Review, Reviewed, VendorId,
};

use super::AccountsPayable;
use super::sighting::{self, LookError, Told};
use crate::domain::names::OperationId;
use crate::store::watch::{self, BookedOrder, Watch};
use crate::store::{StoreError, precedents};

/// Entries of the log in one read.
const LOG_PAGE: u16 = 500;
/// Entries that are read again each time: what was begun earlier may become visible later.
const OVERLAP: u64 = 200;
/// Vendors that one round compares.
const COMPARED: u16 = 100;
/// How often all vendors are compared.
const COMPARE_EVERY: Duration = Duration::from_hours(6);
/// Orders that one round reviews.
const REVIEWED: i64 = 100;
/// How often all orders are reviewed.
const REVIEW_EVERY: Duration = Duration::from_mins(10);
/// How old an order is when nobody looks at it any more (DESIGN 3).
const REVIEW_FOR: Duration = Duration::from_hours(60 * 24);
/// The alarm that a payment of ours is not what it was.
pub const PAYMENT_CHANGED: &str = "payment_changed";
/// The alarm that a payment is there which was held to be absent.
pub const BOOKED_AFTER_ALL: &str = "booked_after_all";
/// The alarm that a bill was paid beyond its total.
pub const OVERPAID: &str = "overpaid";

/// Why a round did not come to its end; the next one goes on where it stopped.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The ERP did not answer.
    #[error("the ERP could not be watched")]
    Erp(#[source] ReadError),
    /// A vendor could not be compared.
    #[error("a vendor could not be compared")]
    Look(#[from] LookError),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// That a payment of ours is not what it was, or not alone. Its vendor is to be frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub cause: &'static str,
    /// Whose payment.
    pub operation: OperationId,
    /// The vendor.
    pub vendor: String,
    /// What happened and what to do.
    pub detail: String,
    /// What it is about: told once for each.
    pub subject: String,
}

/// What a round found, and where the next one goes on.
#[derive(Debug)]
pub struct Round {
    /// What is to be told, before [`finish`].
    pub findings: Vec<Finding>,
    /// Why the log could not be read to its end.
    pub unread: Option<WatchError>,
    watch: Watch,
}

/// One round for one company: what the log says is new, some vendors of the full comparison, and some
/// orders of the review, where they are due.
///
/// # Errors
/// [`WatchError`].
pub async fn round(pack: &AccountsPayable, company: &CompanyId) -> Result<Round, WatchError> {
    let watch = read(pack, company).await?;
    // The log comes first, as it tells who and when; one that cannot be read keeps nobody from
    // comparing.
    let (watch, unread) = match follow_log(pack, company, watch.clone()).await {
        Ok(further) => (further, None),
        Err(fault) => (watch, Some(fault)),
    };
    let watch = compare_some(pack, company, watch).await?;
    let round = review_some(pack, company, watch).await?;
    Ok(Round { unread, ..round })
}

/// Notes that what a round found was told.
///
/// # Errors
/// The store failed; the next round finds it again.
pub async fn finish(
    pack: &AccountsPayable,
    company: &CompanyId,
    round: Round,
) -> Result<(), StoreError> {
    if round.watch != read(pack, company).await? {
        keep(pack, company, round.watch).await?;
    }
    Ok(())
}

async fn read(pack: &AccountsPayable, company: &CompanyId) -> Result<Watch, StoreError> {
    let company = company.clone();
    pack.ports()
        .store
        .read(move |conn| Box::pin(async move { watch::read(conn, &company).await }))
        .await
}

async fn keep(
    pack: &AccountsPayable,
    company: &CompanyId,
    watch: Watch,
) -> Result<Watch, StoreError> {
    let company = company.clone();
    let written = pack
        .ports()
        .store
        .write(move |unit| {
            Box::pin(async move {
                watch::keep(unit.conn(), &company, &watch).await?;
                Ok(watch)
            })
        })
        .await?;
    Ok(written.value)
}

/// Reads on in the log, and looks at every vendor that it names.
async fn follow_log(
    pack: &AccountsPayable,
    company: &CompanyId,
    mut watch: Watch,
) -> Result<Watch, WatchError> {
    loop {
        let from = watch.after_id.saturating_sub(OVERLAP);
        let page = pack.ports().erp.list_changes(company, from, LOG_PAGE).await;
        let page = page.map_err(WatchError::Erp)?;
        let last = page.last().map(|entry| entry.id);
        let fresh = not_seen(pack, company, from, page).await?;
        look_at_all(pack, company, &fresh).await?;
        let Some(last) = last.filter(|last| *last > watch.after_id || !fresh.is_empty()) else {
            return Ok(watch);
        };
        watch.after_id = watch.after_id.max(last);
        let ids: Vec<u64> = fresh.iter().map(|entry| entry.id).collect();
        let (of, kept) = (company.clone(), watch.clone());
        pack.ports()
            .store
            .write(move |unit| {
                Box::pin(async move {
                    let forget = kept.after_id.saturating_sub(OVERLAP.saturating_mul(2));
                    watch::note(unit.conn(), &of, &ids, forget).await?;
                    watch::keep(unit.conn(), &of, &kept).await
                })
            })
            .await?;
    }
}

/// Those entries that no round has looked at.
async fn not_seen(
    pack: &AccountsPayable,
    company: &CompanyId,
    from: u64,
    page: Vec<LoggedChange>,
) -> Result<Vec<LoggedChange>, StoreError> {
    if page.is_empty() {
        return Ok(page);
    }
    let of = company.clone();
    let seen = pack
        .ports()
        .store
        .read(move |conn| Box::pin(async move { watch::seen(conn, &of, from).await }))
        .await?;
    let seen: BTreeSet<u64> = seen.into_iter().collect();
    Ok(page.into_iter().filter(|entry| !seen.contains(&entry.id)).collect())
}

async fn look_at_all(
    pack: &AccountsPayable,
    company: &CompanyId,
    entries: &[LoggedChange],
) -> Result<(), WatchError> {
    let mut by_vendor: BTreeMap<&VendorId, Vec<&LoggedChange>> = BTreeMap::new();
    // What a sealed order of ours did was written down when it was settled.
    for entry in entries.iter().filter(|entry| !entry.ordered) {
        by_vendor.entry(&entry.vendor).or_default().push(entry);
        // An account that went to another vendor concerns both.
        if let Some(Ok(other)) = entry.after.clone().map(VendorId::new)
            && entry.field == LoggedField::Owner
        {
            look(pack, company, &other, &[entry]).await?;
        }
    }
    for (vendor, of_vendor) in by_vendor {
        look(pack, company, vendor, &of_vendor).await?;
    }
    Ok(())
}

async fn look(
    pack: &AccountsPayable,
    company: &CompanyId,
    vendor: &VendorId,
    entries: &[&LoggedChange],
) -> Result<(), WatchError> {
    let found = pack.ports().erp.find_vendor(company, vendor).await.map_err(WatchError::Erp)?;
    let newest = entries.last();
    let told =
        Told { by: newest.and_then(|entry| entry.by.clone()), at: newest.map(|entry| entry.at) };
    let Some(vendor) = found.filter(|found| found.company == *company) else {
        // One of which the company has no bill any more is not shown either, and is none the worse.
        let takes_away = [LoggedField::Vendor, LoggedField::Parent];
        if entries.iter().any(|entry| takes_away.contains(&entry.field)) {
            sighting::miss(pack.ports(), company, vendor, &told).await?;
        }
        return Ok(());
    };
    if !is_ours_now(pack, company, &vendor.id).await? {
        sighting::look(pack.ports(), company, &vendor, &told).await?;
    }
    Ok(())
}

/// Whether a change of ours is on its way to that vendor: what it does is settled, not found.
async fn is_ours_now(
    pack: &AccountsPayable,
    company: &CompanyId,
    vendor: &VendorId,
) -> Result<bool, StoreError> {
    let executes = precedents::executes(company, vendor.as_str(), super::UPDATE_BANK_DETAILS);
    pack.ports().store.ask(executes).await
}

/// Compares some vendors, where the last comparison of all is old enough.
async fn compare_some(
    pack: &AccountsPayable,
    company: &CompanyId,
    mut watch: Watch,
) -> Result<Watch, WatchError> {
    let now = pack.ports().clock.now();
    let due = watch.compared_at.is_none_or(|at| now.since(at) >= COMPARE_EVERY);
    if watch.compare_after.is_none() && !due {
        return Ok(watch);
    }
    let after = watch.compare_after.clone().and_then(|id| VendorId::new(id).ok());
    let page = pack.ports().erp.list_vendors(company, after.as_ref(), COMPARED).await;
    let page = page.map_err(WatchError::Erp)?;
    for vendor in &page {
        if !is_ours_now(pack, company, &vendor.id).await? {
            sighting::look(pack.ports(), company, vendor, &Told::default()).await?;
        }
    }
    let whole = page.len() < usize::from(COMPARED);
    watch.compare_after = page.last().filter(|_| !whole).map(|vendor| vendor.id.to_string());
    if whole {
        watch.compared_at = Some(now);
    }
    Ok(keep(pack, company, watch).await?)
}

/// Looks again at some of what we booked, where the last review of all is old enough.
async fn review_some(
    pack: &AccountsPayable,
    company: &CompanyId,
    mut watch: Watch,
) -> Result<Round, WatchError> {
    let now = pack.ports().clock.now();
    let due = watch.reviewed_at.is_none_or(|at| now.since(at) >= REVIEW_EVERY);
    if watch.reviewed_seq == 0 && !due {
        return Ok(Round { findings: Vec::new(), unread: None, watch });
    }
    let (of, since, after) = (company.clone(), now.minus(REVIEW_FOR), watch.reviewed_seq);
    let orders = pack
        .ports()
        .store
        .read(move |conn| {
            Box::pin(async move { watch::booked(conn, &of, since, after, REVIEWED).await })
        })
        .await?;
    let whole = i64::try_from(orders.len()).unwrap_or(REVIEWED) < REVIEWED;
    watch.reviewed_seq = orders.last().filter(|_| !whole).map_or(0, |order| order.seq);
    if whole {
        watch.reviewed_at = Some(now);
    }
    Ok(Round { findings: review(pack, company, orders).await?, unread: None, watch })
}

async fn review(
    pack: &AccountsPayable,
    company: &CompanyId,
    orders: Vec<BookedOrder>,
) -> Result<Vec<Finding>, WatchError> {
    let read: Vec<(BookedOrder, PaymentOrder)> = orders
        .into_iter()
        .filter_map(|kept| {
            let order = PaymentOrder::from_exact_text(&kept.order_text, company.clone()).ok()?;
            Some((kept, order))
        })
        .collect();
    if read.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = Review {
        company: company.clone(),
        orders: read.iter().map(|(_, o)| (o.marker.clone(), o.bill.clone())).collect(),
    };
    let found = pack.ports().erp.review(&wanted).await.map_err(WatchError::Erp)?;
    let mut findings = Vec::new();
    for (kept, order) in &read {
        let reviewed = found.iter().find(|reviewed| reviewed.marker == order.marker);
        for (cause, detail) in judge(kept, order, reviewed) {
            findings.push(Finding {
                cause,
                operation: kept.operation.clone(),
                vendor: kept.counterparty.clone(),
                detail,
                subject: format!("{cause}/{}", kept.seq),
            });
        }
    }
    Ok(findings)
}

/// What is not as it was booked.
fn judge(
    kept: &BookedOrder,
    order: &PaymentOrder,
    reviewed: Option<&Reviewed>,
) -> Vec<(&'static str, String)> {
    let id = &kept.operation;
    if kept.absent {
        let booked = reviewed.is_some_and(|reviewed| reviewed.booked.is_some());
        let detail = format!(
            "the ERP has a payment for {id}, of which a human said, or the ERP itself, that it is not \
             booked; budget and sums do not count it: look at the bill's payments, and at whose word \
             it was, before you thaw the vendor"
        );
        return if booked { vec![(BOOKED_AFTER_ALL, detail)] } else { Vec::new() };
    }
    let Some(booked) = reviewed.and_then(|reviewed| reviewed.booked.as_ref()) else {
        let detail = format!(
            "the ERP has no payment any more for {id}, which it had booked; look for it there \
             before you thaw the vendor"
        );
        return vec![(PAYMENT_CHANGED, detail)];
    };
    let mut found = Vec::new();
    let differences: Vec<String> = booked
        .differences(order)
        .into_iter()
        .map(|found| format!("{}: ordered {}, now {}", found.what, found.ordered, found.booked))
        .collect();
    if !differences.is_empty() {
        let detail = format!(
            "the payment of {id} was changed in the ERP ({}); see that the bank file is right, and \
             who did it, before you thaw the vendor",
            differences.join("; ")
        );
        found.push((PAYMENT_CHANGED, detail));
    }
    if reviewed.is_some_and(|reviewed| reviewed.overpaid_minor > 0) {
        let detail = format!(
            "bill {} was paid beyond its total, by a payment beside the one of {id}; find out which \
             one is too much before you thaw the vendor",
            order.bill
        );
        found.push((OVERPAID, detail));
    }
    found
}
