//! `invoice.pay`: the forms of its arguments, and where each value is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_erp_source::{
    Amount, BesideQuery, BillId, BillReading, Currency, Iban, Order, PaymentOrder, ReadError,
    ReferenceKey, SourceAccount, Vendor, VendorAccount, VendorId,
};

use super::{AccountsPayable, facts};
use crate::domain::decision::Stage;
use crate::domain::facts::Facts;
use crate::domain::mandate::Mandate;
use crate::domain::operation::{Origin, Param, Params, Sum};
use crate::domain::reason::Reason;
use crate::gateway::contract::{Term, Terms, invalid};
use crate::gateway::pack::{Asking, Case, Claim, Denial, Precedent, Resolved, Volume};
use crate::store::baseline;
use crate::store::operations::{self, Owner};

/// The arguments, all required.
pub(super) const ARGUMENTS: [&str; 5] =
    ["invoice_ref", "payee_iban", "amount", "currency", "source_account"];

/// How long a wrong account that an agent named is held against it.
const GUESSES_WITHIN: Duration = Duration::from_hours(24);
/// Characters of the vendor's reference that a memo repeats.
const MEMO_REFERENCE_CHARS: usize = 40;

/// The arguments in their own forms.
struct Asked {
    bill: BillId,
    payee: Payee,
    amount: Amount,
    source: Source,
}

impl Asked {
    fn names_an_account(&self) -> bool {
        matches!(self.payee, Payee::Number(_)) || matches!(self.source, Source::Number(_))
    }
}

enum Payee {
    Number(Iban),
    OnFile(String),
}

enum Source {
    Number(Iban),
    Journal(String),
}

/// A payment of one bill, resolved.
#[derive(Debug)]
pub(super) struct Payment {
    pub(super) pack: AccountsPayable,
    pub(super) mandate: Mandate,
    pub(super) reading: BillReading,
    pub(super) vendor: Vendor,
    pub(super) account: VendorAccount,
    pub(super) iban: Iban,
    pub(super) amount: Amount,
    /// Whether the account that is paid is the one that can be told to be meant.
    pub(super) payee_certain: bool,
    source: SourceAccount,
    payee: String,
    resolved: Resolved,
}

impl Payment {
    /// Who exactly is paid.
    pub(super) fn payee(&self) -> &str {
        &self.payee
    }
}

/// An ERP that did not answer. What it said is for the receipt only.
pub(super) fn unavailable(fault: &ReadError) -> Denial {
    Denial::error(Reason::ErpUnavailable, fault)
}

/// What at most one live operation may hold.
pub(super) fn thing(bill: &BillId) -> String {
    format!("bill/{bill}")
}

fn form(name: &str, fault: impl std::fmt::Display) -> Denial {
    invalid(&format!("`{name}`: {fault}"))
}

fn read_terms(terms: &Terms) -> Result<Asked, Denial> {
    let bill = BillId::new(terms.text("invoice_ref")?).map_err(|bad| form("invoice_ref", bad))?;
    let currency =
        Currency::from_code(terms.text("currency")?).map_err(|bad| form("currency", bad))?;
    let amount =
        Amount::parse(terms.text("amount")?, currency).map_err(|bad| form("amount", bad))?;
    if !amount.is_positive() {
        return Err(form("amount", "an amount is greater than zero"));
    }
    let iban = |name: &str, text: &str| Iban::parse(text).map_err(|bad| form(name, bad));
    let payee = match terms.term("payee_iban")? {
        Term::Text(text) => Payee::Number(iban("payee_iban", text)?),
        Term::Reference(vendor) => Payee::OnFile(vendor.clone()),
    };
    let source = match terms.term("source_account")? {
        Term::Text(text) => Source::Number(iban("source_account", text)?),
        Term::Reference(journal) => Source::Journal(journal.clone()),
    };
    Ok(Asked { bill, payee, amount, source })
}

