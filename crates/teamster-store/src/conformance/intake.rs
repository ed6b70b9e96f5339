//! Promises about accepted messages.

use std::time::Duration;

use super::records::{key, message, new_conversation};
use super::suite;
use super::world::{WIDE, World, done};
use crate::error::{Queue, StoreError};
use crate::ids::{ConversationId, Seq, TurnId};
use crate::records::{
    Accepted, CancelOutcome, CancelScope, ConversationFilter, ConversationPatch, ConversationState, EditOutcome,
    Effects, EndState, Finish, IdempotencyKey, MessageEdit, PageRequest, QueueLimits, Target, TurnState,
};

suite![
    a_message_is_accepted_once_by_each_of_its_channel_ids,
    an_accepted_message_survives_a_restart,
    the_same_key_with_the_same_body_returns_the_same_turn,
    the_same_key_with_another_body_is_refused,
    a_duplicate_is_recognized_although_the_queue_is_full,
    a_full_queue_refuses_with_its_limit,
    a_refused_message_leaves_no_conversation,
    threads_of_a_chat_are_conversations_of_their_own,
    a_conversation_is_found_by_its_address,
    an_edit_replaces_a_message_that_waits_and_no_other,
    an_abort_ends_a_waiting_turn_and_is_reported_to_the_worker_of_a_running_one,
    a_failed_turn_that_is_queued_again_runs_before_later_ones,
    a_patch_for_another_version_is_refused,
    a_deleted_conversation_is_gone_but_its_messages_stay_known,
    a_conversation_whose_turn_runs_is_not_deleted,
    conversations_are_found_by_state_agent_channel_and_text,
];

async fn a_message_is_accepted_once_by_each_of_its_channel_ids(world: &mut World) {
    let mut album = world.message("chat");
    album.channel_ids = vec!["1".to_owned(), "2".to_owned()];
    let first = world.accept(album).await;
    assert_eq!(first.seq, Seq::new(1));
    for id in ["1", "2"] {
        let mut again = world.message("chat");
        again.channel_ids = vec!["3".to_owned(), id.to_owned()];
        let outcome = world.store().accept(again, WIDE, world.now()).await.unwrap();
        assert_eq!(outcome, Accepted::Duplicate(first));
    }
    assert_eq!(world.log(first.conversation).await.len(), 1);
}

async fn an_accepted_message_survives_a_restart(world: &mut World) {
    let accepted = world.accept_in("chat").await;
    world.reopen().await;
    let turn = world.store().turn(accepted.turn).await.unwrap().unwrap();
    assert_eq!((turn.state, turn.message.id), (TurnState::Queued, accepted.message));
    assert_eq!(world.claim("w").await.lease.turn, accepted.turn);
}

async fn the_same_key_with_the_same_body_returns_the_same_turn(world: &mut World) {
    let mut first = world.message("chat");
    first.idempotency = Some(key("k", 1));
    let accepted = world.accept(first).await;
    let mut again = world.message("chat");
    again.idempotency = Some(key("k", 1));
    let outcome = world.store().accept(again, WIDE, world.now()).await.unwrap();
    assert_eq!(outcome, Accepted::Duplicate(accepted));
}

async fn the_same_key_with_another_body_is_refused(world: &mut World) {
    let mut first = world.message("chat");
    first.idempotency = Some(key("k", 1));
    let accepted = world.accept(first).await;
    let mut other = world.message("chat");
    other.idempotency = Some(key("k", 2));
    let refused = world.store().accept(other.clone(), WIDE, world.now()).await;
    assert!(matches!(refused, Err(StoreError::IdempotencyMismatch { ref key }) if key == "k"), "{refused:?}");
    assert_eq!(world.log(accepted.conversation).await.len(), 1);
    // Another caller's key of the same name is another key.
    other.idempotency = Some(IdempotencyKey { scope: "other".to_owned(), ..key("k", 2) });
    world.accept(other).await;
}

