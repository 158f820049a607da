//! The fence against every recorded answer, against dxr, and against what must not pass.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

fn recorded() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

fn read(text: &str) -> Result<Answer, NotAnAnswer> {
    read_answer(text.as_bytes())
}

/// What dxr makes of it, in our types.
fn by_dxr(text: &str) -> Answer {
    if let Ok(response) = dxr::MethodResponse::from_xml(text) {
        return Answer::Value(from_dxr(&response.value));
    }
    let fault = dxr::FaultResponse::from_xml(text).unwrap().fault;
    Answer::Fault(Fault { code: fault.code(), text: fault.string().to_owned() })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "dxr may add types; Odoo uses none of them")]
fn from_dxr(value: &dxr::Value) -> Value {
    match value {
        dxr::Value::Integer(number) => Value::Int(*number),
        dxr::Value::Boolean(truth) => Value::Bool(*truth),
        dxr::Value::String(text) => Value::String(text.clone()),
        dxr::Value::Double(number) => Value::Double(*number),
        dxr::Value::Array(items) => Value::Array(items.iter().map(from_dxr).collect()),
        dxr::Value::Struct(members) => Value::Struct(
            members.iter().map(|(name, value)| (name.clone(), from_dxr(value))).collect(),
        ),
        other => panic!("a type that Odoo does not use: {other:?}"),
    }
}

/// `nan` is equal to nothing, itself included.
fn same(left: &Answer, right: &Answer) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

#[test]
fn every_recorded_answer_reads_as_dxr_reads_it() {
    let recorded = recorded();
    assert!(recorded.len() > 90, "{}", recorded.len());
    for (path, text) in recorded {
        let ours = read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(same(&ours, &by_dxr(&text)), "{}", path.display());
    }
}

#[test]
fn a_cut_off_answer_is_refused_wherever_it_is_cut() {
    for (path, text) in recorded() {
        let whole = text.trim_end();
        for end in 0..whole.len() {
            let Some(prefix) = whole.get(..end) else { continue };
            assert!(read(prefix).is_err(), "{} cut at {end}", path.display());
        }
    }
}

fn answer(value: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n{value}\n</param>\n\
         </params>\n</methodResponse>\n"
    )
}

#[test]
fn a_depth_bomb_is_refused_and_breaks_nothing() {
    for depth in [33, 1000, 100_000] {
        let arrays = answer(&format!(
            "{}<value><int>1</int></value>{}",
            "<value><array><data>".repeat(depth),
            "</data></array></value>".repeat(depth)
        ));
        assert!(read(&arrays).is_err(), "{depth}");
        assert!(read(&answer(&"<value><array><data>".repeat(depth))).is_err(), "{depth}");
        let structs = answer(&"<value><struct><member><name>a</name>".repeat(depth));
        assert!(read(&structs).is_err(), "{depth}");
    }
    let allowed = answer(&format!(
        "{}<value><int>1</int></value>{}",
        "<value><array><data>".repeat(31),
        "</data></array></value>".repeat(31)
    ));
    assert!(read(&allowed).is_ok());
}

#[test]
fn what_is_no_answer_of_odoo_is_refused() {
    let int = "<value><int>1</int></value>";
    let good = answer(int);
    assert_eq!(read(&good), Ok(Answer::Value(Value::Int(1))));
    for value in [
        "<value>untyped</value>",
        "<value></value>",
        "<value/>",
        "<value><int>1</int><int>2</int></value>",
        "<value><int>2147483648</int></value>",
        "<value><int>+1</int></value>",
        "<value><int> 1</int></value>",
        "<value><int></int></value>",
        "<value><i4>1</i4></value>",
        "<value><i8>1</i8></value>",
        "<value><nil/></value>",
        "<value><boolean>true</boolean></value>",
        "<value><double>1,5</double></value>",
        "<value><double>0x10</double></value>",
        "<value><double>1e</double></value>",
        "<value><double>.5</double></value>",
        "<value><string/></value>",
        "<value><string>a<b>c</b></string></value>",
        "<value><string><![CDATA[x]]></string></value>",
        "<value><string>a<!-- b --></string></value>",
        "<value><string>a & b</string></value>",
        "<value><string>&nbsp;</string></value>",
        "<value><string>&#0;</string></value>",
        "<value><string>&#xD800;</string></value>",
        "<value><string>&#x;</string></value>",
        "<value><string>&#+65;</string></value>",
        "<value><string>]]></string></value>",
        "<value><string>\u{1}</string></value>",
        "<value><string a='b'>x</string></value>",
        "<value ><int>1</int></value>",
        "<value>\u{a0}<int>1</int></value>",
        "<value>x<int>1</int></value>",
        "<value><int>1</int>x</value>",
        "<value><array><data><int>1</int></data></array></value>",
        "<value><array></array></value>",
        "<value><struct><member><value><int>1</int></value><name>a</name></member></struct></value>",
        "<value><struct><member><name>a</name></member></struct></value>",
        "<value><struct><name>a</name></struct></value>",
        "<value><struct><member><name></name><value><int>1</int></value></member></struct></value>",
    ] {
        assert!(read(&answer(value)).is_err(), "{value}");
    }
    let member = format!("<member><name>a</name>{int}</member>");
    assert!(read(&answer(&format!("<value><struct>{member}{member}</struct></value>"))).is_err());
    let other = format!("<member><name>&#97;</name>{int}</member>");
    assert!(read(&answer(&format!("<value><struct>{member}{other}</struct></value>"))).is_err());

    for wrong in [
        String::new(),
        format!("{good}x"),
        format!("{good}{good}"),
        format!(" {good}"),
        good.replace("<?xml version='1.0'?>", ""),
        good.replace("1.0", "1.1"),
        good.replace("'?>", "' encoding='utf-16'?>"),
        good.replace("<methodResponse>", "<!DOCTYPE methodResponse><methodResponse>"),
        good.replace("<methodResponse>", "<!-- hello --><methodResponse>"),
        good.replace("<methodResponse>", "<?php ?><methodResponse>"),
        good.replace("<methodResponse>", "<methodResponse a='b'>"),
        good.replace("<param>", "<param></param><param>"),
        good.replace(int, ""),
        good.replace(int, &format!("{int}{int}")),
        good.replace("</params>", "</params><fault></fault>"),
        "<html><body>502 Bad Gateway</body></html>".to_owned(),
        "{\"jsonrpc\": \"2.0\"}".to_owned(),
    ] {
        assert!(read(&wrong).is_err(), "{wrong}");
    }
    assert_eq!(read_answer(b"\xff\xfe"), Err(NotAnAnswer::NotUtf8));
}

