//! What people with ordinary rights do to what was booked, and why no second payment comes of it.

use countersign_erp_source::{
    BookedState, ErpSource, Inconsistency, LookUp, Order, OrderError, PaymentOrder, Refusal,
};
use countersign_odoo::guard::install;
use countersign_odoo::seed::{SeedError, Seeder};
use serde::de::IgnoredAny;
use serde_json::{Value as Json, json};

use crate::scene::{self, Scene, Scenery, bill_id, credential, new_iban, vendor_id};

/// What Odoo let that person do. The answer itself says little: methods that return nothing are
/// reported as failed after they worked.
pub(crate) async fn tries(
    who: &Seeder,
    model: &str,
    method: &str,
    args: Json,
) -> Result<(), SeedError> {
    who.call::<IgnoredAny>(model, method, args).await.map(drop)
}

#[track_caller]
pub(crate) fn assert_refused(answer: Result<(), SeedError>, what: &str) {
    let text = answer.map_err(|error| error.to_string()).expect_err(what);
    assert!(text.contains("fault 2") || text.contains("fault 4"), "{what}: {text}");
}

async fn look_up(scene: &Scene, order: &PaymentOrder) -> countersign_erp_source::Booked {
    let (company, bill, marker) = (order.company.clone(), order.bill.clone(), order.marker.clone());
    let wanted = LookUp { company, bill, marker };
    scene.odoo.look_up(&wanted).await.unwrap().booked.unwrap()
}

async fn assert_no_second_payment(scene: &Scene, scenery: &Scenery) {
    let before = scene.payments_to(scenery.vendor.vendor).await.len();
    let again = scene.pay(scene.order(scenery)).await;
    assert!(matches!(again, Err(OrderError::Refused(_))), "{again:?}");
    assert_eq!(scene.payments_to(scenery.vendor.vendor).await.len(), before);
}

#[tokio::test]
async fn a_clerk_can_draft_our_payment_but_not_delete_or_change_it_and_nothing_is_paid_twice() {
    let Some(scene) = scene::enter().await else { return };
    let clerk = scene.clerk().await;
    let scenery = scene.open_bill("310.00").await;
    let order = scene.order(&scenery);
    let payment: i32 = scene.pay(order.clone()).await.unwrap().payment.as_str().parse().unwrap();
    let other = scene.open_bill("5.00").await;

    let write = |values: Json| json!([[payment], values]);
    let account = write(json!({ "partner_bank_id": other.vendor.account }));
    assert_refused(tries(&clerk, "account.payment", "write", account.clone()).await, "account");
    assert_eq!(look_up(&scene, &order).await.differences(&order), vec![]);

    drop(tries(&clerk, "account.payment", "action_draft", json!([[payment]])).await);
    assert_eq!(look_up(&scene, &order).await.state, BookedState::Draft);
    for values in [
        json!({ "amount": "1.00" }),
        json!({ "partner_id": other.vendor.vendor }),
        json!({ "partner_bank_id": other.vendor.account }),
        json!({ "payment_type": "inbound" }),
    ] {
        let answer = tries(&clerk, "account.payment", "write", write(values.clone())).await;
        assert_refused(answer, &values.to_string());
    }
    assert_refused(tries(&clerk, "account.payment", "unlink", json!([[payment]])).await, "delete");

    // The bill is open again, and what we ordered for it still counts.
    let reading = scene.odoo.find_bill(&scene.company, &order.bill).await.unwrap().unwrap();
    assert!(reading.bill.is_open());
    let again = scene.pay(scene.order(&scenery)).await;
    assert_eq!(again, Err(OrderError::Refused(Refusal::AmountExceedsResidual)));
    let booked = scene.pay(order.clone()).await.unwrap();
    assert_eq!(booked.state, BookedState::Draft);
    assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
}

