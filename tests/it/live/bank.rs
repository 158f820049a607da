//! I3, I4, on a real Odoo: an account changes by call-back and second person, and whatever somebody
//! with rights in Odoo does to a vendor is found and blocks.

use std::fs;
use std::io::Write as _;

use countersign_odoo::seed::Seeder;
use serde_json::{Value, json};

use super::people::CONTACT_MANAGER;
use super::scene::{House, Payable, Scene, executed, mandate_with, new_iban};
use crate::bank::{alarms, call, change, history};
use crate::daemon::{Agent, Answer, COMPANY};
use crate::votes::{approve, is_pending};

/// The number that every vendor of these tests has on file.
const PHONE: &str = "+493055501";

/// Who calls, and two who approve.
const PEOPLE: [(&str, &str); 3] =
    [("anna", "accountant"), ("paul", "approver"), ("olga", "approver")];

/// A house with people, whose agent may ask for changes too. Each of the accounts is its vendor's.
async fn house(scene: &Scene, payables: &[&Payable], more: &[(&Payable, &str)]) -> House {
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

fn heard(iban: &str) -> Value {
    let tail: String = iban.chars().skip(iban.len() - 6).collect();
    json!({
        "new_iban": iban, "number_dialled": PHONE, "spoke_to": "the vendor's bookkeeper",
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
    let mut elsewhere = heard(&new);
    elsewhere["number_dialled"] = json!("+491725550000");
    let not = call(&anna, &vendor, &elsewhere).await;
    assert_eq!(not.json["counts"], json!(false), "{}", not.json);
    let counts = call(&anna, &vendor, &heard(&new)).await;
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

/// Somebody who keeps contacts in Odoo, and leaves no note where Odoo can be told to leave none.
struct Manager<'a> {
    session: Seeder,
    scene: &'a Scene,
}

impl Manager<'_> {
    async fn writes(&self, model: &str, id: i32, values: Value) {
        let context = json!({ "lang": "en_US", "mail_notrack": true, "tracking_disable": true });
        let args = json!([[id], values]);
        let wrote: bool = self.session.call_within(model, "write", args, context).await.unwrap();
        assert!(wrote);
    }

    async fn adds(&self, vendor: i32, iban: &str) -> i32 {
        let values =
            json!([{ "partner_id": vendor, "acc_number": iban, "allow_out_payment": true }]);
        self.session.call("res.partner.bank", "create", values).await.unwrap()
    }

    /// What Odoo answers to a merge cannot be told over this API, so what it did is looked at.
    async fn merges(&self, vendor: i32, into: i32) {
        let values = json!([{
            "state": "selection", "partner_ids": [[6, 0, [vendor, into]]], "dst_partner_id": into,
        }]);
        let model = "base.partner.merge.automatic.wizard";
        let wizard: i32 = self.session.call(model, "create", values).await.unwrap();
        drop(self.session.call::<bool>(model, "action_merge", json!([[wizard]])).await);
        let left: Vec<i32> =
            self.scene.call("res.partner", "search", json!([[["id", "=", vendor]]])).await;
        assert!(left.is_empty(), "they were merged: {left:?}");
    }

    async fn erases_the_notes(&self, vendor: i32) {
        let notes = json!([[["model", "=", "res.partner"], ["res_id", "=", vendor]]]);
        let notes: Vec<i32> = self.scene.call("mail.message", "search", notes).await;
        self.scene.call::<bool>("mail.message", "unlink", json!([notes])).await;
    }
}

async fn manager(scene: &Scene) -> Manager<'_> {
    let session = scene.person("contacts", &CONTACT_MANAGER).await;
    // Odoo merges only for somebody with an address to send the note from.
    let domain = json!([[["login", "=like", "contacts-%"], ["email", "=", false]]]);
    let ids: Vec<i32> = scene.call("res.users", "search", domain).await;
    let email = json!([ids, { "email": "contacts@example.com" }]);
    scene.call::<bool>("res.users", "write", email).await;
    Manager { session, scene }
}

/// Waits until an alarm tells of that vendor.
async fn told(house: &House, human: &Agent, vendor: i32) -> Value {
    let mine = async || -> Option<Value> {
        let found = alarms(human, "changed_in_erp").await;
        found.into_iter().find(|alarm| alarm["vendor_id"] == json!(vendor.to_string()))
    };
    house.daemon.until("told of what changed", async || mine().await.is_some()).await;
    mine().await.unwrap()
}

/// A payment to the record as it is now is refused, and an alarm says so and what to do.
async fn blocks(house: &House, human: &Agent, payable: &Payable, what: &str) -> Answer {
    let denied = house.agent.propose(what, &payable.whole()).await;
    assert_eq!(denied.text("/status"), "denied", "{what}: {}", denied.json);
    let reasons = denied.reasons();
    assert!(
        reasons.contains(&"account-changed-in-erp-never-paid".to_owned()),
        "{what}: {reasons:?}"
    );
    let alarm = told(house, human, payable.vendor.vendor).await;
    let detail = alarm["detail"].as_str().unwrap();
    assert!(detail.contains("bank-confirmations"), "{what}: {detail}");
    denied
}

#[tokio::test]
async fn whatever_a_contact_manager_does_in_odoo_is_found_and_blocks() {
    let Some(scene) = Scene::enter().await else { return };
    let mut payables = Vec::new();
    for _ in 0..8 {
        payables.push(scene.payable("31.00").await);
    }
    let [edited, back, ordered, archived, parted, renamed, merged, other] =
        payables.first_chunk().unwrap();
    // A second account before the first contact, so that their order can change.
    let manager = manager(&scene).await;
    let second = manager.adds(ordered.vendor.vendor, &new_iban()).await;
    let all: Vec<&Payable> = payables.iter().collect();
    let house = house(&scene, &all, &[]).await;
    let anna = house.daemon.sign_in("anna").await;
    let account = "res.partner.bank";

    for values in [
        json!({ "acc_number": new_iban(), "allow_out_payment": false }),
        json!({ "allow_out_payment": true }),
    ] {
        manager.writes(account, edited.vendor.account, values).await;
    }
    manager.erases_the_notes(edited.vendor.vendor).await;
    blocks(&house, &anna, edited, "edited").await;

    // There and back within the minute, with nobody looking between.
    for iban in [&new_iban(), &back.iban] {
        let untrusted = json!({ "acc_number": iban, "allow_out_payment": false });
        manager.writes(account, back.vendor.account, untrusted).await;
        let trusted = json!({ "allow_out_payment": true });
        manager.writes(account, back.vendor.account, trusted).await;
    }
    manager.erases_the_notes(back.vendor.vendor).await;
    told(&house, &anna, back.vendor.vendor).await;
    blocks(&house, &anna, back, "edited and edited back").await;

    manager.writes(account, second, json!({ "sequence": 1 })).await;
    blocks(&house, &anna, ordered, "re-ordered").await;

    for active in [false, true] {
        manager.writes(account, archived.vendor.account, json!({ "active": active })).await;
    }
    told(&house, &anna, archived.vendor.vendor).await;
    blocks(&house, &anna, archived, "archived and brought back").await;

    manager
        .writes("res.partner", parted.vendor.vendor, json!({ "parent_id": other.vendor.vendor }))
        .await;
    blocks(&house, &anna, parted, "re-parented").await;

    manager.writes("res.partner", renamed.vendor.vendor, json!({ "name": "Grey Finch Ltd" })).await;
    blocks(&house, &anna, renamed, "renamed").await;

    manager.merges(merged.vendor.vendor, other.vendor.vendor).await;
    let denied = house.agent.propose("merged", &merged.whole()).await;
    assert_eq!(denied.text("/status"), "denied", "{}", denied.json);
    told(&house, &anna, other.vendor.vendor).await;
    for payable in &payables {
        scene.assert_unpaid(payable).await;
    }
    let (daemon, installation) = (house.daemon, house.installation);
    daemon.stop();
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn an_account_that_somebody_adds_in_odoo_is_not_paid_and_holds_the_old_one_up_for_nobody() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("32.00").await;
    let house = house(&scene, &[&payable], &[]).await;
    let manager = manager(&scene).await;
    let added = new_iban();
    manager.adds(payable.vendor.vendor, &added).await;
    let anna = house.daemon.sign_in("anna").await;
    let alarm = told(&house, &anna, payable.vendor.vendor).await;
    assert!(alarm["detail"].as_str().unwrap().contains("bank-confirmations"), "{alarm}");
    let denied = house.agent.propose("added", &payable.to(&json!(added))).await;
    assert_eq!(denied.text("/status"), "denied", "{}", denied.json);
    assert_ne!(denied.text("/decision/stage"), "error", "{}", denied.json);
    scene.assert_unpaid(&payable).await;
    // The bill names the account that was there before.
    executed(&house.agent, house.agent.propose("own", &payable.whole()).await).await;
    scene.assert_paid_once(&payable).await;
}

#[tokio::test]
async fn a_telephone_that_is_changed_without_a_trace_stops_call_backs_and_no_payment() {
    let Some(scene) = Scene::enter().await else { return };
    let payable = scene.payable("33.00").await;
    let new = new_iban();
    let house = house(&scene, &[&payable], &[(&payable, &new)]).await;
    let manager = manager(&scene).await;
    let vendor = payable.vendor.vendor;
    manager.writes("res.partner", vendor, json!({ "phone": "+33 1 55 66 77 88" })).await;
    manager.erases_the_notes(vendor).await;
    let anna = house.daemon.sign_in("anna").await;
    let alarm = told(&house, &anna, vendor).await;
    assert!(alarm["detail"].as_str().unwrap().contains("phone-confirmations"), "{alarm}");
    let mut thiefs = heard(&new);
    thiefs["number_dialled"] = json!("+33155667788");
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
    let counts = call(&anna, &vendor, &heard(&payable.iban)).await;
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