/// Looks every value up in the records of the mandate's own company.
pub(super) async fn resolve(
    pack: &AccountsPayable,
    terms: &Terms,
    asking: &Asking<'_>,
) -> Result<Arc<dyn Case>, Denial> {
    let Some(mandate) = asking.authority.mandate() else {
        return Err(Denial::new(Stage::Contract, Reason::UnknownAction));
    };
    let asked = read_terms(terms)?;
    if asked.names_an_account() {
        may_guess(pack, mandate, asking).await?;
    }
    let erp = &pack.ports().erp;
    let reading = erp
        .find_bill(&mandate.company, &asked.bill)
        .await
        .map_err(|fault| unavailable(&fault))?
        .ok_or_else(|| Denial::new(Stage::Provenance, Reason::BillNotFound))?;
    // INVARIANT (I8): a reading of another company is as good as none.
    if reading.bill.company != mandate.company {
        return Err(Denial::new(Stage::Provenance, Reason::BillNotFound));
    }
    let (vendor, account, payee_certain) = match payee(&reading, &asked.payee) {
        Ok(found) => found,
        Err(denial) => {
            return Err(denial.with("held_by", whose(pack, &reading, &asked.payee).await));
        }
    };
    let iban = account.number.iban().cloned().ok_or_else(not_on_file)?;
    let source = source(pack, mandate, &asked).await?;
    let resolved = resolved(pack, mandate, &asked, &reading, &vendor, &account, &source);
    let payee = payee_of(pack, &account);
    Ok(Arc::new(Payment {
        pack: pack.clone(),
        mandate: mandate.clone(),
        amount: asked.amount,
        reading,
        vendor,
        account,
        iban,
        payee_certain,
        source,
        payee,
        resolved,
    }))
}

/// An account number that an agent names and that is not the right one is a guess, and the answer to it
/// tells something: which digits a masked number has. A few are typing errors; more are not answered,
/// right or wrong. What names its accounts by reference is never held up by it.
async fn may_guess(
    pack: &AccountsPayable,
    mandate: &Mandate,
    asking: &Asking<'_>,
) -> Result<(), Denial> {
    let ports = pack.ports();
    let owner = Owner {
        company: mandate.company.clone(),
        principal: mandate.principal.clone(),
        agent: Some(mandate.agent.clone()),
    };
    let since = ports.clock.now().minus(GUESSES_WITHIN);
    let guesses = operations::count_guesses(&owner, asking.operation, since.as_millis());
    let wrong = ports
        .store
        .ask(guesses)
        .await
        .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
    if wrong >= i64::from(pack.rules().wrong_accounts_per_day) {
        return Err(Denial::new(Stage::Provenance, Reason::TooManyGuesses));
    }
    Ok(())
}

fn not_on_file() -> Denial {
    Denial::new(Stage::Provenance, Reason::PayeeNotOnFile)
}

/// The account that is meant: one of the bill's own vendor, active, and (where the vendor has
/// several) the one that the bill names.
fn payee(reading: &BillReading, asked: &Payee) -> Result<(Vendor, VendorAccount, bool), Denial> {
    let vendor = reading.vendor.as_ref().ok_or_else(|| not_on_file().with("payee", "no vendor"))?;
    let active: Vec<&VendorAccount> = vendor
        .active_accounts()
        .filter(|account| account.owner == vendor.id && account.number.iban().is_some())
        .collect();
    let named = reading.bill.named_account.as_ref();
    let is_named = |account: &VendorAccount| named == Some(&account.id);
    let chosen = match asked {
        Payee::Number(iban) => {
            let same: Vec<_> =
                active.iter().filter(|account| account.number.iban() == Some(iban)).collect();
            same.iter().find(|account| is_named(account)).or_else(|| same.first()).map(|a| **a)
        }
        Payee::OnFile(id) if *id == vendor.id.as_str() => {
            active.iter().find(|account| is_named(account)).or_else(|| active.first()).copied()
        }
        Payee::OnFile(_) => None,
    };
    let Some(account) = chosen else {
        return Err(not_on_file().with("vendor", vendor.id.as_str()));
    };
    // An account that the bill names binds even when it is archived or another vendor's now: paying
    // the one that is left would be a choice of ours.
    let certain = match named {
        Some(_) => is_named(account),
        None => vendor.active_accounts().count() == 1,
    };
    Ok((vendor.clone(), account.clone(), certain))
}

