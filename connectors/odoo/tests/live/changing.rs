//! Who changes bank details in Odoo and who does not, and that whatever anybody does about a vendor is
//! in the log.

use countersign_erp_source::{
    AccountNumber, BankChange, ErpSource, Iban, LoggedChange, LoggedField, OldAccount,
    SealedBankChange, VendorId,
};
use countersign_odoo::guard::install;
use countersign_odoo::seed::Seeder;
use serde_json::{Value as Json, json};

use crate::attacks::{assert_refused, tries};
use crate::scene::{self, Scene, Scenery, account_id, credential, new_iban, vendor_id};

const CHANGE: &str = "Countersign: change bank details";

/// A change of the vendor's account to that number that is good in every respect.
fn a_change(scene: &Scene, scenery: &Scenery, new_iban: Iban) -> SealedBankChange {
    let like = scene.order(scenery);
    scene.key.seal(BankChange {
        marker: like.marker,
        store: like.store,
        seq: like.seq,
        company: like.company,
        erp_company: like.erp_company,
        vendor: like.vendor,
        old: Some(OldAccount { account: like.account, number: AccountNumber::Iban(like.iban) }),
        new_iban,
        not_after: like.not_after,
    })
}

/// The newest number in the log.
async fn log_end(scene: &Scene) -> u64 {
    let mut last = 0;
    loop {
        let page = scene.odoo.list_changes(&scene.company, last, 500).await.unwrap();
        let Some(entry) = page.last() else { return last };
        last = entry.id;
    }
}

/// What the log says of that vendor from that number on.
async fn logged(scene: &Scene, after: u64, vendor: i32) -> Vec<LoggedChange> {
    let page = scene.odoo.list_changes(&scene.company, after, u16::MAX).await.unwrap();
    page.into_iter().filter(|entry| entry.vendor == vendor_id(vendor)).collect()
}

async fn numbers_of(scene: &Scene, vendor: i32) -> Vec<(i32, String, bool)> {
    let vendor = scene.odoo.find_vendor(&scene.company, &vendor_id(vendor)).await.unwrap().unwrap();
    let accounts = vendor.accounts.iter();
    accounts
        .map(|account| {
            let id = account.id.as_str().parse().unwrap();
            (id, account.number.whole().to_owned(), account.active && account.erp_allows)
        })
        .collect()
}

#[tokio::test]
async fn only_the_bank_admin_with_a_sealed_order_changes_bank_details() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("70.00").await;
    let before = numbers_of(&scene, scenery.vendor.vendor).await;
    let sealed = a_change(&scene, &scenery, new_iban());
    let told = json!({ "order": sealed.text(), "seal": sealed.seal() });
    let change = scene.action(CHANGE).await;
    let bank_admin = scene.identity(credential("cs-bank-admin"));

    // A good order in the wrong hands.
    let mut wrong = vec![
        ("payer", scene.identity(credential("cs-payer"))),
        ("reader", scene.identity(credential("cs-reader"))),
        ("contact manager", scene.contact_manager().await),
        ("clerk", scene.clerk().await),
    ];
    wrong.extend(scene.buyer().await.map(|buyer| ("buyer", buyer)));
    for (who, person) in &wrong {
        assert_refused(person.run(change, told.clone()).await, who);
        let look_up = scene.action("Countersign: look up a change of bank details").await;
        assert_refused(person.run(look_up, told.clone()).await, who);
    }
    // The right hands without a good order.
    let other = a_change(&scene, &scenery, new_iban());
    for (order, seal) in [
        (other.text().to_owned(), sealed.seal().to_owned()),
        (other.text().to_owned(), String::new()),
        (other.text().to_owned(), "0".repeat(64)),
        (format!("{} ", sealed.text()), sealed.seal().to_owned()),
    ] {
        let answer = bank_admin.run(change, json!({ "order": order, "seal": seal })).await;
        assert!(answer.unwrap_err().to_string().contains("bad_seal"));
    }
    for told in [json!({}), json!({ "order": "{}" }), json!({ "order": [1], "seal": {} })] {
        let answer = bank_admin.run(change, told).await;
        assert!(answer.unwrap_err().to_string().contains("bad_request"));
    }
    // Nor does he pay, see the log or ask what was booked.
    for name in ["pay a bill", "look up an order", "list orders", "review payments", "list changes"]
    {
        let action = scene.action(&format!("Countersign: {name}")).await;
        assert_refused(bank_admin.run(action, told.clone()).await, name);
    }
    for (model, method, args) in [
        ("res.partner.bank", "search_count", json!([[]])),
        ("account.move", "search_count", json!([[]])),
        ("ir.config_parameter", "get_param", json!(["countersign.seal_inner"])),
        ("ir.actions.server", "write", json!([[change], { "code": "pass" }])),
    ] {
        assert_refused(tries(&bank_admin, model, method, args).await, model);
    }
    assert_eq!(numbers_of(&scene, scenery.vendor.vendor).await, before);
    bank_admin.run(change, told).await.unwrap();
    assert_ne!(numbers_of(&scene, scenery.vendor.vendor).await, before);
}

