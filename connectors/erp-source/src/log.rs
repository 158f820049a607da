//! What somebody did to vendors and accounts in the ERP, as the ERP's own append-only log tells it.

use crate::{AccountId, BillId, Booked, CompanyId, Marker, Timestamp, VendorId};

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoggedField {
    /// A vendor's name.
    Name,
    /// A vendor's tax number.
    TaxNumber,
    /// The vendor it belongs to.
    Parent,
    /// A vendor's main telephone number.
    Phone,
    /// A vendor's mobile number.
    Mobile,
    /// The vendor itself was deleted, or merged into another: its id before, and after a merge the
    /// other's where the ERP tells.
    Vendor,
    /// An account was added; its number is what it became.
    Added,
    /// An account was deleted; its number is what it was.
    Removed,
    /// An account's number.
    Number,
    /// Whose an account is, by vendors' ids. The entry stands at the vendor that had it.
    Owner,
    /// Whether an account is active: [`LoggedField::ACTIVE`] or [`LoggedField::ARCHIVED`].
    Activity,
    /// The place of an account among the vendor's, as a number.
    Order,
    /// Whether the ERP allows paying to an account: [`LoggedField::ALLOWED`] or
    /// [`LoggedField::BARRED`].
    Trust,
    /// The name of an account's holder.
    Holder,
}

impl LoggedField {
    /// What [`LoggedField::Activity`] says of an account that is active.
    pub const ACTIVE: &str = "active";
    /// What it says of one that is not.
    pub const ARCHIVED: &str = "archived";
    /// What [`LoggedField::Trust`] says of an account that the ERP allows paying to.
    pub const ALLOWED: &str = "allowed";
    /// What it says of one that it does not.
    pub const BARRED: &str = "barred";

    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Name,
        Self::TaxNumber,
        Self::Parent,
        Self::Phone,
        Self::Mobile,
        Self::Vendor,
        Self::Added,
        Self::Removed,
        Self::Number,
        Self::Owner,
        Self::Activity,
        Self::Order,
        Self::Trust,
        Self::Holder,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::TaxNumber => "tax_number",
            Self::Parent => "parent",
            Self::Phone => "phone",
            Self::Mobile => "mobile",
            Self::Vendor => "vendor",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Number => "number",
            Self::Owner => "owner",
            Self::Activity => "activity",
            Self::Order => "order",
            Self::Trust => "trust",
            Self::Holder => "holder",
        }
    }

    /// The one with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.code() == code)
    }
}

/// One entry of the log.
#[derive(Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// Its number. Ascending, but what was begun earlier may become visible later.
    pub id: u64,
    /// When, by the ERP's clock.
    pub at: Timestamp,
    /// Who, as far as the ERP tells: a login or a name.
    pub by: Option<String>,
    /// Of which vendor; with [`LoggedField::Owner`] the one that had the account.
    pub vendor: VendorId,
    /// Of which account, where it is about one.
    pub account: Option<AccountId>,
    /// What.
    pub field: LoggedField,
    /// What it was; `None` if it was not there.
    pub before: Option<String>,
    /// What it became; `None` if it is not there any more.
    pub after: Option<String>,
    /// Whether a sealed order of ours did it.
    pub ordered: bool,
}

impl std::fmt::Debug for LoggedChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it was and became may be a whole account number.
        f.debug_struct("LoggedChange")
            .field("id", &self.id)
            .field("vendor", &self.vendor)
            .field("account", &self.account)
            .field("field", &self.field)
            .field("ordered", &self.ordered)
            .finish_non_exhaustive()
    }
}

/// Orders whose bookings are looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The company.
    pub company: CompanyId,
    /// Markers of booked payments, each with its bill.
    pub orders: Vec<(Marker, BillId)>,
}

/// What became of a booked payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// Which order.
    pub marker: Marker,
    /// What the ERP holds for it now; `None` if it knows no such order.
    pub booked: Option<Booked>,
    /// What all that stands for the bill adds up to beyond its total, in minor units; 0 if nothing.
    pub overpaid_minor: i64,
}
