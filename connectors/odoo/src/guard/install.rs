//! Installing: what an administrator does once, over the external API alone, and may do again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use countersign_erp_source::{CompanyId, SealKey};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{ACTIONS, KEEP_NOTES_DOMAIN, database_objects, hex, name, parameter};
use crate::http::Endpoint;
use crate::options::{Credential, OptionsError, check_companies, check_logins};
use crate::rpc::{CallError, Server, Session};
use crate::wire::Maybe;

/// How long one step may take; creating users and triggers is slow on a busy server.
const STEP_DEADLINE: Duration = Duration::from_mins(2);

/// What an installation needs.
#[derive(Debug, Clone)]
pub struct InstallOptions {
    /// The address.
    pub url: String,
    /// The database.
    pub database: String,
    /// As in [`crate::Options`].
    pub allow_plaintext: bool,
    /// An administrator. Used here and kept nowhere.
    pub admin: Credential,
    /// Countersign's companies and their ids in Odoo. The first is where the identities belong.
    pub companies: BTreeMap<CompanyId, i32>,
    /// The key that seals orders.
    pub seal_key: SealKey,
    /// The identity that reads.
    pub reader: Credential,
    /// The identity that hands sealed orders over.
    pub payer: Credential,
    /// The identity that hands sealed changes of bank details over.
    pub bank_admin: Credential,
    /// Whether users that are there already get these passwords too.
    pub set_passwords: bool,
    /// Whether another key gives way though orders were booked under it. What is sealed with that
    /// one and on its way is not booked any more, so nothing must be: freeze everything first.
    pub replace_seal_key: bool,
}

/// What an installation did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The logins that were created.
    pub created_users: Vec<String>,
    /// The logins whose password was set, created ones included.
    pub passwords_set: Vec<String>,
    /// The actions that were created or brought to this version.
    pub changed_actions: Vec<String>,
    /// Whether the key was put there by this installation.
    pub key_set: bool,
}

/// Why an installation ended. What it did before stays and does no harm; it can be run again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// Something in the options cannot be right.
    #[error("the configuration cannot be right")]
    Options(#[from] OptionsError),
    /// Odoo did not accept the administrator's login or password.
    #[error("Odoo refused the login or the password of the administrator")]
    Denied,
    /// The login has not the right to set up Odoo.
    #[error(
        "`{login}` is no administrator of Odoo: it needs the group `Administration / Settings`"
    )]
    NotAdministrator {
        /// Which login.
        login: String,
    },
    /// Another version than the guard was made for.
    #[error("this is Odoo `{version}`; the guard is made for Odoo 17.0")]
    Version {
        /// As Odoo names it.
        version: String,
    },
    /// A module or record of Odoo's own that must be there.
    #[error("Odoo has no `{what}`: {remedy}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A company of the configuration that Odoo does not have.
    #[error(
        "Odoo has no company {id}, which the configuration names for `{company}`: put its id there"
    )]
    NoCompany {
        /// Countersign's name for it.
        company: CompanyId,
        /// Its id, as it is configured.
        id: i32,
    },
    /// Orders were booked under another key, which may be the right one.
    #[error(
        "another seal key is installed and {orders} orders were booked under it: put that key back, \
         or, if it is lost or stolen, freeze everything and install with `--replace-seal-key`"
    )]
    OtherKey {
        /// How many.
        orders: u64,
    },
    /// A login that must not become one of the identities.
    #[error("`{login}` is an administrator of Odoo and cannot become an identity of Countersign")]
    LoginIsAdministrator {
        /// Which login.
        login: String,
    },
    /// A step failed.
    #[error("{step}: {reason}")]
    Step {
        /// What was being done.
        step: &'static str,
        /// For people; repeats no record.
        reason: String,
    },
}

