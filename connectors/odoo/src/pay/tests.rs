//! What each way to fail proves about an order, with a server that fails in that way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use countersign_erp_source::{Clock, CompanyId, JournalId, PaymentOrder, SealKey, VendorId};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wiremock::matchers::{body_string_contains, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::{Credential, Options};

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_795_000_000_000)
    }
}

fn credential(login: &str) -> Credential {
    Credential { login: login.to_owned(), password: SecretString::from("a secret") }
}

pub(crate) fn company() -> CompanyId {
    CompanyId::new("blue-sparrow").unwrap()
}

pub(crate) fn connector(url: &str) -> Odoo {
    Odoo::new(Options {
        url: url.to_owned(),
        database: "demo".to_owned(),
        allow_plaintext: false,
        reader: credential("reader"),
        payer: credential("payer"),
        bank_admin: credential("bank-admin"),
        companies: BTreeMap::from([(company(), 1)]),
        time_zone: chrono_tz::Tz::UTC,
        call_deadline: Duration::from_millis(500),
        clock: Arc::new(Fixed),
    })
    .unwrap()
}

fn order() -> SealedOrder {
    let eur = Currency::from_code("EUR").unwrap();
    SealKey::from_bytes([1; 32]).seal(PaymentOrder {
        marker: Marker::from_bytes([7; 16]),
        store: "st_1".to_owned(),
        seq: 3,
        company: company(),
        erp_company: ErpCompanyId::new("1").unwrap(),
        bill: BillId::new("42").unwrap(),
        total: Amount::from_minor(120_000, eur),
        vendor: VendorId::new("7").unwrap(),
        account: AccountId::new("9").unwrap(),
        iban: Iban::parse("DE69999999991000000011").unwrap(),
        amount: Amount::from_minor(120_000, eur),
        journal: JournalId::new("BNK1").unwrap(),
        source_iban: Iban::parse("DE93999999990000000001").unwrap(),
        memo: "CS-1".to_owned(),
        date: NaiveDate::from_ymd_opt(2026, 11, 29).unwrap(),
        not_after: Timestamp::parse("2026-11-29T10:00:00Z").unwrap(),
    })
}

pub(crate) fn xml(body: &str) -> ResponseTemplate {
    let body = format!("<?xml version='1.0'?>\n<methodResponse>\n{body}\n</methodResponse>\n");
    ResponseTemplate::new(200).set_body_raw(body, "text/xml; charset=utf-8")
}

pub(crate) fn value(value: &str) -> ResponseTemplate {
    xml(&format!("<params>\n<param>\n{value}\n</param>\n</params>"))
}

pub(crate) fn fault(code: i32, text: &str) -> ResponseTemplate {
    xml(&format!(
        "<fault>\n<value><struct>\n<member>\n<name>faultCode</name>\n<value><int>{code}</int></value>\n\
         </member>\n<member>\n<name>faultString</name>\n<value><string>{text}</string></value>\n\
         </member>\n</struct></value>\n</fault>"
    ))
}

pub(crate) fn member(name: &str, inner: &str) -> String {
    format!("<member><name>{name}</name>{inner}</member>")
}

pub(crate) fn string(text: &str) -> String {
    format!("<value><string>{text}</string></value>")
}

pub(crate) fn structure(members: &[String]) -> String {
    format!("<value><struct>{}</struct></value>", members.concat())
}

pub(crate) fn array(items: &[String]) -> String {
    format!("<value><array><data>{}</data></array></value>", items.concat())
}

fn found_actions() -> ResponseTemplate {
    let action = |id: i32, name: &str| {
        structure(&[
            member("id", &format!("<value><int>{id}</int></value>")),
            member("name", &string(name)),
        ])
    };
    value(&array(&[
        action(11, name::PAY),
        action(12, name::LOOK_UP),
        action(13, name::LIST_ORDERS),
        action(14, name::ATTEST),
        action(15, name::CHANGE),
    ]))
}

fn booked_answer(change: (&str, &str)) -> ResponseTemplate {
    let fields = [
        ("payment", "31"),
        ("number", "PBNK1/2026/00001"),
        ("state", "posted"),
        ("amount", "1200.00"),
        ("currency", "EUR"),
        ("account", "DE69999999991000000011"),
        ("date", "2026-11-29"),
        ("bill_state", "posted"),
        ("bill_currency", "EUR"),
        ("residual", "0.00"),
    ];
    let mut members: Vec<String> = fields
        .iter()
        .map(|(name, text)| member(name, &string(if *name == change.0 { change.1 } else { text })))
        .collect();
    members.push(member("bills", &array(&[string("42")])));
    let told = structure(&[
        member("erp_time", &string("2026-11-29T09:00:00.123Z")),
        member("booked", &array(&[structure(&members)])),
    ]);
    value(&structure(&[member("countersign", &told)]))
}

