//! What Odoo holds beside bills: documents that resemble them, what vendors owe back, and who else
//! has an account's number. It asks Odoo narrowly and widely at once: Odoo compares texts in its own
//! way, so it is asked for more than is wanted, and never for all bills of a vendor.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::{
    Beside, BesideQuery, BillId, CompanyId, Document, Iban, ReadError, Traits, VendorId,
    look_alikes,
};
use serde_json::{Value as Json, json};

use crate::mapping::{self, record_id};
use crate::odoo::Odoo;
use crate::read::{billed_domain, context};
use crate::wire::{
    DocumentRecord, HolderRecord, PartnerRecord, VendorGroup, WithPartnerGroup, document_fields,
};

/// Bills that are looked beside in one call: their terms make one domain.
const BILLS_PER_CALL: usize = 20;
/// Documents of one call. They are narrow records; more than these are more than can be looked at.
const DOCUMENTS_MAX: u16 = 2000;
/// Partners with one number of which it is asked who is a vendor.
const HOLDERS_MAX: u16 = 200;
/// Landmarks of a reference that a search goes by; with fewer it finds more.
const LANDMARKS_MAX: usize = 40;

impl Odoo {
    pub(crate) async fn read_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        let erp_company = self.erp_company(company)?;
        let bills: BTreeMap<&BillId, &Traits> =
            query.bills.iter().map(|bill| (&bill.id, &bill.traits)).collect();
        let (resembling, with_credit, holders) = tokio::join!(
            self.resembling(erp_company, &bills),
            self.with_credit(erp_company, &bills),
            self.holders(erp_company, query.held.as_ref()),
        );
        let (documents, cut) = resembling?;
        Ok(Beside { documents, cut, with_credit: with_credit?, holders: holders? })
    }

    async fn resembling(
        &self,
        erp_company: i32,
        bills: &BTreeMap<&BillId, &Traits>,
    ) -> Result<(Vec<Document>, BTreeSet<BillId>), ReadError> {
        let (mut found, mut cut) = (BTreeMap::new(), BTreeSet::new());
        let bills: Vec<_> = bills.iter().collect();
        for some in bills.chunks(BILLS_PER_CALL) {
            let terms: Vec<_> = some.iter().filter_map(|(_, traits)| like(traits)).collect();
            let Some(any) = any_of(&terms) else { continue };
            let mut domain = vec![
                json!(["company_id", "=", erp_company]),
                json!(["state", "=", "posted"]),
                json!(["move_type", "in", ["in_invoice", "in_receipt"]]),
            ];
            domain.extend(any);
            let (domain, fields) = (Json::Array(domain), document_fields());
            let records: Vec<DocumentRecord> =
                self.page(erp_company, "account.move", domain, fields, DOCUMENTS_MAX).await?;
            if records.len() >= usize::from(DOCUMENTS_MAX) {
                cut.extend(some.iter().map(|(id, _)| (**id).clone()));
            }
            found.extend(
                records.iter().filter_map(|record| Some((record.id, mapping::document(record)?))),
            );
        }
        let mut found: Vec<Document> = found.into_values().collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok((found, cut))
    }

    /// A vendor owes something back where a payable line of it has something left on the side of
    /// what was paid: a credit note, or a payment that no bill used up.
    async fn with_credit(
        &self,
        erp_company: i32,
        bills: &BTreeMap<&BillId, &Traits>,
    ) -> Result<BTreeSet<VendorId>, ReadError> {
        let vendors: BTreeSet<i32> =
            bills.values().filter_map(|traits| record_id(traits.vendor.as_str())).collect();
        if vendors.is_empty() {
            return Ok(BTreeSet::new());
        }
        let domain = json!([
            ["company_id", "=", erp_company],
            ["parent_state", "=", "posted"],
            ["account_id.account_type", "=", "liability_payable"],
            ["amount_residual", ">", 0],
            ["partner_id.commercial_partner_id", "in", vendors],
        ]);
        let by = json!(["partner_id"]);
        let named = json!({ "lazy": false, "context": context(erp_company) });
        let groups: Vec<WithPartnerGroup> =
            self.read("account.move.line", "read_group", json!([domain, by, by]), named).await?;
        let partners: BTreeSet<i32> = groups
            .iter()
            .filter_map(|group| group.partner_id.as_ref().map(|(id, _name)| *id))
            .collect();
        let mut owing: BTreeSet<i32> = partners.intersection(&vendors).copied().collect();
        // A line may stand for a contact of the vendor's.
        let contacts: Vec<i32> = partners.difference(&vendors).copied().collect();
        if !contacts.is_empty() {
            let limit = u16::try_from(contacts.len()).unwrap_or(u16::MAX);
            let (domain, fields) =
                (json!([["id", "in", contacts]]), json!({ "commercial_partner_id": {} }));
            let records: Vec<PartnerRecord> =
                self.page(erp_company, "res.partner", domain, fields, limit).await?;
            owing.extend(records.iter().filter_map(|record| record.commercial_partner_id.as_ref()));
        }
        Ok(owing.into_iter().filter_map(mapping::vendor_id).collect())
    }

    async fn holders(
        &self,
        erp_company: i32,
        held: Option<&(Iban, VendorId)>,
    ) -> Result<BTreeSet<VendorId>, ReadError> {
        let Some((number, vendor)) = held else { return Ok(BTreeSet::new()) };
        let domain = json!([
            ["sanitized_acc_number", "=", number.electronic()],
            ["active", "=", true],
            ["company_id", "in", [false, erp_company]],
            ["partner_id", "!=", record_id(vendor.as_str()).unwrap_or(0)],
        ]);
        let (fields, most) = (json!({ "partner_id": {} }), HOLDERS_MAX);
        let records: Vec<HolderRecord> =
            self.page(erp_company, "res.partner.bank", domain, fields, most).await?;
        if records.len() >= usize::from(HOLDERS_MAX) {
            let what = "one number on more accounts than can be looked at".to_owned();
            return Err(ReadError::Malformed { what });
        }
        let partners: BTreeSet<i32> = records.iter().map(|record| record.partner_id).collect();
        if partners.is_empty() {
            return Ok(BTreeSet::new());
        }
        // Odoo's partners are vendors of a company where it has a bill of theirs.
        let mut domain = billed_domain(erp_company);
        domain.push(json!(["commercial_partner_id", "in", partners]));
        let by = json!(["commercial_partner_id"]);
        let named = json!({ "lazy": false, "context": context(erp_company) });
        let groups: Vec<VendorGroup> =
            self.read("account.move", "read_group", json!([domain, by, by]), named).await?;
        let vendors = groups
            .iter()
            .filter_map(|group| group.commercial_partner_id.as_ref().map(|(id, _name)| *id));
        Ok(vendors.filter_map(mapping::vendor_id).collect())
    }
}