async fn a_duplicate_is_recognized_although_the_queue_is_full(world: &mut World) {
    let message = world.message("chat");
    let first = world.accept(message.clone()).await;
    let full = QueueLimits { chat: 1, total: 1 };
    let outcome = world.store().accept(message, full, world.now()).await.unwrap();
    assert_eq!(outcome, Accepted::Duplicate(first));
}

async fn a_full_queue_refuses_with_its_limit(world: &mut World) {
    for (limits, queue) in
        [(QueueLimits { chat: 1, total: 9 }, Queue::Chat), (QueueLimits { chat: 9, total: 1 }, Queue::Total)]
    {
        let message = world.message("chat");
        let outcome = world.store().accept(message, limits, world.now()).await;
        if let Ok(accepted) = outcome {
            assert!(matches!(accepted, Accepted::New(_)), "{accepted:?}");
            let message = world.message("chat");
            let refused = world.store().accept(message, limits, world.now()).await;
            assert!(matches!(refused, Err(StoreError::QueueFull { queue: found, limit: 1 }) if found == queue));
        } else {
            assert!(matches!(outcome, Err(StoreError::QueueFull { queue: found, limit: 1 }) if found == queue));
        }
    }
    // A running turn does not wait.
    world.claim("w").await;
    world.accept_in("chat").await;
}

async fn a_refused_message_leaves_no_conversation(world: &mut World) {
    let message = world.message("chat");
    let none = QueueLimits { chat: 0, total: 9 };
    assert!(world.store().accept(message, none, world.now()).await.is_err());
    assert_eq!(world.store().status(world.now()).await.unwrap().conversations, 0);
}

async fn threads_of_a_chat_are_conversations_of_their_own(world: &mut World) {
    let mut found = Vec::new();
    for thread in ["", "a", "b"] {
        let (conversation, id, turn) = (world.id(), world.id(), world.id());
        let target = Target::Address(new_conversation(conversation, "chat", thread));
        found.push(world.accept(message(target, id, turn, world.now())).await.conversation);
    }
    let again = world.accept_in("chat").await.conversation;
    assert_eq!(again, found[0]);
    assert!(found[0] != found[1] && found[1] != found[2]);
}

async fn an_edit_replaces_a_message_that_waits_and_no_other(world: &mut World) {
    let mut message = world.message("chat");
    message.channel_ids = vec!["m".to_owned()];
    let accepted = world.accept(message).await;
    let edit = |id: &str, world: &World| MessageEdit {
        channel: "webhook".to_owned(),
        channel_id: id.to_owned(),
        text: "Other".to_owned(),
        details: None,
        events: vec![world.event("message_edited")],
    };
    let replaced = world.store().edit_message(edit("m", world), world.now()).await.unwrap();
    assert_eq!(replaced, EditOutcome::Replaced(accepted.turn));
    for (channel, author, limit, expected) in
        [("webhook", "alice", 9, 1), ("webhook", "alice", 0, 0), ("webhook", "bob", 9, 0), ("http", "alice", 9, 0)]
    {
        let waiting = world.store().waiting_turns(channel.to_owned(), author.to_owned(), limit).await.unwrap();
        assert_eq!(waiting, expected, "{channel} {author}");
    }
    assert_eq!(world.claim("w").await.turn.message.text, "Other");
    let late = world.store().edit_message(edit("m", world), world.now()).await.unwrap();
    assert_eq!(late, EditOutcome::TooLate(accepted.turn));
    let unknown = world.store().edit_message(edit("n", world), world.now()).await.unwrap();
    assert_eq!(unknown, EditOutcome::Unknown);
    for (channel, id, expected) in [("webhook", "m", true), ("webhook", "n", false), ("other", "m", false)] {
        let found = world.store().turn_of_message(channel.to_owned(), id.to_owned()).await.unwrap();
        assert_eq!(found.map(|turn| turn.id), expected.then_some(accepted.turn), "{channel} {id}");
    }
    let log = world.log(accepted.conversation).await;
    assert_eq!((log.len(), log[1].turn), (2, Some(accepted.turn)));
}

