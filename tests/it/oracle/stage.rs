//! Where worlds are played: installations that begin alike, each with a daemon and a world of its
//! own.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::books::{Caller, Mandate};
use super::votes::HUMANS;
use super::world::{COMPANIES, DAY, OWN};
use crate::daemon::{Daemon, Installation};

/// A mandate as it is issued.
struct Grant {
    caller: Caller,
    budget: Option<&'static str>,
    calls: Option<&'static str>,
    hours: i64,
}

const fn caller(company: usize, principal: &'static str, agent: &'static str) -> Caller {
    Caller { company, principal, agent }
}

const LONG: i64 = 90 * DAY;

/// Who may act: several agents of several principals of two companies, with limits and without, for
/// long and for short, one revoked, one of a principal who left. The last ones only watch.
const GRANTS: [Grant; 10] = [
    Grant { caller: caller(0, "marie", "ap-agent"), budget: None, calls: None, hours: LONG },
    Grant {
        caller: caller(0, "marie", "ap-agent"),
        budget: Some("9000.00"),
        calls: None,
        hours: LONG,
    },
    Grant {
        caller: caller(0, "marie", "other"),
        budget: Some("30000.00"),
        calls: Some("40"),
        hours: LONG,
    },
    Grant { caller: caller(0, "jean", "ap-agent"), budget: None, calls: None, hours: LONG },
    Grant { caller: caller(0, "jean", "ap-agent"), budget: None, calls: Some("6"), hours: LONG },
    Grant { caller: caller(0, "jean", "brief"), budget: None, calls: None, hours: 30 },
    Grant { caller: caller(0, "jean", "gone"), budget: None, calls: None, hours: LONG },
    Grant { caller: caller(0, "paul", "left"), budget: None, calls: None, hours: LONG },
    Grant { caller: caller(1, "renard", "ap-agent"), budget: None, calls: None, hours: LONG },
    Grant {
        caller: caller(1, "renard", "other"),
        budget: Some("5000.00"),
        calls: None,
        hours: LONG,
    },
];
/// Which of them is revoked before anything begins, and whose principal is disabled.
const REVOKED: usize = 6;
const LEFT: usize = 7;

/// What every world begins with: people, mandates, keys.
pub(super) struct Template {
    installation: Installation,
    mandates: Vec<Mandate>,
    /// For each mandate another one of the same caller, to look with.
    watchers: Vec<String>,
}

/// One world's installation, before its daemon runs.
pub(super) struct Stage {
    installation: Installation,
    pub(super) mandates: Vec<Mandate>,
    pub(super) watchers: Vec<String>,
}

impl Template {
    pub(super) fn make() -> Self {
        let empty = super::genesis::file(&super::world::World::empty());
        let installation = Installation::with(&empty, "sqlite://countersign.db", "");
        for human in &HUMANS {
            for (company, role) in human.roles {
                installation.add_user(human.name, role.word(), COMPANIES[*company]);
            }
        }
        let mandates: Vec<Mandate> = GRANTS
            .iter()
            .map(|grant| {
                let token = issue(&installation, grant);
                let cents = |text: &str| text.replace('.', "").parse().unwrap();
                Mandate {
                    id: id_of(&token),
                    token,
                    caller: grant.caller,
                    budget: grant.budget.map(cents),
                    calls: grant.calls.map(|calls| calls.parse().unwrap()),
                    over: grant.hours,
                    revoked: false,
                }
            })
            .collect();
        let mut watchers: Vec<String> = Vec::new();
        for (at, grant) in GRANTS.iter().enumerate() {
            let before = GRANTS[..at].iter().position(|other| other.caller == grant.caller);
            watchers.push(match before {
                Some(before) => watchers[before].clone(),
                None => issue(
                    &installation,
                    &Grant { budget: None, calls: None, hours: LONG, ..*grant },
                ),
            });
        }
        let mut template = Self { installation, mandates, watchers };
        template.revoke();
        template
    }

    fn revoke(&mut self) {
        self.installation.ok(&["mandate", "revoke", &self.mandates[REVOKED].id], "");
        self.mandates[REVOKED].revoked = true;
        self.installation.ok(&["user", "disable", self.mandates[LEFT].caller.principal], "");
        self.mandates[LEFT].revoked = true;
    }

    /// A new installation that has all of it, with that world.
    pub(super) fn stage(&self, world: &str) -> Stage {
        let from = |name: &str| self.installation.path(name);
        let configuration = fs::read_to_string(from("countersign.toml")).unwrap();
        // A busy machine is no fault of the ERP's.
        let patient = configuration.replace("call_deadline = \"2s\"", "call_deadline = \"60s\"");
        assert_ne!(patient, configuration);
        let installation = Installation::of(&patient);
        fs::write(installation.path("world.toml"), world).unwrap();
        fs::create_dir(installation.path("keys")).unwrap();
        let mut files = vec!["countersign.db".to_owned(), "checkpoint.txt".to_owned()];
        for entry in fs::read_dir(from("keys")).unwrap() {
            files.push(format!("keys/{}", entry.unwrap().file_name().to_str().unwrap()));
        }
        for more in ["countersign.db-wal", "countersign.db-shm"] {
            if from(more).exists() {
                files.push(more.to_owned());
            }
        }
        for name in files {
            fs::copy(from(&name), installation.path(&name)).unwrap();
        }
        let (mandates, watchers) = (self.mandates.clone(), self.watchers.clone());
        Stage { installation, mandates, watchers }
    }
}

impl Stage {
    pub(super) async fn start(&self) -> Daemon {
        // What is seen between two proposals depends on the time; the watcher has tests of its own.
        let daemon = self.installation.start_unready(&[("COUNTERSIGN_UNWATCHED", "1")]);
        daemon.until_ready().await;
        daemon
    }

    pub(super) fn revoke(&self, id: &str) {
        self.installation.ok(&["mandate", "revoke", id], "");
    }

    pub(super) fn freeze(&self, company: &str, vendor: Option<&str>) -> String {
        let mut add = vec!["freeze", "add", "--company", company, "--reason", "a test"];
        if let Some(vendor) = vendor {
            add.extend(["--vendor", vendor]);
        }
        self.installation.ok(&add, "")
    }

    pub(super) fn thaw(&self, id: &str) {
        self.installation.ok(&["freeze", "remove", id, "--reason", "a test"], "");
    }

    /// What `receipts verify` says, once the daemon has stopped.
    pub(super) fn verify(&self) -> Result<(), String> {
        let output = self.installation.run(&["receipts", "verify"], "");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let good = output.status.success() && said.contains("the kept checkpoint is in it");
        if good { Ok(()) } else { Err(format!("the receipts do not verify: {output:?}")) }
    }
}

fn issue(installation: &Installation, grant: &Grant) -> String {
    let Caller { company, principal, agent } = grant.caller;
    let ttl = format!("{}h", grant.hours);
    let mut issue = vec!["mandate", "issue", "--principal", principal, "--agent", agent];
    issue.extend(["--company", COMPANIES[company], "--scope", "invoice.pay", "--ttl", &ttl]);
    issue.extend(["--source-account", OWN[company][0].1, "--currency", "EUR"]);
    if let Some(budget) = grant.budget {
        issue.extend(["--budget", budget]);
    }
    if let Some(calls) = grant.calls {
        issue.extend(["--max-calls", calls]);
    }
    installation.ok(&issue, "")
}

/// The mandate that a token names.
fn id_of(token: &str) -> String {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["jti"].as_str().unwrap().to_owned()
}
