//! Installing, and that an attestation sees every change to what was installed.

use countersign_erp_source::{CompanyId, Contradiction, ErpSource, Identity, OrderError, SealKey};
use countersign_odoo::guard::{InstallError, install};
use countersign_odoo::{Credential, Odoo};
use secrecy::SecretString;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::scene::{self, Scene, credential};

async fn problems(scene: &Scene) -> Vec<String> {
    scene.odoo.attest(&scene.store).await.unwrap().problems()
}

/// Changes something, asserts that it is seen, installs again, and asserts that all is well.
async fn assert_seen_and_repaired(scene: &Scene, named: &str) {
    let found = problems(scene).await;
    assert!(found.iter().any(|problem| problem.contains(named)), "{named}: {found:?}");
    assert!(found.iter().all(|problem| problem.contains("countersign odoo install")), "{found:?}");
    install(&scene.install_options()).await.unwrap();
    assert_eq!(problems(scene).await, Vec::<String>::new());
}

async fn sql(scene: &Scene, statement: &str) {
    let code = format!("env.cr.execute('{statement}')\naction = {{'said': 'done'}}\n");
    scene.run_code(&code).await.unwrap();
}

#[tokio::test]
async fn installing_again_changes_nothing() {
    let Some(scene) = scene::enter_alone().await else { return };
    let done = install(&scene.install_options()).await.unwrap();
    assert_eq!(done, countersign_odoo::guard::Installed::default());
    assert_eq!(problems(&scene).await, Vec::<String>::new());
}

#[tokio::test]
async fn another_key_is_refused_once_something_was_booked() {
    let Some(scene) = scene::enter_alone().await else { return };
    let scenery = scene.open_bill("20.00").await;
    scene.pay(scene.order(&scenery)).await.unwrap();
    let mut options = scene.install_options();
    options.seal_key = SealKey::from_bytes([9; 32]);
    let answer = install(&options).await;
    assert!(matches!(answer, Err(InstallError::OtherKey { orders: 1.. })), "{answer:?}");
    assert!(answer.unwrap_err().to_string().contains("--replace-seal-key"));
    let next = scene.open_bill("20.00").await;
    scene.pay(scene.order(&next)).await.unwrap();
}

