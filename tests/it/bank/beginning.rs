//! Who begins to confirm a number or an account, of what, and when it is too early; and what a
//! vendor's history tells of it.

use countersign::ap::vendor::callback::{self, Call, CallbackError, Outcome};
use countersign::ap::{CONFIRM_BANK_DETAILS, CONFIRM_PHONE};
use countersign::domain::names::Name;
use countersign::domain::operation::{Operation, Status};
use countersign::gateway::contract::Proposal;
use countersign_erp_source::{Iban, VendorId};
use serde_json::{Value, json};

use super::{Bank, NEW, PHONE, call, confirmed, history};
use crate::attacks::permit_everything;
use crate::bent::{Scene, company};
use crate::daemon::{ACME, COMPANY, Installation, WORLD};
use crate::votes::{approve, is_pending};

#[track_caller]
fn denied(operation: &Operation, stage: &str, reason: &str) {
    let decision = &operation.decision;
    assert_eq!((operation.status, decision.stage.code()), (Status::Denied, stage), "{decision:?}");
    assert_eq!(decision.reasons, [reason], "{decision:?}");
}

async fn begins(scene: &Scene, who: &str, action: &str, args: &Value) -> Operation {
    let proposal = Proposal::of(action, args);
    let human = Name::parse(who).unwrap();
    scene.gateway.begin_own(company(), human, proposal).await.unwrap()
}

/// A call about the new account as it should be.
fn told() -> Call {
    Call {
        new_iban: Iban::parse(NEW).unwrap(),
        number_dialled: PHONE.to_owned(),
        spoke_to: "Ms Martin".to_owned(),
        read_back: "164300".to_owned(),
        outcome: Outcome::Confirmed,
        request_received_at: None,
        note: None,
    }
}

