//! What changed in the ERP without us is found, stops payments, and becomes the baseline only by a
//! call-back and a second person.

use serde_json::json;

use super::{Bank, NEW, alarms, call, confirmed, history};
use crate::daemon::{ACME, COMPANY, pay};
use crate::votes::{approve, is_pending};

const PATH: &str = "/v1/vendors/V-100/bank-confirmations";

#[tokio::test]
async fn an_account_that_changed_becomes_the_baseline_by_call_back_and_four_eyes() {
    let bank = Bank::new().await;
    bank.daemon().put_vendor("V-100", json!({ "iban": NEW })).await;
    let denied = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
    denied.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    let anna = bank.daemon().sign_in("anna").await;
    assert!(!alarms(&anna, "changed_in_erp").await.is_empty());
    let early = anna.post_json(PATH, &json!({ "iban": NEW })).await;
    early.is_denied(403, "policy", "bank-confirmation-needs-callback");
    // Nobody asked for a change: what is told of is the edit.
    assert_eq!(alarms(&anna, "bank_change_requested").await.len(), 0);
    call(&anna, "V-100", &confirmed(NEW)).await;
    let paul = bank.daemon().sign_in("paul").await;
    let pending = paul.post_json(PATH, &json!({ "iban": NEW })).await;
    is_pending(&pending, "four_eyes");
    assert_eq!((&pending.json["agent"], pending.text("/principal")), (&json!(null), "paul".into()));
    // Who began it does not approve it, nor who made the call.
    approve(&paul, &pending).await.is_problem(403, "self_approval");
    approve(&anna, &pending).await.is_problem(403, "caller_cannot_approve");
    let olga = bank.daemon().sign_in("olga").await;
    approve(&olga, &pending).await.is_executed();
    // Verified, and no older than the gateway knows it.
    let paid = bank.agent.propose("p2", &pay("INV-1", "V-100", "1200.00")).await;
    is_pending(&paid, "four_eyes");
    assert_eq!(paid.reasons(), ["fresh-account-needs-four-eyes"]);
    assert_eq!(paid.text("/facts/bank_status"), "verified");
    let gone = olga.post_json(PATH, &json!({ "iban": ACME })).await;
    let reasons = gone.reasons();
    assert!(reasons.contains(&"bank-confirmation-must-be-on-file".to_owned()), "{reasons:?}");
    olga.post_json("/v1/vendors/V-999/bank-confirmations", &json!({ "iban": NEW }))
        .await
        .is_problem(404, "not_found");
    bank.agent.post_json(PATH, &json!({ "iban": NEW })).await.is_problem(403, "humans_only");
    let own = json!({ "action": "vendor.confirm_bank_details",
        "args": { "vendor_id": "V-100", "iban": NEW } });
    bank.agent.propose("k9", &own).await.is_denied(422, "contract", "unknown_action");
}

#[tokio::test]
async fn who_confirms_an_account_sees_the_one_that_was_there_before_the_edit() {
    let between = "BE68539007547034";
    let appears = json!([{ "iban": ACME, "active": false }, { "iban": NEW }]);
    for edits in [
        vec![json!({ "iban": NEW })],
        vec![json!({ "iban": between }), json!({ "iban": NEW })],
        vec![json!({ "accounts": appears })],
    ] {
        let bank = Bank::new().await;
        let anna = bank.daemon().sign_in("anna").await;
        for (at, edit) in edits.iter().enumerate() {
            bank.daemon().put_vendor("V-100", edit.clone()).await;
            let key = format!("look{at}");
            bank.agent.propose(&key, &pay("INV-1", "V-100", "1200.00")).await;
        }
        // Who has not heard the account yet does not read it.
        let early = anna.post_json(PATH, &json!({ "iban": NEW })).await;
        assert_eq!(early.text("/params/iban/value"), "NL…", "{edits:?}");
        assert_eq!(early.text("/records/old_number"), ACME, "{edits:?}");
        call(&anna, "V-100", &confirmed(NEW)).await;
        let paul = bank.daemon().sign_in("paul").await;
        is_pending(&paul.post_json(PATH, &json!({ "iban": NEW })).await, "four_eyes");
        let olga = bank.daemon().sign_in("olga").await;
        let waiting = olga.get("/v1/approvals").await;
        assert_eq!(waiting.text("/items/0/params/iban/value"), NEW, "{edits:?}");
        assert_eq!(waiting.text("/items/0/records/old_number"), ACME, "{edits:?}");
        assert_ne!(waiting.text("/items/0/records/old_account"), "", "{edits:?}");
        let (id, hash) = (waiting.text("/items/0/id"), waiting.text("/items/0/operation_hash"));
        crate::votes::vote(&olga, &id, &hash).await.is_executed();
    }
}

#[tokio::test]
async fn who_has_not_called_yet_does_not_read_the_account_that_stayed_the_same() {
    let bank = Bank::new().await;
    bank.daemon().put_vendor("V-100", json!({ "tax_number": "FR999" })).await;
    let anna = bank.daemon().sign_in("anna").await;
    let early = anna.post_json(PATH, &json!({ "iban": ACME })).await;
    early.is_denied(403, "policy", "bank-confirmation-needs-callback");
    assert_eq!(early.text("/records/old_number"), "FR…", "{}", early.json);
    call(&anna, "V-100", &confirmed(ACME)).await;
    let paul = bank.daemon().sign_in("paul").await;
    let pending = paul.post_json(PATH, &json!({ "iban": ACME })).await;
    is_pending(&pending, "four_eyes");
    assert_eq!(pending.text("/records/old_number"), ACME);
}

