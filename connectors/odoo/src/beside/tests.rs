//! Which questions are asked, and what Odoo's answers (recorded ones) and failures come to.

use std::sync::Arc;
use std::time::Duration;

use countersign_erp_source::{
    Amount, Clock, Currency, ErpSource, Likeness, ReferenceKey, Timestamp,
};
use secrecy::SecretString;
use wiremock::matchers::{body_string_contains, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::{Credential, Options};

fn traits(vendor: &str, reference: &str) -> Traits {
    let eur = Currency::from_code("EUR").unwrap();
    Traits {
        vendor: VendorId::new(vendor).unwrap(),
        reference: ReferenceKey::of(reference),
        total: Amount::parse("100.50", eur).ok(),
        date: "2026-11-15".parse().ok(),
    }
}

#[test]
fn the_domain_of_a_bill_asks_for_one_vendor_in_every_term() {
    let terms = like(&traits("7", "R-101/4")).unwrap();
    for term in &terms {
        assert_eq!(term[0], json!(["commercial_partner_id", "=", 7]), "{term:?}");
    }
    assert_eq!(terms[0][1], json!(["ref", "=ilike", "%R%4%"]));
    let alike: String =
        terms[1..terms.len() - 1].iter().map(|term| term[1][2].as_str().unwrap()).collect();
    assert_eq!(alike, "٤۴४４Ｒｒ");
    let by_total = &terms.last().unwrap()[1..];
    assert_eq!(
        json!(by_total),
        json!([
            ["amount_total", "=", "100.50"],
            ["currency_id.name", "=", "EUR"],
            ["invoice_date", ">=", "2026-11-10"],
            ["invoice_date", "<=", "2026-11-20"],
        ])
    );
    assert_eq!(like(&traits("7", "")).unwrap().len(), 1);
    assert_eq!(like(&traits("V-7", "R-1")), None);
}

#[test]
fn terms_are_joined_in_prefix_notation() {
    let (a, b, c) = (json!(["a", "=", 1]), json!(["b", "=", 2]), json!(["c", "=", 3]));
    let terms = [vec![vec![a.clone(), b.clone()]], vec![vec![c.clone()], vec![a.clone()]]];
    let expected = vec![json!("|"), json!("|"), json!("&"), a.clone(), b, c, a];
    assert_eq!(any_of(&terms), Some(expected));
    assert_eq!(any_of(&[]), None);
    assert_eq!(any_of(&[vec![], vec![]]), None);
}

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_795_000_000_000)
    }
}

/// An Odoo that knows the reader, and answers each of these questions in its way. A question is known
/// by texts that its call has.
async fn odoo(answers: &[(&[&str], String)]) -> (MockServer, Odoo) {
    let server = MockServer::start().await;
    let signed_in = "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value><int>7</int>\
                     </value>\n</param>\n</params>\n</methodResponse>\n";
    Mock::given(path("/xmlrpc/2/common")).respond_with(xml(signed_in)).mount(&server).await;
    for (texts, answer) in answers {
        let mut mock = Mock::given(path("/xmlrpc/2/object"));
        for text in *texts {
            mock = mock.and(body_string_contains(format!("<string>{text}</string>")));
        }
        mock.respond_with(xml(answer)).mount(&server).await;
    }
    let credential = |login: &str| Credential {
        login: login.to_owned(),
        password: SecretString::from("a secret"),
    };
    let odoo = Odoo::new(Options {
        url: server.uri(),
        database: "demo".to_owned(),
        allow_plaintext: false,
        reader: credential("reader"),
        payer: credential("payer"),
        bank_admin: credential("bank-admin"),
        companies: BTreeMap::from([(company(), 1)]),
        time_zone: chrono_tz::Tz::UTC,
        call_deadline: Duration::from_secs(20),
        clock: Arc::new(Fixed),
    });
    (server, odoo.unwrap())
}

fn company() -> CompanyId {
    CompanyId::new("blue-sparrow").unwrap()
}

fn xml(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text, "text/xml; charset=utf-8")
}

fn value(value: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value>{value}</value>\n\
         </param>\n</params>\n</methodResponse>\n"
    )
}

fn fault(code: i32) -> String {
    let member = |name: &str, value: &str| {
        format!("<member>\n<name>{name}</name>\n<value>{value}</value>\n</member>\n")
    };
    format!(
        "<?xml version='1.0'?>\n<methodResponse>\n<fault>\n<value><struct>\n{}{}</struct></value>\n\
         </fault>\n</methodResponse>\n",
        member("faultCode", &format!("<int>{code}</int>")),
        member("faultString", "<string>refused</string>")
    )
}

/// A page of that many records with a partner.
fn page(count: usize, record: &str) -> String {
    let records: Vec<String> = (1..=count)
        .map(|id| {
            format!(
                "<value><struct>\n<member>\n<name>id</name>\n<value><int>{id}</int></value>\n\
                 </member>\n{record}</struct></value>\n"
            )
        })
        .collect();
    value(&format!(
        "<struct>\n<member>\n<name>records</name>\n<value><array><data>\n{}</data></array></value>\n\
         </member>\n</struct>",
        records.concat()
    ))
}

const DOCUMENTS: &[&str] = &["account.move", "web_search_read"];
const CREDIT: &[&str] = &["account.move.line", "read_group"];
const HOLDERS: &[&str] = &["res.partner.bank", "web_search_read"];
const BILLED: &[&str] = &["account.move", "read_group"];
const EMPTY: &str = "<array><data>\n</data></array>";

