//! The first contact with a company's vendors, once for each company and store.

use chrono::NaiveDate;
use countersign_erp_source::{CompanyId, ReadError, Timestamp};

use super::{Ports, baseline};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::StoreError;
use crate::store::baseline::Adoption;

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
    let now = ports.clock.now();
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

/// Whether the company has its baseline.
///
/// # Errors
/// [`AdoptError::Store`].
pub async fn is_adopted(ports: &Ports, company: &CompanyId) -> Result<bool, AdoptError> {
    let company = company.clone();
    ports
        .store
        .read(move |conn| {
            Box::pin(async move { crate::store::baseline::adopted_at(conn, &company).await })
        })
        .await
        .map(|at| at.is_some())
        .map_err(AdoptError::Store)
}