/// Whose a payee is that is not the bill's vendor: for the receipt only, as no caller is told (I8).
async fn whose(pack: &AccountsPayable, reading: &BillReading, asked: &Payee) -> String {
    let (ports, company) = (pack.ports(), &reading.bill.company);
    let found = match asked {
        Payee::Number(iban) => {
            let own = reading.bill.header.commercial_vendor.clone();
            let query = BesideQuery { bills: Vec::new(), held: Some((iban.clone(), own.clone())) };
            let in_erp = ports.erp.look_beside(company, &query).await;
            let kept = ports.store.ask(baseline::holders(company, iban.electronic(), &own)).await;
            in_erp.ok().zip(kept.ok()).map(|(in_erp, kept)| {
                let in_erp = in_erp.holders.iter().map(|holder| holder.as_str().to_owned());
                in_erp.chain(kept).collect::<BTreeSet<String>>()
            })
        }
        Payee::OnFile(id) => match VendorId::new(id.clone()) {
            Err(_bad) => Some(BTreeSet::new()),
            Ok(id) => ports.erp.find_vendor(company, &id).await.ok().map(|found| {
                let found = found.filter(|vendor| vendor.company == *company);
                found.iter().map(|vendor| vendor.id.to_string()).collect()
            }),
        },
    };
    match found {
        None => "could not be asked".to_owned(),
        Some(nobody) if nobody.is_empty() => "nobody".to_owned(),
        Some(vendors) => vendors.into_iter().collect::<Vec<_>>().join(" "),
    }
}

/// The company's account that the mandate names, as the ERP holds it now.
async fn source(
    pack: &AccountsPayable,
    mandate: &Mandate,
    asked: &Asked,
) -> Result<SourceAccount, Denial> {
    let denied =
        |what: &str| Denial::new(Stage::Provenance, Reason::NotInMandate).with("differs", what);
    if asked.amount.currency() != mandate.currency {
        return Err(denied("currency"));
    }
    let accounts = pack
        .ports()
        .erp
        .source_accounts(&mandate.company)
        .await
        .map_err(|fault| unavailable(&fault))?;
    let mut of_mandate = accounts.into_iter().filter(|account| {
        account.journal == mandate.journal
            && pack.ports().keys.fingerprint(&account.iban) == mandate.source_fingerprint
    });
    let (Some(account), None) = (of_mandate.next(), of_mandate.next()) else {
        return Err(denied("the journal's account in the ERP"));
    };
    let asked_for_it = match &asked.source {
        Source::Number(iban) => *iban == account.iban,
        Source::Journal(journal) => *journal == account.journal.as_str(),
    };
    if !asked_for_it {
        return Err(denied("source_account"));
    }
    if account.currency != mandate.currency {
        return Err(denied("the journal's currency in the ERP"));
    }
    Ok(account)
}