fn recorded(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    std::fs::read_to_string(folder.join(format!("{name}.response.xml"))).unwrap()
}

fn query() -> BesideQuery {
    let wanted = Traits { reference: ReferenceKey::of("Q77"), ..traits("26", "") };
    let number = Iban::parse("DE69999999991000000011").unwrap();
    BesideQuery {
        bills: vec![Document { id: BillId::new("43").unwrap(), traits: wanted }],
        held: Some((number, VendorId::new("7").unwrap())),
    }
}

#[tokio::test]
async fn recorded_answers_are_read() {
    let (_server, odoo) = odoo(&[
        (CREDIT, recorded("101-read-group-lines-with-credit")),
        (BILLED, recorded("103-read-group-billed-vendors")),
        (HOLDERS, recorded("102-search-read-holders")),
        (DOCUMENTS, recorded("100-search-read-documents")),
    ])
    .await;
    let found = odoo.look_beside(&company(), &query()).await.unwrap();
    let ids: Vec<&str> = found.documents.iter().map(|document| document.id.as_str()).collect();
    assert_eq!(ids, ["43", "44", "45", "46"]);
    let wanted = &query().bills[0].traits;
    for document in &found.documents {
        assert_eq!(wanted.likeness(&document.traits), Some(Likeness::SameReference));
    }
    let totals: Vec<Option<i64>> =
        found.documents.iter().map(|document| document.traits.total.map(Amount::minor)).collect();
    // The last one was forged and is no figure of money; its reference counts all the same.
    assert_eq!(totals, [Some(3100), Some(3200), Some(3300), None]);
    let vendor = VendorId::new("26").unwrap();
    assert_eq!(found.with_credit, BTreeSet::from([vendor.clone()]));
    assert_eq!(found.holders, BTreeSet::from([vendor]));
    assert_eq!(found.cut, BTreeSet::new());
}

#[tokio::test]
async fn more_than_can_be_looked_at_is_said_and_never_nothing() {
    let document = "<member>\n<name>ref</name>\n<value><boolean>0</boolean></value>\n</member>\n\
                    <member>\n<name>amount_total</name>\n<value><double>1.0</double></value>\n\
                    </member>\n<member>\n<name>currency_id</name>\n<value><boolean>0</boolean>\
                    </value>\n</member>\n<member>\n<name>invoice_date</name>\n<value><boolean>0\
                    </boolean></value>\n</member>\n<member>\n<name>commercial_partner_id</name>\n\
                    <value><int>26</int></value>\n</member>\n";
    for (count, cut) in [(1999, false), (2000, true)] {
        let (_server, odoo) = odoo(&[
            (CREDIT, value(EMPTY)),
            (HOLDERS, page(0, "")),
            (DOCUMENTS, page(count, document)),
        ])
        .await;
        let found = odoo.look_beside(&company(), &query()).await.unwrap();
        assert_eq!(found.documents.len(), count);
        assert_eq!(found.cut.contains(&query().bills[0].id), cut);
    }
    let holder = "<member>\n<name>partner_id</name>\n<value><int>9</int></value>\n</member>\n";
    for (count, known) in [(199, true), (200, false)] {
        let (_server, odoo) = odoo(&[
            (CREDIT, value(EMPTY)),
            (BILLED, value(EMPTY)),
            (HOLDERS, page(count, holder)),
            (DOCUMENTS, page(0, "")),
        ])
        .await;
        let found = odoo.look_beside(&company(), &query()).await;
        assert_eq!(found.is_ok(), known, "{count}: {found:?}");
    }
}

#[tokio::test]
async fn no_question_that_fails_counts_as_an_empty_answer() {
    let right = [
        (CREDIT, recorded("101-read-group-lines-with-credit")),
        (BILLED, recorded("103-read-group-billed-vendors")),
        (HOLDERS, recorded("102-search-read-holders")),
        (DOCUMENTS, recorded("100-search-read-documents")),
    ];
    for failing in 0..right.len() {
        let mut answers = right.clone();
        answers[failing].1 = fault(4);
        let (_server, odoo) = odoo(&answers).await;
        let found = odoo.look_beside(&company(), &query()).await;
        assert!(matches!(found, Err(ReadError::Denied { .. })), "{failing}: {found:?}");
    }
}

#[tokio::test]
async fn a_bill_that_is_shown_only_in_part_is_none_and_without_rights_there_is_no_answer() {
    let whole = &["web_search_read"];
    for (may, expected) in [(1, true), (0, false)] {
        let (_server, odoo) = odoo(&[
            (&["check_access_rights"], value(&format!("<boolean>{may}</boolean>"))),
            (&["search"], value("<array><data>\n<value><int>43</int></value>\n</data></array>")),
            (&["res.company"], page(1, "<member>\n<name>currency_id</name>\n<value><struct>\n<member>\n\
                <name>name</name>\n<value><string>EUR</string></value>\n</member>\n</struct></value>\n\
                </member>\n")),
            (&["res.partner.bank", "web_search_read"], page(0, "")),
            (&["account.move.line", "web_search_read"], page(0, "")),
            (whole, fault(4)),
        ])
        .await;
        let found = odoo.find_bill(&company(), &BillId::new("43").unwrap()).await;
        assert_eq!(found == Ok(None), expected, "{found:?}");
        assert_eq!(matches!(found, Err(ReadError::Denied { .. })), !expected, "{found:?}");
    }
}
