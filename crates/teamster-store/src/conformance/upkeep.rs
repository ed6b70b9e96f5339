//! Promises about schedules, tokens, the audit log, state of channels and retention.

use super::suite;
use super::world::{LEASE, WIDE, World, done};
use crate::error::StoreError;
use crate::ids::{Json, ScheduleId, TokenId};
use crate::records::{
    Accepted, ConversationPatch, Effects, FireOutcome, NewAuditEntry, NewEvent, NewSchedule, PageRequest, QueueLimits,
    RetentionPolicy, ScheduleFilter, ScheduleFiring, Target, Token,
};

suite![
    a_time_of_a_schedule_is_fired_once_with_its_message,
    a_schedule_whose_message_is_refused_stays_due,
    a_token_is_found_by_its_hash_and_can_be_revoked,
    the_audit_log_keeps_its_order,
    the_state_of_a_channel_survives_a_restart,
    retention_deletes_ended_turns_and_deliveries_but_no_channel_id,
    a_conversation_of_the_api_is_deleted_with_its_last_event_and_turn,
    a_file_is_needed_while_a_message_a_delivery_or_an_event_names_it,
];

async fn schedule(world: &mut World) -> NewSchedule {
    let conversation = world.accept_in("a").await.conversation;
    let id = ScheduleId::new(world.id());
    let new = NewSchedule { id, conversation, body: Json::empty(), next_at: Some(world.now().after(LEASE)) };
    world.store().put_schedule(new.clone(), world.now()).await.unwrap();
    new
}

async fn due(world: &World) -> usize {
    let filter = ScheduleFilter { due_by: Some(world.now()), conversation: None };
    world.store().schedules(filter, PageRequest::first(10)).await.unwrap().items.len()
}

fn firing(world: &mut World, schedule: &NewSchedule) -> ScheduleFiring {
    let (id, turn) = (world.id(), world.id());
    let mut message = super::records::message(Target::Existing(schedule.conversation), id, turn, world.now());
    message.channel_ids = vec![format!("schedule:{}", schedule.id)];
    ScheduleFiring {
        id: schedule.id,
        due_at: schedule.next_at.unwrap(),
        next_at: Some(world.now().after(LEASE)),
        message: Some(message),
        effects: Effects::events(vec![world.event("fired")]),
    }
}

async fn a_time_of_a_schedule_is_fired_once_with_its_message(world: &mut World) {
    let schedule = schedule(world).await;
    assert_eq!(due(world).await, 0);
    world.advance(LEASE).await;
    world.reopen().await;
    assert_eq!(due(world).await, 1);
    let first = firing(world, &schedule);
    let outcome = world.store().fire_schedule(first.clone(), WIDE, world.now()).await.unwrap();
    assert!(matches!(outcome, FireOutcome::Fired(Some(Accepted::New(_)))), "{outcome:?}");
    assert_eq!(world.store().fire_schedule(first, WIDE, world.now()).await.unwrap(), FireOutcome::Stale);
    assert_eq!(due(world).await, 0);
    assert_eq!(world.log(schedule.conversation).await.len(), 3);
    // A skipped time and the last time.
    world.advance(LEASE).await;
    let skip = ScheduleFiring {
        due_at: world.now(),
        next_at: None,
        message: None,
        effects: Effects::default(),
        ..firing(world, &schedule)
    };
    assert_eq!(world.store().fire_schedule(skip, WIDE, world.now()).await.unwrap(), FireOutcome::Fired(None));
    let all = world.store().schedules(ScheduleFilter::default(), PageRequest::first(10)).await.unwrap().items;
    assert_eq!((all[0].next_at, all[0].last_at), (None, Some(world.now())));
    assert_eq!(world.store().schedule(schedule.id).await.unwrap().as_ref(), all.first());
    assert!(world.store().delete_schedule(schedule.id).await.unwrap());
    assert_eq!(world.store().schedule(schedule.id).await.unwrap(), None);
    assert!(!world.store().delete_schedule(schedule.id).await.unwrap());
}

