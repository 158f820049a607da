//! The configuration (API 6): one TOML file and the environment, checked whole before anything
//! starts. Relative paths are relative to the file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono_tz::Tz;
use config::{Config, Environment, File, FileFormat};
use serde::{Deserialize, Deserializer, de};

/// What the name of each variable begins with that sets something.
const VARIABLES: &str = "COUNTERSIGN__";

/// Everything that can be set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub server: Server,
    pub store: StoreSettings,
    pub keys: Folder,
    #[serde(default = "Policy::default")]
    pub policy: Policy,
    pub erp: Erp,
    #[serde(default)]
    pub vop: Provider,
    #[serde(default)]
    pub sanctions: Provider,
    #[serde(default)]
    pub approvals: Approvals,
    #[serde(default)]
    pub receipts: Receipts,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub log: Log,
    /// The file's own folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The file itself.
    #[serde(skip)]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Where the daemon listens.
    pub listen: SocketAddr,
    /// How it is reached; its host is served beside `listen`.
    pub public_url: String,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// `sqlite://file` or `postgres://user@host/database`.
    pub url: String,
    /// PostgreSQL elsewhere without TLS.
    #[serde(default)]
    pub allow_plaintext: bool,
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A password may stand in the address.
        f.debug_struct("StoreSettings")
            .field("allow_plaintext", &self.allow_plaintext)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    pub dir: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub dir: PathBuf,
}

