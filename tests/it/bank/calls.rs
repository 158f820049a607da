//! Which calls count, and what ends them.

use countersign::ap::vendor::callback::{self, Call, CallbackError, Outcome};
use countersign::domain::names::Name;
use countersign_erp_source::{Iban, VendorId};
use serde_json::json;

use super::frozen::thaw_by_id;
use super::{Bank, NEW, PHONE, alarms, call, confirmed, history};
use crate::bent::{Scene, company};
use crate::daemon::{ACME, COMPANY};
use crate::support::on_both;
use crate::votes::{approve, is_pending};

#[tokio::test]
async fn a_call_says_whether_it_counts_and_why_not() {
    let bank = Bank::new().await;
    let anna = bank.daemon().sign_in("anna").await;
    let with = |changes: serde_json::Value| {
        let mut body = confirmed(NEW);
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    for (changes, why_not) in [
        (json!({ "number_dialled": "01 40 00 00 00" }), vec![]),
        (json!({ "number_dialled": "+33 (0)1 40 00 00 00" }), vec![]),
        (json!({ "number_dialled": "+33140000001" }), vec!["number_not_on_file"]),
        (json!({ "number_dialled": format!("{PHONE} ext. 12") }), vec!["number_not_on_file"]),
        (json!({ "read_back": "164301" }), vec!["read_back_differs"]),
        (json!({ "outcome": "no_answer" }), vec!["no_answer"]),
        (json!({ "outcome": "denied" }), vec!["vendor_denied"]),
        (
            json!({ "request_received_at": "2020-01-01T00:00:00Z" }),
            vec!["number_younger_than_request"],
        ),
    ] {
        let answer = call(&anna, "V-100", &with(changes.clone())).await;
        assert_eq!(answer.status, 201, "{changes}: {}", answer.json);
        assert_eq!(answer.json["why_not"], json!(why_not), "{changes}");
        assert_eq!(answer.json["counts"], json!(why_not.is_empty()), "{changes}");
    }
    for (changes, status, code) in [
        (json!({ "number_dialled": "1-800-FLOWERS" }), 400, "invalid_field"),
        (json!({ "number_dialled": "0891 00 00 00" }), 400, "invalid_field"),
        (json!({ "read_back": "4300" }), 400, "invalid_field"),
        (json!({ "new_iban": "NL91ABNA0417164301" }), 400, "invalid_field"),
        (json!({ "outcome": "maybe" }), 400, "invalid_field"),
        (json!({ "request_received_at": "2099-01-01T00:00:00Z" }), 400, "invalid_field"),
        (json!({ "spoke_to": "" }), 400, "invalid_field"),
        (json!({ "to": "x" }), 400, "malformed_body"),
    ] {
        call(&anna, "V-100", &with(changes)).await.is_problem(status, code);
    }
    call(&anna, "V-999", &confirmed(NEW)).await.is_problem(404, "not_found");
    let axel = bank.daemon().sign_in("axel").await;
    call(&axel, "V-100", &confirmed(NEW)).await.is_problem(403, "not_an_accountant");
    call(&bank.agent, "V-100", &confirmed(NEW)).await.is_problem(403, "humans_only");
    let fritz = bank.daemon().sign_in("fritz").await;
    call(&fritz, "V-100", &confirmed(NEW)).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn a_later_no_ends_the_request_and_raises_an_alarm() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    is_pending(&pending, "four_eyes");
    let olga = bank.daemon().sign_in("olga").await;
    let mut no = confirmed(NEW);
    no["outcome"] = json!("denied");
    call(&olga, "V-100", &no).await;
    let ended = bank.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
    ended.is_denied(200, "policy", "callback_denied");
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &pending).await.is_problem(409, "already_decided");
    assert_eq!(alarms(&paul, "callback_denied").await.len(), 1);
    bank.ask("k2", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    // What is confirmed after that counts again.
    bank.called(NEW).await;
    is_pending(&bank.ask("k3", NEW).await, "four_eyes");
}

#[tokio::test]
async fn a_call_back_counts_for_thirty_days() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    bank.daemon().advance("29d").await;
    let token = bank.office.installation.mandate(&["--scope", "vendor.update_bank_details"]);
    let agent = bank.daemon().agent(&token);
    let pending = agent.propose("k1", &super::change("V-100", NEW)).await;
    is_pending(&pending, "four_eyes");
    agent.post(&format!("/v1/operations/{}/cancel", pending.text("/id"))).await;
    bank.daemon().advance("2d").await;
    let token = bank.office.installation.mandate(&["--scope", "vendor.update_bank_details"]);
    let agent = bank.daemon().agent(&token);
    let late = agent.propose("k2", &super::change("V-100", NEW)).await;
    late.is_denied(403, "policy", "bank-change-needs-callback");
}

