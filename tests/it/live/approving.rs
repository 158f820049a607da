//! What a human has to say first is said over HTTP, and Odoo books only after it.

use countersign_odoo::seed::BillSeed;
use serde_json::{Value, json};

use super::scene::{House, Scene, executed};
use crate::daemon::{Answer, COMPANY, pay_to};
use crate::votes::{approve, is_pending};

/// The installation ends whole, with all that happened in its ledger.
#[track_caller]
fn verifies(house: House) {
    house.daemon.stop();
    house.installation.ok(&["receipts", "verify"], "");
}

fn attention(bill: &Answer) -> Value {
    bill.json["attention"].clone()
}

#[tokio::test]
async fn a_step_up_is_voted_over_http_and_booked_once() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("6400.00").await;
    let house = scene.house(&[&payable]).await;
    house.installation.add_user("paul", "approver", COMPANY);
    let pending = house.agent.propose("a", &payable.whole()).await;
    is_pending(&pending, "step_up");
    assert_eq!(pending.reasons(), ["large-amount-needs-step-up"]);
    let marie = house.daemon.sign_in("marie").await;
    let paul = house.daemon.sign_in("paul").await;
    approve(&house.agent, &pending).await.is_problem(403, "humans_only");
    approve(&paul, &pending).await.is_problem(403, "not_an_approver");
    scene.assert_unpaid(&payable).await;

    let waiting = marie.get("/v1/approvals").await;
    assert_eq!(waiting.text("/items/0/id"), pending.text("/id"));
    assert_eq!(waiting.text("/items/0/params/payee_iban/value"), payable.iban, "whole for humans");
    let paid = executed(&marie, approve(&marie, &pending).await).await;
    assert_eq!(paid.text("/result/bill_state"), "paid");
    assert_eq!(paid.json["approval"]["granted_by"], json!(["marie"]));
    approve(&marie, &pending).await.is_problem(409, "already_decided");
    scene.assert_paid_once(&payable).await;
    verifies(house);
}

#[tokio::test]
async fn a_bill_that_was_edited_in_odoo_is_not_the_one_that_was_voted_for() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("6500.00").await;
    let house = scene.house(&[&payable]).await;
    let pending = house.agent.propose("a", &payable.whole()).await;
    is_pending(&pending, "step_up");
    let edit = json!([[payable.bill], { "ref": "another reference" }]);
    scene.call::<bool>("account.move", "write", edit).await;
    let marie = house.daemon.sign_in("marie").await;
    let changed = approve(&marie, &pending).await;
    is_pending(&changed, "step_up");
    assert_ne!(changed.text("/operation_hash"), pending.text("/operation_hash"));
    assert_eq!(changed.json["approval"]["granted_by"], json!([]), "the vote is void");
    approve(&marie, &pending).await.is_problem(409, "operation_changed");
    scene.assert_unpaid(&payable).await;
    executed(&marie, approve(&marie, &changed).await).await;
    scene.assert_paid_once(&payable).await;
    verifies(house);
}

#[tokio::test]
async fn bills_with_one_reference_are_refused_until_an_approver_says_that_they_are_two() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("210.00").await;
    // With other signs, in the other case, over another total.
    let spelled = payable.reference.replace('-', " / ").to_lowercase();
    let twin = BillSeed {
        company: 1,
        vendor: payable.vendor.vendor,
        reference: &spelled,
        total: "12.00",
        date: "2026-01-15",
        due: "2099-12-31",
    };
    let twin = scene.bill(&twin).await.to_string();
    let house = scene.house(&[&payable]).await;
    house.installation.add_user("paul", "approver", COMPANY);
    let of_twin = pay_to(&twin, &json!({ "ref": payable.vendor.vendor.to_string() }), "12.00");
    for (key, proposal) in [("a", &payable.whole()), ("b", &of_twin)] {
        let denied = house.agent.propose(key, proposal).await;
        denied.is_denied(403, "policy", "likely-duplicate-never-paid");
    }
    for bill in [&payable.bill.to_string(), &twin] {
        let bill = house.agent.get(&format!("/v1/bills/{bill}")).await;
        assert_eq!(attention(&bill), json!(["possible_duplicate"]));
    }
    scene.assert_unpaid(&payable).await;

    let word = json!({ "other": payable.bill.to_string(), "reason": "one delivery a week" });
    let path = format!("/v1/bills/{twin}/not-duplicate");
    let marie = house.daemon.sign_in("marie").await;
    marie.post_json(&path, &word).await.is_problem(403, "not_an_approver");
    let paul = house.daemon.sign_in("paul").await;
    let cleared = paul.post_json(&path, &word).await;
    assert_eq!(cleared.status.as_u16(), 201, "{}", cleared.json);
    executed(&house.agent, house.agent.propose("c", &payable.whole()).await).await;
    executed(&house.agent, house.agent.propose("d", &of_twin).await).await;
    assert_eq!(scene.payments(&payable).await.len(), 2);
    verifies(house);
}

#[tokio::test]
async fn an_open_credit_waits_for_a_second_person_and_is_then_paid_in_full() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("220.00").await;
    scene.credit_note(&payable, "4.00").await;
    let house = scene.house(&[&payable]).await;
    house.installation.add_user("paul", "approver", COMPANY);
    let bill = house.agent.get(&format!("/v1/bills/{}", payable.bill)).await;
    assert_eq!(attention(&bill), json!(["open_credit"]));
    let pending = house.agent.propose("a", &payable.whole()).await;
    is_pending(&pending, "four_eyes");
    assert_eq!(pending.reasons(), ["open-credit-needs-four-eyes"]);
    let marie = house.daemon.sign_in("marie").await;
    approve(&marie, &pending).await.is_problem(403, "self_approval");
    scene.assert_unpaid(&payable).await;
    let paul = house.daemon.sign_in("paul").await;
    let paid = executed(&paul, approve(&paul, &pending).await).await;
    assert_eq!(paid.json["approval"]["granted_by"], json!(["paul"]));
    // The credit stands as it did: nothing of it was used up behind anybody's back.
    scene.assert_paid_once(&payable).await;
    verifies(house);
}

#[tokio::test]
async fn a_payment_by_hand_that_no_bill_used_up_is_a_credit_and_one_that_was_used_up_is_none() {
    let Some(scene) = Scene::enter().await else { return };
    let (ahead, settled) = (scene.payable("230.00").await, scene.payable("240.00").await);
    scene.paid_ahead(&ahead, "50.00").await;
    let note = scene.credit_note(&settled, "9.00").await;
    scene.use_up(&settled, note).await;
    let house = scene.house(&[&ahead, &settled]).await;
    let pending = house.agent.propose("a", &ahead.whole()).await;
    is_pending(&pending, "four_eyes");
    assert_eq!(pending.reasons(), ["open-credit-needs-four-eyes"]);
    // What is left of the other one is less by the note.
    let vendor = json!({ "ref": settled.vendor.vendor.to_string() });
    let rest = pay_to(&settled.bill.to_string(), &vendor, "231.00");
    executed(&house.agent, house.agent.propose("b", &rest).await).await;
    verifies(house);
}
