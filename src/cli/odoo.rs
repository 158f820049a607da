//! `odoo install`: prepares Odoo.

use anyhow::bail;
use clap::Subcommand;

use super::{password_from_stdin, say};
use crate::app;
use crate::settings::Settings;

/// What has to be prepared in Odoo.
#[derive(Debug, Subcommand)]
pub(super) enum OdooCommand {
    /// Installs the guard and the three identities; can be run again.
    Install {
        /// The login of an Odoo administrator.
        #[arg(long)]
        admin_login: String,
        /// Reads that administrator's password from standard input. It is kept nowhere.
        #[arg(long)]
        admin_password_stdin: bool,
        /// Installs the present seal key in the place of one that is lost or stolen. Only while
        /// everything is frozen.
        #[arg(long)]
        replace_seal_key: bool,
    },
}

pub(super) async fn run(settings: &Settings, command: OdooCommand) -> anyhow::Result<()> {
    let OdooCommand::Install { admin_login, admin_password_stdin, replace_seal_key } = command;
    if !admin_password_stdin {
        bail!("give the administrator's password on standard input, with `--admin-password-stdin`");
    }
    app::needs_odoo(settings)?;
    let password = password_from_stdin()?;
    let (installed, written) =
        app::install(settings, &admin_login, password, replace_seal_key).await?;
    for login in &written {
        say(format!("wrote a new password for {login}"))?;
    }
    for login in &installed.created_users {
        say(format!("created the user {login}"))?;
    }
    for action in &installed.changed_actions {
        say(format!("installed `{action}`"))?;
    }
    if installed.key_set {
        say("installed the seal key")?;
    }
    say("Odoo is prepared")
}
