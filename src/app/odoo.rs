//! `odoo install`: the guard and the three identities, by an administrator whose password is kept
//! nowhere.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context;
use countersign_odoo::Credential;
use countersign_odoo::guard::{self, InstallOptions, Installed};
use secrecy::SecretString;

use super::{needs_odoo, odoo_companies};
use crate::gateway::hex;
use crate::ids::{self, SystemRandomness};
use crate::keys::Keys;
use crate::settings::{Login, Settings};

/// Whose passwords were written now.
pub type Passwords = Vec<String>;

/// Prepares Odoo, and writes the identities' passwords to the configured files where absent.
///
/// # Errors
/// What Odoo or a file refused.
pub async fn install(
    settings: &Settings,
    admin_login: &str,
    admin_password: String,
) -> anyhow::Result<(Installed, Passwords)> {
    let odoo = needs_odoo(settings)?;
    let keys = Keys::open(&settings.path(&settings.keys.dir)).context("`keys.dir`")?;
    let mut written = Passwords::new();
    let mut identity = |key: &'static str, login: &Login| -> anyhow::Result<Credential> {
        if make_password(&settings.path(&login.password_file))
            .with_context(|| format!("`{key}`"))?
        {
            written.push(login.login.clone());
        }
        let password = settings.password(key, login)?;
        Ok(Credential { login: login.login.clone(), password: SecretString::from(password) })
    };
    let reader = identity("erp.odoo.reader", &odoo.reader)?;
    let payer = identity("erp.odoo.payer", &odoo.payer)?;
    let bank_admin = identity("erp.odoo.bank_admin", &odoo.bank_admin)?;
    let options = InstallOptions {
        url: odoo.url.clone(),
        database: odoo.database.clone(),
        allow_plaintext: odoo.allow_plaintext,
        admin: Credential {
            login: admin_login.to_owned(),
            password: SecretString::from(admin_password),
        },
        companies: odoo_companies(odoo)?,
        seal_key: keys.seal().clone(),
        reader,
        payer,
        bank_admin,
        // A new password file means that Odoo cannot have its content yet.
        set_passwords: !written.is_empty(),
    };
    let installed = guard::install(&options).await?;
    Ok((installed, written))
}

/// Writes a random password, readable by its owner only. `false` if the file is there.
fn make_password(path: &Path) -> anyhow::Result<bool> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("`{}`", folder.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(fault) => return Err(fault).with_context(|| format!("`{}`", path.display())),
    };
    let password = hex(&ids::random::<24>(&SystemRandomness::default())?);
    writeln!(file, "{password}").with_context(|| format!("`{}`", path.display()))?;
    file.sync_all().with_context(|| format!("`{}`", path.display()))?;
    Ok(true)
}