/// Both confirmations that a human may begin, with their arguments.
fn both() -> [(&'static str, Value); 2] {
    [
        (CONFIRM_PHONE, json!({ "vendor_id": "V-100", "phone": PHONE, "how": "their letter" })),
        (CONFIRM_BANK_DETAILS, json!({ "vendor_id": "V-100", "iban": ACME })),
    ]
}

#[tokio::test]
async fn before_the_first_contact_nobody_calls_back_or_confirms() {
    let scene = Scene::before_first_contact(Installation::new()).await;
    let (marie, vendor) = (Name::parse("marie").unwrap(), VendorId::new("V-100").unwrap());
    let refused = callback::record(&scene.pack, &company(), &vendor, &marie, told()).await;
    assert!(matches!(refused, Err(CallbackError::NoBaseline)), "{refused:?}");
    for (action, args) in both() {
        denied(&begins(&scene, "marie", action, &args).await, "policy", "baseline_missing");
    }
    scene.close().await;
}

#[tokio::test]
async fn who_may_not_act_in_the_company_begins_nothing() {
    let scene = Scene::new().await;
    for (name, role, of) in [
        ("adam", "admin", COMPANY),
        ("axel", "auditor", COMPANY),
        ("fritz", "approver", "red-fox"),
        ("left", "accountant", COMPANY),
    ] {
        scene.installation.add_user(name, role, of);
    }
    scene.installation.ok(&["user", "disable", "left"], "");
    for who in ["adam", "axel", "fritz", "left", "nobody"] {
        for (action, args) in both() {
            let begun = begins(&scene, who, action, &args).await;
            denied(&begun, "authn", "role_not_held");
        }
    }
    let (action, args) = &both()[0];
    assert_eq!(begins(&scene, "marie", action, args).await.status, Status::Pending);
    scene.close().await;
}

#[tokio::test]
async fn only_what_is_on_file_and_the_vendors_alone_is_confirmed_whatever_the_policies_say() {
    let installation = Installation::new();
    permit_everything(&installation, "");
    let bank = Bank::of(installation).await;
    let anna = bank.daemon().sign_in("anna").await;
    let phone = async |number: &str| {
        let body = json!({ "phone": number, "how": "their letter" });
        anna.post_json("/v1/vendors/V-100/phone-confirmations", &body).await
    };
    let other = phone("+33199999999").await;
    other.is_denied(403, "policy", "floor_not_on_file");
    bank.daemon().put_vendor("V-200", json!({ "phone": "01 40 00 00 00" })).await;
    bank.agent.propose("look", &crate::daemon::pay("INV-2", "V-200", "340.00")).await;
    phone(PHONE).await.is_denied(403, "policy", "floor_phone_untrusted");
    let none = json!({ "phone": PHONE, "how": "" });
    let path = "/v1/vendors/V-100/phone-confirmations";
    anna.post_json(path, &none).await.is_problem(400, "invalid_field");
    // An account as well, even after a call-back about it.
    call(&anna, "V-100", &confirmed(NEW)).await;
    let account = json!({ "iban": NEW });
    let absent = anna.post_json("/v1/vendors/V-100/bank-confirmations", &account).await;
    absent.is_denied(403, "policy", "floor_not_on_file");
}

#[tokio::test]
async fn the_account_that_is_on_file_is_no_change() {
    let bank = Bank::new().await;
    bank.called(ACME).await;
    bank.ask("k1", ACME).await.is_denied(403, "policy", "account_on_file");
}

#[tokio::test]
async fn a_history_says_since_when_by_whom_and_why() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    let paul = daemon.sign_in("paul").await;
    let said = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = history(&paul, "V-100").await;
    let account = &shown["accounts"][0];
    assert_eq!((&account["iban"], &account["bank_status"]), (&json!(ACME), &json!("adopted")));
    assert_eq!((&account["payable"], &account["age_days"]), (&json!(true), &json!(400)));
    assert!(said(&account["why"]).contains("first met the ERP"), "{account}");
    let phone = &shown["phones"][0];
    assert_eq!((&phone["number"], &phone["trusted"]), (&json!(PHONE), &json!(true)));
    assert!(said(&phone["why"]).contains("adopted at first contact"), "{phone}");
    // Somebody changes both in the ERP.
    daemon.put_vendor("V-100", json!({ "iban": NEW, "phone": "+33199999999" })).await;
    daemon
        .until("seen", async || {
            history(&paul, "V-100").await["events"].as_array().is_some_and(|all| all.len() >= 2)
        })
        .await;
    let shown = history(&paul, "V-100").await;
    let account = &shown["accounts"][0];
    assert_eq!(account["bank_status"], json!("changed_in_erp"));
    assert_eq!((&account["payable"], &account["age_days"]), (&json!(false), &json!(0)));
    assert!(said(&account["why"]).contains("without Countersign"), "{account}");
    assert_eq!(shown["phones"][0]["trusted"], json!(false));
    let events = shown["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["after"] == json!(NEW)).unwrap();
    assert_eq!(event["before"], json!(ACME), "{event}");
    assert!(said(&event["by"]).len() > 1 && said(&event["at"]).ends_with('Z'), "{event}");
    // It is called back about and confirmed by two.
    let how = json!({ "phone": "+33199999999", "how": "their letter" });
    let anna = daemon.sign_in("anna").await;
    let begun = anna.post_json("/v1/vendors/V-100/phone-confirmations", &how).await;
    approve(&paul, &begun).await.is_executed();
    let mut told = confirmed(NEW);
    told["number_dialled"] = json!("+33199999999");
    told["note"] = json!("she knew the bill");
    assert_eq!(call(&anna, "V-100", &told).await.json["counts"], json!(true));
    let path = "/v1/vendors/V-100/bank-confirmations";
    let begun = paul.post_json(path, &json!({ "iban": NEW })).await;
    is_pending(&begun, "four_eyes");
    let shown = history(&paul, "V-100").await;
    let recorded = &shown["callbacks"][0];
    assert_eq!((&recorded["called_by"], &recorded["status"]), (&json!("anna"), &json!("open")));
    let told = (&recorded["note"], &recorded["request_received_at"]);
    assert_eq!(told, (&json!("she knew the bill"), &json!(null)));
    let olga = daemon.sign_in("olga").await;
    approve(&olga, &begun).await.is_executed();
    let shown = history(&paul, "V-100").await;
    let account = &shown["accounts"][0];
    assert_eq!((&account["bank_status"], &account["payable"]), (&json!("verified"), &json!(true)));
    assert_eq!(account["operation"], begun.json["id"]);
    let why = said(&account["why"]);
    assert!(why.contains("call-back and four eyes") && why.contains("cooling-off"), "{why}");
    // Both people, and when they did it beside since when the account is what it is.
    let (done, since) = (said(&shown["events"].as_array().unwrap().last().unwrap()["at"]), account);
    assert!(why.contains(&format!("on {done} by paul and olga")), "{why}");
    assert!(why.contains(&format!("unchanged since {}", said(&since["since"]))), "{why}");
    let of = |what: &str| {
        let all = shown["events"].as_array().unwrap();
        all.iter().find(|event| event["what"] == json!(what)).unwrap().clone()
    };
    for (what, by, approved_by) in
        [("verified", "paul", "olga"), ("phone confirmed", "anna", "paul")]
    {
        let event = of(what);
        let people = (&event["by"], &event["approved_by"]);
        assert_eq!(people, (&json!(by), &json!([approved_by])), "{event}");
    }
    assert_eq!(of("changed in the ERP: number")["approved_by"], json!([]));
    let phone = &shown["phones"][0];
    assert_eq!(phone["trusted"], json!(true));
    let why = said(&phone["why"]);
    assert!(why.contains("confirmed by four eyes on") && why.contains("by anna and paul"), "{why}");
    let recorded = &shown["callbacks"][0];
    assert_eq!((&recorded["status"], &recorded["operation"]), (&json!("spent"), &begun.json["id"]));
    bank.agent.get("/v1/vendors/V-100/bank-history").await.is_problem(403, "humans_only");
}

#[tokio::test]
async fn a_vendor_or_an_account_of_somebody_else_is_none_whatever_the_connector_says() {
    let scene = Scene::new().await;
    let (action, args) = &both()[1];
    let reasons = async |scene: &Scene| begins(scene, "marie", action, args).await.decision.reasons;
    let absent = "bank-confirmation-must-be-on-file".to_owned();
    let found = reasons(&scene).await;
    assert!(!found.contains(&absent), "{found:?}");
    scene.bends.vendor.set(|answer| {
        answer.as_mut().unwrap().as_mut().unwrap().accounts[0].owner =
            VendorId::new("V-200").unwrap();
    });
    let found = reasons(&scene).await;
    assert!(found.contains(&absent), "{found:?}");
    scene.bends.vendor.set(|answer| {
        answer.as_mut().unwrap().as_mut().unwrap().company =
            countersign_erp_source::CompanyId::new("red-fox").unwrap();
    });
    assert_eq!(reasons(&scene).await, ["vendor_not_found"]);
    let (marie, vendor) = (Name::parse("marie").unwrap(), VendorId::new("V-100").unwrap());
    let refused = callback::record(&scene.pack, &company(), &vendor, &marie, told()).await;
    assert!(matches!(refused, Err(CallbackError::NoVendor)), "{refused:?}");
    scene.close().await;
}

#[tokio::test]
async fn who_else_has_the_account_and_how_many_there_are_is_found_out() {
    let second = "DE96999999997000000000";
    let two = format!(
        "accounts = [{{ iban = \"{ACME}\", age_days = 400 }}, {{ iban = \"{second}\", age_days = 400 }}]"
    );
    let world = WORLD.replacen(&format!("iban = \"{ACME}\"\niban_age_days = 400"), &two, 1);
    assert_ne!(world, WORLD);
    let bank = Bank::of(Installation::with(&world, "sqlite://countersign.db", "")).await;
    bank.called(NEW).await;
    let several = bank.ask("k1", NEW).await;
    several.is_denied(403, "policy", "bank-change-several-accounts-never");

    let bank = Bank::new().await;
    let twin = json!({ "name": "Twin", "iban": NEW });
    bank.daemon().put_vendor("V-777", twin).await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    is_pending(&pending, "four_eyes");
    let paul = bank.daemon().sign_in("paul").await;
    let seen = paul.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
    assert_eq!(seen.json["facts"]["new_iban_shared_with"], json!(1), "{}", seen.json);
}
