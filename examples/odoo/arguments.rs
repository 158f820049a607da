//! What may be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Plays a story against a fresh database of an Odoo: the whole of it, or one part.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    /// What the whole story needs.
    #[command(flatten)]
    pub(crate) whole: Whole,
    /// A part of it, where an installation and an Odoo are there.
    #[command(subcommand)]
    pub(crate) part: Option<Part>,
}

/// The whole story, in a folder of its own.
#[derive(Debug, Args)]
pub(crate) struct Whole {
    /// Odoo's address.
    #[arg(long, env = "COUNTERSIGN_ODOO_URL", required = true)]
    pub(crate) url: Option<String>,
    /// A fresh database with `account` and `base_iban`, and without entries.
    #[arg(long, env = "COUNTERSIGN_ODOO_DATABASE", required = true)]
    pub(crate) database: Option<String>,
    /// An administrator's login.
    #[arg(long, env = "COUNTERSIGN_ODOO_ADMIN_LOGIN", default_value = "admin")]
    pub(crate) admin_login: String,
    /// The administrator's password.
    #[arg(long, env = "COUNTERSIGN_ODOO_ADMIN_PASSWORD", hide_env_values = true, required = true)]
    pub(crate) admin_password: Option<String>,
    /// Odoo may be reached without TLS on another host.
    #[arg(long)]
    pub(crate) allow_plaintext: bool,
    /// The program; by default the one that `cargo build` put beside this example.
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
}

/// One part of the story.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Fills the database, and does all that an operator does before the daemon's first start. May
    /// be run again: what is done stays, and the agent gets a new mandate.
    Prepare(Prepare),
    /// Plays agent and clerk while the daemon runs. Once: the bills are paid then.
    Play(Play),
}

/// What a part needs of the installation.
#[derive(Debug, Args)]
pub(crate) struct Installed {
    /// The daemon's configuration, which names the Odoo.
    #[arg(long)]
    pub(crate) config: PathBuf,
    /// The folder that takes what the parts tell each other: the records' ids and the agent's token.
    #[arg(long)]
    pub(crate) story: PathBuf,
    /// An administrator's login.
    #[arg(long, default_value = "admin")]
    pub(crate) admin_login: String,
    /// The file with the administrator's password.
    #[arg(long)]
    pub(crate) admin_password_file: PathBuf,
}

/// The operator's part.
#[derive(Debug, Args)]
pub(crate) struct Prepare {
    /// Where it works.
    #[command(flatten)]
    pub(crate) installed: Installed,
    /// The program.
    #[arg(long)]
    pub(crate) program: PathBuf,
    /// What the administrator of a fresh database signs in with; replaced by what is in the file.
    #[arg(long)]
    pub(crate) first_admin_password: Option<String>,
    /// The file with the password of the store's PostgreSQL.
    #[arg(long, requires = "passfile")]
    pub(crate) store_password_file: Option<PathBuf>,
    /// Where that password is written for its owner only: what `PGPASSFILE` names for the daemon.
    #[arg(long, requires = "store_password_file")]
    pub(crate) passfile: Option<PathBuf>,
}

/// The agent's and the clerk's part.
#[derive(Debug, Args)]
pub(crate) struct Play {
    /// Where it works.
    #[command(flatten)]
    pub(crate) installed: Installed,
}
