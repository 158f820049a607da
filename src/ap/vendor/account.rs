//! A new bank account of a vendor: written to the ERP where it is not there yet
//! (`vendor.update_bank_details`), or made the baseline where it is (`vendor.confirm_bank_details`).
//! Both rest on a call-back about exactly that account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use countersign_erp_source::{
    AccountNumber, BankChange, BesideQuery, ErpCompanyId, Iban, OldAccount, Order as _, Screening,
    SourceAccount, Vendor, VendorAccount, VopResult,
};
use serde::{Deserialize, Serialize};

use super::before::{self, FormerPhone, OldAccount as Before};
use super::callback::{PhoneFacts, phone_facts};
use super::whom::whom_to_call;
use super::{bank_of, form, param, resolved_vendor};
use crate::ap::facts::{Collector, FactKind, missing};
use crate::ap::invoice_pay::unavailable;
use crate::ap::sighting::Sighting;
use crate::ap::{AccountsPayable, CONFIRM_BANK_DETAILS, UPDATE_BANK_DETAILS};
use crate::domain::decision::Stage;
use crate::domain::facts::{FactValue, Facts};
use crate::domain::mandate::Authority;
use crate::domain::names::Name;
use crate::domain::operation::{Origin, Param, Params};
use crate::domain::reason::Reason;
use crate::gateway::contract::Terms;
use crate::gateway::pack::{Asking, Case, Claim, Denial, Notice, Resolved, Volume};
use crate::store::baseline::{self, BaselineAccount};
use crate::store::callbacks::{self, Callback};

/// The arguments of a change, all required.
pub(in crate::ap) const CHANGE: [&str; 3] = ["vendor_id", "new_iban", "reason"];
/// The arguments of a confirmation, all required.
pub(in crate::ap) const CONFIRM: [&str; 2] = ["vendor_id", "iban"];

/// The most characters of the reason.
const REASON_CHARS_MAX: usize = 500;
/// The alarm that somebody asked for a change that nobody has called back about.
pub const BANK_CHANGE_REQUESTED: &str = "bank_change_requested";

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The ERP is changed.
    Change,
    /// The baseline is.
    Confirm,
}

impl Kind {
    fn action(self) -> &'static str {
        match self {
            Self::Change => UPDATE_BANK_DETAILS,
            Self::Confirm => CONFIRM_BANK_DETAILS,
        }
    }

    /// The name of the argument that is the account.
    fn argument(self) -> &'static str {
        match self {
            Self::Change => "new_iban",
            Self::Confirm => "iban",
        }
    }
}

/// A new account of a vendor, resolved.
#[derive(Debug)]
struct NewAccount {
    kind: Kind,
    pack: AccountsPayable,
    authority: Authority,
    erp_company: ErpCompanyId,
    vendor: Vendor,
    sighting: Sighting,
    iban: Iban,
    sources: Vec<SourceAccount>,
    /// The oldest call-back that it may rest on.
    callback: Option<Callback>,
    phone: PhoneFacts,
    /// The numbers that the vendor had before somebody edited them.
    former: Vec<FormerPhone>,
    resolved: Resolved,
}

/// Resolves a change that an agent asks for.
pub(in crate::ap) async fn change(
    pack: &AccountsPayable,
    terms: &Terms,
    asking: &Asking<'_>,
) -> Result<Arc<dyn Case>, Denial> {
    let reason = terms.text("reason")?;
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return Err(form("reason", format!("1 to {REASON_CHARS_MAX} characters")));
    }
    let reason = param(reason, Origin::Untrusted, "");
    resolve(pack, terms, asking, Kind::Change, Some(reason)).await
}

/// Resolves a confirmation that a human begins.
pub(in crate::ap) async fn confirm(
    pack: &AccountsPayable,
    terms: &Terms,
    asking: &Asking<'_>,
) -> Result<Arc<dyn Case>, Denial> {
    resolve(pack, terms, asking, Kind::Confirm, None).await
}

