//! What a caller gets for an invalid request, and what an attacker does not get.

use axum::body::Body;
use axum::http::{Method, Request, header};
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::json;
use tower::ServiceExt as _;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

use super::{Reply, World};
use crate::access::Scope;
use crate::http::routes;

async fn raw(world: &World, method: Method, path: &str, media_type: Option<&str>, body: &str) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(media_type) = media_type {
        request = request.header(header::CONTENT_TYPE, media_type);
    }
    world.request(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn every_invalid_body_is_a_problem() {
    let world = World::memory(|config| config.limits.body_bytes = 300);
    let path = "/v1/conversations";
    let long = format!("{{\"title\":\"{}\"}}", "x".repeat(400));
    let deep = format!("{}1{}", "[".repeat(140), "]".repeat(140));
    for (media_type, body, status, code) in [
        (Some("application/json"), "{", 400, "INVALID_REQUEST"),
        (Some("application/json"), "", 400, "INVALID_REQUEST"),
        (Some("application/json"), "[]", 400, "INVALID_REQUEST"),
        (Some("application/json"), " [null, null]", 400, "INVALID_REQUEST"),
        (Some("application/json"), "{\"titel\": \"x\"}", 400, "INVALID_REQUEST"),
        (Some("application/json"), "{\"title\": 1}", 400, "INVALID_REQUEST"),
        (Some("application/json"), &deep, 400, "INVALID_REQUEST"),
        (Some("application/json"), "{\"title\": \"a\\u0000b\"}", 400, "INVALID_REQUEST"),
        (Some("application/json"), &long, 413, "PAYLOAD_TOO_LARGE"),
        (None, "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (Some("text/plain"), "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (Some("text/plain; application/json"), "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (Some("application/x-www-form-urlencoded"), "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (Some("multipart/form-data; boundary=x"), "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
    ] {
        raw(&world, Method::POST, path, media_type, body).await.problem(status, code);
    }
    let conversation = format!("/v1/conversations/{}", world.conversation().await);
    let array = raw(&world, Method::PATCH, &conversation, Some("application/json"), "[null, null]").await;
    assert!(array.problem(400, "INVALID_REQUEST")["detail"].as_str().unwrap().contains("not an array"));
    let fork = format!("{conversation}/fork");
    raw(&world, Method::POST, &fork, Some("text/plain"), "{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    raw(&world, Method::POST, &fork, None, "{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
}

#[tokio::test]
async fn an_unknown_path_method_or_id_is_a_problem() {
    let world = World::memory(|_| {});
    for path in ["/", "/v1", "/v1/conversation", "/v1/conversations/", "/v2/agents", "/v1/turns"] {
        world.get(path).await.problem(404, "NOT_FOUND");
    }
    for (method, path) in [
        (Method::PUT, "/v1/conversations"),
        (Method::DELETE, "/v1/agents"),
        (Method::TRACE, "/v1/status"),
        (Method::POST, "/v1/openapi.json"),
        (Method::POST, "/healthz"),
    ] {
        let reply = raw(&world, method, path, None, "").await;
        reply.problem(405, "METHOD_NOT_ALLOWED");
        assert!(reply.headers["allow"].to_str().unwrap().contains("GET"), "{path}");
    }
    for path in ["conversations/x", "turns/x", "conversations/%00", "conversations/%ff", "turns/..%2f"] {
        world.get(&format!("/v1/{path}")).await.problem(400, "INVALID_REQUEST");
    }
    for path in ["conversations", "turns", "permission-requests", "schedules"] {
        world.get(&format!("/v1/{path}/{}", Uuid::nil())).await.problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn every_protected_call_refuses_a_caller_without_its_scope() {
    let world = World::memory(|_| {});
    let stranger = world.as_caller("mallory", &[]);
    let description = routes(world.gateway.clone(), OpenApiRouter::default()).openapi;
    let mut checked = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        if path.ends_with('z') {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            let path = path.replace("{id}", &Uuid::nil().to_string()).replace("{hash}", &"0".repeat(64));
            let method: Method = method.to_uppercase().parse().unwrap();
            // A body that can be read, so that the scope is what is missing.
            let body = match operation["operationId"].as_str().unwrap() {
                "answerPermissionRequest" => json!({ "decision": "allow" }),
                "sendMessage" | "createSchedule" | "replaceSchedule" => json!({ "text": "x" }),
                _ => json!({}),
            };
            let is_upload = path == "/v1/files";
            let media_type = if is_upload { "application/octet-stream" } else { "application/json" };
            raw(&stranger, method, &path, Some(media_type), &body.to_string()).await.problem(403, "FORBIDDEN");
            checked += 1;
        }
    }
    assert!(checked > 25);
}

#[tokio::test]
async fn a_request_without_an_identity_is_refused() {
    let world = World::memory(|_| {});
    let routes = routes(world.gateway.clone(), OpenApiRouter::default());
    let response = routes.protected.oneshot(Request::get("/v1/status").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn a_panic_is_a_problem_without_its_text() {
    async fn broken() {
        panic!("secret");
    }
    let world = World::memory(|_| {});
    let further = OpenApiRouter::from(Router::new().route("/v1/broken", get(broken)));
    let router = routes(world.gateway.clone(), further).protected.layer(Extension(world.identity().clone()));
    let response = router.oneshot(Request::get("/v1/broken").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 500);
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains("INTERNAL") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_full_queue_a_stop_and_an_empty_message_are_refused() {
    let world = World::memory(|config| config.limits.queue_per_chat = 1);
    let id = world.conversation().await;
    let path = format!("/v1/conversations/{id}/messages");
    world.message(&id, "a").await;
    let full = world.post(&path, json!({ "text": "b" })).await;
    full.problem(429, "QUEUE_FULL");
    assert!(full.headers.contains_key("retry-after"));
    world.post(&path, json!({ "text": "  " })).await.problem(400, "INVALID_REQUEST");
    world.gateway.stopping().cancel();
    world.post(&path, json!({ "text": "b" })).await.problem(503, "SHUTTING_DOWN");
}

#[tokio::test]
async fn a_rule_of_the_operator_rejects_messages() {
    let world = World::memory(|config| {
        let rule = crate::config::Rule { authors: Some(vec!["bob".to_owned()]), reject: true, ..Default::default() };
        config.rules.push(rule);
    });
    let path = format!("/v1/conversations/{}/messages", world.conversation().await);
    let bob = world.as_caller("bob", &[Scope::Send]);
    bob.post(&path, json!({ "text": "hi" })).await.problem(403, "REJECTED");
}

#[test]
fn no_problem_of_the_store_shows_a_path() {
    use crate::http::Problem;
    use teamster_store::StoreError;
    let path = || std::path::PathBuf::from("/srv/secret/store.db");
    let source: teamster_store::Cause = std::sync::Arc::new(std::io::Error::other("/srv/secret"));
    for (error, status) in [
        (StoreError::DiskFull { path: path() }, 507),
        (StoreError::ReadOnly { path: path() }, 503),
        (StoreError::Locked { path: path(), waited: std::time::Duration::from_secs(1) }, 503),
        (StoreError::Corrupt { path: path(), source: source.clone() }, 500),
        (StoreError::Database { action: "read", source }, 500),
        (StoreError::Closed, 503),
    ] {
        let problem = Problem::from(error);
        assert_eq!(problem.code().status(), status, "{problem:?}");
        assert!(!format!("{problem:?}").contains("secret"), "{problem:?}");
    }
}
