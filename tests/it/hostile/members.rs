//! Bodies of humans' calls: what is no JSON object, has another member than the call, or one whose
//! value is not of its form.

use serde_json::{Value, json};

use super::arena::{MALFORMED, NOT_FOUND, Refused};
use super::office::{HumanCall, JSON, Office};

const INVALID_FIELD: Refused = Refused::Problem(400, "invalid_field");
const PASSWORD_LENGTH: Refused = Refused::Problem(400, "password_length");
const UNSUPPORTED: Refused = Refused::Problem(415, "unsupported_media_type");

/// The calls that take a body, signing in among them.
fn with_bodies(office: &Office) -> Vec<HumanCall> {
    let mut all = office.changes();
    all.retain(|call| call.body.is_some());
    all.push(HumanCall {
        who: "paul",
        method: "POST",
        target: "/v1/sessions".to_owned(),
        body: Some(json!({ "user": "paul", "password": "not his password" })),
        of_company: false,
    });
    all
}

/// The body with another value for a member.
fn with(call: &HumanCall, name: &str, value: Value) -> String {
    let mut body = call.body.clone().unwrap();
    body[name] = value;
    body.to_string()
}

fn members(call: &HumanCall) -> Vec<(String, Value)> {
    let body = call.body.as_ref().and_then(Value::as_object).unwrap();
    body.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn what(call: &HumanCall, body: &str) -> String {
    let end = body.char_indices().nth(80).map_or(body.len(), |(at, _)| at);
    format!("{} {} {}", call.method, call.target, body.split_at(end).0)
}

#[tokio::test]
async fn what_is_no_object_is_no_body_of_a_human() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        let right = call.body.clone().unwrap();
        let values: Vec<Value> = members(&call).into_iter().map(|(_, value)| value).collect();
        let right = right.to_string();
        let (head, _) = right.split_at(right.len() / 2);
        let mut bytes = right.clone().into_bytes();
        bytes.insert(2, 0xff);
        let bodies: Vec<Vec<u8>> = [
            "",
            "  \n",
            "null",
            "true",
            "7",
            "[]",
            "\"reason\"",
            "{",
            head,
            &json!([right]).to_string(),
            &format!("[{right}]"),
            &Value::Array(values).to_string(),
            &format!("{right}{right}"),
            &format!("{right}x"),
            &format!("{right}\0"),
            &format!("\u{feff}{right}"),
            &right.replacen('{', "{/**/", 1),
            &right.replace('"', "'"),
            &right.replacen('}', ",}", 1),
            &"[".repeat(10_000),
            &format!("{}{}", "{\"reason\":".repeat(5_000), "}".repeat(5_000)),
            "reason=x&outcome=booked",
        ]
        .into_iter()
        .map(|text| text.as_bytes().to_vec())
        .chain([bytes])
        .collect();
        for body in bodies {
            let said = what(&call, &String::from_utf8_lossy(&body));
            arena.refuses(&said, &office.right(&call).body(body), MALFORMED).await;
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_member_too_many_or_twice_is_refused() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        let right = call.body.clone().unwrap().to_string();
        let mut more: Vec<String> = [
            "more",
            "",
            "id",
            "level",
            "approved",
            "human",
            "by",
            "roles",
            "Reason",
            "reason ",
            "re\u{430}son",
            "__proto__",
            "mandate",
            "mode",
            "args",
            "\\u0000",
            "\\ud800",
        ]
        .map(|name| format!("\"{name}\":\"x\""))
        .into();
        for (name, value) in members(&call) {
            // Twice, also with another value, and spelt with an escape.
            let first = name.bytes().next().unwrap();
            let escaped = format!("\\u{first:04x}{}", name.split_at(1).1);
            more.push(format!("\"{name}\":{value}"));
            more.push(format!("\"{name}\":null"));
            more.push(format!("\"{escaped}\":{value}"));
        }
        for more in more {
            for body in [
                right.replacen('{', &format!("{{{more},"), 1),
                format!("{},{more}}}", right.trim_end_matches('}')),
            ] {
                let said = what(&call, &more);
                arena.refuses(&said, &office.right(&call).body(body), MALFORMED).await;
            }
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_member_of_another_type_is_refused() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        for (name, right) in members(&call) {
            let mut values = vec![
                Value::Null,
                json!(true),
                json!(-7),
                json!(1.5),
                json!(0),
                json!({}),
                json!({ "ref": right }),
                json!([[right]]),
                json!([null]),
            ];
            match name.as_str() {
                "scopes" => values.extend([json!("invoice.pay"), json!([7]), json!(vec!["a"; 51])]),
                "max_calls" => values.extend([json!("3"), json!(1e3), json!(u64::MAX), json!([])]),
                _ => values.extend([json!(7), json!([]), json!([right])]),
            }
            for value in values {
                let body = with(&call, &name, value);
                let said = what(&call, &body);
                arena.refuses(&said, &office.right(&call).body(body), INVALID_FIELD).await;
            }
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_text_is_short_and_plain() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        let texts = members(&call).into_iter().filter(|(_, value)| value.is_string());
        for (name, right) in texts {
            let right = right.as_str().unwrap();
            let texts = [
                String::new(),
                format!("{right}\0"),
                format!("{right}\n"),
                format!("\t{right}"),
                format!("{right}\u{7f}"),
                format!("{right}\u{85}"),
                format!("{right}\u{1b}[2K"),
                "é".repeat(501),
                "x".repeat(60_000),
            ];
            for text in texts {
                let expected = match (name.as_str(), call.target.as_str()) {
                    // Any characters, of the length of a password.
                    ("password", "/v1/users") if text.is_empty() || text.len() > 500 => {
                        PASSWORD_LENGTH
                    }
                    ("password", _) => continue,
                    _ => INVALID_FIELD,
                };
                let body = with(&call, &name, json!(text));
                let said = what(&call, &body);
                arena.refuses(&said, &office.right(&call).body(body), expected).await;
            }
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_member_that_is_missing_or_in_another_form_is_refused() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        for (name, _) in members(&call) {
            let may_be_left_out =
                ["budget", "max_calls", "company", "payment_ref", "password"].contains(&&*name);
            if may_be_left_out && call.target != "/v1/sessions" {
                continue;
            }
            let mut body = call.body.clone().unwrap();
            body.as_object_mut().unwrap().remove(&name);
            let said = format!("{} without {name}", call.target);
            let sent = office.right(&call).body(body.to_string());
            arena.refuses(&said, &sent, INVALID_FIELD).await;
        }
    }
    let hash = &office.waiting.1;
    let (long, upper, short) = (format!("{hash}0"), hash.to_uppercase(), hash.split_at(1).1);
    for (of, name, values) in [
        ("/approve", "operation_hash", vec!["x", short, &long, &upper, " "]),
        ("/settle", "outcome", vec!["Booked", "booked ", "unknown", "true", "not booked"]),
        ("/not-duplicate", "other", vec!["INV-3"]),
        ("/v1/users", "name", vec!["a b", "é", "a/b", "../x", " marie", "a:b"]),
        ("/v1/users", "role", vec!["Admin", "root", "admin ", "accountant,admin", "operator"]),
        ("/v1/users", "company", vec![" "]),
        ("/v1/mandates", "principal", vec!["a b", "é", "a/b"]),
        ("/v1/mandates", "agent", vec!["a b", "é", "a/b"]),
        ("/v1/mandates", "currency", vec!["eur", "EURO", "€", "XXZ", " EUR"]),
        ("/v1/mandates", "budget", vec!["1e3", "-1", "+1", "1,00", "1.001", "٣", " 1", "0x1"]),
        ("/v1/mandates", "ttl", vec!["8", "eight hours", "-1h", "h", "8h8"]),
        (
            "/v1/mandates",
            "source_account",
            vec!["FR14", "\u{a0}FR14", "x", "FR1420041010050500013M02607"],
        ),
    ] {
        let calls = with_bodies(&office);
        let call = calls.into_iter().find(|call| call.target.ends_with(of)).unwrap();
        for value in values {
            let body = with(&call, name, json!(value));
            // A company of that name is as good as none.
            let expected = if name == "company" { NOT_FOUND } else { INVALID_FIELD };
            let said = what(&call, &body);
            arena.refuses(&said, &office.right(&call).body(body), expected).await;
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_body_says_of_itself_to_be_json_and_is_small() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in with_bodies(&office) {
        for kind in [
            "text/plain",
            "text/json",
            "application/json; charset=utf-8",
            "application/json;",
            "Application/JSON",
            "application/problem+json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "*/*",
            "",
        ] {
            let said = format!("{} as `{kind}`", call.target);
            let sent = office.right(&call).set("Content-Type", kind);
            arena.refuses(&said, &sent, UNSUPPORTED).await;
        }
        let none = office.right(&call).without("Content-Type");
        arena.refuses("no type", &none, UNSUPPORTED).await;
        let twice = office.right(&call).with("Content-Type", JSON);
        arena.refuses("two types", &twice, Refused::Problem(400, "duplicate_header")).await;
        let packed = office.right(&call).with("Content-Encoding", "gzip");
        arena.refuses("packed", &packed, UNSUPPORTED).await;
        let large = Refused::Problem(413, "body_too_large");
        let mut body = call.body.clone().unwrap().to_string();
        body.push_str(&" ".repeat(64 * 1024 + 1 - body.len()));
        arena.refuses("announced", &office.right(&call).body(&body), large).await;
        let pieces = office.right(&call).body(&body).chunked(4096);
        arena.refuses("in pieces", &pieces, large).await;
    }
    office.close().await;
}

#[tokio::test]
async fn a_call_without_a_body_takes_none() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in office.changes().into_iter().filter(|call| call.body.is_none()) {
        for body in ["null", "[]", "7", "{\"a\":1}", "{\"reason\":\"x\"}", "{}{}", "{", "x"] {
            let sent = office.right(&call).with("Content-Type", JSON).body(body);
            arena.refuses(&format!("{} {body}", call.target), &sent, MALFORMED).await;
        }
        let plain = office.right(&call).with("Content-Type", "text/plain").body("{}");
        arena.refuses("plain", &plain, UNSUPPORTED).await;
        arena.refuses("untold", &office.right(&call).body("{}"), UNSUPPORTED).await;
    }
    office.close().await;
}
