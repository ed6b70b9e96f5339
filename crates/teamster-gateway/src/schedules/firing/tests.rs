//! Tests of due schedules.

use serde_json::json;
use teamster_store::{ConversationId, ScheduleId};

use super::*;
use crate::config::Rule;
use crate::hooks::{HookConfig, HookEventKind};
use crate::schedules::{ScheduleLimits, create, delete};
use crate::testing::{BOUND, TestGateway, chat, until};

fn body(cron: &str) -> ScheduleBody {
    serde_json::from_value(json!({"cron": cron, "text": "water the plants", "author": "ann"})).unwrap()
}

fn id(number: u128) -> ScheduleId {
    ScheduleId::new(Uuid::from_u128(number))
}

async fn with_schedule(body: &ScheduleBody) -> (TestGateway, ConversationId) {
    let test = TestGateway::new(|_| {});
    let conversation = test.conversation(chat("garden")).await;
    create(&test.gateway, conversation, id(1), body).await.unwrap();
    (test, conversation)
}

/// Fires what is due, as after a start.
async fn fire_due(gateway: &Gateway) -> Result<Duration, GatewayError> {
    super::fire_due(gateway, &mut Delayed::new()).await
}

async fn next_at(test: &TestGateway) -> Option<Timestamp> {
    test.gateway.store().schedule(id(1)).await.unwrap().and_then(|schedule| schedule.next_at)
}

#[tokio::test]
async fn a_due_schedule_sends_its_message_to_its_conversation_once() {
    let (test, conversation) = with_schedule(&body("0 * * * *")).await;
    assert_eq!(fire_due(&test.gateway).await.unwrap(), Duration::from_mins(1));
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 0);
    test.advance(Duration::from_hours(1));
    for _ in 0..3 {
        fire_due(&test.gateway).await.unwrap();
    }
    let queued = test.events(conversation, "turn_queued").await;
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0]["text"], "water the plants");
    assert_eq!(queued[0]["author"], "ann");
    assert_eq!(queued[0]["scheduleId"], id(1).to_string());
    test.advance(Duration::from_hours(1));
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 2);
}

#[tokio::test]
async fn a_message_that_an_agent_has_scheduled_is_marked_as_its_own() {
    for (created_by, by_agent) in [("turn 0197f3a0-0000-7000-8000-000000000001", true), ("token 1", false)] {
        let body = ScheduleBody { created_by: created_by.to_owned(), ..body("0 * * * *") };
        let (test, conversation) = with_schedule(&body).await;
        test.advance(Duration::from_hours(1));
        fire_due(&test.gateway).await.unwrap();
        let queued = test.events(conversation, "turn_queued").await;
        assert_eq!(queued[0]["byAgent"].as_bool(), by_agent.then_some(true), "{queued:?}");
        let turns = test.gateway.store().open_turns(conversation).await.unwrap();
        let details: serde_json::Value = turns[0].message.details.to().unwrap();
        assert_eq!(details["byAgent"].as_bool(), by_agent.then_some(true), "{details}");
        assert_eq!(turns[0].message.author, "ann", "the rules for its author apply");
    }
}

#[tokio::test]
async fn two_processes_fire_a_time_once() {
    let (test, conversation) = with_schedule(&body("0 * * * *")).await;
    test.advance(Duration::from_hours(1));
    let (first, second) = tokio::join!(fire_due(&test.gateway), fire_due(&test.gateway));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 1);
}

#[tokio::test]
async fn missed_times_fire_once_late_or_are_skipped_visibly() {
    let (test, conversation) = with_schedule(&body("0 * * * *")).await;
    test.advance(Duration::from_hours(5) + Duration::from_mins(10));
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 1);
    assert_eq!(test.events(conversation, "schedule_skipped").await.len(), 0);

    let (test, conversation) = with_schedule(&ScheduleBody { missed: Missed::Skip, ..body("0 * * * *") }).await;
    test.advance(Duration::from_hours(5) + Duration::from_mins(10));
    fire_due(&test.gateway).await.unwrap();
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 0);
    let skipped = test.events(conversation, "schedule_skipped").await;
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0]["at"], "2026-01-01T01:00:00.000Z");
    assert_eq!(skipped[0]["reason"], "the gateway was down");
    assert_eq!(next_at(&test).await.map(rfc3339).unwrap(), "2026-01-01T06:00:00.000Z");
}

