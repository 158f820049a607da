//! The composition root: settings become a running daemon. The only user of the connector crates.

pub mod check;
mod control;
mod daemon;
mod odoo;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use countersign_erp_source::{
    Clock, CompanyId, ErpSource, Measured, Observer, PayeeVerifier, SanctionsScreen,
};
use countersign_odoo::{Credential, Odoo};
use countersign_sandbox::Sandbox;
use countersign_vop::{FileSanctions, FileVop, NoSanctions, NoVop};
use secrecy::SecretString;

use crate::ap::{self, AccountsPayable, Ports};
use crate::clock::SystemClock;
use crate::gateway::policy::Policies;
use crate::gateway::refusals::Refusals;
use crate::gateway::{Gateway, Parts, Rules};
use crate::ids::{Randomness, SystemRandomness};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::settings::{ErpKind, Login, OdooSettings, ProviderKind, Settings};
use crate::store::{Role, Store, StoreError, StoreOptions};
use crate::worker::{Sync, Workers};

pub use control::Control;
pub use daemon::Daemon;
pub use odoo::{Passwords, install};

/// Settings, time, keys and store: what every command needs.
#[derive(Debug)]
pub struct Base {
    /// The settings.
    pub settings: Settings,
    /// The keys.
    pub keys: Arc<Keys>,
    /// The time: the sandbox's own where the sandbox is the ERP.
    pub clock: Arc<dyn Clock>,
    /// The sandbox, where it is the ERP.
    pub sandbox: Option<Sandbox>,
    /// The store.
    pub store: Store,
    /// What is counted.
    pub metrics: Metrics,
    /// Random bits.
    pub randomness: Arc<dyn Randomness>,
}

/// The whole gateway on its connectors.
#[derive(Debug)]
pub struct App {
    /// What every command needs.
    pub base: Base,
    /// The gateway.
    pub gateway: Gateway,
    /// The accounts-payable pack.
    pub ap: AccountsPayable,
    /// The same for plain reads, which meet none of the sandbox's faults.
    pub reading: AccountsPayable,
}

impl Base {
    /// Opens keys, clock and store, and makes what is not there yet.
    ///
    /// # Errors
    /// Names the key and the file that are wrong.
    pub async fn open(settings: Settings, role: Role) -> anyhow::Result<Self> {
        let keys = Keys::open(&settings.path(&settings.keys.dir)).context("`keys.dir`")?;
        let keys = Arc::new(keys);
        let sandbox = open_sandbox(&settings, &keys).await?;
        let clock: Arc<dyn Clock> = match &sandbox {
            Some(sandbox) => Arc::new(sandbox.clone()),
            None => Arc::new(SystemClock),
        };
        let metrics = Metrics::default();
        let options = store_options(&settings, &keys, &clock, &metrics, role);
        let store = Store::open(options).await.map_err(naming_key)?;
        let randomness = Arc::new(SystemRandomness::default());
        Ok(Self { settings, keys, clock, sandbox, store, metrics, randomness })
    }

    /// Lets go of the store, after what is queued is written.
    pub async fn close(&self) {
        self.store.close().await;
        if let Some(sandbox) = &self.sandbox {
            sandbox.close().await;
        }
    }

