//! `vendor.confirm_phone`: a number that was changed in the ERP becomes one that a call-back may use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use countersign_erp_source::Vendor;
use serde::{Deserialize, Serialize};

use super::callback::on_file;
use super::{form, param, resolved_vendor};
use crate::ap::facts::{Collector, FactKind};
use crate::ap::phones::Number;
use crate::ap::sighting::Sighting;
use crate::ap::{AccountsPayable, CONFIRM_PHONE};
use crate::domain::decision::Stage;
use crate::domain::facts::{FactValue, Facts};
use crate::domain::operation::{Origin, Params};
use crate::domain::reason::Reason;
use crate::gateway::contract::Terms;
use crate::gateway::pack::{Asking, Case, Claim, Denial, Resolved, Volume};
use crate::store::baseline::BaselinePhone;

/// The arguments, all required.
pub(in crate::ap) const ARGUMENTS: [&str; 3] = ["vendor_id", "phone", "how"];

/// The most characters of how the number was confirmed.
const HOW_CHARS_MAX: usize = 500;

/// A telephone number, resolved.
#[derive(Debug)]
struct Confirmed {
    pack: AccountsPayable,
    vendor: Vendor,
    sighting: Sighting,
    /// The vendor's number on file, where it has that one, and whether another has it too.
    found: Option<(BaselinePhone, bool)>,
    resolved: Resolved,
}

/// Resolves a confirmation that a human begins.
pub(in crate::ap) async fn confirm(
    pack: &AccountsPayable,
    terms: &Terms,
    asking: &Asking<'_>,
) -> Result<Arc<dyn Case>, Denial> {
    let how = terms.text("how")?;
    if how.is_empty() || how.chars().count() > HOW_CHARS_MAX {
        return Err(form("how", format!("1 to {HOW_CHARS_MAX} characters")));
    }
    let company = asking.authority.company();
    let (vendor, sighting) = resolved_vendor(pack, company, terms).await?;
    let sources = pack.ports().erp.source_accounts(company).await;
    let sources = sources.map_err(|fault| Denial::error(Reason::ErpUnavailable, fault))?;
    let home = sources.first().map(|source| source.iban.country().to_owned());
    let number = Number::parse(terms.text("phone")?, home.as_deref());
    let number = number.map_err(|bad| form("phone", bad))?;
    let (of, phones) = ((company.clone(), vendor.id.clone()), sighting.found.phones.clone());
    let dialled = number.clone();
    let read = pack.ports().store.read(move |conn| {
        Box::pin(
            async move { on_file(conn, &of.0, &of.1, &phones, &dialled, home.as_deref()).await },
        )
    });
    let found = read.await.map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
    let found = found.map(|found| (found.phone, found.shared));
    let resolved = resolved(&vendor, &number, how, found.as_ref());
    Ok(Arc::new(Confirmed { pack: pack.clone(), vendor, sighting, found, resolved }))
}

fn resolved(
    vendor: &Vendor,
    number: &Number,
    how: &str,
    found: Option<&(BaselinePhone, bool)>,
) -> Resolved {
    let reference = format!("vendors/{}", vendor.id);
    let number = number.to_string();
    let phone = match found {
        Some(_) => param(&number, Origin::SystemOfRecord, &reference),
        // No record has it: it is what somebody said.
        None => param(&number, Origin::Untrusted, ""),
    };
    let params = Params::from([
        ("vendor_id".to_owned(), param(vendor.id.as_str(), Origin::SystemOfRecord, &reference)),
        ("phone".to_owned(), phone),
        ("how".to_owned(), param(how, Origin::Untrusted, "")),
    ]);
    let records = BTreeMap::from([
        ("phone_kind", found.map(|(phone, _)| phone.kind.to_owned()).unwrap_or_default()),
        ("phone_on_file", found.map(|(phone, _)| phone.number.clone()).unwrap_or_default()),
        ("phone_since", found.map(|(phone, _)| phone.since.to_string()).unwrap_or_default()),
        ("vendor", vendor.id.to_string()),
        ("vendor_name", vendor.name.clone()),
    ]);
    Resolved {
        params,
        records,
        thing: format!("vendor/{}/phone", vendor.id),
        counterparty: vendor.id.to_string(),
        sum: None,
        precedent: None,
        not_by: BTreeSet::new(),
        callback: None,
    }
}

#[async_trait]
impl Case for Confirmed {
    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    async fn facts(&self) -> Result<Facts, Denial> {
        if self.sighting.adopted_at.is_none() {
            return Err(Denial::new(Stage::Policy, Reason::BaselineMissing));
        }
        let mut all = Collector::at(self.pack.ports().clock.now());
        all.flag(FactKind::PHONE_ON_FILE, self.found.is_some(), "erp");
        let shared = self.found.as_ref().is_some_and(|(_, shared)| *shared);
        all.flag(FactKind::PHONE_SHARED, shared, "baseline");
        Ok(all.facts)
    }

    fn add_volume(&self, _facts: &mut Facts, _volume: &Volume) {}

    fn floor(&self, facts: &Facts) -> Vec<Reason> {
        let shared = facts.get("phone_shared").map(|fact| &fact.value);
        let checks = [
            (!facts.is_true("phone_on_file"), Reason::FloorNotOnFile),
            (shared != Some(&FactValue::Bool(false)), Reason::FloorPhoneUntrusted),
        ];
        checks.into_iter().filter(|(refused, _)| *refused).map(|(_, reason)| reason).collect()
    }

    fn order(&self, claim: &Claim) -> String {
        let phone = self.found.as_ref().map(|(phone, _)| phone);
        Confirmation {
            kind: CONFIRM_PHONE.to_owned(),
            marker: claim.marker.to_hex(),
            number: phone.map(|phone| phone.number.clone()).unwrap_or_default(),
            phone: phone.map(|phone| phone.kind.to_owned()).unwrap_or_default(),
            since_ms: phone.map_or(0, |phone| phone.since.as_millis()),
            vendor: self.vendor.id.to_string(),
        }
        .text()
    }
}

/// The order of a confirmation: the number that becomes trusted, as it was decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::ap) struct Confirmation {
    pub(in crate::ap) kind: String,
    pub(in crate::ap) marker: String,
    pub(in crate::ap) number: String,
    pub(in crate::ap) phone: String,
    pub(in crate::ap) since_ms: i64,
    pub(in crate::ap) vendor: String,
}

impl Confirmation {
    fn text(&self) -> String {
        serde_json_canonicalizer::to_string(self).unwrap_or_default()
    }

    /// Reads an order back.
    pub(in crate::ap) fn read(text: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        (read.kind == CONFIRM_PHONE && read.text() == text).then_some(read)
    }
}
