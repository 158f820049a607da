//! I3, I4, on a real Odoo: an account changes by call-back and second person, and whatever somebody
//! with rights in Odoo does to a vendor is found and blocks.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use super::managers::{blocks, manager, told};
use super::scene::{House, Payable, Scene, executed, mandate_with, new_iban, new_phone};
use crate::bank::{alarms, call, change, history};
use crate::daemon::COMPANY;
use crate::votes::{approve, is_pending};

/// Who calls, and two who approve.
const PEOPLE: [(&str, &str); 3] =
    [("anna", "accountant"), ("paul", "approver"), ("olga", "approver")];

/// A house with people, whose agent may ask for changes too. Each of the accounts is its vendor's.
pub(super) async fn house(
    scene: &Scene,
    payables: &[&Payable],
    more: &[(&Payable, &str)],
) -> House {
    let installation = scene.installation(payables);
    for (name, role) in PEOPLE {
        installation.add_user(name, role, COMPANY);
    }
    let mut vop = fs::File::options().append(true).open(installation.path("vop.toml")).unwrap();
    for (payable, iban) in more {
        vop.write_all(payable.verified_at(iban).as_bytes()).unwrap();
    }
    let token = mandate_with(&installation, "ap-agent", &["--scope", "vendor.update_bank_details"]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    House { installation, daemon, agent }
}

/// A call-back to the vendor on the number on file, where all is confirmed.
fn heard(payable: &Payable, iban: &str) -> Value {
    let tail: String = iban.chars().skip(iban.len() - 6).collect();
    json!({
        "new_iban": iban, "number_dialled": payable.phone, "spoke_to": "the vendor's bookkeeper",
        "read_back": tail, "outcome": "confirmed",
    })
}

/// The vendor's accounts in Odoo: number, whether active, whether Odoo may pay to it.
async fn accounts(scene: &Scene, payable: &Payable) -> Vec<(String, bool, bool)> {
    let domain = json!([["partner_id", "=", payable.vendor.vendor]]);
    let fields = json!(["sanitized_acc_number", "active", "allow_out_payment"]);
    let found: Vec<Value> =
        scene.call("res.partner.bank", "search_read", json!([domain, fields])).await;
    let mut accounts: Vec<_> = found
        .iter()
        .map(|account| {
            let number = account["sanitized_acc_number"].as_str().unwrap().to_owned();
            (number, account["active"] == json!(true), account["allow_out_payment"] == json!(true))
        })
        .collect();
    accounts.sort();
    accounts
}

/// The number that the open bill names.
async fn named_by(scene: &Scene, bill: i32) -> String {
    let found: Vec<Value> =
        scene.call("account.move", "read", json!([[bill], ["partner_bank_id"]])).await;
    let account = found[0]["partner_bank_id"][0].clone();
    let found: Vec<Value> =
        scene.call("res.partner.bank", "read", json!([[account], ["sanitized_acc_number"]])).await;
    found[0]["sanitized_acc_number"].as_str().unwrap().to_owned()
}

fn confirmations(payable: &Payable) -> String {
    format!("/v1/vendors/{}/bank-confirmations", payable.vendor.vendor)
}

#[tokio::test]
async fn an_account_changes_in_odoo_by_call_back_and_second_person_and_not_before() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("1250.00").await;
    let new = new_iban();
    let house = house(&scene, &[&payable], &[(&payable, &new)]).await;
    let vendor = payable.vendor.vendor.to_string();
    let before = [(payable.iban.clone(), true, true)];

    let asked = house.agent.propose("email", &change(&vendor, &new)).await;
    asked.is_denied(403, "policy", "bank-change-needs-callback");
    let anna = house.daemon.sign_in("anna").await;
    let told = alarms(&anna, "bank_change_requested").await;
    let detail = told[0]["detail"].as_str().unwrap();
    assert!(detail.contains("on file since"), "{detail}");
    // The number of the email does not count, whatever is heard there.
    let mut elsewhere = heard(&payable, &new);
    elsewhere["number_dialled"] = json!("+491725550000");
    let not = call(&anna, &vendor, &elsewhere).await;
    assert_eq!(not.json["counts"], json!(false), "{}", not.json);
    let counts = call(&anna, &vendor, &heard(&payable, &new)).await;
    assert_eq!(counts.json["counts"], json!(true), "{}", counts.json);

    let pending = house.agent.propose("letter", &change(&vendor, &new)).await;
    is_pending(&pending, "four_eyes");
    assert_eq!(pending.reasons(), ["bank-change-needs-four-eyes"]);
    let marie = house.daemon.sign_in("marie").await;
    approve(&marie, &pending).await.is_problem(403, "self_approval");
    approve(&anna, &pending).await.is_problem(403, "caller_cannot_approve");
    assert_eq!(accounts(&scene, &payable).await, before, "nothing before the second person");
    let paul = house.daemon.sign_in("paul").await;
    executed(&paul, approve(&paul, &pending).await).await;

    let mut after = vec![(new.clone(), true, true), (payable.iban.clone(), false, true)];
    after.sort();
    let found = accounts(&scene, &payable).await;
    let active = |found: &[(String, bool, bool)]| -> Vec<(String, bool)> {
        found.iter().map(|(number, active, _)| (number.clone(), *active)).collect()
    };
    assert_eq!(active(&found), active(&after));
    assert!(found.iter().any(|(number, _, trusted)| *number == new && *trusted), "{found:?}");
    assert_eq!(named_by(&scene, payable.bill).await, new, "the open bill names the new account");
    let shown = history(&paul, &vendor).await;
    assert!(shown.to_string().contains(&new), "{shown}");
    let changed = alarms(&paul, "changed_in_erp").await;
    assert!(changed.iter().all(|alarm| alarm["vendor_id"] != json!(vendor)), "{changed:?}");

    // The same day a human looks at each payment to it; then it is paid, there, once.
    let fresh = house.agent.propose("pay", &payable.whole()).await;
    is_pending(&fresh, "four_eyes");
    assert_eq!(fresh.reasons(), ["fresh-account-needs-four-eyes"]);
    assert_eq!(fresh.text("/facts/bank_status"), "verified");
    executed(&paul, approve(&paul, &fresh).await).await;
    let paid = scene.payments(&payable).await;
    assert_eq!(paid.len(), 1, "{paid:?}");
    assert_eq!(
        (paid[0].iban.as_str(), paid[0].bills.as_slice()),
        (new.as_str(), &[payable.bill][..])
    );
    house.daemon.stop();
    house.installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn a_telephone_that_is_changed_without_a_trace_stops_call_backs_and_no_payment() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("33.00").await;
    let new = new_iban();
    let house = house(&scene, &[&payable], &[(&payable, &new)]).await;
    let manager = manager(&scene).await;
    let vendor = payable.vendor.vendor;
    let theirs = new_phone();
    manager.writes("res.partner", vendor, json!({ "phone": theirs })).await;
    manager.erases_the_notes(vendor).await;
    let anna = house.daemon.sign_in("anna").await;
    let alarm = told(&house, &anna, vendor).await;
    assert!(alarm["detail"].as_str().unwrap().contains("phone-confirmations"), "{alarm}");
    let mut thiefs = heard(&payable, &new);
    thiefs["number_dialled"] = json!(theirs);
    let answer = call(&anna, &vendor.to_string(), &thiefs).await;
    assert_eq!(answer.json["counts"], json!(false), "{}", answer.json);
    assert_eq!(answer.json["why_not"], json!(["number_not_trusted"]));
    let asked = house.agent.propose("change", &change(&vendor.to_string(), &new)).await;
    asked.is_denied(403, "policy", "bank-change-needs-callback");
    executed(&house.agent, house.agent.propose("pay", &payable.whole()).await).await;
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn what_changed_in_odoo_is_paid_to_again_after_call_back_and_second_person() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("34.00").await;
    let house = house(&scene, &[&payable], &[]).await;
    let manager = manager(&scene).await;
    for active in [false, true] {
        manager
            .writes("res.partner.bank", payable.vendor.account, json!({ "active": active }))
            .await;
    }
    let anna = house.daemon.sign_in("anna").await;
    blocks(&house, &anna, &payable, "archived and brought back").await;
    let paul = house.daemon.sign_in("paul").await;
    let olga = house.daemon.sign_in("olga").await;
    let body = json!({ "iban": payable.iban });
    let early = paul.post_json(&confirmations(&payable), &body).await;
    early.is_denied(403, "policy", "bank-confirmation-needs-callback");
    let vendor = payable.vendor.vendor.to_string();
    let counts = call(&anna, &vendor, &heard(&payable, &payable.iban)).await;
    assert_eq!(counts.json["counts"], json!(true), "{}", counts.json);
    let pending = paul.post_json(&confirmations(&payable), &body).await;
    is_pending(&pending, "four_eyes");
    approve(&paul, &pending).await.is_problem(403, "self_approval");
    executed(&olga, approve(&olga, &pending).await).await;
    // No older than it is known to be.
    let fresh = house.agent.propose("pay", &payable.whole()).await;
    is_pending(&fresh, "four_eyes");
    assert_eq!(fresh.text("/facts/bank_status"), "verified");
    assert_eq!(fresh.json["facts"]["iban_age_days"], json!(0));
    executed(&olga, approve(&olga, &fresh).await).await;
    scene.assert_paid_once(&payable).await;
}
