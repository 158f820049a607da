//! The description of the API: served to anybody, the same as what is served, and such that an
//! answer beside it is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign::app::Control;
use countersign::http;
use reqwest::Method;
use serde_json::{Value, json};

use crate::daemon::{Installation, pay};
use crate::described::{Exchange, compile_all};

const DOCUMENT: &str = "/v1/openapi.json";

fn description() -> Value {
    http::description("http://127.0.0.1", Some(Control::SHAPES))
}

/// Every call, as method, address and what is said of it.
fn calls(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, calls)| {
        let calls = calls.as_object().unwrap().iter();
        calls.map(|(method, call)| (method.clone(), path.clone(), call.clone()))
    });
    all.collect()
}

#[tokio::test]
async fn the_document_is_open_to_anybody_and_counted_by_no_limit() {
    let installation = Installation::new();
    let configuration = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&configuration).unwrap();
    std::fs::write(configuration, text.replace("100000", "1")).unwrap();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let expected = description();
    for caller in [daemon.stranger(), daemon.agent("no token at all"), daemon.agent(&token)] {
        for _ in 0..3 {
            let answer = caller.get(DOCUMENT).await;
            assert_eq!(answer.status.as_u16(), 200);
            assert_eq!(answer.json, expected);
            assert_eq!(answer.headers["content-type"], "application/json");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff");
            assert_eq!(answer.headers["cache-control"], "no-store");
        }
    }
    let agent = daemon.agent(&token);
    assert_eq!(agent.get("/v1/bills").await.status.as_u16(), 200, "the first that is counted");
    agent.get("/v1/bills").await.is_problem(429, "rate_limited");
    agent.get(&format!("{DOCUMENT}?x=1")).await.is_problem(400, "invalid_query");
}

#[tokio::test]
async fn every_address_takes_the_methods_that_are_described() {
    let daemon = Installation::new().start().await;
    let mut expected = BTreeMap::<String, BTreeSet<String>>::new();
    for (method, path, _) in calls(&description()) {
        let methods = expected.entry(path).or_default();
        methods.insert(method.to_ascii_uppercase());
        if method == "get" {
            methods.insert("HEAD".to_owned());
        }
    }
    for (path, methods) in expected {
        let address: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { "7" } else { part }).collect();
        let nobody = daemon.stranger();
        let answer = nobody.send(nobody.request(Method::PATCH, &address.join("/"))).await;
        answer.is_problem(405, "method_not_allowed");
        let allowed = answer.headers["allow"].to_str().unwrap().split(',').map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), methods, "{path}");
    }
}

/// A route comes to the router together with its description, in one place.
#[test]
fn nothing_else_adds_a_route() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![root.join("http.rs")];
    let folder = std::fs::read_dir(root.join("http")).unwrap();
    files.extend(folder.map(|entry| entry.unwrap().path()));
    let adds = [".route(", ".route_service(", ".nest(", ".nest_service(", ".merge("];
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let found: usize = adds.iter().map(|add| text.matches(add).count()).sum();
        let may = usize::from(file.ends_with("http/routes.rs"));
        assert_eq!(found, may, "{}", file.display());
    }
}

#[test]
fn the_sandbox_is_described_only_where_it_is() {
    let without = http::description("http://127.0.0.1", None);
    let is_sandbox = |(_, path, _): &(String, String, Value)| path.starts_with("/sandbox/");
    let (with, without) = (calls(&description()), calls(&without));
    assert!(!without.iter().any(is_sandbox));
    let rest: Vec<_> = with.into_iter().filter(|call| !is_sandbox(call)).collect();
    assert_eq!(rest, without);
}