async fn a_schedule_whose_message_is_refused_stays_due(world: &mut World) {
    let schedule = schedule(world).await;
    world.advance(LEASE).await;
    let refused = firing(world, &schedule);
    let full = QueueLimits { chat: 1, total: 1 };
    let outcome = world.store().fire_schedule(refused.clone(), full, world.now()).await;
    assert!(matches!(outcome, Err(StoreError::QueueFull { .. })), "{outcome:?}");
    assert_eq!(due(world).await, 1);
    let outcome = world.store().fire_schedule(refused, WIDE, world.now()).await.unwrap();
    assert!(matches!(outcome, FireOutcome::Fired(Some(_))), "{outcome:?}");
}

async fn a_token_is_found_by_its_hash_and_can_be_revoked(world: &mut World) {
    let token = Token {
        id: TokenId::new(world.id()),
        hash: [7; 32],
        owner: "alice".to_owned(),
        scopes: Json::parse("[\"read\"]").unwrap(),
        created_at: world.now(),
        revoked_at: None,
    };
    world.store().add_token(token.clone()).await.unwrap();
    let twin = Token { id: TokenId::new(world.id()), ..token.clone() };
    assert!(matches!(world.store().add_token(twin).await, Err(StoreError::Exists { .. })));
    world.reopen().await;
    assert_eq!(world.store().token_by_hash([7; 32]).await.unwrap(), Some(token.clone()));
    assert_eq!(world.store().token_by_hash([8; 32]).await.unwrap(), None);
    let first = world.now();
    for _ in 0..2 {
        let revoked = world.store().revoke_token(token.id, world.now()).await.unwrap();
        assert_eq!(revoked.revoked_at, Some(first));
        world.advance(LEASE).await;
    }
    let listed = world.store().tokens(PageRequest::first(5)).await.unwrap().items;
    assert_eq!(listed, [Token { revoked_at: Some(first), ..token.clone() }]);
    for existed in [true, false] {
        assert_eq!(world.store().remove_token(token.id).await.unwrap(), existed);
    }
    assert_eq!(world.store().token_by_hash([7; 32]).await.unwrap(), None);
    let unknown = TokenId::new(world.id());
    let missing = world.store().revoke_token(unknown, first).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
}

async fn the_audit_log_keeps_its_order(world: &mut World) {
    for number in 0..3 {
        let entry = NewAuditEntry {
            actor: "alice".to_owned(),
            action: format!("action {number}"),
            subject: "token".to_owned(),
            origin: "127.0.0.1".to_owned(),
            details: Json::empty(),
        };
        world.store().record_audit(entry, world.now()).await.unwrap();
    }
    let first = world.store().audit_log(PageRequest::first(2)).await.unwrap();
    let rest = PageRequest { limit: 2, cursor: first.next.clone() };
    let rest = world.store().audit_log(rest).await.unwrap();
    let all: Vec<_> = first.items.into_iter().chain(rest.items).collect();
    let actions: Vec<_> = all.iter().map(|one| one.entry.action.as_str()).collect();
    assert_eq!(actions, ["action 0", "action 1", "action 2"]);
    assert!(all.is_sorted_by(|one, next| one.number < next.number));
}

async fn the_state_of_a_channel_survives_a_restart(world: &mut World) {
    for text in ["1", "{\"offset\": 2}"] {
        let state = Json::parse(text).unwrap();
        world.store().set_channel_state("telegram:7".to_owned(), state.clone()).await.unwrap();
        world.reopen().await;
        assert_eq!(world.store().channel_state("telegram:7".to_owned()).await.unwrap(), Some(state));
    }
    assert_eq!(world.store().channel_state("telegram:8".to_owned()).await.unwrap(), None);
}

