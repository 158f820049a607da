//! The port: [`ErpSource`] on the sandbox's tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use countersign_erp_source::{
    Attestation, Beside, BesideQuery, Bill, BillId, BillKind, BillQuery, BillReading, Booked,
    ChangeLookUp, Changed, CompanyId, ErpCompanyId, ErpSource, HeaderFigures, Iban, JournalId,
    LoggedChange, LookUp, LookUpAnswer, OrderError, PayableFigures, Phone, PhoneKind, ReadError,
    RecordedOrder, Review, Reviewed, SealedBankChange, SealedOrder, SourceAccount, Timestamp,
    Vendor, VendorAccount, VendorId,
};
use sqlx::SqliteConnection;
use tokio::time::timeout;

use crate::faults::{self, Fault, FaultPoint};
use crate::fields::{BillRow, KindWord, VendorRow};
use crate::guard;
use crate::sandbox::Sandbox;
use crate::tables::{self, CompanyRow, TableError};

mod orders;

impl From<sqlx::Error> for Unusable {
    fn from(error: sqlx::Error) -> Self {
        Self(TableError::from(error).into())
    }
}

impl From<TableError> for Unusable {
    fn from(error: TableError) -> Self {
        Self(error.into())
    }
}

impl From<ReadError> for Unusable {
    fn from(error: ReadError) -> Self {
        Self(error)
    }
}

/// A failed read. A type of its own, so that `?` takes the database's errors too.
struct Unusable(ReadError);

fn malformed(error: &impl std::fmt::Display) -> Unusable {
    Unusable(ReadError::Malformed { what: error.to_string() })
}

impl Sandbox {
    /// The fault that this call must meet; its count is already lower in the file.
    async fn fault_at(&self, point: FaultPoint) -> Result<Option<Fault>, TableError> {
        let mut conn = self.inner.conn().await?;
        let (waits, offset_ms) = faults::waits(&mut conn, point).await?;
        drop(conn);
        self.inner.take_offset(offset_ms);
        if !waits || !self.meets_faults {
            return Ok(None);
        }
        let mut writing = self.inner.write().await?;
        let fault = faults::spend(&mut writing.tx, point).await?;
        writing.commit().await?;
        if let Some(fault) = fault {
            tracing::warn!(fault.on = ?point, fault.what = ?fault.kind, "a sandbox fault acts");
        }
        Ok(fault)
    }

    /// A read within the deadline, which meets the faults of that point.
    pub(crate) async fn read_at<T>(
        &self,
        point: FaultPoint,
        work: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        self.in_time(async {
            let fault = self.fault_at(point).await?;
            faults::hit(fault, work).await
        })
        .await
    }

    /// A read within the deadline.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        match timeout(self.inner.call_deadline, work).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(ReadError::Unavailable { reason: elapsed.to_string() }),
        }
    }

    fn known(&self, company: &CompanyId) -> Result<(), ReadError> {
        let known = self.inner.companies.contains(company);
        if known { Ok(()) } else { Err(ReadError::UnknownCompany(company.clone())) }
    }

    async fn read_bill(
        &self,
        company: &CompanyId,
        wanted: &BillId,
    ) -> Result<Option<BillReading>, Unusable> {
        let mut conn = self.inner.conn().await?;
        let read_at = self.inner.now();
        let Some(sheet) = tables::sheet(&mut conn, company.as_str(), wanted.as_str()).await? else {
            return Ok(None);
        };
        let own_accounts = sheet.company.journals.into_iter().map(|(_, iban)| iban).collect();
        Ok(Some(BillReading {
            bill: bill(company, sheet.bill)?,
            vendor: Some(vendor(company, sheet.vendor)),
            company_currency: sheet.company.currency,
            own_accounts,
            read_at,
        }))
    }

    async fn read_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, Unusable> {
        let (mut tx, now) = self.inner.read().await?;
        let rows = tables::bills(&mut tx, company.as_str(), query).await?;
        readings(&mut tx, company, rows, now).await
    }

    async fn read_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, Unusable> {
        let (mut tx, _) = self.inner.read().await?;
        let after = after.map_or("", VendorId::as_str);
        let ids = tables::vendor_ids_after(&mut tx, company.as_str(), after, limit).await?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let rows = tables::vendors(&mut tx, company.as_str(), &ids).await?;
        Ok(rows.into_values().map(|row| vendor(company, row)).collect())
    }

    async fn read_sources(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, Unusable> {
        let (mut tx, _) = self.inner.read().await?;
        let row = company_row(&mut tx, company).await?;
        let currency = row.currency;
        row.journals
            .into_iter()
            .map(|(code, iban)| {
                let journal = JournalId::new(code).map_err(|error| malformed(&error))?;
                Ok(SourceAccount { journal, iban, currency })
            })
            .collect()
    }
}

async fn company_row(
    conn: &mut SqliteConnection,
    company: &CompanyId,
) -> Result<CompanyRow, Unusable> {
    let row = tables::company(conn, company.as_str()).await?;
    row.ok_or_else(|| Unusable(ReadError::UnknownCompany(company.clone())))
}

async fn readings(
    conn: &mut SqliteConnection,
    company: &CompanyId,
    rows: Vec<BillRow>,
    read_at: Timestamp,
) -> Result<Vec<BillReading>, Unusable> {
    let own = company_row(conn, company).await?;
    let own_accounts: Vec<Iban> = own.journals.into_iter().map(|(_, iban)| iban).collect();
    let wanted: BTreeSet<_> = rows.iter().map(|row| row.vendor.as_str().to_owned()).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let vendors = tables::vendors(conn, company.as_str(), &wanted).await?;
    rows.into_iter()
        .map(|row| {
            Ok(BillReading {
                vendor: vendors.get(&row.vendor).map(|of_bill| vendor(company, of_bill.clone())),
                bill: bill(company, row)?,
                company_currency: own.currency,
                own_accounts: own_accounts.clone(),
                read_at,
            })
        })
        .collect()
}

