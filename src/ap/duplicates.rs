//! Whether a bill was entered twice, or paid already under another record: compared with what the
//! ERP holds now and with what we paid, as it was then; and an approver's word that two are two.

use std::collections::BTreeSet;

use countersign_erp_source::{
    Bill, BillId, BillKind, CompanyId, Document, Likeness, ReadError, ReferenceKey, Traits,
    VendorId,
};
use serde_json::json;

use super::AccountsPayable;
use super::invoice_pay::thing;
use crate::domain::names::Name;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::clearances::{self, Clearance, Cleared};
use crate::store::people::{self, Role};
use crate::store::precedents::{self, Alike};
use crate::store::{Conn, Questions, StoreError};

/// The longest reason for a clearance.
const REASON_CHARS_MAX: usize = 500;
/// So many of the documents that a suspicion rests on are named in its source.
const NAMED_MAX: usize = 5;

/// What our own record holds beside a bill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Record {
    paid: Vec<Document>,
    cleared: Vec<Cleared>,
    cut: bool,
}

impl Record {
    /// Whether there is more than could be looked at.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }
}

/// What our own record holds beside that bill. A clearance by `principal` does not count.
pub(super) fn record(
    company: &CompanyId,
    this: &Document,
    principal: Option<&Name>,
) -> impl Questions<Answer = Record> + use<> {
    let vendor = &this.traits.vendor;
    let beside = precedents::Beside {
        counterparty: vendor.to_string(),
        thing: thing(&this.id),
        reference: this.traits.reference.clone(),
        total: this.traits.total,
        dates: this.traits.near_dates(),
    };
    let asked =
        (precedents::alike(company, &beside), clearances::of_bill(company, &this.id, principal));
    let vendor = vendor.clone();
    asked.then(move |(alike, cleared)| {
        Ok(Record {
            cut: alike.len() >= precedents::ALIKE_MAX,
            paid: alike.into_iter().filter_map(|alike| as_document(&vendor, alike)).collect(),
            cleared,
        })
    })
}

/// A precedent as the document that it was.
fn as_document(vendor: &VendorId, alike: Alike) -> Option<Document> {
    let id = alike.thing.strip_prefix("bill/").and_then(|id| BillId::new(id).ok())?;
    let vendor = vendor.clone();
    let traits =
        Traits { vendor, reference: alike.reference, total: Some(alike.total), date: alike.dated };
    Some(Document { id, traits })
}

/// What was found beside a bill, the strictest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Judged(Vec<(Likeness, String)>);

