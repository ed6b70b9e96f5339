//! Serves with one token, until the access layer is here.

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use tokio::net::TcpListener;
use utoipa_axum::router::OpenApiRouter;

use super::{Problem, ProblemCode, routes};
use crate::access::{Identity, Scope};
use crate::engine::Gateway;

/// Serves until the gateway stops.
pub async fn serve_interim(gateway: Gateway, listener: TcpListener, token: String) -> std::io::Result<()> {
    let stop = gateway.stopping().clone();
    let parts = routes(gateway, OpenApiRouter::default());
    let expected = format!("Bearer {token}");
    let check = move |mut request: Request, next: Next| {
        let is_allowed = request.headers().get(AUTHORIZATION).is_some_and(|value| value == expected.as_str());
        let identity = Identity { token: None, owner: "operator".to_owned(), scopes: vec![Scope::Admin] };
        request.extensions_mut().insert(identity);
        async move {
            if is_allowed {
                next.run(request).await
            } else {
                Problem::new(ProblemCode::Unauthorized, "a token is needed").into_response()
            }
        }
    };
    let app = parts.protected.layer(from_fn(check)).merge(parts.open);
    axum::serve(listener, app).with_graceful_shutdown(async move { stop.cancelled().await }).await
}
