//! What is read of accounts, bills and companies, beyond the port's own suite.

use countersign_erp_source::{
    AccountNumber, BesideQuery, BillId, BillKind, BillQuery, BillState, Document, ErpSource, Iban,
    Likeness, PhoneKind, ReadError, Traits, Vendor, VendorAccount,
};
use countersign_odoo::seed::{DEMO_COMPANY, VendorSeed};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::scene::{self, OTHER_COMPANY, Scene, Scenery, bill_id, euros, new_iban, vendor_id};

async fn vendor(scene: &Scene, scenery: &Scenery) -> Vendor {
    let id = vendor_id(scenery.vendor.vendor);
    scene.odoo.find_vendor(&scene.company, &id).await.unwrap().unwrap()
}

async fn account(scene: &Scene, scenery: &Scenery) -> VendorAccount {
    vendor(scene, scenery).await.accounts.first().unwrap().clone()
}

#[tokio::test]
async fn trust_and_order_are_no_change_of_an_account_and_activity_is() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    let id = scenery.vendor.account;
    let fresh = account(&scene, &scenery).await;
    assert!(!fresh.changed_after_creation && fresh.unchanged_since.is_some());
    // Odoo's dates have whole seconds, and the writes must fall into another one.
    let created = scene.erp_time().await;
    while scene.erp_time().await.as_secs() <= created.as_secs() {}

    scene.write("res.partner.bank", id, json!({ "allow_out_payment": false })).await.unwrap();
    scene.write("res.partner.bank", id, json!({ "sequence": 3 })).await.unwrap();
    scene.write("res.partner.bank", id, json!({ "allow_out_payment": true })).await.unwrap();
    let trusted = account(&scene, &scenery).await;
    assert_eq!(trusted, fresh);

    scene.write("res.partner.bank", id, json!({ "active": false })).await.unwrap();
    scene.write("res.partner.bank", id, json!({ "active": true })).await.unwrap();
    let again = account(&scene, &scenery).await;
    assert!(again.changed_after_creation && again.unchanged_since > fresh.unchanged_since);
}

#[tokio::test]
async fn all_accounts_of_a_vendor_are_shown_in_odoos_order() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    let partner = scenery.vendor.vendor;
    let create = |values| scene.admin.call::<i32>("res.partner.bank", "create", json!([values]));
    let first = new_iban();
    let first_id = create(json!({
        "partner_id": partner, "acc_number": first.electronic(), "sequence": 1,
    }))
    .await
    .unwrap();
    create(json!({ "partner_id": partner, "acc_number": "no iban at all", "active": false }))
        .await
        .unwrap();
    let of_other = create(json!({
        "partner_id": partner, "acc_number": new_iban().electronic(),
        "company_id": scene.other_erp_company,
    }))
    .await
    .unwrap();

    let vendor = vendor(&scene, &scenery).await;
    let shown = vendor.accounts.first().unwrap();
    assert_eq!(shown.id.as_str(), first_id.to_string());
    assert_eq!(shown.number.iban(), Some(&first));
    assert!(!shown.erp_allows, "an account that nobody trusts");
    let other = vendor.accounts.iter().find(|account| account.number.iban().is_none()).unwrap();
    assert!(!other.active && matches!(other.number, AccountNumber::Other(_)));
    let foreign = vendor.accounts.iter().find(|a| a.id.as_str() == of_other.to_string());
    assert!(foreign.is_none_or(|account| !account.erp_allows));
    assert_eq!(vendor.phones.first().unwrap().kind, PhoneKind::Phone);
    assert_eq!(vendor.phones.first().unwrap().raw, "+49 30 5550 1");
}

