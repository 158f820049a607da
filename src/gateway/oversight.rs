//! What signed-in humans see of their companies: operations, and for auditors receipts.
//!
//! INVARIANT (I8): what belongs to a company in which the human holds no role is as good as none.

use std::time::Duration;

use countersign_erp_source::CompanyId;

use super::sessions::Human;
use super::{CallError, Gateway};
use crate::domain::names::OperationId;
use crate::domain::operation::{Operation, Status};
use crate::domain::role::Role;
use crate::receipts::Entry;
use crate::store::{StoreError, operations};

/// The most bytes of receipts in one page: a receipt more, and the page ends.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A receipt in its place in the chain, as its auditors read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptShown {
    /// Its number.
    pub seq: i64,
    /// Its exact bytes, which are JSON.
    pub text: String,
    /// SHA-256 of those bytes, in hexadecimal like the following.
    pub content: String,
    /// The hash of the entry before it.
    pub prev: String,
    /// Its own hash: SHA-256 over the one before and its content's.
    pub hash: String,
}

/// Why a receipt is not shown.
#[derive(Debug, thiserror::Error)]
pub enum OversightError {
    /// There is none in the human's companies.
    #[error("no such receipt")]
    NotFound,
    /// The human is no auditor of its company.
    #[error("this takes an auditor of the company")]
    NotAnAuditor,
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

impl Gateway {
    /// An operation of one of the human's companies, waiting for it to leave a waiting state.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn operation_for(
        &self,
        human: &Human,
        id: &OperationId,
        wait: Duration,
    ) -> Result<Operation, CallError> {
        let found = self.find(id).await?;
        let found = found.filter(|found| human.belongs_to(&found.origins.company));
        let found = found.ok_or(CallError::NotFound)?;
        if wait.is_zero() || found.status.is_final() {
            return Ok(found);
        }
        self.wait_until(found.id, wait, |operation| operation.status.is_final()).await
    }

    /// The operations of a company after that id, ascending.
    ///
    /// # Errors
    /// [`CallError::Store`].
    pub async fn operations_of(
        &self,
        company: &CompanyId,
        status: Option<Status>,
        after: String,
        limit: u16,
    ) -> Result<Vec<Operation>, CallError> {
        let (company, limit) = (company.clone(), i64::from(limit));
        let found = self.store().read(move |conn| {
            Box::pin(
                async move { operations::of_company(conn, &company, status, &after, limit).await },
            )
        });
        Ok(found.await?)
    }

    /// A page of the receipts of a company after that number, and whether it is the last one.
    ///
    /// # Errors
    /// [`OversightError::Store`].
    pub async fn receipts_of(
        &self,
        company: &CompanyId,
        after: i64,
        limit: u16,
    ) -> Result<(Vec<ReceiptShown>, bool), OversightError> {
        let more = u32::from(limit).saturating_add(1);
        let entries = self.store().company_receipts_after(company.as_str(), after, more).await?;
        let mut page = Vec::new();
        let mut bytes = 0_usize;
        for entry in entries {
            if page.len() >= usize::from(limit) || bytes >= PAGE_BYTES_MAX {
                return Ok((page, false));
            }
            bytes = bytes.saturating_add(entry.bytes.len());
            page.push(shown(entry)?);
        }
        Ok((page, true))
    }

    /// A receipt of one of the companies whose auditor the human is.
    ///
    /// # Errors
    /// [`OversightError`].
    pub async fn receipt_for(
        &self,
        human: &Human,
        seq: i64,
    ) -> Result<ReceiptShown, OversightError> {
        let found = self.store().find_receipt(seq).await?.ok_or(OversightError::NotFound)?;
        // What concerns the whole store is the operator's.
        let company = found.company.clone().and_then(|company| CompanyId::new(company).ok());
        let company = company.filter(|company| human.belongs_to(company));
        let company = company.ok_or(OversightError::NotFound)?;
        if !human.holds(&company, Role::Auditor) {
            return Err(OversightError::NotAnAuditor);
        }
        Ok(shown(found)?)
    }
}

fn shown(entry: Entry) -> Result<ReceiptShown, StoreError> {
    let not_text = |_fault| StoreError::inconsistent("receipts", "bytes", "are not UTF-8");
    Ok(ReceiptShown {
        seq: entry.seq,
        text: String::from_utf8(entry.bytes).map_err(not_text)?,
        content: entry.content.to_string(),
        prev: entry.prev.to_string(),
        hash: entry.hash.to_string(),
    })
}
