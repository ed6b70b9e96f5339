//! Turns.

use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::World;
use crate::access::Scope;

#[tokio::test]
async fn a_turn_shows_its_state_its_result_and_its_error() {
    for world in World::all().await {
        let id = world.conversation().await;
        let turn = world.message(&id, "hi").await;
        let path = format!("/v1/turns/{turn}");
        let queued = world.get(&path).await.json(StatusCode::OK);
        assert_eq!((&queued["state"], &queued["attempts"]), (&json!("queued"), &json!(0)));
        assert_eq!((queued.get("result"), queued.get("error")), (None, None));
        let lease = world.claim().await;
        assert_eq!(world.get(&path).await.json(StatusCode::OK)["state"], "running");
        world.finish(lease, Ok("hello")).await;
        let done = world.get(&path).await.json(StatusCode::OK);
        assert_eq!((&done["state"], &done["attempts"]), (&json!("done"), &json!(1)));
        assert_eq!(done["result"]["finalText"], "hello");
        assert_eq!(done["usage"], json!({ "inputTokens": 10, "outputTokens": 5, "costUsd": 1.5 }));
        world.post(&format!("{path}/retry"), json!({})).await.problem(409, "CONFLICT");
        world.post(&format!("{path}/abort"), json!({})).await.problem(409, "CONFLICT");

        let failing = world.message(&id, "fail").await;
        let lease = world.claim().await;
        world.finish(lease, Err("AUTH")).await;
        let path = format!("/v1/turns/{failing}");
        let failed = world.get(&path).await.json(StatusCode::OK);
        assert_eq!(failed["error"], json!({ "code": "AUTH", "message": "it broke" }));
        let retried = world.post(&format!("{path}/retry"), json!({})).await.json(StatusCode::ACCEPTED);
        assert_eq!((&retried["state"], &retried["attempts"]), (&json!("queued"), &json!(0)));
        let aborted = world.post(&format!("{path}/abort"), json!({})).await.json(StatusCode::ACCEPTED);
        assert_eq!(aborted["state"], "aborted");
        // A second abort changes nothing.
        world.post(&format!("{path}/abort"), json!({})).await.json(StatusCode::ACCEPTED);
        world.post(&format!("{path}/retry"), json!({})).await.json(StatusCode::ACCEPTED);
    }
}

#[tokio::test]
async fn only_its_author_or_an_admin_retries_a_turn() {
    let world = World::memory(|_| {});
    let id = world.conversation().await;
    let turn = world.message(&id, "hi").await;
    let lease = world.claim().await;
    world.finish(lease, Err("AUTH")).await;
    let path = format!("/v1/turns/{turn}/retry");
    let stranger = world.as_caller("bob", &[Scope::Send, Scope::Read, Scope::Approve]);
    stranger.post(&path, json!({})).await.problem(403, "FORBIDDEN");
    let author = world.as_caller("alice", &[Scope::Send]);
    author.post(&path, json!({})).await.json(StatusCode::ACCEPTED);
    let lease = world.claim().await;
    world.finish(lease, Err("AUTH")).await;
    world.post(&path, json!({})).await.json(StatusCode::ACCEPTED);
}

#[tokio::test]
async fn the_abort_of_a_running_turn_is_requested() {
    for world in World::all().await {
        let turn = world.message(&world.conversation().await, "hi").await;
        world.claim().await;
        let reply = world.post(&format!("/v1/turns/{turn}/abort"), json!({})).await.json(StatusCode::ACCEPTED);
        assert_eq!((&reply["state"], &reply["abortRequested"]), (&json!("running"), &json!(true)));
    }
}

#[tokio::test]
async fn a_call_waits_for_the_end_of_a_turn() {
    for world in World::all().await {
        let id = world.conversation().await;
        let turn = world.message(&id, "hi").await;
        let path = format!("/v1/turns/{turn}?wait=20");
        let started = Instant::now();
        let (waited, ()) = tokio::join!(world.get(&path), async {
            let lease = world.claim().await;
            for number in 0..5 {
                let text = json!({ "type": "text", "text": number.to_string(), "messageId": "m" });
                world.append(lease, &[text], true).await;
                tokio::task::yield_now().await;
            }
            world.finish(lease, Ok("hello")).await;
        });
        assert_eq!(waited.json(StatusCode::OK)["state"], "done");
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(world.get(&path).await.json(StatusCode::OK)["state"], "done");
        world.get(&format!("/v1/turns/{turn}?wait=61")).await.problem(400, "INVALID_REQUEST");
    }
}

#[tokio::test]
async fn a_wait_ends_with_its_time_the_gateway_or_the_conversation() {
    let world = World::memory(|_| {});
    let id = world.conversation().await;
    let path = format!("/v1/turns/{}", world.message(&id, "hi").await);
    assert_eq!(world.get(&format!("{path}?wait=1")).await.json(StatusCode::OK)["state"], "queued");
    let forever = format!("{path}?wait=60");
    let delete = async {
        tokio::task::yield_now().await;
        world.call(Method::DELETE, &format!("/v1/conversations/{id}"), Value::Null).await
    };
    let (waited, _) = tokio::join!(world.get(&forever), delete);
    waited.problem(404, "NOT_FOUND");
    let turn = world.message(&world.conversation().await, "hi").await;
    let forever = format!("/v1/turns/{turn}?wait=60");
    let (waited, ()) = tokio::join!(world.get(&forever), async {
        tokio::task::yield_now().await;
        world.gateway.closing().cancel();
    });
    assert_eq!(waited.json(StatusCode::OK)["state"], "queued");
}