#[tokio::test]
async fn every_edit_in_the_erp_stops_payments_until_it_is_confirmed() {
    for (what, edits) in [
        ("renamed", vec![json!({ "name": "ACME Supplies" })]),
        ("tax number", vec![json!({ "tax_number": "FR999" })]),
        ("made another's", vec![json!({ "parent": "V-200" })]),
        ("edited and edited back", vec![json!({ "iban": NEW }), json!({ "iban": ACME })]),
        (
            "archived and brought back",
            vec![
                json!({ "iban": null }),
                json!({ "accounts": [{ "iban": ACME, "active": true }] }),
            ],
        ),
    ] {
        let bank = Bank::new().await;
        bank.daemon().put_vop("ACME Supplies", ACME, "match").await;
        // Nobody looks between two edits: what the record shows at the end must be enough.
        for edit in edits {
            bank.daemon().put_vendor("V-100", edit).await;
            bank.daemon().advance("5m").await;
        }
        let denied = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
        denied.is_denied(403, "policy", "account-changed-in-erp-never-paid");
        let anna = bank.daemon().sign_in("anna").await;
        assert!(!alarms(&anna, "changed_in_erp").await.is_empty(), "{what}");
        let shown = history(&anna, "V-100").await;
        assert_eq!(shown["accounts"][0]["payable"], json!(false), "{what}: {shown}");
        call(&anna, "V-100", &confirmed(ACME)).await;
        let paul = bank.daemon().sign_in("paul").await;
        let pending = paul.post_json(PATH, &json!({ "iban": ACME })).await;
        is_pending(&pending, "four_eyes");
        let olga = bank.daemon().sign_in("olga").await;
        approve(&olga, &pending).await.is_executed();
        let paid = bank.agent.propose("p2", &pay("INV-1", "V-100", "1200.00")).await;
        assert_eq!(paid.text("/facts/bank_status"), "verified", "{what}: {}", paid.json);
    }
}

#[tokio::test]
async fn an_unverified_vendor_is_verified_the_same_way_once_its_phone_is() {
    let bank = Bank::new().await;
    let new = json!({ "name": "Initech", "iban": NEW, "phone": "+33155555555" });
    bank.daemon().put_vendor("V-500", new).await;
    bank.daemon().put_vop("Initech", NEW, "match").await;
    bank.daemon()
        .put_bill(
            "INV-500",
            json!({ "vendor": "V-500", "vendor_reference": "I-5",
            "amount": "100.00", "currency": "EUR", "due": "2099-12-31" }),
        )
        .await;
    let paid = bank.agent.propose("p1", &pay("INV-500", "V-500", "100.00")).await;
    is_pending(&paid, "four_eyes");
    let anna = bank.daemon().sign_in("anna").await;
    let mut body = confirmed(NEW);
    body["number_dialled"] = json!("+33155555555");
    let answer = call(&anna, "V-500", &body).await;
    assert_eq!(answer.json["why_not"], json!(["number_not_trusted"]));
    let how = json!({ "phone": "+33155555555", "how": "the commercial register" });
    let pending = anna.post_json("/v1/vendors/V-500/phone-confirmations", &how).await;
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &pending).await.is_executed();
    let answer = call(&anna, "V-500", &body).await;
    assert_eq!(answer.json["counts"], json!(true), "{}", answer.json);
    let path = "/v1/vendors/V-500/bank-confirmations";
    let pending = paul.post_json(path, &json!({ "iban": NEW })).await;
    is_pending(&pending, "four_eyes");
    let olga = bank.daemon().sign_in("olga").await;
    approve(&olga, &pending).await.is_executed();
    let seen = bank.agent.get("/v1/vendors/V-500").await;
    assert_eq!(seen.text("/bank_status"), "verified");
}

#[tokio::test]
async fn another_company_sees_and_confirms_nothing() {
    let bank = Bank::new().await;
    let fritz = bank.daemon().sign_in("fritz").await;
    fritz.get("/v1/vendors/V-100/bank-history").await.is_problem(404, "not_found");
    let address = format!("{PATH}?company={COMPANY}");
    fritz.post_json(&address, &json!({ "iban": ACME })).await.is_problem(404, "not_found");
    bank.ask("k1", NEW).await;
    let anna = bank.daemon().sign_in("anna").await;
    let alarm = alarms(&anna, "bank_change_requested").await.remove(0);
    let close = format!("/v1/alarms/{}/close", alarm["id"].as_str().unwrap());
    let body = json!({ "reason": "seen" });
    fritz.post_json(&close, &body).await.is_problem(404, "not_found");
    assert_eq!(fritz.get("/v1/alarms").await.json["items"], json!([]));
    let axel = bank.daemon().sign_in("axel").await;
    axel.post_json(&close, &body).await.is_problem(403, "auditors_read_only");
    let closed = anna.post_json(&close, &body).await;
    assert_eq!((closed.status.as_u16(), closed.text("/closed_by")), (200, "anna".to_owned()));
    anna.post_json(&close, &body).await.is_problem(409, "already_closed");
    let open = anna.get("/v1/alarms?status=open").await;
    assert_eq!(open.json["items"], json!([]));
    // Closing it unblocked nothing.
    bank.ask("k2", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
}