/// Header and payable lines of the sandbox are one record and cannot contradict each other.
fn bill(company: &CompanyId, row: BillRow) -> Result<Bill, Unusable> {
    let residual = row.residual().map_err(|error| malformed(&error))?;
    Ok(Bill {
        company: company.clone(),
        erp_company: ErpCompanyId::new(company.as_str()).map_err(|error| malformed(&error))?,
        number: Some(row.id.as_str().to_owned()),
        reference: row.reference.clone(),
        kind: match row.kind {
            KindWord::Bill => BillKind::Bill,
            KindWord::CreditNote => BillKind::CreditNote,
        },
        state: guard::bill_state(&row),
        header: HeaderFigures {
            entered: row.vendor.clone(),
            vendor: row.vendor.clone(),
            commercial_vendor: row.vendor.clone(),
            total: row.total,
            residual,
        },
        payable: PayableFigures { vendors: vec![row.vendor], total: row.total, residual },
        named_account: row.named_account,
        date: Some(row.date),
        due: row.due,
        id: row.id,
    })
}

fn vendor(company: &CompanyId, row: VendorRow) -> Vendor {
    let owner = row.id.clone();
    let accounts = row.accounts.into_iter().map(|account| VendorAccount {
        id: account.id,
        owner: owner.clone(),
        number: account.number,
        holder: account.holder,
        active: account.active,
        erp_allows: account.allowed,
        unchanged_since: Some(account.since),
        changed_after_creation: account.changed,
    });
    let phone = row.phone.map(|raw| Phone { kind: PhoneKind::Phone, raw, since: row.phone_since });
    Vendor {
        company: company.clone(),
        name: row.name,
        tax_number: row.tax_number,
        parent: row.parent,
        accounts: accounts.collect(),
        phones: phone.into_iter().collect(),
        id: row.id,
    }
}

fn plain<T>(answer: Result<T, Unusable>) -> Result<T, ReadError> {
    answer.map_err(|Unusable(error)| error)
}

#[async_trait]
impl ErpSource for Sandbox {
    fn companies(&self) -> Vec<CompanyId> {
        self.inner.companies.clone()
    }

    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId> {
        let mut known = self.inner.companies.iter();
        known.find(|company| company.as_str() == erp_company.as_str()).cloned()
    }

    fn erp_company(&self, company: &CompanyId) -> Option<ErpCompanyId> {
        ErpCompanyId::new(company.as_str()).ok()
    }

    async fn find_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        self.known(company)?;
        let work = async { plain(self.read_bill(company, bill).await) };
        self.read_at(FaultPoint::Read, work).await
    }

    async fn list_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        self.known(company)?;
        self.in_time(async { plain(self.read_bills(company, query).await) }).await
    }

    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        self.known(company)?;
        let work = async {
            let mut conn = self.inner.conn().await?;
            Ok(tables::beside(&mut conn, company.as_str(), query).await?)
        };
        self.read_at(FaultPoint::Read, work).await
    }

    async fn find_vendor(
        &self,
        company: &CompanyId,
        wanted: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        self.known(company)?;
        let work = async {
            let (mut tx, _) = self.inner.read().await?;
            let row = tables::vendor(&mut tx, company.as_str(), wanted.as_str()).await?;
            Ok(row.map(|row| vendor(company, row)))
        };
        self.read_at(FaultPoint::Read, work).await
    }

    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        self.known(company)?;
        self.in_time(async { plain(self.read_vendors(company, after, limit).await) }).await
    }

    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError> {
        self.known(company)?;
        self.in_time(async { plain(self.read_sources(company).await) }).await
    }

    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        let erp = Arc::clone(&self.inner);
        let (text, seal) = (order.text().to_owned(), order.seal().to_owned());
        let work = async move { guard::register(&erp, &text, &seal).await };
        self.hand_over(FaultPoint::RegisterPayment, work).await
    }

    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        self.known(&wanted.company)?;
        let work = async { plain(self.read_look_up(wanted).await) };
        self.read_at(FaultPoint::FindPayment, work).await
    }

    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError> {
        let erp = Arc::clone(&self.inner);
        let (text, seal) = (order.text().to_owned(), order.seal().to_owned());
        let work = async move { guard::change(&erp, &text, &seal).await };
        self.hand_over(FaultPoint::UpdateBankDetails, work).await
    }

    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        self.known(&wanted.company)?;
        let work = async { plain(self.read_look_up_change(wanted).await) };
        self.read_at(FaultPoint::FindPayment, work).await
    }

    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        self.known(company)?;
        self.in_time(async { plain(self.read_changes(company, after, limit).await) }).await
    }

    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError> {
        self.known(&wanted.company)?;
        let work = async {
            let mut conn = self.inner.conn().await?;
            Ok(tables::review(&mut conn, wanted).await?)
        };
        self.in_time(work).await
    }

    async fn list_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        self.in_time(async { plain(self.read_orders(store, after, limit).await) }).await
    }

    async fn attest(&self, store: &str) -> Result<Attestation, ReadError> {
        self.in_time(async { plain(self.read_attestation(store).await) }).await
    }
}
