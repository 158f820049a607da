//! Tasks that take no input and are safe to repeat: settle, expire, prove the ERP's side, adopt,
//! watch, count refusals. Each runs at its own pace until the daemon stops.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use countersign_erp_source::{Attestation, CompanyId, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ap::{AccountsPayable, adoption, watching};
use crate::gateway::Gateway;
use crate::gateway::freeze::Automatic;
use crate::gateway::pack::Pack as _;
use crate::gateway::refusals::Refusals;
use crate::store::freezes::FreezeScope;
use crate::store::{StoreError, figures};

/// How often unknown and waiting operations are looked at.
const SETTLE_EVERY: Duration = Duration::from_millis(250);
/// How often the ERP's side is proved while all is right.
const PROVE_EVERY: Duration = Duration::from_hours(1);
/// How often while something is wrong.
const PROVE_AGAIN: Duration = Duration::from_secs(5);
/// How often the ERP's log of changes is read.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// How often what is counted in the store is read.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// How often a task repeats that the store fails it.
const SAY_AGAIN: Duration = Duration::from_mins(1);
/// The most that the ERP's clock may differ from ours (DESIGN 3).
pub const OFFSET_MAX: Duration = Duration::from_secs(30);
/// How often the clock is held against the time that passed.
const CLOCK_EVERY: Duration = Duration::from_millis(250);
/// How far it may have moved by itself before the ERP's side is proved again.
const JUMP_MAX: Duration = Duration::from_secs(5);

/// Something that must be brought up to date before each round: the sandbox's clock.
pub type Sync =
    Arc<dyn Fn() -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + std::marker::Sync>;

/// What the tasks work on.
#[derive(Clone)]
pub struct Workers {
    pub gateway: Gateway,
    pub ap: AccountsPayable,
    /// The instance that answers reads, which must know the same about the ERP.
    pub reading: AccountsPayable,
    /// The only daemon of its store.
    pub alone: bool,
    pub sync: Sync,
    /// What keeps the daemon from being ready, as of the newest rounds.
    pub health: Arc<Health>,
    pub refusals: Refusals,
}

/// What the newest rounds of the tasks found wrong.
#[derive(Debug)]
pub struct Health {
    store: AtomicBool,
    adoption: RwLock<Vec<String>>,
}

impl Default for Health {
    fn default() -> Self {
        let adoption = RwLock::new(vec!["the vendors are not adopted yet".to_owned()]);
        Self { store: AtomicBool::new(false), adoption }
    }
}

impl Health {
    fn set_store_fails(&self, fails: bool) {
        self.store.store(fails, Ordering::Relaxed);
    }

    fn set_adoption(&self, problems: Vec<String>) {
        *self.adoption.write().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.adoption.read().unwrap_or_else(PoisonError::into_inner).clone();
        if self.store.load(Ordering::Relaxed) {
            problems.push("the store does not answer".to_owned());
        }
        problems
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}

impl Workers {
    /// Starts all tasks.
    pub fn start(&self, tasks: &TaskTracker, stop: &CancellationToken) {
        let settling = self.clone();
        let token = stop.clone();
        tasks.spawn(async move { settling.settle(&token).await });
        let expiring = self.clone();
        let token = stop.clone();
        tasks.spawn(async move { expiring.expire(&token).await });
        let proving = self.clone();
        let token = stop.clone();
        tasks.spawn(async move { proving.prove_and_adopt(&token).await });
        if is_watched() {
            let watching = self.clone();
            let token = stop.clone();
            tasks.spawn(async move { watching.watch(&token).await });
        }
        let counting = self.clone();
        let token = stop.clone();
        tasks.spawn(async move { counting.count(&token).await });
    }

    async fn settle(&self, stop: &CancellationToken) {
        let mut complaint = Complaint::about("a round of settling failed");
        while pause(SETTLE_EVERY, stop).await {
            (self.sync)().await;
            let round = self.gateway.settle_round(self.alone).await;
            self.health.set_store_fails(round.is_err());
            complaint.hear(round);
        }
    }

    async fn expire(&self, stop: &CancellationToken) {
        let mut complaint = Complaint::about("a round of expiring failed");
        while pause(SETTLE_EVERY, stop).await {
            (self.sync)().await;
            complaint.hear(self.gateway.expire_round().await);
            self.refusals.flush(&self.gateway).await;
        }
    }