#[tokio::test]
async fn a_disabled_caller_s_call_back_counts_no_more() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let adam = bank.daemon().sign_in("adam").await;
    adam.post("/v1/users/anna/disable").await;
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
}

#[tokio::test]
async fn who_is_disabled_while_his_call_is_written_down_leaves_no_call_back() {
    let scene = Scene::new().await;
    scene.installation.add_user("anna", "accountant", COMPANY);
    let (anna, vendor) = (Name::parse("anna").unwrap(), VendorId::new("V-100").unwrap());
    let told = || Call {
        new_iban: Iban::parse(NEW).unwrap(),
        number_dialled: PHONE.to_owned(),
        spoke_to: "Ms Martin".to_owned(),
        read_back: "164300".to_owned(),
        outcome: Outcome::Confirmed,
        request_received_at: None,
        note: None,
    };
    let record = async || callback::record(&scene.pack, &company(), &vendor, &anna, told()).await;
    assert!(record().await.unwrap().counts);
    // She was let in before; the ERP is asked, and meanwhile somebody disables her.
    scene.installation.ok(&["user", "disable", "anna"], "");
    let refused = record().await;
    assert!(matches!(refused, Err(CallbackError::NotACaller)), "{refused:?}");
    let export = scene.installation.ok(&["receipts", "export"], "");
    assert_eq!(export.matches("\\\"kind\\\":\\\"callback\\\"").count(), 1);
    scene.close().await;
}

#[tokio::test]
async fn a_changed_number_is_not_called_before_it_is_confirmed_or_ninety_days_old() {
    let bank = Bank::new().await;
    let other = "+33199999999";
    bank.daemon().put_vendor("V-100", json!({ "phone": other })).await;
    let anna = bank.daemon().sign_in("anna").await;
    let mut body = confirmed(NEW);
    body["number_dialled"] = json!(other);
    let answer = call(&anna, "V-100", &body).await;
    assert_eq!(answer.json["why_not"], json!(["number_not_trusted"]));
    // Put back, it is a change as well: nobody knows who answers there now.
    bank.daemon().put_vendor("V-100", json!({ "phone": PHONE })).await;
    let answer = call(&anna, "V-100", &confirmed(NEW)).await;
    assert_eq!(answer.json["why_not"], json!(["number_not_trusted"]));
    let path = "/v1/vendors/V-100/phone-confirmations";
    let how = json!({ "phone": PHONE, "how": "their registered letter of last year" });
    let pending = anna.post_json(path, &how).await;
    is_pending(&pending, "four_eyes");
    approve(&anna, &pending).await.is_problem(403, "self_approval");
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &pending).await.is_executed();
    let answer = call(&anna, "V-100", &confirmed(NEW)).await;
    assert_eq!(answer.json["why_not"], json!([]));
    let shown = history(&paul, "V-100").await;
    assert_eq!(shown["phones"][0]["trusted"], json!(true), "{shown}");
    // A payment to the account on file was never held up by it.
    let paid = bank.agent.propose("p1", &crate::daemon::pay("INV-1", "V-100", "1200.00")).await;
    paid.is_executed();
}

