//! Conversations.

use axum::http::{Method, StatusCode};
use serde_json::json;
use teamster::request::PermissionMode;

use super::World;
use crate::access::Scope;
use crate::config::{Origin, resolve};

#[tokio::test]
async fn a_conversation_is_created_read_changed_and_deleted() {
    for world in World::all().await {
        let body = json!({ "agent": "codex", "model": "m", "permission": "ask", "title": "Trip", "metadata": { "a": 1 },
            "directory": world.directory(), "instructions": "Be brief." });
        let reply = world.post("/v1/conversations", body).await;
        let created = reply.json(StatusCode::CREATED);
        assert_eq!(reply.headers["etag"], "\"1\"");
        assert_eq!(reply.headers["cache-control"], "no-store");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        let path = format!("/v1/conversations/{}", created["id"].as_str().unwrap());
        assert_eq!(world.get(&path).await.json(StatusCode::OK), created);
        for (field, value) in [
            ("agent", json!("codex")),
            ("channel", json!("http")),
            ("state", json!("idle")),
            ("lastSeq", json!(0)),
            ("title", json!("Trip")),
            ("metadata", json!({ "a": 1 })),
            ("permission", json!("ask")),
        ] {
            assert_eq!(created[field], value, "{created}");
        }
        assert!(created["createdAt"].as_str().unwrap().ends_with('Z'));

        let change = json!({ "title": null, "model": null, "metadata": { "b": 2 }, "agent": "claude" });
        let changed = world.call(Method::PATCH, &path, change).await.json(StatusCode::OK);
        assert_eq!((&changed["title"], &changed["model"]), (&json!(null), &json!(null)));
        assert_eq!((&changed["metadata"], &changed["agent"]), (&json!({ "b": 2 }), &json!("claude")));
        assert_eq!(changed["instructions"], "Be brief.");
        assert_eq!(world.call(Method::DELETE, &path, json!(null)).await.status, StatusCode::NO_CONTENT);
        world.get(&path).await.problem(404, "NOT_FOUND");
        world.call(Method::DELETE, &path, json!(null)).await.problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_change_of_an_old_version_is_refused() {
    for world in World::all().await {
        let path = format!("/v1/conversations/{}", world.conversation().await);
        let change = json!({ "title": "a" });
        let tag = [("if-match", "\"1\"")];
        let reply = world.call_with(Method::PATCH, &path, change.clone(), &tag).await;
        assert_eq!(reply.headers["etag"], "\"2\"");
        world.call_with(Method::PATCH, &path, change, &tag).await.problem(412, "PRECONDITION_FAILED");
        let old = json!({ "title": "b", "expectedVersion": 1 });
        world.call(Method::PATCH, &path, old).await.problem(409, "CONFLICT");
        let wrong = world.call_with(Method::PATCH, &path, json!({}), &[("if-match", "1")]).await;
        assert_eq!(wrong.problem(400, "INVALID_REQUEST")["field"], "If-Match");
    }
}

#[tokio::test]
async fn concurrent_changes_of_different_fields_are_both_kept() {
    let world = World::sqlite().await;
    let path = format!("/v1/conversations/{}", world.conversation().await);
    let changes = [json!({ "model": "m" }), json!({ "instructions": "i" }), json!({ "metadata": { "k": "v" } })];
    let calls = changes.map(|change| world.call(Method::PATCH, &path, change));
    for reply in futures::future::join_all(calls).await {
        reply.json(StatusCode::OK);
    }
    let found = world.get(&path).await.json(StatusCode::OK);
    assert_eq!((&found["model"], &found["instructions"]), (&json!("m"), &json!("i")));
    assert_eq!(found["metadata"], json!({ "k": "v" }));
}

#[tokio::test]
async fn conversations_are_listed_page_by_page_with_filters() {
    for world in World::all().await {
        let mut ids = Vec::new();
        for title in ["Trip to Rome", "Bug", "trip home"] {
            let created = world.post("/v1/conversations", json!({ "title": title })).await.json(StatusCode::CREATED);
            ids.insert(0, created["id"].clone());
        }
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/conversations?limit=2{cursor}")).await.json(StatusCode::OK);
            found.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, ids);
        world.message(ids[0].as_str().unwrap(), "Where is the TRIP?").await;
        world.message(ids[1].as_str().unwrap(), "It is broken").await;
        for (query, expected) in [
            ("q=trip", 2),
            ("q=broken", 1),
            ("state=queued", 2),
            ("state=idle", 1),
            ("agent=claude", 3),
            ("agent=codex", 0),
            ("channel=http", 3),
            ("channel=discord", 0),
        ] {
            let page = world.get(&format!("/v1/conversations?{query}")).await.json(StatusCode::OK);
            assert_eq!(page["items"].as_array().unwrap().len(), expected, "{query}");
        }
        let long = format!("q={}", "x".repeat(201));
        for query in ["limit=0", "limit=501", "limit=x", "state=x", "other=1", "cursor=%20", &long] {
            world.get(&format!("/v1/conversations?{query}")).await.problem(400, "INVALID_REQUEST");
        }
    }
}

#[tokio::test]
async fn a_conversation_with_a_running_turn_is_not_deleted() {
    for world in World::all().await {
        let id = world.conversation().await;
        world.message(&id, "hi").await;
        let lease = world.claim().await;
        let path = format!("/v1/conversations/{id}");
        assert_eq!(world.get(&path).await.json(StatusCode::OK)["state"], "running");
        world.call(Method::DELETE, &path, json!(null)).await.problem(409, "CONVERSATION_BUSY");
        world.finish(lease, Ok("hello")).await;
        assert_eq!(world.call(Method::DELETE, &path, json!(null)).await.status, StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn a_fork_has_the_history_of_its_origin() {
    for world in World::all().await {
        let id = world.conversation().await;
        for text in ["one", "two"] {
            world.message(&id, text).await;
            let lease = world.claim().await;
            world.finish(lease, Ok(&format!("answer {text}"))).await;
        }
        world.message(&id, "three").await;
        let source = format!("/v1/conversations/{id}");
        let reply = world.call(Method::POST, &format!("{source}/fork"), json!({ "afterSeq": 6 })).await;
        let fork = reply.json(StatusCode::CREATED);
        assert_eq!((&fork["lastSeq"], &fork["state"]), (&json!(6), &json!("idle")));
        assert_eq!(fork["forkedFrom"], json!({ "conversationId": id, "seq": 6 }));
        let path = format!("/v1/conversations/{}/messages", fork["id"].as_str().unwrap());
        world.message(fork["id"].as_str().unwrap(), "four").await;
        // The copied exchanges and those of the fork are one list, whatever the size of its pages.
        for limit in 1..5 {
            let (mut texts, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = world.get(&format!("{path}?limit={limit}{cursor}")).await.json(StatusCode::OK);
                let items = page["items"].as_array().unwrap();
                assert!(items.len() <= limit);
                texts.extend(items.iter().map(|item| {
                    let answer = item["answer"]["finalText"].as_str().unwrap_or("-");
                    format!(
                        "{} {answer} {}",
                        item["message"]["text"].as_str().unwrap(),
                        item["state"].as_str().unwrap()
                    )
                }));
                let Some(next) = page["nextCursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(texts, ["one answer one done", "two answer two done", "four - queued"], "{limit}");
        }
        let whole =
            world.request(axum::http::Request::post(format!("{source}/fork")).body(axum::body::Body::empty()).unwrap());
        assert_eq!(whole.await.json(StatusCode::CREATED)["lastSeq"], 7);
        world.post(&format!("{source}/fork"), json!({ "afterSeq": 99 })).await.problem(409, "CONFLICT");
        world.post(&format!("{source}/fork"), json!({ "afterSeq": 1.5 })).await.problem(400, "INVALID_REQUEST");
        let first = world.post(&format!("{source}/fork"), json!({ "afterSeq": 1.0 })).await;
        assert_eq!(first.json(StatusCode::CREATED)["lastSeq"], 1);
    }
}

#[tokio::test]
async fn only_an_admin_selects_a_higher_permission_than_the_configuration() {
    let world = World::memory(|_| {});
    let sender = world.as_caller("bob", &[Scope::Send]);
    sender.post("/v1/conversations", json!({ "permission": "full" })).await.problem(403, "FORBIDDEN");
    let created = sender.post("/v1/conversations", json!({ "permission": "read-only" })).await;
    let id = created.json(StatusCode::CREATED)["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{id}");
    sender.call(Method::PATCH, &path, json!({ "permission": "edit" })).await.problem(403, "FORBIDDEN");
    world.call(Method::PATCH, &path, json!({ "permission": "full" })).await.json(StatusCode::OK);
}

#[tokio::test]
async fn a_permission_that_an_admin_has_selected_is_not_given_to_others() {
    let world = World::memory(|_| {});
    let sender = world.as_caller("bob", &[Scope::Send, Scope::Read]);
    let created = world.post("/v1/conversations", json!({ "permission": "full" })).await.json(StatusCode::CREATED);
    let path = format!("/v1/conversations/{}", created["id"].as_str().unwrap());
    let permission = async |path: &str, author: &str| {
        let id = path.rsplit('/').next().unwrap().parse().unwrap();
        let found = world.gateway.store().conversation(id, world.gateway.now()).await.unwrap().unwrap();
        let origin = Origin { channel: "http", chat: &found.address.chat, author };
        let turn = resolve(world.gateway.config(), Some(&found.agent), &found.settings.to().unwrap(), origin).unwrap();
        turn.permission
    };
    assert_eq!(permission(&path, "alice").await, PermissionMode::Full);
    assert_eq!(permission(&path, "bob").await, PermissionMode::Ask);
    // A fork of it, or a change of another setting, gives bob no more.
    let fork = sender.post(&format!("{path}/fork"), json!({})).await.json(StatusCode::CREATED);
    assert_eq!(fork.get("permission"), None);
    let fork = format!("/v1/conversations/{}", fork["id"].as_str().unwrap());
    assert_eq!(permission(&fork, "bob").await, PermissionMode::Ask);
    sender.call(Method::PATCH, &path, json!({ "title": "mine" })).await.json(StatusCode::OK);
    assert_eq!(permission(&path, "bob").await, PermissionMode::Ask);
    sender.call(Method::PATCH, &path, json!({ "permission": "ask" })).await.json(StatusCode::OK);
    world.call(Method::PATCH, &path, json!({ "permission": "edit" })).await.json(StatusCode::OK);
    assert_eq!(permission(&path, "alice").await, PermissionMode::Edit);
    assert_eq!(permission(&path, "bob").await, PermissionMode::Ask);
}

#[tokio::test]
async fn a_directory_outside_of_the_roots_is_refused() {
    let world = World::memory(|_| {});
    let reply = world.post("/v1/conversations", json!({ "directory": "/etc" })).await;
    assert_eq!(reply.problem(403, "FORBIDDEN")["field"], "directory");
    let missing = world.post("/v1/conversations", json!({ "directory": "/nowhere/x" })).await;
    assert_eq!(missing.bytes, reply.bytes);
    // A link is resolved to its target.
    std::os::unix::fs::symlink("/etc", world.directory().join("link")).unwrap();
    let link = world.directory().join("link");
    world.post("/v1/conversations", json!({ "directory": link })).await.problem(403, "FORBIDDEN");
    // A change and a fork are checked as a creation is.
    let inside = world.directory().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let created = world.post("/v1/conversations", json!({ "directory": inside })).await.json(StatusCode::CREATED);
    let path = format!("/v1/conversations/{}", created["id"].as_str().unwrap());
    for outside in ["/etc", link.to_str().unwrap()] {
        world.call(Method::PATCH, &path, json!({ "directory": outside })).await.problem(403, "FORBIDDEN");
    }
    std::fs::remove_dir(&inside).unwrap();
    std::os::unix::fs::symlink("/etc", &inside).unwrap();
    world.post(&format!("{path}/fork"), json!({})).await.problem(403, "FORBIDDEN");
    let reply = world.post("/v1/conversations", json!({ "agent": "unknown" })).await;
    assert_eq!(reply.problem(400, "INVALID_REQUEST")["field"], "agent");
    // It may interpret prompts, and the configuration does not name it.
    world.post("/v1/conversations", json!({ "agent": "acp" })).await.problem(403, "FORBIDDEN");
}

#[tokio::test]
async fn no_text_of_a_filter_is_a_part_of_a_query() {
    let world = World::sqlite().await;
    for title in ["100%", "a_b", "it's", "plain", "x\\y"] {
        world.post("/v1/conversations", json!({ "title": title })).await.json(StatusCode::CREATED);
    }
    for (query, expected) in [
        ("q=%25", 1),
        ("q=_", 1),
        ("q='", 1),
        ("q=%5C", 1),
        ("q='%20OR%201=1%20--", 0),
        ("q=%22%3B%20DROP%20TABLE%20turn%3B", 0),
        ("agent='%20OR%20'1'='1", 0),
        ("agent=%25", 0),
        ("channel=http'%20--", 0),
        ("channel=_ttp", 0),
        ("q=", 5),
    ] {
        let page = world.get(&format!("/v1/conversations?{query}")).await.json(StatusCode::OK);
        assert_eq!(page["items"].as_array().unwrap().len(), expected, "{query}");
    }
}