impl Judged {
    /// The word of the policy schema.
    pub(super) fn word(&self) -> &'static str {
        match self.0.first() {
            None => "none",
            Some((Likeness::Similar, _)) => "similar",
            Some((Likeness::SameReference, _)) => "likely",
        }
    }

    /// Whether anything is like it.
    pub(super) fn is_suspicious(&self) -> bool {
        !self.0.is_empty()
    }

    /// All the bills that the suspicion rests on, for whoever has to compare them.
    pub(super) fn in_words(&self) -> Option<String> {
        let bill = |name: &str| name.split_once("bills/").map(|(_, bill)| bill.to_owned());
        let named: BTreeSet<String> = self.0.iter().filter_map(|(_, name)| bill(name)).collect();
        (!named.is_empty()).then(|| named.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Where it was read, with the documents that it rests on: `erp, store: erp bills/INV-7`.
    pub(super) fn source(&self) -> String {
        let named: Vec<&str> =
            self.0.iter().take(NAMED_MAX).map(|(_, name)| name.as_str()).collect();
        if named.is_empty() {
            "erp, store".to_owned()
        } else {
            format!("erp, store: {}", named.join(", "))
        }
    }
}

/// How a bill stands beside what the ERP holds now and what we paid, as it was then. A pair that was
/// cleared does not count, as long as both are what the approver saw.
pub(super) fn judge(this: &Document, in_erp: &[Document], record: &Record) -> Judged {
    let in_erp = in_erp.iter().map(|other| ("erp", other));
    let paid = record.paid.iter().map(|other| ("store", other));
    let mut found: Vec<(Likeness, String)> = in_erp
        .chain(paid)
        .filter(|(_, other)| other.id != this.id)
        .filter_map(|(from, other)| {
            let likeness = this.traits.likeness(&other.traits)?;
            let cleared = record.cleared.iter().any(|pair| clears(pair, this, other));
            (!cleared).then(|| (likeness, format!("{from} bills/{}", other.id)))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    Judged(found)
}

fn clears(pair: &Cleared, this: &Document, other: &Document) -> bool {
    pair.other == other.id.as_str()
        && was_seen(&pair.bill_seen, &this.traits)
        && was_seen(&pair.other_seen, &other.traits)
}

/// Traits in one text, so that a clearance holds only for what was seen.
fn trait_text(traits: &Traits) -> String {
    let reference = traits.reference.as_ref();
    json!([
        traits.vendor.as_str(),
        reference.map(ReferenceKey::by_part),
        reference.map(ReferenceKey::as_one),
        traits.total.map(|total| total.to_string()),
        traits.date.map(|date| date.to_string()),
    ])
    .to_string()
}

/// What an approver saw of one bill: as it is in the ERP, and as we paid it.
fn seen(now: &Traits, paid: &[Document]) -> Vec<String> {
    let mut all: Vec<String> =
        [now].into_iter().chain(paid.iter().map(|paid| &paid.traits)).map(trait_text).collect();
    all.sort();
    all.dedup();
    all
}

fn was_seen(seen: &str, traits: &Traits) -> bool {
    let seen: Vec<String> = serde_json::from_str(seen).unwrap_or_default();
    seen.contains(&trait_text(traits))
}

/// Why a pair was not cleared.
#[derive(Debug, thiserror::Error)]
pub enum NotCleared {
    /// A bill is no duplicate of itself.
    #[error("a bill is not compared with itself")]
    SameBill,
    /// A reason that says nothing, or is too long.
    #[error("a reason has 1 to {REASON_CHARS_MAX} characters and no control characters")]
    BadReason,
    /// The company has no such bill.
    #[error("the company has no bill `{0}`")]
    UnknownBill(BillId),
    /// Bills of two vendors are not taken for one.
    #[error("the two bills are not of the same vendor")]
    OtherVendor,
    /// The person is no active approver of the company.
    #[error("only an approver of the company can clear a suspicion")]
    NotAnApprover,
    /// The person granted a mandate under which the bill was proposed.
    #[error("whoever granted the mandate does not clear the bill")]
    SelfApproval,
    /// The ERP did not answer.
    #[error("the ERP did not answer")]
    Erp(#[source] ReadError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

impl NotCleared {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SameBill => "same_bill",
            Self::BadReason => "invalid_reason",
            Self::UnknownBill(_) => "bill_not_found",
            Self::OtherVendor => "other_vendor",
            Self::NotAnApprover => "not_an_approver",
            Self::SelfApproval => "self_approval",
            Self::Erp(_) => "erp_unavailable",
            Self::Store(_) => "store_unavailable",
        }
    }
}

impl AccountsPayable {
    /// Records that an approver has looked at two bills of one vendor and found them to be two, with
    /// a receipt. From then on neither makes the other suspicious, as long as both are in the ERP
    /// what they are now, the person is an approver, and it is not his own mandate that pays.
    ///
    /// # Errors
    /// [`NotCleared`] says what does not allow it; nothing was recorded.
    pub async fn clear_duplicate(
        &self,
        company: &CompanyId,
        by: &Name,
        bill: &BillId,
        other: &BillId,
        reason: &str,
    ) -> Result<Clearance, NotCleared> {
        let reason = reason.trim();
        let says_something = !reason.is_empty() && reason.chars().count() <= REASON_CHARS_MAX;
        if !says_something || reason.chars().any(char::is_control) {
            return Err(NotCleared::BadReason);
        }
        if bill == other {
            return Err(NotCleared::SameBill);
        }
        let (one, two) = tokio::join!(self.find_own(company, bill), self.find_own(company, other));
        let (one, two) = (Traits::of(&one?), Traits::of(&two?));
        if one.vendor != two.vendor {
            return Err(NotCleared::OtherVendor);
        }
        let at = self.ports().clock.now();
        let clearance = Clearance {
            bill: bill.clone(),
            other: other.clone(),
            cleared_by: by.clone(),
            reason: reason.to_owned(),
            bill_seen: String::new(),
            other_seen: String::new(),
            at,
        };
        let company = company.clone();
        let written = self
            .ports()
            .store
            .write_or_undo(move |unit| {
                Box::pin(async move {
                    let conn = unit.conn();
                    let Clearance { cleared_by, bill, other, .. } = &clearance;
                    if !conn.ask(people::holds_role(cleared_by, &company, Role::Approver)).await? {
                        return Ok(Err(NotCleared::NotAnApprover));
                    }
                    if clearances::is_principal_of(conn, &company, &thing(bill), cleared_by).await?
                    {
                        return Ok(Err(NotCleared::SelfApproval));
                    }
                    let one = seen(&one, &paid_as(conn, &company, bill, &one).await?);
                    let two = seen(&two, &paid_as(conn, &company, other, &two).await?);
                    let clearance = Clearance {
                        bill_seen: json!(one).to_string(),
                        other_seen: json!(two).to_string(),
                        ..clearance
                    };
                    clearances::keep(conn, &company, &clearance).await?;
                    unit.receipt(cleared_receipt(&company, &clearance, &one, &two))?;
                    Ok(Ok(clearance))
                })
            })
            .await
            .map_err(NotCleared::Store)?;
        written.map(|written| written.value)
    }

    async fn find_own(&self, company: &CompanyId, bill: &BillId) -> Result<Bill, NotCleared> {
        let found = self.ports().erp.find_bill(company, bill).await.map_err(NotCleared::Erp)?;
        found
            .map(|reading| reading.bill)
            .filter(|found| found.kind == BillKind::Bill && found.company == *company)
            .ok_or_else(|| NotCleared::UnknownBill(bill.clone()))
    }
}

/// That bill as we paid it, as often as we did.
async fn paid_as(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    bill: &BillId,
    now: &Traits,
) -> Result<Vec<Document>, StoreError> {
    let vendor = now.vendor.as_str();
    let paid = precedents::of_thing(conn, company, vendor, &thing(bill)).await?;
    Ok(paid.into_iter().filter_map(|paid| as_document(&now.vendor, paid)).collect())
}

fn cleared_receipt(
    company: &CompanyId,
    clearance: &Clearance,
    bill_seen: &[String],
    other_seen: &[String],
) -> Receipt {
    Receipt {
        kind: ReceiptKind::DuplicateCleared,
        at: clearance.at,
        company: Some(company.to_string()),
        operation: None,
        data: json!({
            "bill": clearance.bill, "other": clearance.other,
            "bill_seen": bill_seen, "other_seen": other_seen,
            "cleared_by": clearance.cleared_by.as_str(), "reason": clearance.reason,
        }),
    }
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::{Amount, Currency, VendorId};

    use super::*;

    fn document(id: &str, reference: &str, total: &str, date: &str) -> Document {
        let eur = Currency::from_code("EUR").unwrap();
        Document {
            id: BillId::new(id).unwrap(),
            traits: Traits {
                vendor: VendorId::new("V").unwrap(),
                reference: ReferenceKey::of(reference),
                total: Amount::parse(total, eur).ok(),
                date: date.parse().ok(),
            },
        }
    }

    fn this() -> Document {
        document("THIS", "A-1", "100.00", "2026-11-15")
    }

    fn record(paid: Vec<Document>, cleared: Vec<Cleared>) -> Record {
        Record { paid, cleared, cut: false }
    }

    fn clearance(bill: &[&Document], other: &[&Document]) -> Cleared {
        let texts = |all: &[&Document]| {
            json!(all.iter().map(|one| trait_text(&one.traits)).collect::<Vec<_>>()).to_string()
        };
        Cleared { other: other[0].id.to_string(), bill_seen: texts(bill), other_seen: texts(other) }
    }

    #[test]
    fn the_strictest_of_all_that_is_found_counts_and_itself_is_nothing() {
        let (same, near) =
            (document("S", "a 1", "7.00", ""), document("N", "B", "100.00", "2026-11-16"));
        let other = document("O", "C", "100.00", "2026-01-01");
        let none = Record::default();
        let word = |in_erp: &[Document], record: &Record| judge(&this(), in_erp, record).word();
        assert_eq!(word(&[this(), other.clone()], &none), "none");
        assert_eq!(word(&[this(), near.clone(), other.clone()], &none), "similar");
        assert_eq!(word(&[near.clone(), same.clone()], &none), "likely");
        assert_eq!(word(&[same.clone(), near.clone()], &none), "likely");
        // As we paid it counts as much, but for this bill itself, of which a part was paid.
        assert_eq!(word(&[], &record(vec![this(), other], vec![])), "none");
        assert_eq!(word(&[], &record(vec![near.clone()], vec![])), "similar");
        let both = record(vec![same.clone(), near.clone()], vec![]);
        assert_eq!(word(&[], &both), "likely");
        let judged = judge(&this(), &[near], &record(vec![same], vec![]));
        assert_eq!(judged.source(), "erp, store: store bills/S, erp bills/N");
        assert_eq!(judge(&this(), &[], &none).source(), "erp, store");
    }

    #[test]
    fn a_clearance_takes_one_pair_away_and_only_as_it_was_seen() {
        let same = document("S", "a 1", "7.00", "2026-01-01");
        let edited = document("S", "A-1", "7.01", "2026-01-01");
        let another = document("T", "A 1", "7.00", "2026-01-01");
        let cleared = vec![clearance(&[&this()], &[&same])];
        let word = |this: &Document, in_erp: &[Document], paid: &[Document]| {
            judge(this, in_erp, &record(paid.to_vec(), cleared.clone())).word()
        };
        let (one, paid) = (std::slice::from_ref(&same), std::slice::from_ref(&edited));
        assert_eq!(word(&this(), one, &[]), "none");
        assert_eq!(word(&this(), &[], one), "none");
        assert_eq!(word(&this(), &[same.clone(), another], &[]), "likely");
        assert_eq!(word(&this(), paid, &[]), "likely");
        // It was paid as something that nobody saw.
        assert_eq!(word(&this(), one, paid), "likely");
        let changed = document("THIS", "A-1", "100.01", "2026-11-15");
        assert_eq!(word(&changed, one, &[]), "likely");
        // Where both were seen, both are cleared.
        let both = record(paid.to_vec(), vec![clearance(&[&this()], &[&same, &edited])]);
        assert_eq!(judge(&this(), one, &both).word(), "none");
    }
}
