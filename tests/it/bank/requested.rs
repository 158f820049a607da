//! A number that is called was on file before anybody asked for the change (I4), whatever is said of
//! the time; and what people are told to do where no number is.

use serde_json::{Value, json};

use super::{Bank, NEW, PHONE, alarms, call, confirmed};
use crate::votes::approve;

const OTHER: &str = "+33199999999";

/// anna and paul vouch for a number of V-100's.
async fn confirm(bank: &Bank, number: &str) {
    let (anna, paul) = (bank.daemon().sign_in("anna").await, bank.daemon().sign_in("paul").await);
    let how = json!({ "phone": number, "how": "their letter of last year" });
    let begun = anna.post_json("/v1/vendors/V-100/phone-confirmations", &how).await;
    approve(&paul, &begun).await.is_executed();
}

fn dialled(iban: &str, number: &str) -> Value {
    let mut told = confirmed(iban);
    told["number_dialled"] = json!(number);
    told
}

#[tokio::test]
async fn a_request_that_the_gateway_has_itself_counts_whatever_the_caller_says_of_it() {
    let bank = Bank::new().await;
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    bank.daemon().advance("1h").await;
    bank.daemon().put_vendor("V-100", json!({ "phone": OTHER })).await;
    confirm(&bank, OTHER).await;
    bank.daemon().advance("1h").await;
    let anna = bank.daemon().sign_in("anna").await;
    // What the caller leaves out, or tells later than it was, does not help.
    let paid = bank.agent.propose("p1", &crate::daemon::pay("INV-2", "V-200", "340.00")).await;
    let later = paid.text("/created_at");
    for received in [None, Some(later)] {
        let mut told = dialled(NEW, OTHER);
        if let Some(received) = &received {
            told["request_received_at"] = json!(received);
        }
        let answer = call(&anna, "V-100", &told).await;
        let why_not = json!(["number_younger_than_request"]);
        assert_eq!(answer.json["why_not"], why_not, "{received:?}");
    }
    // Another account is another request.
    let answer = call(&anna, "V-100", &dialled("BE68539007547034", OTHER)).await;
    assert_eq!(answer.json["why_not"], json!([]));
    // Nobody makes the one that was asked for earlier look later by asking again.
    bank.ask("k2", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    let answer = call(&anna, "V-100", &dialled(NEW, OTHER)).await;
    assert_eq!(answer.json["why_not"], json!(["number_younger_than_request"]));
}

#[tokio::test]
async fn a_number_that_is_put_back_and_confirmed_was_on_file_before() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    bank.daemon().advance("1h").await;
    bank.daemon().put_vendor("V-100", json!({ "phone": OTHER })).await;
    let answer = call(&anna, "V-100", &dialled(NEW, OTHER)).await;
    assert_eq!(answer.json["why_not"], json!(["number_not_trusted"]));
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    bank.daemon().advance("1h").await;
    bank.daemon().put_vendor("V-100", json!({ "phone": PHONE })).await;
    let answer = call(&anna, "V-100", &confirmed(NEW)).await;
    let why_not = json!(["number_not_trusted", "number_younger_than_request"]);
    assert_eq!(answer.json["why_not"], why_not, "{}", answer.json);
    confirm(&bank, PHONE).await;
    let answer = call(&anna, "V-100", &confirmed(NEW)).await;
    assert_eq!(answer.json["why_not"], json!([]));
    // One that was not trusted then is not older than it is.
    bank.daemon().put_vendor("V-100", json!({ "phone": OTHER })).await;
    confirm(&bank, OTHER).await;
    let answer = call(&anna, "V-100", &dialled(NEW, OTHER)).await;
    assert_eq!(answer.json["why_not"], json!(["number_younger_than_request"]));
}

#[tokio::test]
async fn who_is_told_of_a_changed_telephone_is_told_what_can_be_done() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    bank.daemon().put_vendor("V-100", json!({ "phone": OTHER })).await;
    let is_seen = async || !alarms(&anna, "changed_in_erp").await.is_empty();
    bank.daemon().until("the edit is seen", is_seen).await;
    let detail = |alarm: &Value| alarm["detail"].as_str().unwrap().to_owned();
    let changed = detail(&alarms(&anna, "changed_in_erp").await[0]);
    for said in [PHONE, OTHER, "on file since", "put", "phone-confirmations"] {
        assert!(changed.contains(said), "no `{said}`: {changed}");
    }
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    let requested = detail(&alarms(&anna, "bank_change_requested").await[0]);
    for said in [PHONE, "on file since", "put", "phone-confirmations"] {
        assert!(requested.contains(said), "no `{said}`: {requested}");
    }
    // What is on file nowhere is confirmed by nobody, and is nobody's record.
    let how = json!({ "phone": PHONE, "how": "their letter of last year" });
    let begun = anna.post_json("/v1/vendors/V-100/phone-confirmations", &how).await;
    begun.is_denied(403, "policy", "phone-confirmation-must-be-on-file");
    assert_eq!(begun.text("/params/phone/origin"), "untrusted");
    // The advice, followed.
    bank.daemon().put_vendor("V-100", json!({ "phone": PHONE })).await;
    confirm(&bank, PHONE).await;
    assert_eq!(bank.called(NEW).await.json["counts"], json!(true));
}

#[tokio::test]
async fn a_vendor_without_a_number_is_told_of_as_one_whom_nobody_can_call() {
    let bank = Bank::new().await;
    bank.daemon().put_vendor("V-500", json!({ "name": "Initech" })).await;
    let asked = bank.agent.propose("k1", &super::change("V-500", NEW)).await;
    asked.is_denied(403, "policy", "bank-change-needs-callback");
    let anna = bank.daemon().sign_in("anna").await;
    let told = alarms(&anna, "bank_change_requested").await;
    let detail = told[0]["detail"].as_str().unwrap();
    assert!(detail.contains("No number") && !detail.contains("record the call"), "{detail}");
}
