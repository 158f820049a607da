//! What callers may read: bills and vendors of one company, in a minimal projection. Callers with a
//! mandate see masked account numbers, signed-in humans whole ones.

use chrono::NaiveDate;
use countersign_erp_source::{
    Beside, BesideQuery, Bill, BillId, BillKind, BillQuery, BillReading, BillState, CompanyId,
    Document, ReadError, ReferenceKey, Timestamp, Traits, Vendor, VendorAccount, VendorId,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::duplicates::{self, Record};
use super::{AccountsPayable, baseline, sighting};
use crate::store::baseline::{AccountStatus, BaselineAccount};
use crate::store::{Questions, StoreError, freezes};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "What deserves a look before a bill is paid.")]
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
    /// Another bill of the vendor is like it, in the ERP or as we paid it.
    PossibleDuplicate,
    /// The vendor owes something back.
    OpenCredit,
    /// The vendor is frozen.
    VendorFrozen,
}

/// A bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Bill")]
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
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub date: Option<NaiveDate>,
    /// What is left.
    pub amount_due: String,
    /// The total.
    pub amount_total: String,
    /// ISO 4217.
    pub currency: &'static str,
    /// When it is due.
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub due_date: Option<NaiveDate>,
    /// How it stands.
    #[schemars(extend("enum" = ["draft", "open", "paid", "cancelled"]))]
    pub state: &'static str,
    /// Masked for agents; `null` where there is none or it is ambiguous.
    pub payee_iban: Option<String>,
    /// What deserves a look.
    pub attention: Vec<Attention>,
}

/// A vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Vendor")]
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
                Ok(self.views(company, &[reading], eyes).await?.pop())
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
        let wanted = filter.reference.as_deref().map(ReferenceKey::of);
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
                    return Ok((self.views(company, &page, eyes).await?, after));
                }
                looked_through += 1;
                let id = reading.bill.id.clone();
                let state_fits =
                    filter.state.as_deref().is_none_or(|state| state == state_of(&reading.bill));
                if reading.bill.kind == BillKind::Bill
                    && state_fits
                    && refers_to(&reading.bill, wanted.as_ref())
                {
                    page.push(reading);
                }
                after = Some(id);
            }
            if last_page {
                return Ok((self.views(company, &page, eyes).await?, None));
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
        let asked = on_file(company, &vendor, self.ports().clock.now());
        let (accounts, _) = self.ports().store.ask(asked).await.map_err(ReadingError::Store)?;
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

    /// Bills of one page, looked beside all at once.
    async fn views(
        &self,
        company: &CompanyId,
        page: &[BillReading],
        eyes: Eyes,
    ) -> Result<Vec<BillView>, ReadingError> {
        let bills: Vec<Document> = page.iter().map(|reading| document(&reading.bill)).collect();
        let mut beside = Beside::default();
        for bills in bills.chunks(BesideQuery::BILLS_MAX) {
            let query = BesideQuery { bills: bills.to_vec(), held: None };
            let some = self.ports().erp.look_beside(company, &query).await;
            let some = some.map_err(ReadingError::Erp)?;
            beside.documents.extend(some.documents);
            beside.cut.extend(some.cut);
            beside.with_credit.extend(some.with_credit);
        }
        let mut views = Vec::with_capacity(page.len());
        for reading in page {
            views.push(self.view(reading, &beside, eyes).await?);
        }
        Ok(views)
    }

    async fn view(
        &self,
        reading: &BillReading,
        beside: &Beside,
        eyes: Eyes,
    ) -> Result<BillView, ReadingError> {
        let bill = &reading.bill;
        let mut attention = Vec::new();
        let mut payee_iban = None;
        let mut record = Record::default();
        if let Some(vendor) = &reading.vendor {
            let kept = self.kept(bill, vendor).await?;
            if kept.frozen {
                attention.push(Attention::VendorFrozen);
            }
            match payee(bill, vendor) {
                Ok(account) => {
                    payee_iban = Some(eyes.see(account));
                    self.of_account(&mut attention, reading, account, &kept.accounts);
                }
                Err(why) => attention.push(why),
            }
            record = kept.record;
        }
        let this = document(bill);
        let cut = beside.cut.contains(&this.id) || record.is_cut();
        if cut || duplicates::judge(&this, &beside.documents, &record).is_suspicious() {
            attention.push(Attention::PossibleDuplicate);
        }
        if beside.with_credit.contains(&this.traits.vendor) {
            attention.push(Attention::OpenCredit);
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

    /// What the store holds about a bill of that vendor. A clearance by anybody counts here: nothing
    /// is decided by it.
    async fn kept(&self, bill: &Bill, vendor: &Vendor) -> Result<Kept, ReadingError> {
        let now = self.ports().clock.now();
        let asked = (
            on_file(&bill.company, vendor, now),
            duplicates::record(&bill.company, &document(bill), None),
        );
        let answered = self.ports().store.ask(asked).await;
        let ((accounts, frozen), record) = answered.map_err(ReadingError::Store)?;
        Ok(Kept { accounts, frozen, record })
    }
}

/// What the store holds about a bill.
struct Kept {
    accounts: Vec<BaselineAccount>,
    frozen: bool,
    record: Record,
}

/// The vendor's accounts as the baseline has them, compared with this reading, and whether the
/// vendor is frozen. A read keeps nothing.
fn on_file(
    company: &CompanyId,
    vendor: &Vendor,
    now: Timestamp,
) -> impl Questions<Answer = (Vec<BaselineAccount>, bool)> + use<> {
    let frozen = freezes::is_frozen(company, vendor.id.as_str());
    let vendor = vendor.clone();
    (sighting::known(company, &vendor), frozen)
        .then(move |(known, frozen)| Ok((baseline::compare(&known, &vendor, now).accounts, frozen)))
}

fn document(bill: &Bill) -> Document {
    Document { id: bill.id.clone(), traits: Traits::of(bill) }
}

/// Whether the bill has that reference, in whichever spelling; all have where none is asked for, and
/// none has one that says nothing.
fn refers_to(bill: &Bill, wanted: Option<&Option<ReferenceKey>>) -> bool {
    let Some(wanted) = wanted else { return true };
    let own = bill.reference.as_deref().and_then(ReferenceKey::of);
    wanted.as_ref().zip(own).is_some_and(|(wanted, own)| wanted.is_same(&own))
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
