//! The company's own accounts, which payments leave from.

use countersign_erp_source::{CompanyId, Iban, SourceAccount};

use super::AccountsPayable;
use super::reading::ReadingError;

impl AccountsPayable {
    /// The company's own account with that number, as the ERP has it.
    ///
    /// # Errors
    /// [`ReadingError::Erp`].
    pub async fn source_account(
        &self,
        company: &CompanyId,
        number: &Iban,
    ) -> Result<Option<SourceAccount>, ReadingError> {
        let accounts = self.ports().erp.source_accounts(company).await;
        let accounts = accounts.map_err(ReadingError::Erp)?;
        Ok(accounts.into_iter().find(|account| account.iban == *number))
    }
}
