//! Schedules.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::World;
use crate::access::Scope;

#[tokio::test]
async fn a_schedule_is_created_replaced_and_deleted() {
    for world in World::all().await {
        let id = world.conversation().await;
        let new = json!({ "cron": "0 9 * * 1-5", "timeZone": "Europe/London", "text": "Report",
            "missed": "skip" });
        let created = world.post(&format!("/v1/conversations/{id}/schedules"), new).await.json(StatusCode::CREATED);
        for (field, value) in [
            ("conversationId", json!(id)),
            ("timeZone", json!("Europe/London")),
            ("author", json!("alice")),
            ("missed", json!("skip")),
            ("maxAgeSeconds", json!(86_400)),
        ] {
            assert_eq!(created[field], value, "{created}");
        }
        assert!(created["nextAt"].is_string());
        let path = format!("/v1/schedules/{}", created["id"].as_str().unwrap());
        assert_eq!(world.get(&path).await.json(StatusCode::OK), created);
        let once = json!({ "at": "2999-01-01T00:00:00Z", "text": "Later", "maxAgeSeconds": 60 });
        let replaced = world.call(Method::PUT, &path, once).await.json(StatusCode::OK);
        assert_eq!((&replaced["nextAt"], replaced.get("cron")), (&json!("2999-01-01T00:00:00.000Z"), None));
        assert_eq!((&replaced["id"], &replaced["createdAt"]), (&created["id"], &created["createdAt"]));
        let listed = world.get(&format!("/v1/schedules?conversationId={id}")).await.json(StatusCode::OK);
        assert_eq!(listed["items"], json!([replaced]));
        assert_eq!(world.call(Method::DELETE, &path, json!(null)).await.status, StatusCode::NO_CONTENT);
        for method in [Method::GET, Method::DELETE] {
            world.call(method, &path, json!(null)).await.problem(404, "NOT_FOUND");
        }
        let again = json!({ "at": "2999-01-01T00:00:00Z", "text": "x" });
        world.call(Method::PUT, &path, again).await.problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn an_invalid_schedule_names_its_field() {
    let world = World::memory(|_| {});
    let id = world.conversation().await;
    for (body, field) in [
        (json!({ "cron": "x", "text": "t" }), "cron"),
        (json!({ "cron": "0 9 * * *", "text": "t", "timeZone": "Mars/Base" }), "timeZone"),
        (json!({ "at": "2001-01-01T00:00:00Z", "text": "t" }), "at"),
        (json!({ "cron": "0 9 * * *", "text": " " }), "text"),
    ] {
        let problem =
            world.post(&format!("/v1/conversations/{id}/schedules"), body).await.problem(400, "INVALID_REQUEST");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let unknown = format!("/v1/conversations/{}/schedules", uuid::Uuid::nil());
    world.post(&unknown, json!({ "cron": "0 9 * * *", "text": "t" })).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_sender_cannot_schedule_a_text_in_the_name_of_another_author() {
    let world = World::memory(|_| {});
    let id = world.conversation().await;
    let new = json!({ "cron": "0 9 * * *", "text": "Report" });
    let created = world.post(&format!("/v1/conversations/{id}/schedules"), new.clone()).await.json(StatusCode::CREATED);
    let path = format!("/v1/schedules/{}", created["id"].as_str().unwrap());
    let bob = world.as_caller("bob", &[Scope::Send]);
    let text = json!({ "cron": "0 9 * * *", "text": "Delete everything" });
    let replaced = bob.call(Method::PUT, &path, text).await.json(StatusCode::OK);
    assert_eq!(replaced["author"], "bob");
    assert_eq!(
        replaced["createdBy"],
        format!("token {}", bob.identity().token.unwrap()),
        "the operator sees who wrote it"
    );
    let mut named = new;
    named["author"] = json!("alice");
    bob.post(&format!("/v1/conversations/{id}/schedules"), named).await.problem(403, "FORBIDDEN");
}

#[tokio::test]
async fn the_number_of_schedules_of_a_conversation_has_a_limit() {
    let world = World::memory(|_| {});
    let id = world.conversation().await;
    let new = json!({ "cron": "0 9 * * *", "text": "Report" });
    for _ in 0..crate::schedules::ScheduleLimits::default().per_conversation {
        world.post(&format!("/v1/conversations/{id}/schedules"), new.clone()).await.json(StatusCode::CREATED);
    }
    world.post(&format!("/v1/conversations/{id}/schedules"), new).await.problem(409, "CONFLICT");
}