async fn retention_deletes_ended_turns_and_deliveries_but_no_channel_id(world: &mut World) {
    let message = world.message("a");
    let accepted = world.accept(message.clone()).await;
    let lease = world.claim("w").await.lease;
    world.store().finish(lease, done(), world.now()).await.unwrap();
    world.advance(LEASE).await;
    let policy = RetentionPolicy { events_before: None, max_events: None, ended_before: Some(world.now()), batch: 1 };
    let pruned = world.store().prune(policy, world.now()).await.unwrap();
    assert_eq!((pruned.turns, pruned.more), (1, true));
    assert!(!world.store().prune(policy, world.now()).await.unwrap().more);
    assert_eq!(world.store().turn(accepted.turn).await.unwrap(), None);
    assert_eq!(world.store().accept(message, WIDE, world.now()).await.unwrap(), Accepted::Deleted);
    assert_eq!(world.log(accepted.conversation).await.len(), 1);
}

async fn a_conversation_of_the_api_is_deleted_with_its_last_event_and_turn(world: &mut World) {
    let mut ids = Vec::new();
    for (channel, text) in [("http", "ended"), ("webhook", "ended"), ("http", "scheduled"), ("http", "running")] {
        let mut message = world.message(text);
        let Target::Address(new) = &mut message.target else { unreachable!() };
        channel.clone_into(&mut new.address.channel);
        let id = world.accept(message).await.conversation;
        let lease = world.claim("w").await.lease;
        if text == "scheduled" {
            let new = NewSchedule {
                id: ScheduleId::new(world.id()),
                conversation: id,
                body: Json::empty(),
                next_at: Some(world.now()),
            };
            world.store().put_schedule(new, world.now()).await.unwrap();
        }
        if text != "running" {
            world.store().finish(lease, done(), world.now()).await.unwrap();
        }
        ids.push(id);
    }
    let mut unused = super::records::new_conversation(world.id(), "unused", "");
    "http".clone_into(&mut unused.address.channel);
    ids.push(world.store().create_conversation(unused, None, world.now()).await.unwrap().id);
    world.advance(LEASE / 2).await;
    let before = Some(world.now());
    let policy = RetentionPolicy { events_before: before, max_events: None, ended_before: before, batch: 10 };
    let pruned = world.store().prune(policy, world.now()).await.unwrap();
    assert_eq!((pruned.events, pruned.turns, pruned.conversations), (3, 3, 2));
    for (number, id) in ids.into_iter().enumerate() {
        let found = world.store().conversation(id, world.now()).await.unwrap();
        // The first one has ended, and the last one was never used.
        assert_eq!(found.is_some(), number > 0 && number < 4, "{number}");
    }
}

async fn a_file_is_needed_while_a_message_a_delivery_or_an_event_names_it(world: &mut World) {
    let name = |digit: &str| digit.repeat(64);
    let document = |digit: &str| Json::parse(format!("{{\"a\":[{{\"hash\":\"{}\"}}]}}", name(digit))).unwrap();
    let mut message = world.message("a");
    message.details = document("1");
    let accepted = world.accept(message).await;
    let mut delivery = super::records::delivery(world.id(), "a", world.now());
    delivery.body = document("2");
    world.store().enqueue(vec![delivery], world.now()).await.unwrap();
    let sent = NewEvent { body: document("3"), ..world.event("message_sent") };
    let text = NewEvent { body: document("4"), ..world.event("text") };
    let (patch, effects) = (ConversationPatch::default(), Effects::events(vec![sent, text]));
    world.store().update_conversation(accepted.conversation, patch, effects, world.now()).await.unwrap();
    let all: Vec<_> = ["1", "2", "3", "4", "5"].map(name).to_vec();
    assert_eq!(world.store().needed_files(all.clone()).await.unwrap(), all[..3]);
    world.store().delete_conversation(accepted.conversation, world.now()).await.unwrap();
    assert_eq!(world.store().needed_files(all.clone()).await.unwrap(), all[1..2]);
}