#[tokio::test]
async fn a_draft_and_a_credit_note_read_as_what_they_are() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    let line = json!({
        "name": "Returned", "quantity": 1, "price_unit": "4.00", "tax_ids": [[6, 0, []]],
    });
    let values = json!({
        "move_type": "in_refund", "partner_id": scenery.vendor.vendor, "ref": "CN-1",
        "invoice_date": "2026-11-20", "invoice_line_ids": [[0, 0, line]],
    });
    let note: i32 = scene.admin.call("account.move", "create", json!([values])).await.unwrap();
    let read = || async {
        scene.odoo.find_bill(&scene.company, &bill_id(note)).await.unwrap().unwrap().bill
    };
    let draft = read().await;
    assert_eq!((draft.kind, draft.state), (BillKind::CreditNote, BillState::Draft));
    let _posted: IgnoredAny =
        scene.admin.call("account.move", "action_post", json!([[note]])).await.unwrap();
    let posted = read().await;
    assert_eq!(posted.state, BillState::Posted);
    assert_eq!(posted.header.total, euros("4.00"));
    assert_eq!(posted.payable.total, euros("4.00"));
    assert_eq!(posted.reference.as_deref(), Some("CN-1"));
    assert!(!posted.is_open() && posted.consistent_vendor().is_ok());

    let mut query = BillQuery {
        vendor: Some(vendor_id(scenery.vendor.vendor)),
        limit: 10,
        ..BillQuery::default()
    };
    assert_eq!(scene.odoo.list_bills(&scene.company, &query).await.unwrap().len(), 2);
    query.open_only = true;
    let open = scene.odoo.list_bills(&scene.company, &query).await.unwrap();
    let ids: Vec<_> = open.iter().map(|reading| reading.bill.id.clone()).collect();
    assert_eq!(ids, [bill_id(scenery.bill)]);
    query.due_before = chrono::NaiveDate::from_ymd_opt(2026, 12, 30);
    assert_eq!(scene.odoo.list_bills(&scene.company, &query).await.unwrap(), vec![]);
    query.due_before = chrono::NaiveDate::from_ymd_opt(2026, 12, 31);
    assert_eq!(scene.odoo.list_bills(&scene.company, &query).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_vendor_that_became_anothers_child_is_none_any_more() {
    let Some(scene) = scene::enter().await else { return };
    let (child, parent) = (scene.open_bill("10.00").await, scene.open_bill("10.00").await);
    let values = json!({ "parent_id": parent.vendor.vendor, "is_company": false });
    scene.write("res.partner", child.vendor.vendor, values).await.unwrap();
    let id = vendor_id(child.vendor.vendor);
    assert_eq!(scene.odoo.find_vendor(&scene.company, &id).await.unwrap(), None);
    let answer = scene.pay(scene.order(&child)).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn each_company_pays_from_its_own_account() {
    let Some(scene) = scene::enter().await else { return };
    for (company, seed) in [(&scene.company, DEMO_COMPANY), (&scene.other_company, OTHER_COMPANY)] {
        let sources = scene.odoo.source_accounts(company).await.unwrap();
        let [source] = sources.as_slice() else { panic!("{sources:?}") };
        assert_eq!(source.iban, Iban::parse(seed.iban).unwrap());
        assert_eq!((source.journal.as_str(), source.currency), ("BNK1", scene::eur()));
    }
}

#[tokio::test]
async fn the_demonstration_can_be_seeded_and_paid() {
    let Some(scene) = scene::enter().await else { return };
    let demo = scene.admin.demo("2026-11-15", "2026-12-31").await.unwrap();
    let bill = scene.odoo.find_bill(&scene.company, &bill_id(demo.inv_2290)).await;
    let reading = bill.unwrap().unwrap();
    assert_eq!(reading.bill.reference.as_deref(), Some("INV-2290"));
    assert_eq!(reading.bill.header.total, euros("1840.00"));
    assert_eq!(reading.vendor.as_ref().unwrap().name, "ACME Supplies");
    let account = reading.vendor.unwrap().accounts.first().unwrap().clone();
    assert!(account.erp_allows && account.number.iban().is_some());
    let bill = scene.odoo.find_bill(&scene.company, &bill_id(demo.inv_2291)).await;
    assert_eq!(bill.unwrap().unwrap().bill.header.total, euros("1200.00"));
}

#[tokio::test]
async fn a_record_that_cannot_be_used_stops_no_list() {
    let Some(scene) = scene::enter().await else { return };
    // A list goes on after a record that is there, so there is one before them.
    let before = scene.open_bill("9.00").await;
    let (broken, whole) = (scene.open_bill("10.00").await, scene.open_bill("11.00").await);
    let clerk = scene.clerk().await;
    for field in ["amount_total", "amount_residual"] {
        let too_much = json!([[broken.bill], { field: "1e40" }]);
        clerk.call::<bool>("account.move", "write", too_much).await.unwrap();
    }
    let found = scene.odoo.find_bill(&scene.company, &bill_id(broken.bill)).await;
    assert!(matches!(found, Err(ReadError::Malformed { .. })), "{found:?}");
    let after = bill_id(before.bill);
    for open_only in [true, false] {
        let query =
            BillQuery { after: Some(after.clone()), open_only, limit: 100, ..BillQuery::default() };
        let found = scene.odoo.list_bills(&scene.company, &query).await.unwrap();
        let listed = |bill| found.iter().any(|reading| reading.bill.id == bill_id(bill));
        assert!(listed(whole.bill) && !listed(broken.bill), "{open_only}");
    }

    // Nor does a vendor that somebody moved to another company.
    let moved = scene.open_bill("10.00").await;
    let other = json!({ "company_id": scene.other_erp_company });
    scene.write("res.partner", moved.vendor.vendor, other).await.unwrap();
    let found = scene.odoo.find_bill(&scene.company, &bill_id(moved.bill)).await;
    assert_eq!(found, Ok(None));
    let last = scene.open_bill("11.00").await;
    let query = BillQuery { after: Some(after), limit: 100, ..BillQuery::default() };
    let found = scene.odoo.list_bills(&scene.company, &query).await.unwrap();
    let listed = |bill| found.iter().any(|reading| reading.bill.id == bill_id(bill));
    assert!(listed(whole.bill) && listed(last.bill) && !listed(moved.bill));
    let before = vendor_id(moved.vendor.vendor - 1);
    let vendors = scene.odoo.list_vendors(&scene.company, Some(&before), 100).await.unwrap();
    let listed = |id| vendors.iter().any(|vendor| vendor.id == vendor_id(id));
    assert!(listed(last.vendor.vendor) && !listed(moved.vendor.vendor));

    // An address needs no name, and a bill may come from one.
    let address = json!([{ "type": "other", "name": false, "street": "Nowhere 1" }]);
    let address: i32 = scene.admin.call("res.partner", "create", address).await.unwrap();
    let nameless = countersign_odoo::seed::SeededVendor { vendor: address, account: 0 };
    let bill = scene.bill_of(1, nameless, "12.00").await;
    let found = scene.odoo.find_bill(&scene.company, &bill_id(bill)).await.unwrap().unwrap();
    assert_eq!(found.vendor.unwrap().name, "");
    let before = vendor_id(whole.vendor.vendor);
    let vendors = scene.odoo.list_vendors(&scene.company, Some(&before), 100).await.unwrap();
    assert!(vendors.iter().any(|vendor| vendor.id == vendor_id(address)), "{vendors:?}");
}

#[tokio::test]
async fn documents_of_contacts_and_forged_figures_count_and_other_companies_do_not() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    let vendor = scenery.vendor.vendor;
    let contact = json!([{ "name": "Billing desk", "parent_id": vendor, "type": "invoice" }]);
    let contact: i32 = scene.admin.call("res.partner", "create", contact).await.unwrap();
    let enter = async |kind, partner, reference, total| {
        scene.document(kind, partner, Some(reference), total, "2026-10-01").await
    };
    let wanted = enter("in_invoice", vendor, "Q-77", "31.00").await;
    let of_contact = enter("in_invoice", contact, "q 77", "32.00").await;
    let receipt = enter("in_receipt", vendor, "Q 077", "33.00").await;
    let forged = enter("in_invoice", vendor, "Q77", "34.00").await;
    let clerk = scene.clerk().await;
    for field in ["amount_total", "amount_residual"] {
        let too_much = json!([[forged], { field: "1e40" }]);
        clerk.call::<bool>("account.move", "write", too_much).await.unwrap();
    }
    let elsewhere = countersign_odoo::seed::BillSeed {
        company: scene.other_erp_company,
        vendor,
        reference: "Q-77",
        total: "31.00",
        date: "2026-10-01",
        due: "2026-12-31",
    };
    scene.admin.bill(&elsewhere).await.unwrap();

    let reading = scene.odoo.find_bill(&scene.company, &bill_id(wanted)).await.unwrap().unwrap();
    let wanted = Document { id: bill_id(wanted), traits: Traits::of(&reading.bill) };
    let query = BesideQuery { bills: vec![wanted.clone()], held: None };
    let found = scene.odoo.look_beside(&scene.company, &query).await.unwrap();
    let mut same: Vec<BillId> = found
        .documents
        .iter()
        .filter(|document| document.id != wanted.id)
        .filter(|document| {
            wanted.traits.likeness(&document.traits) == Some(Likeness::SameReference)
        })
        .map(|document| document.id.clone())
        .collect();
    let mut expected = [of_contact, receipt, forged].map(bill_id);
    same.sort();
    expected.sort();
    assert_eq!(same, expected);
    assert!(found.with_credit.is_empty());

    // A credit note of the contact's is the vendor's.
    enter("in_refund", contact, "CN-9", "2.00").await;
    let found = scene.odoo.look_beside(&scene.company, &query).await.unwrap();
    assert_eq!(Vec::from_iter(found.with_credit), [vendor_id(vendor)]);
}

#[tokio::test]
async fn a_number_counts_for_the_vendors_of_this_company_alone() {
    let Some(scene) = scene::enter().await else { return };
    let scenery = scene.open_bill("10.00").await;
    let held = async || {
        let held = Some((scenery.iban.clone(), vendor_id(scenery.vendor.vendor)));
        let query = BesideQuery { bills: vec![], held };
        Vec::from_iter(scene.odoo.look_beside(&scene.company, &query).await.unwrap().holders)
    };
    let seed =
        |name| VendorSeed { name, phone: "", iban: scenery.iban.electronic(), trusted: false };
    // A partner without a bill is no vendor, and one with a bill in another company is none here.
    let partner = scene.admin.vendor(&seed("Nobody yet")).await.unwrap();
    let elsewhere = scene.admin.vendor(&seed("Elsewhere")).await.unwrap();
    scene.bill_of(scene.other_erp_company, elsewhere, "10.00").await;
    assert_eq!(held().await, []);
    scene.bill_of(1, partner, "10.00").await;
    assert_eq!(held().await, [vendor_id(partner.vendor)]);
    // One that is moved to another company is not shown here any more.
    let other = json!({ "company_id": scene.other_erp_company });
    scene.write("res.partner", partner.vendor, other).await.unwrap();
    assert_eq!(held().await, []);
}
