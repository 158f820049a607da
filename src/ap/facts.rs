//! The facts of a payment, each from a source of the gateway's own, and the floor on them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Display;

use countersign_erp_source::{
    Beside, BesideQuery, Document, Screening, Timestamp, Traits, VendorId, VopReport, VopResult,
};

use super::UPDATE_BANK_DETAILS;
use super::duplicates::{self, Record};
use super::invoice_pay::Payment;
use crate::domain::decision::Stage;
use crate::domain::facts::Facts;
use crate::domain::reason::Reason;
use crate::gateway::pack::{Denial, Volume};
use crate::store::{Questions, baseline, precedents};

mod account;
mod collected;
mod floor;

use self::account::OnFile;
pub(super) use self::collected::{Collector, FactKind};
pub(super) use self::floor::floor;

/// What the facts of one payment rest on beside bill and baseline.
struct Found {
    vop: VopReport,
    sanctions: Screening,
    beside: Beside,
    kept: Kept,
}

/// What the store holds that concerns one payment.
struct Kept {
    record: Record,
    bank_change_pending: bool,
    first_approved: Option<Timestamp>,
    holders: Vec<String>,
}

/// Finds out all facts of a payment but those about volume.
pub(super) async fn of_payment(payment: &Payment) -> Result<Facts, Denial> {
    let ports = payment.pack.ports();
    let now = ports.clock.now();
    let bill = &payment.reading.bill;
    if bill.currency() != payment.reading.company_currency {
        return Err(Denial::new(Stage::Policy, Reason::CurrencyNeedsRate));
    }
    let on_file = account::on_file(payment).await?;
    let this = Document { id: bill.id.clone(), traits: Traits::of(bill) };
    let found = find_out(payment, &on_file, &this).await?;

    let mut all = Collector::at(now);
    of_bill(&mut all, payment);
    of_account(&mut all, payment, &on_file, &found);
    let vop_source = format!("vop:{}", found.vop.provider);
    all.word(FactKind::VOP, "Vop", vop_word(&found.vop.result), &vop_source);
    all.text(FactKind::VOP_NAME, found.vop.result.actual_name(), &vop_source);
    let name = ports.sanctions.list();
    let (word, configured) = match found.sanctions {
        Screening::NotListed => ("no", true),
        Screening::Listed => ("yes", true),
        Screening::NotChecked => ("not_checked", name != "none"),
    };
    all.word(FactKind::PAYEE_SANCTIONED, "Sanctions", word, &format!("sanctions:{name}"));
    all.flag(FactKind::SANCTIONS_LIST_CONFIGURED, configured, "configuration");
    of_others(&mut all, &this, &found)?;
    Ok(all.facts)
}

/// Adds the facts about what went out without a human.
pub(super) fn add_volume(facts: &mut Facts, volume: &Volume, at: Timestamp) {
    let mut all = Collector::at(at);
    for (kind, sum) in [
        (FactKind::VENDOR_AUTO_24H_E2, volume.counterparty_day),
        (FactKind::COMPANY_AUTO_24H_E2, volume.company_day),
        (FactKind::VENDOR_AUTO_30D_E2, volume.counterparty_month),
        (FactKind::COMPANY_AUTO_30D_E2, volume.company_month),
    ] {
        all.long(kind, sum, "store");
    }
    for (name, fact) in all.facts.iter() {
        facts.set(name, fact.clone());
    }
}

/// Asks everybody side by side.
async fn find_out(payment: &Payment, on_file: &OnFile, this: &Document) -> Result<Found, Denial> {
    let ports = payment.pack.ports();
    let query = BesideQuery {
        bills: vec![this.clone()],
        held: Some((payment.iban.clone(), payment.vendor.id.clone())),
    };
    let (vop, sanctions, beside, kept) = tokio::join!(
        ports.vop.verify(&payment.vendor.name, &payment.iban),
        ports.sanctions.screen(&payment.iban),
        ports.erp.look_beside(&payment.mandate.company, &query),
        read_kept(payment, on_file, this),
    );
    let beside_facts = &[FactKind::DUPLICATE, FactKind::SHARED_WITH, FactKind::VENDOR_UNAPPLIED];
    Ok(Found {
        vop: vop.map_err(|silent| missing(&[FactKind::VOP], &silent))?,
        sanctions: sanctions.map_err(|silent| missing(&[FactKind::PAYEE_SANCTIONED], &silent))?,
        beside: beside.map_err(|fault| missing(beside_facts, &fault))?,
        kept: kept?,
    })
}

async fn read_kept(payment: &Payment, on_file: &OnFile, this: &Document) -> Result<Kept, Denial> {
    let (company, vendor, since) =
        (&payment.mandate.company, &payment.vendor.id, on_file.account.since);
    let asked = (
        duplicates::record(company, this, Some(&payment.mandate.principal)),
        precedents::is_under_way(company, vendor.as_str(), UPDATE_BANK_DETAILS),
        precedents::first_approved(company, vendor.as_str(), payment.payee(), since),
        baseline::holders(company, payment.iban.electronic(), vendor),
    );
    let asked = asked.then(|(record, bank_change_pending, first_approved, holders)| {
        Ok(Kept { record, bank_change_pending, first_approved, holders })
    });
    let answered = payment.pack.ports().store.ask(asked).await;
    answered.map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
}