#[tokio::test]
async fn a_key_is_replaced_where_it_is_wanted_so() {
    let Some(scene) = scene::enter_alone().await else { return };
    let scenery = scene.open_bill("20.00").await;
    scene.pay(scene.order(&scenery)).await.unwrap();
    let next = scene.open_bill("20.00").await;
    let other = SealKey::from_bytes([9; 32]);
    let mut options = scene.install_options();
    options.seal_key = other.clone();
    options.replace_seal_key = true;
    assert!(install(&options).await.unwrap().key_set);
    // What the old key sealed is not booked any more, and what the new one seals is.
    let answer = scene.pay(scene.order(&next)).await;
    assert_eq!(answer, Err(OrderError::Contradicted(Contradiction::BadSeal)));
    let sealed = other.seal(scene.order(&next));
    let answer = scene.odoo.register_payment(&sealed).await;
    let attested = problems(&scene).await;

    options.seal_key = scene.key.clone();
    assert!(install(&options).await.unwrap().key_set);
    answer.unwrap();
    assert_eq!(attested, Vec::<String>::new());
    // Orders of before are on the table whatever key is there.
    assert_eq!(scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_administrator_never_becomes_an_identity() {
    let Some(scene) = scene::enter_alone().await else { return };
    let mut options = scene.install_options();
    options.reader.login.clone_from(&options.admin.login);
    let login = options.admin.login.clone();
    assert_eq!(install(&options).await, Err(InstallError::LoginIsAdministrator { login }));
    assert_eq!(problems(&scene).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_wrong_administrator_installs_nothing() {
    let Some(scene) = scene::enter().await else { return };
    let mut options = scene.install_options();
    options.admin = credential("cs-reader");
    let login = "cs-reader".to_owned();
    assert_eq!(install(&options).await, Err(InstallError::NotAdministrator { login }));
    options.admin = Credential { password: SecretString::from("wrong"), ..options.admin };
    assert_eq!(install(&options).await, Err(InstallError::Denied));
}

#[tokio::test]
async fn a_company_that_is_not_there_is_named() {
    let Some(scene) = scene::enter().await else { return };
    let mut options = scene.install_options();
    let company = CompanyId::new("red-fox").unwrap();
    options.companies.insert(company.clone(), 987_654);
    let answer = install(&options).await;
    assert_eq!(answer, Err(InstallError::NoCompany { company, id: 987_654 }));
    let text = answer.unwrap_err().to_string();
    assert!(text.contains("987654") && text.contains("`red-fox`"), "{text}");
}

#[tokio::test]
async fn a_changed_action_is_seen() {
    let Some(scene) = scene::enter_alone().await else { return };
    let pay = scene.action("Countersign: pay a bill").await;
    let code = "raise UserError('COUNTERSIGN bad_request')";
    scene.write("ir.actions.server", pay, json!({ "code": code })).await.unwrap();
    assert_seen_and_repaired(&scene, "Countersign: pay a bill").await;

    let look_up = scene.action("Countersign: look up an order").await;
    scene.write("ir.actions.server", look_up, json!({ "groups_id": [[5, 0, 0]] })).await.unwrap();
    assert_seen_and_repaired(&scene, "Countersign: look up an order").await;
}

#[tokio::test]
async fn a_missing_action_is_seen_and_pays_nothing() {
    let Some(scene) = scene::enter_alone().await else { return };
    let pay = scene.action("Countersign: pay a bill").await;
    let scenery = scene.open_bill("10.00").await;
    // The connector has seen the action before it goes.
    assert_eq!(problems(&scene).await, Vec::<String>::new());
    scene.admin.call::<bool>("ir.actions.server", "unlink", json!([[pay]])).await.unwrap();
    // What Odoo says of a missing record proves nothing; after it the action is asked for anew.
    let answer = scene.pay(scene.order(&scenery)).await;
    assert!(matches!(answer, Err(OrderError::OutcomeUnknown { .. })), "{answer:?}");
    let answer = scene.pay(scene.order(&scenery)).await;
    assert!(matches!(answer, Err(OrderError::NotSent { .. })), "{answer:?}");
    assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
    assert_seen_and_repaired(&scene, "Countersign: pay a bill").await;
    scene.pay(scene.order(&scenery)).await.unwrap();
}

#[tokio::test]
async fn a_trigger_that_does_not_fire_is_seen() {
    let Some(scene) = scene::enter_alone().await else { return };
    sql(&scene, "ALTER TABLE account_payment DISABLE TRIGGER countersign_keep_payment").await;
    assert_seen_and_repaired(&scene, "countersign_keep_payment").await;
    sql(&scene, "ALTER TABLE res_partner DISABLE TRIGGER countersign_log_vendor").await;
    assert_seen_and_repaired(&scene, "countersign_log_vendor").await;
    sql(&scene, "ALTER TABLE res_partner_bank DISABLE TRIGGER countersign_keep_account").await;
    assert_seen_and_repaired(&scene, "countersign_keep_account").await;
    sql(&scene, "DROP TRIGGER countersign_keep_order ON countersign_order").await;
    assert_seen_and_repaired(&scene, "countersign_keep_order").await;
}

#[tokio::test]
async fn what_was_booked_cannot_be_taken_off_the_table() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    scene.pay(scene.order(&scenery)).await.unwrap();
    for statement in [
        "DELETE FROM countersign_order",
        "UPDATE countersign_order SET amount = 1",
        "TRUNCATE countersign_order",
    ] {
        let code = format!("env.cr.execute('{statement}')\naction = {{'said': 'done'}}\n");
        assert!(scene.run_code(&code).await.is_err(), "{statement}");
    }
    assert_eq!(scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_right_too_many_is_seen() {
    let Some(scene) = scene::enter_alone().await else { return };
    for (login, group, named) in [
        ("cs-payer", "account.group_account_invoice", "payer: may"),
        ("cs-reader", "base.group_partner_manager", "reader: could write a bank account"),
        ("cs-bank-admin", "base.group_user", "bank-admin: may read"),
    ] {
        let domain = json!([["login", "=", login]]);
        let user: Vec<i32> =
            scene.admin.call("res.users", "search", json!([domain])).await.unwrap();
        let group = scene.group(group).await;
        let values = json!({ "groups_id": [[4, group, 0]] });
        scene.write("res.users", *user.first().unwrap(), values).await.unwrap();
        assert_seen_and_repaired(&scene, named).await;
    }
}

#[tokio::test]
async fn a_wrong_password_is_a_problem_of_that_identity_and_pays_nothing() {
    let Some(scene) = scene::enter().await else { return };
    let mut options = scene.options();
    options.payer.password = SecretString::from("wrong");
    let odoo = Odoo::new(options).unwrap();
    let attested = odoo.attest(&scene.store).await.unwrap();
    assert_eq!(attested.guard_problems, Vec::<String>::new());
    for proof in attested.identities {
        assert_eq!(proof.problems.is_empty(), proof.identity != Identity::Payer, "{proof:?}");
    }
    let scenery = scene.open_bill("10.00").await;
    let order = scene.sealed(scene.order(&scenery));
    let answer = odoo.register_payment(&order).await;
    assert!(matches!(answer, Err(OrderError::NotSent { .. })), "{answer:?}");
    assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
}

#[tokio::test]
async fn whoever_can_run_code_by_a_template_is_seen() {
    let Some(scene) = scene::enter_alone().await else { return };
    let restricted = "mail.restrict.template.rendering";
    let set = |value: bool| {
        let args = json!([restricted, value]);
        scene.admin.call::<IgnoredAny>("ir.config_parameter", "set_param", args)
    };
    set(false).await.unwrap();
    // What was written while everybody could still runs when nobody can any more.
    let model = json!([[["model", "=", "res.partner"]]]);
    let model: Vec<i32> = scene.admin.call("ir.model", "search", model).await.unwrap();
    let employee = scene.employee().await;
    let mut written = Vec::new();
    for (field, text) in [
        ("subject", "{{ object.name }}"),
        ("body_html", "<p\nt-out = \"object.name\"/>"),
        ("body_html", "<p class=\"price=1 t-shirt font-size: 2\">nothing to run</p>"),
    ] {
        let values = json!([{ "name": "x", "model_id": model.first(), field: text }]);
        written.push(employee.call::<i32>("mail.template", "create", values).await.unwrap());
    }
    let [subject, body, words] = written.as_slice() else { panic!("three templates") };
    let found = problems(&scene).await;
    for named in ["`Internal User` implies", "every internal user", "reader: is in `mail.group"] {
        assert!(found.iter().any(|problem| problem.contains(named)), "{named}: {found:?}");
    }
    install(&scene.install_options()).await.unwrap();
    let found = problems(&scene).await;
    assert_eq!(found.len(), 2, "{found:?}");
    for template in [subject, body] {
        let named = format!("`mail.template {template}`");
        assert!(found.iter().any(|problem| problem.contains(&named)), "{named}: {found:?}");
    }
    let gone = json!([[subject, body, words]]);
    scene.admin.call::<bool>("mail.template", "unlink", gone).await.unwrap();
    assert_eq!(problems(&scene).await, Vec::<String>::new());

    // One person, and a group that somebody made.
    let editor = scene.group("mail.group_mail_template_editor").await;
    let user = json!([[["login", "=", "cs-reader"]]]);
    let user: Vec<i32> = scene.admin.call("res.users", "search", user).await.unwrap();
    let values = json!({ "groups_id": [[4, editor, 0]] });
    scene.write("res.users", *user.first().unwrap(), values).await.unwrap();
    let found = problems(&scene).await;
    assert!(found.iter().any(|problem| problem.contains("`cs-reader` is no admin")), "{found:?}");
    let group = json!([{ "name": "Writers", "implied_ids": [[6, 0, [editor]]] }]);
    let group: i32 = scene.admin.call("res.groups", "create", group).await.unwrap();
    let found = problems(&scene).await;
    assert!(found.iter().any(|problem| problem.contains("`Writers` implies")), "{found:?}");
    scene.admin.call::<bool>("res.groups", "unlink", json!([[group]])).await.unwrap();
    install(&scene.install_options()).await.unwrap();
    assert_eq!(problems(&scene).await, Vec::<String>::new());
}
