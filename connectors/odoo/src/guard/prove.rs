//! Proving the identities by trying (I9): each attempt is one that must be refused, and that would
//! change nothing if it were not.

use countersign_erp_source::{Identity, IdentityProof, ReadError};
use serde::de::IgnoredAny;
use serde_json::json;

use super::{ACTIONS, TEMPLATE_EDITOR, name};
use crate::Odoo;
use crate::rpc::{CallError, FAULT_CREDENTIAL, FAULT_RIGHT, Session};

/// What no identity may write, and only the reader may read.
const RECORDS: [&str; 8] = [
    "account.move",
    "account.move.line",
    "account.payment",
    "account.payment.register",
    "account.journal",
    "res.partner",
    "res.partner.bank",
    "res.company",
];

/// What nobody but an administrator may touch.
const SETTINGS: [&str; 4] = ["ir.config_parameter", "ir.rule", "ir.model.access", "res.groups"];

/// What the reader must be able to read.
const READ: [&str; 9] = [
    "account.move",
    "account.move.line",
    "account.journal",
    "account.payment",
    "res.partner",
    "res.partner.bank",
    "res.company",
    "mail.message",
    "ir.rule",
];

const WRITES: [&str; 3] = ["write", "create", "unlink"];

/// Proves all three.
pub(super) async fn identities(odoo: &Odoo) -> Result<Vec<IdentityProof>, ReadError> {
    let (reader, payer, bank_admin) = tokio::join!(reader(odoo), payer(odoo), bank_admin(odoo));
    [(Identity::Reader, reader), (Identity::Payer, payer), (Identity::BankAdmin, bank_admin)]
        .into_iter()
        .map(|(identity, problems)| match problems {
            Ok(problems) => Ok(IdentityProof { identity, problems }),
            Err(error) if error.is_of_credential() => {
                let problem = "Odoo refuses its login or password: put the right password into its \
                               password file, or run `countersign odoo install`";
                Ok(IdentityProof { identity, problems: vec![problem.to_owned()] })
            }
            Err(error) => Err(error.of_read(identity)),
        })
        .collect()
}

async fn reader(odoo: &Odoo) -> Result<Vec<String>, CallError> {
    let mut problems = Vec::new();
    let session = &odoo.reader;
    for model in READ {
        if !may(session, model, "read").await? {
            problems.push(format!("cannot read `{model}`: run `countersign odoo install`"));
        }
    }
    for model in RECORDS {
        must_not(session, model, &WRITES, &mut problems).await?;
    }
    for model in SETTINGS {
        must_not(session, model, &WRITES, &mut problems).await?;
    }
    must_not(session, "ir.actions.server", &WRITES, &mut problems).await?;
    must_not(session, "ir.config_parameter", &["read"], &mut problems).await?;
    writes_no_templates(session, &mut problems).await?;
    cannot_touch_accounts(odoo, session, &mut problems).await?;
    only_runs(odoo, session, name::READER, &mut problems).await?;
    Ok(problems)
}

async fn payer(odoo: &Odoo) -> Result<Vec<String>, CallError> {
    let mut problems = Vec::new();
    let session = &odoo.payer;
    has_no_rights(odoo, session, &mut problems).await?;
    only_runs(odoo, session, name::PAYER, &mut problems).await?;
    Ok(problems)
}

async fn bank_admin(odoo: &Odoo) -> Result<Vec<String>, CallError> {
    let mut problems = Vec::new();
    let session = &odoo.bank_admin;
    has_no_rights(odoo, session, &mut problems).await?;
    only_runs(odoo, session, name::BANK_ADMIN, &mut problems).await?;
    let group = "account.group_validate_bank_account";
    if !has_group(session, group).await? {
        problems.push("cannot trust an account: run `countersign odoo install`".to_owned());
    }
    Ok(problems)
}

