//! What somebody does to a vendor in the ERP, and its entries in the log.

use countersign_erp_source::{Timestamp, VendorId};
use sqlx::SqliteConnection;

use super::{ControlError, company_row};
use crate::edits;
use crate::fields::{AccountRow, FieldError, InField, VendorFields, VendorRecord, VendorRow};
use crate::sandbox::Sandbox;
use crate::tables;

impl Sandbox {
    /// Somebody creates or edits a vendor ([`VendorFields`] says how accounts are matched). An edit
    /// of a number or of an account's activity makes the account as old as the edit. What is not as
    /// it was is in the log.
    pub async fn put_vendor(
        &self,
        company: &str,
        vendor: &str,
        fields: &VendorFields,
    ) -> Result<VendorRecord, ControlError> {
        let mut writing = self.inner.write().await?;
        let now = writing.now;
        company_row(&mut writing.tx, company).await?;
        let before = tables::vendor(&mut writing.tx, company, vendor).await?;
        let mut row = match &before {
            Some(before) => {
                let mut row = before.clone();
                fields.edit(&mut row, now)?;
                row
            }
            None => fields.create(VendorId::new(vendor).in_field("vendor")?, now)?,
        };
        let mut touched = Touched { before: before.into_iter().collect(), others: Vec::new() };
        touched.give(&mut writing.tx, company, fields, &mut row, now).await?;
        let into = touched.merge(&mut writing.tx, company, fields, &mut row).await?;
        let (before, mut after) = (touched.before, touched.others);
        let record = row.record(now);
        after.push(row);

        let mut edits = edits::differences(&before, &after);
        tables::write_vendors(&mut writing.tx, company, &after).await?;
        if let (Some(into), Some(from)) = (into, after.last()) {
            tables::give_bills(&mut writing.tx, company, &from.id, &into).await?;
            edits.push(edits::merged(&from.id, &into));
        }
        tables::log_edits(&mut writing.tx, company, now, &edits).await?;
        writing.commit().await?;
        Ok(record)
    }
}

/// The vendors that an edit touches: all of them as they were, and the others as they become.
struct Touched {
    before: Vec<VendorRow>,
    others: Vec<VendorRow>,
}

impl Touched {
    /// Gives accounts to the vendors that the entries name.
    async fn give(
        &mut self,
        conn: &mut SqliteConnection,
        company: &str,
        fields: &VendorFields,
        row: &mut VendorRow,
        now: Timestamp,
    ) -> Result<(), ControlError> {
        let Some(entries) = &fields.accounts else { return Ok(()) };
        let own = std::mem::take(&mut row.accounts);
        for (entry, mut account) in entries.iter().zip(own) {
            match &entry.owner {
                Some(owner) if owner != row.id.as_str() => {
                    account.restart(now);
                    self.hand_to(conn, company, (owner, "owner"), vec![account]).await?;
                }
                _ => row.accounts.push(account),
            }
        }
        Ok(())
    }

    /// Gives all accounts to the vendor that this one is merged into.
    async fn merge(
        &mut self,
        conn: &mut SqliteConnection,
        company: &str,
        fields: &VendorFields,
        row: &mut VendorRow,
    ) -> Result<Option<VendorId>, ControlError> {
        let Some(into) = &fields.merged_into else { return Ok(None) };
        if into == row.id.as_str() {
            return Err(FieldError::new("merged_into", "is the vendor itself").into());
        }
        let accounts = std::mem::take(&mut row.accounts);
        self.hand_to(conn, company, (into, "merged_into"), accounts).await?;
        Ok(Some(VendorId::new(into.as_str()).in_field("merged_into")?))
    }

    async fn hand_to(
        &mut self,
        conn: &mut SqliteConnection,
        company: &str,
        (vendor, field): (&str, &'static str),
        accounts: Vec<AccountRow>,
    ) -> Result<(), ControlError> {
        let known = self.others.iter().position(|other| other.id.as_str() == vendor);
        let mut other = if let Some(at) = known {
            self.others.swap_remove(at)
        } else {
            let other = tables::vendor(conn, company, vendor).await?;
            let other =
                other.ok_or_else(|| FieldError::new(field, format!("no vendor `{vendor}`")))?;
            self.before.push(other.clone());
            other
        };
        other.take(accounts)?;
        self.others.push(other);
        Ok(())
    }
}
