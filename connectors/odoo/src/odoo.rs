//! The connector: three sessions, the companies, and which action of ours has which id.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::NaiveDate;
use chrono_tz::Tz;
use countersign_erp_source::{
    Attestation, Beside, BesideQuery, BillId, BillQuery, BillReading, Booked, ChangeLookUp,
    Changed, Clock, CompanyId, ErpCompanyId, ErpSource, Identity, LoggedChange, LookUp,
    LookUpAnswer, OrderError, ReadError, RecordedOrder, Review, Reviewed, SealedBankChange,
    SealedOrder, SourceAccount, Vendor, VendorId,
};
use serde::Deserialize;
use serde_json::json;

use crate::guard::{self, ACTIONS};
use crate::http::Endpoint;
use crate::options::{Options, OptionsError, check_companies, check_logins};
use crate::remembered::{Asked, Remembered};
use crate::rpc::{CallError, FAULT_RIGHT, Server, Session};

/// One database of one Odoo.
#[derive(Debug)]
pub struct Odoo {
    pub(crate) reader: Session,
    pub(crate) payer: Session,
    pub(crate) bank_admin: Session,
    pub(crate) database: String,
    pub(crate) companies: BTreeMap<CompanyId, i32>,
    pub(crate) clock: Arc<dyn Clock>,
    time_zone: Tz,
    actions: Remembered<Arc<BTreeMap<String, i32>>>,
}

/// What an action of ours puts into its answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Told<T> {
    pub(crate) countersign: T,
}

#[derive(Debug, Deserialize)]
struct ActionRecord {
    id: i32,
    name: String,
}

impl Odoo {
    /// Takes the options. Nothing is sent yet.
    ///
    /// # Errors
    /// [`OptionsError`] names what cannot be right.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        check_companies(&options.companies)?;
        check_logins([&options.reader.login, &options.payer.login, &options.bank_admin.login])?;
        let endpoint = Endpoint::new(&options.url, options.allow_plaintext, options.call_deadline)?;
        let server = Arc::new(Server { endpoint, database: options.database.clone() });
        Ok(Self {
            reader: Session::new(Arc::clone(&server), options.reader),
            payer: Session::new(Arc::clone(&server), options.payer),
            bank_admin: Session::new(server, options.bank_admin),
            database: options.database,
            companies: options.companies,
            clock: options.clock,
            time_zone: options.time_zone,
            actions: Remembered::nothing(),
        })
    }

    /// The present business date, for an order's accounting date.
    pub fn business_date(&self) -> NaiveDate {
        self.clock.now().to_utc().with_timezone(&self.time_zone).date_naive()
    }

    /// Odoo's id of a configured company.
    pub(crate) fn erp_company(&self, company: &CompanyId) -> Result<i32, ReadError> {
        let known = self.companies.get(company).copied();
        known.ok_or_else(|| ReadError::UnknownCompany(company.clone()))
    }

    /// The id of an action of ours; `None` if it is not there, or twice.
    pub(crate) async fn find_action(&self, name: &str) -> Result<Option<i32>, ReadError> {
        self.action_for_proof(name).await.map_err(|error| error.of_read(Identity::Reader))
    }

    pub(crate) async fn action_for_proof(&self, name: &str) -> Result<Option<i32>, CallError> {
        let known = self.actions.get(self.ask_for_actions()).await?;
        Ok(known.get(name).copied())
    }

    async fn ask_for_actions(&self) -> Result<Asked<Arc<BTreeMap<String, i32>>>, CallError> {
        let ours: Vec<&str> = ACTIONS.iter().map(|action| action.name).collect();
        let args = json!([[["name", "in", ours]], ["name"]]);
        let named = json!({ "context": { "lang": "en_US" } });
        let found: Result<Vec<ActionRecord>, _> =
            self.reader.call("ir.actions.server", "search_read", args, named).await;
        let found = match found {
            Ok(found) => found,
            // Without an installation the reader has not the right to look.
            Err(CallError::Fault(fault)) if fault.code == FAULT_RIGHT => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut by_name = BTreeMap::new();
        let mut twice = Vec::new();
        for action in found {
            if by_name.insert(action.name.clone(), action.id).is_some() {
                twice.push(action.name);
            }
        }
        for name in twice {
            by_name.remove(&name);
        }
        // What is not all there is asked for again.
        let whole = by_name.len() == ACTIONS.len();
        let by_name = Arc::new(by_name);
        Ok(if whole { Asked::Holds(by_name) } else { Asked::JustNow(by_name) })
    }

    pub(crate) async fn forget_actions(&self) {
        self.actions.forget().await;
    }
}

#[async_trait]
impl ErpSource for Odoo {
    fn companies(&self) -> Vec<CompanyId> {
        self.companies.keys().cloned().collect()
    }

    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId> {
        let mut known = self.companies.iter();
        known
            .find(|(_, id)| id.to_string() == erp_company.as_str())
            .map(|(company, _)| company.clone())
    }

    fn erp_company(&self, company: &CompanyId) -> Option<ErpCompanyId> {
        self.companies.get(company).and_then(|id| ErpCompanyId::new(id.to_string()).ok())
    }

    async fn find_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        self.read_bill(company, bill).await
    }

    async fn list_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        self.read_bills(company, query).await
    }

    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        self.read_beside(company, query).await
    }

    async fn find_vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        self.read_vendor(company, vendor).await
    }

    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        self.read_vendors(company, after, limit).await
    }

    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError> {
        self.read_source_accounts(company).await
    }

    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        self.hand_over(order).await
    }

    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        self.look_for(wanted).await
    }

    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError> {
        self.hand_change_over(order).await
    }

    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        self.look_for_change(wanted).await
    }

    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        self.logged_changes(company, after, limit).await
    }

    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError> {
        self.review_payments(wanted).await
    }

    async fn list_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        self.recorded_orders(store, after, limit).await
    }

    async fn attest(&self, store: &str) -> Result<Attestation, ReadError> {
        guard::attest(self, store).await
    }
}