/// The actions of its own group can be run, all others cannot.
async fn only_runs(
    odoo: &Odoo,
    session: &Session,
    group: &str,
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    for action in &ACTIONS {
        // A missing action is a problem of the guard, and named there.
        let Some(id) = odoo.action_for_proof(action.name).await? else { continue };
        if action.group == group {
            can_run(session, id, action.name, problems).await?;
        } else if !refused(session.run::<IgnoredAny>(id, json!({})).await)? {
            problems.push(too_much(&format!("can run the action `{}`", action.name)));
        }
    }
    Ok(())
}

/// Told nothing, an action refuses in its own words, which shows that it can be run.
async fn can_run(
    session: &Session,
    id: i32,
    action: &str,
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    match session.run::<IgnoredAny>(id, json!({})).await {
        Err(CallError::Fault(fault)) if fault.marker() == Some("bad_request") => {}
        Err(error @ (CallError::NotSent(_) | CallError::Denied(_) | CallError::Lost(_))) => {
            return Err(error);
        }
        Err(error) if error.is_of_credential() => return Err(error),
        Ok(_) | Err(CallError::Fault(_) | CallError::Unreadable(_)) => problems
            .push(format!("cannot run the action `{action}`: run `countersign odoo install`")),
    }
    Ok(())
}

async fn has_no_rights(
    odoo: &Odoo,
    session: &Session,
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    for model in RECORDS.iter().chain(&SETTINGS).chain(&["ir.actions.server", "mail.message"]) {
        must_not(session, model, &["read", "write", "create", "unlink"], problems).await?;
    }
    writes_no_templates(session, problems).await?;
    cannot_touch_accounts(odoo, session, problems).await
}

/// By an expression in a template an identity would have every right there is.
async fn writes_no_templates(
    session: &Session,
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    if has_group(session, TEMPLATE_EDITOR).await? {
        problems.push(too_much(&format!("is in `{TEMPLATE_EDITOR}`")));
    }
    Ok(())
}

async fn has_group(session: &Session, group: &str) -> Result<bool, CallError> {
    session.call("res.users", "has_group", json!([group]), json!({})).await
}

async fn may(session: &Session, model: &str, operation: &str) -> Result<bool, CallError> {
    let named = json!({ "raise_exception": false });
    session.call(model, "check_access_rights", json!([operation]), named).await
}

async fn must_not(
    session: &Session,
    model: &str,
    operations: &[&str],
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    for operation in operations {
        if may(session, model, operation).await? {
            problems.push(too_much(&format!("may {operation} `{model}`")));
        }
    }
    Ok(())
}

/// The rights' own answer is not taken for it where money could go astray: writing and creating are
/// tried, in forms that change nothing where the right is there.
async fn cannot_touch_accounts(
    odoo: &Odoo,
    session: &Session,
    problems: &mut Vec<String>,
) -> Result<(), CallError> {
    let attempts = [("write", json!([[some_account(odoo).await?], {}])), ("create", json!([{}]))];
    for (method, args) in attempts {
        let tried = session.call::<IgnoredAny>("res.partner.bank", method, args, json!({})).await;
        if !refused(tried)? {
            problems.push(too_much(&format!("could {method} a bank account")));
        }
    }
    Ok(())
}

/// Any bank account, since Odoo looks for a missing record before it looks at the right.
async fn some_account(odoo: &Odoo) -> Result<i32, CallError> {
    let named = json!({ "limit": 1, "context": { "active_test": false } });
    let found: Vec<i32> =
        odoo.reader.call("res.partner.bank", "search", json!([[]]), named).await?;
    Ok(found.first().copied().unwrap_or(i32::MAX))
}

/// Whether Odoo refused for want of a right. An attempt without an answer proves nothing.
fn refused(tried: Result<IgnoredAny, CallError>) -> Result<bool, CallError> {
    match tried {
        Err(CallError::Fault(fault)) if fault.code != FAULT_CREDENTIAL => {
            Ok(fault.code == FAULT_RIGHT)
        }
        Ok(_) => Ok(false),
        Err(error) => Err(error),
    }
}

fn too_much(what: &str) -> String {
    format!("{what}: take its other groups away in Odoo, or run `countersign odoo install`")
}
