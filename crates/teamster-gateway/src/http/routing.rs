//! All routes of the gateway.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::inspection::AgentCache;
use super::protect::Protection;
use super::readiness::Readiness;
use super::state::{Api, SEND_TIMEOUT};
use super::{
    agents, conversations, deliveries, events, files, history, layers, messages, openai, openapi, operation,
    permissions, schedules, tokens, turns, usage,
};
use crate::access::StreamPermits;
use crate::engine::Gateway;
use crate::telemetry::metrics_router;

/// The routes of a gateway.
#[derive(Debug)]
pub struct Routes {
    /// Liveness and readiness: they need no token.
    pub open: Router,
    /// All other calls. Put the access layer around them.
    pub protected: Router,
    /// The description of the API, as `/v1/openapi.json` returns it.
    pub openapi: serde_json::Value,
}

/// Returns the app of a gateway, with all checks. `open` has further routes without a token, such as the files of the page, and
/// webhooks, which are signed.
pub fn app(gateway: &Gateway, protection: &Protection, open: Option<Router>) -> Router {
    let routes = routes(gateway.clone(), tokens::router(protection.clone()));
    let protected = routes.protected.merge(openai::router(gateway.clone()));
    let open = open.into_iter().fold(routes.open, Router::merge);
    protection.protect(open, protected).layer(from_fn(openai::with_errors))
}

/// Returns the whole API of a gateway as one router, without any check.
pub fn router(gateway: Gateway) -> Router {
    let routes = routes(gateway, OpenApiRouter::default());
    routes.protected.merge(routes.open)
}

/// Returns the routes of a gateway, with further protected ones. Those of an [`OpenApiRouter`] are in the description as well.
pub fn routes(gateway: Gateway, further: OpenApiRouter) -> Routes {
    build(gateway, further, SEND_TIMEOUT)
}

/// Returns the routes. `send_timeout` is how long a stream waits for a subscriber that does not read.
pub(super) fn build(gateway: Gateway, further: OpenApiRouter, send_timeout: Duration) -> Routes {
    let limits = &gateway.config().limits;
    let (body, upload) = (limits.body_bytes, limits.attachment_bytes);
    let subscribers = StreamPermits::new(limits.subscribers);
    let metrics = metrics_router(gateway.clone());
    let agents: Vec<String> = gateway.runtime().registry().names().map(str::to_owned).collect();
    let api = Arc::new(Api {
        gateway,
        agents: AgentCache::default(),
        readiness: Readiness::default(),
        subscribers,
        send_timeout,
    });
    let (open, open_description) = OpenApiRouter::<Arc<Api>>::default()
        .routes(routes!(operation::healthz))
        .routes(routes!(operation::readyz))
        .with_state(Arc::clone(&api))
        .split_for_parts();
    let uploads = OpenApiRouter::default().routes(routes!(files::upload)).layer(DefaultBodyLimit::max(upload));
    let (protected, description) = conversation_routes()
        .merge(other_routes())
        .layer(DefaultBodyLimit::max(body))
        .merge(uploads)
        .with_state(api)
        .merge(further)
        .split_for_parts();
    let openapi =
        openapi::describe(description, open_description, &agents.iter().map(String::as_str).collect::<Vec<_>>());
    let protected = protected.merge(openapi::route(&openapi)).merge(metrics);
    Routes { open: layers::around(open), protected: layers::around(layers::with_fallback(protected)), openapi }
}

fn conversation_routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::default()
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(conversations::get, conversations::update, conversations::delete))
        .routes(routes!(conversations::fork))
        .routes(routes!(conversations::resume))
        .routes(routes!(messages::send, history::list))
        .routes(routes!(turns::get))
        .routes(routes!(turns::abort))
        .routes(routes!(turns::retry))
        .routes(routes!(events::of_conversation))
        .routes(routes!(events::of_all))
        .routes(routes!(events::end))
        .routes(routes!(permissions::list))
        .routes(routes!(permissions::get))
        .routes(routes!(permissions::answer))
}

fn other_routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::default()
        .routes(routes!(agents::list))
        .routes(routes!(files::download))
        .routes(routes!(schedules::create))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::get, schedules::replace, schedules::delete))
        .routes(routes!(usage::list))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::retry))
        .routes(routes!(operation::status))
}
