//! Attesting: what the database says is installed, against what this program knows.

use countersign_erp_source::{Attestation, Identity, ReadError, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::{
    ACTIONS, CONSTRAINTS, KEEP_NOTES_DOMAIN, TEMPLATE_EDITOR, TRIGGERS, digest_of, name, parameter,
    prove,
};
use crate::Odoo;
use crate::odoo::Told;
use crate::rpc::{CallError, FAULT_CREDENTIAL};

const INSTALL: &str = "run `countersign odoo install`";

/// What the action answers.
#[derive(Debug, Deserialize)]
struct Found {
    erp_time: Timestamp,
    database: String,
    installed_in: String,
    uuid: String,
    key_halves: u8,
    templates_restricted: String,
    editor_in: Vec<String>,
    /// Those that no group in that list explains.
    editors: Vec<String>,
    templates: Vec<String>,
    newest_seq: u64,
    models_of_table: u32,
    constraints: Vec<String>,
    actions: Vec<FoundAction>,
    triggers: Vec<FoundTrigger>,
    rules: Vec<FoundRule>,
    groups: Vec<FoundGroup>,
}

#[derive(Debug, Deserialize)]
struct FoundAction {
    name: String,
    state: String,
    code: String,
    groups: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct FoundTrigger {
    definition: String,
    enabled: String,
    body: String,
}

#[derive(Debug, Deserialize)]
struct FoundRule {
    name: String,
    model: String,
    domain: Option<String>,
    active: Option<bool>,
    global: Option<bool>,
    write: Option<bool>,
    unlink: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct FoundGroup {
    name: String,
    implied: Vec<String>,
    logins: Vec<String>,
}

/// Asks what is installed, and proves what each identity can do.
pub(crate) async fn attest(odoo: &Odoo, store: &str) -> Result<Attestation, ReadError> {
    // An administrator may have reinstalled under other ids since.
    odoo.forget_actions().await;
    let Some(action) = odoo.find_action(name::ATTEST).await? else {
        return Ok(not_installed(odoo));
    };
    let told: Result<Told<String>, _> = odoo.reader.run(action, json!({ "store": store })).await;
    let told = match told {
        Ok(told) => told,
        // A guard whose own attestation does not run is none, whatever it is.
        Err(CallError::Fault(fault)) if fault.code != FAULT_CREDENTIAL => {
            return Ok(not_installed(odoo));
        }
        Err(error) => return Err(error.of_read(Identity::Reader)),
    };
    let found: Found = serde_json::from_str(&told.countersign).map_err(|_unread| {
        ReadError::Malformed { what: "the attestation has another form than known".to_owned() }
    })?;
    let identities = prove::identities(odoo).await?;
    Ok(Attestation {
        erp_time: found.erp_time,
        newest_seq: found.newest_seq,
        guard_problems: problems(&found, odoo),
        identities,
    })
}

fn not_installed(odoo: &Odoo) -> Attestation {
    Attestation {
        erp_time: odoo.clock.now(),
        newest_seq: 0,
        guard_problems: vec![format!("the guard is not installed in Odoo: {INSTALL}")],
        identities: Vec::new(),
    }
}

fn problems(found: &Found, odoo: &Odoo) -> Vec<String> {
    let logins = [odoo.reader.login(), odoo.payer.login(), odoo.bank_admin.login()];
    let mut problems = Vec::new();
    database_problems(found, &odoo.database, &mut problems);
    code_problems(found, &mut problems);
    group_problems(found, logins, &mut problems);
    template_problems(found, &mut problems);
    problems
}

fn database_problems(found: &Found, database: &str, problems: &mut Vec<String>) {
    if found.database != database {
        problems.push(format!("Odoo answered from another database than `{database}`"));
    }
    if found.installed_in != format!("{}/{}", found.database, found.uuid) {
        problems.push(format!(
            "this database is a copy, or the guard was installed in another one: if it is to be \
             paid from, {INSTALL}"
        ));
    }
    if found.key_halves != 2 {
        problems.push(format!("the seal key is missing in Odoo: {INSTALL}"));
    }
    if found.models_of_table != 0 {
        problems.push(
            "a model of Odoo reaches a table of the guard: remove the models `countersign.*`"
                .to_owned(),
        );
    }
    let constraint_missing =
        CONSTRAINTS.iter().any(|known| !found.constraints.iter().any(|found| found == known));
    if constraint_missing {
        problems.push(format!("a table of the guard has lost a constraint: {INSTALL}"));
    }
}

fn code_problems(found: &Found, problems: &mut Vec<String>) {
    for known in &ACTIONS {
        let mut named = found.actions.iter().filter(|action| action.name == known.name);
        let fits = named.next().is_some_and(|action| {
            action.state == "code"
                && action.code == digest_of(known.code)
                && action.groups == [known.group]
        });
        if !fits || named.next().is_some() {
            let name = known.name;
            problems.push(format!("the action `{name}` is missing or was changed: {INSTALL}"));
        }
    }
    for unknown in &found.actions {
        if !ACTIONS.iter().any(|known| known.name == unknown.name) {
            problems.push(format!(
                "the action `{}` is none of ours: remove it, or {INSTALL}",
                unknown.name
            ));
        }
    }
    for known in &TRIGGERS {
        let fits = found.triggers.iter().any(|trigger| {
            trigger.definition == known.definition
                && matches!(trigger.enabled.as_str(), "O" | "A")
                && trigger.body == digest_of(known.body)
        });
        if !fits {
            let name = known.name;
            problems.push(format!("the trigger `{name}` is missing or was changed: {INSTALL}"));
        }
    }
    let rule_fits = found.rules.iter().any(|rule| {
        rule.name == name::KEEP_NOTES
            && rule.model == "mail.message"
            && rule.domain.as_deref() == Some(KEEP_NOTES_DOMAIN)
            && [rule.active, rule.global, rule.write, rule.unlink] == [Some(true); 4]
    });
    if !rule_fits {
        problems.push(format!("the rule that keeps notes is missing or was changed: {INSTALL}"));
    }
}

fn group_problems(found: &Found, logins: [&str; 3], problems: &mut Vec<String>) {
    let [reader, payer, bank_admin] = logins;
    let known: [(&str, &[&str], &str); 3] = [
        (name::READER, &["account.group_account_readonly", "base.group_user"], reader),
        (name::PAYER, &[], payer),
        (name::BANK_ADMIN, &["account.group_validate_bank_account"], bank_admin),
    ];
    for (group, implied, login) in known {
        let fits = found.groups.iter().any(|found| found.name == group && found.implied == implied);
        if !fits {
            problems.push(format!("the group `{group}` is missing or was changed: {INSTALL}"));
        }
        let others = found.groups.iter().filter(|found| found.name == group);
        for other in others.flat_map(|found| &found.logins).filter(|other| *other != login) {
            problems.push(format!("`{other}` is in the group `{group}`: take it out"));
        }
    }
}

/// Who writes an expression into a template of messages does in Odoo what an administrator does:
/// reads the key, switches our triggers off.
fn template_problems(found: &Found, problems: &mut Vec<String>) {
    if found.templates_restricted != "True" {
        let parameter = parameter::RESTRICT_TEMPLATES;
        problems.push(format!(
            "every internal user may run code by a template of messages: {INSTALL}, which sets \
             `{parameter}`"
        ));
    }
    for group in &found.editor_in {
        problems.push(format!(
            "the group `{group}` implies `{TEMPLATE_EDITOR}`, which lets its members run code: take \
             that out of it, or {INSTALL} if it is the group of all internal users"
        ));
    }
    for login in &found.editors {
        problems.push(format!(
            "`{login}` is no administrator and is in `{TEMPLATE_EDITOR}`, which lets it run code: \
             take it out"
        ));
    }
    for template in &found.templates {
        problems.push(format!(
            "`{template}` holds an expression and was written by somebody who is no administrator: \
             read it, and have an administrator delete it or make it anew"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Found {
        let group = |name: &str, implied: &[&str], login: &str| FoundGroup {
            name: name.to_owned(),
            implied: implied.iter().map(|id| (*id).to_owned()).collect(),
            logins: vec![login.to_owned()],
        };
        Found {
            erp_time: Timestamp::from_millis(0),
            database: "db".to_owned(),
            installed_in: "db/1-2".to_owned(),
            uuid: "1-2".to_owned(),
            key_halves: 2,
            templates_restricted: "True".to_owned(),
            editor_in: Vec::new(),
            editors: Vec::new(),
            templates: Vec::new(),
            newest_seq: 0,
            models_of_table: 0,
            constraints: CONSTRAINTS.map(str::to_owned).to_vec(),
            actions: ACTIONS
                .iter()
                .map(|known| FoundAction {
                    name: known.name.to_owned(),
                    state: "code".to_owned(),
                    code: digest_of(known.code),
                    groups: vec![known.group.to_owned()],
                })
                .collect(),
            triggers: TRIGGERS
                .iter()
                .map(|known| FoundTrigger {
                    definition: known.definition.to_owned(),
                    enabled: "O".to_owned(),
                    body: digest_of(known.body),
                })
                .collect(),
            rules: vec![FoundRule {
                name: name::KEEP_NOTES.to_owned(),
                model: "mail.message".to_owned(),
                domain: Some(KEEP_NOTES_DOMAIN.to_owned()),
                active: Some(true),
                global: Some(true),
                write: Some(true),
                unlink: Some(true),
            }],
            groups: vec![
                group(name::READER, &["account.group_account_readonly", "base.group_user"], "r"),
                group(name::PAYER, &[], "p"),
                group(name::BANK_ADMIN, &["account.group_validate_bank_account"], "b"),
            ],
        }
    }

    fn check(change: impl FnOnce(&mut Found)) -> Vec<String> {
        let mut found = whole();
        change(&mut found);
        let mut problems = Vec::new();
        database_problems(&found, "db", &mut problems);
        code_problems(&found, &mut problems);
        group_problems(&found, ["r", "p", "b"], &mut problems);
        template_problems(&found, &mut problems);
        problems
    }

    #[test]
    fn the_guard_as_installed_has_no_problem() {
        assert_eq!(check(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn every_change_to_the_guard_is_one_problem_that_says_what_to_do() {
        let changes: [fn(&mut Found); 26] = [
            |found| "x".clone_into(&mut found.uuid),
            |found| found.key_halves = 1,
            |found| found.models_of_table = 1,
            |found| drop(found.constraints.pop()),
            |found| drop(found.actions.pop()),
            |found| found.actions[0].code = digest_of("pass"),
            |found| found.actions[1].groups.push("Internal User".to_owned()),
            |found| found.actions[1].groups.clear(),
            |found| "object_write".clone_into(&mut found.actions[2].state),
            |found| "Countersign: other".clone_into(&mut found.actions[2].name),
            |found| drop(found.triggers.pop()),
            |found| "D".clone_into(&mut found.triggers[0].enabled),
            |found| found.triggers[1].body = digest_of("BEGIN RETURN NEW; END"),
            |found| found.triggers[2].definition.push('x'),
            |found| found.rules.clear(),
            |found| found.rules[0].active = Some(false),
            |found| found.rules[0].domain = None,
            |found| found.rules[0].global = Some(false),
            |found| found.groups[1].implied.push("base.group_user".to_owned()),
            |found| drop(found.groups.pop()),
            |found| found.groups[1].logins.push("clerk".to_owned()),
            |found| "other".clone_into(&mut found.database),
            |found| found.templates_restricted.clear(),
            |found| found.editor_in.push("Internal User".to_owned()),
            |found| found.editors.push("clerk".to_owned()),
            |found| found.templates.push("mail.template 9".to_owned()),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let problems = check(change);
            assert!(!problems.is_empty(), "change {at}");
            let says = |problem: &String| {
                [
                    "run `countersign odoo install`",
                    "take it out",
                    "remove the models",
                    "another database",
                    "an administrator delete it",
                ]
                .iter()
                .any(|words| problem.contains(words))
            };
            assert!(problems.iter().all(says), "{problems:?}");
        }
    }
}
