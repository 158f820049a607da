//! `GET /v1/openapi.json`: the API as an OpenAPI 3.1 document, made of the descriptions that stand
//! beside the handlers. Anybody may read it, however often.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::Shared;
use super::call::{Call, Callers, Content, Field, Reply, Takes};
use super::code::Code;
use super::company::COMPANY;
use super::query::NoParams;
use super::routes::Routed;
use super::sandbox::{SandboxShape, SandboxShapes};

/// Where components stand.
const SCHEMAS: &str = "#/components/schemas";
const HEADERS: &str = "#/components/headers";

const ABOUT: &str = "Agents propose payments of a company's bills; the gateway decides, humans \
    countersign, the ERP is written once, everything leaves a receipt. Every address that takes \
    `GET` takes `HEAD`. An address that is not here is 404 `not_found`, a method 405 \
    `method_not_allowed`. A member may come to an answer; what is sent to us has no member that is \
    not here.";

pub(super) const DOCUMENT: Call =
    Call::by_anybody("openapi", "This document").answers(&[Reply::ok("OpenAPI 3.1.", any_object)]);

/// The document that the daemon was started with.
pub(super) async fn document(State(shared): State<Shared>, _no_params: NoParams) -> Response {
    let json = HeaderValue::from_static("application/json");
    let document: Bytes = shared.0.document.clone();
    ([(header::CONTENT_TYPE, json)], document).into_response()
}

fn any_object(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// Describes those calls.
pub(super) fn of(calls: &[Routed], public_url: &str, sandbox: Option<SandboxShapes>) -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = format!("{}/", SCHEMAS.trim_start_matches('#')).into();
    let mut writer = Writer { generator: settings.into_generator(), sandbox };
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for routed in calls {
        let call = writer.call(routed);
        paths.entry(routed.path).or_default().insert(routed.method.to_owned(), call);
    }
    let mut schemas = writer.generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    schemas.values_mut().for_each(close_lists);
    let bearer = |about: &str| json!({ "type": "http", "scheme": "bearer", "description": about });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": public_url }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": header_components(),
            "securitySchemes": {
                "mandate": bearer("The token of a mandate."),
                "session": bearer("The token of a session, from `POST /v1/sessions`."),
            },
        },
    })
}

/// What every problem is; an answer names the codes that it may have.
fn problem() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    json!({
        "type": "object",
        "description": "RFC 9457. `code` is stable, `detail` is for whoever has to act on it.",
        "properties": {
            "type": { "type": "string", "const": "about:blank" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "code": { "type": "string", "enum": codes },
            "detail": { "type": "string" },
        },
        "required": ["type", "title", "status", "code", "detail"],
    })
}

/// Writes calls, and collects the components that they name.
struct Writer {
    generator: SchemaGenerator,
    sandbox: Option<SandboxShapes>,
}

impl Writer {
    fn call(&mut self, routed: &Routed) -> Value {
        let Routed { method, path, call } = routed;
        let mut written = json!({
            "operationId": call.id,
            "summary": call.about,
            "tags": [tag(path, call)],
            "security": security(call.callers),
            "parameters": parameters(path, call),
            "responses": self.responses(method, path, call),
        });
        if let (Some(body), Some(members)) = (self.body(call.takes), written.as_object_mut()) {
            members.insert("requestBody".to_owned(), body);
        }
        written
    }

    fn body(&mut self, takes: Takes) -> Option<Value> {
        let schema = match takes {
            Takes::Nothing => return None,
            Takes::Empty => object(&[]),
            Takes::Members(fields) => object(fields),
            Takes::Form(form) => form(),
            Takes::Sandbox(shape) => self.sent_to_sandbox(shape),
        };
        let required = !matches!(takes, Takes::Empty);
        Some(json!({
            "required": required,
            "content": { "application/json": { "schema": schema } },
        }))
    }

    /// What is sent is described by itself: a member that has a default need not be sent.
    fn sent_to_sandbox(&self, shape: SandboxShape) -> Value {
        let mut settings = SchemaSettings::draft2020_12().for_deserialize();
        settings.inline_subschemas = true;
        let mut generator = settings.into_generator();
        let schema = self.sandbox.map(|describe| describe(shape, &mut generator));
        let mut schema = schema.unwrap_or_default().to_value();
        close_lists(&mut schema);
        schema
    }

    fn responses(&mut self, method: &str, path: &str, call: &Call) -> Value {
        let mut all = BTreeMap::<u16, Answers>::new();
        for answer in call.answers {
            let response = all.entry(answer.status.as_u16()).or_default();
            response.about.push(answer.about.to_owned());
            response.replays |= call.replays;
            if let Some((kind, schema)) = self.content(answer.content) {
                response.content.insert(kind.to_owned(), json!({ "schema": schema }));
            }
        }
        for code in call.refusals(method, path) {
            all.entry(code.status().as_u16()).or_default().codes.push(code.text());
        }
        let written = all.into_iter().map(|(status, response)| (status, response.write(status)));
        let written: Map<String, Value> =
            written.map(|(status, response)| (status.to_string(), response)).collect();
        Value::Object(written)
    }

    fn content(&mut self, content: Content) -> Option<(&'static str, Value)> {
        match content {
            Content::Nothing => None,
            Content::Json(shape) => {
                Some(("application/json", shape(&mut self.generator).to_value()))
            }
            Content::Metrics => Some(("text/plain", json!({ "type": "string" }))),
            Content::Sandbox(shape) => {
                let schema = self.sandbox.map(|describe| describe(shape, &mut self.generator));
                Some(("application/json", schema.unwrap_or_default().to_value()))
            }
        }
    }
}

