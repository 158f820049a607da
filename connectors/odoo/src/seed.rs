//! A fresh database of Odoo, filled for a demonstration or a test: company, bank journal, vendors,
//! bills. Over the external API alone, as an administrator; never part of the running daemon.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::http::Endpoint;
use crate::options::{Credential, OptionsError};
use crate::rpc::{CallError, FAULT_UNFORESEEN, Server, Session};

/// How long a call may take: a chart of accounts is much work.
const CALL_DEADLINE: Duration = Duration::from_mins(5);

/// Which database, and who may fill it.
#[derive(Debug, Clone)]
pub struct SeedOptions {
    /// The address.
    pub url: String,
    /// The database.
    pub database: String,
    /// As in [`crate::Options`].
    pub allow_plaintext: bool,
    /// An administrator.
    pub admin: Credential,
}

/// Why seeding ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// Something in the options cannot be right.
    #[error("the options cannot be right")]
    Options(#[from] OptionsError),
    /// A call failed.
    #[error("`{call}`: {reason}")]
    Call {
        /// Which one.
        call: String,
        /// For people.
        reason: String,
    },
    /// A record that a fresh database has.
    #[error("Odoo has no {0}")]
    Missing(&'static str),
}

/// A company that pays.
#[derive(Debug, Clone)]
pub struct CompanySeed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its country, by code.
    pub country: &'a str,
    /// Its currency, by code.
    pub currency: &'a str,
    /// The account of its bank journal.
    pub iban: &'a str,
}

/// A vendor with one account.
#[derive(Debug, Clone)]
pub struct VendorSeed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its telephone number; empty for none.
    pub phone: &'a str,
    /// The account.
    pub iban: &'a str,
    /// Whether Odoo may pay to it.
    pub trusted: bool,
}

/// A bill with one line and no tax.
#[derive(Debug, Clone)]
pub struct BillSeed<'a> {
    /// The company, by Odoo's id.
    pub company: i32,
    /// The vendor, by Odoo's id.
    pub vendor: i32,
    /// The vendor's own reference.
    pub reference: &'a str,
    /// The total, as decimal text.
    pub total: &'a str,
    /// The bill's date.
    pub date: &'a str,
    /// When it is due.
    pub due: &'a str,
}

/// A vendor as it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeededVendor {
    /// Odoo's id of the vendor.
    pub vendor: i32,
    /// Odoo's id of its account.
    pub account: i32,
}

/// What the demonstration consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    /// Odoo's id of the company.
    pub company: i32,
    /// ACME Supplies.
    pub acme: SeededVendor,
    /// Globex.
    pub globex: SeededVendor,
    /// INV-2290 of ACME Supplies over 1840.00.
    pub inv_2290: i32,
    /// INV-2291 of Globex over 1200.00.
    pub inv_2291: i32,
}

/// The company of the demonstration. Its number and the vendors' belong to nobody.
pub const DEMO_COMPANY: CompanySeed<'_> = CompanySeed {
    name: "Blue Sparrow GmbH",
    country: "DE",
    currency: "EUR",
    iban: "DE93999999990000000001",
};

/// An administrator's session.
#[derive(Debug)]
pub struct Seeder {
    session: Session,
}

#[derive(Deserialize)]
struct Id {
    id: i32,
}

#[derive(Deserialize)]
struct Charted {
    chart_template: Json,
}

impl Seeder {
    /// Takes the options. Nothing is sent yet.
    ///
    /// # Errors
    /// An address that cannot be right.
    pub fn new(options: SeedOptions) -> Result<Self, SeedError> {
        let endpoint = Endpoint::new(&options.url, options.allow_plaintext, CALL_DEADLINE)?;
        let server = Arc::new(Server { endpoint, database: options.database });
        Ok(Self { session: Session::new(server, options.admin) })
    }