#[test]
fn the_document_holds_together() {
    let document = description();
    assert_eq!(document["openapi"], "3.1.0");
    let (mut ids, mut codes) = (BTreeSet::new(), BTreeSet::new());
    for (method, path, call) in calls(&document) {
        let id = call["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id.clone()), "`{id}` stands twice");
        let parameters = call["parameters"].as_array().unwrap();
        let names = parameters.iter().map(|one| (one["in"].to_string(), one["name"].to_string()));
        assert_eq!(names.collect::<BTreeSet<_>>().len(), parameters.len(), "{method} {path}");
        assert!(!call["summary"].as_str().unwrap().is_empty());
        for response in call["responses"].as_object().unwrap().values() {
            assert!(response["headers"]["X-Request-Id"].is_object());
            let schema = &response["content"]["application/problem+json"]["schema"];
            let of = schema["properties"]["code"]["enum"].as_array();
            codes.extend(of.into_iter().flatten().map(ToString::to_string));
        }
    }
    let problem = &document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let all: BTreeSet<_> = problem.as_array().unwrap().iter().map(ToString::to_string).collect();
    let beside: BTreeSet<_> = all.difference(&codes).cloned().collect();
    // What answers where no call is, and what no call comes to so far.
    let expected = ["\"method_not_allowed\"", "\"wrong_state\""];
    assert_eq!(beside, expected.map(str::to_owned).into());
    assert!(compile_all() > 100);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, words) in
        [("Status", 10), ("Stage", 9), ("Effect", 4), ("Origin", 4), ("Attention", 10), ("Role", 4)]
    {
        assert_eq!(schemas[name]["enum"].as_array().map(Vec::len), Some(words), "{name}");
    }
}

/// The words of a list, with the parts that may be left out marked so.
fn named(all: &[Value]) -> String {
    let word = |one: &Value| {
        let mark = if one["required"] == true { "" } else { "?" };
        format!("{}{mark}", one["name"].as_str().unwrap())
    };
    all.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The document in few lines: of each call who makes it, what it takes, and what it answers.
fn outline(document: &Value) -> String {
    let mut lines = Vec::new();
    for (method, path, call) in calls(document) {
        let callers: Vec<String> = call["security"].as_array().unwrap().iter().map(keys).collect();
        let callers = if callers.is_empty() { "anybody".to_owned() } else { callers.join(", ") };
        let id = call["operationId"].as_str().unwrap();
        lines.push(format!("\n{} {path} {id} ({callers})", method.to_uppercase()));
        lines.push(format!("    asked: {}", named(call["parameters"].as_array().unwrap())));
        let body = &call["requestBody"]["content"]["application/json"]["schema"];
        lines.push(format!("    sent: {body}"));
        for (status, response) in call["responses"].as_object().unwrap() {
            let content = response["content"].as_object().into_iter().flatten();
            let content = content.map(|(kind, content)| match kind.as_str() {
                "application/problem+json" => {
                    content["schema"]["properties"]["code"]["enum"].to_string()
                }
                _ => content["schema"].to_string(),
            });
            let headers = keys(&response["headers"]).replace("X-Request-Id", "");
            let content = content.collect::<Vec<_>>().join(" or ");
            lines.push(format!("    {status} {content} {}", headers.trim()));
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        lines.push(format!("\n{name} {schema}"));
    }
    let lines = lines.iter().map(|line| line.trim_end());
    lines.collect::<Vec<_>>().join("\n").replace("#/components/schemas/", "")
}

fn keys(value: &Value) -> String {
    let members = value.as_object().unwrap();
    members.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A change of the contract is a change of this text.
#[test]
fn the_document_is_the_one_that_was_reviewed() {
    insta::assert_snapshot!(outline(&description()));
}

#[tokio::test]
async fn what_was_denied_answers_a_commit_as_it_stands() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    for (key, proposal, status) in
        [("a", pay("INV-1", "V-100", "0"), 422), ("b", pay("INV-999", "V-100", "1.00"), 403)]
    {
        let denied = agent.propose(key, &proposal).await;
        let again = agent.post(&format!("/v1/operations/{}/commit", denied.text("/id"))).await;
        assert_eq!((again.status.as_u16(), &again.json), (status, &denied.json));
    }
}

fn exchange<'a>(method: &'a str, target: &'a str, status: u16, body: &'a str) -> Exchange<'a> {
    let kind =
        if status < 300 { "application/json" } else { "application/problem+json" }.to_owned();
    let headers = [("content-type".to_owned(), kind), ("x-request-id".to_owned(), "r".to_owned())];
    Exchange { method, target, sent: b"", status, headers: headers.into(), body }
}

