//! What was decided, at which stage, and why: closed lists, so that callers can rely on them.

/// The stages of the pipeline, in their order (DESIGN 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Whose mandate is this?
    Authn,
    /// A known action, exactly its parameters?
    Contract,
    /// Does each critical value equal a trusted one?
    Provenance,
    /// Does the mandate hold the scope?
    Delegation,
    /// Do amount and calls stay within it?
    Budget,
    /// At which approval level does the policy permit?
    Policy,
    /// Have the right humans voted for this very hash?
    Approval,
    /// One live operation per thing, freezes, limits.
    Execution,
    /// Something went wrong inside the gateway; nothing was done.
    Error,
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 9] = [
        Self::Authn,
        Self::Contract,
        Self::Provenance,
        Self::Delegation,
        Self::Budget,
        Self::Policy,
        Self::Approval,
        Self::Execution,
        Self::Error,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Authn => "authn",
            Self::Contract => "contract",
            Self::Provenance => "provenance",
            Self::Delegation => "delegation",
            Self::Budget => "budget",
            Self::Policy => "policy",
            Self::Approval => "approval",
            Self::Execution => "execution",
            Self::Error => "error",
        }
    }

    /// The stage with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.code() == code)
    }
}

/// Which humans must have voted before an operation executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nobody.
    None,
    /// The mandate's principal.
    StepUp,
    /// An approver who is neither the principal nor the one who made a call-back.
    FourEyes,
}

impl Level {
    /// All levels, from the lowest.
    pub const ALL: [Self; 3] = [Self::None, Self::StepUp, Self::FourEyes];

    /// The number that policies read as `context.approval_level`.
    pub fn number(self) -> i64 {
        match self {
            Self::None => 0,
            Self::StepUp => 1,
            Self::FourEyes => 2,
        }
    }

    /// The level with that number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }
}

/// What a decision does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Executes by itself.
    Allow,
    /// Needs a vote by the principal.
    StepUp,
    /// Needs a vote by an approver.
    FourEyes,
    /// Does not execute.
    Deny,
}

impl Effect {
    /// All effects.
    pub const ALL: [Self; 4] = [Self::Allow, Self::StepUp, Self::FourEyes, Self::Deny];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::StepUp => "step_up",
            Self::FourEyes => "four_eyes",
            Self::Deny => "deny",
        }
    }

    /// The effect with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.code() == code)
    }

    /// What permission at that level amounts to.
    pub fn of_level(level: Level) -> Self {
        match level {
            Level::None => Self::Allow,
            Level::StepUp => Self::StepUp,
            Level::FourEyes => Self::FourEyes,
        }
    }
}
