//! The facts of a payment, each from a source of the gateway's own, and the floor on them.

use std::cmp::Ordering;

use countersign_erp_source::{Screening, Timestamp, VopResult};

use super::baseline::{self, Comparison};
use super::invoice_pay::Payment;
use crate::domain::decision::Stage;
use crate::domain::facts::{Fact, FactValue, Facts};
use crate::domain::reason::Reason;
use crate::gateway::pack::{Denial, Volume};
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::baseline::{AccountStatus, BaselineAccount, Known};

/// Collects facts with their source and time.
struct Collector {
    facts: Facts,
    at: Timestamp,
}

impl Collector {
    fn set(&mut self, name: &'static str, value: FactValue, source: &str, agents_see: bool) {
        let binds = name != "iban_age_days";
        let fact = Fact { value, source: source.to_owned(), at: self.at, binds, agents_see };
        self.facts.set(name, fact);
    }

    fn flag(&mut self, name: &'static str, value: bool, source: &str) {
        self.set(name, FactValue::Bool(value), source, true);
    }

    fn word(&mut self, name: &'static str, list: &'static str, word: &'static str, source: &str) {
        self.set(name, FactValue::Word { list, word }, source, true);
    }
}

/// Finds out all facts of a payment.
pub(super) async fn of_payment(payment: &Payment) -> Result<Facts, Denial> {
    let ports = payment.pack.ports();
    let now = ports.clock.now();
    let bill = &payment.reading.bill;
    if bill.currency() != payment.reading.company_currency {
        return Err(Denial::new(Stage::Policy, Reason::CurrencyNeedsRate));
    }
    let on_file = on_file(payment, now).await?;
    let vop = ports
        .vop
        .verify(&payment.vendor.name, &payment.iban)
        .await
        .map_err(|silent| missing("vop", &silent))?;
    let sanctions = ports
        .sanctions
        .screen(&payment.iban)
        .await
        .map_err(|silent| missing("payee_sanctioned", &silent))?;

    let mut all = Collector { facts: Facts::default(), at: now };
    of_bill(&mut all, payment);
    let age = now.whole_days_since(on_file.account.since);
    all.set("iban_age_days", FactValue::Long(age), "baseline", true);
    let cooling = now.since(on_file.account.since) < payment.pack.rules().cooling_off;
    all.flag("in_cooling_off", cooling, "baseline");
    all.word("bank_status", "BankStatus", bank_status(payment, &on_file), "baseline");
    let vop_source = format!("vop:{}", vop.provider);
    all.word("vop", "Vop", vop_word(&vop.result), &vop_source);
    let list = format!("sanctions:{}", ports.sanctions.list());
    let (word, configured) = match sanctions {
        Screening::NotListed => ("no", true),
        Screening::Listed => ("yes", true),
        Screening::NotChecked => ("not_checked", ports.sanctions.list() != "none"),
    };
    all.word("payee_sanctioned", "Sanctions", word, &list);
    all.set("sanctions_list_configured", FactValue::Bool(configured), "configuration", false);
    Ok(all.facts)
}

fn of_bill(all: &mut Collector, payment: &Payment) {
    let bill = &payment.reading.bill;
    let consistent = bill.consistent_vendor();
    let is_vendors = consistent.as_ref().is_ok_and(|vendor| {
        **vendor == payment.vendor.id && payment.account.owner == payment.vendor.id
    });
    let residual = bill.payable.residual;
    let against_residual = payment.amount.compare(residual);
    let own = payment.reading.own_accounts.contains(&payment.iban);
    all.flag("invoice_open", bill.is_open(), "erp");
    all.flag("bill_consistent", consistent.is_ok(), "erp");
    all.flag("payee_is_invoice_vendor", is_vendors, "erp");
    let within = matches!(against_residual, Ok(Ordering::Less | Ordering::Equal));
    all.flag("amount_within_residual", within, "erp");
    let same_currency = payment.amount.currency() == bill.currency();
    all.flag("currency_matches_invoice", same_currency, "erp");
    all.flag("is_partial", matches!(against_residual, Ok(Ordering::Less)), "erp");
    all.flag("erp_allows_account", payment.account.erp_allows, "erp");
    all.flag("is_own_account", own, "erp");
    let amount = payment.amount.hundredths_rounded_up();
    all.set("amount_e2", FactValue::Long(amount), "erp", false);
}

/// Adds the facts about what went out without a human.
pub(super) fn add_volume(facts: &mut Facts, volume: &Volume, at: Timestamp) {
    let sums = [
        ("company_auto_24h_e2", volume.company_day),
        ("company_auto_30d_e2", volume.company_month),
        ("vendor_auto_24h_e2", volume.counterparty_day),
        ("vendor_auto_30d_e2", volume.counterparty_month),
    ];
    for (name, sum) in sums {
        let value = FactValue::Long(sum);
        let source = "store".to_owned();
        facts.set(name, Fact { value, source, at, binds: false, agents_see: false });
    }
}

