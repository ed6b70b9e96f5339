//! The whole app: all routes with all checks.

use axum::extract::ConnectInfo;
use axum::routing::get;

use super::*;
use crate::access::{NewToken, Tokens};
use crate::http::app;

struct App {
    router: Router,
    token: String,
    world: World,
}

async fn whole() -> App {
    let world = World::memory(|_| {});
    let options = ProtectionOptions { listen: world.gateway.config().listen, fixed_token: None };
    let protection = Protection::new(world.gateway.clone(), options).unwrap();
    let page = Router::new().route("/", get(|| async { "page" }));
    let router = app(&world.gateway, &protection, Some(page));
    let new = NewToken { owner: "ada".to_owned(), scopes: vec![Scope::Admin] };
    let (_, secret) = Tokens::new(world.gateway.clone()).create(new).await.unwrap();
    App { router, token: secret.expose().to_owned(), world }
}

impl App {
    async fn send(&self, method: &str, path: &str, token: &str) -> (u16, HeaderMap, String) {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let peer: std::net::SocketAddr = "127.0.0.1:1".parse().unwrap();
        let request = request.extension(ConnectInfo(peer)).body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn every_described_call_needs_a_token_except_the_probes() {
    let app = whole().await;
    let (status, _, text) = app.send("GET", "/v1/openapi.json", &app.token).await;
    assert_eq!(status, 200);
    let description: Value = serde_json::from_str(&text).unwrap();
    let id = Uuid::now_v7().to_string();
    let mut calls = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let parts = path.split('/').map(|part| if part.starts_with('{') { id.as_str() } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            let expected = if path.ends_with('z') { 200 } else { 401 };
            let (status, ..) = app.send(&method.to_uppercase(), &path, "").await;
            assert_eq!(status, expected, "{method} {path}");
            calls += 1;
        }
    }
    assert!(calls > 30);
    assert_eq!(app.send("GET", "/", "").await.2, "page");
    assert_eq!(app.send("GET", "/unknown", "").await.0, 401);
    assert_eq!(app.send("GET", "/unknown", &app.token).await.0, 404);
    drop(app.world);
}

#[tokio::test]
async fn the_openai_compatible_api_shows_all_errors_in_its_own_form() {
    let app = whole().await;
    let cases = [("POST", "/v1/chat/completions", "", 401), ("GET", "/v1/models", "tms_wrong", 401)];
    for (method, path, token, expected) in cases {
        let (status, headers, text) = app.send(method, path, token).await;
        assert_eq!(status, expected, "{path}");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["www-authenticate"], "Bearer");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"]["type"], "authentication_error");
    }
    let (status, headers, _) = app.send("GET", "/v1/agents", "").await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (401, "application/problem+json"));
    assert_eq!(app.send("GET", "/v1/models", &app.token).await.0, 200);
}
