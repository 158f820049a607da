//! The description of the API, held against every answer that the tests see: whoever asks the daemon
//! anything in a test asks this too whether the answer may be so.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use countersign::app::Control;
use countersign::http;
use jsonschema::Validator;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Map, Value, json};

/// The description, with answers that have no member beside those that it names.
static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let mut document = http::description("http://127.0.0.1", Some(Control::SHAPES));
    close(&mut document["components"]["schemas"]);
    let paths = document["paths"].as_object_mut().unwrap();
    for call in paths.values_mut().flat_map(|path| path.as_object_mut().unwrap().values_mut()) {
        close(&mut call["responses"]);
    }
    Description { document, validators: Mutex::default() }
});

/// What is answered where no call is described.
const BESIDE: [(u16, &str); 6] = [
    (404, "not_found"),
    (405, "method_not_allowed"),
    (403, "host_not_allowed"),
    (403, "origin_not_allowed"),
    (413, "body_too_large"),
    (503, "timed_out"),
];

/// Makes a call, whose answer must be described.
pub(crate) async fn ask(request: RequestBuilder) -> (StatusCode, HeaderMap, String) {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let answer = client.execute(request.try_clone().unwrap()).await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    Exchange::of(&request, status, &headers, &text).is_described();
    (status, headers, text)
}

/// A call and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    /// As it stands in the first line, or whole.
    pub(crate) target: &'a str,
    pub(crate) sent: &'a [u8],
    pub(crate) status: u16,
    /// Their names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: &'a str,
}

impl<'a> Exchange<'a> {
    /// With headers as client libraries give them.
    pub(crate) fn of(
        request: &'a reqwest::Request,
        status: StatusCode,
        headers: &HeaderMap,
        body: &'a str,
    ) -> Self {
        Self {
            method: request.method().as_str(),
            target: request.url().as_str(),
            sent: request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default(),
            status: status.as_u16(),
            headers: self::headers(headers),
            body,
        }
    }

    /// Fails unless the answer may be so.
    #[track_caller]
    pub(crate) fn is_described(&self) {
        if let Err(what) = self.described() {
            panic!("{what}: {self:?}");
        }
    }

    /// What is not as the description says.
    pub(crate) fn described(&self) -> Result<(), String> {
        let target = self.target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some((path, calls)) = DESCRIPTION.path(path) else { return self.beside() };
        // The names of methods are what they are, letter by letter.
        let method = match self.method {
            "GET" | "HEAD" => "get",
            "POST" => "post",
            "PUT" => "put",
            "DELETE" => "delete",
            _ => return self.beside(),
        };
        let Some(call) = calls.get(method) else { return self.beside() };
        if (200..300).contains(&self.status) {
            self.was_taken(&path, method, call, query)?;
        }
        let response = &call["responses"][self.status.to_string()];
        if response.is_null() {
            return Err(format!("{} is not described", self.status));
        }
        for (name, header) in response["headers"].as_object().unwrap() {
            let component = header["$ref"].as_str().unwrap().trim_start_matches('#');
            let header = DESCRIPTION.document.pointer(component).unwrap();
            if header["required"] == true && self.header(name).is_none() {
                return Err(format!("no `{name}`"));
            }
        }
        let Some(content) = response["content"].as_object() else {
            return if self.body.is_empty() { Ok(()) } else { Err("there is a body".to_owned()) };
        };
        let kind = self.header("content-type").unwrap_or_default();
        let Some(described) = content.get(kind.split(';').next().unwrap_or_default()) else {
            return Err(format!("`{kind}` is not described"));
        };
        if self.method == "HEAD" || kind.starts_with("text/plain") {
            return Ok(());
        }
        let key = format!("{method} {path} {} {kind}", self.status);
        DESCRIPTION.is_so(key, &described["schema"], self.body.as_bytes())
    }