fn missing(fact: &str, why: &dyn std::fmt::Display) -> Denial {
    let detail = format!("the fact `{fact}` could not be had; nothing was done");
    Denial::saying(Stage::Error, Reason::FactUnavailable, detail)
        .with("fact", fact)
        .with("error", why.to_string())
}

/// What the baseline has of the account that is to be paid.
struct OnFile {
    account: BaselineAccount,
    /// The vendor is not what it was: it was merged with another one, or the bill was entered for a
    /// vendor that somebody made a contact of this one. Its account is not the payee's then.
    vendor_changed: bool,
}

/// What the baseline has of the account that is to be paid, after this comparison.
async fn on_file(payment: &Payment, now: Timestamp) -> Result<OnFile, Denial> {
    let known = read_baseline(payment).await?;
    if known.adopted_at.is_none() {
        return Err(Denial::new(Stage::Policy, Reason::BaselineMissing));
    }
    let mut found = baseline::compare(&known, &payment.vendor, now);
    if !found.is_unchanged() {
        keep(payment, now).await?;
        // What stands in the store now is what counts: another daemon may have been first.
        found = baseline::compare(&read_baseline(payment).await?, &payment.vendor, now);
    }
    let vendor_changed = found.has_reowned() || known.entered_is_vendor;
    let account = found
        .accounts
        .into_iter()
        .find(|account| account.account == payment.account.id.as_str())
        .ok_or_else(|| missing("bank_status", &"the account is not in the baseline"))?;
    Ok(OnFile { account, vendor_changed })
}

async fn read_baseline(payment: &Payment) -> Result<Known, Denial> {
    let company = payment.mandate.company.clone();
    let vendor = payment.vendor.id.clone();
    let entered = payment.reading.bill.header.entered.clone();
    let accounts: Vec<String> =
        payment.vendor.accounts.iter().map(|account| account.id.to_string()).collect();
    payment
        .pack
        .ports()
        .store
        .read(move |conn| {
            Box::pin(async move {
                let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
                let known =
                    crate::store::baseline::known(conn, &company, &vendor, &accounts).await?;
                let entered_is_vendor = entered != vendor
                    && crate::store::baseline::is_known(conn, &company, &entered).await?;
                Ok(Known { entered_is_vendor, ..known })
            })
        })
        .await
        .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
}

/// Keeps what a comparison found, compared once more under the store's own lock.
async fn keep(payment: &Payment, now: Timestamp) -> Result<(), Denial> {
    let company = payment.mandate.company.clone();
    let vendor = payment.vendor.clone();
    payment
        .pack
        .ports()
        .store
        .write(move |unit| {
            Box::pin(async move {
                let ids: Vec<String> =
                    vendor.accounts.iter().map(|account| account.id.to_string()).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let known =
                    crate::store::baseline::known(unit.conn(), &company, &vendor.id, &ids).await?;
                let found = baseline::compare(&known, &vendor, now);
                if let Some(new) = &found.new_vendor {
                    crate::store::baseline::first_seen(unit.conn(), &company, new).await?;
                }
                for account in &found.observed {
                    crate::store::baseline::observe(unit.conn(), &company, account).await?;
                }
                if !found.is_unchanged() {
                    unit.receipt(changed_receipt(&company, &vendor.id, &known, &found, now))?;
                }
                Ok(())
            })
        })
        .await
        .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))?;
    Ok(())
}

fn changed_receipt(
    company: &countersign_erp_source::CompanyId,
    vendor: &countersign_erp_source::VendorId,
    known: &Known,
    found: &Comparison,
    now: Timestamp,
) -> Receipt {
    let account = |account: &BaselineAccount| {
        serde_json::json!({
            "account": account.account, "active": account.active, "number": account.number,
            "owner": account.vendor, "since": account.since, "status": account.status.code(),
            "note": account.note,
        })
    };
    let before: Vec<_> = known.accounts.iter().map(account).collect();
    let now_seen: Vec<_> = found.observed.iter().map(account).collect();
    Receipt {
        kind: ReceiptKind::BaselineChanged,
        at: now,
        company: Some(company.to_string()),
        operation: None,
        data: serde_json::json!({
            "vendor": vendor, "first_seen": found.new_vendor.is_some(),
            "before": before, "now": now_seen,
        }),
    }
}