/// All that is answered with one status.
#[derive(Debug, Default)]
struct Answers {
    about: Vec<String>,
    content: Map<String, Value>,
    codes: Vec<&'static str>,
    replays: bool,
}

impl Answers {
    fn write(mut self, status: u16) -> Value {
        self.codes.sort_unstable();
        self.codes.dedup();
        if !self.codes.is_empty() {
            let schema = json!({
                "$ref": format!("{SCHEMAS}/Problem"),
                "properties": {
                    "status": { "const": status },
                    "code": { "enum": self.codes },
                },
            });
            let kind = "application/problem+json".to_owned();
            self.content.insert(kind, json!({ "schema": schema }));
            self.about.push(format!("Refused: `{}`.", self.codes.join("`, `")));
        }
        let mut written = json!({
            "description": self.about.join(" "),
            "headers": headers(status, &self.codes, self.replays),
        });
        if let (false, Some(members)) = (self.content.is_empty(), written.as_object_mut()) {
            members.insert("content".to_owned(), Value::Object(self.content));
        }
        written
    }
}

/// The headers of an answer, by the names that they have among the components.
fn headers(status: u16, codes: &[&str], replays: bool) -> Value {
    let mut all = Map::new();
    let mut add = |name: &str, component: &str| {
        let header = json!({ "$ref": format!("{HEADERS}/{component}") });
        all.insert(name.to_owned(), header);
    };
    add("X-Request-Id", "RequestId");
    if replays {
        add("Idempotent-Replayed", "Replayed");
    }
    if status == StatusCode::UNAUTHORIZED.as_u16() {
        add("WWW-Authenticate", "Scheme");
    }
    if codes.contains(&Code::RATE_LIMITED.text()) || codes.contains(&Code::BUSY.text()) {
        add("Retry-After", "RetryAfter");
    }
    Value::Object(all)
}

fn header_components() -> Value {
    let header = |required: bool, about: &str, schema: Value| json!({ "description": about, "required": required, "schema": schema });
    let text = || json!({ "type": "string" });
    let seconds = json!({ "type": "integer", "minimum": 0 });
    json!({
        "RequestId": header(true, "The id of the call: the caller's, if it is a plain one.", text()),
        "Replayed": header(
            false,
            "Where the key and the content were sent before.",
            json!({ "type": "string", "const": "true" }),
        ),
        "Scheme": header(true, "`Bearer`.", text()),
        "RetryAfter": header(
            false,
            "With `rate_limited` and `busy`: in how many seconds to try again.",
            seconds,
        ),
    })
}

fn parameters(path: &str, call: &Call) -> Vec<Value> {
    let segments = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut all: Vec<Value> = segments
        .map(|name| {
            let schema = json!({ "type": "string", "minLength": 1 });
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        })
        .collect();
    let written = |field: &Field, place: &str| {
        json!({
            "name": field.name, "in": place, "required": field.required, "schema": (field.form)(),
        })
    };
    let company = call.of_company.then_some(&COMPANY);
    let query = call.query.unwrap_or_default();
    all.extend(query.iter().chain(company).map(|field| written(field, "query")));
    all.extend(call.headers.iter().map(|field| written(field, "header")));
    all
}

/// An object of those members and no others.
fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), (field.form)())).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
    });
    if let (false, Some(members)) = (required.is_empty(), schema.as_object_mut()) {
        members.insert("required".to_owned(), json!(required));
    }
    schema
}

fn security(callers: Callers) -> Value {
    match callers {
        Callers::Anybody | Callers::Strangers => json!([]),
        Callers::Agents => json!([{ "mandate": [] }]),
        Callers::Humans => json!([{ "session": [] }]),
        Callers::Both => json!([{ "mandate": [] }, { "session": [] }]),
    }
}

fn tag(path: &str, call: &Call) -> &'static str {
    match call.callers {
        _ if call.answers.is_empty() => "not there yet",
        Callers::Anybody if path.starts_with("/sandbox/") => "sandbox",
        Callers::Anybody => "daemon",
        Callers::Agents => "agents",
        Callers::Humans | Callers::Strangers => "humans",
        Callers::Both => "agents and humans",
    }
}

/// Writes a choice of single words as the closed list that it is, with what each means.
fn close_lists(schema: &mut Value) {
    let inner: Vec<&mut Value> = match schema {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    inner.into_iter().for_each(close_lists);
    let Some(members) = schema.as_object_mut() else { return };
    let Some(words) = members.get("oneOf").and_then(Value::as_array).and_then(|all| words(all))
    else {
        return;
    };
    let meanings = words.iter().map(|(word, meaning)| format!("- `{word}`: {meaning}"));
    let about = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let about = format!("{about}\n\n{}", meanings.collect::<Vec<_>>().join("\n"));
    let list: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
    members.remove("oneOf");
    members.insert("type".to_owned(), json!("string"));
    members.insert("enum".to_owned(), json!(list));
    members.insert("description".to_owned(), json!(about.trim()));
}

/// The words of a choice with what each means, if it is one of single words.
fn words(all: &[Value]) -> Option<Vec<(String, String)>> {
    let word = |one: &Value| {
        let text = |name: &str| one.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        Some((text("const")?, text("description").unwrap_or_default()))
    };
    all.iter().map(word).collect()
}
