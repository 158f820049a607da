//! The gateway in this process, on a sandbox whose answers a test bends: what an ERP, its connector
//! or somebody in it may do wrong between one call and the next.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use countersign::ap::{AccountsPayable, Ports, adoption};
use countersign::app::App;
use countersign::domain::operation::Operation;
use countersign::gateway::authn::Caller;
use countersign::gateway::contract::Proposal;
use countersign::gateway::policy::Policies;
use countersign::gateway::{Gateway, Parts};
use countersign::ids::SystemRandomness;
use countersign::settings::Settings;
use countersign::store::Role;
use countersign::worker::Workers;
use countersign_erp_source::{
    Attestation, Beside, BesideQuery, BillId, BillQuery, BillReading, Booked, ChangeLookUp,
    Changed, Clock, CompanyId, ErpCompanyId, ErpSource, Iban, LoggedChange, LookUp, LookUpAnswer,
    NoAnswer, OrderError, PayeeVerifier, ReadError, RecordedOrder, Review, Reviewed,
    SanctionsScreen, Screening, SealedBankChange, SealedOrder, SourceAccount, Timestamp, Vendor,
    VendorId, VopReport,
};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::daemon::{COMPANY, Installation};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is looked at.
const PACE: Duration = Duration::from_millis(10);

type Later = Pin<Box<dyn Future<Output = ()> + Send>>;

type Change<T> = Box<dyn FnMut(&mut T) + Send>;

/// What a test makes of an answer, each time it is given.
pub(crate) struct Bend<T>(Mutex<Option<Change<T>>>);

impl<T> Default for Bend<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Bend<T> {
    pub(crate) fn set(&self, bend: impl FnMut(&mut T) + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(bend));
    }

    /// Bends the answers after the first one: what was decided on has changed since.
    pub(crate) fn set_after_first(&self, mut bend: impl FnMut(&mut T) + Send + 'static) {
        let mut first = true;
        self.set(move |answer| if first { first = false } else { bend(answer) });
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn of(&self, mut answer: T) -> T {
        if let Some(bend) = self.0.lock().unwrap().as_mut() {
            bend(&mut answer);
        }
        answer
    }
}

/// The ports, bent.
#[derive(Default)]
pub(crate) struct Bends {
    pub(crate) bill: Bend<Result<Option<BillReading>, ReadError>>,
    pub(crate) beside: Bend<Result<Beside, ReadError>>,
    pub(crate) vendor: Bend<Result<Option<Vendor>, ReadError>>,
    pub(crate) sources: Bend<Result<Vec<SourceAccount>, ReadError>>,
    pub(crate) booked: Bend<Result<Booked, OrderError>>,
    pub(crate) looked_up: Bend<Result<LookUpAnswer, ReadError>>,
    pub(crate) proof: Bend<Result<Attestation, ReadError>>,
    pub(crate) orders: Bend<Result<Vec<RecordedOrder>, ReadError>>,
    pub(crate) vop: Bend<Result<VopReport, NoAnswer>>,
    pub(crate) screening: Bend<Result<Screening, NoAnswer>>,
    /// Answers the next order without handing it over.
    pub(crate) instead: Mutex<Option<OrderError>>,
    /// Happens while the next order is on its way.
    pub(crate) meanwhile: Mutex<Option<Later>>,
    /// Happens while the payee is being verified the next time.
    pub(crate) while_verifying: Mutex<Option<Later>>,
    /// How many orders were sent.
    pub(crate) sent: AtomicUsize,
    /// How far the gateway's own clock is ahead.
    ahead_ms: AtomicI64,
}

impl Bends {
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    /// Moves the gateway's own clock and nobody else's.
    pub(crate) fn move_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.ahead_ms.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets it back.
    pub(crate) fn set_back(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.ahead_ms.fetch_sub(by, Ordering::SeqCst);
    }
}

struct Bent {
    ports: Ports,
    bends: Arc<Bends>,
}

impl fmt::Debug for Bent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bent").finish_non_exhaustive()
    }
}

#[async_trait]
impl ErpSource for Bent {
    fn companies(&self) -> Vec<CompanyId> {
        self.ports.erp.companies()
    }

    fn company_of(&self, erp_company: &ErpCompanyId) -> Option<CompanyId> {
        self.ports.erp.company_of(erp_company)
    }

    fn erp_company(&self, company: &CompanyId) -> Option<ErpCompanyId> {
        self.ports.erp.erp_company(company)
    }

    async fn find_bill(
        &self,
        company: &CompanyId,
        bill: &BillId,
    ) -> Result<Option<BillReading>, ReadError> {
        self.bends.bill.of(self.ports.erp.find_bill(company, bill).await)
    }

    async fn list_bills(
        &self,
        company: &CompanyId,
        query: &BillQuery,
    ) -> Result<Vec<BillReading>, ReadError> {
        self.ports.erp.list_bills(company, query).await
    }

