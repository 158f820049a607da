//! The program's own commands, run in processes of their own as an operator runs them: what the
//! demonstration and the example with a real ERP do before their agent may act.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Makes marie, who grants the mandate. Her password goes in on standard input.
pub const ADD_PRINCIPAL: [&str; 8] =
    ["user", "add", "marie", "--role", "accountant", "--company", COMPANY, "--password-stdin"];
/// The password of marie, who is invented.
pub const PRINCIPALS_PASSWORD: &str = "correct horse battery";
/// The company that pays.
pub const COMPANY: &str = "blue-sparrow";

/// Issues a mandate of marie's for eight hours, to pay from that account. Prints the token.
pub fn issue_mandate(source_account: &str) -> [&str; 19] {
    [
        "mandate",
        "issue",
        "--principal",
        "marie",
        "--agent",
        "ap-agent",
        "--company",
        COMPANY,
        "--scope",
        "invoice.pay",
        "vendor.update_bank_details",
        "--source-account",
        source_account,
        "--currency",
        "EUR",
        "--budget",
        "20000.00",
        "--ttl",
        "8h",
    ]
}

/// A program and the configuration that it is run with.
#[derive(Debug, Clone)]
pub struct Operator {
    program: PathBuf,
    config: PathBuf,
}

impl Operator {
    /// Runs that program.
    pub fn new(program: PathBuf, config: &Path) -> Self {
        Self { program, config: config.to_owned() }
    }

    /// Runs the program that this process is.
    ///
    /// # Errors
    /// The system does not say which it is.
    pub fn of_this_program(config: &Path) -> anyhow::Result<Self> {
        Ok(Self::new(std::env::current_exe().context("this program")?, config))
    }

    /// The command with those arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(&self.config).args(arguments);
        command
    }

    /// Runs a command to its end, with that on standard input, and gives what it printed.
    ///
    /// # Errors
    /// It failed; what it said of that is on this process's standard error.
    pub fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{}`", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads nothing may have closed its input already.
            stdin.write_all(input.as_bytes()).unwrap_or_default();
        }
        let output = child.wait_with_output().context("the program")?;
        if !output.status.success() {
            bail!("`countersign {}` failed", arguments.join(" "));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
