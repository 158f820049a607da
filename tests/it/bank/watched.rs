//! What somebody does in the ERP is found without anybody paying, and stops payments (DESIGN 4).

use serde_json::{Value, json};

use super::{Bank, NEW, alarms};
use crate::daemon::{Agent, Daemon, pay};

/// Waits until the company has so many alarms of that kind.
async fn until(daemon: &Daemon, human: &Agent, kind: &str, count: usize) -> Vec<Value> {
    daemon
        .until(&format!("{count} alarms `{kind}`"), async || {
            alarms(human, kind).await.len() >= count
        })
        .await;
    alarms(human, kind).await
}

#[tokio::test]
async fn an_edit_is_found_with_who_and_when_before_anybody_pays() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    bank.daemon().put_vendor("V-100", json!({ "iban": NEW })).await;
    let found = until(bank.daemon(), &anna, "changed_in_erp", 1).await;
    let detail = found[0]["detail"].as_str().unwrap();
    assert!(detail.contains("vendor V-100") && detail.contains("number"), "{detail}");
    assert!(detail.contains("bank-confirmations"), "it says what to do: {detail}");
    assert!(detail.contains("(by "), "it says who: {detail}");
    bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await.is_denied(
        403,
        "policy",
        "account-changed-in-erp-never-paid",
    );
    // Another vendor's own payments go on.
    bank.agent.propose("p2", &pay("INV-2", "V-200", "340.00")).await.is_executed();
}

#[tokio::test]
async fn a_changed_telephone_is_told_and_holds_no_payment_up() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    bank.daemon().put_vendor("V-100", json!({ "phone": "+33199999999" })).await;
    let found = until(bank.daemon(), &anna, "changed_in_erp", 1).await;
    let detail = found[0]["detail"].as_str().unwrap();
    assert!(detail.contains("phone-confirmations"), "{detail}");
    bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
}

#[tokio::test]
async fn a_change_of_ours_is_no_alarm() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    let paul = bank.daemon().sign_in("paul").await;
    crate::votes::approve(&paul, &pending).await.is_executed();
    // An edit after it is found, so the log was read beyond ours.
    bank.daemon().put_vendor("V-200", json!({ "name": "Globex Two" })).await;
    let found = until(bank.daemon(), &paul, "changed_in_erp", 1).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["vendor_id"], json!("V-200"));
}

#[tokio::test]
async fn a_payment_of_ours_that_somebody_undoes_or_doubles_freezes_its_vendor() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    bank.agent.propose("p1", &pay("INV-2", "V-200", "300.00")).await;
    let paul = bank.daemon().sign_in("paul").await;
    let waiting = paul.get("/v1/approvals").await;
    let pending = waiting.json["items"][0].clone();
    let id = pending["id"].as_str().unwrap().to_owned();
    let hash = pending["operation_hash"].as_str().unwrap().to_owned();
    crate::votes::vote(&paul, &id, &hash).await.is_executed();
    // Somebody pays the rest of the bill, and more, by hand.
    bank.daemon().pay_by_hand("INV-2", "90.00").await;
    bank.daemon().advance("11m").await;
    let found = until(bank.daemon(), &anna, "overpaid", 1).await;
    assert_eq!(found[0]["operation"], json!(id));
    let listed = anna.get("/v1/freezes").await;
    assert_eq!(listed.json["items"][0]["cause"], json!("overpaid"), "{}", listed.json);
    // Who approved the payment does not thaw what came of it; another approver does, and once is
    // enough.
    let path = format!("/v1/freezes/{}", listed.json["items"][0]["id"].as_str().unwrap());
    let thaw = async |human: &Agent| {
        let request =
            human.request(reqwest::Method::DELETE, &path).json(&json!({ "reason": "known" }));
        human.send(request).await
    };
    thaw(&paul).await.is_problem(403, "self_approval");
    let olga = bank.daemon().sign_in("olga").await;
    assert_eq!(thaw(&olga).await.status, 200);
    bank.daemon().advance("11m").await;
    bank.daemon().put_vendor("V-100", json!({ "name": "ACME Two" })).await;
    until(bank.daemon(), &anna, "changed_in_erp", 1).await;
    assert_eq!(anna.get("/v1/freezes").await.json["items"], json!([]));
}
