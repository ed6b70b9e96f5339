//! Promises about the log and the feed.

use super::suite;
use super::world::{World, done};
use crate::error::StoreError;
use crate::ids::{ConversationId, FeedCursor, Seq};
use crate::records::{Effects, Fork, PageRequest, Progress, RetentionPolicy};

suite![
    the_log_is_read_from_any_number_without_gaps,
    messages_are_read_backwards_without_the_events_between_them,
    the_feed_has_each_event_once_and_continues_after_a_restart,
    positions_of_the_feed_are_never_used_again,
    a_fork_has_the_log_up_to_its_number,
    a_reader_that_is_behind_retention_gets_an_error,
    a_reader_of_the_feed_that_is_behind_retention_gets_an_error_and_can_accept_the_gap,
    retention_keeps_turns_that_have_not_ended,
    the_log_of_a_missing_conversation_is_an_error,
    turns_are_listed_in_order_page_by_page,
];

async fn grow(world: &mut World, chat: &str, events: usize) -> ConversationId {
    let id = world.accept_in(chat).await.conversation;
    let lease = world.claim("w").await.lease;
    for _ in 0..events {
        let effects = Effects::events(vec![world.event("text")]);
        world.store().append(lease, Progress::Text, effects, world.now()).await.unwrap();
    }
    world.store().finish(lease, done(), world.now()).await.unwrap();
    id
}

async fn the_log_is_read_from_any_number_without_gaps(world: &mut World) {
    let id = grow(world, "a", 6).await;
    for after in 0..=7 {
        for limit in 1..=8 {
            let page = world.store().events(id, Seq::new(after), limit).await.unwrap();
            let numbers: Vec<_> = page.events.iter().map(|event| event.seq.get()).collect();
            let expected: Vec<_> = (after + 1..=7).take(usize::try_from(limit).unwrap()).collect();
            assert_eq!((numbers, page.last_seq), (expected, Seq::new(7)));
        }
    }
    let beyond = world.store().events(id, Seq::new(u64::MAX), 5).await.unwrap();
    assert_eq!(beyond.events, []);
    assert!(matches!(world.store().events(id, Seq::START, 0).await, Err(StoreError::Invalid { .. })));
}

async fn messages_are_read_backwards_without_the_events_between_them(world: &mut World) {
    let first = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    for kind in ["text", "text", "done", "text"] {
        let effects = Effects::events(vec![world.event(kind)]);
        world.store().append(lease, Progress::Text, effects, world.now()).await.unwrap();
    }
    world.accept_in("a").await;
    let read = async |world: &World, before, limit| {
        let events = world.store().messages_before(first.conversation, Seq::new(before), limit).await.unwrap();
        events.into_iter().map(|event| (event.seq.get(), event.kind)).collect::<Vec<_>>()
    };
    let named = |seq, kind: &str| (seq, kind.to_owned());
    let all = [named(6, "turn_queued"), named(4, "done"), named(1, "turn_queued")];
    assert_eq!(read(world, u64::MAX, 10).await, all);
    assert_eq!(read(world, 6, 1).await, all[1..2]);
    assert_eq!(read(world, 4, 10).await, all[2..]);
    assert_eq!(read(world, 1, 10).await, []);
    let unknown = ConversationId::new(world.id());
    let missing = world.store().messages_before(unknown, Seq::new(9), 1).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
}

async fn feed(world: &World, after: Option<FeedCursor>, limit: u32) -> (Vec<(ConversationId, u64)>, FeedCursor) {
    let page = world.store().feed(after, limit).await.unwrap();
    (page.events.iter().map(|one| (one.conversation, one.event.seq.get())).collect(), page.cursor)
}

async fn the_feed_has_each_event_once_and_continues_after_a_restart(world: &mut World) {
    let a = grow(world, "a", 2).await;
    let (first, cursor) = feed(world, None, 2).await;
    assert_eq!(first, [(a, 1), (a, 2)]);
    world.reopen().await;
    let b = grow(world, "b", 0).await;
    let (rest, end) = feed(world, Some(cursor), 10).await;
    assert_eq!(rest, [(a, 3), (b, 1)]);
    assert_eq!(world.store().feed_end().await.unwrap(), end);
    // A reader that is cut after any event continues with the next one.
    let page = world.store().feed(None, 10).await.unwrap();
    for (read, last) in page.events.iter().enumerate() {
        let rest = world.store().feed(Some(last.cursor.clone()), 10).await.unwrap();
        assert_eq!(rest.events, page.events[read + 1..]);
    }
    let (none, same) = feed(world, Some(end.clone()), 10).await;
    assert_eq!((none, same), (Vec::new(), end));
    let wrong = world.store().feed(Some(FeedCursor::new("x")), 1).await;
    assert!(matches!(wrong, Err(StoreError::Invalid { .. })), "{wrong:?}");
}

async fn positions_of_the_feed_are_never_used_again(world: &mut World) {
    let a = grow(world, "a", 2).await;
    let (_, cursor) = feed(world, None, 10).await;
    world.store().delete_conversation(a, world.now()).await.unwrap();
    world.reopen().await;
    let b = grow(world, "b", 0).await;
    assert_eq!(feed(world, Some(cursor), 10).await.0, [(b, 1)]);
}