#[tokio::test]
async fn a_billing_clerk_who_erases_what_he_can_causes_no_second_payment() {
    let Some(scene) = scene::enter().await else { return };
    let clerk = scene.billing_clerk().await;
    let scenery = scene.open_bill("120.00").await;
    let order = scene.order(&scenery);
    let payment: i32 = scene.pay(order.clone()).await.unwrap().payment.as_str().parse().unwrap();

    let (bill, line) = (scenery.bill, json!([["move_id", "=", scenery.bill]]));
    let lines: Vec<i32> =
        scene.admin.call("account.move.line", "search", json!([line])).await.unwrap();
    drop(tries(&clerk, "account.move.line", "remove_move_reconcile", json!([lines])).await);
    assert_no_second_payment(&scene, &scenery).await;
    for (model, id, values) in [
        ("account.payment", payment, json!({ "ref": "other", "payment_reference": "other" })),
        ("account.move", bill, json!({ "ref": "other", "payment_reference": "other" })),
        ("account.move", bill, json!({ "payment_state": "not_paid", "amount_residual": "120.00" })),
    ] {
        drop(tries(&clerk, model, "write", json!([[id], values])).await);
        assert_no_second_payment(&scene, &scenery).await;
    }
    drop(tries(&clerk, "account.payment", "action_draft", json!([[payment]])).await);
    drop(tries(&clerk, "account.payment", "action_cancel", json!([[payment]])).await);
    assert_no_second_payment(&scene, &scenery).await;
    assert_refused(tries(&clerk, "account.payment", "unlink", json!([[payment]])).await, "delete");
    // He drafts the bill, raises it, and posts it again: another total than the pinned one.
    drop(tries(&clerk, "account.move", "button_draft", json!([[bill]])).await);
    assert_no_second_payment(&scene, &scenery).await;
    drop(tries(&clerk, "account.move", "action_post", json!([[bill]])).await);
    assert_no_second_payment(&scene, &scenery).await;
    let recorded = scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap();
    assert_eq!(recorded.len(), 1);
    assert_eq!(recorded.first().unwrap().marker, order.marker);
}

#[tokio::test]
async fn forged_header_figures_are_seen_and_not_paid() {
    let Some(scene) = scene::enter().await else { return };
    let clerk = scene.clerk().await;
    for forged in [
        json!({ "amount_total": "900.00" }),
        json!({ "amount_residual": "900.00" }),
        json!({ "amount_total": "900.00", "amount_residual": "900.00" }),
    ] {
        let scenery = scene.open_bill("90.00").await;
        let args = json!([[scenery.bill], forged]);
        tries(&clerk, "account.move", "write", args).await.unwrap();
        let bill = scene.odoo.find_bill(&scene.company, &bill_id(scenery.bill)).await;
        let bill = bill.unwrap().unwrap().bill;
        assert_eq!(bill.consistent_vendor(), Err(Inconsistency::Figures), "{forged}");
        let answer = scene.pay(scene.order(&scenery)).await;
        assert_eq!(answer, Err(OrderError::Refused(Refusal::FiguresInconsistent)), "{forged}");
        assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
    }
}

#[tokio::test]
async fn a_forged_vendor_is_seen_and_not_paid() {
    let Some(scene) = scene::enter().await else { return };
    let clerk = scene.clerk().await;
    let scenery = scene.open_bill("80.00").await;
    let thief = scene.open_bill("1.00").await;
    let forged = json!([[scenery.bill], { "commercial_partner_id": thief.vendor.vendor }]);
    tries(&clerk, "account.move", "write", forged).await.unwrap();
    let bill = scene.odoo.find_bill(&scene.company, &bill_id(scenery.bill)).await;
    let bill = bill.unwrap().unwrap().bill;
    assert_eq!(bill.consistent_vendor(), Err(Inconsistency::Vendors));
    // Neither to the one nor to the other, whatever the daemon believed.
    let to_thief = Scenery { vendor: thief.vendor, iban: thief.iban.clone(), ..scenery.clone() };
    for order in [scene.order(&scenery), scene.order(&to_thief)] {
        let answer = scene.pay(order).await;
        assert_eq!(answer, Err(OrderError::Refused(Refusal::VendorInconsistent)));
    }
    assert!(scene.payments_to(thief.vendor.vendor).await.is_empty());
}

