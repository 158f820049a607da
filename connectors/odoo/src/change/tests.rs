//! What each way to fail proves about a change; the ways themselves are those of a payment.

use countersign_erp_source::{
    BankChange, Contradiction, ErpCompanyId, Iban, Marker, OldAccount, Refusal, SealKey,
};
use wiremock::ResponseTemplate;

use super::*;
use crate::pay::tests::{
    array, company, connector, fault, member, server, string, structure, value,
};

fn order() -> SealedBankChange {
    SealKey::from_bytes([1; 32]).seal(BankChange {
        marker: Marker::from_bytes([7; 16]),
        store: "st_1".to_owned(),
        seq: 3,
        company: company(),
        erp_company: ErpCompanyId::new("1").unwrap(),
        vendor: VendorId::new("7").unwrap(),
        old: Some(OldAccount {
            account: AccountId::new("9").unwrap(),
            number: AccountNumber::from_erp("DE69999999991000000011"),
        }),
        new_iban: Iban::parse("DE93999999990000000001").unwrap(),
        not_after: Timestamp::parse("2026-11-29T10:00:00Z").unwrap(),
    })
}

fn boolean(is: bool) -> String {
    format!("<value><boolean>{}</boolean></value>", u8::from(is))
}

fn changed_answer(change: (&str, &str)) -> ResponseTemplate {
    let mut account: Vec<String> =
        [("id", "10"), ("owner", "7"), ("number", "DE93999999990000000001")]
            .iter()
            .map(|(name, text)| {
                member(name, &string(if *name == change.0 { change.1 } else { text }))
            })
            .collect();
    account.extend([member("active", &boolean(true)), member("allowed", &boolean(true))]);
    let told = structure(&[
        member("erp_time", &string("2026-11-29T09:00:00.123Z")),
        member(
            "changed",
            &array(&[structure(&[
                member("account", &array(&[structure(&account)])),
                member("also_active", &array(&[])),
                member("bills", &array(&[string("42")])),
            ])]),
        ),
    ]);
    value(&structure(&[member("countersign", &told)]))
}

async fn change(answer: ResponseTemplate) -> Result<Changed, OrderError> {
    let server = server(answer).await;
    connector(&server.uri()).hand_change_over(&order()).await
}

#[track_caller]
fn assert_unknown(answer: &Result<Changed, OrderError>, what: &str) {
    assert!(matches!(answer, Err(OrderError::OutcomeUnknown { .. })), "{what}: {answer:?}");
}

#[tokio::test]
async fn what_was_changed_is_read_back() {
    let changed = change(changed_answer(("", ""))).await.unwrap();
    assert_eq!(changed.differences(order().order()), vec![]);
    assert_eq!(changed.bills, [BillId::new("42").unwrap()]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_leaves_the_outcome_unknown() {
    for field in ["id", "owner"] {
        assert_unknown(&change(changed_answer((field, ""))).await, field);
    }
    for (what, answer) in [
        ("false", value("<value><boolean>0</boolean></value>")),
        ("nothing", ResponseTemplate::new(200).set_body_raw("", "text/xml")),
        ("a proxy", ResponseTemplate::new(502)),
    ] {
        assert_unknown(&change(answer).await, what);
    }
}

#[tokio::test]
async fn a_fault_counts_by_its_kind() {
    for (code, text) in [(1, "x"), (2, "You cannot."), (3, "Access Denied"), (4, "No right.")] {
        assert_unknown(&change(fault(code, text)).await, text);
    }
    for (text, expected) in [
        ("several_accounts", OrderError::Refused(Refusal::SeveralAccounts)),
        ("no_such_vendor", OrderError::Refused(Refusal::NoSuchVendor)),
        ("deadline_too_far", OrderError::Refused(Refusal::BadRequest)),
        ("store_behind", OrderError::Contradicted(Contradiction::StoreBehind)),
    ] {
        let answer = change(fault(2, &format!("COUNTERSIGN {text}"))).await;
        assert_eq!(answer, Err(expected), "{text}");
    }
}

#[tokio::test]
async fn a_change_for_a_company_that_is_not_configured_so_stays_here() {
    let connector = connector("http://127.0.0.1:9");
    let mut other = order().order().clone();
    other.erp_company = ErpCompanyId::new("2").unwrap();
    let answer = connector.hand_change_over(&SealKey::from_bytes([1; 32]).seal(other)).await;
    assert!(matches!(answer, Err(OrderError::NotSent { .. })), "{answer:?}");
}
