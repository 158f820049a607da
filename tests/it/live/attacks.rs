//! What people with ordinary rights in Odoo, and stolen credentials, do; and why nothing comes of it.

use countersign_odoo::seed::{SeedError, Seeder};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::people::{CONTACT_MANAGER, overwrite_account};
use super::scene::{House, Payable, Scene, executed, mandate, new_iban};

/// What Odoo let that person do. The answer itself says little: methods that return nothing are
/// reported as failed after they worked.
async fn tries(who: &Seeder, model: &str, method: &str, args: Value) -> Result<(), SeedError> {
    who.call::<IgnoredAny>(model, method, args).await.map(drop)
}

#[track_caller]
fn assert_refused(answer: Result<(), SeedError>, what: &str) {
    let text = answer.map_err(|error| error.to_string()).expect_err(what);
    assert!(text.contains("fault 2") || text.contains("fault 4"), "{what}: {text}");
}

async fn assert_denied(house: &House, key: &str, payable: &Payable) {
    let answer = house.agent.propose(key, &payable.whole()).await;
    assert_eq!(answer.text("/status"), "denied", "{key}: {}", answer.json);
}

#[tokio::test]
async fn reader_and_payer_cannot_alter_or_add_an_account() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("60.00").await;
    let (vendor, account) = (payable.vendor.vendor, payable.vendor.account);
    let iban = new_iban();
    for login in ["cs-reader", "cs-payer"] {
        let who = scene.identity(login);
        let added = json!({ "bank_ids": [[0, 0, { "acc_number": iban }]] });
        for (model, method, args) in [
            ("res.partner.bank", "write", json!([[account], { "acc_number": iban }])),
            ("res.partner.bank", "write", json!([[account], { "active": false }])),
            ("res.partner.bank", "write", json!([[account], { "partner_id": 1 }])),
            ("res.partner.bank", "create", json!([{ "partner_id": vendor, "acc_number": iban }])),
            ("res.partner.bank", "unlink", json!([[account]])),
            ("res.partner", "write", json!([[vendor], added])),
            ("account.move", "write", json!([[payable.bill], { "partner_bank_id": account }])),
        ] {
            assert_refused(tries(&who, model, method, args).await, &format!("{login} {model}"));
        }
    }
    let house = scene.house(&[&payable]).await;
    executed(&house.agent, house.agent.propose("k", &payable.whole()).await).await;
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn the_payers_credential_without_a_sealed_order_books_nothing() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("70.00").await;
    let payer = scene.identity("cs-payer");
    let action = scene.action("Countersign: pay a bill").await;
    let order = json!({ "bill": payable.bill.to_string(), "amount": "70.00" }).to_string();
    for told in [
        json!({ "order": order, "seal": "0".repeat(64) }),
        json!({ "order": order, "seal": "" }),
        json!({ "order": order }),
        json!({}),
    ] {
        let answer = payer.run(action, told.clone()).await.map_err(|error| error.to_string());
        let refusal = answer.expect_err("an order without a seal");
        let named = refusal.contains("bad_seal") || refusal.contains("bad_request");
        assert!(named, "{told}: {refusal}");
    }
    let wizard = json!([{ "payment_date": "2026-11-29" }]);
    let direct = json!([{ "amount": "70.00", "partner_id": payable.vendor.vendor }]);
    for (model, method, args) in [
        ("account.payment.register", "create", wizard),
        ("account.payment", "create", direct),
        ("account.payment", "search_count", json!([[]])),
        ("ir.config_parameter", "get_param", json!(["countersign.seal_inner"])),
        ("ir.actions.server", "write", json!([[action], { "code": "pass" }])),
    ] {
        assert_refused(tries(&payer, model, method, args).await, model);
    }
    scene.assert_unpaid(&payable).await;
}