/// Entries as field, before and after.
fn said(log: &[LoggedChange]) -> Vec<(LoggedField, Option<&str>, Option<&str>)> {
    log.iter().map(|entry| (entry.field, entry.before.as_deref(), entry.after.as_deref())).collect()
}

struct Manager<'a> {
    scene: &'a Scene,
    session: Seeder,
}

impl Manager<'_> {
    /// Does it without leaving a note where Odoo can be told to leave none.
    async fn writes(&self, model: &str, id: i32, values: Json) {
        let context = json!({ "lang": "en_US", "mail_notrack": true, "tracking_disable": true });
        let args = json!([[id], values]);
        let wrote: bool = self.session.call_within(model, "write", args, context).await.unwrap();
        assert!(wrote);
    }

    async fn adds(&self, vendor: i32, iban: &str) -> i32 {
        let values = json!([{ "partner_id": vendor, "acc_number": iban }]);
        self.session.call("res.partner.bank", "create", values).await.unwrap()
    }

    async fn merges(&self, vendor: i32, into: i32) {
        let values = json!([{
            "state": "selection", "partner_ids": [[6, 0, [vendor, into]]], "dst_partner_id": into,
        }]);
        let model = "base.partner.merge.automatic.wizard";
        let wizard: i32 = self.session.call(model, "create", values).await.unwrap();
        drop(tries(&self.session, model, "action_merge", json!([[wizard]])).await);
    }

    async fn erases_the_notes(&self, vendor: i32) {
        let notes = json!([[["model", "=", "res.partner"], ["res_id", "=", vendor]]]);
        let notes: Vec<i32> = self.session.call("mail.message", "search", notes).await.unwrap();
        for note in notes {
            drop(tries(&self.session, "mail.message", "unlink", json!([[note]])).await);
        }
    }
}

async fn manager(scene: &Scene) -> Manager<'_> {
    let session = scene.contact_manager().await;
    // Odoo merges only for somebody with an address to send the note from.
    let domain = json!([[["login", "=like", "contacts-%"], ["email", "=", false]]]);
    let ids: Vec<i32> = scene.admin.call("res.users", "search", domain).await.unwrap();
    let email = json!([ids, { "email": "contacts@example.com" }]);
    assert!(scene.admin.call::<bool>("res.users", "write", email).await.unwrap());
    Manager { scene, session }
}

