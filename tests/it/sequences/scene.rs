//! Where sequences are played: one store and one gateway in this process for many of them, each with a
//! company, people and a mandate of its own. Time only goes forward, and only where a step says so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign::ap::{self, AccountsPayable, Ports, adoption};
use countersign::domain::mandate::Mandate;
use countersign::domain::names::{MandateId, Name};
use countersign::domain::role::Role;
use countersign::gateway::authn::Caller;
use countersign::gateway::policy::Policies;
use countersign::gateway::{Gateway, Parts, Rules};
use countersign::ids::{self, Randomness, SystemRandomness};
use countersign::keys::Keys;
use countersign::metrics::Metrics;
use countersign::store::{Role as StoreRole, Store, StoreOptions, people};
use countersign_erp_source::{Clock, CompanyId, Iban, JournalId, Timestamp};
use tempfile::TempDir;

use super::erp::Erp;
use super::numbers::OWN;
use super::port::{Port, euros};
use super::world::Genesis;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The people of every company. The first grants the mandate, and holds every role that could tempt
/// her; the last one may call, and approves nothing.
pub(super) const PEOPLE: [(&str, &[Role]); 4] = [
    ("marie", &[Role::Accountant, Role::Approver]),
    ("paul", &[Role::Approver]),
    ("petra", &[Role::Approver, Role::Accountant]),
    ("anna", &[Role::Accountant]),
];

/// A store and a gateway.
#[derive(Debug)]
pub(super) struct Scene {
    _folder: TempDir,
    pub(super) port: Arc<Port>,
    pub(super) store: Store,
    pub(super) pack: AccountsPayable,
    pub(super) gateway: Gateway,
    randomness: Arc<dyn Randomness>,
    played: u64,
}

/// A company on it.
#[derive(Debug)]
pub(super) struct Company {
    pub(super) id: CompanyId,
    pub(super) caller: Caller,
}

pub(super) fn name(at: usize) -> Name {
    Name::parse(PEOPLE[at % PEOPLE.len()].0).unwrap()
}

/// A folder in memory, where the machine has one: a store flushes each unit of work to its disk.
fn folder() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let in_memory = memory.is_dir().then(|| tempfile::tempdir_in(&memory).ok()).flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

impl Scene {
    pub(super) async fn new() -> Self {
        let folder = folder();
        let keys = Arc::new(Keys::open(&folder.path().join("keys")).unwrap());
        let port = Arc::new(Port::new());
        port.lock().now = Timestamp::parse("2026-11-30T09:00:00Z").unwrap();
        let metrics = Metrics::default();
        let randomness: Arc<dyn Randomness> = Arc::new(SystemRandomness::default());
        let clock: Arc<dyn Clock> = Arc::<Port>::clone(&port);
        let store = Store::open(StoreOptions {
            url: format!("sqlite://{}", folder.path().join("store.db").display()),
            allow_plaintext: false,
            key: Arc::clone(keys.ledger()),
            checkpoint_file: None,
            clock: Arc::clone(&clock),
            metrics: metrics.clone(),
            role: StoreRole::Command,
        });
        let store = store.await.unwrap();
        let ports = Ports {
            erp: Arc::<Port>::clone(&port),
            vop: Arc::<Port>::clone(&port),
            sanctions: Arc::<Port>::clone(&port),
            store: store.clone(),
            clock: Arc::clone(&clock),
            keys: Arc::clone(&keys),
            randomness: Arc::clone(&randomness),
        };
        let cooling_off = DAY * 7;
        // Who guesses at numbers is stopped elsewhere.
        let (time_zone, wrong_accounts_per_day) = (chrono_tz::Tz::UTC, 1_000_000);
        let rules = ap::Rules { cooling_off, time_zone, wrong_accounts_per_day };
        let pack = AccountsPayable::new(ports, rules);
        pack.set_not_ready(Vec::new());
        let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        let gateway = Gateway::new(Parts {
            packs: vec![Arc::new(pack.clone())],
            policies: Policies::load(&policies).unwrap(),
            store: store.clone(),
            keys,
            clock,
            randomness: Arc::clone(&randomness),
            rules: Rules {
                expires_after: DAY * 3,
                cooling_off,
                call_deadline: Duration::from_mins(2),
            },
            metrics,
        })
        .unwrap();
        let now = port.now();
        let added = store.write(move |unit| {
            Box::pin(async move {
                for at in 0..PEOPLE.len() {
                    people::insert(unit.conn(), &name(at), "nobody signs in", now).await?;
                }
                Ok(())
            })
        });
        added.await.unwrap();
        Self { _folder: folder, port, store, pack, gateway, randomness, played: 0 }
    }

    /// A new company, whose vendors the gateway has met just now.
    pub(super) async fn begin(&mut self, genesis: &Genesis) -> Company {
        self.played += 1;
        // The sums of the company before, and its orders, are another's; its time is not.
        let now = self.port.now().plus(HOUR);
        let id = CompanyId::new(format!("company-{}", self.played)).unwrap();
        *self.port.lock() = genesis.make(id.as_str(), now);
        let mandate = self.mandate(&id, now);
        let (company, kept) = (id.clone(), mandate.clone());
        let added = self.store.write(move |unit| {
            Box::pin(async move {
                for (at, (_, roles)) in PEOPLE.iter().enumerate() {
                    for role in *roles {
                        people::add_role(unit.conn(), &name(at), &company, *role).await?;
                    }
                }
                people::insert_mandate(unit.conn(), &kept, &company.to_string()).await
            })
        });
        added.await.unwrap();
        adoption::adopt(self.pack.ports(), &id, None, "test").await.unwrap();
        Company { id, caller: Caller { mandate } }
    }

    fn mandate(&self, company: &CompanyId, now: Timestamp) -> Mandate {
        let keys = self.gateway.keys();
        Mandate {
            id: MandateId::from_uuid(ids::ordered(self.randomness.as_ref(), now).unwrap()),
            company: company.clone(),
            principal: name(0),
            agent: Name::parse("ap-agent").unwrap(),
            scopes: BTreeSet::from([
                ap::INVOICE_PAY.to_owned(),
                ap::UPDATE_BANK_DETAILS.to_owned(),
            ]),
            journal: JournalId::new("BNK1").unwrap(),
            source_fingerprint: keys.fingerprint(&Iban::parse(OWN).unwrap()),
            currency: euros(),
            budget: None,
            calls_max: None,
            issued_at: now,
            expires_at: now.plus(DAY * 90),
            revoked_at: None,
        }
    }

    /// Ends, and leaves nothing behind.
    pub(super) async fn close(self) {
        self.gateway.finish().await;
        self.store.close().await;
        *self.port.lock() = Erp::empty();
    }
}