#[tokio::test]
async fn the_payers_credential_alone_books_nothing() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("70.00").await;
    let payer = scene.identity(credential("cs-payer"));
    let sealed = scene.sealed(scene.order(&scenery));
    let domain = json!([["name", "=", "Countersign: pay a bill"]]);
    let action: Vec<i32> =
        scene.admin.call("ir.actions.server", "search", json!([domain])).await.unwrap();

    // A text of his own, under no seal, another's seal, and the seal of another text.
    let mut dearer = scene.order(&scenery);
    dearer.memo = "more".to_owned();
    for (order, seal) in [
        (dearer.exact_text(), sealed.seal().to_owned()),
        (dearer.exact_text(), String::new()),
        (dearer.exact_text(), "0".repeat(64)),
        (format!("{} ", sealed.text()), sealed.seal().to_owned()),
    ] {
        let told = json!({ "order": order, "seal": seal });
        let answer = payer.run(*action.first().unwrap(), told).await;
        assert!(answer.unwrap_err().to_string().contains("bad_seal"));
    }
    for told in [json!({}), json!({ "order": "{}" }), json!({ "order": [1], "seal": {} })] {
        let answer = payer.run(*action.first().unwrap(), told).await;
        assert!(answer.unwrap_err().to_string().contains("bad_request"));
    }

    // Nor does any other way of Odoo's own.
    let wizard = json!([{ "payment_date": "2026-11-29" }]);
    let direct = json!([{ "amount": "1.00", "partner_id": scenery.vendor.vendor }]);
    for (model, method, args) in [
        ("account.payment.register", "create", wizard),
        ("account.payment", "create", direct),
        ("account.move", "search_count", json!([[]])),
        ("account.payment", "search_count", json!([[]])),
        ("res.partner.bank", "search_count", json!([[]])),
        ("ir.config_parameter", "get_param", json!(["countersign.seal_inner"])),
        ("ir.actions.server", "create", json!([{ "name": "x" }])),
        ("ir.actions.server", "write", json!([[action.first()], { "code": "pass" }])),
    ] {
        assert_refused(tries(&payer, model, method, args).await, model);
    }
    assert!(scene.payments_to(scenery.vendor.vendor).await.is_empty());
}

#[tokio::test]
async fn neither_reader_nor_payer_can_add_or_alter_an_account() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("60.00").await;
    let (vendor, account) = (scenery.vendor.vendor, scenery.vendor.account);
    let iban = new_iban().electronic().to_owned();
    for login in ["cs-reader", "cs-payer", "cs-bank-admin"] {
        let who = scene.identity(credential(login));
        let number = json!({ "acc_number": iban });
        let added = json!({ "bank_ids": [[0, 0, { "acc_number": iban }]] });
        for (model, method, args) in [
            ("res.partner.bank", "write", json!([[account], number])),
            ("res.partner.bank", "write", json!([[account], { "active": false }])),
            ("res.partner.bank", "create", json!([{ "partner_id": vendor, "acc_number": iban }])),
            ("res.partner.bank", "unlink", json!([[account]])),
            ("res.partner", "write", json!([[vendor], added])),
            ("account.move", "write", json!([[scenery.bill], { "partner_bank_id": account }])),
        ] {
            assert_refused(tries(&who, model, method, args).await, &format!("{login} {model}"));
        }
    }
    let reading = scene.odoo.find_bill(&scene.company, &bill_id(scenery.bill)).await;
    let vendor = reading.unwrap().unwrap().vendor.unwrap();
    assert_eq!(vendor.accounts.len(), 1);
    assert_eq!(vendor.accounts.first().unwrap().number.iban(), Some(&scenery.iban));
}

