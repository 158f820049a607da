//! What an operator has: a folder with a configuration, the program, and a daemon in a process of
//! its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use countersign::cli::operator::Operator;
use countersign::gateway::policy::Policies;
use tempfile::TempDir;

const CONFIGURATION: &str = include_str!("countersign.toml");
const VOP: &str = include_str!("vop.toml");

/// Which Odoo, and which program.
pub(crate) struct Place<'a> {
    pub(crate) url: &'a str,
    pub(crate) database: &'a str,
    pub(crate) allow_plaintext: bool,
    pub(crate) program: Option<&'a Path>,
}

/// A folder with a configuration.
pub(crate) struct Installation {
    folder: TempDir,
    operator: Operator,
}

/// A running daemon.
pub(crate) struct Daemon {
    child: Child,
    base: String,
}

impl Installation {
    /// Writes the configuration, the policies and the answers of Verification of Payee.
    pub(crate) fn make(place: &Place<'_>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no folder for the installation")?;
        let text = CONFIGURATION
            .replace("@URL@", place.url)
            .replace("@DATABASE@", place.database)
            .replace("@PLAINTEXT@", if place.allow_plaintext { "true" } else { "false" });
        let config = folder.path().join("countersign.toml");
        fs::write(&config, text).context("the configuration")?;
        fs::write(folder.path().join("vop.toml"), VOP).context("Verification of Payee")?;
        Policies::write_defaults(&folder.path().join("policies")).context("the policies")?;
        let program = match place.program {
            Some(program) => program.to_owned(),
            None => beside_this_example()?,
        };
        if !program.is_file() {
            bail!("there is no program `{}`: run `cargo build` first", program.display());
        }
        let operator = Operator::new(program, &config);
        Ok(Self { folder, operator })
    }

    /// Whoever works on it.
    pub(crate) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// A folder in it for what the parts of the story tell each other.
    pub(crate) fn story(&self) -> PathBuf {
        self.folder.path().join("story")
    }

    /// Starts the daemon; it says where it listens once it does. Its log goes into the folder.
    pub(crate) fn start(&self) -> anyhow::Result<Daemon> {
        let log = self.folder.path().join("log.jsonl");
        let stderr = fs::File::create(&log).context("the daemon's log")?;
        let serve = self.operator.command(&["serve"]).stdout(Stdio::piped()).stderr(stderr).spawn();
        let mut child = serve.context("the program")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context("the daemon's first line")?;
        }
        let Some((_, address)) = line.trim().split_once("http://") else {
            child.wait().context("the daemon")?;
            bail!("the daemon did not start: {}", fs::read_to_string(&log).unwrap_or_default());
        };
        Ok(Daemon { base: format!("http://{address}"), child })
    }
}

fn beside_this_example() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("this example")?;
    let folder = this.parent().and_then(Path::parent).context("this example has no folder")?;
    Ok(folder.join(format!("countersign{}", std::env::consts::EXE_SUFFIX)))
}

impl Daemon {
    /// Where it is reached.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Asks it to stop and waits until it did.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().context("`kill`")?;
        let status = self.child.wait().context("the daemon")?;
        if !status.success() {
            bail!("the daemon ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A story that failed half way leaves no process behind; one that ended it finds none.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
