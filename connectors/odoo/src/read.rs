//! Reading bills, vendors and accounts through the reader, always of one company. It concludes
//! nothing from a record that is missing but that it was not shown.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::{
    AccountNumber, BillId, BillQuery, BillReading, CompanyId, Currency, Iban, Identity, JournalId,
    ReadError, SourceAccount, Timestamp, Vendor, VendorId,
};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::mapping::{self, Unusable, record_id};
use crate::notes::{self, Notes};
use crate::odoo::Odoo;
use crate::rpc::CallError;
use crate::wire::{
    BillRecord, CompanyRecord, JournalRecord, LineRecord, OwnAccountRecord, Page, VendorGroup,
    VendorRecord, bill_fields, line_fields, vendor_fields,
};

/// Documents that a vendor sends.
const PURCHASE_DOCUMENTS: [&str; 3] = ["in_invoice", "in_refund", "in_receipt"];

/// So many records per call at most: an answer stays far below the limit of what is read.
const PAGE_MAX: u16 = 200;

/// A page of bills with their payable lines.
struct BillPage {
    /// All that the page consists of, those passed over included.
    ids: Vec<i32>,
    records: Vec<BillRecord>,
    lines: Vec<LineRecord>,
}

/// What belongs to a company whatever is read of it.
struct CompanyFacts {
    currency: Currency,
    own_accounts: Vec<Iban>,
}

