//! The world file: what the sandbox holds when it is new.

use std::collections::{BTreeMap, HashMap};

use countersign_erp_source::{
    AccountId, AccountNumber, BillId, CompanyId, Currency, Iban, JournalId, Timestamp, VendorId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::fields::{
    BillFields, BillRow, FieldError, InField, NamedAccount, VendorFields, VendorRow, VopEntry,
};

/// What is wrong with a world file, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct WorldError {
    /// Company, vendor or bill.
    pub place: String,
    /// Field and problem.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    sanctioned_ibans: Vec<String>,
    #[serde(default)]
    company: BTreeMap<String, Table>,
    #[serde(default)]
    vop: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompanyFields {
    name: String,
    currency: String,
    #[serde(default)]
    accounts: Vec<JournalFields>,
    #[serde(default)]
    vendor: BTreeMap<String, Table>,
    #[serde(default)]
    bill: BTreeMap<String, Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalFields {
    journal: String,
    iban: String,
}

/// A checked world, as rows.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) companies: Vec<Company>,
    pub(crate) sanctioned: Vec<Iban>,
    pub(crate) vop: Vec<(VopEntry, Iban)>,
}

#[derive(Debug)]
pub(crate) struct Company {
    pub(crate) id: CompanyId,
    pub(crate) name: String,
    pub(crate) currency: Currency,
    pub(crate) journals: Vec<(JournalId, Iban)>,
    pub(crate) vendors: Vec<VendorRow>,
    pub(crate) bills: Vec<BillRow>,
}

fn at(place: &str, problem: impl std::fmt::Display) -> WorldError {
    // The parser's text has a line for each level; people read one.
    let problem = problem.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    WorldError { place: place.to_owned(), problem }
}

fn table<T: DeserializeOwned>(place: &str, table: Table) -> Result<T, WorldError> {
    table.try_into().map_err(|error| at(place, error))
}

impl World {
    /// Reads and checks a whole world. Ages count back from `now`.
    pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Self, WorldError> {
        let document: Document = toml::from_str(text).map_err(|error| at("world", error))?;
        if document.company.is_empty() {
            return Err(at("world", "there is no company"));
        }
        let companies = document
            .company
            .into_iter()
            .map(|(id, fields)| Company::parse(&id, fields, now))
            .collect::<Result<_, _>>()?;
        let sanctioned = document
            .sanctioned_ibans
            .iter()
            .map(|iban| Iban::parse(iban).in_field("sanctioned_ibans"))
            .collect::<Result<_, _>>()
            .map_err(|error| at("world", error))?;
        let mut vop = Vec::new();
        for (index, fields) in document.vop.into_iter().enumerate() {
            let place = format!("vop entry {}", index.saturating_add(1));
            let entry: VopEntry = table(&place, fields)?;
            let iban = entry.check().map_err(|error| at(&place, error))?;
            vop.push((entry, iban));
        }
        Ok(Self { companies, sanctioned, vop })
    }
}

impl Company {
    fn parse(id: &str, fields: Table, now: Timestamp) -> Result<Self, WorldError> {
        let place = format!("company `{id}`");
        let wrong = |error: FieldError| at(&place, error);
        let fields: CompanyFields = table(&place, fields)?;
        let company = CompanyId::new(id).map_err(|error| at(&place, error))?;
        let currency = Currency::from_code(&fields.currency).in_field("currency").map_err(wrong)?;
        let mut journals = BTreeMap::new();
        for account in fields.accounts {
            let code = JournalId::new(account.journal).in_field("journal").map_err(wrong)?;
            let iban = Iban::parse(&account.iban).in_field("iban").map_err(wrong)?;
            if journals.insert(code.clone(), iban).is_some() {
                return Err(at(&place, format!("field `accounts`: `{code}` stands there twice")));
            }
        }
        let mut vendors = Vec::new();
        for (vendor, fields) in fields.vendor {
            vendors.push(parse_vendor(&place, vendor, fields, now)?);
        }
        let book = AccountBook::new(&vendors);
        let mut bills = Vec::new();
        for (bill, fields) in fields.bill {
            bills.push(book.parse_bill(&place, bill, fields, currency, now)?);
        }
        Ok(Self {
            id: company,
            name: fields.name,
            currency,
            journals: journals.into_iter().collect(),
            vendors,
            bills,
        })
    }
}

fn parse_vendor(
    company: &str,
    id: String,
    fields: Table,
    now: Timestamp,
) -> Result<VendorRow, WorldError> {
    let place = format!("{company}, vendor `{id}`");
    let fields: VendorFields = table(&place, fields)?;
    let id = VendorId::new(id).map_err(|error| at(&place, error))?;
    fields.create(id, now).map_err(|error| at(&place, error))
}

/// Which accounts a bill of the company can name.
struct AccountBook<'a> {
    first: HashMap<&'a VendorId, Option<&'a AccountId>>,
    by_number: HashMap<&'a AccountNumber, Vec<(&'a VendorId, &'a AccountId)>>,
}

impl<'a> AccountBook<'a> {
    fn new(vendors: &'a [VendorRow]) -> Self {
        let mut book = Self { first: HashMap::new(), by_number: HashMap::new() };
        for vendor in vendors {
            let first = vendor.first_active().or_else(|| vendor.accounts.first());
            book.first.insert(&vendor.id, first.map(|account| &account.id));
            for account in &vendor.accounts {
                let owners = book.by_number.entry(&account.number).or_default();
                owners.push((&vendor.id, &account.id));
            }
        }
        book
    }