    /// Follows what others do in the ERP.
    async fn watch(&self, stop: &CancellationToken) {
        let mut said: Option<Instant> = None;
        while pause(WATCH_EVERY, stop).await {
            (self.sync)().await;
            for company in self.reading.ports().erp.companies() {
                // A company without a baseline has nothing to compare with.
                if !adoption::is_adopted(self.reading.ports(), &company).await.unwrap_or(false) {
                    continue;
                }
                let Err(fault) = self.watch_one(&company).await else { continue };
                if said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
                    tracing::error!(company = %company, "the ERP is not watched for {company}: {fault:#}");
                    said = Some(Instant::now());
                }
            }
        }
    }

    /// One round for one company. What it finds about our own payments freezes their vendors.
    pub async fn watch_one(&self, company: &CompanyId) -> anyhow::Result<()> {
        let mut round = watching::round(&self.reading, company).await?;
        let unread = round.unread.take();
        for found in &round.findings {
            let vendor = found.vendor.clone();
            let scope = FreezeScope::Vendor { company: company.to_string(), vendor };
            let alarm = Automatic { scope, cause: found.cause, detail: found.detail.clone() };
            self.gateway.freeze_once(alarm, &found.operation, &found.subject).await?;
        }
        watching::finish(&self.reading, company, round).await?;
        unread.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Counts what stands in the store, and finds out whether that is still the store that it was.
    async fn count(&self, stop: &CancellationToken) {
        let mut unproved = Complaint::about("the store is not as it must be");
        let mut uncounted = Complaint::about("what waits could not be counted");
        loop {
            let now = self.gateway.now();
            unproved.hear(self.gateway.store().prove().await);
            let figures = self
                .gateway
                .store()
                .read(|conn| Box::pin(async move { figures::read(conn, now).await }))
                .await;
            uncounted.hear(figures.map(|figures| self.gateway.metrics().set_figures(figures)));
            if !pause(COUNT_EVERY, stop).await {
                return;
            }
        }
    }

    async fn prove_and_adopt(&self, stop: &CancellationToken) {
        loop {
            (self.sync)().await;
            // Before the proof, so that no jump falls between the two.
            let clock = (Instant::now(), self.gateway.now());
            // An ERP that is not proved is not the one to learn vendors from.
            let ready = self.prove().await && self.adopt().await;
            let wait = if ready { PROVE_EVERY } else { PROVE_AGAIN };
            if !self.pause_or_jump(wait, clock, stop).await {
                return;
            }
        }
    }

    /// Waits, but for no longer than until the clock jumps: what was proved of it holds no more.
    async fn pause_or_jump(
        &self,
        wait: Duration,
        (began, at): (Instant, Timestamp),
        stop: &CancellationToken,
    ) -> bool {
        while began.elapsed() < wait {
            if !pause(CLOCK_EVERY.min(wait), stop).await {
                return false;
            }
            let jumped = parted(self.gateway.now(), at.plus(began.elapsed()));
            if jumped > JUMP_MAX {
                let seconds = jumped.as_secs();
                tracing::warn!("the clock moved by {seconds} s; the ERP's side is proved again");
                return true;
            }
        }
        true
    }

    /// Proves the ERP's side and says whether it is right. What is wrong stops paying at once.
    pub async fn prove(&self) -> bool {
        let from = self.gateway.now();
        let problems = match self.ap.ports().erp.attest(self.gateway.store().id()).await {
            Ok(attestation) => self.judge(&attestation, (from, self.gateway.now())).await,
            Err(fault) => vec![format!("the ERP's side could not be proved: {fault}")],
        };
        for problem in &problems {
            tracing::warn!("not paying: {problem}");
        }
        let ready = problems.is_empty();
        self.reading.set_not_ready(problems.clone());
        self.ap.set_not_ready(problems);
        ready
    }

    async fn judge(&self, attestation: &Attestation, asked: (Timestamp, Timestamp)) -> Vec<String> {
        let mut problems = attestation.problems();
        let offset = apart_from(attestation.erp_time, asked);
        if offset > OFFSET_MAX {
            let seconds = offset.as_secs();
            problems.push(format!("the ERP's clock differs by {seconds} s; set both clocks"));
        }
        match self.gateway.newest_order().await {
            Ok(newest) if attestation.newest_seq > newest => {
                self.store_is_behind(attestation.newest_seq, newest).await;
                let text = "the store is older than the ERP's orders (a restored copy?); the \
                            operator removes the freeze when it is understood";
                problems.push(text.to_owned());
            }
            Ok(_) => {}
            Err(fault) => problems.push(format!("the store could not be read: {fault}")),
        }
        problems
    }

    async fn store_is_behind(&self, in_erp: u64, in_store: u64) {
        let detail = format!(
            "the ERP has this store's order {in_erp}, the store itself only {in_store}: it is an \
             older copy; `countersign freeze remove` takes the missing orders over"
        );
        let alarm = Automatic { scope: FreezeScope::All, cause: "store_behind", detail };
        if let Err(fault) = self.gateway.freeze_automatically(alarm).await {
            let fault = anyhow::Error::new(fault);
            tracing::error!("could not freeze: {fault:#}");
        }
    }

    /// Makes the baseline of companies that have none yet.
    pub async fn adopt(&self) -> bool {
        let ports = self.reading.ports();
        let mut problems = Vec::new();
        for company in ports.erp.companies() {
            match adoption::adopt(ports, &company, None, "serve").await {
                Ok(adoption::Adopted::Now { vendors, accounts }) => {
                    tracing::info!(company = %company, "adopted {vendors} vendors with {accounts} accounts of {company}");
                }
                Ok(adoption::Adopted::Before) => {}
                Err(fault) => {
                    let fault = anyhow::Error::new(fault);
                    tracing::error!(company = %company, "could not adopt the vendors of {company}: {fault:#}");
                    problems.push(format!("the vendors of `{company}` are not adopted yet"));
                }
            }
        }
        let all = problems.is_empty();
        self.health.set_adoption(problems);
        all
    }

    /// What keeps the daemon from being ready.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.ap.not_ready();
        problems.extend(self.health.problems());
        problems.extend(self.gateway.store().trouble().map(str::to_owned));
        problems
    }
}

