//! The door of the HTTP API, asked in this process: what is decided before any operation exists.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Request, StatusCode};
use countersign::app::App;
use countersign::gateway::refusals::Refusals;
use countersign::http::{self, HttpState, Limits, Readiness};
use countersign::settings::Settings;
use countersign::store::Role;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::described::Exchange;

const HOST: &str = "127.0.0.1:8490";
const SETTINGS: &str = r#"
[server]
listen = "127.0.0.1:8490"
public_url = "http://127.0.0.1:8490"
[store]
url = "sqlite://countersign.db"
[keys]
dir = "keys"
[policy]
dir = "policies"
[erp]
kind = "sandbox"
[erp.sandbox]
world = "world.toml"
file = "sandbox.db"
[vop]
kind = "sandbox"
[sanctions]
kind = "sandbox"
"#;
const WORLD: &str = r#"
[company.blue-sparrow]
name = "Blue Sparrow SAS"
currency = "EUR"
accounts = [{ journal = "BNK1", iban = "FR1420041010050500013M02606" }]
"#;

#[derive(Debug)]
struct NotReady;

#[async_trait]
impl Readiness for NotReady {
    async fn problems(&self) -> Vec<String> {
        vec!["one".to_owned(), "two".to_owned()]
    }
}

/// A body that nobody may read.
struct Unread;

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body was read")
    }
}

struct Door {
    router: Router,
    app: App,
    _folder: TempDir,
}

impl Door {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("countersign.toml"), SETTINGS).unwrap();
        std::fs::write(at("world.toml"), WORLD).unwrap();
        countersign::gateway::policy::Policies::write_defaults(&at("policies")).unwrap();
        let settings = Settings::load(&at("countersign.toml")).unwrap();
        let app = App::open(settings, Role::Command).await.unwrap();
        let router = http::router(HttpState {
            gateway: app.gateway.clone(),
            ap: app.reading.clone(),
            refusals: Refusals::default(),
            hosts: http::hosts(HOST.parse().unwrap(), "http://127.0.0.1:8490").unwrap(),
            readiness: Arc::new(NotReady),
            public_url: "http://127.0.0.1:8490".to_owned(),
            limits: Limits { proposals_per_minute: 120, reads_per_minute: 600 },
            sandbox: None,
            sync: app.sync(),
        });
        Self { router, app, _folder: folder }
    }

    /// Sends a request and gives status, code and headers of the problem that answers it.
    async fn refused(&self, request: Request<Body>) -> (StatusCode, String, HeaderMap) {
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        let (head, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&body).unwrap();
        let exchange = Exchange {
            method: method.as_str(),
            target: &uri,
            sent: &[],
            status: head.status.as_u16(),
            headers: crate::described::headers(&head.headers),
            body: text,
        };
        exchange.is_described();
        let problem: Value = serde_json::from_str(text).unwrap();
        assert_eq!(head.headers["content-type"], "application/problem+json");
        assert_eq!(head.headers["x-content-type-options"], "nosniff");
        assert_eq!(head.headers["cache-control"], "no-store");
        assert!(head.headers.contains_key("x-request-id"));
        assert_eq!(problem["status"], head.status.as_u16());
        for member in ["type", "title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        (head.status, problem["code"].as_str().unwrap().to_owned(), head.headers)
    }

    async fn close(self) {
        self.app.close().await;
    }
}

fn get(uri: &str) -> axum::http::request::Builder {
    Request::get(uri).header("host", HOST)
}

fn empty(request: axum::http::request::Builder) -> Request<Body> {
    request.body(Body::empty()).unwrap()
}

#[tokio::test]
async fn what_is_no_call_of_ours_is_a_problem() {
    let door = Door::open().await;
    let expect = async |request: axum::http::request::Builder, status: u16, code: &str| {
        let request = empty(request);
        let asked = format!("{} {}", request.method(), request.uri());
        let (found, found_code, headers) = door.refused(request).await;
        assert_eq!((found.as_u16(), found_code.as_str()), (status, code), "{asked}");
        headers
    };
    expect(get("/nothing"), 404, "not_found").await;
    expect(get("/sandbox/payments"), 404, "not_found").await;
    expect(get("/readyz"), 503, "not_ready").await;
    let headers = expect(get("/v1/bills").method("DELETE"), 405, "method_not_allowed").await;
    assert_eq!(headers["allow"], "GET,HEAD");
    for human in ["/v1/approvals", "/v1/mandates", "/v1/receipts/7", "/v1/users"] {
        let headers = expect(get(human), 401, "token_invalid").await;
        assert_eq!(headers["www-authenticate"], "Bearer");
    }
    let twice = get("/v1/bills").header("authorization", "Bearer a");
    expect(twice.header("authorization", "Bearer a"), 401, "token_invalid").await;
    door.close().await;
}

#[tokio::test]
async fn another_name_or_page_is_refused_before_the_body_is_read() {
    let door = Door::open().await;
    let refused = async |request: axum::http::request::Builder| {
        let (status, code, _) = door.refused(request.body(Body::new(Unread)).unwrap()).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        code
    };
    let post = || Request::post("/v1/operations");
    assert_eq!(refused(post()).await, "host_not_allowed");
    assert_eq!(refused(post().header("host", "evil.test")).await, "host_not_allowed");
    let two = post().header("host", HOST).header("host", HOST);
    assert_eq!(refused(two).await, "host_not_allowed");
    assert_eq!(refused(Request::get("/healthz")).await, "host_not_allowed");
    let page = post().header("host", HOST).header("origin", "null");
    assert_eq!(refused(page).await, "origin_not_allowed");
    door.close().await;
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_not_waited_for() {
    let door = Door::open().await;
    let post = |bytes: usize| {
        Request::post("/v1/operations").header("host", HOST).header("content-length", bytes)
    };
    let (status, code, _) = door.refused(empty(post(65_537))).await;
    assert_eq!((status.as_u16(), code.as_str()), (413, "body_too_large"));
    let (status, _, _) = door.refused(empty(post(65_536))).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    door.close().await;
}

#[tokio::test]
async fn a_caller_gets_its_own_plain_id_back_and_else_a_new_one() {
    let door = Door::open().await;
    let sent = async |id: &str| {
        let request = empty(get("/nothing").header("x-request-id", id));
        let (_, _, headers) = door.refused(request).await;
        headers["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(sent("abc:1.2_3-4").await, "abc:1.2_3-4");
    for odd in ["a b", "", "a/b", &"a".repeat(65)] {
        let given = sent(odd).await;
        assert!(given.starts_with("req_") && given != odd, "`{odd}`: `{given}`");
    }
    door.close().await;
}
