//! Probes, figures, usage, deliveries, agents and the audit log.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use teamster_store::{
    ChatAddress, DeliveryClaim, DeliveryId, DeliveryStep, Effects, Json, NewDelivery, PageRequest, WorkerId,
};
use uuid::Uuid;

use super::World;
use crate::access::Scope;
use crate::hooks::{HookEventKind, HookFailure};

#[tokio::test]
async fn probes_need_no_token_and_readiness_ends_with_the_gateway() {
    for world in World::all().await {
        let anonymous = world.as_caller("anonymous", &[]);
        assert_eq!(anonymous.get("/healthz").await.json(StatusCode::OK), json!({ "status": "ok" }));
        anonymous.get("/readyz").await.json(StatusCode::OK);
        world.gateway.stopping().cancel();
        anonymous.get("/healthz").await.json(StatusCode::OK);
        let reply = anonymous.get("/readyz").await;
        reply.problem(503, "SHUTTING_DOWN");
        assert!(reply.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn figures_count_what_waits_and_runs() {
    for world in World::all().await {
        let id = world.conversation().await;
        world.message(&id, "a").await;
        world.message(&id, "b").await;
        world.claim().await;
        let status = world.get("/v1/status").await.json(StatusCode::OK);
        assert_eq!((&status["queuedTurns"], &status["runningTurns"]), (&json!(1), &json!(1)));
        assert_eq!((&status["conversations"], &status["subscribers"]), (&json!(1), &json!(0)));
    }
}

#[tokio::test]
async fn only_an_admin_sees_channels_and_failures_of_hooks() {
    for world in World::all().await {
        let failure = HookFailure {
            at: world.gateway.now(),
            hook: "audit".to_owned(),
            event: HookEventKind::TurnFinished,
            conversation: None,
            reason: "it ended with the exit code 1".to_owned(),
            output: Some("a private text".to_owned()),
        };
        world.gateway.hooks().add_failure(failure);
        let status = world.get("/v1/status").await.json(StatusCode::OK);
        assert_eq!((&status["channels"], &status["hookFailures"]["count"]), (&json!([]), &json!(1)));
        let recent = &status["hookFailures"]["recent"][0];
        assert_eq!((&recent["hook"], &recent["event"]), (&json!("audit"), &json!("turn_finished")));
        assert!(!status.to_string().contains("private"), "{status}");
        let reader = world.as_caller("reader", &[Scope::Read]).get("/v1/status").await.json(StatusCode::OK);
        assert_eq!((reader.get("channels"), reader.get("hookFailures")), (None, None));
    }
}

#[tokio::test]
async fn usage_is_summed_by_what_is_selected() {
    for world in World::all().await {
        for author in ["alice", "alice", "bob"] {
            let id = world.conversation().await;
            let path = format!("/v1/conversations/{id}/messages");
            world.post(&path, json!({ "text": "hi", "author": author })).await.json(StatusCode::ACCEPTED);
            let lease = world.claim().await;
            world.finish(lease, Ok("ok")).await;
        }
        let by = async |query: &str| world.get(&format!("/v1/usage?{query}")).await.json(StatusCode::OK);
        let authors = by("by=author").await;
        let items: Vec<_> = authors["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (&item["author"], &item["usage"]["costUsd"]))
            .collect();
        assert_eq!(items, [(&json!("alice"), &json!(3.0)), (&json!("bob"), &json!(1.5))]);
        assert_eq!(authors["total"], json!({ "inputTokens": 30, "outputTokens": 15, "costUsd": 4.5 }));
        assert_eq!(by("by=day,agent").await["items"].as_array().unwrap().len(), 1);
        assert_eq!(by("").await["items"][0]["day"].as_str().unwrap().len(), 10);
        let page = by("by=conversation&limit=2").await;
        let rest = by(&format!("by=conversation&limit=2&cursor={}", page["nextCursor"].as_str().unwrap())).await;
        assert_eq!((rest["items"].as_array().unwrap().len(), rest.get("nextCursor")), (1, None));
        assert_eq!(by("to=2000-12-31&days=366").await["items"], json!([]));
        for query in ["by=x", "to=x", "to=2000-13-01", "days=0", "days=367", "cursor=x"] {
            world.get(&format!("/v1/usage?{query}")).await.problem(400, "INVALID_REQUEST");
        }
    }
}

#[tokio::test]
async fn a_failed_delivery_is_listed_and_sent_again() {
    for world in World::all().await {
        let now = world.gateway.now();
        let new = NewDelivery {
            id: DeliveryId::new(Uuid::now_v7()),
            key: "k".to_owned(),
            address: ChatAddress { channel: "webhook".into(), chat: "c".into(), thread: String::new() },
            conversation: None,
            turn: None,
            body: Json::of(&json!({ "text": "hi" })).unwrap(),
            not_before: now,
        };
        world.store.enqueue(vec![new], now).await.unwrap();
        let claim = DeliveryClaim {
            worker: WorkerId::new("w"),
            lease_for: std::time::Duration::from_secs(9),
            channels: vec!["webhook".to_owned()],
            limit: 1,
        };
        let lease = world.store.claim_deliveries(claim, now).await.unwrap()[0].lease;
        let step = DeliveryStep::Failed("refused".to_owned());
        world.store.advance_delivery(lease, step, Effects::default(), now).await.unwrap();
        let listed = world.get("/v1/deliveries?state=failed").await.json(StatusCode::OK);
        let item = &listed["items"][0];
        assert_eq!((&item["error"], &item["body"]), (&json!("refused"), &json!({ "text": "hi" })));
        let path = format!("/v1/deliveries/{}/retry", item["id"].as_str().unwrap());
        let reader = world.as_caller("bob", &[Scope::Read, Scope::Send]);
        reader.get("/v1/deliveries").await.problem(403, "FORBIDDEN");
        reader.post(&path, json!({})).await.problem(403, "FORBIDDEN");
        assert_eq!(world.post(&path, json!({})).await.json(StatusCode::ACCEPTED)["state"], "pending");
        world.post(&path, json!({})).await.problem(409, "CONFLICT");
        let unknown = format!("/v1/deliveries/{}/retry", Uuid::nil());
        world.post(&unknown, json!({})).await.problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn agents_are_listed_with_what_they_support() {
    let world = World::memory(|config| config.turn.cli_path = Some("/nowhere/claude".into()));
    let (agents, again) = tokio::join!(world.get("/v1/agents"), world.get("/v1/agents"));
    let agents = agents.json(StatusCode::OK);
    assert_eq!(again.json(StatusCode::OK), agents);
    let items = agents["items"].as_array().unwrap();
    let claude = items.iter().find(|agent| agent["name"] == "claude").unwrap();
    assert_eq!((&claude["isDefault"], &claude["available"]), (&json!(true), &json!(false)));
    assert!(claude["problem"].is_string());
    assert!(items.iter().any(|agent| agent["name"] == "codex"));
    assert!(items.iter().all(|agent| agent["capabilities"].is_object()));
    assert_eq!(claude["capabilities"]["model"]["support"], "yes");
}

#[tokio::test]
async fn changes_are_in_the_audit_log() {
    for world in World::all().await {
        let id = world.conversation().await;
        let path = format!("/v1/conversations/{id}");
        world.call(Method::PATCH, &path, json!({ "title": "t" })).await.json(StatusCode::OK);
        world.call(Method::PATCH, &path, json!({ "agent": "unknown" })).await.problem(400, "INVALID_REQUEST");
        let turn = world.message(&id, "hi").await;
        world.post(&format!("/v1/turns/{turn}/abort"), json!({})).await.json(StatusCode::ACCEPTED);
        world.post(&format!("/v1/turns/{turn}/retry"), json!({})).await.json(StatusCode::ACCEPTED);
        let new = json!({ "cron": "0 9 * * *", "text": "Report" });
        world.post(&format!("{path}/schedules"), new).await.json(StatusCode::CREATED);
        world.call(Method::DELETE, &path, Value::Null).await;
        let log = world.store.audit_log(PageRequest::first(50)).await.unwrap().items;
        let actor = format!("token:{}", world.identity().token.unwrap());
        assert!(log.iter().all(|entry| entry.entry.actor == actor));
        let actions: Vec<_> = log.iter().map(|entry| entry.entry.action.as_str()).collect();
        let expected = [
            "conversation.create",
            "conversation.update",
            "turn.abort",
            "turn.retry",
            "schedule.create",
            "conversation.delete",
        ];
        assert_eq!(actions, expected);
        assert_eq!((&log[0].entry.subject, &log[2].entry.subject), (&id, &turn));
    }
}
