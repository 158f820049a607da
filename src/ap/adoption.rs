//! The first contact with a company's vendors, once for each company and store.

use chrono::NaiveDate;
use countersign_erp_source::{CompanyId, ReadError, Timestamp};

use super::{Ports, baseline};
use crate::domain::decision::Stage;
use crate::domain::reason::Reason;
use crate::gateway::pack::{Denial, refuse_waiting};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::attempts::{self, AdoptedOrder};
use crate::store::baseline::Adoption;
use crate::store::{StoreError, callbacks, latest_moment, operations};

/// Vendors in one read.
const PAGE: u16 = 200;

/// What the first contact came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// Done now.
    Now {
        /// How many vendors.
        vendors: usize,
        /// How many accounts.
        accounts: usize,
    },
    /// Done before; nothing was changed.
    Before,
}

/// Why it could not be done; nothing was kept.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The ERP did not show its vendors.
    #[error("the ERP's vendors could not be read")]
    Erp(#[source] ReadError),
    /// An order of the ERP's belongs to no company of the configuration.
    #[error("the ERP's order {seq} belongs to no company of the configuration")]
    NoCompany {
        /// Its sequence number.
        seq: u64,
    },
    /// The store did not keep them.
    #[error("the baseline could not be kept")]
    Store(#[source] StoreError),
}

/// Reads all vendors of the company and makes its baseline.
///
/// # Errors
/// [`AdoptError`]; it can be done again then.
pub async fn adopt(
    ports: &Ports,
    company: &CompanyId,
    since: Option<NaiveDate>,
    by: &str,
) -> Result<Adopted, AdoptError> {
    if is_adopted(ports, company).await? {
        return Ok(Adopted::Before);
    }
    // What a clock that was set back says would make accounts older once it is mended.
    let read = ports.store.read(|conn| Box::pin(async move { latest_moment(conn).await })).await;
    let latest = read.map_err(AdoptError::Store)?;
    let now = ports.clock.now().max(latest);
    let attested = since.map(Timestamp::start_of);
    let mut found = Adoption::default();
    let mut after = None;
    loop {
        let page =
            ports.erp.list_vendors(company, after.as_ref(), PAGE).await.map_err(AdoptError::Erp)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for vendor in &page {
            baseline::adopt(&mut found, vendor, attested, now);
        }
    }
    let (vendors, accounts) = (found.vendors.len(), found.accounts.len());
    let receipt = Receipt {
        kind: ReceiptKind::BaselineAdopted,
        at: now,
        company: Some(company.to_string()),
        operation: None,
        data: serde_json::json!({
            "accounts": accounts, "attested_since": since.map(|date| date.to_string()), "by": by,
            "vendors": vendors,
        }),
    };
    let company = company.clone();
    let written = ports
        .store
        .write(move |unit| {
            Box::pin(async move {
                let conn = unit.conn();
                let fresh =
                    crate::store::baseline::adopt(conn, &company, found, attested, now).await?;
                if fresh {
                    unit.receipt(receipt)?;
                }
                Ok(fresh)
            })
        })
        .await
        .map_err(AdoptError::Store)?;
    Ok(if written.value { Adopted::Now { vendors, accounts } } else { Adopted::Before })
}

/// Orders in one read.
const ORDERS_PAGE: u16 = 500;

/// Takes over what the ERP has of this store's payments and the store itself does not, after a store
/// was restored from an older copy, and goes on above the newest order of any kind. Gives how many.
/// A change of bank details that the store does not know of is one that was made behind its back.
/// Refuses what waits for a bill that was paid so, and voids all open call-backs.
///
/// # Errors
/// [`AdoptError`]; it can be done again then.
pub async fn take_orders_over(ports: &Ports, newest: u64, by: &str) -> Result<usize, AdoptError> {
    let mut found = Vec::new();
    let mut after = newest;
    loop {
        let store = ports.store.id();
        let page =
            ports.erp.list_orders(store, after, ORDERS_PAGE).await.map_err(AdoptError::Erp)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        found.extend(page);
    }
    // The list has payments only; the number may be a change's.
    let proof = ports.erp.attest(ports.store.id()).await.map_err(AdoptError::Erp)?;
    let mut orders = Vec::new();
    for order in found {
        let seq = order.seq;
        let company =
            ports.erp.company_of(&order.erp_company).ok_or(AdoptError::NoCompany { seq })?;
        let bill = ports.erp.find_bill(&company, &order.bill).await.map_err(AdoptError::Erp)?;
        let vendor = bill.map(|reading| reading.bill.header.commercial_vendor.to_string());
        orders.push(AdoptedOrder {
            counterparty: vendor.unwrap_or_default(),
            seq: i64::try_from(order.seq).unwrap_or(i64::MAX),
            marker: order.marker.to_hex(),
            company,
            thing: super::invoice_pay::thing(&order.bill),
            amount: order.amount,
            total: order.total,
            payment: order.payment.to_string(),
            booked_at: order.at,
        });
    }
    let (now, by, highest) = (
        ports.clock.now(),
        by.to_owned(),
        i64::try_from(after.max(proof.newest_seq)).unwrap_or(i64::MAX),
    );
    let written = ports
        .store
        .write(move |unit| {
            Box::pin(async move {
                let mut taken = Vec::new();
                let unknown_here = Denial::new(Stage::Execution, Reason::OrderAdopted);
                for order in &orders {
                    if attempts::take_over(unit.conn(), order).await? {
                        // INVARIANT (I2): one operation books at most one payment. What waits here
                        // may be what was paid there.
                        let conn = unit.conn();
                        let waiting =
                            operations::waiting_on(conn, &order.company, &order.thing).await?;
                        for operation in waiting {
                            refuse_waiting(unit, &operation, &unknown_here, now).await?;
                        }
                        taken.push(order_data(order));
                    }
                }
                // What was heard before the copy may have been denied, or used, after it.
                let because = "the store was restored from a copy";
                let voided = callbacks::void_every(unit.conn(), because, now).await?;
                unit.raise_order_seq(highest).await?;
                let count = taken.len();
                unit.receipt(Receipt {
                    kind: ReceiptKind::OrdersAdopted,
                    at: now,
                    company: None,
                    operation: None,
                    data: serde_json::json!({
                        "by": by, "callbacks_voided": voided, "newest": highest, "orders": taken,
                    }),
                })?;
                Ok(count)
            })
        })
        .await
        .map_err(AdoptError::Store)?;
    Ok(written.value)
}

fn order_data(order: &AdoptedOrder) -> serde_json::Value {
    serde_json::json!({
        "amount": order.amount.to_string(), "booked_at": order.booked_at,
        "company": order.company, "payment": order.payment, "seq": order.seq,
        "thing": order.thing, "total": order.total.to_string(),
    })
}

/// Whether the company has its baseline.
///
/// # Errors
/// [`AdoptError::Store`].
pub async fn is_adopted(ports: &Ports, company: &CompanyId) -> Result<bool, AdoptError> {
    ports
        .store
        .ask(crate::store::baseline::adopted_at(company))
        .await
        .map(|at| at.is_some())
        .map_err(AdoptError::Store)
}