#[tokio::test]
async fn whatever_a_contact_manager_does_to_an_account_is_in_the_log() {
    let Some(scene) = scene::enter().await else { return };
    let manager = manager(&scene).await;
    let scenery = scene.open_bill("20.00").await;
    let vendor = scenery.vendor.vendor;
    let (first, second) = (new_iban(), new_iban());
    let (first, second) = (first.electronic(), second.electronic());
    let start = log_end(&scene).await;
    let added = manager.adds(vendor, first).await;
    for values in [
        json!({ "sequence": 1 }),
        json!({ "acc_number": second }),
        json!({ "acc_number": first }),
        json!({ "acc_holder_name": "Somebody Else" }),
        // As a comparison reads it, and as people do.
        json!({ "sanitized_acc_number": second }),
        json!({ "sanitized_acc_number": first }),
        json!({ "active": false }),
        json!({ "active": true }),
    ] {
        manager.writes("res.partner.bank", added, values).await;
    }
    manager.erases_the_notes(vendor).await;
    drop(tries(&manager.session, "res.partner.bank", "unlink", json!([[added]])).await);

    let log = logged(manager.scene, start, vendor).await;
    let (active, archived) = (Some(LoggedField::ACTIVE), Some(LoggedField::ARCHIVED));
    let (first, second) = (Some(first), Some(second));
    let told = said(&log);
    let holder = told.iter().find(|(field, ..)| *field == LoggedField::Holder).unwrap();
    assert_eq!(holder.2, Some("Somebody Else"));
    let told: Vec<_> =
        told.into_iter().filter(|(field, ..)| *field != LoggedField::Holder).collect();
    let expected = [
        (LoggedField::Added, None, first),
        (LoggedField::Order, Some("10"), Some("1")),
        (LoggedField::Number, first, second),
        (LoggedField::Number, second, first),
        (LoggedField::Number, first, second),
        (LoggedField::Number, second, first),
        (LoggedField::Activity, active, archived),
        (LoggedField::Activity, archived, active),
        (LoggedField::Removed, first, None),
    ];
    assert_eq!(told, expected);
    for entry in log {
        assert!(!entry.ordered);
        assert_eq!(entry.account, Some(account_id(added)));
        let by = entry.by.unwrap_or_default();
        // Of a row that is gone Odoo does not say who took it.
        assert!(by.starts_with("contacts-") || entry.field == LoggedField::Removed, "{by}");
    }
}

#[tokio::test]
async fn whatever_a_contact_manager_does_to_a_vendor_is_in_the_log() {
    let Some(scene) = scene::enter().await else { return };
    let manager = manager(&scene).await;
    let scenery = scene.open_bill("20.00").await;
    let other = scene.open_bill("20.00").await.vendor.vendor;
    let vendor = scenery.vendor.vendor;
    let start = log_end(&scene).await;
    for values in [
        json!({ "name": "Grey Finch Ltd" }),
        json!({ "phone": "+33155667788" }),
        json!({ "mobile": "+33655667788" }),
        json!({ "parent_id": other }),
        json!({ "parent_id": false }),
        json!({ "commercial_partner_id": other }),
        json!({ "commercial_partner_id": vendor }),
    ] {
        manager.writes("res.partner", vendor, values).await;
    }
    manager.erases_the_notes(vendor).await;
    let log = logged(&scene, start, vendor).await;
    let told = said(&log);
    let (us, them) = (vendor.to_string(), other.to_string());
    let (us, them) = (Some(us.as_str()), Some(them.as_str()));
    for expected in [
        (LoggedField::Phone, Some("+49 30 5550 1"), Some("+33155667788")),
        (LoggedField::Mobile, None, Some("+33655667788")),
        (LoggedField::Parent, None, them),
        (LoggedField::Parent, them, None),
        (LoggedField::Parent, us, them),
        (LoggedField::Parent, them, us),
    ] {
        assert!(told.contains(&expected), "{expected:?}: {told:?}");
    }
    let named = |(field, _, after): &(LoggedField, _, Option<&str>)| {
        *field == LoggedField::Name && *after == Some("Grey Finch Ltd")
    };
    assert!(told.iter().any(named), "{told:?}");
    assert!(log.iter().all(|entry| entry.by.as_ref().unwrap().starts_with("contacts-")));
}

