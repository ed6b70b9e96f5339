//! The committed description of the API.

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use tower::ServiceExt as _;

use super::World;
use crate::http::{ProblemCode, Protection, ProtectionOptions, routes, tokens};

/// The file is written again if this variable is set.
const UPDATE: &str = "TEAMSTER_UPDATE_SNAPSHOTS";

/// Returns the description of the whole API, with tokens and the audit log.
async fn served(world: &World) -> Value {
    let options = ProtectionOptions { listen: ([127, 0, 0, 1], 4780).into(), fixed_token: None };
    let protection = Protection::new(world.gateway.clone(), options).unwrap();
    let routes = routes(world.gateway.clone(), tokens::router(protection)).protected;
    let request = Request::get("/v1/openapi.json").body(Body::empty()).unwrap();
    let response = routes.oneshot(request).await.unwrap();
    serde_json::from_slice(&axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_committed_description_is_that_of_the_code() {
    let world = World::memory(|_| {});
    let served = served(&world).await;
    assert_eq!(served["info"]["title"], "Teamster gateway");
    assert_eq!(served["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(served["openapi"].as_str().unwrap().starts_with("3.1"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway-openapi.json");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(path, serde_json::to_string_pretty(&served).unwrap() + "\n").unwrap();
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(committed == served, "docs/gateway-openapi.json is old: run this test with {UPDATE}=1");
}

#[tokio::test]
async fn every_call_has_an_id_a_text_and_a_problem() {
    let world = World::memory(|_| {});
    let served = served(&world).await;
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in served["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().expect(&name).to_owned()), "{name}");
            assert!(operation.get("parameters").is_none_or(Value::is_array), "{name}");
            for response in operation["responses"].as_object().unwrap().values() {
                assert!(!response["description"].as_str().expect(&name).is_empty());
            }
            assert!(!operation["summary"].as_str().expect(&name).is_empty());
            assert!(operation["responses"]["default"]["content"]["application/problem+json"].is_object(), "{name}");
            let is_open = path.ends_with('z');
            assert_eq!(operation["security"].is_array(), !is_open, "{name}");
        }
    }
    assert!(ids.len() > 25, "{ids:?}");
}

#[tokio::test]
async fn the_documentation_names_each_code_of_a_problem_with_its_status() {
    let world = World::memory(|_| {});
    let served = served(&world).await;
    let codes = served["components"]["schemas"]["ProblemCode"]["enum"].as_array().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md");
    let documentation = std::fs::read_to_string(path).unwrap();
    for code in codes {
        let name = code.as_str().unwrap();
        let status = serde_json::from_value::<ProblemCode>(code.clone()).unwrap().status();
        let row = format!("| {} | `{name}` |", status.as_u16());
        assert!(documentation.contains(&row), "docs/gateway.md has no row {row:?}");
    }
}