async fn an_abort_ends_a_waiting_turn_and_is_reported_to_the_worker_of_a_running_one(world: &mut World) {
    let (first, second) = (world.accept_in("chat").await, world.accept_in("chat").await);
    let lease = world.claim("w").await.lease;
    let cancel = async |turn: TurnId, scope: CancelScope, world: &World| {
        let effects = Effects::events(vec![world.event("turn_finished")]);
        world.store().cancel_turn(turn, scope, effects, world.now()).await.unwrap()
    };
    assert_eq!(cancel(second.turn, CancelScope::Waiting, world).await, CancelOutcome::Aborted);
    let ended = CancelOutcome::Unchanged(TurnState::Aborted);
    assert_eq!(cancel(second.turn, CancelScope::Open, world).await, ended);
    let running = CancelOutcome::Unchanged(TurnState::Running);
    assert_eq!(cancel(first.turn, CancelScope::Waiting, world).await, running);
    assert!(!world.store().turn(first.turn).await.unwrap().unwrap().abort_requested, "it was not to be aborted");
    assert_eq!(cancel(first.turn, CancelScope::Open, world).await, CancelOutcome::Requested);
    let renewed = world.store().renew(vec![lease], super::world::LEASE, world.now()).await.unwrap();
    let requested =
        crate::records::Renewal::Renewed { expires_at: world.now().after(super::world::LEASE), abort_requested: true };
    assert_eq!(renewed, [requested]);
    // Two turns were queued, and one abort was applied.
    assert_eq!(world.log(first.conversation).await.len(), 3);
}

async fn a_failed_turn_that_is_queued_again_runs_before_later_ones(world: &mut World) {
    let first = world.accept_in("chat").await;
    let claim = world.claim("w").await;
    let failed = Finish { state: EndState::Failed, error_code: Some("AUTH".to_owned()), ..done() };
    world.store().finish(claim.lease, failed, world.now()).await.unwrap();
    let later = world.accept_in("chat").await;
    let one = QueueLimits { chat: 1, ..WIDE };
    let refused = world.store().requeue_turn(first.turn, one, Effects::default(), world.now()).await;
    assert!(matches!(refused, Err(StoreError::QueueFull { .. })), "the later turn fills the queue: {refused:?}");
    let again = world.store().requeue_turn(first.turn, WIDE, Effects::default(), world.now()).await.unwrap();
    assert_eq!((again.state, again.attempts, again.error_code), (TurnState::Queued, 0, None));
    let refused = world.store().requeue_turn(later.turn, WIDE, Effects::default(), world.now()).await;
    assert!(matches!(refused, Err(StoreError::WrongState { .. })), "{refused:?}");
    assert_eq!(world.claim("w").await.lease.turn, first.turn);
}

async fn a_patch_for_another_version_is_refused(world: &mut World) {
    let id = world.accept_in("chat").await.conversation;
    let patch = ConversationPatch {
        agent: Some("codex".to_owned()),
        title: Some(Some("Title".to_owned())),
        expected_version: Some(1),
        ..Default::default()
    };
    let update = async |patch, world: &World| {
        let effects = Effects::events(vec![world.event("updated")]);
        world.store().update_conversation(id, patch, effects, world.now()).await
    };
    let updated = update(patch.clone(), world).await.unwrap();
    assert_eq!((updated.version, updated.agent.as_str(), updated.title.as_deref()), (2, "codex", Some("Title")));
    let refused = update(patch, world).await;
    assert!(matches!(refused, Err(StoreError::VersionConflict { current: 2 })), "{refused:?}");
    let cleared = update(ConversationPatch { title: Some(None), ..Default::default() }, world).await.unwrap();
    assert_eq!((cleared.version, cleared.title, cleared.last_seq), (3, None, Seq::new(3)));
}