#[test]
fn escapes_are_undone_exactly_once() {
    let value =
        "<value><string>Deco &amp;amp; Addict &lt;b&gt; M&#252;ller &#x1F600;</string></value>";
    let expected = Value::String("Deco &amp; Addict <b> Müller 😀".to_owned());
    assert_eq!(read(&answer(value)), Ok(Answer::Value(expected)));
}

#[test]
fn what_the_wire_cannot_carry_is_not_sent() {
    for text in ["a\0b", "\u{1b}", "\u{ffff}", "a\rb"] {
        assert!(write_call("m", vec![Value::String(text.to_owned())]).is_err(), "{text:?}");
        let named = Value::Struct(BTreeMap::from([(text.to_owned(), Value::Bool(true))]));
        assert!(write_call("m", vec![Value::Array(vec![named])]).is_err(), "{text:?}");
    }
    assert!(write_call("m", vec![Value::Int64(1)]).is_err());
    assert!(write_call("m", vec![Value::Nil]).is_err());
    for json in ["null", "1.5", "2147483648", "18446744073709551615", "[null]"] {
        assert!(from_json(&serde_json::from_str(json).unwrap()).is_err(), "{json}");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    // A string of white space only arrives empty, and a carriage return as a line feed: neither is
    // worth a parser of our own.
    "[ -~äß€😀\n\t&<>\"']{0,24}"
        .prop_filter("not only white space", |text| text.is_empty() || !text.trim().is_empty())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>()
            .prop_filter("equal to itself", |number| number.is_finite())
            .prop_map(Value::Double),
        any_text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map("[a-zä&<_ ]{0,9}[a-z&>]", inner, 0..5)
                .prop_map(Value::Struct),
        ]
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As Odoo writes it: line feeds between tags, shortest numbers, only three escapes.
fn odoo_writes(value: &Value, out: &mut String) {
    match value {
        Value::Int(number) => writeln!(out, "<value><int>{number}</int></value>").unwrap(),
        Value::Bool(truth) => {
            writeln!(out, "<value><boolean>{}</boolean></value>", u8::from(*truth)).unwrap();
        }
        Value::Double(number) => {
            writeln!(out, "<value><double>{number:?}</double></value>").unwrap();
        }
        Value::String(text) => {
            writeln!(out, "<value><string>{}</string></value>", escape(text)).unwrap();
        }
        Value::Array(items) => {
            out.push_str("<value><array><data>\n");
            for item in items {
                odoo_writes(item, out);
            }
            out.push_str("</data></array></value>\n");
        }
        Value::Struct(members) => {
            out.push_str("<value><struct>\n");
            for (name, value) in members {
                writeln!(out, "<member>\n<name>{}</name>", escape(name)).unwrap();
                odoo_writes(value, out);
                out.push_str("</member>\n");
            }
            out.push_str("</struct></value>\n");
        }
        Value::Int64(_) | Value::DateTime(_) | Value::Base64(_) | Value::Nil => panic!("{value:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn every_value_reads_as_dxr_reads_it(value in any_value()) {
        let mut written = String::new();
        odoo_writes(&value, &mut written);
        let text = answer(&written);
        let ours = read(&text).unwrap();
        prop_assert!(same(&ours, &Answer::Value(value)), "{text}");
        prop_assert!(same(&ours, &by_dxr(&text)), "{text}");
    }
}

fn without_doubles(value: Value) -> Value {
    match value {
        Value::Double(_) => Value::Bool(false),
        Value::Array(items) => Value::Array(items.into_iter().map(without_doubles).collect()),
        Value::Struct(members) => Value::Struct(
            members.into_iter().map(|(name, value)| (name, without_doubles(value))).collect(),
        ),
        Value::Int(_)
        | Value::Int64(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::DateTime(_)
        | Value::Base64(_)
        | Value::Nil => value,
    }
}

proptest! {
    #[test]
    fn every_call_reads_back_with_dxr(value in any_value()) {
        let value = without_doubles(value);
        let body = write_call("execute_kw", vec![value.clone()]).unwrap();
        let call = dxr::MethodCall::from_xml(&body).unwrap();
        prop_assert_eq!(call.name.as_ref(), "execute_kw");
        prop_assert_eq!(call.params.iter().map(from_dxr).collect::<Vec<_>>(), vec![value]);
    }

    #[test]
    fn no_body_panics(body in prop::collection::vec(any::<u8>(), 0..300), text in "\\PC*") {
        drop(read_answer(&body));
        drop(read(&answer(&text)));
    }
}
