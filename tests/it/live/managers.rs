//! I3, on a real Odoo: whatever somebody who keeps contacts does to a vendor there is found before
//! anybody pays, and blocks; and nothing of it makes an account older, or another vendor's.

use std::collections::BTreeMap;

use countersign_odoo::seed::{BillSeed, Seeder};
use serde_json::{Value, json};

use super::bank::house;
use super::people::CONTACT_MANAGER;
use super::scene::{House, Payable, Scene, executed, new_iban};
use crate::bank::{alarms, history};
use crate::daemon::{Agent, pay_to};

const CHANGED: &str = "account-changed-in-erp-never-paid";
const BANK: &str = "res.partner.bank";
const PARTNER: &str = "res.partner";

/// Somebody who keeps contacts in Odoo, and leaves no note where Odoo can be told to leave none.
pub(super) struct Manager<'a> {
    session: Seeder,
    scene: &'a Scene,
}

impl Manager<'_> {
    pub(super) async fn writes(&self, model: &str, id: i32, values: Value) {
        let context = json!({ "lang": "en_US", "mail_notrack": true, "tracking_disable": true });
        let args = json!([[id], values]);
        let wrote: bool = self.session.call_within(model, "write", args, context).await.unwrap();
        assert!(wrote);
    }

    async fn adds(&self, vendor: i32, iban: &str) -> i32 {
        let values =
            json!([{ "partner_id": vendor, "acc_number": iban, "allow_out_payment": true }]);
        self.session.call(BANK, "create", values).await.unwrap()
    }

    async fn deletes(&self, account: i32) {
        let deleted: bool = self.session.call(BANK, "unlink", json!([[account]])).await.unwrap();
        assert!(deleted);
    }

    /// Another number in the record that is there, which keeps its id and its date of creation.
    async fn overwrites(&self, account: i32, iban: &str) {
        let untrusted = json!({ "acc_number": iban, "allow_out_payment": false });
        self.writes(BANK, account, untrusted).await;
        self.writes(BANK, account, json!({ "allow_out_payment": true })).await;
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
            self.scene.call(PARTNER, "search", json!([[["id", "=", vendor]]])).await;
        assert!(left.is_empty(), "they were merged: {left:?}");
    }

    /// The guard keeps them from the manager; so somebody more powerful does.
    pub(super) async fn erases_the_notes(&self, vendor: i32) {
        let notes = json!([[["model", "=", PARTNER], ["res_id", "=", vendor]]]);
        let notes: Vec<i32> = self.scene.call("mail.message", "search", notes).await;
        let unlink = json!([notes]);
        let tried = self.session.call::<bool>("mail.message", "unlink", unlink.clone()).await;
        assert!(notes.is_empty() || tried.is_err(), "a manager erases notes");
        self.scene.call::<bool>("mail.message", "unlink", unlink).await;
    }
}

pub(super) async fn manager(scene: &Scene) -> Manager<'_> {
    let session = scene.person("contacts", &CONTACT_MANAGER).await;
    // Odoo merges only for somebody with an address to send the note from.
    let domain = json!([[["login", "=like", "contacts-%"], ["email", "=", false]]]);
    let ids: Vec<i32> = scene.call("res.users", "search", domain).await;
    let email = json!([ids, { "email": "contacts@example.com" }]);
    scene.call::<bool>("res.users", "write", email).await;
    Manager { session, scene }
}

/// Waits until an alarm tells of that vendor.
pub(super) async fn told(house: &House, human: &Agent, vendor: i32) -> Value {
    let mine = async || -> Option<Value> {
        let found = alarms(human, "changed_in_erp").await;
        found.into_iter().find(|alarm| alarm["vendor_id"] == json!(vendor.to_string()))
    };
    let what = format!("told of what changed at vendor {vendor}");
    house.daemon.until(&what, async || mine().await.is_some()).await;
    mine().await.unwrap()
}

/// What was done is told by an alarm with what to do, though nobody paid; and a payment to the record
/// as it is now is refused.
pub(super) async fn blocks(house: &House, human: &Agent, payable: &Payable, what: &str) {
    let alarm = told(house, human, payable.vendor.vendor).await;
    let detail = alarm["detail"].as_str().unwrap();
    assert!(detail.contains("bank-confirmations"), "{what}: {detail}");
    let denied = house.agent.propose(&what.replace(' ', "-"), &payable.whole()).await;
    assert_eq!(denied.text("/status"), "denied", "{what}: {}", denied.json);
    let reasons = denied.reasons();
    assert!(reasons.contains(&CHANGED.to_owned()), "{what}: {reasons:?}");
    assert_eq!(denied.text("/facts/bank_status"), "changed_in_erp", "{what}");
}

