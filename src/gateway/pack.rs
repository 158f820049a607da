//! The seam between the pipeline and a pack of actions. The pipeline decides and claims; a pack
//! brings contracts, trusted sources, facts, a floor and the hands that act on the ERP.
//!
//! The pipeline knows no accounts payable: for it a bill is a *thing* that at most one operation
//! may hold, a vendor is a *counterparty* that may be frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::NaiveDate;
use countersign_erp_source::{Amount, CompanyId, Marker, ReferenceKey, Timestamp};

use super::contract::Terms;
use crate::domain::decision::Stage;
use crate::domain::facts::Facts;
use crate::domain::mandate::Authority;
use crate::domain::names::{CallbackId, Name, OperationId};
use crate::domain::operation::{Operation, OperationResult, Params, Sum};
use crate::domain::reason::Reason;
use crate::store::{StoreError, Unit};

/// What a pack does in a unit of work of its own: tell the humans of a company, and end what waits for
/// something that is not so any more.
pub use super::alarm::raise as raise_alarm;
pub use super::freeze::{Automatic, automatic as freeze_by_itself};
pub use super::proposals::refuse_waiting;

/// A refusal at a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Where.
    pub stage: Stage,
    /// Stable codes, or ids of policies.
    pub reasons: Vec<String>,
    /// A sentence for whoever has to act on it. Shown to the caller: it repeats no record that the
    /// caller may not see.
    pub detail: String,
    /// What the receipt says besides: for auditors only.
    pub evidence: BTreeMap<String, String>,
}

impl Denial {
    /// A refusal for one reason, with that reason's own text.
    pub fn new(stage: Stage, reason: Reason) -> Self {
        Self::saying(stage, reason, reason.text())
    }

    /// A refusal for one reason, with a text of its own.
    pub fn saying(stage: Stage, reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            stage,
            reasons: vec![reason.code().to_owned()],
            detail: detail.into(),
            evidence: BTreeMap::new(),
        }
    }

    /// Something went wrong inside the gateway. `evidence` is for the receipt and the log.
    pub fn error(reason: Reason, evidence: impl fmt::Display) -> Self {
        Self::new(Stage::Error, reason).with("error", evidence.to_string())
    }

    /// Adds what only auditors see.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// Whether that is among its reasons.
    pub fn says(&self, reason: Reason) -> bool {
        self.reasons.iter().any(|code| code == reason.code())
    }

    /// Whether it is an error, which ends and voids nothing that was decided before.
    pub fn is_error(&self) -> bool {
        self.stage == Stage::Error
    }
}

/// What a proposal became when every value was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The parameters, whole and masked, each with its origin.
    pub params: Params,
    /// The ERP's own record ids and figures that an approval is bound to.
    pub records: BTreeMap<&'static str, String>,
    /// What at most one live operation of the company may hold: `bill/INV-2291`.
    pub thing: String,
    /// The vendor, for freezes.
    pub counterparty: String,
    /// What is claimed, where it moves money.
    pub sum: Option<Sum>,
    /// What is kept of it at each claim, where later ones compare with it.
    pub precedent: Option<Precedent>,
    /// Humans whose vote does not count for it, beside its principal: those who called the vendor.
    pub not_by: BTreeSet<Name>,
    /// The call-back that it rests on, which the claim spends.
    pub callback: Option<CallbackId>,
}

/// What a claim was made for, as it was then. Later decisions compare with it, whatever somebody
/// makes of the records meanwhile; the total is [`Resolved::sum`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precedent {
    /// Who exactly is paid: another text where anything about the payee is another.
    pub payee: String,
    /// By what the counterparty refers to the thing, where it does.
    pub reference: Option<ReferenceKey>,
    /// The thing's date, where it has one.
    pub dated: Option<NaiveDate>,
}

/// What went out without a human, or may have, in hundredths of the company's currency: over all
/// agents and mandates, without the operation that is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// To the counterparty in the last 24 hours.
    pub counterparty_day: i64,
    /// Of the whole company in the last 24 hours.
    pub company_day: i64,
    /// To the counterparty in the last 30 days.
    pub counterparty_month: i64,
    /// Of the whole company in the last 30 days.
    pub company_month: i64,
}

impl Volume {
    /// Nothing.
    pub const NONE: Self =
        Self { counterparty_day: 0, company_day: 0, counterparty_month: 0, company_month: 0 };
}

/// What the claim gives to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Names this attempt.
    pub marker: Marker,
    /// The store's id.
    pub store: String,
    /// The store's sequence number.
    pub seq: u64,
    /// The pinned total, where it moves money.
    pub total: Option<Amount>,
    /// Not to be booked after this, by the ERP's clock.
    pub not_after: Timestamp,
}

