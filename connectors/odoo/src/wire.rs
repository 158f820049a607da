//! Records as Odoo sends them, and which fields are asked for. It draws no conclusion.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::mapping::Figure;

/// A field that may be empty. Odoo sends false then, whatever the field's type.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Maybe<T> {
    /// Its value.
    Is(T),
    /// False; anything else is no empty field.
    Empty(#[serde(deserialize_with = "only_false")] ()),
}

fn only_false<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    if bool::deserialize(deserializer)? {
        return Err(serde::de::Error::custom("true is no empty field"));
    }
    Ok(())
}

impl<T> Maybe<T> {
    pub(crate) fn as_ref(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Empty(()) => None,
        }
    }
}

/// One page of `web_search_read`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) records: Vec<T>,
}

/// A record of which only the name is wanted.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

/// A partner as entered, with the one that stands for it commercially.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EnteredPartner {
    pub(crate) id: i32,
    pub(crate) commercial_partner_id: Maybe<i32>,
}

/// `account.move`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BillRecord {
    pub(crate) id: i32,
    pub(crate) company_id: i32,
    pub(crate) name: Maybe<String>,
    #[serde(rename = "ref")]
    pub(crate) reference: Maybe<String>,
    pub(crate) move_type: String,
    pub(crate) state: String,
    pub(crate) amount_total: Figure,
    pub(crate) amount_residual: Figure,
    pub(crate) currency_id: Maybe<Named>,
    pub(crate) invoice_date: Maybe<String>,
    pub(crate) invoice_date_due: Maybe<String>,
    pub(crate) partner_bank_id: Maybe<i32>,
    pub(crate) partner_id: Maybe<EnteredPartner>,
    pub(crate) commercial_partner_id: Maybe<VendorRecord>,
}

/// What is asked of a bill.
pub(crate) fn bill_fields() -> Json {
    json!({
        "company_id": {}, "name": {}, "ref": {}, "move_type": {}, "state": {}, "amount_total": {},
        "amount_residual": {}, "currency_id": { "fields": { "name": {} } }, "invoice_date": {},
        "invoice_date_due": {}, "partner_bank_id": {},
        "partner_id": { "fields": { "commercial_partner_id": {} } },
        "commercial_partner_id": { "fields": vendor_fields() },
    })
}

/// A payable line of `account.move.line`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LineRecord {
    pub(crate) move_id: i32,
    pub(crate) partner_id: Maybe<EnteredPartner>,
    pub(crate) amount_currency: Figure,
    pub(crate) amount_residual_currency: Figure,
    pub(crate) currency_id: Maybe<Named>,
}

/// What is asked of a payable line.
pub(crate) fn line_fields() -> Json {
    json!({
        "move_id": {}, "partner_id": { "fields": { "commercial_partner_id": {} } },
        "amount_currency": {}, "amount_residual_currency": {},
        "currency_id": { "fields": { "name": {} } },
    })
}

/// `res.partner`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct VendorRecord {
    pub(crate) id: i32,
    // An address need not have one.
    pub(crate) name: Maybe<String>,
    pub(crate) vat: Maybe<String>,
    pub(crate) parent_id: Maybe<i32>,
    pub(crate) commercial_partner_id: Maybe<i32>,
    pub(crate) company_id: Maybe<i32>,
    pub(crate) phone: Maybe<String>,
    pub(crate) mobile: Maybe<String>,
    pub(crate) write_date: String,
    pub(crate) bank_ids: Vec<AccountRecord>,
}

/// What is asked of a vendor.
pub(crate) fn vendor_fields() -> Json {
    json!({
        "name": {}, "vat": {}, "parent_id": {}, "commercial_partner_id": {}, "company_id": {},
        "phone": {}, "mobile": {}, "write_date": {}, "bank_ids": { "fields": account_fields() },
    })
}

/// `res.partner.bank`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AccountRecord {
    pub(crate) id: i32,
    pub(crate) partner_id: i32,
    pub(crate) sanitized_acc_number: Maybe<String>,
    pub(crate) acc_holder_name: Maybe<String>,
    pub(crate) active: bool,
    pub(crate) allow_out_payment: bool,
    pub(crate) company_id: Maybe<i32>,
    pub(crate) create_date: String,
    pub(crate) write_date: String,
}

fn account_fields() -> Json {
    json!({
        "partner_id": {}, "sanitized_acc_number": {}, "acc_holder_name": {}, "active": {},
        "allow_out_payment": {}, "company_id": {}, "create_date": {}, "write_date": {},
    })
}

/// An account of the company itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OwnAccountRecord {
    pub(crate) sanitized_acc_number: Maybe<String>,
}

/// `res.company`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CompanyRecord {
    pub(crate) currency_id: Named,
}

/// A bank journal.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct JournalRecord {
    pub(crate) id: i32,
    pub(crate) code: String,
    pub(crate) bank_account_id: Maybe<OwnAccountRecord>,
    pub(crate) currency_id: Maybe<Named>,
}

/// One vendor of `read_group` over bills.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct VendorGroup {
    pub(crate) commercial_partner_id: Maybe<(i32, String)>,
}

/// A document of `account.move`, as far as it may resemble another.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct DocumentRecord {
    pub(crate) id: i32,
    #[serde(rename = "ref")]
    pub(crate) reference: Maybe<String>,
    pub(crate) amount_total: Figure,
    pub(crate) currency_id: Maybe<Named>,
    pub(crate) invoice_date: Maybe<String>,
    pub(crate) commercial_partner_id: Maybe<i32>,
}

/// What is asked of such a document.
pub(crate) fn document_fields() -> Json {
    json!({
        "ref": {}, "amount_total": {}, "currency_id": { "fields": { "name": {} } },
        "invoice_date": {}, "commercial_partner_id": {},
    })
}

/// Whose account it is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HolderRecord {
    pub(crate) partner_id: i32,
}

/// A partner, and which one stands for it commercially.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PartnerRecord {
    pub(crate) commercial_partner_id: Maybe<i32>,
}

/// One partner of `read_group` over payable lines.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WithPartnerGroup {
    pub(crate) partner_id: Maybe<(i32, String)>,
}