#[tokio::test]
async fn a_change_ends_every_other_call_back_about_the_vendor() {
    let bank = Bank::new().await;
    let (second, marie, paul) = (
        "DE85999999991000000014",
        bank.daemon().sign_in("marie").await,
        bank.daemon().sign_in("paul").await,
    );
    bank.daemon().put_vop("ACME SAS", second, "match").await;
    // Two people hear of the same account; one call is enough for the change.
    bank.called(NEW).await;
    let also = call(&marie, "V-100", &confirmed(NEW)).await;
    assert_eq!(also.json["counts"], json!(true), "{}", also.json);
    approve(&paul, &bank.ask("k1", NEW).await).await.is_executed();
    // The vendor moves on, and nobody hears of the first account again.
    bank.called(second).await;
    approve(&paul, &bank.ask("k2", second).await).await.is_executed();
    bank.ask("k3", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    assert_eq!(bank.account("V-100").await, second);
}

#[tokio::test]
async fn a_confirmation_ends_every_other_call_back_about_the_vendor() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    bank.daemon().put_vendor("V-100", json!({ "tax_number": "FR999" })).await;
    let anna = bank.daemon().sign_in("anna").await;
    call(&anna, "V-100", &confirmed(ACME)).await;
    let paul = bank.daemon().sign_in("paul").await;
    let path = "/v1/vendors/V-100/bank-confirmations";
    let pending = paul.post_json(path, &json!({ "iban": ACME })).await;
    is_pending(&pending, "four_eyes");
    let olga = bank.daemon().sign_in("olga").await;
    approve(&olga, &pending).await.is_executed();
    bank.ask("k1", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
}

/// Somebody edits the other vendor's number, and the gateway looks at that vendor.
async fn gets_the_phone(bank: &Bank, spelling: &str) {
    bank.daemon().put_vendor("V-200", json!({ "phone": spelling })).await;
    bank.agent.propose("look", &crate::daemon::pay("INV-2", "V-200", "340.00")).await;
}

#[tokio::test]
async fn a_number_that_another_vendor_has_in_another_spelling_does_not_count() {
    for spelling in ["+33 (0)1 40 00 00 00", "0033 1 40 00 00 00", "01 40 00 00 00"] {
        let bank = Bank::new().await;
        let anna = bank.daemon().sign_in("anna").await;
        gets_the_phone(&bank, spelling).await;
        let answer = call(&anna, "V-100", &confirmed(NEW)).await;
        assert_eq!(answer.json["why_not"], json!(["number_shared"]), "{spelling}");
        let refused = bank.ask("k1", NEW).await;
        refused.is_denied(403, "policy", "bank-change-needs-callback");
    }
}

#[tokio::test]
async fn a_number_that_another_vendor_gets_after_the_call_stops_the_change() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    gets_the_phone(&bank, "01 40 00 00 00").await;
    let refused = bank.ask("k1", NEW).await;
    refused.is_denied(403, "policy", "bank-change-shared-phone-never");
}

/// A change that a second person approved and the ERP cannot be told of.
async fn under_way(bank: &Bank) -> crate::daemon::Answer {
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    bank.daemon().fault("update_bank_details", "unreachable", 1_000_000).await;
    let paul = bank.daemon().sign_in("paul").await;
    let approved = approve(&paul, &pending).await;
    assert_eq!(approved.text("/status"), "executing", "{}", approved.json);
    approved
}

#[tokio::test]
async fn a_no_while_the_change_is_being_carried_out_ends_it_before_it_is_sent() {
    on_both(async |place| {
        let bank = Bank::at(place).await;
        let approved = under_way(&bank).await;
        let olga = bank.daemon().sign_in("olga").await;
        let mut no = confirmed(NEW);
        no["outcome"] = json!("denied");
        assert_eq!(call(&olga, "V-100", &no).await.status, 201);
        let path = format!("/v1/operations/{}?wait=60s", approved.text("/id"));
        let ended = bank.agent.get(&path).await;
        assert_eq!(ended.text("/status"), "denied", "{}", ended.json);
        bank.daemon().fault("update_bank_details", "unreachable", 0).await;
        assert_eq!(bank.account("V-100").await, ACME);
        assert_eq!(alarms(&olga, "callback_denied").await.len(), 1);
        // Nothing goes to the vendor before an approver has looked at it.
        let paid = bank.agent.propose("p1", &crate::daemon::pay("INV-1", "V-100", "1200.00")).await;
        paid.is_denied(403, "execution", "frozen");
        let paul = bank.daemon().sign_in("paul").await;
        let freezes = paul.get("/v1/freezes").await;
        let id = freezes.text("/items/0/id");
        thaw_by_id(&paul, &id).await.is_problem(403, "self_approval");
        let thawed = thaw_by_id(&olga, &id).await;
        assert_eq!(thawed.status, 200, "{}", thawed.json);
        // What was given back counts for nobody.
        let again = bank.ask("k2", NEW).await;
        again.is_denied(403, "policy", "bank-change-needs-callback");
    })
    .await;
}

#[tokio::test]
async fn a_caller_who_is_disabled_while_the_change_is_being_carried_out_ends_it() {
    let bank = Bank::new().await;
    let approved = under_way(&bank).await;
    let adam = bank.daemon().sign_in("adam").await;
    adam.post("/v1/users/anna/disable").await;
    let path = format!("/v1/operations/{}?wait=60s", approved.text("/id"));
    let ended = bank.agent.get(&path).await;
    ended.is_denied(200, "policy", "bank-change-needs-callback");
    bank.daemon().fault("update_bank_details", "unreachable", 0).await;
    assert_eq!(bank.account("V-100").await, ACME);
}