async fn resolve(
    pack: &AccountsPayable,
    terms: &Terms,
    asking: &Asking<'_>,
    kind: Kind,
    reason: Option<Param>,
) -> Result<Arc<dyn Case>, Denial> {
    let name = kind.argument();
    let iban = Iban::parse(terms.text(name)?).map_err(|bad| form(name, bad))?;
    let company = asking.authority.company();
    let erp = &pack.ports().erp;
    let unconfigured = || Denial::error(Reason::ErpUnavailable, "the company has no id in the ERP");
    let erp_company = erp.erp_company(company).ok_or_else(unconfigured)?;
    let (vendor, sighting) = resolved_vendor(pack, company, terms).await?;
    let sources = erp.source_accounts(company).await.map_err(|fault| unavailable(&fault))?;
    let kept = read_kept(pack, asking, (kind, &vendor, &iban), &sighting).await?;
    let asked =
        Asked { kind, iban: &iban, reason, fingerprint: pack.ports().keys.fingerprint(&iban) };
    let resolved = resolved(&asked, &erp_company, &vendor, &sighting, &kept);
    Ok(Arc::new(NewAccount {
        kind,
        pack: pack.clone(),
        authority: asking.authority.clone(),
        erp_company,
        vendor,
        sighting,
        iban,
        sources,
        callback: kept.callback,
        phone: kept.phone,
        former: kept.former,
        resolved,
    }))
}

/// What the store holds about it.
struct Kept {
    callback: Option<Callback>,
    callers: BTreeSet<Name>,
    phone: PhoneFacts,
    former: Vec<FormerPhone>,
    /// What was on file before the account that is to be confirmed.
    before: Before,
}

async fn read_kept(
    pack: &AccountsPayable,
    asking: &Asking<'_>,
    (kind, vendor, iban): (Kind, &Vendor, &Iban),
    sighting: &Sighting,
) -> Result<Kept, Denial> {
    let (company, operation) = (asking.authority.company().clone(), asking.operation.clone());
    let confirmed = in_baseline(sighting, vendor, iban).filter(|_| kind == Kind::Confirm).cloned();
    let (vendor, number) = (vendor.clone(), iban.electronic().to_owned());
    let (found, now) = (sighting.found.clone(), pack.ports().clock.now());
    let read = pack.ports().store.read(move |conn| {
        Box::pin(async move {
            let all = callbacks::about(conn, &company, vendor.id.as_str(), &number).await?;
            let (callback, callers) = callbacks::standing(&all, &operation, now);
            let called = callback.as_ref();
            let phone = phone_facts(conn, &company, &vendor, &found.phones, called, now).await?;
            let former = before::phones(conn, &company, &vendor, found.vendor.as_ref()).await?;
            let before = match &confirmed {
                Some(account) => before::account(conn, &company, &vendor.id, account).await?,
                None => Before::default(),
            };
            Ok(Kept { callback, callers, phone, former, before })
        })
    });
    read.await.map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
}

struct Asked<'a> {
    kind: Kind,
    iban: &'a Iban,
    reason: Option<Param>,
    fingerprint: String,
}