impl Policy {
    fn default() -> Self {
        Self { dir: PathBuf::from("policies") }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErpKind {
    Sandbox,
    Odoo,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erp {
    pub kind: ErpKind,
    #[serde(default, deserialize_with = "opt_duration")]
    call_deadline: Option<Duration>,
    pub sandbox: Option<SandboxSettings>,
    pub odoo: Option<OdooSettings>,
}

impl Erp {
    /// How long a call to the ERP may take, and how long an order may be booked.
    pub fn call_deadline(&self) -> Duration {
        self.call_deadline.unwrap_or(match self.kind {
            ErpKind::Sandbox => Duration::from_secs(5),
            // Longer than Odoo's own retries and worker limit, so that the outcome is final.
            ErpKind::Odoo => Duration::from_mins(2),
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    pub world: Option<PathBuf>,
    pub file: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OdooSettings {
    pub url: String,
    pub database: String,
    #[serde(default)]
    pub allow_plaintext: bool,
    pub reader: Login,
    pub payer: Login,
    pub bank_admin: Login,
    #[serde(default = "utc")]
    pub time_zone: Tz,
    /// Countersign's company id = Odoo's company id.
    pub companies: BTreeMap<String, i32>,
}

fn utc() -> Tz {
    Tz::UTC
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub login: String,
    pub password_file: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    Sandbox,
    File,
    #[default]
    None,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    pub kind: ProviderKind,
    pub path: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    #[serde(deserialize_with = "duration")]
    pub expires_after: Duration,
    #[serde(deserialize_with = "duration")]
    pub cooling_off: Duration,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { expires_after: Duration::from_hours(72), cooling_off: Duration::from_hours(7 * 24) }
    }
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Receipts {
    /// The newest signed head, for keeping elsewhere.
    pub checkpoint_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub format: LogFormat,
}

/// How the daemon's log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text where standard error is a terminal, else JSON.
    #[default]
    Auto,
    Json,
    Text,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub proposals_per_minute: u32,
    pub reads_per_minute: u32,
    pub wrong_accounts_per_day: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { proposals_per_minute: 120, reads_per_minute: 600, wrong_accounts_per_day: 20 }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("there is no configuration `{}`", .0.display())]
    Missing(PathBuf),
    #[error("the configuration `{}` cannot be used: {problem}", file.display())]
    Unfit { file: PathBuf, problem: String },
    /// The file alone can be used.
    #[error(
        "the environment variable {} cannot be used beside the configuration `{}`: {problem}",
        names.join(", or "),
        file.display()
    )]
    Environment { names: Vec<String>, file: PathBuf, problem: String },
    #[error("`{key}` in `{}` names `{}`, which cannot be read", file.display(), path.display())]
    File {
        key: &'static str,
        file: PathBuf,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Settings {
    /// Reads the file and the environment.
    pub fn load(file: &Path) -> Result<Self, SettingsError> {
        let set = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(VARIABLES))
            .collect();
        Self::load_with(file, &set)
    }

    fn load_with(file: &Path, set: &BTreeMap<String, String>) -> Result<Self, SettingsError> {
        if !file.is_file() {
            return Err(SettingsError::Missing(file.to_owned()));
        }
        Self::of(file, set).map_err(|problem| {
            let file = file.to_owned();
            let names = blamed(&file, set);
            if names.is_empty() {
                SettingsError::Unfit { file, problem }
            } else {
                SettingsError::Environment { names, file, problem }
            }
        })
    }

    /// What the file and those variables say, or what is wrong with it.
    fn of(file: &Path, set: &BTreeMap<String, String>) -> Result<Self, String> {
        let said = set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let environment = Environment::with_prefix("COUNTERSIGN")
            .prefix_separator("__")
            .separator("__")
            .try_parsing(true)
            .source(Some(said));
        let settings: Self = Config::builder()
            .add_source(File::from(file).format(FileFormat::Toml))
            .add_source(environment)
            .build()
            .and_then(Config::try_deserialize)
            .map_err(|fault| fault.to_string())?;
        let absolute = std::path::absolute(file).map_err(|fault| fault.to_string())?;
        let folder = absolute.parent().map(Path::to_owned).unwrap_or_default();
        let settings = Self { folder, file: absolute, ..settings };
        settings.check()?;
        Ok(settings)
    }

    /// The path, seen from the file's own folder.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// The store's address with the path of a SQLite file made absolute.
    pub fn store_url(&self) -> String {
        match self.store.url.strip_prefix("sqlite://") {
            Some(path) => format!("sqlite://{}", self.path(Path::new(path)).display()),
            None => self.store.url.clone(),
        }
    }

    /// The sandbox's settings, where it is the ERP.
    pub fn sandbox(&self) -> Option<&SandboxSettings> {
        self.erp.sandbox.as_ref().filter(|_| self.erp.kind == ErpKind::Sandbox)
    }

    /// Odoo's settings, where it is the ERP.
    pub fn odoo(&self) -> Option<&OdooSettings> {
        self.erp.odoo.as_ref().filter(|_| self.erp.kind == ErpKind::Odoo)
    }

    /// Business dates' time zone.
    pub fn time_zone(&self) -> Tz {
        self.odoo().map_or(Tz::UTC, |odoo| odoo.time_zone)
    }

    /// A password, from its file, which others must not be able to read.
    pub fn password(&self, key: &'static str, login: &Login) -> Result<String, SettingsError> {
        let path = self.path(&login.password_file);
        let file = self.file.clone();
        let text = std::fs::read_to_string(&path).map_err(|source| SettingsError::File {
            key,
            file: file.clone(),
            path: path.clone(),
            source,
        })?;
        let mode =
            std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).map_err(|source| {
                SettingsError::File { key, file: file.clone(), path: path.clone(), source }
            })?);
        if mode & 0o077 != 0 {
            let problem = format!("others can read `{}` ({key}); make it 0600", path.display());
            return Err(SettingsError::Unfit { file, problem });
        }
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn check(&self) -> Result<(), String> {
        let sandbox = self.erp.kind == ErpKind::Sandbox;
        if sandbox && self.erp.sandbox.is_none() {
            return Err("`erp.kind` is `sandbox`, and `[erp.sandbox]` is missing".to_owned());
        }
        if !sandbox && self.erp.odoo.is_none() {
            return Err("`erp.kind` is `odoo`, and `[erp.odoo]` is missing".to_owned());
        }
        // The ERP's side refuses orders that live for more than 15 minutes.
        if self.erp.call_deadline() > Duration::from_mins(10) {
            return Err("`erp.call_deadline` is at most `10m`".to_owned());
        }
        for (name, provider) in [("vop", &self.vop), ("sanctions", &self.sanctions)] {
            if provider.kind == ProviderKind::Sandbox && !sandbox {
                return Err(format!("`{name}.kind = \"sandbox\"` needs the sandbox ERP"));
            }
            if (provider.kind == ProviderKind::File) != provider.path.is_some() {
                return Err(format!(
                    "`{name}.path` goes with `{name}.kind = \"file\"`, and only with it"
                ));
            }
        }
        if let Some(odoo) = self.odoo() {
            if odoo.companies.is_empty() {
                return Err("`[erp.odoo.companies]` names no company".to_owned());
            }
            let logins = [&odoo.reader.login, &odoo.payer.login, &odoo.bank_admin.login];
            if logins
                .iter()
                .enumerate()
                .any(|(at, login)| logins.iter().skip(at + 1).any(|other| other == login))
            {
                return Err(
                    "reader, payer and bank_admin are three identities, not one login".to_owned()
                );
            }
        }
        if self.sandbox().is_some() && !self.server.listen.ip().is_loopback() {
            return Err("the sandbox listens on loopback only: `server.listen`".to_owned());
        }
        let limits = self.limits;
        let all =
            [limits.proposals_per_minute, limits.reads_per_minute, limits.wrong_accounts_per_day];
        if all.contains(&0) {
            return Err("`limits` are greater than zero".to_owned());
        }
        let url = &self.store.url;
        if !(url.starts_with("sqlite://")
            || url.starts_with("postgres://")
            || url.starts_with("postgresql://"))
        {
            return Err("`store.url` begins with `sqlite://` or `postgres://`".to_owned());
        }
        Ok(())
    }
}

/// The variables with which, each alone, the file cannot be used; where each is right alone, all of
/// them. None where the file cannot be used by itself.
fn blamed(file: &Path, set: &BTreeMap<String, String>) -> Vec<String> {
    if set.is_empty() || Settings::of(file, &BTreeMap::new()).is_err() {
        return Vec::new();
    }
    let is_wrong = |name: &&String| {
        let alone = set.iter().filter(|(other, _)| other == name);
        let alone = alone.map(|(name, value)| (name.clone(), value.clone())).collect();
        Settings::of(file, &alone).is_err()
    };
    let wrong: Vec<String> = set.keys().filter(is_wrong).cloned().collect();
    if wrong.is_empty() { set.keys().cloned().collect() } else { wrong }
}

/// Reads a duration like `8d`, `12h` or `90s`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text).map_err(|fault| fault.to_string())?;
    if parsed.is_zero() { Err("a duration is greater than zero".to_owned()) } else { Ok(parsed) }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(|fault| de::Error::custom(format!("`{text}`: {fault}")))
}

fn opt_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [server]
        listen = "127.0.0.1:8490"
        public_url = "http://127.0.0.1:8490"
        [store]
        url = "sqlite://countersign.db"
        [keys]
        dir = "keys"
        [erp]
        kind = "sandbox"
        [erp.sandbox]
        world = "world.toml"
        file = "sandbox.db"
        [vop]
        kind = "sandbox"
        [sanctions]
        kind = "sandbox"
    "#;

    fn load(text: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("countersign.toml");
        std::fs::write(&file, text).unwrap();
        Settings::load(&file).map_err(|fault| fault.to_string())
    }

    #[track_caller]
    fn refused(change: (&str, &str), expected: &str) {
        assert!(GOOD.contains(change.0), "the change must apply");
        let fault = load(&GOOD.replace(change.0, change.1)).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        assert!(fault.contains("countersign.toml"), "{fault}");
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let settings = load(GOOD).unwrap();
        assert_eq!(settings.erp.call_deadline(), Duration::from_secs(5));
        assert_eq!(settings.approvals.cooling_off, Duration::from_hours(168));
        assert_eq!(settings.limits.proposals_per_minute, 120);
        assert!(settings.store_url().starts_with("sqlite:///"));
        assert!(settings.store_url().ends_with("/countersign.db"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused(("dir = \"keys\"", "dir = \"keys\"\ncolour = 1"), "colour");
        refused(
            ("kind = \"sandbox\"\n        [erp.sandbox]", "kind = \"sap\"\n        [erp.sandbox]"),
            "sap",
        );
        refused(("127.0.0.1:8490\"\n        public", "0.0.0.0:8490\"\n        public"), "loopback");
        refused(
            ("[vop]\n        kind = \"sandbox\"", "[vop]\n        kind = \"file\""),
            "vop.path",
        );
        refused(("sqlite://", "mysql://"), "store.url");
        refused(("[keys]", "[limits]\nproposals_per_minute = 0\n[keys]"), "greater than zero");
        refused(
            ("\"sandbox\"\n        [erp.s", "\"sandbox\"\ncall_deadline = \"11m\"\n[erp.s"),
            "10m",
        );
        refused(("[keys]", "[approvals]\ncooling_off = \"soon\"\n[keys]"), "soon");
    }

    #[test]
    fn a_variable_that_is_wrong_is_named_and_not_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("countersign.toml");
        let load = |text: &str, set: &[(&str, &str)]| {
            std::fs::write(&file, text).unwrap();
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Settings::load_with(&file, &set.collect()).map_err(|fault| fault.to_string())
        };
        let listen = ("COUNTERSIGN__SERVER__LISTEN", "127.0.0.1:9000");
        assert_eq!(load(GOOD, &[listen]).unwrap().server.listen.port(), 9000);
        for wrong in [
            ("COUNTERSIGN__SERVER__LISTENN", "1"),
            ("COUNTERSIGN__SERVER__LISTEN", "nowhere"),
            ("COUNTERSIGN__COLOUR", "red"),
            ("COUNTERSIGN__LIMITS__READS_PER_MINUTE", "0"),
        ] {
            let fault = load(GOOD, &[wrong, ("COUNTERSIGN__POLICY__DIR", "rules")]).unwrap_err();
            assert!(fault.contains(&format!("environment variable {} ", wrong.0)), "{fault}");
        }
        // Two that are right alone, and do not go together.
        let together =
            [("COUNTERSIGN__ERP__CALL_DEADLINE", "10m"), ("COUNTERSIGN__VOP__KIND", "none")];
        assert!(load(GOOD, &together).is_ok());
        // Where the file is wrong by itself, it is the file.
        let fault = load(&GOOD.replace("[keys]", "[kees]"), &[listen]).unwrap_err();
        assert!(fault.contains("the configuration `"), "{fault}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let fault = Settings::load(Path::new("/nowhere/countersign.toml")).unwrap_err();
        assert!(fault.to_string().contains("/nowhere/countersign.toml"));
    }
}
