//! Changes of bank details beyond what the suite of the port can see.

use std::time::Duration;

use countersign_erp_source::{AccountId, BankChange, BillId, ErpSource, LoggedField};
use countersign_sandbox::{BillFields, Sandbox, VendorFields};
use serde_json::{Value, json};

use crate::world::{ACME_IBAN, Place, UNUSED_IBAN, company};

const COMPANY: &str = "blue-sparrow";

async fn put_vendor(sandbox: &Sandbox, vendor: &str, fields: Value) {
    let fields: VendorFields = serde_json::from_value(fields).unwrap();
    sandbox.put_vendor(COMPANY, vendor, &fields).await.unwrap();
}

async fn put_bill(sandbox: &Sandbox, bill: &str, fields: Value) {
    let fields: BillFields = serde_json::from_value(fields).unwrap();
    sandbox.put_bill(COMPANY, bill, &fields).await.unwrap();
}

async fn named_by(sandbox: &Sandbox, bill: &str) -> Option<String> {
    sandbox.bill(COMPANY, bill).await.unwrap().payee_iban
}

#[tokio::test]
async fn a_bill_that_names_another_account_or_is_no_open_bill_keeps_it() {
    let place = Place::new();
    let sandbox = place.open().await;
    put_vendor(&sandbox, "V-200", json!({"name": "Two SAS", "iban": "BE68539007547034"})).await;
    let other = json!({"vendor": "V-100", "amount": "5.00", "payee_iban": "BE68539007547034"});
    put_bill(&sandbox, "B-other", other).await;
    put_bill(&sandbox, "B-draft", json!({"vendor": "V-100", "amount": "5.00", "state": "draft"}))
        .await;
    let credit = json!({"vendor": "V-100", "amount": "5.00", "kind": "credit_note"});
    put_bill(&sandbox, "B-credit", credit).await;
    let changed = sandbox.change_bank_details(&place.change(UNUSED_IBAN)).await.unwrap();
    assert_eq!(changed.bills, [BillId::new("INV-2291").unwrap()]);
    assert_eq!(named_by(&sandbox, "INV-2291").await.as_deref(), Some(UNUSED_IBAN));
    assert_eq!(named_by(&sandbox, "B-other").await.as_deref(), Some("BE68539007547034"));
    for bill in ["B-draft", "B-credit"] {
        assert_eq!(named_by(&sandbox, bill).await.as_deref(), Some(ACME_IBAN), "{bill}");
    }
}

#[tokio::test]
async fn a_bill_that_names_no_account_names_the_first_one() {
    let place = Place::new();
    let sandbox = place.open().await;
    put_vendor(&sandbox, "V-100", json!({"accounts": []})).await;
    put_bill(&sandbox, "B-none", json!({"vendor": "V-100", "amount": "5.00"})).await;
    let order = place.change(UNUSED_IBAN).order().clone();
    let order = place.key.seal(BankChange { old: None, ..order });
    let changed = sandbox.change_bank_details(&order).await.unwrap();
    let account = changed.account.unwrap();
    assert_eq!(account.id, AccountId::new("V-100/2").unwrap(), "a record's id came back");
    assert!(changed.bills.contains(&BillId::new("B-none").unwrap()), "{:?}", changed.bills);
    assert_eq!(named_by(&sandbox, "B-none").await.as_deref(), Some(UNUSED_IBAN));
}

#[tokio::test]
async fn an_order_says_in_the_log_that_it_was_ours() {
    let place = Place::new();
    let sandbox = place.open().await;
    sandbox.change_bank_details(&place.change(UNUSED_IBAN)).await.unwrap();
    let log = sandbox.list_changes(&company(), 0, 10).await.unwrap();
    let fields: Vec<_> = log.iter().map(|entry| entry.field).collect();
    assert_eq!(fields, [LoggedField::Activity, LoggedField::Added]);
    assert!(log.iter().all(|entry| entry.ordered), "{log:?}");
    assert!(log.iter().all(|entry| entry.by.as_deref() == Some("countersign")));
}

#[tokio::test]
async fn a_host_clock_that_steps_back_makes_no_later_entry_older() {
    let place = Place::new();
    let sandbox = place.open().await;
    sandbox.advance_clock("2m").await.unwrap();
    sandbox.change_bank_details(&place.change(UNUSED_IBAN)).await.unwrap();
    place.clock.set_back(Duration::from_hours(1));
    put_vendor(&sandbox, "V-100", json!({"name": "Acme Ltd"})).await;
    let log = sandbox.list_changes(&company(), 0, 10).await.unwrap();
    assert!(log.is_sorted_by_key(|entry| entry.at), "{log:?}");
}