/// Installs everything, or brings what is there to this version.
pub async fn install(options: &InstallOptions) -> Result<Installed, InstallError> {
    check_companies(&options.companies)?;
    check_logins([&options.reader.login, &options.payer.login, &options.bank_admin.login])?;
    let admin = Admin::open(options)?;
    let mut done = Installed::default();

    admin.check_rights(&options.admin.login).await?;
    admin.check_companies(&options.companies).await?;
    admin.remove_leftovers().await?;
    admin.one_step("create the tables and triggers", &statement(&database_objects())).await?;
    // Before the key is there for anybody to read.
    admin.only_editors_write_templates().await?;
    admin.notes_stay().await?;
    done.key_set = admin.put_key(&options.seal_key, options.replace_seal_key).await?;

    let user = admin.xml_id("base", "group_user").await?;
    let readonly = admin.xml_id("account", "group_account_readonly").await?;
    let validate = admin.xml_id("account", "group_validate_bank_account").await?;
    let groups = Groups {
        reader: admin.group(name::READER, &[user, readonly]).await?,
        payer: admin.group(name::PAYER, &[]).await?,
        bank_admin: admin.group(name::BANK_ADMIN, &[validate]).await?,
    };
    for action in &ACTIONS {
        let group = match action.group {
            name::PAYER => groups.payer,
            name::BANK_ADMIN => groups.bank_admin,
            _ => groups.reader,
        };
        if admin.action(action.name, action.code, group).await? {
            done.changed_actions.push(action.name.to_owned());
        }
    }
    admin.reader_reads(name::FIND_ACTIONS, "ir.actions.server", groups.reader).await?;
    admin.reader_reads(name::SEE_RULES, "ir.rule", groups.reader).await?;
    for (credential, group) in [
        (&options.reader, groups.reader),
        (&options.payer, groups.payer),
        (&options.bank_admin, groups.bank_admin),
    ] {
        admin.user(options, credential, group, &mut done).await?;
    }
    admin.remember_database(&options.database).await?;
    Ok(done)
}

struct Groups {
    reader: i32,
    payer: i32,
    bank_admin: i32,
}

#[derive(Deserialize)]
struct Id {
    id: i32,
}

#[derive(Deserialize)]
struct XmlId {
    res_id: i32,
}

#[derive(Deserialize)]
struct Module {
    latest_version: Maybe<String>,
}

#[derive(Deserialize)]
struct InstalledAction {
    code: Maybe<String>,
    groups_id: Vec<i32>,
}

#[derive(Deserialize)]
struct Told {
    countersign: String,
}

/// An administrator's session, for as long as an installation takes.
struct Admin {
    session: Session,
}

impl Admin {
    fn open(options: &InstallOptions) -> Result<Self, InstallError> {
        let endpoint = Endpoint::new(&options.url, options.allow_plaintext, STEP_DEADLINE)?;
        let server = Arc::new(Server { endpoint, database: options.database.clone() });
        Ok(Self { session: Session::new(server, options.admin.clone()) })
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        step: &'static str,
        model: &str,
        method: &str,
        args: Json,
    ) -> Result<T, InstallError> {
        // Names are compared, so they are read and written in one language.
        let named = json!({ "context": {
            "lang": "en_US", "tz": "UTC", "active_test": false, "no_reset_password": true,
        } });
        self.session.call(model, method, args, named).await.map_err(|error: CallError| {
            if error.is_of_credential() {
                return InstallError::Denied;
            }
            InstallError::Step { step, reason: error.for_log() }
        })
    }

    async fn search(
        &self,
        step: &'static str,
        model: &str,
        domain: Json,
    ) -> Result<Vec<i32>, InstallError> {
        self.call(step, model, "search", json!([domain])).await
    }