    async fn look_beside(
        &self,
        company: &CompanyId,
        query: &BesideQuery,
    ) -> Result<Beside, ReadError> {
        self.bends.beside.of(self.ports.erp.look_beside(company, query).await)
    }

    async fn find_vendor(
        &self,
        company: &CompanyId,
        vendor: &VendorId,
    ) -> Result<Option<Vendor>, ReadError> {
        self.bends.vendor.of(self.ports.erp.find_vendor(company, vendor).await)
    }

    async fn list_vendors(
        &self,
        company: &CompanyId,
        after: Option<&VendorId>,
        limit: u16,
    ) -> Result<Vec<Vendor>, ReadError> {
        self.ports.erp.list_vendors(company, after, limit).await
    }

    async fn source_accounts(&self, company: &CompanyId) -> Result<Vec<SourceAccount>, ReadError> {
        self.bends.sources.of(self.ports.erp.source_accounts(company).await)
    }

    async fn register_payment(&self, order: &SealedOrder) -> Result<Booked, OrderError> {
        self.bends.sent.fetch_add(1, Ordering::SeqCst);
        let meanwhile = self.bends.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        let instead = self.bends.instead.lock().unwrap().take();
        if let Some(answer) = instead {
            return Err(answer);
        }
        self.bends.booked.of(self.ports.erp.register_payment(order).await)
    }

    async fn look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, ReadError> {
        self.bends.looked_up.of(self.ports.erp.look_up(wanted).await)
    }

    async fn change_bank_details(&self, order: &SealedBankChange) -> Result<Changed, OrderError> {
        self.ports.erp.change_bank_details(order).await
    }

    async fn look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        self.ports.erp.look_up_change(wanted).await
    }

    async fn list_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        self.ports.erp.list_changes(company, after, limit).await
    }

    async fn review(&self, wanted: &Review) -> Result<Vec<Reviewed>, ReadError> {
        self.ports.erp.review(wanted).await
    }

    async fn list_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, ReadError> {
        self.bends.orders.of(self.ports.erp.list_orders(store, after, limit).await)
    }

    async fn attest(&self, store: &str) -> Result<Attestation, ReadError> {
        self.bends.proof.of(self.ports.erp.attest(store).await)
    }
}

#[async_trait]
impl PayeeVerifier for Bent {
    async fn verify(&self, name: &str, iban: &Iban) -> Result<VopReport, NoAnswer> {
        let meanwhile = self.bends.while_verifying.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        self.bends.vop.of(self.ports.vop.verify(name, iban).await)
    }
}

#[async_trait]
impl SanctionsScreen for Bent {
    fn list(&self) -> &str {
        self.ports.sanctions.list()
    }

    async fn screen(&self, iban: &Iban) -> Result<Screening, NoAnswer> {
        self.bends.screening.of(self.ports.sanctions.screen(iban).await)
    }
}

impl Clock for Bent {
    fn now(&self) -> Timestamp {
        let ahead = self.bends.ahead_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(self.ports.clock.now().as_millis() + ahead)
    }
}

