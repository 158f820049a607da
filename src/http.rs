//! The HTTP API: what callers with a mandate ask (API 3) and what signed-in humans ask (API 4),
//! whether the daemon is ready, and the control surface of the sandbox (API 7).
//!
//! It turns requests into calls of the gateway and answers into JSON. It does not know what is
//! permitted, where anything is kept, or which ERP stands behind. No HTTP type leaves this folder.

mod alarms;
mod approvals;
mod body;
mod caller;
mod company;
mod duplicates;
mod envelope;
mod fields;
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
mod sandbox;
mod serve;
mod sessions;
mod vendors;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::ap::AccountsPayable;
use crate::gateway::Gateway;
use crate::gateway::refusals::Refusals;

pub use hosts::{BadPublicUrl, Hosts, hosts};
pub use rates::Limits;
pub use sandbox::{SandboxAnswer, SandboxControl, SandboxError};
pub use serve::serve;

use problem::Problem;
use rates::Rates;

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
    let with_sandbox = state.sandbox.is_some();
    let rates = Rates::new(state.limits);
    let shared = Shared(Arc::new(Inner { state, rates }));
    let mut routes = Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(agents())
        .merge(humans());
    if with_sandbox {
        routes = routes.merge(sandbox::routes());
    }
    routes
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .layer(DefaultBodyLimit::max(body::BYTES_MAX))
        .layer(CatchPanicLayer::custom(envelope::panicked))
        .layer(from_fn_with_state(shared.clone(), envelope::around))
        .with_state(shared)
}

/// The calls of agents (API 3). What reads bills, vendors and operations is humans' as well.
fn agents() -> Router<Shared> {
    Router::new()
        .route("/v1/bills", get(readings::bills))
        .route("/v1/bills/{invoice_ref}", get(readings::bill))
        .route("/v1/vendors/{vendor_id}", get(readings::vendor))
        .route("/v1/mandates/current", get(readings::mandate))
        .route("/v1/operations", get(operations::list).post(operations::propose))
        .route("/v1/operations/{id}", get(operations::follow))
        .route("/v1/operations/{id}/commit", post(operations::commit))
        .route("/v1/operations/{id}/cancel", post(operations::cancel))
}

/// The calls of humans (API 4). None of them is an agent's.
fn humans() -> Router<Shared> {
    Router::new()
        .route("/v1/sessions", post(sessions::sign_in))
        .route("/v1/sessions/current", delete(sessions::sign_out))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/operations/{id}/approve", post(approvals::approve))
        .route("/v1/operations/{id}/reject", post(approvals::reject))
        .route("/v1/operations/{id}/settle", post(approvals::settle))
        .route("/v1/vendors/{vendor_id}/callbacks", post(vendors::call))
        .route("/v1/vendors/{vendor_id}/phone-confirmations", post(vendors::confirm_phone))
        .route("/v1/vendors/{vendor_id}/bank-confirmations", post(vendors::confirm_account))
        .route("/v1/vendors/{vendor_id}/bank-history", get(vendors::history))
        .route("/v1/bills/{invoice_ref}/not-duplicate", post(duplicates::clear))
        .route("/v1/alarms", get(alarms::list))
        .route("/v1/alarms/{id}/close", post(alarms::close))
        .route("/v1/freezes", get(alarms::freezes).post(alarms::freeze))
        .route("/v1/freezes/{id}", delete(alarms::thaw))
        .route("/v1/mandates", get(mandates::list).post(mandates::issue))
        .route("/v1/mandates/{id}/revoke", post(mandates::revoke))
        .route("/v1/receipts", get(receipts::list))
        .route("/v1/receipts/{seq}", get(receipts::one))
        .route("/v1/users", get(people::list).post(people::add))
        .route("/v1/users/{name}/disable", post(people::disable))
}