async fn a_fork_has_the_log_up_to_its_number(world: &mut World) {
    let from = grow(world, "a", 3).await;
    let original = world.log(from).await;
    let new = super::records::new_conversation(world.id(), "fork", "");
    let fork = Fork { from, after: Seq::new(2) };
    let made = world.store().create_conversation(new.clone(), Some(fork), world.now()).await.unwrap();
    assert_eq!(made.last_seq, Seq::new(2));
    assert_eq!(world.log(made.id).await, original[..2]);
    assert!(world.try_claim("w").await.is_none());
    let again = world.store().create_conversation(new, None, world.now()).await;
    assert!(matches!(again, Err(StoreError::Exists { .. })), "{again:?}");
    let new = super::records::new_conversation(world.id(), "other", "");
    let beyond = Fork { from, after: Seq::new(9) };
    let refused = world.store().create_conversation(new, Some(beyond), world.now()).await;
    assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
}

const fn keep(max_events: u64, batch: u32) -> RetentionPolicy {
    RetentionPolicy { events_before: None, max_events: Some(max_events), ended_before: None, batch }
}

async fn a_reader_that_is_behind_retention_gets_an_error(world: &mut World) {
    let id = grow(world, "a", 5).await;
    let pruned = world.store().prune(keep(2, 3), world.now()).await.unwrap();
    assert_eq!((pruned.events, pruned.more), (3, true));
    let pruned = world.store().prune(keep(2, 3), world.now()).await.unwrap();
    assert_eq!((pruned.events, pruned.more), (1, false));
    for after in 0..4 {
        let behind = world.store().events(id, Seq::new(after), 9).await;
        let is_pruned = matches!(behind, Err(StoreError::EventsPruned { oldest }) if oldest == Seq::new(5));
        assert!(is_pruned, "{behind:?}");
    }
    assert_eq!(world.store().events(id, Seq::new(4), 9).await.unwrap().events.len(), 2);
    assert_eq!(feed(world, None, 9).await.0, [(id, 5), (id, 6)]);
    let new = super::records::new_conversation(world.id(), "fork", "");
    let fork = Fork { from: id, after: Seq::new(6) };
    let refused = world.store().create_conversation(new, Some(fork), world.now()).await;
    assert!(matches!(refused, Err(StoreError::EventsPruned { .. })), "{refused:?}");
    // Numbers continue after the deleted ones, even if all events are deleted.
    world.store().prune(keep(0, 9), world.now()).await.unwrap();
    world.reopen().await;
    assert_eq!(world.accept_in("a").await.seq, Seq::new(7));
}

async fn retention_keeps_turns_that_have_not_ended(world: &mut World) {
    let id = grow(world, "a", 1).await;
    let waiting = world.accept_in("a").await;
    world.advance(super::world::LEASE).await;
    let all = RetentionPolicy {
        events_before: Some(world.now()),
        max_events: Some(0),
        ended_before: Some(world.now()),
        batch: 100,
    };
    let pruned = world.store().prune(all, world.now()).await.unwrap();
    assert_eq!((pruned.events, pruned.turns, pruned.more), (2, 1, false));
    let rest = world.store().events(id, Seq::new(2), 9).await.unwrap().events;
    assert_eq!((rest.len(), rest[0].turn), (1, Some(waiting.turn)));
    assert_eq!(world.claim("w").await.lease.turn, waiting.turn);
}

async fn the_log_of_a_missing_conversation_is_an_error(world: &mut World) {
    let id = ConversationId::new(world.id());
    assert!(matches!(world.store().events(id, Seq::START, 1).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(world.store().turns(id, PageRequest::first(1)).await, Err(StoreError::NotFound { .. })));
    assert_eq!(world.store().conversation(id, world.now()).await.unwrap(), None);
}

async fn turns_are_listed_in_order_page_by_page(world: &mut World) {
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(world.accept_in("a").await);
    }
    let (mut found, mut request) = (Vec::new(), PageRequest::first(2));
    loop {
        let page = world.store().turns(expected[0].conversation, request).await.unwrap();
        assert!(page.items.len() <= 2);
        found.extend(page.items.iter().map(|turn| turn.id));
        match page.next {
            Some(cursor) => request = PageRequest { limit: 2, cursor: Some(cursor) },
            None => break,
        }
    }
    assert_eq!(found, expected.iter().map(|one| one.turn).collect::<Vec<_>>());
}

async fn a_reader_of_the_feed_that_is_behind_retention_gets_an_error_and_can_accept_the_gap(world: &mut World) {
    let a = grow(world, "a", 4).await;
    let (_, behind) = feed(world, None, 2).await;
    let b = grow(world, "b", 0).await;
    let end = world.store().feed_end().await.unwrap();
    let policy = RetentionPolicy { events_before: None, max_events: Some(1), ended_before: None, batch: 100 };
    assert_eq!(world.store().prune(policy, world.now()).await.unwrap().events, 4);
    let error = world.store().feed(Some(behind), 10).await;
    let Err(StoreError::FeedPruned { resume }) = error else { panic!("{error:?}") };
    // Page by page, and each page can be the last one before a restart.
    let (first, cursor) = feed(world, Some(resume), 1).await;
    assert_eq!(first, [(a, 5)]);
    world.reopen().await;
    assert_eq!(feed(world, Some(cursor), 10).await.0, [(b, 1)]);
    assert_eq!(feed(world, None, 10).await.0, [(a, 5), (b, 1)]);
    assert_eq!(feed(world, Some(end), 10).await.0, []);
    let restored = world.store().feed(Some(FeedCursor::new("1000000")), 10).await;
    let Err(StoreError::FeedPruned { resume }) = restored else { panic!("{restored:?}") };
    assert_eq!(feed(world, Some(resume), 10).await.0, [], "it is the end");
    let unreadable = world.store().feed(Some(FeedCursor::new("1.x")), 1).await;
    assert!(matches!(unreadable, Err(StoreError::Invalid { .. })), "{unreadable:?}");
}