/// An installation opened in this process, ready to pay.
pub(crate) struct Scene {
    pub(crate) installation: Installation,
    pub(crate) bends: Arc<Bends>,
    pub(crate) app: App,
    pub(crate) pack: AccountsPayable,
    pub(crate) gateway: Gateway,
    token: String,
    beside: Mutex<JoinSet<()>>,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::of(Installation::new()).await
    }

    /// With the first contact made.
    pub(crate) async fn of(installation: Installation) -> Self {
        let scene = Self::before_first_contact(installation).await;
        for company in scene.app.ap.ports().erp.companies() {
            adoption::adopt(scene.pack.ports(), &company, None, "test").await.unwrap();
        }
        scene
    }

    pub(crate) async fn before_first_contact(installation: Installation) -> Self {
        installation.add_principal();
        let token = installation.mandate(&["--budget", "1500.00"]);
        let settings = Settings::load(&installation.path("countersign.toml")).unwrap();
        let app = App::open(settings, Role::Command).await.unwrap();
        let bends = Arc::<Bends>::default();
        let (pack, gateway) = Self::gateway(&app, &bends);
        Self { installation, bends, app, pack, gateway, token, beside: Mutex::default() }
    }

    fn gateway(app: &App, bends: &Arc<Bends>) -> (AccountsPayable, Gateway) {
        let ports = app.ap.ports().clone();
        let bent = Arc::new(Bent { ports: ports.clone(), bends: Arc::clone(bends) });
        let ports = Ports {
            erp: Arc::<Bent>::clone(&bent),
            vop: Arc::<Bent>::clone(&bent),
            sanctions: Arc::<Bent>::clone(&bent),
            clock: Arc::<Bent>::clone(&bent),
            ..ports
        };
        let pack = AccountsPayable::new(ports, app.ap.rules());
        pack.set_not_ready(Vec::new());
        let settings = &app.base.settings;
        let gateway = Gateway::new(Parts {
            packs: vec![Arc::new(pack.clone())],
            policies: Policies::load(&settings.path(&settings.policy.dir)).unwrap(),
            store: app.base.store.clone(),
            keys: Arc::clone(&app.base.keys),
            clock: bent,
            randomness: Arc::new(SystemRandomness::default()),
            rules: app.gateway.rules(),
            metrics: app.base.metrics.clone(),
        });
        (pack, gateway.unwrap())
    }

    pub(crate) fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Another daemon on the same store and the same ERP.
    pub(crate) fn another(&self) -> Gateway {
        Self::gateway(&self.app, &self.bends).1
    }

    /// The tasks of this gateway, for a test to run.
    pub(crate) fn workers(&self) -> Workers {
        Workers {
            gateway: self.gateway.clone(),
            ap: self.pack.clone(),
            reading: self.pack.clone(),
            ..self.app.workers()
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn caller(&self) -> Caller {
        self.gateway.authenticate(&self.token).await.unwrap()
    }

    pub(crate) async fn propose(&self, key: &str, proposal: &Value) -> Operation {
        propose(&self.gateway, &self.token, key, proposal).await
    }

    /// Proposes beside the test, which does not wait for the answer.
    pub(crate) fn propose_beside(&self, key: &str, proposal: &Value) {
        let (gateway, token) = (self.gateway.clone(), self.token.clone());
        let (key, proposal) = (key.to_owned(), proposal.clone());
        let call = async move { drop(propose(&gateway, &token, &key, &proposal).await) };
        self.beside.lock().unwrap().spawn(call);
    }

    /// Something that proposes later, while something else is going on.
    pub(crate) fn proposing(&self, key: &str, proposal: &Value) -> Later {
        let (gateway, token) = (self.gateway.clone(), self.token.clone());
        let (key, proposal) = (key.to_owned(), proposal.clone());
        Box::pin(async move {
            propose(&gateway, &token, &key, &proposal).await;
        })
    }

    pub(crate) async fn operations(&self) -> Vec<Operation> {
        let caller = self.caller().await;
        self.gateway.own_operations(&caller, None, String::new(), 50).await.unwrap()
    }

    /// The only operation, once it was written down so often: a claim is the first time.
    pub(crate) async fn until_written(&self, times: i64) -> Operation {
        let started = Instant::now();
        let mut pace = tokio::time::interval(PACE);
        loop {
            let found = self.operations().await;
            if let [only] = found.as_slice()
                && only.version >= times
            {
                return only.clone();
            }
            assert!(started.elapsed() < PATIENCE, "{found:?}");
            pace.tick().await;
        }
    }

    /// What is left of the mandate's budget, in minor units.
    pub(crate) async fn reserved(&self) -> i64 {
        let caller = self.caller().await;
        self.gateway.reserved(&caller).await.unwrap().0
    }

    /// One round of the worker, as the only daemon of its store.
    pub(crate) async fn settle(&self) {
        round(&self.gateway, true).await;
    }

    /// How many payments the ERP holds of each bill.
    pub(crate) async fn paid(&self) -> BTreeMap<String, usize> {
        let payments = self.app.base.sandbox.as_ref().unwrap().payments().await.unwrap();
        payments.into_iter().fold(BTreeMap::new(), |mut all, payment| {
            *all.entry(payment.invoice_ref).or_default() += 1;
            all
        })
    }

    /// Moves everybody's clock.
    pub(crate) async fn advance(&self, by: &str) {
        let sandbox = self.app.base.sandbox.as_ref().unwrap();
        sandbox.advance_clock(by).await.unwrap();
    }

    pub(crate) async fn causes_of_freezes(&self) -> Vec<String> {
        let freezes = countersign::gateway::freeze::in_force(self.gateway.store()).await.unwrap();
        freezes.into_iter().filter_map(|freeze| freeze.cause).collect()
    }

    pub(crate) async fn close(self) {
        self.gateway.finish().await;
        self.app.close().await;
    }
}

async fn propose(gateway: &Gateway, token: &str, key: &str, proposal: &Value) -> Operation {
    let caller = gateway.authenticate(token).await.unwrap();
    let proposal = Proposal::from_body(proposal.to_string().as_bytes()).unwrap();
    Box::pin(gateway.propose(&caller, key, proposal)).await.unwrap().operation
}

pub(crate) fn company() -> CompanyId {
    CompanyId::new(COMPANY).unwrap()
}

/// One round of the settle worker, until all that it took up has ended.
pub(crate) async fn round(gateway: &Gateway, alone: bool) {
    gateway.settle_round(alone).await.unwrap();
    let started = Instant::now();
    let mut pace = tokio::time::interval(PACE);
    while gateway.is_settling() {
        assert!(started.elapsed() < PATIENCE, "a round does not end");
        pace.tick().await;
    }
}