    async fn check_rights(&self, login: &str) -> Result<(), InstallError> {
        let step = "check the administrator's rights";
        let system: bool =
            self.call(step, "res.users", "has_group", json!(["base.group_system"])).await?;
        if !system {
            return Err(InstallError::NotAdministrator { login: login.to_owned() });
        }
        for module in ["account", "base_iban"] {
            let domain = json!([["name", "=", module], ["state", "=", "installed"]]);
            let found: Vec<Module> = self
                .call(step, "ir.module.module", "search_read", json!([domain, ["latest_version"]]))
                .await?;
            let Some(found) = found.first() else {
                let remedy = format!("install the module `{module}` first");
                return Err(InstallError::Missing { what: module.to_owned(), remedy });
            };
            let version = found.latest_version.as_ref().map_or("", String::as_str);
            if !version.starts_with("17.0.") {
                return Err(InstallError::Version { version: version.to_owned() });
            }
        }
        Ok(())
    }

    async fn check_companies(
        &self,
        companies: &BTreeMap<CompanyId, i32>,
    ) -> Result<(), InstallError> {
        let found = self.search("look for the companies", "res.company", json!([])).await?;
        match companies.iter().find(|(_, id)| !found.contains(id)) {
            Some((company, id)) => {
                Err(InstallError::NoCompany { company: company.clone(), id: *id })
            }
            None => Ok(()),
        }
    }

    async fn remove_leftovers(&self) -> Result<(), InstallError> {
        let step = "remove what an interrupted installation left";
        let domain = json!([["name", "=", name::ONE_STEP]]);
        let left = self.search(step, "ir.actions.server", domain).await?;
        if !left.is_empty() {
            let _removed: bool =
                self.call(step, "ir.actions.server", "unlink", json!([left])).await?;
        }
        Ok(())
    }

    /// Runs code once, by an action that is gone afterwards, whatever came of it.
    async fn one_step(&self, step: &'static str, code: &str) -> Result<String, InstallError> {
        let model = self.model("res.users").await?;
        let values = json!({
            "name": name::ONE_STEP, "model_id": model, "state": "code", "code": code,
        });
        let action: i32 = self.call(step, "ir.actions.server", "create", json!([values])).await?;
        let ran: Result<Told, _> =
            self.call(step, "ir.actions.server", "run", json!([[action]])).await;
        let _removed: bool =
            self.call(step, "ir.actions.server", "unlink", json!([[action]])).await?;
        Ok(ran?.countersign)
    }

    /// As Odoo's own setting does it: setting the parameter also takes the group of editors from
    /// what every internal user has.
    async fn only_editors_write_templates(&self) -> Result<(), InstallError> {
        let step = "let only editors write templates of messages";
        let args = json!([parameter::RESTRICT_TEMPLATES, true]);
        let _before: Before = self.call(step, "ir.config_parameter", "set_param", args).await?;
        Ok(())
    }

    /// Puts the key there where none is; a different one only where nothing was booked yet, or where
    /// it is wanted so.
    async fn put_key(&self, key: &SealKey, replace: bool) -> Result<bool, InstallError> {
        let step = "install the seal key";
        let halves = [(parameter::SEAL_INNER, 0x36), (parameter::SEAL_OUTER, 0x5c)]
            .map(|(name, pad)| (name, padded(key, pad)));
        let (mut missing, mut other) = (false, false);
        for (name, wanted) in &halves {
            let value: Maybe<String> =
                self.call(step, "ir.config_parameter", "get_param", json!([name])).await?;
            match value.as_ref() {
                Some(value) => other |= value != wanted.expose_secret(),
                None => missing = true,
            }
        }
        if !missing && !other {
            return Ok(false);
        }
        if other && !replace {
            self.check_nothing_was_booked(step).await?;
        }
        for (name, wanted) in &halves {
            let args = json!([name, wanted.expose_secret()]);
            let _before: Before = self.call(step, "ir.config_parameter", "set_param", args).await?;
        }
        Ok(true)
    }