#[tokio::test]
async fn a_contact_manager_cannot_erase_that_an_account_was_changed() {
    let Some(scene) = scene::enter().await else { return };
    let manager = scene.contact_manager().await;
    let scenery = scene.open_bill("50.00").await;
    let account = scenery.vendor.account;
    let untrusted = json!([[account], { "allow_out_payment": false }]);
    tries(&scene.admin, "res.partner.bank", "write", untrusted).await.unwrap();
    let number = json!([[account], { "acc_number": new_iban().electronic() }]);
    tries(&manager, "res.partner.bank", "write", number).await.unwrap();

    let notes = json!([["model", "=", "res.partner"], ["res_id", "=", scenery.vendor.vendor]]);
    let notes: Vec<i32> = scene.admin.call("mail.message", "search", json!([notes])).await.unwrap();
    assert!(!notes.is_empty());
    assert_refused(tries(&manager, "mail.message", "unlink", json!([notes])).await, "erase");
    let body = json!([notes, { "body": "nothing happened" }]);
    assert_refused(tries(&manager, "mail.message", "write", body).await, "rewrite");
    let reading = scene.odoo.find_bill(&scene.company, &bill_id(scenery.bill)).await;
    let vendor = reading.unwrap().unwrap().vendor.unwrap();
    assert!(vendor.accounts.first().unwrap().changed_after_creation);
}

#[tokio::test]
async fn notes_of_before_the_installation_make_no_changed_account_an_old_one() {
    let Some(scene) = scene::enter_alone().await else { return };
    // As before an installation: notes can be deleted.
    let rule = json!([[["name", "=", "Countersign: notes on vendors and accounts stay"]]]);
    let rule: Vec<i32> = scene.admin.call("ir.rule", "search", rule).await.unwrap();
    scene.admin.call::<bool>("ir.rule", "unlink", json!([rule])).await.unwrap();
    let manager = scene.contact_manager().await;
    let (changed, touched) = (scene.open_bill("51.00").await, scene.open_bill("52.00").await);
    let untouched = scene.open_bill("53.00").await;
    let created = scene.erp_time().await;
    while scene.erp_time().await.as_secs() <= created.as_secs() {}

    let write = |scenery: &Scenery, values: Json| {
        let account = json!([[scenery.vendor.account], values]);
        let manager = &manager;
        async move { tries(manager, "res.partner.bank", "write", account).await.unwrap() }
    };
    let untrusted = json!({ "allow_out_payment": false });
    scene.write("res.partner.bank", changed.vendor.account, untrusted).await.unwrap();
    write(&changed, json!({ "acc_number": new_iban().electronic() })).await;
    write(&touched, json!({ "sequence": 3 })).await;
    let vendor = changed.vendor.vendor;
    let notes = json!([["model", "=", "res.partner"], ["res_id", "=", vendor]]);
    let found: Vec<i32> = scene.admin.call("mail.message", "search", json!([notes])).await.unwrap();
    tries(&manager, "mail.message", "unlink", json!([found])).await.unwrap();
    let account = changed.vendor.account;
    let forged = json!([{
        "model": "res.partner", "res_id": vendor, "message_type": "notification",
        "body": format!(
            "<p>Bank Account <a href=\"#\" data-oe-model=\"res.partner.bank\" \
             data-oe-id=\"{account}\">#{account}</a> created</p>"
        ),
    }]);
    let read = |scenery: &Scenery| {
        let id = vendor_id(scenery.vendor.vendor);
        let scene = &scene;
        async move {
            let vendor = scene.odoo.find_vendor(&scene.company, &id).await.unwrap().unwrap();
            vendor.accounts.first().unwrap().clone()
        }
    };
    let last_write = scene.erp_time().await;
    while scene.erp_time().await.as_secs() <= last_write.as_secs() {}
    install(&scene.install_options()).await.unwrap();
    // Forged before or after makes no difference: it is not of the moment of the creation.
    tries(&manager, "mail.message", "create", forged.clone()).await.unwrap();

    for scenery in [&changed, &touched] {
        let account = read(scenery).await;
        assert!(account.changed_after_creation, "{account:?}");
        assert!(account.unchanged_since.unwrap().as_secs() > created.as_secs(), "{account:?}");
        // Touched again, in a way that is no change under the rule, it does not become older.
        let before = account.unchanged_since;
        write(scenery, json!({ "sequence": 4 })).await;
        let account = read(scenery).await;
        assert!(account.changed_after_creation && account.unchanged_since >= before);
    }
    // What nobody wrote after it was created is as old as it is.
    let account = read(&untouched).await;
    assert!(!account.changed_after_creation, "{account:?}");
    assert!(account.unchanged_since.unwrap().as_secs() <= created.as_secs(), "{account:?}");
    let attested = scene.odoo.attest(&scene.store).await.unwrap();
    assert_eq!(attested.problems(), Vec::<String>::new());
}