    /// Fills a fresh database for the demonstration; a chart of accounts may be missing.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn demo(&self, bill_date: &str, due: &str) -> Result<Demo, SeedError> {
        let company = 1;
        self.chart(company).await?;
        self.company(company, &DEMO_COMPANY).await?;
        let acme = VendorSeed {
            name: "ACME Supplies",
            phone: "+49 30 5550 2290",
            iban: "DE69999999991000000011",
            trusted: true,
        };
        let globex = VendorSeed {
            name: "Globex",
            phone: "+49 30 5550 2291",
            iban: "DE42999999991000000012",
            trusted: true,
        };
        let (acme, globex) = (self.vendor(&acme).await?, self.vendor(&globex).await?);
        let bill = |vendor: SeededVendor, reference, total| BillSeed {
            company,
            vendor: vendor.vendor,
            reference,
            total,
            date: bill_date,
            due,
        };
        let inv_2290 = self.bill(&bill(acme, "INV-2290", "1840.00")).await?;
        let inv_2291 = self.bill(&bill(globex, "INV-2291", "1200.00")).await?;
        Ok(Demo { company, acme, globex, inv_2290, inv_2291 })
    }

    /// Gives a company without entries its name, country, currency and account.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn company(&self, company: i32, seed: &CompanySeed<'_>) -> Result<(), SeedError> {
        let currency = self.currency(seed.currency).await?;
        let country = self
            .first("res.country", json!([["code", "=", seed.country]]))
            .await?
            .ok_or(SeedError::Missing("such country"))?;
        let values = json!({ "name": seed.name, "currency_id": currency, "country_id": country });
        let _written: bool = self.call("res.company", "write", json!([[company], values])).await?;
        let journal = self
            .first("account.journal", json!([["type", "=", "bank"], ["company_id", "=", company]]))
            .await?
            .ok_or(SeedError::Missing("bank journal"))?;
        let values = json!({ "bank_acc_number": seed.iban });
        let _written: bool =
            self.call("account.journal", "write", json!([[journal], values])).await?;
        Ok(())
    }

    /// Creates another company with a chart of accounts.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn another_company(&self, seed: &CompanySeed<'_>) -> Result<i32, SeedError> {
        let company: i32 =
            self.call("res.company", "create", json!([{ "name": seed.name }])).await?;
        self.chart(company).await?;
        // The chart has reset the currency.
        self.company(company, seed).await?;
        Ok(company)
    }

    /// Gives a company that has no chart of accounts the generic one.
    async fn chart(&self, company: i32) -> Result<(), SeedError> {
        let args = json!([[company], ["chart_template"]]);
        let found: Vec<Charted> = self.call("res.company", "read", args).await?;
        // Odoo writes `false` where there is none.
        if found.first().is_some_and(|company| company.chart_template.is_string()) {
            return Ok(());
        }
        // This method answers with nothing, which Odoo can only report as a fault after the work.
        let named = json!({ "install_demo": false });
        let args = json!([[], "generic_coa", company]);
        let loaded: Result<bool, _> =
            self.session.call("account.chart.template", "try_loading", args, named).await;
        match loaded {
            Err(CallError::Fault(fault)) if fault.code == FAULT_UNFORESEEN => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(failed("account.chart.template", "try_loading", &error)),
        }
    }

    /// Creates a vendor with one account.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn vendor(&self, seed: &VendorSeed<'_>) -> Result<SeededVendor, SeedError> {
        let values = json!({
            "name": seed.name, "is_company": true, "supplier_rank": 1, "phone": seed.phone,
            "bank_ids": [[0, 0, { "acc_number": seed.iban, "allow_out_payment": seed.trusted }]],
        });
        let vendor: i32 = self.call("res.partner", "create", json!([values])).await?;
        let account = self
            .first("res.partner.bank", json!([["partner_id", "=", vendor]]))
            .await?
            .ok_or(SeedError::Missing("account of the vendor"))?;
        Ok(SeededVendor { vendor, account })
    }

    /// Creates and posts a bill.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn bill(&self, seed: &BillSeed<'_>) -> Result<i32, SeedError> {
        let bill = self.draft_bill(seed).await?;
        // Answers false where all went well.
        let _posted: bool = self.call("account.move", "action_post", json!([[bill]])).await?;
        Ok(bill)
    }

    /// Creates a bill and leaves it a draft.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn draft_bill(&self, seed: &BillSeed<'_>) -> Result<i32, SeedError> {
        let line = json!({
            "name": "Goods", "quantity": 1, "price_unit": seed.total, "tax_ids": [[6, 0, []]],
        });
        let values = json!({
            "move_type": "in_invoice", "company_id": seed.company, "partner_id": seed.vendor,
            "ref": seed.reference, "invoice_date": seed.date, "invoice_date_due": seed.due,
            "invoice_line_ids": [[0, 0, line]],
        });
        let context = json!({ "context": {
            "lang": "en_US", "allowed_company_ids": [seed.company],
        } });
        let created = self.session.call("account.move", "create", json!([values]), context).await;
        created.map_err(|error| failed("account.move", "create", &error))
    }

    async fn currency(&self, code: &str) -> Result<i32, SeedError> {
        let currency = self
            .first("res.currency", json!([["name", "=", code]]))
            .await?
            .ok_or(SeedError::Missing("such currency"))?;
        let active = json!([[currency], { "active": true }]);
        let _written: bool = self.call("res.currency", "write", active).await?;
        Ok(currency)
    }

    async fn first(&self, model: &str, domain: Json) -> Result<Option<i32>, SeedError> {
        let found: Vec<Id> = self.call(model, "search_read", json!([domain, ["id"]])).await?;
        Ok(found.first().map(|found| found.id))
    }

    /// Any call, for what a scene needs beyond this.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn call<T: DeserializeOwned>(
        &self,
        model: &str,
        method: &str,
        args: Json,
    ) -> Result<T, SeedError> {
        let context = json!({ "lang": "en_US", "tz": "UTC", "active_test": false });
        self.call_within(model, method, args, context).await
    }

    /// Calls any method with a context of the caller's.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn call_within<T: DeserializeOwned>(
        &self,
        model: &str,
        method: &str,
        args: Json,
        context: Json,
    ) -> Result<T, SeedError> {
        let named = json!({ "context": context });
        let answer = self.session.call(model, method, args, named).await;
        answer.map_err(|error| failed(model, method, &error))
    }

    /// Runs a server action and tells it something under our own name.
    ///
    /// # Errors
    /// The call that failed.
    pub async fn run(&self, action: i32, told: Json) -> Result<(), SeedError> {
        let answer = self.session.run::<serde::de::IgnoredAny>(action, told).await;
        answer.map(|_answer| ()).map_err(|error| failed("ir.actions.server", "run", &error))
    }
}

fn failed(model: &str, method: &str, error: &CallError) -> SeedError {
    SeedError::Call { call: format!("{model}.{method}"), reason: error.for_log() }
}
