//! Vendors that are merged and accounts that are given away, through the control surface.

use std::time::Duration;

use countersign_erp_source::{ErpSource, LoggedChange, LoggedField, Vendor, VendorId};
use countersign_sandbox::{ControlError, OpenError, Sandbox, VendorFields};
use serde_json::{Value, json};

use crate::world::{ACME_IBAN, Place, UNUSED_IBAN, WORLD, acme_bill, company};

const COMPANY: &str = "blue-sparrow";

async fn put(sandbox: &Sandbox, vendor: &str, fields: Value) -> Result<(), ControlError> {
    let fields: VendorFields = serde_json::from_value(fields).unwrap();
    sandbox.put_vendor(COMPANY, vendor, &fields).await.map(drop)
}

async fn read(sandbox: &Sandbox, vendor: &str) -> Vendor {
    let vendor = VendorId::new(vendor).unwrap();
    sandbox.find_vendor(&company(), &vendor).await.unwrap().unwrap()
}

async fn log(sandbox: &Sandbox) -> Vec<LoggedChange> {
    sandbox.list_changes(&company(), 0, 100).await.unwrap()
}

/// ACME beside another vendor, a day after the world was read.
async fn two_vendors(place: &Place) -> Sandbox {
    let sandbox = place.open().await;
    put(&sandbox, "V-200", json!({"name": "Two SAS", "iban": UNUSED_IBAN})).await.unwrap();
    sandbox.advance_clock("1d").await.unwrap();
    sandbox
}

#[tokio::test]
async fn a_new_vendor_s_account_is_logged_with_who_did_it() {
    let place = Place::new();
    let sandbox = two_vendors(&place).await;
    let log = log(&sandbox).await;
    let [entry] = log.as_slice() else { panic!("{log:?}") };
    assert_eq!((entry.vendor.as_str(), entry.field), ("V-200", LoggedField::Added));
    assert_eq!(entry.by.as_deref(), Some("somebody in the sandbox ERP"));
    assert_eq!((entry.before.as_deref(), entry.after.as_deref()), (None, Some(UNUSED_IBAN)));
}

#[tokio::test]
async fn a_merge_keeps_records_and_ages_and_leaves_a_shell() {
    let place = Place::new();
    let sandbox = two_vendors(&place).await;
    let before = read(&sandbox, "V-100").await.accounts.remove(0);
    put(&sandbox, "V-100", json!({"merged_into": "V-200"})).await.unwrap();
    assert_eq!(read(&sandbox, "V-100").await.accounts, vec![]);
    let after = read(&sandbox, "V-200").await;
    let moved = after.account(&before.id).unwrap().clone();
    assert_eq!(moved.owner, after.id);
    assert_eq!((moved.unchanged_since, moved.number), (before.unchanged_since, before.number));
    assert_eq!(moved.changed_after_creation, before.changed_after_creation);
    let bill = sandbox.find_bill(&company(), &acme_bill()).await.unwrap().unwrap();
    assert_eq!(bill.bill.consistent_vendor(), Ok(&after.id));
    let fields: Vec<_> = log(&sandbox).await.iter().map(|entry| entry.field).collect();
    assert_eq!(fields, [LoggedField::Added, LoggedField::Owner, LoggedField::Vendor]);
    // The record that moved is not made again for the shell.
    put(&sandbox, "V-100", json!({"iban": ACME_IBAN})).await.unwrap();
    assert_eq!(read(&sandbox, "V-100").await.accounts[0].id.as_str(), "V-100/2");
}

#[tokio::test]
async fn an_account_that_is_given_away_loses_its_age() {
    let place = Place::new();
    let sandbox = two_vendors(&place).await;
    let given = json!({"accounts": [{"iban": ACME_IBAN, "owner": "V-200"}]});
    put(&sandbox, "V-100", given).await.unwrap();
    let after = read(&sandbox, "V-200").await;
    let account = after.accounts.iter().find(|account| account.id.as_str() == "V-100/1").unwrap();
    let day = Duration::from_hours(24);
    assert!(account.changed_after_creation);
    assert!(
        account.unchanged_since.unwrap() >= after.accounts[0].unchanged_since.unwrap().plus(day)
    );
    let bill = sandbox.find_bill(&company(), &acme_bill()).await.unwrap().unwrap();
    assert_eq!(bill.bill.header.vendor.as_str(), "V-100", "a bill went with an account");
}

#[tokio::test]
async fn what_cannot_be_given_is_refused_by_field() {
    let place = Place::new();
    let sandbox = two_vendors(&place).await;
    let same = json!({"name": "Three SAS", "iban": ACME_IBAN});
    put(&sandbox, "V-300", same).await.unwrap();
    let entries = log(&sandbox).await.len();
    for (vendor, fields, field) in [
        ("V-100", json!({"merged_into": "V-100"}), "merged_into"),
        ("V-100", json!({"merged_into": "V-900"}), "merged_into"),
        ("V-100", json!({"merged_into": "V-300"}), "accounts"),
        ("V-100", json!({"accounts": [{"iban": ACME_IBAN, "owner": "V-none"}]}), "owner"),
        ("V-new", json!({"name": "New", "merged_into": "V-100"}), "merged_into"),
        ("V-new", json!({"name": "N", "accounts": [{"iban": "X", "owner": "V-100"}]}), "owner"),
    ] {
        match put(&sandbox, vendor, fields.clone()).await {
            Err(ControlError::Field(error)) => assert_eq!(error.field, field, "{fields}"),
            other => panic!("{fields}: {other:?}"),
        }
    }
    assert_eq!(log(&sandbox).await.len(), entries, "what was refused is logged");
    assert_eq!(read(&sandbox, "V-100").await.accounts.len(), 1);
    let itself = json!({"accounts": [{"iban": ACME_IBAN, "owner": "V-100"}]});
    put(&sandbox, "V-100", itself).await.unwrap();
    assert_eq!(log(&sandbox).await.len(), entries, "what stays is logged");
}

#[tokio::test]
async fn a_world_merges_nobody() {
    let place = Place::with_world(&WORLD.replacen(
        "name = \"ACME SAS\"",
        "name = \"ACME SAS\"\nmerged_into = \"V-200\"",
        1,
    ));
    let error = Sandbox::open(place.options()).await.unwrap_err();
    let OpenError::World { source, .. } = error else { panic!("{error}") };
    assert!(source.to_string().contains("`merged_into`"), "{source}");
}
