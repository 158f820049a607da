//! What stands beside a bill in Odoo speaks against paying it: the same bill entered twice, a credit
//! note, another vendor with the same account.

use countersign_odoo::seed::{BillSeed, VendorSeed};
use serde_json::json;

use super::scene::{House, Payable, Scene, executed};
use crate::daemon::Answer;

async fn enter(scene: &Scene, payable: &Payable, reference: &str, total: &str, date: &str) -> i32 {
    let seed = BillSeed {
        company: 1,
        vendor: payable.vendor.vendor,
        reference,
        total,
        date,
        due: "2099-12-31",
    };
    scene.bill(&seed).await
}

async fn attention(house: &House, bill: i32) -> serde_json::Value {
    house.agent.get(&format!("/v1/bills/{bill}")).await.json["attention"].clone()
}

#[track_caller]
fn waits_for_four_eyes(answer: &Answer, reason: &str) {
    assert_eq!(answer.text("/status"), "pending", "{}", answer.json);
    assert_eq!(
        (answer.text("/approval/level").as_str(), answer.reasons()),
        ("four_eyes", vec![reason.to_owned()])
    );
}

#[tokio::test]
async fn a_bill_that_was_entered_twice_is_paid_once() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("190.00").await;
    // With other signs, in the other case, over another total.
    let spelled = payable.reference.replace('-', " / ").to_lowercase();
    let twin = enter(&scene, &payable, &spelled, "12.00", "2026-01-15").await;
    let house = scene.house(&[&payable]).await;
    assert_eq!(attention(&house, payable.bill).await, json!(["possible_duplicate"]));
    let denied = house.agent.propose("a", &payable.whole()).await;
    denied.is_denied(403, "policy", "likely-duplicate-never-paid");
    scene.withdraw(twin).await;
    assert_eq!(attention(&house, payable.bill).await, json!([]));
    executed(&house.agent, house.agent.propose("b", &payable.whole()).await).await;
    // What was paid counts, though somebody rewrites its reference in Odoo.
    let edit = json!([[payable.bill], { "ref": "rewritten" }]);
    scene.call::<bool>("account.move", "write", edit).await;
    let again = enter(&scene, &payable, &payable.reference, "13.00", "2026-02-15").await;
    let vendor = json!({ "ref": payable.vendor.vendor.to_string() });
    let again = crate::daemon::pay_to(&again.to_string(), &vendor, "13.00");
    let denied = house.agent.propose("c", &again).await;
    denied.is_denied(403, "policy", "likely-duplicate-never-paid");
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn the_same_total_a_credit_note_and_a_shared_account_take_four_eyes() {
    let Some(scene) = Scene::enter().await else { return };
    let (similar, credited, shared) = (
        scene.payable("191.00").await,
        scene.payable("192.00").await,
        scene.payable("193.00").await,
    );
    let billed = scene.dated(similar.bill).await;
    enter(&scene, &similar, "X-1", "191.00", &billed).await;
    scene.credit_note(&credited, "4.00").await;
    let house = scene.house(&[&similar, &credited, &shared]).await;
    let answer = house.agent.propose("a", &similar.whole()).await;
    waits_for_four_eyes(&answer, "similar-bill-needs-four-eyes");
    let answer = house.agent.propose("b", &credited.whole()).await;
    waits_for_four_eyes(&answer, "open-credit-needs-four-eyes");
    assert_eq!(attention(&house, credited.bill).await, json!(["open_credit"]));
    // After the first contact another vendor gets the same account.
    let twin = VendorSeed { name: "Twin", phone: "", iban: &shared.iban, trusted: false };
    let twin = scene.vendor(&twin).await;
    let of_twin = Payable { vendor: twin, ..scene.payable("1.00").await };
    enter(&scene, &of_twin, "T-1", "5.00", &billed).await;
    let answer = house.agent.propose("c", &shared.whole()).await;
    waits_for_four_eyes(&answer, "shared-account-needs-four-eyes");
    for payable in [&similar, &credited, &shared] {
        scene.assert_unpaid(payable).await;
    }
}