fn resolved(
    pack: &AccountsPayable,
    mandate: &Mandate,
    asked: &Asked,
    reading: &BillReading,
    vendor: &Vendor,
    account: &VendorAccount,
    source: &SourceAccount,
) -> Resolved {
    let bill = &reading.bill;
    let bill_ref = format!("bills/{}", bill.id);
    let residual = bill.payable.residual;
    let whole = asked.amount == residual;
    let plain = |value: &str, origin, reference: &str| Param {
        value: value.to_owned(),
        masked: value.to_owned(),
        origin,
        reference: reference.to_owned(),
        bound: None,
        blind: None,
    };
    let mandate_ref = format!("mandates/{}", mandate.id);
    let mut params = Params::new();
    params.insert(
        "invoice_ref".to_owned(),
        plain(bill.id.as_str(), Origin::SystemOfRecord, &bill_ref),
    );
    params.insert(
        "payee_iban".to_owned(),
        Param {
            masked: account.number.masked(),
            ..plain(
                account.number.whole(),
                Origin::SystemOfRecord,
                &format!("vendors/{}", vendor.id),
            )
        },
    );
    let amount = asked.amount.to_decimal_string();
    params.insert(
        "amount".to_owned(),
        if whole {
            plain(&amount, Origin::SystemOfRecord, &bill_ref)
        } else {
            Param {
                bound: Some(residual.to_decimal_string()),
                ..plain(&amount, Origin::BoundedBySystemOfRecord, &bill_ref)
            }
        },
    );
    params.insert(
        "currency".to_owned(),
        plain(mandate.currency.code(), Origin::Mandate, &mandate_ref),
    );
    params.insert(
        "source_account".to_owned(),
        Param {
            masked: source.iban.masked(),
            ..plain(source.iban.electronic(), Origin::Mandate, &mandate_ref)
        },
    );
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let records = BTreeMap::from([
        ("account", account.id.to_string()),
        (
            "account_fingerprint",
            account
                .number
                .iban()
                .map_or_else(String::new, |iban| pack.ports().keys.fingerprint(iban)),
        ),
        ("bill", bill.id.to_string()),
        ("bill_number", text(&bill.number)),
        ("bill_reference", text(&bill.reference)),
        ("bill_residual", residual.to_string()),
        ("bill_total", bill.payable.total.to_string()),
        ("erp_company", bill.erp_company.to_string()),
        ("journal", source.journal.to_string()),
        ("vendor", vendor.id.to_string()),
        ("vendor_name", vendor.name.clone()),
    ]);
    Resolved {
        params,
        records,
        thing: thing(&bill.id),
        counterparty: vendor.id.to_string(),
        sum: Some(Sum { amount: asked.amount, total: bill.payable.total }),
        precedent: Some(Precedent {
            payee: payee_of(pack, account),
            reference: bill.reference.as_deref().and_then(ReferenceKey::of),
            dated: bill.date,
        }),
        not_by: BTreeSet::new(),
        callback: None,
    }
}

/// Record and number of an account in one text; its owner is the counterparty.
fn payee_of(pack: &AccountsPayable, account: &VendorAccount) -> String {
    let number = account.number.iban().map(|iban| pack.ports().keys.fingerprint(iban));
    format!("{}/{}", number.unwrap_or_default(), account.id)
}

#[async_trait]
impl Case for Payment {
    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    async fn facts(&self) -> Result<Facts, Denial> {
        facts::of_payment(self).await
    }

    fn add_volume(&self, facts: &mut Facts, volume: &Volume) {
        facts::add_volume(facts, volume, self.pack.ports().clock.now());
    }

    fn floor(&self, facts: &Facts) -> Vec<Reason> {
        facts::floor(facts)
    }

    fn order(&self, claim: &Claim) -> String {
        let now = self.pack.ports().clock.now();
        let store: String = claim.store.chars().rev().take(6).collect();
        let reference: String = self
            .reading
            .bill
            .reference
            .as_deref()
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '.'))
            .take(MEMO_REFERENCE_CHARS)
            .collect();
        let own = format!("CS-{}-{}", store.to_ascii_uppercase(), claim.seq);
        PaymentOrder {
            marker: claim.marker.clone(),
            store: claim.store.clone(),
            seq: claim.seq,
            company: self.mandate.company.clone(),
            erp_company: self.reading.bill.erp_company.clone(),
            bill: self.reading.bill.id.clone(),
            total: claim.total.unwrap_or(self.reading.bill.payable.total),
            vendor: self.vendor.id.clone(),
            account: self.account.id.clone(),
            iban: self.iban.clone(),
            amount: self.amount,
            journal: self.source.journal.clone(),
            source_iban: self.source.iban.clone(),
            memo: if reference.is_empty() { own } else { format!("{reference} {own}") },
            date: now.to_utc().with_timezone(&self.pack.rules().time_zone).date_naive(),
            not_after: claim.not_after,
        }
        .exact_text()
    }
}