fn resolved(
    asked: &Asked<'_>,
    erp_company: &ErpCompanyId,
    vendor: &Vendor,
    sighting: &Sighting,
    kept: &Kept,
) -> Resolved {
    let reference = format!("vendors/{}", vendor.id);
    let mut params = Params::new();
    params.insert(
        "vendor_id".to_owned(),
        param(vendor.id.as_str(), Origin::SystemOfRecord, &reference),
    );
    let number = asked.iban.electronic();
    let of_number = match &kept.callback {
        Some(callback) => {
            let from = format!("callbacks/{}", callback.id);
            Param { masked: asked.iban.masked(), ..param(number, Origin::SystemOfRecord, &from) }
        }
        // Whoever calls the vendor must hear it, not read it here.
        None => Param {
            masked: asked.iban.masked(),
            blind: Some(blind(asked.iban)),
            ..param(number, Origin::Untrusted, "")
        },
    };
    params.insert(asked.kind.argument().to_owned(), of_number);
    if let Some(reason) = &asked.reason {
        params.insert("reason".to_owned(), reason.clone());
    }
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    let known = sighting.found.vendor.as_ref();
    let callback = kept.callback.as_ref();
    let old = match asked.kind {
        Kind::Change => replaced(vendor).map_or_else(Before::default, |old| Before {
            account: old.id.to_string(),
            number: old.number.whole().to_owned(),
        }),
        Kind::Confirm => kept.before.clone(),
    };
    // Where it is the account that is to be heard, it is not read here either.
    let is_asked = AccountNumber::from_erp(&old.number).iban() == Some(asked.iban);
    let old_number = if is_asked && callback.is_none() { blind(asked.iban) } else { old.number };
    let records = BTreeMap::from([
        ("account_fingerprint", asked.fingerprint.clone()),
        ("callback", callback.map(|callback| callback.id.to_string()).unwrap_or_default()),
        ("called_by", callback.map(|callback| callback.caller.to_string()).unwrap_or_default()),
        ("called_number", callback.map(|c| c.number_dialled.clone()).unwrap_or_default()),
        ("erp_company", erp_company.to_string()),
        ("known_name", known.map(|known| known.name.clone()).unwrap_or_default()),
        ("known_parent", text(known.and_then(|known| known.parent.as_ref()))),
        ("known_tax_number", text(known.and_then(|known| known.tax_number.as_ref()))),
        ("old_account", old.account),
        ("old_number", old_number),
        ("spoke_to", callback.map(|callback| callback.spoke_to.clone()).unwrap_or_default()),
        ("vendor", vendor.id.to_string()),
        ("vendor_name", vendor.name.clone()),
        ("vendor_parent", vendor.parent.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("vendor_tax_number", text(vendor.tax_number.as_ref())),
    ]);
    Resolved {
        params,
        records,
        thing: bank_of(&vendor.id),
        counterparty: vendor.id.to_string(),
        sum: None,
        precedent: None,
        not_by: kept.callers.clone(),
        callback: callback.map(|callback| callback.id.clone()),
    }
}

/// What is shown of an account to whoever has not heard it yet.
fn blind(iban: &Iban) -> String {
    format!("{}…", iban.country())
}

/// The vendor's own active account with that number, as the ERP has it now.
fn in_erp<'a>(vendor: &'a Vendor, iban: &Iban) -> Option<&'a VendorAccount> {
    vendor
        .active_accounts()
        .find(|account| account.owner == vendor.id && account.number.iban() == Some(iban))
}

/// The baseline's row of it.
fn in_baseline<'a>(
    sighting: &'a Sighting,
    vendor: &Vendor,
    iban: &Iban,
) -> Option<&'a BaselineAccount> {
    let in_erp = in_erp(vendor, iban)?;
    let accounts = &sighting.found.accounts;
    accounts.iter().find(|account| account.account == in_erp.id.as_str())
}

