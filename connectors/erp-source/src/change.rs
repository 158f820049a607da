//! A change of a vendor's bank details: everything that was decided, sealed, so that the ERP's side
//! can make exactly that change, once, or none.

use serde::{Deserialize, Serialize};

use crate::{
    AccountId, AccountNumber, BillId, CompanyId, Difference, ErpCompanyId, Iban, LoggedField,
    Marker, Order, OrderTextError, Sealed, Timestamp, VendorId,
};

/// What tells the text of a change from one of a payment.
const KIND: &str = "bank_change";

/// The account that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldAccount {
    /// By record.
    pub account: AccountId,
    /// By number.
    pub number: AccountNumber,
}

/// What the ERP is to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankChange {
    /// Names this one attempt.
    pub marker: Marker,
    /// The store that it comes from.
    pub store: String,
    /// The store's sequence number, used once, over payments and changes.
    pub seq: u64,
    /// The company.
    pub company: CompanyId,
    /// The ERP's own id of it.
    pub erp_company: ErpCompanyId,
    /// The vendor.
    pub vendor: VendorId,
    /// The vendor's only active account; `None` where it has none.
    pub old: Option<OldAccount>,
    /// The number that takes its place.
    pub new_iban: Iban,
    /// Not to be done after this, by the ERP's clock.
    pub not_after: Timestamp,
}

/// A sealed change of bank details.
pub type SealedBankChange = Sealed<BankChange>;

/// The sealed text, in the order of RFC 8785.
#[derive(Serialize)]
struct ChangeText<'a> {
    company: &'a str,
    kind: &'a str,
    marker: String,
    new_iban: &'a str,
    not_after: String,
    old_account: &'a str,
    old_number: &'a str,
    seq: u64,
    store: &'a str,
    v: u8,
    vendor: &'a str,
}

impl Order for BankChange {
    /// Where the vendor has no account, the old one is two empty texts.
    fn exact_text(&self) -> String {
        let old = self.old.as_ref();
        let text = ChangeText {
            company: self.erp_company.as_str(),
            kind: KIND,
            marker: self.marker.to_hex(),
            new_iban: self.new_iban.electronic(),
            not_after: self.not_after.to_string(),
            old_account: old.map_or("", |old| old.account.as_str()),
            old_number: old.map_or("", |old| old.number.whole()),
            seq: self.seq,
            store: &self.store,
            v: 1,
            vendor: self.vendor.as_str(),
        };
        // Strings and small numbers: serialising them cannot fail. An empty text would verify
        // nowhere, so even then nothing could be changed.
        serde_json_canonicalizer::to_string(&text).unwrap_or_default()
    }
}

/// The sealed text, read back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeRead {
    company: ErpCompanyId,
    kind: String,
    marker: String,
    new_iban: String,
    not_after: Timestamp,
    old_account: String,
    old_number: String,
    seq: u64,
    store: String,
    v: u8,
    vendor: VendorId,
}

impl BankChange {
    /// Reads an exact text again; the company's own name is not part of it.
    ///
    /// # Errors
    /// [`OrderTextError`] if it is no change, or would be written differently.
    pub fn from_exact_text(text: &str, company: CompanyId) -> Result<Self, OrderTextError> {
        let read: ChangeRead = serde_json::from_str(text).map_err(|_fault| OrderTextError)?;
        let old = if read.old_account.is_empty() {
            None
        } else {
            Some(OldAccount {
                account: AccountId::new(read.old_account).map_err(|_fault| OrderTextError)?,
                number: AccountNumber::from_erp(&read.old_number),
            })
        };
        let change = Self {
            marker: Marker::parse(&read.marker).map_err(|_fault| OrderTextError)?,
            store: read.store,
            seq: read.seq,
            company,
            erp_company: read.company,
            vendor: read.vendor,
            old,
            new_iban: Iban::parse(&read.new_iban).map_err(|_fault| OrderTextError)?,
            not_after: read.not_after,
        };
        let exact = read.v == 1 && read.kind == KIND && change.exact_text() == text;
        if exact { Ok(change) } else { Err(OrderTextError) }
    }
}

/// What the ERP holds for a change that was made, read back from its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The record of the account that took the old one's place; `None` if somebody deleted it
    /// afterwards.
    pub account: Option<ChangedAccount>,
    /// The vendor's other accounts that are active now.
    pub also_active: Vec<AccountId>,
    /// The open bills that were pointed to the new account when the change was made.
    pub bills: Vec<BillId>,
}

/// The account that took the old one's place, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedAccount {
    /// The record.
    pub id: AccountId,
    /// Whose it is.
    pub owner: VendorId,
    /// Its number.
    pub number: AccountNumber,
    /// Whether it is active.
    pub active: bool,
    /// Whether the ERP allows paying to it.
    pub erp_allows: bool,
}

