//! Permission requests.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use teamster_store::{Effects, Json, NewPermission, PermissionId};
use uuid::Uuid;

use super::World;
use crate::access::Scope;

/// Makes a request of a running turn, and returns its id.
async fn request(world: &World, body: Value, limit: Duration) -> String {
    let id = world.conversation().await;
    world.message(&id, "hi").await;
    let lease = world.claim().await;
    let (id, now) = (PermissionId::new(Uuid::now_v7()), world.gateway.now());
    let new = NewPermission { id, body: Json::of(&body).unwrap(), deadline: now.after(limit) };
    world.store.request_permission(lease, new, Effects::default(), now).await.unwrap();
    id.to_string()
}

fn tool(approvers: &[&str]) -> Value {
    json!({ "type": "permission_request", "toolName": "Bash", "approvers": approvers })
}

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_request_is_listed_and_answered_once() {
    for world in World::all().await {
        let id = request(&world, tool(&["http:alice"]), LONG).await;
        let open = world.get("/v1/permission-requests?state=open").await.json(StatusCode::OK);
        let item = &open["items"][0];
        assert_eq!((&item["id"], &item["state"]), (&json!(id), &json!("open")));
        assert_eq!(item["request"]["toolName"], "Bash");
        let path = format!("/v1/permission-requests/{id}");
        let answer = json!({ "decision": "allow", "message": "go" });
        let answered = world.post(&format!("{path}/answer"), answer.clone()).await.json(StatusCode::OK);
        assert_eq!((&answered["state"], &answered["answeredBy"]), (&json!("allowed"), &json!("http:alice")));
        let again = world.post(&format!("{path}/answer"), answer).await.problem(409, "ALREADY_ANSWERED");
        assert_eq!(again["answeredBy"], "http:alice");
        let open = world.get("/v1/permission-requests?state=open").await.json(StatusCode::OK);
        assert_eq!(open["items"], json!([]));
        let all = world.get(&format!("/v1/permission-requests?turnId={}", item["turnId"].as_str().unwrap())).await;
        assert_eq!(all.json(StatusCode::OK)["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn only_a_listed_approver_answers_and_a_refused_answer_leaves_the_request_open() {
    for world in World::all().await {
        let id = request(&world, tool(&["http:carol"]), LONG).await;
        let path = format!("/v1/permission-requests/{id}/answer");
        let answer = json!({ "decision": "allow_always" });
        let chatter = world.as_caller("carol", &[Scope::Read, Scope::Send]);
        chatter.post(&path, answer.clone()).await.problem(403, "FORBIDDEN");
        let stranger = world.as_caller("bob", &[Scope::Approve]);
        stranger.post(&path, answer.clone()).await.problem(403, "FORBIDDEN");
        let named = world.as_caller("carol", &[Scope::Approve]);
        assert_eq!(named.post(&path, answer).await.json(StatusCode::OK)["state"], "allowed_always");
    }
}

#[tokio::test]
async fn a_token_that_is_named_answers_for_itself() {
    let world = World::memory(|_| {});
    let approver = world.as_caller("bob", &[Scope::Approve]);
    let name = format!("token:{}", approver.identity().token.unwrap());
    let id = request(&world, tool(&[&name]), LONG).await;
    let path = format!("/v1/permission-requests/{id}/answer");
    let answered = approver.post(&path, json!({ "decision": "deny" })).await.json(StatusCode::OK);
    assert_eq!((&answered["state"], &answered["answeredBy"]), (&json!("denied"), &json!(name)));
}

#[tokio::test]
async fn an_answer_after_the_time_limit_is_refused() {
    for world in World::all().await {
        let id = request(&world, tool(&["http:alice"]), Duration::ZERO).await;
        let path = format!("/v1/permission-requests/{id}/answer");
        world.post(&path, json!({ "decision": "allow" })).await.problem(409, "EXPIRED");
    }
}

#[tokio::test]
async fn questions_are_answered_one_by_one_or_by_one_text() {
    for world in World::all().await {
        let question = json!({ "type": "question", "questions": [{ "id": "q1" }], "approvers": ["http:alice"] });
        let id = request(&world, question.clone(), LONG).await;
        let path = format!("/v1/permission-requests/{id}/answer");
        for wrong in [
            json!({ "decision": "allow" }),
            json!({ "decision": "deny", "answers": { "q1": ["red"] } }),
            json!({ "decision": "allow", "message": "x", "answers": { "q1": ["red"] } }),
            json!({ "decision": "allow", "answers": { "q1": "red" } }),
            json!({ "decision": "maybe" }),
        ] {
            world.post(&path, wrong).await.problem(400, "INVALID_REQUEST");
        }
        let answer = json!({ "decision": "allow", "answers": { "q1": ["red", "blue"] } });
        let answered = world.post(&path, answer).await.json(StatusCode::OK);
        let message: Value = serde_json::from_str(answered["message"].as_str().unwrap()).unwrap();
        assert_eq!(message, json!({ "q1": ["red", "blue"] }));
        let id = request(&world, question, LONG).await;
        let path = format!("/v1/permission-requests/{id}/answer");
        let answer = json!({ "decision": "allow", "message": "red" });
        assert_eq!(world.post(&path, answer).await.json(StatusCode::OK)["message"], "red");
        let id = request(&world, tool(&["http:alice"]), LONG).await;
        let path = format!("/v1/permission-requests/{id}/answer");
        let answer = json!({ "decision": "allow", "answers": { "q1": ["red"] } });
        world.post(&path, answer).await.problem(400, "INVALID_REQUEST");
    }
}
