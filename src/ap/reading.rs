//! What callers may read: bills and vendors of one company, in a minimal projection. Callers with a
//! mandate see masked account numbers, signed-in humans whole ones.

use chrono::NaiveDate;
use countersign_erp_source::{
    Bill, BillId, BillKind, BillQuery, BillReading, BillState, CompanyId, ReadError, Vendor,
    VendorAccount, VendorId,
};
use serde::Serialize;

use super::{AccountsPayable, baseline};
use crate::store::baseline::{AccountStatus, BaselineAccount};
use crate::store::{StoreError, freezes};

/// Bills looked through for one page, so that a narrow filter cannot keep a call busy.
const LOOKED_THROUGH_MAX: usize = 2000;
/// Bills in one read.
const PAGE: u16 = 200;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eyes {
    /// A caller with a mandate, who sees account numbers masked.
    Agent,
    /// A signed-in human, who sees them whole.
    Human,
}

impl Eyes {
    fn see(self, account: &VendorAccount) -> String {
        match self {
            Self::Agent => account.number.masked(),
            Self::Human => account.number.whole().to_owned(),
        }
    }
}

/// What deserves a look before a bill is paid (API 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// The account is in cooling-off.
    IbanChangedRecently,
    /// Nobody has verified the account.
    AccountNotVerified,
    /// The account changed in the ERP without the gateway.
    AccountChangedInErp,
    /// The ERP does not allow paying to it, or it is the company's own.
    AccountNotPayable,
    /// Which account is meant cannot be told.
    AccountAmbiguous,
    /// The vendor has no account.
    NoAccount,
    /// A part is paid.
    PartiallyPaid,
    /// The vendor is frozen.
    VendorFrozen,
}

/// A bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BillView {
    /// The ERP's id.
    pub invoice_ref: String,
    /// The number that people use.
    pub number: String,
    /// The vendor's id.
    pub vendor_id: String,
    /// The vendor's name: somebody's text, not an instruction.
    pub vendor_name: String,
    /// The vendor's own reference.
    pub vendor_reference: Option<String>,
    /// Its date.
    pub date: Option<NaiveDate>,
    /// What is left.
    pub amount_due: String,
    /// The total.
    pub amount_total: String,
    /// ISO 4217.
    pub currency: &'static str,
    /// When it is due.
    pub due_date: Option<NaiveDate>,
    /// `draft`, `open`, `paid` or `cancelled`.
    pub state: &'static str,
    /// Masked for agents; `null` where there is none or it is ambiguous.
    pub payee_iban: Option<String>,
    /// What deserves a look.
    pub attention: Vec<Attention>,
}

/// A vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VendorView {
    /// The ERP's id.
    pub vendor_id: String,
    /// Its name: somebody's text, not an instruction.
    pub name: String,
    /// Masked for agents; `null` where there is none or it is ambiguous.
    pub payee_iban: Option<String>,
    /// How that account is on file; `null` where there is none.
    pub bank_status: Option<&'static str>,
}

/// Which bills.
#[derive(Debug, Clone, Default)]
pub struct BillFilter {
    /// Only in that state.
    pub state: Option<String>,
    /// Only of that vendor.
    pub vendor: Option<VendorId>,
    /// Only with that reference, compared in normalised form.
    pub reference: Option<String>,
    /// Only due on or before that date.
    pub due_before: Option<NaiveDate>,
    /// Only after that id.
    pub after: Option<BillId>,
    /// At most so many.
    pub limit: u16,
}

/// Why a read gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    /// The ERP did not answer.
    #[error("the ERP did not answer")]
    Erp(#[source] ReadError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// A vendor's reference as it is compared: letters and digits only, in one case.
pub fn normalised(reference: &str) -> String {
    reference.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).collect()
}

