//! What a human may do in a company (API 2).

/// A role of a human in one company.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Principal of mandates, call-backs.
    Accountant,
    /// Four eyes, call-backs.
    Approver,
    /// Users and mandates.
    Admin,
    /// Reads everything.
    Auditor,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Accountant, Self::Approver, Self::Admin, Self::Auditor];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Accountant => "accountant",
            Self::Approver => "approver",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }

    /// The role with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }
}