impl Changed {
    /// Compares what the ERP holds with what was ordered.
    pub fn differences(&self, order: &BankChange) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut note = |what, same: bool, ordered: String, booked: String| {
            if !same {
                found.push(Difference { what, ordered, booked });
            }
        };
        let new = order.new_iban.masked();
        match &self.account {
            None => note("account", false, new, "deleted".to_owned()),
            Some(account) => {
                let same = account.number.iban() == Some(&order.new_iban);
                note("account", same, new, account.number.masked());
                let (owner, vendor) = (account.owner.to_string(), order.vendor.to_string());
                note("owner", account.owner == order.vendor, vendor, owner);
                let state = |active| {
                    if active { LoggedField::ACTIVE } else { LoggedField::ARCHIVED }.to_owned()
                };
                note("state", account.active, state(true), state(account.active));
            }
        }
        let others = format!("{:?}", self.also_active);
        note("other accounts", self.also_active.is_empty(), "none".to_owned(), others);
        found
    }
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeLookUp {
    /// The company.
    pub company: CompanyId,
    /// The vendor, whose lock is taken.
    pub vendor: VendorId,
    /// The order's marker.
    pub marker: Marker,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PaymentOrder, SealKey};

    fn change() -> BankChange {
        BankChange {
            marker: Marker::from_bytes([7; 16]),
            store: "st_1".to_owned(),
            seq: 3,
            company: CompanyId::new("blue-sparrow").unwrap(),
            erp_company: ErpCompanyId::new("1").unwrap(),
            vendor: VendorId::new("7").unwrap(),
            old: Some(OldAccount {
                account: AccountId::new("9").unwrap(),
                number: AccountNumber::from_erp("FR7630006000011234567890189"),
            }),
            new_iban: Iban::parse("NL91ABNA0417164300").unwrap(),
            not_after: Timestamp::parse("2026-11-29T10:00:00Z").unwrap(),
        }
    }

    fn changed() -> Changed {
        Changed {
            account: Some(ChangedAccount {
                id: AccountId::new("10").unwrap(),
                owner: change().vendor,
                number: AccountNumber::Iban(change().new_iban),
                active: true,
                erp_allows: true,
            }),
            also_active: vec![],
            bills: vec![],
        }
    }

    #[test]
    fn the_text_is_canonical_and_reads_back() {
        let text = change().exact_text();
        assert_eq!(
            text,
            concat!(
                r#"{"company":"1","kind":"bank_change","marker":"07070707070707070707070707070707","#,
                r#""new_iban":"NL91ABNA0417164300","not_after":"2026-11-29T10:00:00.000Z","#,
                r#""old_account":"9","old_number":"FR7630006000011234567890189","seq":3,"#,
                r#""store":"st_1","v":1,"vendor":"7"}"#
            )
        );
        assert_eq!(BankChange::from_exact_text(&text, change().company), Ok(change()));
        let first = BankChange { old: None, ..change() };
        assert_eq!(BankChange::from_exact_text(&first.exact_text(), change().company), Ok(first));
        for wrong in [format!(" {text}"), text.replace("bank_change", "payment"), "{}".to_owned()] {
            assert!(BankChange::from_exact_text(&wrong, change().company).is_err(), "{wrong}");
        }
        // One key seals both, and no text of the one is one of the other.
        assert!(PaymentOrder::from_exact_text(&text, change().company).is_err());
    }

    #[test]
    fn the_seal_covers_every_field() {
        let key = SealKey::from_bytes([1; 32]);
        let sealed = key.seal(change());
        let changes: [fn(&mut BankChange); 9] = [
            |o| o.marker = Marker::from_bytes([8; 16]),
            |o| o.store = "st_2".to_owned(),
            |o| o.seq = 4,
            |o| o.erp_company = ErpCompanyId::new("2").unwrap(),
            |o| o.vendor = VendorId::new("8").unwrap(),
            |o| o.old = None,
            |o| o.old.as_mut().unwrap().number = AccountNumber::from_erp("DE89370400440532013000"),
            |o| o.new_iban = Iban::parse("DE89370400440532013000").unwrap(),
            |o| o.not_after = Timestamp::parse("2026-11-29T10:00:01Z").unwrap(),
        ];
        for edit in changes {
            let mut other = change();
            edit(&mut other);
            assert!(!key.verifies(&other.exact_text(), sealed.seal()), "{other:?}");
        }
    }

    #[test]
    fn every_difference_is_named() {
        assert_eq!(changed().differences(&change()), vec![]);
        let gone = Changed { account: None, ..changed() };
        assert_eq!(gone.differences(&change()).len(), 1);
        let wrong = Changed {
            account: Some(ChangedAccount {
                owner: VendorId::new("8").unwrap(),
                number: AccountNumber::from_erp("DE89370400440532013000"),
                active: false,
                ..changed().account.unwrap()
            }),
            also_active: vec![AccountId::new("9").unwrap()],
            bills: vec![],
        };
        let found: Vec<_> = wrong.differences(&change()).iter().map(|d| d.what).collect();
        assert_eq!(found, ["account", "owner", "state", "other accounts"]);
    }
}