/// A server at which everything works but the one call that carries an order.
pub(crate) async fn server(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    let uid = value("<value><int>7</int></value>");
    Mock::given(method("POST"))
        .and(path("/xmlrpc/2/common"))
        .respond_with(uid)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/xmlrpc/2/object"))
        .and(body_string_contains("<string>search_read</string>"))
        .respond_with(found_actions())
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/xmlrpc/2/object"))
        .and(body_string_contains("<string>run</string>"))
        .respond_with(answer)
        // Whatever came back, the order went out once.
        .expect(1)
        .mount(&server)
        .await;
    server
}

async fn pay(answer: ResponseTemplate) -> Result<Booked, OrderError> {
    let server = server(answer).await;
    connector(&server.uri()).hand_over(&order()).await
}

#[track_caller]
fn assert_unknown(answer: &Result<Booked, OrderError>, what: &str) {
    assert!(matches!(answer, Err(OrderError::OutcomeUnknown { .. })), "{what}: {answer:?}");
}

#[tokio::test]
async fn what_was_booked_is_read_back() {
    let booked = pay(booked_answer(("", ""))).await.unwrap();
    assert_eq!(booked.differences(order().order()), vec![]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_leaves_the_outcome_unknown() {
    for change in [
        ("payment", ""),
        ("state", "lost"),
        ("amount", "1200.001"),
        ("amount", "much"),
        ("currency", "EURO"),
        ("date", "today"),
        ("residual", ""),
    ] {
        assert_unknown(&pay(booked_answer(change)).await, change.0);
    }
    for (what, answer) in [
        ("false", value("<value><boolean>0</boolean></value>")),
        ("an empty struct", value("<value><struct></struct></value>")),
        ("a number", value("<value><int>1</int></value>")),
        ("two values", value("<value><int>1</int></value><value><int>1</int></value>")),
        ("nothing", ResponseTemplate::new(200).set_body_raw("", "text/xml")),
        ("garbage", ResponseTemplate::new(200).set_body_raw("\u{0}\u{1}", "text/xml")),
        (
            "half",
            ResponseTemplate::new(200).set_body_raw("<?xml version='1.0'?><methodR", "text/xml"),
        ),
        ("a page", ResponseTemplate::new(200).set_body_raw("<html>hello</html>", "text/html")),
        ("no type", ResponseTemplate::new(200).set_body_bytes(b"<html>".to_vec())),
    ] {
        assert_unknown(&pay(answer).await, what);
    }
}

#[tokio::test]
async fn a_status_of_a_proxy_leaves_the_outcome_unknown() {
    for status in [201, 204, 301, 302, 307, 308, 400, 401, 403, 404, 408, 429, 500, 502, 503, 504] {
        let answer = ResponseTemplate::new(status)
            .insert_header("location", "/elsewhere")
            .set_body_raw("<html>Bad Gateway</html>", "text/html");
        assert_unknown(&pay(answer).await, &status.to_string());
    }
}

#[tokio::test]
async fn a_late_answer_leaves_the_outcome_unknown() {
    let late = booked_answer(("", "")).set_delay(Duration::from_secs(30));
    assert_unknown(&pay(late).await, "late");
}

#[tokio::test]
async fn a_fault_counts_by_its_kind() {
    let none = "Traceback (most recent call last):\n  (frames left out)\nTypeError: cannot marshal \
                None unless allow_none is enabled";
    for (code, text) in [
        (1, none),
        (1, "COUNTERSIGN bad_request"),
        (2, "You cannot post in a locked period."),
        (2, "x COUNTERSIGN store_behind"),
        (3, "Access Denied"),
        (4, "You don't have enough access rights to run this action."),
        (4, "COUNTERSIGN store_behind"),
        (0, "x"),
        (5, "x"),
        (-1, "x"),
    ] {
        assert_unknown(&pay(fault(code, text)).await, text);
    }
    let refused = |refusal| Err(OrderError::Refused(refusal));
    for (code, text, expected) in [
        (2, "COUNTERSIGN bank_mismatch", refused(Refusal::AccountMismatch)),
        (2, "COUNTERSIGN too_late", refused(Refusal::TooLate)),
        (2, "COUNTERSIGN deadline_too_far", refused(Refusal::BadRequest)),
        (2, "COUNTERSIGN erp_refused", refused(Refusal::Other)),
        (2, "COUNTERSIGN something_new", refused(Refusal::Other)),
    ] {
        assert_eq!(pay(fault(code, text)).await, expected, "{code} {text}");
    }
    for (code, contradiction) in [
        ("bad_seal", Contradiction::BadSeal),
        ("store_behind", Contradiction::StoreBehind),
        ("marker_used_otherwise", Contradiction::MarkerUsedOtherwise),
    ] {
        let answer = pay(fault(2, &format!("COUNTERSIGN {code}"))).await;
        assert_eq!(answer, Err(OrderError::Contradicted(contradiction)));
    }
}

#[track_caller]
fn assert_not_sent(answer: &Result<Booked, OrderError>) {
    assert!(matches!(answer, Err(OrderError::NotSent { .. })), "{answer:?}");
}

#[tokio::test]
async fn nobody_listening_means_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    assert_not_sent(&connector(&format!("http://{address}")).hand_over(&order()).await);
}

#[tokio::test]
async fn what_fails_before_the_order_goes_out_means_not_sent() {
    // The sign-in fails in every way that a call can; the order itself never leaves.
    for broken in [
        ResponseTemplate::new(502),
        fault(1, "Traceback\nOperationalError: no"),
        value("<value><string>7</string></value>"),
        ResponseTemplate::new(200).set_body_raw("<html>", "text/html"),
    ] {
        let server = MockServer::start().await;
        Mock::given(path("/xmlrpc/2/common")).respond_with(broken).mount(&server).await;
        Mock::given(path("/xmlrpc/2/object"))
            .respond_with(ResponseTemplate::new(500))
            .expect(0)
            .mount(&server)
            .await;
        assert_not_sent(&connector(&server.uri()).hand_over(&order()).await);
    }
}

#[tokio::test]
async fn an_order_for_a_company_that_is_not_configured_so_stays_here() {
    let connector = connector("http://127.0.0.1:9");
    let mut other = order().order().clone();
    other.erp_company = ErpCompanyId::new("2").unwrap();
    let sealed = SealKey::from_bytes([1; 32]).seal(other);
    assert_not_sent(&connector.hand_over(&sealed).await);
}

#[tokio::test]
async fn a_payer_who_cannot_sign_in_sends_no_order() {
    let answers = [value("<value><boolean>0</boolean></value>"), fault(3, "Access Denied")];
    for refused in answers {
        let server = MockServer::start().await;
        let payer = body_string_contains("<string>payer</string>");
        let uid = value("<value><int>7</int></value>");
        Mock::given(path("/xmlrpc/2/common")).and(payer).respond_with(refused).mount(&server).await;
        Mock::given(path("/xmlrpc/2/common")).respond_with(uid).mount(&server).await;
        Mock::given(path("/xmlrpc/2/object"))
            .and(body_string_contains("<string>run</string>"))
            .respond_with(ResponseTemplate::new(500))
            .expect(0)
            .mount(&server)
            .await;
        Mock::given(path("/xmlrpc/2/object")).respond_with(found_actions()).mount(&server).await;
        assert_not_sent(&connector(&server.uri()).hand_over(&order()).await);
    }
}

/// Answers the calls before the order as it is told, and closes after the order without a byte.
async fn closes_on_the_order(listener: &TcpListener, answers: [String; 3]) {
    for answer in answers.map(Some).into_iter().chain([None]) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let mut chunk = [0; 4096];
        while !request.ends_with(b"</methodCall>") {
            let count = stream.read(&mut chunk).await.unwrap();
            request.extend_from_slice(&chunk[..count]);
        }
        if let Some(body) = answer {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/xml\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_connection_that_ends_without_an_answer_leaves_the_outcome_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let whole = |value: &str| {
        format!(
            "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n{value}\n</param>\n</params>\n\
             </methodResponse>"
        )
    };
    let actions: Vec<String> = [name::PAY, name::LOOK_UP, name::LIST_ORDERS, name::ATTEST]
        .iter()
        .map(|name| {
            structure(&[member("id", "<value><int>1</int></value>"), member("name", &string(name))])
        })
        .collect();
    let uid = whole("<value><int>7</int></value>");
    let answers = [uid.clone(), whole(&array(&actions)), uid];
    let (connector, order) = (connector(&url), order());
    let (answer, ()) =
        tokio::join!(connector.hand_over(&order), closes_on_the_order(&listener, answers));
    assert_unknown(&answer, "closed");
}

#[tokio::test]
async fn no_secret_is_in_any_error_or_debug_text() {
    let server = server(ResponseTemplate::new(502)).await;
    let connector = connector(&server.uri());
    let answer = connector.hand_over(&order()).await;
    let texts = format!("{answer:?} {connector:?} {}", answer.clone().unwrap_err());
    assert!(!texts.contains("a secret") && !texts.contains("0707"), "{texts}");
}
