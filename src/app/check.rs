//! What `check` looks at: each thing by itself, so that what is wrong with one hides nothing about
//! the others. It changes nothing but what every command does: it makes the store, the keys and the
//! sandbox's file where they are not there yet.

mod erp;
mod kept;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use countersign_erp_source::{Clock, ErpSource};
use countersign_sandbox::Sandbox;

use super::{open_sandbox, sanctions, vop};
use crate::clock::SystemClock;
use crate::gateway::policy::Policies;
use crate::keys::Keys;
use crate::settings::{Provider, ProviderKind, Settings};

use kept::Kept;

/// What was found out about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The thing.
    pub what: String,
    /// What there is to say of it, or what is wrong, each by itself.
    pub says: Vec<String>,
    /// What to do, where what is wrong does not say it itself.
    pub to_do: Option<Cow<'static, str>>,
    /// Whether it is as it must be.
    pub is_ok: bool,
}

impl Finding {
    fn ok(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what: what.into(), says: vec![says.into()], to_do: None, is_ok: true }
    }

    fn wrong(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { what: what.into(), says: vec![problem.into()], to_do: None, is_ok: false }
    }

    fn mended_by(self, to_do: impl Into<Cow<'static, str>>) -> Self {
        Self { to_do: Some(to_do.into()), ..self }
    }

    /// Something that cannot be looked at before something else is mended.
    fn hidden(what: impl Into<String>, behind: &str) -> Self {
        Self::wrong(what, format!("not looked at: {behind}"))
    }

    fn of_problems(what: &str, problems: Vec<String>, otherwise: &str) -> Self {
        if problems.is_empty() {
            return Self::ok(what, otherwise);
        }
        Self { what: what.to_owned(), says: problems, to_do: None, is_ok: false }
    }
}

fn told(fault: impl Into<anyhow::Error>) -> String {
    format!("{:#}", fault.into())
}

/// Looks at everything.
pub async fn examine(file: &Path) -> Vec<Finding> {
    let settings = match Settings::load(file) {
        Ok(settings) => settings,
        Err(fault) => {
            return vec![
                Finding::wrong("configuration", told(fault))
                    .mended_by("mend the file; nothing else is looked at before"),
            ];
        }
    };
    let mut found = vec![
        Finding::ok("configuration", format!("`{}`", settings.file.display())),
        plaintext(&settings),
        policies(&settings),
    ];
    let keys = Keys::open(&settings.path(&settings.keys.dir)).context("`keys.dir`");
    found.push(match &keys {
        Ok(_) => Finding::ok("keys", "there, and nobody else can read them"),
        Err(fault) => Finding::wrong("keys", format!("{fault:#}"))
            .mended_by("mend its mode, or put the file back from where you keep a copy"),
    });
    let keys = keys.ok().map(Arc::new);
    let sandbox = sandbox(&settings, keys.as_deref()).await;
    let clock: Arc<dyn Clock> = match &sandbox {
        Ok(Some(sandbox)) => Arc::new(sandbox.clone()),
        Ok(None) | Err(_) => Arc::new(SystemClock),
    };
    let kept = Kept::open(&settings, keys.as_ref(), &clock).await;
    found.push(kept.store().await);
    found.extend(erp::findings(&settings, &sandbox, &clock, kept.opened()).await);
    for company in companies(&settings, &sandbox) {
        found.push(kept.baseline(&company).await);
    }
    found.extend(providers(&settings, &sandbox, &clock));
    found.push(kept.close_and_compare().await);
    if let Ok(Some(sandbox)) = &sandbox {
        sandbox.close().await;
    }
    found
}

/// The sandbox where it is the ERP, or why it is not there.
type MaybeSandbox = Result<Option<Sandbox>, String>;

async fn sandbox(settings: &Settings, keys: Option<&Keys>) -> MaybeSandbox {
    match keys {
        _ if settings.sandbox().is_none() => Ok(None),
        Some(keys) => open_sandbox(settings, keys).await.map_err(|fault| format!("{fault:#}")),
        None => Err("not looked at: it needs the keys".to_owned()),
    }
}

fn companies(settings: &Settings, sandbox: &MaybeSandbox) -> Vec<String> {
    match (sandbox, settings.odoo()) {
        (Ok(Some(sandbox)), _) => sandbox.companies().iter().map(ToString::to_string).collect(),
        (_, Some(odoo)) => odoo.companies.keys().cloned().collect(),
        (Ok(None) | Err(_), None) => Vec::new(),
    }
}

fn providers(settings: &Settings, sandbox: &MaybeSandbox, clock: &Arc<dyn Clock>) -> [Finding; 2] {
    let sandbox = sandbox.as_ref().ok().and_then(Option::as_ref);
    let verifies = vop(settings, sandbox, clock).map(drop);
    let screens = sanctions(settings, sandbox).map(drop);
    [
        provider("VoP", "vop", &settings.vop, sandbox, verifies),
        provider("sanctions", "sanctions", &settings.sanctions, sandbox, screens),
    ]
}

fn provider(
    what: &str,
    key: &str,
    provider: &Provider,
    sandbox: Option<&Sandbox>,
    opened: anyhow::Result<()>,
) -> Finding {
    if provider.kind == ProviderKind::Sandbox && sandbox.is_none() {
        return Finding::hidden(what, "it is part of the sandbox");
    }
    if let Err(fault) = opened {
        return Finding::wrong(what, format!("{fault:#}"))
            .mended_by("mend the file, or name another");
    }
    Finding::ok(
        what,
        match provider.kind {
            ProviderKind::Sandbox => format!("a test provider: `{key}.kind` is `sandbox`"),
            ProviderKind::File => format!("a test provider: `{key}.kind` is `file`"),
            ProviderKind::None => format!("`{key}.kind` is `none`: nothing is checked"),
        },
    )
}

fn plaintext(settings: &Settings) -> Finding {
    let odoo = settings.odoo().is_some_and(|odoo| odoo.allow_plaintext);
    let allowed = [
        ("`store.allow_plaintext`: PostgreSQL", settings.store.allow_plaintext),
        ("`erp.odoo.allow_plaintext`: Odoo", odoo),
    ];
    let mut says: Vec<String> = allowed
        .into_iter()
        .filter(|(_, allowed)| *allowed)
        .map(|(what, _)| {
            format!("{what} may be reached without TLS; for a network of your own only")
        })
        .collect();
    if says.is_empty() {
        says.push("not allowed: what is not on this host is reached by TLS".to_owned());
    }
    Finding { what: "plaintext".to_owned(), says, to_do: None, is_ok: true }
}

fn policies(settings: &Settings) -> Finding {
    match Policies::load(&settings.path(&settings.policy.dir)).context("`policy.dir`") {
        Ok(policies) => {
            let (rules, digest) = (policies.ids().count(), policies.digest());
            Finding::ok("policies", format!("{rules} rules that fit their schema, {digest}"))
        }
        Err(fault) => Finding::wrong("policies", format!("{fault:#}"))
            .mended_by("mend them; a daemon that runs decides by the older ones until then"),
    }
}
