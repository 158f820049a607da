//! The HTTP API: what callers with a mandate ask (API 3) and what signed-in humans ask (API 4),
//! whether the daemon is ready, and the control surface of the sandbox (API 7).
//!
//! It turns requests into calls of the gateway and answers into JSON. It does not know what is
//! permitted, where anything is kept, or which ERP stands behind. No HTTP type leaves this folder.

mod alarms;
mod approvals;
mod body;
mod call;
mod caller;
mod code;
mod company;
mod document;
mod duplicates;
mod envelope;
mod fields;
mod forms;
mod health;
mod hosts;
mod mandates;
mod operation_view;
mod operations;
mod people;
mod problem;
mod query;
mod rates;
mod readings;
mod receipts;
mod routes;
mod sandbox;
mod serve;
mod sessions;
mod shapes;
mod vendors;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;

use crate::ap::AccountsPayable;
use crate::gateway::Gateway;
use crate::gateway::refusals::Refusals;

pub use hosts::{BadPublicUrl, Hosts, hosts};
pub use rates::Limits;
pub use sandbox::{SandboxAnswer, SandboxControl, SandboxError, SandboxShape, SandboxShapes};
pub use serve::serve;

use problem::Problem;
use rates::{Rates, Waits};
use routes::Routes;

/// Whether the daemon around the API is ready to pay.
#[async_trait]
pub trait Readiness: Send + Sync + fmt::Debug {
    /// What keeps the daemon from being ready; empty if it is. Anybody may read it.
    async fn problems(&self) -> Vec<String>;
}

/// Brings up to date what others may have moved: the sandbox's clock.
pub type SyncHook = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the API is made of.
#[derive(Clone)]
pub struct HttpState {
    /// Decides and executes.
    pub gateway: Gateway,
    /// Reads bills and vendors.
    pub ap: AccountsPayable,
    /// Counts callers that are not let in.
    pub refusals: Refusals,
    /// Under which names the daemon is served.
    pub hosts: Hosts,
    /// The daemon around.
    pub readiness: Arc<dyn Readiness>,
    /// What links in answers begin with.
    pub public_url: String,
    /// Per mandate, and per session.
    pub limits: Limits,
    /// The sandbox ERP's control surface, where there is one and it may be used.
    pub sandbox: Option<Arc<dyn SandboxControl>>,
    /// Called before each request is looked at.
    pub sync: SyncHook,
}

impl fmt::Debug for HttpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpState").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// What every handler shares.
#[derive(Debug, Clone)]
struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: HttpState,
    rates: Rates,
    waits: Waits,
    /// The description of the API, as text.
    document: Bytes,
}

impl Shared {
    fn state(&self) -> &HttpState {
        &self.0.state
    }

    fn gateway(&self) -> &Gateway {
        &self.0.state.gateway
    }
}

/// All routes, each behind the same door.
pub fn router(state: HttpState) -> Router {
    let shapes = state.sandbox.as_ref().map(|sandbox| sandbox.shapes());
    let routes = all(shapes.is_some());
    let document = document::of(routes.calls(), &state.public_url, shapes);
    let (rates, document) = (Rates::new(state.limits), document.to_string().into());
    let shared = Shared(Arc::new(Inner { state, rates, waits: Waits::default(), document }));
    routes
        .into_router()
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .layer(DefaultBodyLimit::max(body::BYTES_MAX))
        .layer(CatchPanicLayer::custom(envelope::panicked))
        .layer(from_fn_with_state(shared.clone(), envelope::around))
        .with_state(shared)
}

/// The description of the API (OpenAPI 3.1) as a daemon known as `public_url` serves it, with the
/// sandbox's control surface where there is one.
pub fn description(public_url: &str, sandbox: Option<SandboxShapes>) -> Value {
    document::of(all(sandbox.is_some()).calls(), public_url, sandbox)
}

fn all(with_sandbox: bool) -> Routes {
    let routes = humans(agents(operators(Routes::new())));
    if with_sandbox { sandbox::routes(routes) } else { routes }
}

/// What anybody may ask.
fn operators(routes: Routes) -> Routes {
    routes
        .get("/healthz", health::LIVE, health::live)
        .get("/readyz", health::READY, health::ready)
        .get("/metrics", health::METRICS, health::metrics)
        .get("/v1/openapi.json", document::DOCUMENT, document::document)
}

/// The calls of agents (API 3). What reads bills, vendors and operations is humans' as well.
fn agents(routes: Routes) -> Routes {
    routes
        .get("/v1/bills", readings::BILLS, readings::bills)
        .get("/v1/bills/{invoice_ref}", readings::BILL, readings::bill)
        .get("/v1/vendors/{vendor_id}", readings::VENDOR, readings::vendor)
        .get("/v1/mandates/current", readings::MANDATE, readings::mandate)
        .get("/v1/operations", operations::LIST, operations::list)
        .post("/v1/operations", operations::PROPOSE, operations::propose)
        .get("/v1/operations/{id}", operations::FOLLOW, operations::follow)
        .post("/v1/operations/{id}/commit", operations::COMMIT, operations::commit)
        .post("/v1/operations/{id}/cancel", operations::CANCEL, operations::cancel)
}

/// The calls of humans (API 4). None of them is an agent's.
fn humans(routes: Routes) -> Routes {
    routes
        .post("/v1/sessions", sessions::SIGN_IN, sessions::sign_in)
        .delete("/v1/sessions/current", sessions::SIGN_OUT, sessions::sign_out)
        .get("/v1/approvals", approvals::LIST, approvals::list)
        .post("/v1/operations/{id}/approve", approvals::APPROVE, approvals::approve)
        .post("/v1/operations/{id}/reject", approvals::REJECT, approvals::reject)
        .post("/v1/operations/{id}/settle", approvals::SETTLE, approvals::settle)
        .post("/v1/vendors/{vendor_id}/callbacks", vendors::CALL, vendors::call)
        .post(
            "/v1/vendors/{vendor_id}/phone-confirmations",
            vendors::CONFIRM_PHONE,
            vendors::confirm_phone,
        )
        .post(
            "/v1/vendors/{vendor_id}/bank-confirmations",
            vendors::CONFIRM_ACCOUNT,
            vendors::confirm_account,
        )
        .get("/v1/vendors/{vendor_id}/bank-history", vendors::HISTORY, vendors::history)
        .post("/v1/bills/{invoice_ref}/not-duplicate", duplicates::CLEAR, duplicates::clear)
        .get("/v1/alarms", alarms::LIST, alarms::list)
        .post("/v1/alarms/{id}/close", alarms::CLOSE, alarms::close)
        .get("/v1/freezes", alarms::FREEZES, alarms::freezes)
        .post("/v1/freezes", alarms::FREEZE, alarms::freeze)
        .delete("/v1/freezes/{id}", alarms::THAW, alarms::thaw)
        .get("/v1/mandates", mandates::LIST, mandates::list)
        .post("/v1/mandates", mandates::ISSUE, mandates::issue)
        .post("/v1/mandates/{id}/revoke", mandates::REVOKE, mandates::revoke)
        .get("/v1/receipts", receipts::LIST, receipts::list)
        .get("/v1/receipts/{seq}", receipts::ONE, receipts::one)
        .get("/v1/users", people::LIST, people::list)
        .post("/v1/users", people::ADD, people::add)
        .post("/v1/users/{name}/disable", people::DISABLE, people::disable)
}