    /// What was taken, and not refused, is what the description says that the call takes.
    fn was_taken(&self, path: &str, method: &str, call: &Value, query: &str) -> Result<(), String> {
        let known = call["parameters"].as_array().unwrap();
        let is_known = |name: &str| known.iter().any(|parameter| parameter["name"] == name);
        for name in query.split('&').filter_map(|pair| pair.split('=').next()) {
            let looked_at = !call["responses"]["400"].is_null();
            if looked_at && !name.is_empty() && !name.contains('%') && !is_known(name) {
                return Err(format!("`{name}` was taken"));
            }
        }
        let schema = &call["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() || self.sent.is_empty() {
            return Ok(());
        }
        let taken = DESCRIPTION.is_so(format!("{method} {path} sent"), schema, self.sent);
        taken.map_err(|what| format!("a body was taken that is not described: {what}"))
    }

    fn beside(&self) -> Result<(), String> {
        let json: Value = serde_json::from_str(self.body).unwrap_or_default();
        let code = json["code"].as_str().unwrap_or_default();
        let of_status = BESIDE.iter().filter(|(status, _)| *status == self.status);
        let expected = of_status.map(|(_, code)| *code).collect::<Vec<_>>();
        let fits =
            if self.method == "HEAD" { !expected.is_empty() } else { expected.contains(&code) };
        if !fits || self.header("content-type") != Some("application/problem+json") {
            return Err("neither described nor a problem".to_owned());
        }
        if self.method == "HEAD" {
            return Ok(());
        }
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        DESCRIPTION.is_so("problem".to_owned(), &problem, self.body.as_bytes())
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(kept, _)| kept.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Headers as client libraries and the router give them.
pub(crate) fn headers(all: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    all.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

struct Description {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Description {
    /// The calls at that address, and how it is described.
    fn path(&self, path: &str) -> Option<(String, &Map<String, Value>)> {
        // Without what stands before it in an address that is whole.
        let whole =
            path.split_once("://").map(|(_, rest)| rest.split_once('/').unwrap_or_default());
        let path = whole.map_or_else(|| path.to_owned(), |(_, path)| format!("/{path}"));
        let is_at = |described: &str| {
            let (mut sent, mut known) = (path.split('/'), described.split('/'));
            let same = known.by_ref().all(|known| {
                sent.next().is_some_and(|sent| {
                    sent == known || (known.starts_with('{') && !sent.is_empty())
                })
            });
            same && sent.next().is_none()
        };
        let paths = self.document["paths"].as_object().unwrap();
        let found = paths.iter().filter(|(described, _)| is_at(described));
        // What is written out goes before what stands for anything.
        let found = found.min_by_key(|(described, _)| described.matches('{').count());
        found.map(|(described, calls)| (described.clone(), calls.as_object().unwrap()))
    }

    fn is_so(&self, key: String, schema: &Value, text: &[u8]) -> Result<(), String> {
        let value: Value = serde_json::from_slice(text).map_err(|fault| fault.to_string())?;
        let validator = {
            let mut all = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(key).or_insert_with(|| Arc::new(self.validator(schema))))
        };
        let faults: Vec<String> = validator
            .iter_errors(&value)
            .map(|fault| format!("{} at `{}`", fault, fault.instance_path()))
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }

    /// A schema with the components that it names.
    fn validator(&self, schema: &Value) -> Validator {
        let mut whole = schema.clone();
        whole["components"] = self.document["components"].clone();
        jsonschema::options().should_validate_formats(true).build(&whole).unwrap()
    }
}

/// Lets an object have no member that is not named.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("type") == Some(&json!("object")) && members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every schema of the description can be used.
pub(crate) fn compile_all() -> usize {
    let paths = DESCRIPTION.document["paths"].as_object().unwrap();
    let calls = paths.values().flat_map(|path| path.as_object().unwrap().values());
    let contents = calls.flat_map(|call| {
        let responses = call["responses"].as_object().unwrap().values();
        responses.chain([&call["requestBody"]])
    });
    let schemas = contents
        .filter_map(|content| content["content"].as_object())
        .flat_map(|content| content.values().map(|kind| &kind["schema"]));
    schemas.fold(0, |count, schema| {
        DESCRIPTION.validator(schema);
        count + 1
    })
}
