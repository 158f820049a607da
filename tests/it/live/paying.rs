//! Honest bills are paid, once, and nothing else is.

use serde_json::json;

use super::scene::{Scene, executed, mandate};
use crate::daemon::pay_to;

/// A valid number that no vendor has.
const EMAILS: &str = "NL91ABNA0417164300";

#[tokio::test]
async fn an_agent_pays_both_bills_and_odoo_holds_two_reconciled_payments() {
    let Some(scene) = Scene::enter().await else { return };
    let (acme, globex) = (scene.payable("1840.00").await, scene.payable("1200.00").await);
    let house = scene.house(&[&acme, &globex]).await;
    for payable in [&acme, &globex] {
        let listed = house
            .agent
            .get(&format!("/v1/bills?state=open&vendor_reference={}", payable.reference))
            .await;
        assert_eq!(listed.text("/items/0/invoice_ref"), payable.bill.to_string());
        assert_eq!(listed.text("/items/0/amount_due"), payable.total);
        assert_eq!(listed.json["items"][0]["attention"], json!([]), "{}", listed.json);
    }
    executed(&house.agent, house.agent.propose("a", &acme.whole()).await).await;
    let named = globex.to(&json!(globex.iban));
    let paid = executed(&house.agent, house.agent.propose("b", &named).await).await;
    assert_eq!(paid.text("/result/amount_due"), "0.00");
    assert_eq!(paid.text("/result/bill_state"), "paid");
    scene.assert_paid_once(&acme).await;
    scene.assert_paid_once(&globex).await;
    house.daemon.stop();
    house.installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn eight_agents_on_one_bill_give_one_payment() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("308.00").await;
    let installation = scene.installation(&[&payable]);
    let tokens: Vec<String> =
        (0..8).map(|at| mandate(&installation, &format!("agent-{at}"))).collect();
    let daemon = installation.start().await;
    let mut calls = tokio::task::JoinSet::new();
    for token in tokens {
        let (agent, proposal) = (daemon.agent(&token), payable.whole());
        calls.spawn(async move { agent.propose("k", &proposal).await });
    }
    let answers = calls.join_all().await;
    let ended =
        |status: &str| answers.iter().filter(|answer| answer.text("/status") == status).count();
    // A busy Odoo may leave the one that pays executing for now.
    assert_eq!((ended("executed") + ended("executing"), ended("denied")), (1, 7), "{answers:?}");
    daemon.until("paid", async || !scene.payments(&payable).await.is_empty()).await;
    daemon.stop();
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn a_second_try_is_refused() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("77.00").await;
    let house = scene.house(&[&payable]).await;
    executed(&house.agent, house.agent.propose("a", &payable.whole()).await).await;
    let again = house.agent.propose("b", &payable.whole()).await;
    again.is_denied(403, "execution", "already_paid");
    let replayed = house.agent.propose("a", &payable.whole()).await;
    replayed.is_executed();
    assert_eq!(replayed.headers["idempotent-replayed"], "true");
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn more_than_the_bill_says_and_another_account_than_the_vendors_are_refused() {
    let Some(scene) = Scene::enter().await else { return };
    let (payable, other) = (scene.payable("310.00").await, scene.payable("20.00").await);
    let house = scene.house(&[&payable, &other]).await;
    for payee in [EMAILS, &other.iban] {
        let diverted = house.agent.propose(payee, &payable.to(&json!(payee))).await;
        diverted.is_denied(403, "provenance", "payee_not_on_file");
    }
    let (bill, vendor) = (payable.bill.to_string(), payable.vendor.vendor.to_string());
    let more = pay_to(&bill, &json!({ "ref": vendor }), "310.01");
    let more = house.agent.propose("more", &more).await;
    more.is_denied(403, "policy", "amount-within-residual");
    scene.assert_unpaid(&payable).await;
    scene.assert_unpaid(&other).await;
}

#[tokio::test]
async fn a_bill_of_another_company_is_not_found() {
    let Some(scene) = Scene::enter().await else { return };
    let foreign = scene.payable_in(scene.other_company, "41.00").await;
    let house = scene.house(&[&foreign]).await;
    let denied = house.agent.propose("a", &foreign.whole()).await;
    denied.is_denied(403, "provenance", "bill_not_found");
    let nobodys = pay_to("999999", &json!({ "ref": "1" }), "41.00");
    let nobodys = house.agent.propose("b", &nobodys).await;
    assert_eq!(denied.json["decision"], nobodys.json["decision"], "the answer tells them apart");
    let read = house.agent.get(&format!("/v1/bills/{}", foreign.bill)).await;
    let unread = house.agent.get("/v1/bills/999999").await;
    assert_eq!((read.status.as_u16(), &read.json), (404, &unread.json));
    scene.assert_unpaid(&foreign).await;
}