fn of_bill(all: &mut Collector, payment: &Payment) {
    let bill = &payment.reading.bill;
    let consistent = bill.consistent_vendor();
    let is_vendors = consistent.as_ref().is_ok_and(|vendor| {
        **vendor == payment.vendor.id && payment.account.owner == payment.vendor.id
    });
    let residual = bill.payable.residual;
    let against_residual = payment.amount.compare(residual);
    all.flag(FactKind::INVOICE_OPEN, bill.is_open(), "erp");
    all.flag(FactKind::BILL_CONSISTENT, consistent.is_ok(), "erp");
    all.flag(FactKind::PAYEE_IS_INVOICE_VENDOR, is_vendors, "erp");
    let within = matches!(against_residual, Ok(Ordering::Less | Ordering::Equal));
    all.flag(FactKind::AMOUNT_WITHIN_RESIDUAL, within, "erp");
    let same_currency = payment.amount.currency() == bill.currency();
    all.flag(FactKind::CURRENCY_MATCHES_INVOICE, same_currency, "erp");
    all.flag(FactKind::IS_PARTIAL, matches!(against_residual, Ok(Ordering::Less)), "erp");
    all.long(FactKind::AMOUNT_E2, payment.amount.hundredths_rounded_up(), "erp");
}

fn of_account(all: &mut Collector, payment: &Payment, on_file: &OnFile, found: &Found) {
    let (now, since) = (payment.pack.ports().clock.now(), on_file.account.since);
    all.long(FactKind::IBAN_AGE_DAYS, now.whole_days_since(since), "baseline");
    let cooling = now.since(since) < payment.pack.rules().cooling_off;
    all.flag(FactKind::IN_COOLING_OFF, cooling, "baseline");
    let status = account::bank_status(payment, on_file);
    all.word(FactKind::BANK_STATUS, "BankStatus", status, "baseline");
    all.flag(FactKind::ERP_ALLOWS_ACCOUNT, payment.account.erp_allows, "erp");
    let own = payment.reading.own_accounts.contains(&payment.iban);
    all.flag(FactKind::IS_OWN_ACCOUNT, own, "erp");
    all.flag(FactKind::BANK_CHANGE_PENDING, found.kept.bank_change_pending, "store");
    let approved = found.kept.first_approved.map_or(0, |at| now.whole_days_since(at));
    all.long(FactKind::DAYS_SINCE_APPROVED_PAYMENT, approved, "store");
    let in_erp = found.beside.holders.iter().map(VendorId::as_str);
    let others: BTreeSet<&str> =
        in_erp.chain(found.kept.holders.iter().map(String::as_str)).collect();
    let others = i64::try_from(others.len()).unwrap_or(i64::MAX);
    all.long(FactKind::SHARED_WITH, others, "erp, baseline");
}

/// What other documents and payments of the vendor say about this one.
fn of_others(all: &mut Collector, this: &Document, found: &Found) -> Result<(), Denial> {
    all.flag(FactKind::HAS_VENDOR_REFERENCE, this.traits.reference.is_some(), "erp");
    let unapplied = found.beside.with_credit.contains(&this.traits.vendor);
    all.flag(FactKind::VENDOR_UNAPPLIED, unapplied, "erp");
    // INVARIANT: what was not looked at whole is no fact. `none` says that nothing is like it.
    if found.beside.cut.contains(&this.id) || found.kept.record.is_cut() {
        return Err(missing(&[FactKind::DUPLICATE], &"there is more than can be looked at"));
    }
    let judged = duplicates::judge(this, &found.beside.documents, &found.kept.record);
    all.word(FactKind::DUPLICATE, "Duplicate", judged.word(), &judged.source());
    all.text(FactKind::LIKE_BILLS, judged.in_words().as_deref(), "erp, store");
    Ok(())
}

pub(super) fn missing(facts: &[FactKind], why: &dyn Display) -> Denial {
    let names: Vec<&str> = facts.iter().map(|kind| kind.name).collect();
    let detail = match names.as_slice() {
        [only] => format!("the fact `{only}` could not be had; nothing was done"),
        _ => format!("the facts `{}` could not be had; nothing was done", names.join("`, `")),
    };
    Denial::saying(Stage::Error, Reason::FactUnavailable, detail)
        .with("fact", names.join(" "))
        .with("error", why.to_string())
}

fn vop_word(result: &VopResult) -> &'static str {
    match result {
        VopResult::Match => "match",
        VopResult::CloseMatch { .. } => "close_match",
        VopResult::NoMatch => "no_match",
        VopResult::NotPossible => "not_possible",
    }
}