#[tokio::test]
async fn what_a_merge_gives_away_is_in_the_log() {
    let Some(scene) = scene::enter().await else { return };
    let manager = manager(&scene).await;
    let shell = scene.open_bill("20.00").await.vendor;
    let into = scene.open_bill("20.00").await.vendor;
    let start = log_end(&scene).await;
    manager.merges(shell.vendor, into.vendor).await;
    manager.erases_the_notes(into.vendor).await;
    let log = logged(&scene, start, shell.vendor).await;
    let (from, to) = (shell.vendor.to_string(), into.vendor.to_string());
    let told = said(&log);
    let given = (LoggedField::Owner, Some(from.as_str()), Some(to.as_str()));
    assert!(told.contains(&given), "{told:?}");
    assert!(told.contains(&(LoggedField::Vendor, Some(from.as_str()), None)), "{told:?}");
    // A merge is done past the rows' own record of who wrote them: better nobody than the wrong one.
    assert!(log.iter().all(|entry| entry.by.is_none()), "{log:?}");
}

async fn in_place(scene: &Scene, who: &Seeder, account: i32, other: VendorId) -> [bool; 2] {
    let other: i32 = other.as_str().parse().unwrap();
    let untrusted = json!({ "allow_out_payment": false });
    scene.write("res.partner.bank", account, untrusted).await.unwrap();
    let mut let_through = [true; 2];
    let values = [json!({ "acc_number": new_iban().electronic() }), json!({ "partner_id": other })];
    for (through, values) in let_through.iter_mut().zip(values) {
        let answer = tries(who, "res.partner.bank", "write", json!([[account], values])).await;
        *through = answer.is_ok();
        if let Err(error) = answer {
            assert_refused(Err(error), "in place");
        }
    }
    let_through
}

#[tokio::test]
async fn an_account_that_an_order_names_keeps_number_and_owner_for_30_days() {
    let Some(scene) = scene::enter_alone().await else { return };
    let manager = manager(&scene).await;
    let other = scene.open_bill("20.00").await.vendor;
    let paid = scene.open_bill("20.00").await;
    scene.pay(scene.order(&paid)).await.unwrap();
    let changed = scene.open_bill("20.00").await;
    let order = a_change(&scene, &changed, new_iban());
    let made = scene.odoo.change_bank_details(&order).await.unwrap().account.unwrap();
    let made = made.id.as_str().parse().unwrap();
    let accounts = [paid.vendor.account, changed.vendor.account, made];
    for account in accounts {
        let tried = in_place(&scene, &manager.session, account, vendor_id(other.vendor)).await;
        assert_eq!(tried, [false; 2], "account {account}");
    }
    // Odoo's merge deletes what it cannot give away; so it fails as a whole.
    let held = async |of: &Scenery| numbers_of(&scene, of.vendor.vendor).await;
    let before = (held(&paid).await, held(&changed).await);
    for scenery in [&paid, &changed] {
        manager.merges(scenery.vendor.vendor, other.vendor).await;
    }
    assert_eq!((held(&paid).await, held(&changed).await), before);
    manager.writes("res.partner.bank", paid.vendor.account, json!({ "active": false })).await;

    let code = format!(
        "env.cr.execute(\"\"\"ALTER TABLE countersign_order DISABLE TRIGGER countersign_keep_order;\n\
         UPDATE countersign_order SET at = at - interval '31 days' WHERE store = '{}';\n\
         ALTER TABLE countersign_order ENABLE TRIGGER countersign_keep_order\"\"\")\n\
         action = {{'said': 'done'}}\n",
        scene.store
    );
    scene.run_code(&code).await.unwrap();
    for account in accounts {
        let tried = in_place(&scene, &manager.session, account, vendor_id(other.vendor)).await;
        assert_eq!(tried, [true; 2], "account {account}, later");
    }
}

