//! Ids as text, one type for each thing, so that a vendor's id cannot stand where a bill's belongs.

use serde::{Deserialize, Serialize};

/// A text that cannot be an id: empty, over 128 characters, or with a control character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 128 characters and no control characters")]
pub struct BadId;

/// The most characters that an id may have.
const ID_CHARS_MAX: usize = 128;

fn checked(text: String) -> Result<String, BadId> {
    let fits = !text.is_empty() && text.chars().count() <= ID_CHARS_MAX;
    if fits && !text.chars().any(char::is_control) { Ok(text) } else { Err(BadId) }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes the text as an id.
            ///
            /// # Errors
            /// [`BadId`] if it is empty, too long or holds a control character.
            pub fn new(text: impl Into<String>) -> Result<Self, BadId> {
                checked(text.into()).map(Self)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// Countersign's own name for a company, as in the configuration and in mandates.
    CompanyId
);
text_id!(
    /// The ERP's own id of a company.
    ErpCompanyId
);
text_id!(
    /// The ERP's own immutable id of a vendor.
    VendorId
);
text_id!(
    /// The ERP's own immutable id of a vendor bill (`invoice_ref` outside).
    BillId
);
text_id!(
    /// The ERP's own id of a bank account record, which outlives a change of its number.
    AccountId
);
text_id!(
    /// The code of a bank journal of the company.
    JournalId
);
text_id!(
    /// The ERP's own id of a registered payment.
    PaymentId
);