/// A term of a domain: conditions that all must hold.
type Term = Vec<Json>;

/// What all documents that resemble these traits fulfil; `None` where the vendor is none of Odoo's.
fn like(traits: &Traits) -> Option<Vec<Term>> {
    let vendor = json!(["commercial_partner_id", "=", record_id(traits.vendor.as_str())?]);
    let mut terms = Vec::new();
    if let Some(key) = &traits.reference {
        let landmarks: Vec<char> = key.landmarks().take(LANDMARKS_MAX).collect();
        let mut pattern = "%".to_owned();
        for mark in &landmarks {
            pattern.extend([*mark, '%']);
        }
        terms.push(vec![vendor.clone(), json!(["ref", "=ilike", pattern])]);
        let alike: BTreeSet<char> = landmarks.into_iter().flat_map(look_alikes).collect();
        for c in alike {
            terms.push(vec![vendor.clone(), json!(["ref", "like", c.to_string()])]);
        }
    }
    if let Some(total) = traits.total {
        // As text, so that no float stands between.
        let mut term = vec![
            vendor,
            json!(["amount_total", "=", total.to_decimal_string()]),
            json!(["currency_id.name", "=", total.currency().code()]),
        ];
        if let Some((first, last)) = traits.near_dates() {
            term.push(json!(["invoice_date", ">=", first.to_string()]));
            term.push(json!(["invoice_date", "<=", last.to_string()]));
        }
        terms.push(term);
    }
    Some(terms)
}

/// One domain of terms of which one must hold, in Odoo's prefix notation; `None` for no term.
fn any_of(terms: &[Vec<Term>]) -> Option<Vec<Json>> {
    let terms: Vec<&Term> = terms.iter().flatten().collect();
    let others = terms.len().checked_sub(1)?;
    let mut domain = vec![json!("|"); others];
    for term in terms {
        domain.extend(vec![json!("&"); term.len().saturating_sub(1)]);
        domain.extend(term.iter().cloned());
    }
    Some(domain)
}

#[cfg(test)]
mod tests;