/// What the tables and actions were before there were changes of bank details.
const EARLIER: &str = "
ALTER TABLE countersign_order DISABLE TRIGGER USER;
DELETE FROM countersign_order WHERE kind <> 'payment';
ALTER TABLE countersign_order ENABLE TRIGGER USER;
ALTER TABLE countersign_order DROP CONSTRAINT countersign_order_kind, DROP COLUMN kind,
    DROP COLUMN old_account, DROP COLUMN old_number, DROP COLUMN bills, DROP COLUMN tx,
    DROP COLUMN begun, ALTER COLUMN bill SET NOT NULL, ALTER COLUMN payment SET NOT NULL,
    ALTER COLUMN amount SET NOT NULL, ALTER COLUMN date SET NOT NULL;
DROP TABLE countersign_log, countersign_vendor CASCADE;
DROP FUNCTION countersign_keep_account, countersign_log_account, countersign_log_vendor CASCADE;
";

#[tokio::test]
async fn a_guard_of_an_earlier_version_is_brought_to_this_one() {
    let Some(scene) = scene::enter_alone().await else { return };
    let paid = scene.open_bill("20.00").await;
    let payment = scene.order(&paid);
    let booked = scene.pay(payment.clone()).await.unwrap();
    let code = format!("env.cr.execute(\"\"\"{EARLIER}\"\"\")\naction = {{'said': 'done'}}\n");
    scene.run_code(&code).await.unwrap();
    for name in [
        "change bank details",
        "look up a change of bank details",
        "list changes",
        "review payments",
    ] {
        let action = scene.action(&format!("Countersign: {name}")).await;
        let gone = scene.admin.call::<bool>("ir.actions.server", "unlink", json!([[action]]));
        gone.await.unwrap();
    }
    let found = scene.odoo.attest(&scene.store).await.unwrap().problems();
    for named in ["change bank details", "list changes", "countersign_log_vendor", "constraint"] {
        let named = |problem: &String| problem.contains(named);
        assert!(found.iter().any(named), "{found:?}");
    }
    assert!(found.iter().all(|problem| problem.contains("countersign odoo install")), "{found:?}");

    install(&scene.install_options()).await.unwrap();
    let attested = scene.odoo.attest(&scene.store).await.unwrap();
    assert_eq!((attested.problems(), attested.newest_seq), (vec![], payment.seq));
    // What was booked before is known, and its account is kept as if it were booked now.
    assert_eq!(scene.pay(payment).await, Ok(booked));
    assert_eq!(scene.odoo.list_orders(&scene.store, 0, 10).await.unwrap().len(), 1);
    let changed = scene.open_bill("20.00").await;
    let order = a_change(&scene, &changed, new_iban());
    let start = log_end(&scene).await;
    let made = scene.odoo.change_bank_details(&order).await.unwrap();
    assert_eq!(made.differences(order.order()), vec![]);
    let log = logged(&scene, start, changed.vendor.vendor).await;
    assert!(!log.is_empty() && log.iter().all(|entry| entry.ordered), "{log:?}");
    let manager = manager(&scene).await;
    let other = vendor_id(changed.vendor.vendor);
    let tried = in_place(&scene, &manager.session, paid.vendor.account, other).await;
    assert_eq!(tried, [false; 2]);
}

#[tokio::test]
async fn no_entry_of_the_log_can_be_changed_or_taken_off() {
    let Some(scene) = scene::enter().await else { return };
    let vendor = scene.open_bill("10.00").await.vendor.vendor;
    let before = logged(&scene, 0, vendor).await;
    assert!(!before.is_empty());
    for statement in [
        "DELETE FROM countersign_log",
        "UPDATE countersign_log SET became = NULL",
        "TRUNCATE countersign_log",
    ] {
        let code = format!("env.cr.execute('{statement}')\naction = {{'said': 'done'}}\n");
        assert!(scene.run_code(&code).await.is_err(), "{statement}");
    }
    assert_eq!(logged(&scene, 0, vendor).await, before);
}