/// One proposal, resolved against the records of one moment.
#[async_trait]
pub trait Case: Send + Sync + fmt::Debug {
    /// What it resolved to.
    fn resolved(&self) -> &Resolved;

    /// Finds out the facts. An absent fact is an error, never `false`.
    ///
    /// # Errors
    /// A denial at stage `policy` where a rule says so, at stage `error` where a fact cannot be had.
    async fn facts(&self) -> Result<Facts, Denial>;

    /// Adds the facts about volume. They are read again under the claim's lock, where nothing else
    /// can be found out.
    fn add_volume(&self, facts: &mut Facts, volume: &Volume);

    /// What the floor refuses, whatever the policy text says (I11).
    fn floor(&self, facts: &Facts) -> Vec<Reason>;

    /// The exact text of the order for that claim.
    fn order(&self, claim: &Claim) -> String;

    /// What the humans of the company are told where this is refused at stage `policy`.
    fn notice(&self, facts: &Facts) -> Option<Notice> {
        let _ = facts;
        None
    }
}

/// What the humans of a company are told, once for each subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The stable code.
    pub kind: &'static str,
    /// What it is about: told once for each.
    pub subject: String,
    /// What happened and what to do.
    pub detail: String,
}

/// What a booking read back as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// For the operation.
    pub result: OperationResult,
    /// What was booked, for the sums of the thing; `None` where no money moves.
    pub amount: Option<Amount>,
    /// In which ways it is not what was ordered; empty if it is.
    pub differences: Vec<String>,
    /// For the receipt: what the ERP said.
    pub evidence: BTreeMap<String, String>,
}

/// What became of an order that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// Booked.
    Booked(Booking),
    /// Surely not booked, and the ERP says why.
    Refused {
        /// The ERP side's code.
        code: &'static str,
        /// Refused only because of its age: a new order may be made.
        too_late: bool,
    },
    /// Surely never left this host.
    NotSent {
        /// For log and receipt.
        reason: String,
    },
    /// May be booked.
    Unknown {
        /// For log and receipt.
        reason: String,
    },
    /// ERP and store do not belong together any more.
    Contradicted {
        /// The ERP side's code.
        code: &'static str,
    },
}

/// What a look-up found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is booked.
    Booked(Booking),
    /// It is not booked, and cannot be any more.
    ProvedAbsent {
        /// The ERP's clock, under the lock.
        erp_time: Timestamp,
    },
    /// Not found, which proves nothing yet.
    NotYet,
}

/// A pack of actions.
#[async_trait]
pub trait Pack: Send + Sync + fmt::Debug {
    /// The actions that agents may propose, each also the name of its scope.
    fn actions(&self) -> &'static [&'static str];

    /// The actions that humans begin for themselves; no mandate holds them.
    fn own_actions(&self) -> &'static [&'static str];

    /// The names of the arguments of that action, all required.
    fn arguments(&self, action: &str) -> &'static [&'static str];

    /// Checks the forms of the arguments (stage `contract`) and looks every value up (stage
    /// `provenance`).
    ///
    /// # Errors
    /// A denial at `contract`, `provenance` or `error`.
    async fn resolve(
        &self,
        action: &str,
        terms: &Terms,
        asking: &Asking<'_>,
    ) -> Result<Arc<dyn Case>, Denial>;

    /// What forbids paying through the ERP now; empty if it is ready.
    fn not_ready(&self) -> Vec<String>;

    /// Hands the order over.
    async fn send(&self, action: &str, company: &CompanyId, order: &str) -> Sent;

    /// Writes down what the pack itself keeps of an order that was carried out as it was decided, in
    /// the unit of work that settles it.
    ///
    /// # Errors
    /// The store failed, or does not hold what it must; the settle worker comes by again.
    async fn keep(&self, unit: &mut Unit<'_>, done: &Done<'_>) -> Result<(), StoreError>;

    /// Looks for the order in the ERP.
    ///
    /// # Errors
    /// What went wrong, for log and receipt; nothing follows from it.
    async fn look_up(
        &self,
        action: &str,
        company: &CompanyId,
        order: &str,
    ) -> Result<Found, String>;
}

/// Who asks for what.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// By whose right.
    pub authority: &'a Authority,
    /// The operation.
    pub operation: &'a OperationId,
}

/// An order that was carried out.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    /// The operation.
    pub operation: &'a Operation,
    /// The order's exact text.
    pub order: &'a str,
    /// What it read back as.
    pub booking: &'a Booking,
    /// When it is written down.
    pub now: Timestamp,
}