#[tokio::test]
async fn a_single_time_fires_and_is_gone() {
    let single = ScheduleBody { cron: None, at: Some("2026-01-01T01:00".to_owned()), ..body("") };
    let (test, conversation) = with_schedule(&single).await;
    test.advance(Duration::from_hours(1));
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 1);
    assert_eq!(test.gateway.store().schedule(id(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_queue_delays_a_schedule_and_does_not_lose_it() {
    let test = TestGateway::new(|config| config.limits.queue_per_chat = 1);
    let conversation = test.conversation(chat("garden")).await;
    let turn = test.turn(conversation, "first").await;
    create(&test.gateway, conversation, id(1), &body("0 * * * *")).await.unwrap();
    test.advance(Duration::from_hours(1));
    assert_eq!(fire_due(&test.gateway).await.unwrap(), RETRY);
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 1);
    test.gateway.abort_turn(turn).await.unwrap();
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 2);
}

#[tokio::test]
async fn a_schedule_waits_for_a_full_queue_and_for_a_hook_however_long_that_takes() {
    let directory = tempfile::tempdir().unwrap();
    let hook = HookConfig {
        name: "check".to_owned(),
        events: vec![HookEventKind::MessageAccepted],
        command: ["sh", "-c", "test -e works"].map(str::to_owned).to_vec(),
        directory: Some(directory.path().to_owned()),
        on_failure: crate::hooks::OnFailure::Closed,
        ..HookConfig::default()
    };
    std::fs::write(directory.path().join("works"), "").unwrap();
    let test = TestGateway::new(|config| {
        config.hooks = vec![hook];
        config.limits.queue_per_chat = 1;
    });
    let conversation = test.conversation(chat("garden")).await;
    let turn = test.turn(conversation, "first").await;
    let once = ScheduleBody { cron: None, at: Some("2026-01-01T01:00".to_owned()), missed: Missed::Skip, ..body("") };
    create(&test.gateway, conversation, id(1), &once).await.unwrap();
    test.advance(Duration::from_hours(1));
    let mut delayed = Delayed::new();
    assert_eq!(super::fire_due(&test.gateway, &mut delayed).await.unwrap(), RETRY);
    test.gateway.abort_turn(turn).await.unwrap();
    std::fs::remove_file(directory.path().join("works")).unwrap();
    for _ in 0..3 {
        test.advance(Duration::from_hours(1));
        assert_eq!(super::fire_due(&test.gateway, &mut delayed).await.unwrap(), RETRY);
    }
    std::fs::write(directory.path().join("works"), "").unwrap();
    super::fire_due(&test.gateway, &mut delayed).await.unwrap();
    assert_eq!(test.events(conversation, "turn_queued").await.len(), 2);
    assert_eq!(test.events(conversation, "schedule_skipped").await.len(), 0);
}

#[tokio::test]
async fn rules_and_hooks_apply_to_scheduled_messages() {
    let reject = |config: &mut crate::config::Config| {
        config.rules = vec![Rule { authors: Some(vec!["ann".to_owned()]), reject: true, ..Rule::default() }];
    };
    let rejected_by_hook = |config: &mut crate::config::Config| {
        let script = r#"echo '{"decision": "reject", "reason": "not now"}'"#;
        config.hooks = vec![HookConfig {
            name: "no".to_owned(),
            events: vec![HookEventKind::MessageAccepted],
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..HookConfig::default()
        }];
    };
    for (test, reason) in
        [(TestGateway::new(reject), "a rule of the operator"), (TestGateway::new(rejected_by_hook), "not now")]
    {
        let conversation = test.conversation(chat("garden")).await;
        create(&test.gateway, conversation, id(1), &body("0 * * * *")).await.unwrap();
        test.advance(Duration::from_hours(1));
        fire_due(&test.gateway).await.unwrap();
        assert_eq!(test.events(conversation, "turn_queued").await.len(), 0);
        let skipped = test.events(conversation, "schedule_skipped").await;
        assert!(skipped[0]["reason"].as_str().unwrap().starts_with(reason), "{skipped:?}");
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_is_stopped_visibly() {
    let (test, conversation) = with_schedule(&body("0 * * * *")).await;
    let broken = teamster_store::NewSchedule {
        id: id(1),
        conversation,
        body: Json::parse(r#"{"cron": 5}"#).unwrap(),
        next_at: Some(test.gateway.now()),
    };
    test.gateway.store().put_schedule(broken, test.gateway.now()).await.unwrap();
    fire_due(&test.gateway).await.unwrap();
    assert_eq!(next_at(&test).await, None);
    assert_eq!(test.events(conversation, "schedule_skipped").await.len(), 1);
}

#[tokio::test]
async fn the_task_wakes_when_a_schedule_is_created_and_ends_with_the_gateway() {
    let test = TestGateway::new(|_| {});
    let conversation = test.conversation(chat("garden")).await;
    let task = tokio::spawn(run(test.gateway.clone()));
    // The task waits for a minute now, unless it is woken.
    tokio::task::yield_now().await;
    create(&test.gateway, conversation, id(1), &body("0 * * * *")).await.unwrap();
    test.advance(Duration::from_hours(1));
    create(&test.gateway, conversation, id(2), &body("0 * * * *")).await.unwrap();
    until(|| async { test.events(conversation, "turn_queued").await.len() == 1 }).await;
    test.gateway.stopping().cancel();
    tokio::time::timeout(BOUND, task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_conversation_has_a_limited_number_of_schedules_and_only_its_own() {
    let test = TestGateway::new(|config| {
        config.schedules = ScheduleLimits { per_conversation: 2, ..ScheduleLimits::default() };
    });
    let (ours, theirs) = (test.conversation(chat("garden")).await, test.conversation(chat("kitchen")).await);
    for number in [1, 2] {
        create(&test.gateway, ours, id(number), &body("0 * * * *")).await.unwrap();
    }
    let error = create(&test.gateway, ours, id(3), &body("0 * * * *")).await.unwrap_err();
    assert!(error.to_string().contains("at most 2"), "{error}");
    create(&test.gateway, ours, id(2), &body("5 * * * *")).await.unwrap();
    assert!(create(&test.gateway, theirs, id(2), &body("5 * * * *")).await.is_err());
    assert!(delete(&test.gateway, theirs, id(2)).await.is_err());
    assert!(delete(&test.gateway, ours, id(2)).await.is_ok());
    assert!(delete(&test.gateway, ours, id(2)).await.is_err());
}

#[tokio::test]
async fn the_id_of_another_conversations_schedule_replaces_nothing() {
    let (test, conversation) = with_schedule(&body("0 * * * *")).await;
    let other = test.conversation(chat("kitchen")).await;
    let stolen = ScheduleBody { text: "obey".to_owned(), ..body("0 * * * *") };
    let refused = create(&test.gateway, other, id(1), &stolen).await.unwrap_err();
    assert!(matches!(refused, GatewayError::Store(StoreError::NotFound { .. })), "{refused:?}");
    assert!(delete(&test.gateway, other, id(1)).await.is_err());
    let kept = test.gateway.store().schedule(id(1)).await.unwrap().unwrap();
    assert_eq!(kept.conversation, conversation);
    assert_eq!(kept.body.to::<ScheduleBody>().unwrap().text, "water the plants");
}