#[tokio::test]
async fn a_clerk_who_erases_what_he_can_gets_no_second_payment() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("120.00").await;
    let house = scene.house(&[&payable]).await;
    let paid = executed(&house.agent, house.agent.propose("k", &payable.whole()).await).await;
    let payment: i32 = paid.text("/result/payment_ref").parse().unwrap();
    let clerk = scene.person("billing", &["account.group_account_invoice"]).await;

    let of_bill = json!([[["move_id", "=", payable.bill]]]);
    let lines: Vec<i32> =
        scene.books.admin.call("account.move.line", "search", of_bill).await.unwrap();
    let bill = payable.bill;
    for (at, (model, method, args)) in [
        ("account.move.line", "remove_move_reconcile", json!([lines])),
        ("account.payment", "write", json!([[payment], { "ref": "x", "payment_reference": "x" }])),
        ("account.move", "write", json!([[bill], { "ref": "x", "payment_reference": "x" }])),
        (
            "account.move",
            "write",
            json!([[bill], { "payment_state": "not_paid", "amount_residual": "120.00" }]),
        ),
        ("account.payment", "action_draft", json!([[payment]])),
        ("account.payment", "action_cancel", json!([[payment]])),
        ("account.payment", "unlink", json!([[payment]])),
        ("account.move", "button_draft", json!([[bill]])),
        ("account.move", "action_post", json!([[bill]])),
    ]
    .into_iter()
    .enumerate()
    {
        // Some of it Odoo or the guard refuses; what counts is that no second payment comes of it.
        drop(tries(&clerk, model, method, args).await);
        assert_denied(&house, &format!("k{at}"), &payable).await;
        assert_eq!(scene.payments(&payable).await.len(), 1, "after {method} of {model}");
    }

    // Nor does it from a gateway whose store knows nothing of the first one.
    let stranger = scene.house(&[&payable]).await;
    let again = stranger.agent.propose("k", &payable.whole()).await;
    assert_ne!(again.text("/status"), "executed", "{}", again.json);
    assert_eq!(scene.payments(&payable).await.len(), 1);
}

#[tokio::test]
async fn a_bill_with_a_forged_total_is_not_paid_and_not_paid_again() {
    let Some(scene) = Scene::enter().await else { return };
    let (forged, paid) = (scene.payable("90.00").await, scene.payable("91.00").await);
    let house = scene.house(&[&forged, &paid]).await;
    let clerk = scene.person("clerk", &["account.group_account_manager"]).await;
    executed(&house.agent, house.agent.propose("paid", &paid.whole()).await).await;
    for payable in [&forged, &paid] {
        let figures = json!({
            "amount_total": "900.00", "amount_residual": "900.00", "payment_state": "not_paid",
        });
        tries(&clerk, "account.move", "write", json!([[payable.bill], figures])).await.unwrap();
        assert_denied(&house, &format!("again-{}", payable.bill), payable).await;
    }
    scene.assert_unpaid(&forged).await;
    scene.assert_paid_once(&paid).await;
}

#[tokio::test]
async fn a_bill_with_a_forged_vendor_pays_neither() {
    let Some(scene) = Scene::enter().await else { return };
    let (payable, thief) = (scene.payable("80.00").await, scene.payable("1.00").await);
    let house = scene.house(&[&payable, &thief]).await;
    let clerk = scene.person("clerk", &["account.group_account_manager"]).await;
    let forged = json!([[payable.bill], { "commercial_partner_id": thief.vendor.vendor }]);
    tries(&clerk, "account.move", "write", forged).await.unwrap();
    for (key, payee) in [
        ("own", json!(payable.iban)),
        ("thief", json!(thief.iban)),
        ("ref", json!({ "ref": payable.vendor.vendor.to_string() })),
        ("ref-thief", json!({ "ref": thief.vendor.vendor.to_string() })),
    ] {
        let answer = house.agent.propose(key, &payable.to(&payee)).await;
        assert_eq!(answer.text("/status"), "denied", "{key}: {}", answer.json);
    }
    scene.assert_unpaid(&payable).await;
    scene.assert_unpaid(&thief).await;
}

#[tokio::test]
async fn an_account_overwritten_in_odoo_is_never_paid() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("150.00").await;
    let house = scene.house(&[&payable]).await;
    let manager = scene.person("contacts", &CONTACT_MANAGER).await;
    let theirs = new_iban();
    overwrite_account(&manager, payable.vendor.account, &theirs).await.unwrap();
    let changed = "account-changed-in-erp-never-paid";
    house.agent.propose("a", &payable.whole()).await.is_denied(403, "policy", changed);
    let named = house.agent.propose("b", &payable.to(&json!(theirs))).await;
    named.is_denied(403, "policy", changed);
    // Writing the old number back makes nothing as it was.
    overwrite_account(&manager, payable.vendor.account, &payable.iban).await.unwrap();
    house.agent.propose("c", &payable.whole()).await.is_denied(403, "policy", changed);
    // Nor does another daemon's start on the same store.
    let House { installation, daemon, .. } = house;
    daemon.stop();
    let daemon = installation.start().await;
    let agent = daemon.agent(&mandate(&installation, "another"));
    agent.propose("d", &payable.whole()).await.is_denied(403, "policy", changed);
    scene.assert_unpaid(&payable).await;
}
