//! The pipeline: one file for each stage. It knows no accounts payable, no SQL and no HTTP.

pub mod alarm;
mod approval;
pub mod authn;
mod by_hand;
mod claim;
pub mod contract;
mod execution;
pub mod freeze;
pub mod mandates;
pub mod oversight;
pub mod pack;
pub mod passwords;
pub mod people;
mod pipeline;
pub mod policy;
mod proposals;
mod receipt;
pub mod refusals;
pub mod sessions;
mod settling;
mod sign_ins;
mod standing;
mod turns;
pub mod window;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use countersign_erp_source::{Clock, Timestamp};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::domain::names::OperationId;
use crate::ids::{self, NoRandomness, Randomness};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::{Store, StoreError};

pub use approval::ApprovalError;
pub use by_hand::{ByHand, ByHandError};
pub use proposals::{Answer, CallError};
pub use standing::PENDING_MAX;

use pack::Pack;
use policy::Policies;

/// Settings of the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long a pending operation waits for a human.
    pub expires_after: Duration,
    /// How long an account must have been on file unchanged.
    pub cooling_off: Duration,
    /// How long a call to the ERP may take; also how long an order may be booked.
    pub call_deadline: Duration,
}

impl Rules {
    /// Cooling-off in whole days, as policies read it.
    pub fn cooling_off_days(&self) -> i64 {
        i64::try_from(self.cooling_off.as_secs() / 86_400).unwrap_or(i64::MAX)
    }
}

/// What the pipeline is made of.
#[derive(Debug)]
pub struct Parts {
    /// The packs of actions.
    pub packs: Vec<Arc<dyn Pack>>,
    /// The policies.
    pub policies: Policies,
    /// The store.
    pub store: Store,
    /// The keys.
    pub keys: Arc<Keys>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub randomness: Arc<dyn Randomness>,
    /// Settings.
    pub rules: Rules,
    /// Is told what was decided.
    pub metrics: Metrics,
}

/// The gateway; cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    packs: Vec<Arc<dyn Pack>>,
    policies: RwLock<Arc<Policies>>,
    store: Store,
    keys: Arc<Keys>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    rules: Rules,
    metrics: Metrics,
    /// Names this process among the daemons of one store.
    daemon: String,
    /// Work that no hung-up client and no shutdown may drop half way.
    tasks: TaskTracker,
    /// The operations that the settle worker works on, and how many it may.
    busy: Mutex<BTreeSet<OperationId>>,
    places: Arc<Semaphore>,
    /// Whose turn it is with the settle worker, and when it looked at whom.
    turns: Mutex<turns::Turns>,
    looked_at: Mutex<turns::LookedAt>,
    /// Wakes whoever waits for an operation to change.
    changed: Notify,
    /// Looks at passwords.
    hashing: passwords::Hashing,
    /// Counts attempts to sign in.
    sign_ins: sign_ins::SignIns,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("daemon", &self.0.daemon).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Puts the gateway together.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(parts: Parts) -> Result<Self, NoRandomness> {
        let Parts { packs, policies, store, keys, clock, randomness, rules, metrics } = parts;
        let daemon = format!("dm_{}", ids::ordered(randomness.as_ref(), clock.now())?.simple());
        metrics.policies_in_force(policies.ids());
        let policies = RwLock::new(Arc::new(policies));
        let (tasks, changed) = (TaskTracker::new(), Notify::new());
        Ok(Self(Arc::new(Inner {
            packs,
            policies,
            store,
            keys,
            clock,
            randomness,
            rules,
            metrics,
            daemon,
            tasks,
            busy: Mutex::default(),
            places: Arc::new(Semaphore::new(settling::AT_ONCE)),
            turns: Mutex::default(),
            looked_at: Mutex::default(),
            changed,
            hashing: passwords::Hashing::default(),
            sign_ins: sign_ins::SignIns::default(),
        })))
    }

    /// Begins work that goes on to its end, whoever stops waiting for it.
    pub fn spawn<T>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
    {
        // What it logs belongs to the call that began it.
        self.0.tasks.spawn(work.in_current_span())
    }

    /// Waits until all work that was begun has ended.
    pub async fn finish(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The settings.
    pub fn rules(&self) -> Rules {
        self.0.rules
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<Policies> {
        Arc::clone(&self.0.policies.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other policies in force, for every decision that begins from now on. `false` if they are
    /// those in force already.
    ///
    /// INVARIANT: the receipt is durable before the first decision by them. A run of the pipeline
    /// takes the set once, so that no decision is made of two; what was claimed under the old set
    /// is decided again under the new one before anything is sent.
    ///
    /// # Errors
    /// The store failed; those in force stay.
    pub async fn change_policies(&self, policies: Policies) -> Stored<bool> {
        let before = self.policies();
        if before.digest() == policies.digest() {
            return Ok(false);
        }
        let receipt = Receipt {
            kind: ReceiptKind::PolicyChanged,
            at: self.now(),
            company: None,
            operation: None,
            data: serde_json::json!({
                "before": before.digest(),
                "daemon": self.daemon(),
                "policy": policies.digest(),
                "rules": policies.ids().collect::<Vec<_>>(),
            }),
        };
        self.store()
            .write(move |unit| Box::pin(async move { unit.receipt(receipt).map(drop) }))
            .await?;
        self.0.metrics.policies_in_force(policies.ids());
        *self.0.policies.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
        Ok(true)
    }

    /// The name of this process among the daemons of the store.
    pub fn daemon(&self) -> &str {
        &self.0.daemon
    }

    /// The newest sequence number that the store has given to an order.
    ///
    /// # Errors
    /// The store failed.
    pub async fn newest_order(&self) -> Result<u64, StoreError> {
        let newest = self
            .store()
            .read(|conn| Box::pin(async move { crate::store::attempts::newest_seq(conn).await }))
            .await?;
        u64::try_from(newest)
            .map_err(|_negative| StoreError::inconsistent("store", "order_seq", "is negative"))
    }

    fn pack_of(&self, action: &str) -> Option<&Arc<dyn Pack>> {
        let knows = |pack: &&Arc<dyn Pack>| {
            pack.actions().contains(&action) || pack.own_actions().contains(&action)
        };
        self.0.packs.iter().find(knows)
    }

    /// A number that no other thing has; it orders by time.
    pub(crate) fn ordered_id(&self) -> Result<Uuid, NoRandomness> {
        ids::ordered(self.0.randomness.as_ref(), self.now())
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], NoRandomness> {
        ids::random(self.0.randomness.as_ref())
    }
}

/// What a store gives or fails to give.
pub(crate) type Stored<T> = Result<T, StoreError>;

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        // Writing into a text cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// Points at which a test ends the process, as a power cut would. Only in builds for development,
/// and only where the variable names the point.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "a switch of tests, not a setting")]
pub(crate) fn kill_point(name: &str) {
    if std::env::var("COUNTERSIGN_ABORT_AT").is_ok_and(|at| at == name) {
        std::process::abort();
    }
}

/// Points at which a test ends the process: none in builds for use.
#[cfg(not(debug_assertions))]
pub(crate) fn kill_point(_name: &str) {}