    /// The companies of the configuration, without asking the ERP.
    pub fn companies(&self) -> Vec<String> {
        match (&self.sandbox, self.settings.odoo()) {
            (Some(sandbox), _) => sandbox.companies().iter().map(ToString::to_string).collect(),
            (None, Some(odoo)) => odoo.companies.keys().cloned().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn policies(&self) -> anyhow::Result<Policies> {
        let folder = self.settings.path(&self.settings.policy.dir);
        Policies::load(&folder).context("`policy.dir`")
    }
}

/// Names the key of the configuration that a store which does not open is about.
fn naming_key(error: StoreError) -> anyhow::Error {
    let of_checkpoint = matches!(&error, StoreError::Open(why) if why.is_of_checkpoint());
    let key = if of_checkpoint { "`receipts.checkpoint_file`" } else { "`store.url`" };
    anyhow::Error::new(error).context(key)
}

fn store_options(
    settings: &Settings,
    keys: &Keys,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
    role: Role,
) -> StoreOptions {
    let checkpoint_file = settings.receipts.checkpoint_file.as_ref();
    StoreOptions {
        url: settings.store_url(),
        allow_plaintext: settings.store.allow_plaintext,
        key: Arc::clone(keys.ledger()),
        checkpoint_file: checkpoint_file.map(|path| settings.path(path)),
        clock: Arc::clone(clock),
        metrics: metrics.clone(),
        role,
    }
}

async fn open_sandbox(settings: &Settings, keys: &Keys) -> anyhow::Result<Option<Sandbox>> {
    let Some(sandbox) = settings.sandbox() else { return Ok(None) };
    let options = countersign_sandbox::Options {
        file: settings.path(&sandbox.file),
        world: sandbox.world.as_ref().map(|path| settings.path(path)),
        call_deadline: settings.erp.call_deadline(),
        base_clock: Arc::new(SystemClock),
        seal_key: Some(keys.seal().clone()),
    };
    Sandbox::open(options).await.map(Some).context("`erp.sandbox`")
}

/// The ERP, once as operations meet it and once for plain reads.
struct ErpPair {
    erp: Arc<dyn ErpSource>,
    reading: Arc<dyn ErpSource>,
}

fn erp(base: &Base) -> anyhow::Result<ErpPair> {
    if let Some(sandbox) = &base.sandbox {
        return Ok(ErpPair {
            erp: Arc::new(sandbox.clone()),
            reading: Arc::new(sandbox.without_faults()),
        });
    }
    let odoo = base.settings.odoo().ok_or_else(|| anyhow!("`erp.kind` names no ERP"))?;
    let connector: Arc<dyn ErpSource> =
        Arc::new(Odoo::new(odoo_options(&base.settings, &base.clock, odoo)?)?);
    Ok(ErpPair { erp: Arc::clone(&connector), reading: connector })
}

fn odoo_options(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    odoo: &OdooSettings,
) -> anyhow::Result<countersign_odoo::Options> {
    let credential = |key: &'static str, login: &Login| -> anyhow::Result<Credential> {
        let password = settings.password(key, login).with_context(|| {
            format!("`{key}`: `countersign odoo install` writes it where it is absent")
        })?;
        Ok(Credential { login: login.login.clone(), password: SecretString::from(password) })
    };
    Ok(countersign_odoo::Options {
        url: odoo.url.clone(),
        database: odoo.database.clone(),
        allow_plaintext: odoo.allow_plaintext,
        reader: credential("erp.odoo.reader", &odoo.reader)?,
        payer: credential("erp.odoo.payer", &odoo.payer)?,
        bank_admin: credential("erp.odoo.bank_admin", &odoo.bank_admin)?,
        companies: odoo_companies(odoo)?,
        time_zone: odoo.time_zone,
        call_deadline: settings.erp.call_deadline(),
        clock: Arc::clone(clock),
    })
}

fn odoo_companies(odoo: &OdooSettings) -> anyhow::Result<BTreeMap<CompanyId, i32>> {
    odoo.companies
        .iter()
        .map(|(name, id)| Ok((CompanyId::new(name.as_str()).context("`erp.odoo.companies`")?, *id)))
        .collect()
}

fn provider_path(settings: &Settings, path: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    path.map(|path| settings.path(path))
        .ok_or_else(|| anyhow!("a provider of kind `file` has no `path`"))
}

fn needs_sandbox(sandbox: Option<&Sandbox>) -> anyhow::Result<Sandbox> {
    sandbox.cloned().ok_or_else(|| anyhow!("a provider of kind `sandbox` needs the sandbox ERP"))
}

fn vop(
    settings: &Settings,
    sandbox: Option<&Sandbox>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn PayeeVerifier>> {
    Ok(match settings.vop.kind {
        ProviderKind::Sandbox => Arc::new(needs_sandbox(sandbox)?),
        ProviderKind::File => {
            let path = provider_path(settings, settings.vop.path.as_ref())?;
            Arc::new(FileVop::open(&path, Arc::clone(clock)).context("`vop.path`")?)
        }
        ProviderKind::None => Arc::new(NoVop::new(Arc::clone(clock))),
    })
}

fn sanctions(
    settings: &Settings,
    sandbox: Option<&Sandbox>,
) -> anyhow::Result<Arc<dyn SanctionsScreen>> {
    Ok(match settings.sanctions.kind {
        ProviderKind::Sandbox => Arc::new(needs_sandbox(sandbox)?),
        ProviderKind::File => {
            let path = provider_path(settings, settings.sanctions.path.as_ref())?;
            Arc::new(FileSanctions::open(&path).context("`sanctions.path`")?)
        }
        ProviderKind::None => Arc::new(NoSanctions),
    })
}

impl App {
    /// Puts everything together.
    ///
    /// # Errors
    /// Names the key and the file that are wrong.
    pub async fn open(settings: Settings, role: Role) -> anyhow::Result<Self> {
        let base = Base::open(settings, role).await?;
        match Self::on(&base) {
            Ok((gateway, ap, reading)) => Ok(Self { base, gateway, ap, reading }),
            Err(fault) => {
                base.close().await;
                Err(fault)
            }
        }
    }

    fn on(base: &Base) -> anyhow::Result<(Gateway, AccountsPayable, AccountsPayable)> {
        let ErpPair { erp, reading } = erp(base)?;
        let settings = &base.settings;
        let observer: Arc<dyn Observer> = Arc::new(base.metrics.clone());
        let sandbox = base.sandbox.as_ref();
        let vop = vop(settings, sandbox, &base.clock)?;
        let sanctions = sanctions(settings, sandbox)?;
        let ports = Ports {
            erp: Arc::new(Measured::new(erp, Arc::clone(&observer))),
            vop: Arc::new(Measured::new(vop, Arc::clone(&observer))),
            sanctions: Arc::new(Measured::new(sanctions, Arc::clone(&observer))),
            store: base.store.clone(),
            clock: Arc::clone(&base.clock),
            keys: Arc::clone(&base.keys),
            randomness: Arc::clone(&base.randomness),
        };
        let rules = ap::Rules {
            cooling_off: settings.approvals.cooling_off,
            time_zone: settings.time_zone(),
            wrong_accounts_per_day: settings.limits.wrong_accounts_per_day,
        };
        let reading: Arc<dyn ErpSource> = Arc::new(Measured::new(reading, observer));
        let reading = AccountsPayable::new(Ports { erp: reading, ..ports.clone() }, rules);
        let pack = AccountsPayable::new(ports, rules);
        let gateway = Gateway::new(Parts {
            packs: vec![Arc::new(pack.clone())],
            policies: base.policies()?,
            store: base.store.clone(),
            keys: Arc::clone(&base.keys),
            clock: Arc::clone(&base.clock),
            randomness: Arc::clone(&base.randomness),
            rules: Rules {
                expires_after: settings.approvals.expires_after,
                cooling_off: settings.approvals.cooling_off,
                call_deadline: settings.erp.call_deadline(),
            },
            metrics: base.metrics.clone(),
        })?;
        Ok((gateway, pack, reading))
    }

    /// The tasks of a daemon.
    pub fn workers(&self) -> Workers {
        Workers {
            gateway: self.gateway.clone(),
            ap: self.ap.clone(),
            reading: self.reading.clone(),
            alone: self.base.settings.store.url.starts_with("sqlite://"),
            sync: self.sync(),
            health: Arc::default(),
            refusals: Refusals::new(self.base.metrics.clone()),
        }
    }

    /// Brings a moved sandbox clock up to date.
    pub fn sync(&self) -> Sync {
        let sandbox = self.base.sandbox.clone();
        Arc::new(move || {
            let sandbox = sandbox.clone();
            Box::pin(async move {
                if let Some(sandbox) = sandbox
                    && let Err(fault) = sandbox.sync_clock().await
                {
                    tracing::warn!("the sandbox's clock could not be read: {fault}");
                }
            })
        })
    }

    /// The sandbox's control surface, where there is one.
    pub fn control(&self) -> Option<Control> {
        self.base.sandbox.clone().map(Control::new)
    }

    /// Finishes what was begun and lets go of the store.
    pub async fn close(&self) {
        self.gateway.finish().await;
        self.base.close().await;
    }
}

/// Whether anything is said about the settings that people should see at start and in `check`.
pub fn remarks(settings: &Settings) -> Vec<String> {
    let mut remarks = Vec::new();
    if settings.store.allow_plaintext {
        remarks.push(
            "`store.allow_plaintext` is set: PostgreSQL may be reached without TLS".to_owned(),
        );
    }
    if settings.odoo().is_some_and(|odoo| odoo.allow_plaintext) {
        remarks
            .push("`erp.odoo.allow_plaintext` is set: Odoo may be reached without TLS".to_owned());
    }
    for (name, provider) in [("vop", &settings.vop), ("sanctions", &settings.sanctions)] {
        match provider.kind {
            ProviderKind::Sandbox | ProviderKind::File => {
                remarks.push(format!("`{name}.kind` is a test provider"));
            }
            ProviderKind::None => {
                remarks.push(format!("`{name}.kind` is `none`: nothing is checked"));
            }
        }
    }
    if settings.erp.kind == ErpKind::Sandbox {
        remarks.push("the ERP is the sandbox: nothing real is paid".to_owned());
    }
    remarks
}

/// Refuses what a command cannot do with this ERP.
///
/// # Errors
/// The ERP is another one.
pub fn needs_odoo(settings: &Settings) -> anyhow::Result<&OdooSettings> {
    match settings.odoo() {
        Some(odoo) => Ok(odoo),
        None => bail!("`erp.kind` is not `odoo`"),
    }
}