    async fn check_nothing_was_booked(&self, step: &'static str) -> Result<(), InstallError> {
        let code = "env.cr.execute('SELECT count(*)::text FROM countersign_order')\n\
                    action = {'countersign': env.cr.fetchone()[0]}\n";
        let counted = self.one_step(step, code).await?;
        match counted.parse::<u64>() {
            Ok(0) => Ok(()),
            Ok(orders) => Err(InstallError::OtherKey { orders }),
            Err(_) => Err(InstallError::Step { step, reason: "no count of orders".to_owned() }),
        }
    }

    async fn model(&self, model: &str) -> Result<i32, InstallError> {
        let domain = json!([["model", "=", model]]);
        let found = self.search("find a model", "ir.model", domain).await?;
        found.first().copied().ok_or_else(|| InstallError::Missing {
            what: model.to_owned(),
            remedy: "install the module that has it first".to_owned(),
        })
    }

    async fn xml_id(&self, module: &str, id: &str) -> Result<i32, InstallError> {
        let domain = json!([["module", "=", module], ["name", "=", id]]);
        let args = json!([domain, ["res_id"]]);
        let found: Vec<XmlId> =
            self.call("find a group", "ir.model.data", "search_read", args).await?;
        found.first().map(|found| found.res_id).ok_or_else(|| InstallError::Missing {
            what: format!("{module}.{id}"),
            remedy: format!("install the module `{module}` first"),
        })
    }

    /// Writes the values to the one record that the domain finds, or creates it.
    async fn keep(
        &self,
        step: &'static str,
        model: &str,
        domain: Json,
        values: Json,
    ) -> Result<i32, InstallError> {
        let found = self.search(step, model, domain).await?;
        let Some(id) = found.first().copied() else {
            return self.call(step, model, "create", json!([values])).await;
        };
        let _written: bool = self.call(step, model, "write", json!([[id], values])).await?;
        // A second record of the same name is none of ours to keep.
        let others: Vec<i32> = found.into_iter().skip(1).collect();
        if !others.is_empty() {
            let _removed: bool = self.call(step, model, "unlink", json!([others])).await?;
        }
        Ok(id)
    }

    async fn group(&self, group: &str, implied: &[i32]) -> Result<i32, InstallError> {
        let values = json!({ "name": group, "implied_ids": [[6, 0, implied]] });
        let domain = json!([["name", "=", group]]);
        self.keep("create the groups", "res.groups", domain, values).await
    }

    /// Whether the action was not there in this version.
    async fn action(&self, name: &str, code: &str, group: i32) -> Result<bool, InstallError> {
        let step = "install the actions";
        let fields = json!([[["name", "=", name]], ["code", "groups_id"]]);
        let found: Vec<InstalledAction> =
            self.call(step, "ir.actions.server", "search_read", fields).await?;
        if let [found] = found.as_slice() {
            let same_code = found.code.as_ref().is_some_and(|installed| installed == code);
            if same_code && found.groups_id == [group] {
                return Ok(false);
            }
        }
        let values = json!({
            "name": name, "model_id": self.model("res.users").await?, "state": "code",
            "code": code, "groups_id": [[6, 0, [group]]],
        });
        let domain = json!([["name", "=", name]]);
        let _id = self.keep(step, "ir.actions.server", domain, values).await?;
        Ok(true)
    }

    async fn reader_reads(&self, name: &str, model: &str, group: i32) -> Result<(), InstallError> {
        let values = json!({
            "name": name, "model_id": self.model(model).await?, "group_id": group,
            "perm_read": true, "perm_write": false, "perm_create": false, "perm_unlink": false,
        });
        let step = "let the reader see what is installed";
        self.keep(step, "ir.model.access", json!([["name", "=", name]]), values).await.map(|_id| ())
    }

