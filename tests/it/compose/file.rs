//! `compose.yaml` as this tree writes it: what is not here may not stand in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compose {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "x-plain")]
    _plain: Value,
    #[serde(rename = "x-story")]
    _story: Value,
    pub(super) services: BTreeMap<String, Service>,
    pub(super) networks: BTreeMap<String, Network>,
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) secrets: BTreeMap<String, Secret>,
}

/// A volume of the engine's own; a driver would have options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Volume {
    #[serde(default, rename = "name")]
    _name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    #[serde(default)]
    pub(super) internal: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secret {
    pub(super) file: String,
}

/// A service. That there is no `privileged`, no `cap_add` and no `network_mode` here is the point.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    pub(super) image: String,
    pub(super) build: Option<Build>,
    pub(super) user: Option<String>,
    pub(super) restart: String,
    pub(super) cap_drop: Vec<String>,
    pub(super) security_opt: Vec<String>,
    #[serde(default)]
    pub(super) read_only: bool,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) command: Option<Vec<String>>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    #[serde(default)]
    volumes: Vec<String>,
    networks: Networks,
    #[serde(default)]
    pub(super) ports: Vec<String>,
    #[serde(default)]
    pub(super) profiles: Vec<String>,
    #[serde(default)]
    depends_on: BTreeMap<String, Dependency>,
    pub(super) healthcheck: Option<Healthcheck>,
    pub(super) stop_grace_period: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Build {
    pub(super) context: String,
    pub(super) dockerfile: String,
    pub(super) target: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Networks {
    Names(Vec<String>),
    Options(BTreeMap<String, Joined>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Joined {
    #[serde(default)]
    aliases: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dependency {
    condition: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Healthcheck {
    pub(super) test: Vec<String>,
    pub(super) interval: String,
    pub(super) timeout: String,
    pub(super) retries: u32,
    #[serde(default)]
    pub(super) start_period: Option<String>,
}

/// What is mounted where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// A volume's name, or a path from the file's folder.
    pub(super) source: String,
    pub(super) target: String,
    pub(super) read_only: bool,
}

impl Mount {
    /// Whether it is a file or folder of the host.
    pub(super) fn is_of_the_host(&self) -> bool {
        self.source.starts_with(['.', '/'])
    }

    /// Whether that path is in it.
    pub(super) fn holds(&self, path: &str) -> bool {
        path.strip_prefix(&self.target).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Service {
    #[track_caller]
    pub(super) fn mounts(&self) -> Vec<Mount> {
        let read = |text: &String| {
            let parts: Vec<&str> = text.split(':').collect();
            let (source, target, read_only) = match parts.as_slice() {
                [source, target] => (source, target, false),
                [source, target, "ro"] => (source, target, true),
                _ => panic!("`{text}` is not a mount as this file writes them"),
            };
            Mount { source: (*source).to_owned(), target: (*target).to_owned(), read_only }
        };
        self.volumes.iter().map(read).collect()
    }

    /// The mount that a path is in.
    #[track_caller]
    pub(super) fn mount_of(&self, path: &str) -> Mount {
        let found = self.mounts().into_iter().find(|mount| mount.holds(path));
        found.unwrap_or_else(|| panic!("nothing is mounted where `{path}` is"))
    }

    pub(super) fn networks(&self) -> Vec<&str> {
        match &self.networks {
            Networks::Names(names) => names.iter().map(String::as_str).collect(),
            Networks::Options(options) => options.keys().map(String::as_str).collect(),
        }
    }

    /// Other names of the service on that network.
    pub(super) fn aliases(&self, network: &str) -> &[String] {
        match &self.networks {
            Networks::Names(_) => &[],
            Networks::Options(options) => {
                options.get(network).map_or(&[], |joined| &joined.aliases)
            }
        }
    }

    /// After which services, and in which state of theirs, it starts.
    pub(super) fn starts_after(&self) -> BTreeMap<&str, &str> {
        let dependencies = self.depends_on.iter();
        dependencies.map(|(name, after)| (name.as_str(), after.condition.as_str())).collect()
    }

    /// The value of an option on its command line.
    #[track_caller]
    pub(super) fn option(&self, name: &str) -> &str {
        let command = self.command.iter().flatten();
        let mut values = command.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next().unwrap_or_else(|| panic!("no `{name}` in {:?}", self.command))
    }
}