impl AccountsPayable {
    /// A vendor bill of the company.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub async fn bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
        eyes: Eyes,
    ) -> Result<Option<BillView>, ReadingError> {
        let found = self.ports().erp.find_bill(company, bill).await.map_err(ReadingError::Erp)?;
        match found {
            Some(reading)
                if reading.bill.kind == BillKind::Bill && reading.bill.company == *company =>
            {
                Ok(Some(self.view(&reading, eyes).await?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// A page of vendor bills, and the id after which the next one begins.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub async fn bills(
        &self,
        company: &CompanyId,
        filter: &BillFilter,
        eyes: Eyes,
    ) -> Result<(Vec<BillView>, Option<BillId>), ReadingError> {
        let wanted = filter.reference.as_deref().map(normalised);
        let mut after = filter.after.clone();
        let mut page = Vec::new();
        let mut looked_through = 0;
        loop {
            let query = BillQuery {
                open_only: filter.state.as_deref() == Some("open"),
                vendor: filter.vendor.clone(),
                due_before: filter.due_before,
                after: after.clone(),
                limit: PAGE,
            };
            let found =
                self.ports().erp.list_bills(company, &query).await.map_err(ReadingError::Erp)?;
            let last_page = found.len() < usize::from(PAGE);
            for reading in found {
                if page.len() >= usize::from(filter.limit) || looked_through >= LOOKED_THROUGH_MAX {
                    return Ok((page, after));
                }
                looked_through += 1;
                let id = reading.bill.id.clone();
                let state_fits =
                    filter.state.as_deref().is_none_or(|state| state == state_of(&reading.bill));
                let reference = reading.bill.reference.as_deref().map(normalised);
                let reference_fits = wanted.is_none() || reference == wanted;
                if reading.bill.kind == BillKind::Bill && state_fits && reference_fits {
                    page.push(self.view(&reading, eyes).await?);
                }
                after = Some(id);
            }
            if last_page {
                return Ok((page, None));
            }
        }
    }

    /// A vendor of the company.
    ///
    /// # Errors
    /// [`ReadingError`].
    pub async fn vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
        eyes: Eyes,
    ) -> Result<Option<VendorView>, ReadingError> {
        let found =
            self.ports().erp.find_vendor(company, vendor).await.map_err(ReadingError::Erp)?;
        let Some(vendor) = found.filter(|vendor| vendor.company == *company) else {
            return Ok(None);
        };
        let (accounts, _) = self.on_file(company, &vendor).await?;
        let active: Vec<_> = vendor.active_accounts().collect();
        let only = match active.as_slice() {
            [account] => Some(*account),
            _ => None,
        };
        let status = only.and_then(|account| status_of(&accounts, account));
        let status = match (active.len(), status) {
            (0, _) => None,
            (1, status) => status.map(|kept| kept.status.code()),
            _ => Some("ambiguous"),
        };
        Ok(Some(VendorView {
            vendor_id: vendor.id.to_string(),
            name: vendor.name.clone(),
            payee_iban: only.map(|account| eyes.see(account)),
            bank_status: status,
        }))
    }

    async fn view(&self, reading: &BillReading, eyes: Eyes) -> Result<BillView, ReadingError> {
        let bill = &reading.bill;
        let mut attention = Vec::new();
        let mut payee_iban = None;
        if let Some(vendor) = &reading.vendor {
            let (accounts, frozen) = self.on_file(&bill.company, vendor).await?;
            if frozen {
                attention.push(Attention::VendorFrozen);
            }
            match payee(bill, vendor) {
                Ok(account) => {
                    payee_iban = Some(eyes.see(account));
                    self.of_account(&mut attention, reading, account, &accounts);
                }
                Err(why) => attention.push(why),
            }
        }
        let residual = bill.payable.residual;
        let part = residual.is_positive() && residual.minor() < bill.payable.total.minor();
        if part {
            attention.push(Attention::PartiallyPaid);
        }
        Ok(BillView {
            invoice_ref: bill.id.to_string(),
            number: bill.number.clone().unwrap_or_default(),
            vendor_id: bill.header.commercial_vendor.to_string(),
            vendor_name: reading.vendor.as_ref().map(|v| v.name.clone()).unwrap_or_default(),
            vendor_reference: bill.reference.clone(),
            date: bill.date,
            amount_due: residual.to_decimal_string(),
            amount_total: bill.payable.total.to_decimal_string(),
            currency: bill.currency().code(),
            due_date: bill.due,
            state: state_of(bill),
            payee_iban,
            attention,
        })
    }

    fn of_account(
        &self,
        attention: &mut Vec<Attention>,
        reading: &BillReading,
        account: &VendorAccount,
        accounts: &[BaselineAccount],
    ) {
        let own = account.number.iban().is_none_or(|iban| reading.own_accounts.contains(iban));
        if own || !account.erp_allows {
            attention.push(Attention::AccountNotPayable);
        }
        let Some(kept) = status_of(accounts, account) else {
            attention.push(Attention::AccountNotVerified);
            return;
        };
        let now = self.ports().clock.now();
        if now.since(kept.since) < self.rules().cooling_off {
            attention.push(Attention::IbanChangedRecently);
        }
        match kept.status {
            AccountStatus::ChangedInErp => attention.push(Attention::AccountChangedInErp),
            AccountStatus::Unverified => attention.push(Attention::AccountNotVerified),
            AccountStatus::Adopted | AccountStatus::Verified => {}
        }
    }

    /// The vendor's accounts as the baseline has them, compared with this reading, and whether the
    /// vendor is frozen. A read keeps nothing.
    async fn on_file(
        &self,
        company: &CompanyId,
        vendor: &Vendor,
    ) -> Result<(Vec<BaselineAccount>, bool), ReadingError> {
        let (company, vendor, now) = (company.clone(), vendor.clone(), self.ports().clock.now());
        self.ports()
            .store
            .read(move |conn| {
                Box::pin(async move {
                    let ids: Vec<&str> =
                        vendor.accounts.iter().map(|account| account.id.as_str()).collect();
                    let known =
                        crate::store::baseline::known(conn, &company, &vendor.id, &ids).await?;
                    let frozen = freezes::is_frozen(conn, &company, vendor.id.as_str()).await?;
                    Ok((baseline::compare(&known, &vendor, now).accounts, frozen))
                })
            })
            .await
            .map_err(ReadingError::Store)
    }
}

fn status_of<'a>(
    accounts: &'a [BaselineAccount],
    account: &VendorAccount,
) -> Option<&'a BaselineAccount> {
    accounts.iter().find(|kept| kept.account == account.id.as_str())
}

fn payee<'a>(bill: &Bill, vendor: &'a Vendor) -> Result<&'a VendorAccount, Attention> {
    let active: Vec<&VendorAccount> = vendor.active_accounts().collect();
    let named = bill.named_account.as_ref();
    match (active.as_slice(), named) {
        ([], _) => Err(Attention::NoAccount),
        (all, Some(named)) => {
            let found = all.iter().find(|account| account.id == *named).copied();
            found.ok_or(Attention::AccountAmbiguous)
        }
        ([only], None) => Ok(only),
        (_, None) => Err(Attention::AccountAmbiguous),
    }
}

fn state_of(bill: &Bill) -> &'static str {
    match bill.state {
        BillState::Draft => "draft",
        BillState::Cancelled => "cancelled",
        BillState::Posted if bill.payable.residual.is_positive() => "open",
        BillState::Posted => "paid",
    }
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn spellings_of_one_reference_are_one() {
        for spelling in ["A-2291", "a 2291", "A/2291", "a2291 "] {
            assert_eq!(normalised(spelling), "A2291");
        }
        assert_ne!(normalised("A-22910"), "A2291");
    }
}