async fn a_deleted_conversation_is_gone_but_its_messages_stay_known(world: &mut World) {
    let mut message = world.message("chat");
    message.idempotency = Some(key("k", 1));
    let accepted = world.accept(message.clone()).await;
    let id = accepted.conversation;
    world.store().delete_conversation(id, world.now()).await.unwrap();
    assert_eq!(world.store().conversation(id, world.now()).await.unwrap(), None);
    assert_eq!(world.store().turn(accepted.turn).await.unwrap(), None);
    assert!(world.try_claim("w").await.is_none());
    let outcome = world.store().accept(message.clone(), WIDE, world.now()).await.unwrap();
    assert_eq!(outcome, Accepted::Deleted);
    message.idempotency = None;
    assert_eq!(world.store().accept(message, WIDE, world.now()).await.unwrap(), Accepted::Deleted);
    let missing = world.store().delete_conversation(id, world.now()).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    // The address is free.
    assert_ne!(world.accept_in("chat").await.conversation, id);
}

async fn a_conversation_whose_turn_runs_is_not_deleted(world: &mut World) {
    let id = world.accept_in("chat").await.conversation;
    let claim = world.claim("w").await;
    let busy = world.store().delete_conversation(id, world.now()).await;
    assert!(matches!(busy, Err(StoreError::ConversationBusy { conversation }) if conversation == id), "{busy:?}");
    world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    world.store().delete_conversation(id, world.now()).await.unwrap();
}

async fn conversations_are_found_by_state_agent_channel_and_text(world: &mut World) {
    let mut ids: Vec<ConversationId> = Vec::new();
    for chat in ["a", "b", "c"] {
        ids.push(world.accept_in(chat).await.conversation);
        world.advance(Duration::from_millis(1)).await;
    }
    let claim = world.claim("w").await;
    assert_eq!(claim.lease.conversation, ids[0]);
    let patch = ConversationPatch { title: Some(Some("Blue Whale".to_owned())), ..Default::default() };
    world.store().update_conversation(ids[1], patch, Effects::default(), world.now()).await.unwrap();
    let find = async |filter: ConversationFilter, world: &World| {
        let page = world.store().conversations(filter, PageRequest::first(10), world.now()).await.unwrap();
        page.items.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let all = ConversationFilter::default();
    assert_eq!(find(all.clone(), world).await, [ids[2], ids[1], ids[0]]);
    let running = ConversationFilter { state: Some(ConversationState::Running), ..all.clone() };
    assert_eq!(find(running, world).await, [ids[0]]);
    let text = ConversationFilter { text: Some("whale".to_owned()), ..all.clone() };
    assert_eq!(find(text, world).await, [ids[1]]);
    let text = ConversationFilter { text: Some("TEXT".to_owned()), ..all.clone() };
    assert_eq!(find(text, world).await.len(), 3);
    let channel = ConversationFilter { channel: Some("http".to_owned()), ..all.clone() };
    assert_eq!(find(channel, world).await, []);
    let agent = ConversationFilter { agent: Some("claude".to_owned()), ..all };
    let first = world.store().conversations(agent.clone(), PageRequest::first(2), world.now()).await.unwrap();
    let rest = PageRequest { limit: 2, cursor: first.next };
    let rest = world.store().conversations(agent, rest, world.now()).await.unwrap();
    assert_eq!((rest.items[0].id, rest.items.len(), rest.next), (ids[0], 1, None));
}

async fn a_conversation_is_found_by_its_address(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let find = async |world: &World, chat: &str, thread: &str| {
        let found = world.store().conversation_at(super::records::address(chat, thread), world.now()).await.unwrap();
        found.map(|conversation| conversation.id)
    };
    assert_eq!(find(world, "a", "").await, Some(accepted.conversation));
    assert_eq!(find(world, "a", "t").await, None);
    assert_eq!(find(world, "b", "").await, None);
}