    fn parse_bill(
        &self,
        company: &str,
        id: String,
        fields: Table,
        currency: Currency,
        now: Timestamp,
    ) -> Result<BillRow, WorldError> {
        let place = format!("{company}, bill `{id}`");
        let fields: BillFields = table(&place, fields)?;
        let id = BillId::new(id).map_err(|error| at(&place, error))?;
        let (mut row, named) =
            fields.create(id, currency, now).map_err(|error| at(&place, error))?;
        let Some(first) = self.first.get(&row.vendor) else {
            let problem = format!("field `vendor`: no vendor `{}`", row.vendor);
            return Err(at(&place, problem));
        };
        row.named_account = match named {
            NamedAccount::Unchanged | NamedAccount::VendorsFirst => first.cloned(),
            NamedAccount::Number(number) => {
                let owners = self.by_number.get(&number).map_or(&[][..], Vec::as_slice);
                let own = owners.iter().find(|(vendor, _)| **vendor == row.vendor);
                let Some((_, account)) = own.or_else(|| owners.first()) else {
                    return Err(at(&place, "field `payee_iban`: nobody has that account"));
                };
                Some((*account).clone())
            }
        };
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: &str = r#"
sanctioned_ibans = ["GB33BUKB20201555555555"]
[company.blue-sparrow]
name = "Blue Sparrow SAS"
currency = "EUR"
accounts = [{ journal = "BNK1", iban = "FR1420041010050500013M02606" }]
[company.blue-sparrow.vendor.V-100]
name = "ACME SAS"
phone = "+33140000000"
phone_age_days = 400
iban = "FR76 3000 6000 0112 3456 7890 189"
iban_age_days = 400
[company.blue-sparrow.vendor.V-101]
name = "Two SAS"
accounts = [
  { iban = "NL91ABNA0417164300", age_days = 9, active = false, holder = "Two BV" },
  { iban = "not an IBAN" },
]
[company.blue-sparrow.bill.INV-1]
vendor = "V-100"
vendor_reference = "A-1"
amount = "1200.00"
due = "2026-12-31"
payee_iban = ""
[company.blue-sparrow.bill.INV-2]
vendor = "V-101"
date = "2026-11-01"
amount = "7.5"
currency = "USD"
state = "paid"
kind = "credit_note"
[[vop]]
name = "ACME SAS"
iban = "FR7630006000011234567890189"
result = "close_match"
actual_name = "ACME"
"#;

    fn parse(text: &str) -> Result<World, WorldError> {
        World::parse(text, Timestamp::parse("2026-11-29T10:00:00Z").unwrap())
    }

    #[test]
    fn a_world_is_read_with_its_defaults() {
        let world = parse(WORLD).unwrap();
        let company = &world.companies[0];
        let [acme, two] = &company.vendors[..] else { panic!("two vendors") };
        assert_eq!(acme.accounts[0].number.whole(), "FR7630006000011234567890189");
        assert_eq!(acme.accounts[0].since.to_string(), "2025-10-25T10:00:00.000Z");
        assert_eq!((two.accounts[0].active, two.accounts[1].active), (false, true));
        assert_eq!(two.accounts[1].number.whole(), "not an IBAN");
        let [one, paid] = &company.bills[..] else { panic!("two bills") };
        assert_eq!(one.named_account.as_ref().unwrap().as_str(), "V-100/1");
        assert_eq!(one.date.to_string(), "2026-11-15");
        assert_eq!(one.currency().code(), "EUR");
        assert_eq!(paid.named_account.as_ref().unwrap().as_str(), "V-101/2");
        assert_eq!(paid.paid.to_string(), "7.50 USD");
        assert_eq!((world.sanctioned.len(), world.vop.len()), (1, 1));
    }

    #[track_caller]
    fn refused(from: &str, to: &str, said: &[&str]) {
        assert!(WORLD.contains(from), "the world has no `{from}`");
        let error = parse(&WORLD.replacen(from, to, 1)).unwrap_err().to_string();
        for part in said {
            assert!(error.contains(part), "`{error}` does not say `{part}`");
        }
    }

    #[test]
    fn an_error_names_place_and_field() {
        let vendor = "company `blue-sparrow`, vendor `V-100`";
        let bill = "company `blue-sparrow`, bill `INV-1`";
        refused("phone_age_days = 400", "phone_age = 400", &[vendor, "`phone_age`"]);
        refused("phone_age_days = 400", "phone_age_days = -1", &[vendor, "phone_age_days"]);
        refused("name = \"ACME SAS\"\nphone", "phone", &[vendor, "`name`", "needed"]);
        refused("age_days = 9", "days = 9", &["vendor `V-101`", "`days`"]);
        refused("amount = \"1200.00\"", "amount = 1200.00", &[bill, "amount"]);
        refused("amount = \"1200.00\"", "amount = \"12,00\"", &[bill, "`amount`"]);
        refused("vendor = \"V-100\"", "vendor = \"V-9\"", &[bill, "`vendor`", "`V-9`"]);
        refused("payee_iban = \"\"", "payee_iban = \"X\"", &[bill, "`payee_iban`"]);
        refused("due = \"2026-12-31\"", "due = \"2026-02-30\"", &[bill, "`due`"]);
        refused("state = \"paid\"", "state = \"done\"", &["bill `INV-2`", "`done`"]);
        refused("currency = \"EUR\"", "currency = \"EURO\"", &["`blue-sparrow`", "`currency`"]);
        refused("M02606", "M02607", &["company `blue-sparrow`", "`iban`"]);
        refused("result = \"close_match\"", "result = \"match\"", &["vop", "`actual_name`"]);
        refused("GB33", "GB34", &["`sanctioned_ibans`"]);
        refused("sanctioned_ibans", "sanctioned", &["`sanctioned`"]);
    }

    #[test]
    fn a_world_without_a_company_is_none() {
        assert_eq!(parse("").unwrap_err().to_string(), "world: there is no company");
    }
}