/// Expressions that would do what only an administrator may, were anybody to run them.
const EXPRESSIONS: [&str; 2] = [
    "{{ user.env['ir.config_parameter'].sudo().get_param('countersign.seal_inner') }}",
    "{{ user.env.cr.execute('ALTER TABLE countersign_order DISABLE TRIGGER USER; \
     DELETE FROM countersign_order') }}",
];

#[tokio::test]
async fn nobody_reads_the_key_or_reaches_the_orders_by_a_template_of_messages() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    scene.pay(scene.order(&scenery)).await.unwrap();
    let model = json!([[["model", "=", "res.partner"]]]);
    let model: Vec<i32> = scene.admin.call("ir.model", "search", model).await.unwrap();
    let mut people = vec![
        ("employee", scene.employee().await),
        ("billing clerk", scene.billing_clerk().await),
        ("contact manager", scene.contact_manager().await),
        ("reader", scene.identity(credential("cs-reader"))),
        ("payer", scene.identity(credential("cs-payer"))),
    ];
    people.extend(scene.buyer().await.map(|buyer| ("buyer", buyer)));
    for (who, person) in &people {
        for expression in EXPRESSIONS {
            let code = expression.trim_matches(['{', '}', ' ']);
            let directive = format!("<p t-out=\"{code}\"/>");
            let template = |field: &str, text: &str| json!([{ "name": "x", "model_id": model.first(), field: text }]);
            for (model, args) in [
                ("mail.template", template("subject", expression)),
                ("mail.template", template("email_from", expression)),
                ("mail.template", template("body_html", &directive)),
                ("sms.template", template("body", expression)),
            ] {
                assert_refused(tries(person, model, "create", args).await, who);
            }
            // A template without an expression is everybody's, and gets none afterwards.
            if let Ok(id) =
                person.call::<i32>("mail.template", "create", template("subject", "Hello")).await
            {
                let subject = json!([[id], { "subject": expression }]);
                assert_refused(tries(person, "mail.template", "write", subject).await, who);
                let words = json!([[id], "subject", { "en_US": expression }]);
                let method = "update_field_translations";
                assert_refused(tries(person, "mail.template", method, words).await, who);
            }
            // Nor is an expression run in a message that is sent without a template.
            let message = json!([{
                "composition_mode": "mass_mail", "model": "res.partner", "res_ids": "[1]",
                "subject": expression, "body": directive,
            }]);
            if let Ok(id) = person.call::<i32>("mail.compose.message", "create", message).await {
                let sent = tries(person, "mail.compose.message", "action_send_mail", json!([[id]]));
                assert_refused(sent.await, who);
            }
            let message = json!([{
                "composition_mode": "mass", "res_model": "res.partner", "res_ids": "[1]",
                "body": expression,
            }]);
            if let Ok(id) = person.call::<i32>("sms.composer", "create", message).await {
                let sent = tries(person, "sms.composer", "action_send_sms", json!([[id]]));
                assert_refused(sent.await, who);
            }
        }
    }
    assert_eq!(scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap().len(), 1);
    let attested = scene.odoo.attest(&scene.store).await.unwrap();
    assert_eq!(attested.problems(), Vec::<String>::new());
}