fn bank_status(payment: &Payment, on_file: &OnFile) -> &'static str {
    let status = on_file.account.status;
    if status == AccountStatus::ChangedInErp || on_file.vendor_changed {
        return AccountStatus::ChangedInErp.code();
    }
    let settled = matches!(status, AccountStatus::Adopted | AccountStatus::Verified);
    let several = payment.vendor.active_accounts().count() > 1;
    if !payment.payee_certain || (several && !settled) {
        return "ambiguous";
    }
    status.code()
}

fn vop_word(result: &VopResult) -> &'static str {
    match result {
        VopResult::Match => "match",
        VopResult::CloseMatch { .. } => "close_match",
        VopResult::NoMatch => "no_match",
        VopResult::NotPossible => "not_possible",
    }
}

/// What code refuses, whatever the policy text says (I11).
///
/// INVARIANT: each condition asks for the fact that makes paying right, so that an absent fact
/// refuses as well.
pub(super) fn floor(facts: &Facts) -> Vec<Reason> {
    let false_or_absent = |name: &str| {
        !matches!(facts.get(name).map(|fact| &fact.value), Some(FactValue::Bool(false)))
    };
    let status = facts.word("bank_status");
    let vop = facts.word("vop");
    let checks = [
        (!facts.is_true("invoice_open"), Reason::FloorBillNotOpen),
        (!facts.is_true("bill_consistent"), Reason::FloorBillInconsistent),
        (!facts.is_true("payee_is_invoice_vendor"), Reason::FloorOtherVendor),
        (!facts.is_true("amount_within_residual"), Reason::FloorOverResidual),
        (!facts.is_true("currency_matches_invoice"), Reason::FloorOtherCurrency),
        (!facts.is_true("erp_allows_account"), Reason::FloorErpForbids),
        (false_or_absent("is_own_account"), Reason::FloorOwnAccount),
        (
            !matches!(status, Some("verified" | "adopted" | "unverified" | "ambiguous")),
            Reason::FloorChangedInErp,
        ),
        (status == Some("ambiguous"), Reason::FloorAmbiguous),
        (
            !matches!(facts.word("payee_sanctioned"), Some("no" | "not_checked")),
            Reason::FloorSanctioned,
        ),
        (!matches!(vop, Some("match" | "close_match" | "not_possible")), Reason::FloorVopNoMatch),
    ];
    checks.into_iter().filter(|(refused, _)| *refused).map(|(_, reason)| reason).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Collector {
        let mut all = Collector { facts: Facts::default(), at: Timestamp::from_millis(0) };
        for name in [
            "invoice_open",
            "bill_consistent",
            "payee_is_invoice_vendor",
            "amount_within_residual",
            "currency_matches_invoice",
            "erp_allows_account",
        ] {
            all.flag(name, true, "test");
        }
        all.flag("is_own_account", false, "test");
        all.word("bank_status", "BankStatus", "adopted", "test");
        all.word("vop", "Vop", "match", "test");
        all.word("payee_sanctioned", "Sanctions", "no", "test");
        all
    }

    const FLAGS: [(&str, Reason); 7] = [
        ("invoice_open", Reason::FloorBillNotOpen),
        ("bill_consistent", Reason::FloorBillInconsistent),
        ("payee_is_invoice_vendor", Reason::FloorOtherVendor),
        ("amount_within_residual", Reason::FloorOverResidual),
        ("currency_matches_invoice", Reason::FloorOtherCurrency),
        ("erp_allows_account", Reason::FloorErpForbids),
        ("is_own_account", Reason::FloorOwnAccount),
    ];

    #[test]
    fn each_fact_alone_refuses_when_it_is_wrong() {
        assert_eq!(floor(&good().facts), []);
        for (name, reason) in FLAGS {
            let mut wrong = good();
            let right = wrong.facts.is_true(name);
            wrong.flag(name, !right, "test");
            assert_eq!(floor(&wrong.facts), [reason], "{name}");
        }
        let words = [
            ("bank_status", "BankStatus", "changed_in_erp", Reason::FloorChangedInErp),
            ("bank_status", "BankStatus", "ambiguous", Reason::FloorAmbiguous),
            ("vop", "Vop", "no_match", Reason::FloorVopNoMatch),
            ("payee_sanctioned", "Sanctions", "yes", Reason::FloorSanctioned),
        ];
        for (name, list, word, reason) in words {
            let mut wrong = good();
            wrong.word(name, list, word, "test");
            assert_eq!(floor(&wrong.facts), [reason], "{word}");
        }
    }

    #[test]
    fn an_absent_fact_refuses_as_well() {
        let found = floor(&Facts::default());
        for (name, reason) in FLAGS {
            assert!(found.contains(&reason), "{name}");
        }
        for reason in [Reason::FloorChangedInErp, Reason::FloorVopNoMatch, Reason::FloorSanctioned]
        {
            assert!(found.contains(&reason), "{reason:?}");
        }
    }
}