/// What a task has to say of a store that fails it round after round: once, and again each minute,
/// so that it does not fill the disk that may be why.
struct Complaint {
    about: &'static str,
    said: Option<Instant>,
}

impl Complaint {
    fn about(about: &'static str) -> Self {
        Self { about, said: None }
    }

    fn hear(&mut self, outcome: Result<(), StoreError>) {
        let about = self.about;
        match outcome {
            Ok(()) => self.said = None,
            Err(_) if self.said.is_some_and(|said| said.elapsed() < SAY_AGAIN) => {}
            Err(fault) => {
                let fault = anyhow::Error::new(fault);
                tracing::error!("{about}: {fault:#}");
                self.said = Some(Instant::now());
            }
        }
    }
}

/// How far two moments are apart, whichever is the later one.
pub fn parted(one: Timestamp, other: Timestamp) -> Duration {
    one.since(other).max(other.since(one))
}

/// How far a moment lies outside the time in which it was asked for: an answer that was long on its
/// way was not given when it came in.
pub fn apart_from(told: Timestamp, (from, until): (Timestamp, Timestamp)) -> Duration {
    let (from, until) = (from.min(until), from.max(until));
    from.since(told).max(told.since(until))
}

/// Whether the ERP is watched. In builds for development a test may leave it to the payments alone to
/// find what changed.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "a switch of tests, not a setting")]
fn is_watched() -> bool {
    std::env::var("COUNTERSIGN_UNWATCHED").is_err()
}

#[cfg(not(debug_assertions))]
fn is_watched() -> bool {
    true
}

/// Waits; `false` if the daemon stops.
async fn pause(wait: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(wait) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_is_no_other_clock() {
        let at = |second: i64| Timestamp::from_millis(second * 1000);
        let asked = (at(100), at(160));
        for (told, seconds) in [(100, 0), (130, 0), (160, 0), (99, 1), (161, 1), (40, 60)] {
            let set_back = (asked.1, asked.0);
            assert_eq!(apart_from(at(told), asked), Duration::from_secs(seconds), "{told}");
            assert_eq!(apart_from(at(told), set_back), Duration::from_secs(seconds), "{told}");
        }
    }
}
