//! `odoo install`: the guard and the three identities, by an administrator whose password is kept
//! nowhere.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, bail};
use countersign_odoo::Credential;
use countersign_odoo::guard::{self, InstallOptions, Installed};
use secrecy::SecretString;

use super::{Base, needs_odoo, odoo_companies};
use crate::gateway::{freeze, hex};
use crate::ids::{self, SystemRandomness};
use crate::keys::Keys;
use crate::settings::{Login, Settings};
use crate::store::Role;
use crate::store::freezes::FreezeScope;

/// Whose passwords were written now.
pub type Passwords = Vec<String>;

/// Prepares Odoo, and writes the identities' passwords to the configured files where absent. Replaces
/// a seal key under which orders were booked only where that is wanted and everything is frozen.
///
/// # Errors
/// What Odoo or a file refused.
pub async fn install(
    settings: &Settings,
    admin_login: &str,
    admin_password: String,
    replace_seal_key: bool,
) -> anyhow::Result<(Installed, Passwords)> {
    let odoo = needs_odoo(settings)?;
    if replace_seal_key {
        everything_is_frozen(settings).await?;
    }
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
        replace_seal_key,
    };
    let installed = guard::install(&options).await?;
    Ok((installed, written))
}

/// Nothing may be on its way under a key that gives way.
async fn everything_is_frozen(settings: &Settings) -> anyhow::Result<()> {
    let base = Base::open(settings.clone(), Role::Command).await?;
    let in_force = freeze::in_force(&base.store).await;
    base.close().await;
    if in_force?.iter().any(|freeze| freeze.scope == FreezeScope::All) {
        return Ok(());
    }
    bail!(
        "the seal key is replaced only while everything is frozen: run `countersign freeze add \
         --reason …` without a company first"
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"
        [server]
        listen = "127.0.0.1:8490"
        public_url = "http://127.0.0.1:8490"
        [store]
        url = "sqlite://countersign.db"
        [keys]
        dir = "keys"
        [erp]
        kind = "odoo"
        [erp.odoo]
        url = "http://127.0.0.1:9"
        database = "demo"
        time_zone = "UTC"
        reader = { login = "reader", password_file = "reader" }
        payer = { login = "payer", password_file = "payer" }
        bank_admin = { login = "bank-admin", password_file = "bank-admin" }
        [erp.odoo.companies]
        blue-sparrow = 1
    "#;

    #[tokio::test]
    async fn the_seal_key_is_replaced_only_while_everything_is_frozen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("countersign.toml");
        std::fs::write(&file, SETTINGS).unwrap();
        let settings = Settings::load(&file).unwrap();
        let replace = || install(&settings, "admin", "secret".to_owned(), true);
        let refused = replace().await.unwrap_err().to_string();
        assert!(refused.contains("countersign freeze add"), "{refused}");

        let base = Base::open(settings.clone(), Role::Command).await.unwrap();
        for (scope, frozen) in
            [(FreezeScope::Company("blue-sparrow".to_owned()), false), (FreezeScope::All, true)]
        {
            let (randomness, now) = (base.randomness.as_ref(), base.clock.now());
            freeze::add(&base.store, randomness, scope, "a test", "operator", now).await.unwrap();
            assert_eq!(everything_is_frozen(&settings).await.is_ok(), frozen);
        }
        base.close().await;
    }
}