/// The account that a change replaces: the only active one.
fn replaced(vendor: &Vendor) -> Option<&VendorAccount> {
    let mut active = vendor.active_accounts();
    match (active.next(), active.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

impl NewAccount {
    /// The vendor's own active account with that number, as the ERP has it now.
    fn in_erp(&self) -> Option<&VendorAccount> {
        in_erp(&self.vendor, &self.iban)
    }

    /// The baseline's row of it.
    fn in_baseline(&self) -> Option<&BaselineAccount> {
        in_baseline(&self.sighting, &self.vendor, &self.iban)
    }

    /// Whether the company itself holds it.
    fn is_own(&self) -> bool {
        self.sources.iter().any(|source| source.iban == self.iban)
    }

    /// How many other vendors hold it, in the ERP or in the baseline.
    async fn shared_with(&self) -> Result<i64, Denial> {
        let company = self.authority.company();
        let query = BesideQuery {
            bills: Vec::new(),
            held: Some((self.iban.clone(), self.vendor.id.clone())),
        };
        let ports = self.pack.ports();
        let beside = ports.erp.look_beside(company, &query).await;
        let beside = beside.map_err(|fault| missing(&[FactKind::NEW_IBAN_SHARED_WITH], &fault))?;
        let holders = baseline::holders(company, self.iban.electronic(), &self.vendor.id);
        let kept = ports
            .store
            .ask(holders)
            .await
            .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
        let in_erp = beside.holders.iter().map(|holder| holder.as_str().to_owned());
        let all: BTreeSet<String> = in_erp.chain(kept).collect();
        Ok(i64::try_from(all.len()).unwrap_or(i64::MAX))
    }

    /// What the bank says; asked only once a call-back carries the question.
    async fn vop(&self) -> Result<(&'static str, Option<String>, String), Denial> {
        if self.callback.is_none() {
            return Ok(("not_asked", None, "vop".to_owned()));
        }
        let asked = self.pack.ports().vop.verify(&self.vendor.name, &self.iban).await;
        let report = asked.map_err(|silent| missing(&[FactKind::NEW_ACCOUNT_VOP], &silent))?;
        let word = match report.result {
            VopResult::Match => "match",
            VopResult::CloseMatch { .. } => "close_match",
            VopResult::NoMatch => "no_match",
            VopResult::NotPossible => "not_possible",
        };
        let name = report.result.actual_name().map(ToOwned::to_owned);
        Ok((word, name, format!("vop:{}", report.provider)))
    }

    fn all_facts(&self, all: &mut Collector) {
        let called = if self.callback.is_some() { "callback" } else { "baseline" };
        all.flag(FactKind::CALLBACK_VALID, self.callback.is_some(), "store");
        all.flag(FactKind::PHONE_TRUSTED, self.phone.trusted, called);
        all.long(FactKind::PHONE_AGE_DAYS, self.phone.age_days, called);
        all.flag(FactKind::PHONE_SHARED, self.phone.shared, called);
        all.flag(FactKind::NEW_IBAN_IS_OWN, self.is_own(), "erp");
        // Whatever the policies ask: another name would be vouched for than the one that was known.
        let same = self.kind == Kind::Confirm
            || !(self.sighting.found.is_disputed() || self.sighting.found.has_reowned());
        all.flag(FactKind::VENDOR_AS_KNOWN, same, "baseline");
        match self.kind {
            Kind::Change => {
                let several = self.vendor.active_accounts().count() > 1;
                all.flag(FactKind::VENDOR_HAS_SEVERAL_ACCOUNTS, several, "erp");
                let old = replaced(&self.vendor).and_then(|old| old.number.iban());
                let moves = old.is_some_and(|old| old.country() != self.iban.country());
                all.flag(FactKind::COUNTRY_CHANGES, moves, "erp");
            }
            Kind::Confirm => {
                all.flag(FactKind::ACCOUNT_ON_FILE, self.in_baseline().is_some(), "erp");
            }
        }
    }
}

#[async_trait]
impl Case for NewAccount {
    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    async fn facts(&self) -> Result<Facts, Denial> {
        if self.sighting.adopted_at.is_none() {
            return Err(Denial::new(Stage::Policy, Reason::BaselineMissing));
        }
        // INVARIANT (I8): an agent that guesses a number learns nothing before somebody called about it.
        let there = self.callback.is_some() && self.in_erp().is_some();
        if self.kind == Kind::Change && there && self.vendor.active_accounts().count() == 1 {
            return Err(Denial::new(Stage::Policy, Reason::AccountOnFile));
        }
        let ports = self.pack.ports();
        let mut all = Collector::at(ports.clock.now());
        self.all_facts(&mut all);
        let (shared, screening, vop) =
            tokio::join!(self.shared_with(), ports.sanctions.screen(&self.iban), self.vop(),);
        all.long(FactKind::NEW_IBAN_SHARED_WITH, shared?, "erp, baseline");
        let screening =
            screening.map_err(|silent| missing(&[FactKind::NEW_IBAN_SANCTIONED], &silent))?;
        let list = ports.sanctions.list();
        let (word, configured) = match screening {
            Screening::NotListed => ("no", true),
            Screening::Listed => ("yes", true),
            Screening::NotChecked => ("not_checked", list != "none"),
        };
        all.word(FactKind::NEW_IBAN_SANCTIONED, "Sanctions", word, &format!("sanctions:{list}"));
        all.flag(FactKind::SANCTIONS_LIST_CONFIGURED, configured, "configuration");
        let (word, name, source) = vop?;
        all.word(FactKind::NEW_ACCOUNT_VOP, "NewAccountVop", word, &source);
        all.text(FactKind::VOP_NAME, name.as_deref(), &source);
        Ok(all.facts)
    }

    fn add_volume(&self, _facts: &mut Facts, _volume: &Volume) {}

    fn floor(&self, facts: &Facts) -> Vec<Reason> {
        floor(facts, self.kind == Kind::Confirm)
    }

    fn order(&self, claim: &Claim) -> String {
        match self.kind {
            Kind::Change => BankChange {
                marker: claim.marker.clone(),
                store: claim.store.clone(),
                seq: claim.seq,
                company: self.authority.company().clone(),
                erp_company: self.erp_company.clone(),
                vendor: self.vendor.id.clone(),
                old: replaced(&self.vendor)
                    .map(|old| OldAccount { account: old.id.clone(), number: old.number.clone() }),
                new_iban: self.iban.clone(),
                not_after: claim.not_after,
            }
            .exact_text(),
            Kind::Confirm => {
                let account = self.in_baseline();
                Confirmation {
                    kind: self.kind.action().to_owned(),
                    marker: claim.marker.to_hex(),
                    vendor: self.vendor.id.to_string(),
                    account: account.map(|account| account.account.clone()).unwrap_or_default(),
                    number: self.iban.electronic().to_owned(),
                    since_ms: account.map_or(0, |account| account.since.as_millis()),
                    name: self.vendor.name.clone(),
                    tax_number: self.vendor.tax_number.clone(),
                    parent: self.vendor.parent.as_ref().map(ToString::to_string),
                    places: self.vendor.accounts.iter().map(|a| a.id.to_string()).collect(),
                }
                .text()
            }
        }
    }

    fn notice(&self, facts: &Facts) -> Option<Notice> {
        if self.kind != Kind::Change || facts.is_true("callback_valid") {
            return None;
        }
        let agent = self.authority.mandate().map_or("somebody", |mandate| mandate.agent.as_str());
        let vendor = &self.vendor;
        Some(Notice {
            kind: BANK_CHANGE_REQUESTED,
            subject: format!("{}/{}", vendor.id, self.pack.ports().keys.fingerprint(&self.iban)),
            detail: format!(
                "{agent} was asked to change the bank details of {} (vendor {}) to an account in {}. \
                 Nothing was changed. {}",
                vendor.name,
                vendor.id,
                self.iban.country(),
                whom_to_call(&self.sighting.found, &self.former, self.pack.ports().clock.now()),
            ),
        })
    }
}

/// What code refuses, whatever the policy text says (I4, I11).
///
/// INVARIANT: each condition asks for the fact that makes the change right, so that an absent fact
/// refuses as well.
fn floor(facts: &Facts, on_file_already: bool) -> Vec<Reason> {
    let is_false = |name: &str| {
        matches!(facts.get(name).map(|fact| &fact.value), Some(FactValue::Bool(false)))
    };
    let checks = [
        (!facts.is_true("callback_valid"), Reason::FloorNoCallback),
        (!facts.is_true("phone_trusted") || !is_false("phone_shared"), Reason::FloorPhoneUntrusted),
        (!is_false("new_iban_is_own"), Reason::FloorOwnAccount),
        (
            !matches!(facts.word("new_iban_sanctioned"), Some("no" | "not_checked")),
            Reason::FloorSanctioned,
        ),
        (
            !matches!(facts.word("vop"), Some("match" | "close_match" | "not_possible")),
            Reason::FloorVopNoMatch,
        ),
        (!facts.is_true("vendor_as_known"), Reason::FloorChangedInErp),
        (on_file_already && !facts.is_true("account_on_file"), Reason::FloorNotOnFile),
        (!on_file_already && !is_false("vendor_has_several_accounts"), Reason::FloorAmbiguous),
    ];
    checks.into_iter().filter(|(refused, _)| *refused).map(|(_, reason)| reason).collect()
}

/// The order of a confirmation: what becomes the baseline, as it was decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::ap) struct Confirmation {
    pub(in crate::ap) account: String,
    pub(in crate::ap) kind: String,
    pub(in crate::ap) marker: String,
    pub(in crate::ap) name: String,
    pub(in crate::ap) number: String,
    pub(in crate::ap) parent: Option<String>,
    pub(in crate::ap) places: Vec<String>,
    pub(in crate::ap) since_ms: i64,
    pub(in crate::ap) tax_number: Option<String>,
    pub(in crate::ap) vendor: String,
}

impl Confirmation {
    fn text(&self) -> String {
        serde_json_canonicalizer::to_string(self).unwrap_or_default()
    }

    /// Reads an order back.
    pub(in crate::ap) fn read(text: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        (read.kind == CONFIRM_BANK_DETAILS && read.text() == text).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::Timestamp;

    use super::*;

    fn good(confirm: bool) -> Collector {
        let mut all = Collector::at(Timestamp::from_millis(0));
        all.flag(FactKind::CALLBACK_VALID, true, "test");
        all.flag(FactKind::PHONE_TRUSTED, true, "test");
        all.flag(FactKind::PHONE_SHARED, false, "test");
        all.flag(FactKind::NEW_IBAN_IS_OWN, false, "test");
        all.flag(FactKind::VENDOR_AS_KNOWN, true, "test");
        all.word(FactKind::NEW_IBAN_SANCTIONED, "Sanctions", "no", "test");
        all.word(FactKind::NEW_ACCOUNT_VOP, "NewAccountVop", "match", "test");
        if confirm {
            all.flag(FactKind::ACCOUNT_ON_FILE, true, "test");
        } else {
            all.flag(FactKind::VENDOR_HAS_SEVERAL_ACCOUNTS, false, "test");
        }
        all
    }

    #[test]
    fn each_fact_alone_refuses_when_it_is_wrong() {
        let flags = [
            (FactKind::CALLBACK_VALID, Reason::FloorNoCallback),
            (FactKind::PHONE_TRUSTED, Reason::FloorPhoneUntrusted),
            (FactKind::PHONE_SHARED, Reason::FloorPhoneUntrusted),
            (FactKind::NEW_IBAN_IS_OWN, Reason::FloorOwnAccount),
            (FactKind::VENDOR_AS_KNOWN, Reason::FloorChangedInErp),
        ];
        for confirm in [false, true] {
            assert_eq!(floor(&good(confirm).facts, confirm), []);
            let of_kind = if confirm {
                (FactKind::ACCOUNT_ON_FILE, Reason::FloorNotOnFile)
            } else {
                (FactKind::VENDOR_HAS_SEVERAL_ACCOUNTS, Reason::FloorAmbiguous)
            };
            for (kind, reason) in flags.into_iter().chain([of_kind]) {
                let mut wrong = good(confirm);
                let right = wrong.facts.is_true(kind.name);
                wrong.flag(kind, !right, "test");
                assert_eq!(floor(&wrong.facts, confirm), [reason], "{kind:?}");
            }
            for (kind, list, word, reason) in [
                (FactKind::NEW_IBAN_SANCTIONED, "Sanctions", "yes", Reason::FloorSanctioned),
                (FactKind::NEW_ACCOUNT_VOP, "NewAccountVop", "no_match", Reason::FloorVopNoMatch),
                (FactKind::NEW_ACCOUNT_VOP, "NewAccountVop", "not_asked", Reason::FloorVopNoMatch),
            ] {
                let mut wrong = good(confirm);
                wrong.word(kind, list, word, "test");
                assert_eq!(floor(&wrong.facts, confirm), [reason], "{word}");
            }
            // Nothing known refuses for everything.
            assert_eq!(floor(&Facts::default(), confirm).len(), 7);
        }
    }
}
