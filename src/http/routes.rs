//! The routes, each with its description. Nothing else adds a route to the router, so what is served
//! is what is described.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, post, put};

use super::Shared;
use super::call::Call;

/// A call at its address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Routed {
    /// In small letters.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) call: Call,
}

/// Routes that are served, and the calls that they are described as.
#[derive(Debug)]
pub(super) struct Routes {
    router: Router<Shared>,
    calls: Vec<Routed>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), calls: Vec::new() }
    }

    pub(super) fn get<H, T>(self, path: &'static str, call: Call, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.on(Routed { method: "get", path, call }, get(handler))
    }

    pub(super) fn post<H, T>(self, path: &'static str, call: Call, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.on(Routed { method: "post", path, call }, post(handler))
    }

    pub(super) fn put<H, T>(self, path: &'static str, call: Call, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.on(Routed { method: "put", path, call }, put(handler))
    }

    pub(super) fn delete<H, T>(self, path: &'static str, call: Call, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.on(Routed { method: "delete", path, call }, delete(handler))
    }

    fn on(mut self, at: Routed, served: MethodRouter<Shared>) -> Self {
        self.calls.push(at);
        Self { router: self.router.route(at.path, served), calls: self.calls }
    }

    /// What is described.
    pub(super) fn calls(&self) -> &[Routed] {
        &self.calls
    }

    /// What is served.
    pub(super) fn into_router(self) -> Router<Shared> {
        self.router
    }
}