    async fn notes_stay(&self) -> Result<(), InstallError> {
        let step = "keep the notes on vendors";
        let model = self.model("mail.message").await?;
        let named = json!([["name", "=", name::KEEP_NOTES]]);
        let fitting = json!([
            ["name", "=", name::KEEP_NOTES],
            ["model_id", "=", model],
            ["domain_force", "=", KEEP_NOTES_DOMAIN],
            ["groups", "=", false],
            ["active", "=", true],
            ["perm_read", "=", false],
            ["perm_write", "=", true],
            ["perm_create", "=", false],
            ["perm_unlink", "=", true],
        ]);
        // Notes are evidence since the rule was last written, so it is not written for nothing.
        let there = self.search(step, "ir.rule", named.clone()).await?;
        if there.len() == 1 && there == self.search(step, "ir.rule", fitting).await? {
            return Ok(());
        }
        let values = json!({
            "name": name::KEEP_NOTES, "model_id": model, "domain_force": KEEP_NOTES_DOMAIN,
            "groups": [[6, 0, []]], "active": true, "perm_read": false, "perm_write": true,
            "perm_create": false, "perm_unlink": true,
        });
        self.keep(step, "ir.rule", named, values).await.map(|_id| ())
    }

    async fn user(
        &self,
        options: &InstallOptions,
        credential: &Credential,
        group: i32,
        done: &mut Installed,
    ) -> Result<(), InstallError> {
        let step = "create the identities";
        let login = &credential.login;
        let companies: Vec<i32> = options.companies.values().copied().collect();
        let mut values = json!({
            "groups_id": [[6, 0, [group]]], "company_ids": [[6, 0, companies]],
            "company_id": companies.first(), "lang": "en_US", "tz": "UTC", "active": true,
        });
        let mut also = |key: &str, value: &str| {
            if let Some(values) = values.as_object_mut() {
                values.insert(key.to_owned(), json!(value));
            }
        };
        let found: Vec<Id> = self
            .call(step, "res.users", "search_read", json!([[["login", "=", login]], ["id"]]))
            .await?;
        let Some(Id { id }) = found.first() else {
            also("name", login);
            also("login", login);
            also("password", credential.password.expose_secret());
            let _id: i32 = self.call(step, "res.users", "create", json!([values])).await?;
            done.created_users.push(login.clone());
            done.passwords_set.push(login.clone());
            return Ok(());
        };
        // Taking an administrator's groups away would lock people out of their own ERP.
        let system = self.xml_id("base", "group_system").await?;
        let domain = json!([["id", "=", id], ["groups_id", "in", [system]]]);
        if !self.search(step, "res.users", domain).await?.is_empty() {
            return Err(InstallError::LoginIsAdministrator { login: login.clone() });
        }
        if options.set_passwords {
            also("password", credential.password.expose_secret());
            done.passwords_set.push(login.clone());
        }
        let _written: bool = self.call(step, "res.users", "write", json!([[id], values])).await?;
        Ok(())
    }

    /// A copy of a database brings everything along, and would book orders of the original.
    async fn remember_database(&self, database: &str) -> Result<(), InstallError> {
        let step = "remember the database";
        let uuid: Maybe<String> =
            self.call(step, "ir.config_parameter", "get_param", json!(["database.uuid"])).await?;
        let value = format!("{database}/{}", uuid.as_ref().map_or("", String::as_str));
        let args = json!([parameter::INSTALLED_IN, value]);
        let _before: Before = self.call(step, "ir.config_parameter", "set_param", args).await?;
        Ok(())
    }
}

/// The value that a parameter had before: a text, or false, or true. Of no interest.
type Before = serde::de::IgnoredAny;

/// Code that runs statements as they are and says so.
fn statement(sql: &str) -> String {
    format!("env.cr.execute(\"\"\"\n{sql}\"\"\")\naction = {{'countersign': 'done'}}\n")
}

/// A half of the key as HMAC uses it: padded to a block and combined with a constant.
fn padded(key: &SealKey, pad: u8) -> SecretString {
    let mut block = [pad; 64];
    for (place, byte) in block.iter_mut().zip(key.bytes()) {
        *place ^= byte;
    }
    SecretString::from(hex(&block))
}
