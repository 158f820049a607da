//! What a vendor or a bill may say, in the world file and in the control surface, and what it
//! reads as there.

use chrono::NaiveDate;
use countersign_erp_source::{
    AccountId, AccountNumber, Amount, AmountError, BadId, BillId, Currency, Iban, IbanError,
    Timestamp, UnknownCurrency, VendorId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

mod bill;
mod vendor;

pub(crate) use bill::NamedAccount;

/// A field that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: {problem}")]
pub struct FieldError {
    /// Which field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl FieldError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// Gives a check's error the name of the field.
pub(crate) trait InField<T> {
    fn in_field(self, field: &'static str) -> Result<T, FieldError>;
}

macro_rules! in_field {
    ($($error:ty),+) => {
        $(impl<T> InField<T> for Result<T, $error> {
            fn in_field(self, field: &'static str) -> Result<T, FieldError> {
                self.map_err(|error| FieldError::new(field, error.to_string()))
            }
        })+
    };
}

in_field!(AmountError, UnknownCurrency, BadId, IbanError);

/// Tells an absent field (`None`) from a null one (`Some(None)`).
#[expect(clippy::option_option, reason = "absent, null and a value are three things in an edit")]
fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// A blank text says nothing.
fn not_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// A vendor's fields. An absent field stays as it is, a null one is taken away.
///
/// - `accounts` is the whole list, in order. An entry whose number is on file keeps its record;
///   another entry changes the number of the record at the same place, as a clerk does, unless that
///   one is kept by its own number; all others are new records, and records that no entry stands
///   for are deleted. Record ids are never used twice.
/// - `iban` alone changes the number of the first active account in place, or makes one where none
///   is active; null archives all. Together with `accounts` it must say the same.
/// - An account that is given to another vendor keeps its record and is as old as that; one that
///   comes over in a merge keeps its age too, as an ERP merges behind its own records' back.
/// - An age that only repeats what is on file, as when a record is read, edited and written back, is
///   no statement: a record that changes is then as old as its change. Another age is believed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VendorFields {
    /// The name; needed for a new vendor.
    pub name: Option<String>,
    /// VAT or registration number.
    #[serde(deserialize_with = "present")]
    pub tax_number: Option<Option<String>>,
    /// The vendor it belongs to.
    #[serde(deserialize_with = "present")]
    pub parent: Option<Option<String>>,
    /// The telephone number on file.
    #[serde(deserialize_with = "present")]
    pub phone: Option<Option<String>>,
    /// Since how many days.
    pub phone_age_days: Option<u32>,
    /// Short for one account.
    #[serde(deserialize_with = "present")]
    pub iban: Option<Option<String>>,
    /// Since how many days that one is unchanged.
    pub iban_age_days: Option<u32>,
    /// All accounts, archived ones too.
    pub accounts: Option<Vec<AccountFields>>,
    /// The vendor that this one is merged into, after the rest of the edit: its accounts and bills
    /// become the other's.
    pub merged_into: Option<String>,
}

/// An account in a list of accounts. What is absent stays as it is, or has its default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountFields {
    /// The number; not necessarily a valid IBAN.
    pub iban: String,
    /// Since how many days it is unchanged (0).
    #[serde(default)]
    pub age_days: Option<u32>,
    /// Whether it is not archived (true).
    #[serde(default)]
    pub active: Option<bool>,
    /// The holder's name, where it differs from the vendor's.
    #[serde(default)]
    pub holder: Option<String>,
    /// Whether the ERP itself allows paying to it (true).
    #[serde(default)]
    pub allowed: Option<bool>,
    /// The other vendor whose it becomes, after the rest of the edit.
    #[serde(default)]
    pub owner: Option<String>,
}

/// A bill's fields. An absent field stays as it is, or has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BillFields {
    /// Whose bill; needed for a new one.
    pub vendor: Option<String>,
    /// The vendor's own reference.
    #[serde(deserialize_with = "present")]
    pub vendor_reference: Option<Option<String>>,
    /// The bill's date (14 days before today).
    pub date: Option<String>,
    /// The total; needed for a new one.
    pub amount: Option<String>,
    /// The currency (the company's).
    pub currency: Option<String>,
    /// When it is due.
    #[serde(deserialize_with = "present")]
    pub due: Option<Option<String>>,
    /// The state (open). `open` for a paid bill opens it again.
    pub state: Option<StateWord>,
    /// The kind (a bill).
    pub kind: Option<KindWord>,
    /// What is already paid (nothing).
    pub paid: Option<String>,
    /// The account that the bill names (the vendor's first).
    #[serde(deserialize_with = "present")]
    pub payee_iban: Option<Option<String>>,
}