/// Since when each account is on file, by Odoo's id.
async fn on_file(human: &Agent, payables: &[&Payable]) -> BTreeMap<String, String> {
    let mut since = BTreeMap::new();
    for payable in payables {
        let shown = history(human, &payable.vendor.vendor.to_string()).await;
        for account in shown["accounts"].as_array().into_iter().flatten() {
            let text = |name: &str| account[name].as_str().unwrap().to_owned();
            since.insert(text("account_ref"), text("since"));
        }
    }
    since
}

/// Fails if any account is older than it was, or if none of those is there.
fn no_older(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    assert!(before.keys().any(|account| after.contains_key(account)), "{before:?} {after:?}");
    for (account, since) in after {
        let was = before.get(account);
        assert!(was.is_none_or(|was| was <= since), "{account}: {was:?}, now {since}");
    }
}

async fn ends_unpaid(scene: &Scene, house: House, payables: &[&Payable]) {
    for payable in payables {
        scene.assert_unpaid(payable).await;
    }
    house.daemon.stop();
    house.installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn whatever_a_contact_manager_does_to_an_account_is_found_and_blocks() {
    let Some(scene) = Scene::enter().await else { return };
    let mut payables = Vec::new();
    for _ in 0..6 {
        payables.push(scene.payable("31.00").await);
    }
    let [edited, back, ordered, archived, returned, remade] = payables.first_chunk().unwrap();
    // A second account before the first contact: their order can change, and it can be made anew.
    let manager = manager(&scene).await;
    let (spare, again) = (new_iban(), new_iban());
    let second = manager.adds(ordered.vendor.vendor, &spare).await;
    let gone = manager.adds(remade.vendor.vendor, &again).await;
    let all: Vec<&Payable> = payables.iter().collect();
    let house = house(&scene, &all, &[]).await;
    let anna = house.daemon.sign_in("anna").await;
    let before = on_file(&anna, &all).await;
    assert_eq!(before.len(), 8, "{before:?}");

    manager.overwrites(edited.vendor.account, &new_iban()).await;
    // There and back within the minute.
    manager.overwrites(back.vendor.account, &new_iban()).await;
    manager.overwrites(back.vendor.account, &back.iban).await;
    manager.writes(BANK, second, json!({ "sequence": 1 })).await;
    manager.writes(BANK, archived.vendor.account, json!({ "active": false })).await;
    for active in [false, true] {
        manager.writes(BANK, returned.vendor.account, json!({ "active": active })).await;
    }
    manager.deletes(gone).await;
    let made = manager.adds(remade.vendor.vendor, &again).await;
    for payable in &payables {
        manager.erases_the_notes(payable.vendor.vendor).await;
    }

    for (payable, what) in [
        (edited, "edited"),
        (back, "edited and edited back"),
        (ordered, "re-ordered"),
        (returned, "archived and brought back"),
    ] {
        blocks(&house, &anna, payable, what).await;
    }
    told(&house, &anna, archived.vendor.vendor).await;
    let denied = house.agent.propose("archived", &archived.whole()).await;
    assert_eq!(denied.text("/status"), "denied", "{}", denied.json);
    let named = house.agent.propose("archived-named", &archived.to(&json!(archived.iban))).await;
    assert_eq!(named.text("/status"), "denied", "{}", named.json);
    told(&house, &anna, remade.vendor.vendor).await;
    let denied = house.agent.propose("made-anew", &remade.to(&json!(again))).await;
    assert_eq!(denied.text("/status"), "denied", "{}", denied.json);

    let after = on_file(&anna, &all).await;
    no_older(&before, &after);
    // The same number in a new record is a new account.
    assert!(after[&made.to_string()] > before[&gone.to_string()], "{before:?} {after:?}");
    ends_unpaid(&scene, house, &all).await;
}

#[tokio::test]
async fn whatever_a_contact_manager_does_to_a_vendor_is_found_and_blocks() {
    let Some(scene) = Scene::enter().await else { return };
    let mut payables = Vec::new();
    for _ in 0..4 {
        payables.push(scene.payable("31.00").await);
    }
    let [owned, renamed, merged, into] = payables.first_chunk().unwrap();
    let manager = manager(&scene).await;
    let all: Vec<&Payable> = payables.iter().collect();
    let house = house(&scene, &all, &[]).await;
    let anna = house.daemon.sign_in("anna").await;
    let before = on_file(&anna, &all).await;
    assert_eq!(before.len(), 4, "{before:?}");

    let of_another = json!({ "parent_id": into.vendor.vendor });
    manager.writes(PARTNER, owned.vendor.vendor, of_another).await;
    manager.writes(PARTNER, renamed.vendor.vendor, json!({ "name": "Grey Finch Ltd" })).await;
    manager.merges(merged.vendor.vendor, into.vendor.vendor).await;
    for payable in [owned, renamed, into] {
        manager.erases_the_notes(payable.vendor.vendor).await;
    }

    blocks(&house, &anna, owned, "re-parented").await;
    blocks(&house, &anna, renamed, "renamed").await;
    // The merged one's account and bill are the other's now, and neither is paid.
    blocks(&house, &anna, into, "merged into").await;
    told(&house, &anna, merged.vendor.vendor).await;
    let to_both = [json!({ "ref": into.vendor.vendor.to_string() }), json!(merged.iban)];
    for (at, payee) in to_both.iter().enumerate() {
        let denied = house.agent.propose(&format!("merged-{at}"), &merged.to(payee)).await;
        assert_eq!(denied.text("/status"), "denied", "{}", denied.json);
    }
    no_older(&before, &on_file(&anna, &all).await);
    ends_unpaid(&scene, house, &all).await;
}

#[tokio::test]
async fn a_vendor_that_is_made_anothers_contact_is_told_of_and_not_paid_even_when_let_go() {
    let Some(scene) = Scene::enter().await else { return };
    let (absorbed, parent) = (scene.payable("31.00").await, scene.payable("31.00").await);
    let manager = manager(&scene).await;
    let house = house(&scene, &[&absorbed, &parent], &[]).await;
    let anna = house.daemon.sign_in("anna").await;
    let before = on_file(&anna, &[&absorbed, &parent]).await;

    // One that is no company any more is no vendor of its own: its next bills are the parent's.
    let contact = json!({ "parent_id": parent.vendor.vendor, "is_company": false });
    manager.writes(PARTNER, absorbed.vendor.vendor, contact).await;
    manager.erases_the_notes(absorbed.vendor.vendor).await;
    let alarm = told(&house, &anna, absorbed.vendor.vendor).await;
    let detail = alarm["detail"].as_str().unwrap();
    assert!(detail.contains("contacts-"), "it says who: {detail}");
    let next = next_bill(&scene, &absorbed).await;
    let to_parent = json!({ "ref": parent.vendor.vendor.to_string() });
    for (at, (bill, payee)) in [
        (absorbed.bill, &json!(absorbed.iban)),
        (absorbed.bill, &to_parent),
        (next, &to_parent),
        (next, &json!(parent.iban)),
        (next, &json!(absorbed.iban)),
    ]
    .into_iter()
    .enumerate()
    {
        let proposal = pay_to(&bill.to_string(), payee, &absorbed.total);
        let denied = house.agent.propose(&format!("absorbed-{at}"), &proposal).await;
        assert_eq!(denied.text("/status"), "denied", "{at}: {}", denied.json);
        assert_ne!(denied.text("/decision/stage"), "error", "{at}: {}", denied.json);
    }
    // Made what it was, it is not paid before somebody has asked the vendor.
    let alone = json!({ "parent_id": false, "is_company": true });
    manager.writes(PARTNER, absorbed.vendor.vendor, alone).await;
    blocks(&house, &anna, &absorbed, "let go").await;
    no_older(&before, &on_file(&anna, &[&absorbed, &parent]).await);

    // Nobody did anything to the parent's own account, or to its own bill.
    executed(&house.agent, house.agent.propose("parent", &parent.whole()).await).await;
    scene.assert_paid_once(&parent).await;
    ends_unpaid(&scene, house, &[&absorbed]).await;
}

/// Another bill of that vendor's.
async fn next_bill(scene: &Scene, payable: &Payable) -> i32 {
    let seed = BillSeed {
        company: 1,
        vendor: payable.vendor.vendor,
        reference: &format!("{}-next", payable.reference),
        total: &payable.total,
        date: "2026-03-02",
        due: "2099-12-31",
    };
    scene.bill(&seed).await
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
