//! The control surface, in the shapes that its HTTP layer shows.

use std::time::Duration;

use countersign_erp_source::{
    ErpSource, Iban, PayeeVerifier, SanctionsScreen, Screening, VendorId, VopResult,
};
use countersign_sandbox::{
    BillFields, ControlError, FaultRequest, HandPayment, SanctionEntry, Sandbox, VendorFields,
    VopEntry,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{ACME_IBAN, OWN_IBAN, Place, UNUSED_IBAN, acme_bill, company};

const COMPANY: &str = "blue-sparrow";

fn shown(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap()
}

fn vendor_fields(json: Value) -> VendorFields {
    serde_json::from_value(json).unwrap()
}

fn bill_fields(json: Value) -> BillFields {
    serde_json::from_value(json).unwrap()
}

async fn put_vendor(sandbox: &Sandbox, json: Value) -> Value {
    shown(&sandbox.put_vendor(COMPANY, "V-100", &vendor_fields(json)).await.unwrap())
}

async fn put_bill(sandbox: &Sandbox, json: Value) -> Result<Value, ControlError> {
    Ok(shown(&sandbox.put_bill(COMPANY, "INV-2291", &bill_fields(json)).await?))
}

#[tokio::test]
async fn a_payment_is_shown_with_exactly_these_fields() {
    let place = Place::new();
    let sandbox = place.open().await;
    sandbox.register_payment(&place.sealed("1000.00")).await.unwrap();
    let by_hand: HandPayment = serde_json::from_value(json!({"amount": "200.00"})).unwrap();
    let bill = sandbox.pay_by_hand(COMPANY, "INV-2291", &by_hand.amount).await.unwrap();
    assert_eq!(shown(&bill)["state"], "paid");
    assert_eq!(
        shown(&sandbox.payments().await.unwrap()),
        json!([
            {"company": COMPANY, "invoice_ref": "INV-2291", "vendor_id": "V-100",
             "payee_iban": ACME_IBAN, "amount": "1000.00", "currency": "EUR",
             "source_account": OWN_IBAN, "memo": "CS A-2291"},
            {"company": COMPANY, "invoice_ref": "INV-2291", "vendor_id": "V-100",
             "payee_iban": ACME_IBAN, "amount": "200.00", "currency": "EUR",
             "source_account": OWN_IBAN, "memo": "paid by hand"}
        ])
    );
    let more = sandbox.pay_by_hand(COMPANY, "INV-2291", "1.00").await;
    assert!(matches!(more, Err(ControlError::NothingToPay(_))), "{more:?}");
}

#[tokio::test]
async fn vendor_and_bill_are_shown_in_world_file_fields() {
    let place = Place::new();
    let sandbox = place.open().await;
    assert_eq!(
        shown(&sandbox.vendor(COMPANY, "V-100").await.unwrap()),
        json!({"name": "ACME SAS", "tax_number": null, "parent": null, "phone": "+33140000000",
        "phone_age_days": 400, "iban": ACME_IBAN, "iban_age_days": 400,
        "accounts": [
            {"iban": ACME_IBAN, "age_days": 400, "active": true, "holder": null}
        ]})
    );
    assert_eq!(
        shown(&sandbox.bill(COMPANY, "INV-2291").await.unwrap()),
        json!({"vendor": "V-100", "vendor_reference": "A-2291", "date": "2026-11-15",
               "amount": "1200.00", "currency": "EUR", "due": "2026-12-31", "state": "open",
               "kind": "bill", "paid": "0.00", "payee_iban": ACME_IBAN})
    );
    let missing = sandbox.vendor(COMPANY, "V-900").await;
    assert!(matches!(missing, Err(ControlError::NoSuchVendor(_))), "{missing:?}");
    let missing = sandbox.bill("nowhere", "INV-2291").await;
    assert!(matches!(missing, Err(ControlError::NoSuchCompany(_))), "{missing:?}");
}

#[tokio::test]
async fn what_is_shown_can_be_written_back_unchanged() {
    let place = Place::new();
    let sandbox = place.open().await;
    let read = async || sandbox.find_bill(&company(), &acme_bill()).await;
    sandbox.advance_clock("30h").await.unwrap();
    let before = read().await.unwrap().unwrap();
    let vendor = shown(&sandbox.vendor(COMPANY, "V-100").await.unwrap());
    assert_eq!(put_vendor(&sandbox, vendor.clone()).await, vendor);
    let bill = shown(&sandbox.bill(COMPANY, "INV-2291").await.unwrap());
    assert_eq!(put_bill(&sandbox, bill.clone()).await.unwrap(), bill);
    let after = read().await.unwrap().unwrap();
    assert_eq!((after.vendor, after.bill), (before.vendor, before.bill));
}

#[tokio::test]
async fn a_clerk_s_edit_shows_in_the_record_and_in_its_age() {
    let place = Place::new();
    let sandbox = place.open().await;
    sandbox.advance_clock("5d").await.unwrap();
    let edited = put_vendor(&sandbox, json!({"iban": UNUSED_IBAN, "phone": "+33199999999"})).await;
    assert_eq!(edited["iban"], UNUSED_IBAN);
    assert_eq!((&edited["iban_age_days"], &edited["phone_age_days"]), (&json!(0), &json!(0)));
    let id = VendorId::new("V-100").unwrap();
    let vendor = sandbox.find_vendor(&company(), &id).await.unwrap().unwrap();
    let account = &vendor.accounts[0];
    assert_eq!((account.id.as_str(), account.number.whole()), ("V-100/1", UNUSED_IBAN));
    assert!(account.changed_after_creation);
    let changed_at = account.unchanged_since.unwrap();
    assert_eq!(
        changed_at,
        place
            .order("1.00")
            .not_after
            .minus(Duration::from_mins(5))
            .plus(Duration::from_hours(5 * 24))
    );
    assert_eq!(vendor.phones[0].since, Some(changed_at));

    let archived = put_vendor(&sandbox, json!({"iban": null})).await;
    assert_eq!(
        (&archived["iban"], &archived["accounts"][0]["active"]),
        (&json!(null), &json!(false))
    );
    let invalid = put_vendor(&sandbox, json!({"accounts": [{"iban": "no IBAN"}]})).await;
    assert_eq!(invalid["accounts"][0]["iban"], "no IBAN");
}

#[tokio::test]
async fn bills_and_vendors_are_made_and_wrong_ones_are_not() {
    let place = Place::new();
    let sandbox = place.open().await;
    let fields = vendor_fields(json!({"name": "New", "iban": UNUSED_IBAN}));
    sandbox.put_vendor(COMPANY, "V-new", &fields).await.unwrap();
    let fields = bill_fields(json!({"vendor": "V-new", "amount": "10.00"}));
    let bill = sandbox.put_bill(COMPANY, "B-new", &fields).await.unwrap();
    assert_eq!(bill.payee_iban.as_deref(), Some(UNUSED_IBAN));

    let moved = put_bill(&sandbox, json!({"vendor": "V-new"})).await.unwrap();
    assert_eq!(moved["payee_iban"], UNUSED_IBAN, "the bill names its old vendor's account");
    let named = put_bill(&sandbox, json!({"payee_iban": ACME_IBAN})).await.unwrap();
    assert_eq!(named["payee_iban"], ACME_IBAN, "a bill may name anybody's account");
    for (wrong, field) in [
        (json!({"vendor": "V-none"}), "vendor"),
        (json!({"payee_iban": "DE89370400440532013000"}), "payee_iban"),
        (json!({"amount": "0"}), "amount"),
        (json!({"currency": "JPY", "amount": "1.5"}), "amount"),
    ] {
        match put_bill(&sandbox, wrong.clone()).await {
            Err(ControlError::Field(error)) => assert_eq!(error.field, field, "{wrong}"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
    assert!(serde_json::from_value::<BillFields>(json!({"amout": "1.00"})).is_err());
    assert!(serde_json::from_value::<VendorFields>(json!({"ibans": []})).is_err());
    let nowhere = sandbox.put_vendor("nowhere", "V-1", &vendor_fields(json!({"name": "N"}))).await;
    assert!(matches!(nowhere, Err(ControlError::NoSuchCompany(_))), "{nowhere:?}");
}

#[tokio::test]
async fn the_providers_answer_what_they_were_told() {
    let place = Place::new();
    let sandbox = place.open().await;
    let iban = Iban::parse(ACME_IBAN).unwrap();
    let ask = |name: &'static str| {
        let (sandbox, iban) = (sandbox.clone(), iban.clone());
        async move { sandbox.verify(name, &iban).await.unwrap() }
    };
    assert_eq!(ask("ACME SAS").await.result, VopResult::Match);
    assert_eq!(ask("Other").await.result, VopResult::NoMatch);
    assert_eq!(ask("ACME SAS").await.provider, "sandbox");
    let close = VopResult::CloseMatch { actual_name: Some("ACME".to_owned()) };
    for (word, result) in [
        (json!({"result": "close_match", "actual_name": "ACME"}), close),
        (json!({"result": "not_possible"}), VopResult::NotPossible),
        (json!({"result": "no_match"}), VopResult::NoMatch),
    ] {
        let mut entry = json!({"name": "ACME SAS", "iban": ACME_IBAN});
        entry.as_object_mut().unwrap().extend(word.as_object().unwrap().clone());
        let entry: VopEntry = serde_json::from_value(entry).unwrap();
        sandbox.put_vop(&entry).await.unwrap();
        assert_eq!(ask("ACME SAS").await.result, result);
    }
    assert_eq!(sandbox.screen(&iban).await, Ok(Screening::NotListed));
    for (listed, expected) in [(true, Screening::Listed), (false, Screening::NotListed)] {
        let entry: SanctionEntry =
            serde_json::from_value(json!({"iban": ACME_IBAN, "listed": listed})).unwrap();
        sandbox.put_sanctions(&entry).await.unwrap();
        sandbox.put_sanctions(&entry).await.unwrap();
        assert_eq!(sandbox.screen(&iban).await, Ok(expected));
    }
}

#[test]
fn a_fault_is_asked_for_in_these_words() {
    for on in ["register_payment", "update_bank_details", "find_payment", "read", "vop"] {
        for what in ["refuse", "lost_answer", "unreachable", "slow", "abort_before", "abort_after"]
        {
            let asked = json!({"on": on, "what": what, "times": 2, "for": "3s"});
            let request: FaultRequest = serde_json::from_value(asked.clone()).unwrap();
            assert_eq!(serde_json::to_value(&request).unwrap(), asked);
        }
    }
    let short: FaultRequest =
        serde_json::from_value(json!({"on": "read", "what": "refuse"})).unwrap();
    assert_eq!(short.times, 1);
}