impl Odoo {
    pub(crate) async fn read_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        let erp_company = self.erp_company(company)?;
        let Some(id) = record_id(bill.as_str()) else { return Ok(None) };
        let read_at = self.clock.now();
        let domain = json!([["id", "=", id], ["company_id", "=", erp_company]]);
        let ids = [id];
        let (records, lines, facts) = tokio::join!(
            self.page::<BillRecord>(erp_company, "account.move", domain.clone(), bill_fields(), 1),
            self.payable_lines(erp_company, &ids),
            self.company_facts(erp_company),
        );
        let (records, lines) = match (records, lines) {
            (Ok(records), Ok(lines)) => (records, lines),
            // Shown only in part, as when its vendor was moved to another company: no bill of ours.
            (Err(ReadError::Denied { .. }), _) | (_, Err(ReadError::Denied { .. })) => {
                let page = self.bills_passing_over(erp_company, domain, 1).await?;
                (page.records, page.lines)
            }
            (records, lines) => (records?, lines?),
        };
        let mut readings =
            self.readings(company, erp_company, records, &lines, &facts?, read_at).await?;
        readings.pop().transpose().map_err(|error| unusable(&error))
    }

    pub(crate) async fn read_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        let erp_company = self.erp_company(company)?;
        let mut domain =
            vec![json!(["company_id", "=", erp_company]), json!(["state", "=", "posted"])];
        if query.open_only {
            domain.push(json!(["move_type", "=", "in_invoice"]));
            domain.push(json!(["amount_residual", ">", 0]));
        } else {
            domain.push(json!(["move_type", "in", PURCHASE_DOCUMENTS]));
        }
        if let Some(vendor) = &query.vendor {
            let Some(vendor) = record_id(vendor.as_str()) else { return Ok(Vec::new()) };
            domain.push(json!(["commercial_partner_id", "=", vendor]));
        }
        if let Some(date) = query.due_before {
            domain.push(json!(["invoice_date_due", "<=", date.to_string()]));
        }
        let mut after = match &query.after {
            Some(after) => match record_id(after.as_str()) {
                Some(after) => after,
                None => return Ok(Vec::new()),
            },
            None => 0,
        };
        let facts = self.company_facts(erp_company).await?;
        let mut found = Vec::new();
        loop {
            let missing = usize::from(query.limit).saturating_sub(found.len());
            let page = PAGE_MAX.min(u16::try_from(missing).unwrap_or(PAGE_MAX));
            if page == 0 {
                return Ok(found);
            }
            let mut domain = domain.clone();
            domain.push(json!(["id", ">", after]));
            let read_at = self.clock.now();
            let BillPage { ids, records, lines } =
                self.bills_passing_over(erp_company, Json::Array(domain), page).await?;
            let Some(last) = ids.last().copied() else { return Ok(found) };
            let was_last_page = ids.len() < usize::from(page);
            let readings =
                self.readings(company, erp_company, records, &lines, &facts, read_at).await?;
            // The header's residual only narrows the search; what is open, both figures say.
            let wanted = |reading: &BillReading| !query.open_only || reading.bill.is_open();
            found.extend(readings.into_iter().filter_map(usable).filter(wanted));
            if was_last_page {
                return Ok(found);
            }
            after = last;
        }
    }

    async fn bill_page(
        &self,
        erp_company: i32,
        domain: Json,
        limit: u16,
    ) -> Result<BillPage, ReadError> {
        let records: Vec<BillRecord> =
            self.page(erp_company, "account.move", domain, bill_fields(), limit).await?;
        let ids: Vec<i32> = records.iter().map(|record| record.id).collect();
        let lines = self.payable_lines(erp_company, &ids).await?;
        Ok(BillPage { ids, records, lines })
    }

    /// A page without the bills that Odoo shows only in part: one whose vendor somebody moved to
    /// another company is refused with the whole page that it is on.
    async fn bills_passing_over(
        &self,
        erp_company: i32,
        domain: Json,
        limit: u16,
    ) -> Result<BillPage, ReadError> {
        let denied = match self.bill_page(erp_company, domain.clone(), limit).await {
            Err(denied @ ReadError::Denied { .. }) => denied,
            answer => return answer,
        };
        // Whoever may not read at all is shown no empty list.
        for model in ["account.move", "account.move.line", "res.partner", "res.partner.bank"] {
            let named = json!({ "raise_exception": false });
            let may: bool = self.read(model, "check_access_rights", json!(["read"]), named).await?;
            if !may {
                return Err(denied);
            }
        }
        let named = json!({ "order": "id", "limit": limit, "context": context(erp_company) });
        let ids: Vec<i32> = self.read("account.move", "search", json!([domain]), named).await?;
        let mut whole = BillPage { ids, records: Vec::new(), lines: Vec::new() };
        for id in &whole.ids {
            let domain = json!([["id", "=", id], ["company_id", "=", erp_company]]);
            match self.bill_page(erp_company, domain, 1).await {
                Ok(one) => {
                    whole.records.extend(one.records);
                    whole.lines.extend(one.lines);
                }
                Err(ReadError::Denied { .. }) => {
                    tracing::warn!(id, "a bill of Odoo's is passed over: not all of it is shown");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(whole)
    }

    pub(crate) async fn read_vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        let erp_company = self.erp_company(company)?;
        let Some(id) = record_id(vendor.as_str()) else { return Ok(None) };
        let ids = [id];
        let (billed, records) =
            tokio::join!(self.has_bill(erp_company, id), self.vendor_records(erp_company, &ids),);
        if !billed? {
            return Ok(None);
        }
        let mut vendors = self.vendors(company, erp_company, &records?).await?;
        vendors.remove(&id).transpose().map_err(|error| unusable(&error))
    }

    pub(crate) async fn read_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        let erp_company = self.erp_company(company)?;
        let after = match after {
            Some(after) => match record_id(after.as_str()) {
                Some(after) => after,
                None => return Ok(Vec::new()),
            },
            None => 0,
        };
        // Odoo would order these groups by the vendors' names, and a page by names repeats and
        // skips; so all ids are asked for and the page is cut here.
        let mut domain = billed_domain(erp_company);
        domain.push(json!(["commercial_partner_id.id", ">", after]));
        let fields = json!(["commercial_partner_id"]);
        let groups: Vec<VendorGroup> = self
            .read(
                "account.move",
                "read_group",
                json!([domain, fields, fields]),
                json!({ "lazy": false, "context": context(erp_company) }),
            )
            .await?;
        let ids: BTreeSet<i32> = groups
            .iter()
            .filter_map(|group| group.commercial_partner_id.as_ref().map(|(id, _name)| *id))
            .filter(|id| *id > after)
            .collect();
        let mut found = Vec::new();
        let ids: Vec<i32> = ids.into_iter().collect();
        for page in ids.chunks(usize::from(PAGE_MAX)) {
            let records = self.vendor_records(erp_company, page).await?;
            let vendors = self.vendors(company, erp_company, &records).await?;
            found.extend(vendors.into_values().filter_map(usable));
            if found.len() >= usize::from(limit) {
                break;
            }
        }
        found.truncate(usize::from(limit));
        Ok(found)
    }

    pub(crate) async fn read_source_accounts(
        &self,
        company: &CompanyId,
    ) -> Result<Vec<SourceAccount>, ReadError> {
        let erp_company = self.erp_company(company)?;
        let domain =
            json!(
                [["type", "=", "bank"], ["company_id", "=", erp_company], ["active", "=", true],]
            );
        let fields = json!({
            "code": {}, "currency_id": { "fields": { "name": {} } },
            "bank_account_id": { "fields": { "sanitized_acc_number": {} } },
        });
        let (journals, facts) = tokio::join!(
            self.page::<JournalRecord>(erp_company, "account.journal", domain, fields, PAGE_MAX),
            self.company_facts(erp_company),
        );
        let facts = facts?;
        let mut found = Vec::new();
        for journal in journals? {
            let number = journal
                .bank_account_id
                .as_ref()
                .and_then(|account| account.sanitized_acc_number.as_ref());
            // A journal without an IBAN cannot be named in a mandate, and is no source.
            let Some(iban) = number.and_then(|number| Iban::parse(number).ok()) else { continue };
            let unusable = |field| Unusable { model: "account.journal", id: journal.id, field };
            let currency = match journal.currency_id.as_ref() {
                Some(own) => {
                    Currency::from_code(&own.name).map_err(|_unknown| unusable("currency_id"))
                }
                None => Ok(facts.currency),
            };
            let code = JournalId::new(journal.code.clone()).map_err(|_no_id| unusable("code"));
            let (Some(currency), Some(code)) = (usable(currency), usable(code)) else { continue };
            found.push(SourceAccount { journal: code, iban, currency });
        }
        Ok(found)
    }

    async fn readings(
        &self,
        company: &CompanyId,
        erp_company: i32,
        records: Vec<BillRecord>,
        lines: &[LineRecord],
        facts: &CompanyFacts,
        read_at: Timestamp,
    ) -> Result<Vec<Result<BillReading, Unusable>>, ReadError> {
        let vendors: Vec<VendorRecord> = records
            .iter()
            .filter_map(|record| record.commercial_partner_id.as_ref().cloned())
            .collect();
        let vendors = self.vendors(company, erp_company, &vendors).await?;
        let mut readings = Vec::with_capacity(records.len());
        for record in &records {
            let own: Vec<LineRecord> =
                lines.iter().filter(|line| line.move_id == record.id).cloned().collect();
            let vendor = record.commercial_partner_id.as_ref();
            let vendor = vendor.and_then(|vendor| vendors.get(&vendor.id)).cloned().transpose();
            let reading = mapping::bill(company, record, &own).and_then(|bill| {
                let Some(bill) = bill else { return Ok(None) };
                Ok(Some(BillReading {
                    bill,
                    vendor: vendor?,
                    company_currency: facts.currency,
                    own_accounts: facts.own_accounts.clone(),
                    read_at,
                }))
            });
            readings.extend(reading.transpose());
        }
        Ok(readings)
    }

    /// The records as vendors of the company. One that is not its own commercial partner any more,
    /// or that belongs to another company, is none.
    async fn vendors(
        &self,
        company: &CompanyId,
        erp_company: i32,
        records: &[VendorRecord],
    ) -> Result<BTreeMap<i32, Result<Vendor, Unusable>>, ReadError> {
        let of_company = |record: &&VendorRecord| {
            record.commercial_partner_id.as_ref() == Some(&record.id)
                && record.company_id.as_ref().is_none_or(|id| *id == erp_company)
        };
        let records: Vec<&VendorRecord> = records.iter().filter(of_company).collect();
        let notes = self.notes_on(&records).await?;
        let vendors = records.into_iter().map(|record| {
            let tracked = |account, created| notes.tracked(record.id, account, created);
            (record.id, mapping::vendor(company, erp_company, record, tracked))
        });
        Ok(vendors.collect())
    }

    /// The notes on those vendors of which an account was written after its creation; for the rest
    /// the dates alone prove that nothing changed.
    async fn notes_on(&self, records: &[&VendorRecord]) -> Result<Notes, ReadError> {
        let written = |record: &&&VendorRecord| {
            record.bank_ids.iter().any(|account| account.create_date != account.write_date)
        };
        let asked: BTreeSet<i32> = records.iter().filter(written).map(|record| record.id).collect();
        if asked.is_empty() {
            return Ok(Notes::default());
        }
        notes::read(&self.reader, &asked).await.map_err(|error| error.of_read(Identity::Reader))
    }

    async fn vendor_records(
        &self,
        erp_company: i32,
        ids: &[i32],
    ) -> Result<Vec<VendorRecord>, ReadError> {
        let domain = json!([["id", "in", ids], ["company_id", "in", [false, erp_company]]]);
        self.page(erp_company, "res.partner", domain, vendor_fields(), PAGE_MAX).await
    }

    async fn has_bill(&self, erp_company: i32, vendor: i32) -> Result<bool, ReadError> {
        let mut domain = billed_domain(erp_company);
        domain.push(json!(["commercial_partner_id", "=", vendor]));
        let named = json!({ "limit": 1, "context": context(erp_company) });
        let found: i32 = self.read("account.move", "search_count", json!([domain]), named).await?;
        Ok(found > 0)
    }

    async fn payable_lines(
        &self,
        erp_company: i32,
        bills: &[i32],
    ) -> Result<Vec<LineRecord>, ReadError> {
        let domain = json!([
            ["move_id", "in", bills],
            ["company_id", "=", erp_company],
            ["account_id.account_type", "=", "liability_payable"],
        ]);
        let named = json!({
            "domain": domain, "specification": line_fields(), "order": "id",
            "context": context(erp_company),
        });
        // No limit: a bill of which some lines are missing would be another bill.
        let page: Page<LineRecord> =
            self.read("account.move.line", "web_search_read", json!([]), named).await?;
        Ok(page.records)
    }

    async fn company_facts(&self, erp_company: i32) -> Result<CompanyFacts, ReadError> {
        let own = json!([
            "|",
            ["journal_id.company_id", "=", erp_company],
            ["partner_id.ref_company_ids", "in", [erp_company]],
        ]);
        let numbers = json!({ "sanitized_acc_number": {} });
        let company = json!([["id", "=", erp_company]]);
        let currency = json!({ "currency_id": { "fields": { "name": {} } } });
        let (companies, accounts) = tokio::join!(
            self.page::<CompanyRecord>(erp_company, "res.company", company, currency, 1),
            self.page::<OwnAccountRecord>(erp_company, "res.partner.bank", own, numbers, 1000),
        );
        let company = companies?.pop().ok_or_else(|| malformed("the company is not in Odoo"))?;
        let currency = Currency::from_code(&company.currency_id.name)
            .map_err(|_unknown| malformed("the currency of the company"))?;
        let own_accounts = accounts?
            .iter()
            .filter_map(|account| account.sanitized_acc_number.as_ref())
            .filter_map(|number| AccountNumber::from_erp(number).iban().cloned())
            .collect::<BTreeSet<_>>();
        Ok(CompanyFacts { currency, own_accounts: own_accounts.into_iter().collect() })
    }

    /// One page, ascending by id.
    pub(crate) async fn page<T: DeserializeOwned>(
        &self,
        erp_company: i32,
        model: &str,
        domain: Json,
        fields: Json,
        limit: u16,
    ) -> Result<Vec<T>, ReadError> {
        let named = json!({
            "domain": domain, "specification": fields, "order": "id", "limit": limit,
            "context": context(erp_company),
        });
        let page: Page<T> = self.read(model, "web_search_read", json!([]), named).await?;
        Ok(page.records)
    }

    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        model: &str,
        method: &str,
        args: Json,
        named: Json,
    ) -> Result<T, ReadError> {
        let answer = self.reader.call(model, method, args, named).await;
        answer.map_err(|error: CallError| error.of_read(Identity::Reader))
    }
}

/// One company and nothing of another; archived records too; texts in one language.
pub(crate) fn context(erp_company: i32) -> Json {
    json!({
        "lang": "en_US", "tz": "UTC", "active_test": false, "allowed_company_ids": [erp_company],
    })
}

/// A vendor of a company is a commercial partner with a posted bill there.
pub(crate) fn billed_domain(erp_company: i32) -> Vec<Json> {
    vec![
        json!(["company_id", "=", erp_company]),
        json!(["state", "=", "posted"]),
        json!(["move_type", "in", PURCHASE_DOCUMENTS]),
    ]
}

fn malformed(what: &str) -> ReadError {
    ReadError::Malformed { what: what.to_owned() }
}

/// In a list, one record that cannot be used is left out, or anybody who can write such a one would
/// stop what is done with all others.
fn usable<T>(record: Result<T, Unusable>) -> Option<T> {
    record.inspect_err(|error| tracing::warn!(%error, "a record of Odoo's is passed over")).ok()
}

fn unusable(error: &Unusable) -> ReadError {
    ReadError::Malformed { what: error.to_string() }
}