#[tokio::test]
async fn a_no_about_the_account_on_file_freezes_the_vendor() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &bank.ask("k1", NEW).await).await.is_executed();
    let anna = bank.daemon().sign_in("anna").await;
    let mut no = confirmed(NEW);
    no["outcome"] = json!("denied");
    assert_eq!(call(&anna, "V-100", &no).await.status, 201);
    assert_eq!(alarms(&anna, "callback_denied").await.len(), 1);
    let pay = crate::daemon::pay("INV-1", "V-100", "1200.00");
    bank.agent.propose("p1", &pay).await.is_denied(403, "execution", "frozen");
    // Neither who approved the change, nor who called for it, thaws; and whoever does, does not make
    // the account theirs.
    let freezes = anna.get("/v1/freezes").await;
    let id = freezes.text("/items/0/id");
    thaw_by_id(&paul, &id).await.is_problem(403, "self_approval");
    thaw_by_id(&anna, &id).await.is_problem(403, "not_an_approver");
    assert_eq!(thaw_all(&bank, "olga").await, 1);
    let doubted = bank.agent.propose("p2", &pay).await;
    doubted.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    let shown = history(&anna, "V-100").await;
    let account = shown["accounts"].as_array().unwrap().iter().find(|a| a["iban"] == NEW).unwrap();
    assert!(account["why"].as_str().unwrap().contains("not theirs"), "{account}");
    // A new call and a second person do.
    assert_eq!(bank.called(NEW).await.json["counts"], json!(true));
    let path = "/v1/vendors/V-100/bank-confirmations";
    let confirming = anna.post_json(path, &json!({ "iban": NEW })).await;
    approve(&paul, &confirming).await.is_executed();
    let paid = bank.agent.propose("p3", &pay).await;
    assert_eq!(paid.text("/facts/bank_status"), "verified", "{}", paid.json);
}

async fn thaw_all(bank: &Bank, who: &str) -> usize {
    let human = bank.daemon().sign_in(who).await;
    let freezes = human.get("/v1/freezes").await;
    let all = freezes.json["items"].as_array().unwrap();
    for freeze in all {
        let thawed = thaw_by_id(&human, freeze["id"].as_str().unwrap()).await;
        assert_eq!(thawed.status, 200, "{}", thawed.json);
    }
    all.len()
}

#[tokio::test]
async fn a_no_while_nobody_knows_whether_it_was_done_leaves_an_account_that_is_not_paid() {
    on_both(async |place| {
        let bank = Bank::at(place).await;
        bank.called(NEW).await;
        let pending = bank.ask("k1", NEW).await;
        bank.daemon().fault("update_bank_details", "lost_answer", 1).await;
        bank.daemon().fault("find_payment", "unreachable", 1_000_000).await;
        let paul = bank.daemon().sign_in("paul").await;
        let unknown = approve(&paul, &pending).await;
        assert_eq!(unknown.text("/status"), "unknown", "{}", unknown.json);
        let olga = bank.daemon().sign_in("olga").await;
        let mut no = confirmed(NEW);
        no["outcome"] = json!("denied");
        assert_eq!(call(&olga, "V-100", &no).await.status, 201);
        bank.daemon().fault("find_payment", "unreachable", 0).await;
        let path = format!("/v1/operations/{}?wait=60s", unknown.text("/id"));
        let done = bank.agent.get(&path).await;
        assert_eq!(done.text("/status"), "executed", "{}", done.json);
        assert_eq!(bank.account("V-100").await, NEW);
        assert_eq!(thaw_all(&bank, "olga").await, 1);
        let pay = crate::daemon::pay("INV-1", "V-100", "1200.00");
        let doubted = bank.agent.propose("p1", &pay).await;
        doubted.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    })
    .await;
}

#[tokio::test]
async fn who_called_for_a_change_does_not_thaw_what_came_of_it() {
    let bank = Bank::new().await;
    let (olga, paul) = (bank.daemon().sign_in("olga").await, bank.daemon().sign_in("paul").await);
    // An approver may call as well; then somebody else approves.
    assert_eq!(call(&olga, "V-100", &confirmed(NEW)).await.json["counts"], json!(true));
    approve(&paul, &bank.ask("k1", NEW).await).await.is_executed();
    let anna = bank.daemon().sign_in("anna").await;
    let mut no = confirmed(NEW);
    no["outcome"] = json!("denied");
    assert_eq!(call(&anna, "V-100", &no).await.status, 201);
    let id = anna.get("/v1/freezes").await.text("/items/0/id");
    for human in [&olga, &paul] {
        thaw_by_id(human, &id).await.is_problem(403, "self_approval");
    }
    assert_eq!(anna.get("/v1/freezes").await.text("/items/0/id"), id);
}