#[track_caller]
fn fails(exchange: &Exchange<'_>, expected: &str) {
    let what = exchange.described().unwrap_err();
    assert!(what.contains(expected), "{what}");
}

#[test]
fn an_answer_beside_the_description_is_found() {
    let vendor = r#"{"vendor_id":"V","name":"A","payee_iban":null,"bank_status":"adopted"}"#;
    let whole = exchange("GET", "/v1/vendors/V-100?company=a", 200, vendor);
    whole.is_described();
    exchange("GET", "http://127.0.0.1:1/v1/vendors/V-100", 200, vendor).is_described();
    exchange("HEAD", "/v1/vendors/V-100", 200, "").is_described();
    fails(&exchange("GET", "/v1/vendors/V-100", 202, vendor), "202 is not described");
    fails(&exchange("GET", "/v1/vendors/V-100?x=1", 200, vendor), "`x` was taken");
    fails(&exchange("GET", "/v1/vendors/V-100", 200, "{}"), "required");
    let more = vendor.replace("\"name\"", "\"more\":1,\"name\"");
    fails(&exchange("GET", "/v1/vendors/V-100", 200, &more), "more");
    fails(&Exchange { headers: Vec::new(), ..whole.clone() }, "no `X-Request-Id`");
    let kind = [("content-type", "text/html"), ("x-request-id", "r")];
    let headers = kind.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    fails(&Exchange { headers, ..whole }, "`text/html` is not described");
    fails(&exchange("GET", "/v1/nothing", 200, vendor), "neither described nor a problem");
    fails(&exchange("DELETE", "/v1/vendors/V", 200, vendor), "neither described nor a problem");

    let problem = |status: u16, code: &str| {
        let body = json!({
            "type": "about:blank", "title": "x", "status": status, "code": code, "detail": "x",
        });
        body.to_string()
    };
    let missing = problem(404, "not_found");
    exchange("GET", "/v1/vendors/V", 404, &missing).is_described();
    exchange("GET", "/v1/nothing", 404, &missing).is_described();
    exchange("PATCH", "/v1/vendors/V", 405, &problem(405, "method_not_allowed")).is_described();
    fails(&exchange("GET", "/v1/vendors/V", 404, &problem(403, "not_found")), "404 was expected");
    fails(&exchange("GET", "/v1/vendors/V", 404, &problem(404, "other")), "other");
    fails(&exchange("GET", "/v1/vendors/V", 403, &problem(403, "self_grant")), "self_grant");
    fails(&exchange("GET", "/v1/nothing", 404, &problem(404, "other")), "neither described");
    fails(&exchange("GET", "/v1/vendors/V", 500, "oh"), "expected value");
}

#[test]
fn a_body_that_was_taken_beside_the_description_is_found() {
    let session = r#"{"token":"cs_x","expires_at":"2026-11-01T08:00:00.123Z"}"#;
    let taken = |sent: &str| {
        let exchange = exchange("POST", "/v1/sessions", 201, session);
        Exchange { sent: sent.as_bytes(), ..exchange }.described()
    };
    assert_eq!(taken(r#"{"user":"a","password":"b"}"#), Ok(()));
    for beside in [
        r#"{"user":"a"}"#,
        r#"{"user":"a","password":null}"#,
        r#"{"user":"a","password":"b","more":1}"#,
        r#"{"user":"","password":"b"}"#,
        r#"{"user":"a\n","password":"b"}"#,
    ] {
        assert!(taken(beside).unwrap_err().contains("a body was taken"), "{beside}");
    }
    let short = session.replace(".123", "");
    fails(&exchange("POST", "/v1/sessions", 201, &short), "does not match");
}