/// The state of a bill, as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateWord {
    /// Not confirmed yet.
    Draft,
    /// Confirmed, with something left to pay.
    Open,
    /// Confirmed, with nothing left.
    Paid,
    /// Withdrawn.
    Cancelled,
}

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindWord {
    /// A vendor bill.
    Bill,
    /// A vendor credit note.
    CreditNote,
}

/// What Verification of Payee answers for a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VopEntry {
    /// The name that is asked.
    pub name: String,
    /// The account that is asked.
    pub iban: String,
    /// The answer.
    pub result: VopWord,
    /// With `close_match`, the holder's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_name: Option<String>,
}

impl VopEntry {
    pub(crate) fn check(&self) -> Result<Iban, FieldError> {
        if self.name.trim().is_empty() {
            return Err(FieldError::new("name", "must not be empty"));
        }
        if self.actual_name.is_some() && self.result != VopWord::CloseMatch {
            return Err(FieldError::new("actual_name", "goes with `close_match` only"));
        }
        Iban::parse(&self.iban).in_field("iban")
    }
}

/// An answer of Verification of Payee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VopWord {
    /// The holder's name.
    Match,
    /// Nearly.
    CloseMatch,
    /// Not the holder's name.
    NoMatch,
    /// The check could not be made.
    NotPossible,
}

impl VopWord {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::CloseMatch => "close_match",
            Self::NoMatch => "no_match",
            Self::NotPossible => "not_possible",
        }
    }
}

/// A vendor as the ERP holds it now, whole numbers included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VendorRecord {
    /// The name.
    pub name: String,
    /// VAT or registration number.
    pub tax_number: Option<String>,
    /// The vendor it belongs to.
    pub parent: Option<String>,
    /// The telephone number on file.
    pub phone: Option<String>,
    /// Since how many days.
    pub phone_age_days: Option<i64>,
    /// The number of the first active account.
    pub iban: Option<String>,
    /// Since how many days that one is unchanged.
    pub iban_age_days: Option<i64>,
    /// All accounts, archived ones too.
    pub accounts: Vec<AccountRecord>,
}

/// An account as the ERP holds it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccountRecord {
    /// The number.
    pub iban: String,
    /// Since how many days it is unchanged.
    pub age_days: i64,
    /// Whether it is not archived.
    pub active: bool,
    /// The holder's name, where it differs from the vendor's.
    pub holder: Option<String>,
    /// Whether the ERP itself allows paying to it; said only where it does not.
    #[serde(skip_serializing_if = "is_true")]
    pub allowed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// A bill as the ERP holds it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BillRecord {
    /// Whose bill.
    pub vendor: String,
    /// The vendor's own reference.
    pub vendor_reference: Option<String>,
    /// The bill's date.
    pub date: String,
    /// The total.
    pub amount: String,
    /// The currency.
    pub currency: String,
    /// When it is due.
    pub due: Option<String>,
    /// The present state.
    pub state: StateWord,
    /// The kind.
    pub kind: KindWord,
    /// What is paid by now.
    pub paid: String,
    /// The number of the account that it names.
    pub payee_iban: Option<String>,
}

/// A vendor as a row with its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VendorRow {
    pub(crate) id: VendorId,
    pub(crate) name: String,
    pub(crate) tax_number: Option<String>,
    pub(crate) parent: Option<VendorId>,
    pub(crate) phone: Option<String>,
    pub(crate) phone_since: Option<Timestamp>,
    /// How many accounts it ever had, so that no record id is used twice.
    pub(crate) accounts_made: i64,
    pub(crate) accounts: Vec<AccountRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountRow {
    pub(crate) id: AccountId,
    pub(crate) number: AccountNumber,
    pub(crate) holder: Option<String>,
    pub(crate) active: bool,
    pub(crate) allowed: bool,
    pub(crate) since: Timestamp,
    pub(crate) changed: bool,
}

/// The document's own state; whether it is paid is a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredState {
    Draft,
    Posted,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BillRow {
    pub(crate) id: BillId,
    pub(crate) vendor: VendorId,
    pub(crate) reference: Option<String>,
    pub(crate) date: NaiveDate,
    pub(crate) due: Option<NaiveDate>,
    pub(crate) total: Amount,
    pub(crate) paid: Amount,
    pub(crate) state: StoredState,
    pub(crate) kind: KindWord,
    pub(crate) named_account: Option<AccountId>,
}

impl BillRow {
    /// What is left; below zero where more was paid than the bill says.
    pub(crate) fn residual(&self) -> Result<Amount, AmountError> {
        self.total.checked_sub(self.paid)
    }

    pub(crate) fn currency(&self) -> Currency {
        self.total.currency()
    }
}
