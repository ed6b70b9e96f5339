//! Promises about claims and leases.

use std::time::Duration;

use super::suite;
use super::world::{LEASE, World, done, plain_end};
use crate::error::StoreError;
use crate::ids::{HostId, Timestamp, WorkerId};
use crate::records::{
    ClaimRequest, Effects, FAIR_SHARE, HandBack, HandBackKind, JoinedOutcome, Lease, NewMessage, NewPermission,
    Progress, Renewal, Session, SessionChange, Target, TurnState,
};

suite![
    turns_of_a_conversation_run_one_at_a_time_in_order,
    the_conversation_that_has_waited_longest_is_claimed_first,
    a_busy_conversation_does_not_starve_others,
    an_author_with_many_running_turns_waits_behind_others_and_for_nothing_else,
    an_author_whose_turns_wait_for_a_person_leaves_places_for_others,
    a_worker_and_a_chat_have_limits,
    a_turn_that_waits_for_a_person_does_not_block_its_chat,
    a_clock_that_is_set_back_delays_no_turn,
    a_lease_that_is_renewed_is_not_claimed_by_others,
    an_expired_lease_is_claimed_with_a_larger_epoch_and_the_same_turn,
    every_write_of_an_old_epoch_is_refused,
    an_expired_lease_is_not_renewed_but_its_result_is_accepted,
    a_finished_lease_cannot_be_used_again,
    the_leases_of_a_dead_worker_can_expire_at_once,
    an_interrupted_turn_does_not_pass_those_that_wait_longer,
    a_conversation_waits_for_the_host_with_its_session_and_then_moves,
    an_epoch_survives_a_restart,
    of_concurrent_claims_each_conversation_goes_to_one_worker,
];

async fn turns_of_a_conversation_run_one_at_a_time_in_order(world: &mut World) {
    let turns = [world.accept_in("a").await.turn, world.accept_in("a").await.turn, world.accept_in("a").await.turn];
    for turn in turns {
        let claim = world.claim("w").await;
        assert_eq!(claim.lease.turn, turn);
        assert!(world.try_claim("v").await.is_none());
        world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    }
    assert!(world.try_claim("w").await.is_none());
}

async fn the_conversation_that_has_waited_longest_is_claimed_first(world: &mut World) {
    let mut expected = Vec::new();
    for chat in ["b", "a", "c"] {
        expected.push(world.accept_in(chat).await.turn);
        world.advance(Duration::from_millis(5)).await;
    }
    for turn in expected {
        assert_eq!(world.claim("w").await.lease.turn, turn);
    }
}

async fn a_busy_conversation_does_not_starve_others(world: &mut World) {
    for _ in 0..3 {
        world.accept_in("busy").await;
    }
    world.advance(Duration::from_secs(1)).await;
    let other = world.accept_in("other").await.turn;
    let claim = world.claim("w").await;
    world.advance(Duration::from_secs(1)).await;
    world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    // The next turn of the busy conversation was accepted earlier, but was not ready to run before.
    assert_eq!(world.claim("w").await.lease.turn, other);
}

async fn an_author_with_many_running_turns_waits_behind_others_and_for_nothing_else(world: &mut World) {
    for number in 0..12 {
        let message = NewMessage { author: "flood".to_owned(), ..world.message(&format!("flood {number}")) };
        world.accept(message).await;
        world.advance(Duration::from_millis(1)).await;
    }
    for _ in 0..FAIR_SHARE {
        assert_eq!(world.claim("w").await.turn.message.author, "flood", "it has waited longest");
    }
    let late = world.accept_in("late").await.turn;
    assert_eq!(world.claim("w").await.turn.id, late);
    // Without others, no worker is idle.
    for _ in FAIR_SHARE..12 {
        assert_eq!(world.claim("w").await.turn.message.author, "flood");
    }
    assert!(world.try_claim("w").await.is_none());
}

async fn an_author_whose_turns_wait_for_a_person_leaves_places_for_others(world: &mut World) {
    let request = || ClaimRequest { max_running: 8, ..World::request("w") };
    for number in 0..8 {
        let message = NewMessage { author: "flood".to_owned(), ..world.message(&format!("flood {number}")) };
        world.accept(message).await;
    }
    for _ in 0..6 {
        let claim = world.store().claim(request(), world.now()).await.unwrap().unwrap();
        let permission = NewPermission {
            id: crate::ids::PermissionId::new(world.id()),
            body: crate::ids::Json::empty(),
            deadline: world.now().after(Duration::from_hours(1)),
        };
        let requested = world.store().request_permission(claim.lease, permission, Effects::default(), world.now());
        requested.await.unwrap();
    }
    assert_eq!(world.store().claim(request(), world.now()).await.unwrap(), None);
    let other = world.accept_in("other").await.turn;
    assert_eq!(world.store().claim(request(), world.now()).await.unwrap().unwrap().turn.id, other);
}

async fn a_worker_and_a_chat_have_limits(world: &mut World) {
    for chat in ["a", "b"] {
        world.accept_in(chat).await;
    }
    let (conversation, id, turn) = (world.id(), world.id(), world.id());
    let thread = super::records::new_conversation(conversation, "a", "thread");
    let thread = super::records::message(Target::Address(thread), id, turn, world.now());
    world.accept(thread).await;
    let request = ClaimRequest { max_running_per_chat: 1, max_running: 2, ..World::request("w") };
    let first = world.store().claim(request.clone(), world.now()).await.unwrap().unwrap();
    let second = world.store().claim(request.clone(), world.now()).await.unwrap().unwrap();
    assert_eq!((first.conversation.address.chat.as_str(), second.conversation.address.chat.as_str()), ("a", "b"));
    let other = ClaimRequest { worker: WorkerId::new("v"), ..request.clone() };
    assert_eq!(world.store().claim(other.clone(), world.now()).await.unwrap(), None);
    world.store().finish(first.lease, done(), world.now()).await.unwrap();
    assert!(world.store().claim(other, world.now()).await.unwrap().is_some());
    world.accept_in("c").await;
    assert!(world.store().claim(request.clone(), world.now()).await.unwrap().is_some());
    world.accept_in("d").await;
    assert_eq!(world.store().claim(request, world.now()).await.unwrap(), None);
}

async fn a_lease_that_is_renewed_is_not_claimed_by_others(world: &mut World) {
    world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    for _ in 0..3 {
        world.advance(LEASE / 2).await;
        let renewed = world.store().renew(vec![lease], LEASE, world.now()).await.unwrap();
        assert_eq!(renewed, [Renewal::Renewed { expires_at: world.now().after(LEASE), abort_requested: false }]);
        assert!(world.try_claim("v").await.is_none());
    }
}

async fn an_expired_lease_is_claimed_with_a_larger_epoch_and_the_same_turn(world: &mut World) {
    world.accept_in("a").await;
    let first = world.claim("w").await;
    assert!(!first.interrupted);
    let store = world.store();
    assert_eq!(store.start_attempt(first.lease, Effects::default(), world.now()).await.unwrap(), 1);
    store.append(first.lease, Progress::Text, Effects::default(), world.now()).await.unwrap();
    world.advance(LEASE).await;
    let second = world.claim("v").await;
    assert!(second.interrupted && second.lease.epoch > first.lease.epoch);
    assert_eq!(second.lease.turn, first.lease.turn);
    assert_eq!((second.turn.attempts, second.turn.progress), (1, Progress::Text));
    assert_eq!(second.conversation.worker, Some(WorkerId::new("v")));
}

async fn every_write_of_an_old_epoch_is_refused(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let next = world.accept_in("a").await;
    let old = world.claim("w").await.lease;
    world.advance(LEASE).await;
    world.claim("v").await;
    let before = world.log(accepted.conversation).await;
    let now = world.now();
    let effects = || Effects::events(vec![world.event("late")]);
    let request = NewPermission {
        id: crate::ids::PermissionId::new(uuid::Uuid::from_u128(1)),
        body: crate::ids::Json::empty(),
        deadline: now.after(LEASE),
    };
    let hand_back = HandBack { kind: HandBackKind::Shutdown, attempt: plain_end() };
    let store = world.store();
    let day = crate::ids::Day::new(1);
    let outcomes = [
        store.start_attempt(old, effects(), now).await.err(),
        store.append(old, Progress::Text, effects(), now).await.err(),
        store.join_turn(old, next.turn, effects(), now).await.err(),
        store.resolve_joined(old, next.turn, JoinedOutcome::Taken, effects(), now).await.err(),
        store.reserve_budget(old, Vec::new(), day, now).await.err(),
        store.request_permission(old, request, effects(), now).await.err(),
        store.close_permissions(old, Vec::new(), now).await.err(),
        store.finish(old, done(), now).await.err(),
        store.hand_back(old, hand_back, now).await.err(),
    ];
    for outcome in outcomes {
        let is_lost = matches!(outcome, Some(StoreError::LeaseLost { epoch, .. }) if epoch == old.epoch);
        assert!(is_lost, "{outcome:?}");
    }
    assert_eq!(store.renew(vec![old], LEASE, now).await.unwrap(), [Renewal::Lost]);
    assert_eq!(world.log(accepted.conversation).await, before);
}

async fn an_expired_lease_is_not_renewed_but_its_result_is_accepted(world: &mut World) {
    let turn = world.accept_in("a").await.turn;
    let lease = world.claim("w").await.lease;
    world.advance(LEASE).await;
    assert_eq!(world.store().renew(vec![lease], LEASE, world.now()).await.unwrap(), [Renewal::Lost]);
    world.store().finish(lease, done(), world.now()).await.unwrap();
    assert_eq!(world.store().turn(turn).await.unwrap().unwrap().state, TurnState::Done);
    assert!(world.try_claim("v").await.is_none());
}

async fn a_finished_lease_cannot_be_used_again(world: &mut World) {
    world.accept_in("a").await;
    world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    world.store().finish(lease, done(), world.now()).await.unwrap();
    let again = world.store().finish(lease, done(), world.now()).await;
    assert!(matches!(again, Err(StoreError::LeaseLost { .. })), "{again:?}");
    // A lease with the current epoch but another turn is not valid.
    let claim = world.claim("w").await;
    let mixed = Lease { turn: lease.turn, ..claim.lease };
    let refused = world.store().finish(mixed, done(), world.now()).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })), "{refused:?}");
}

async fn the_leases_of_a_dead_worker_can_expire_at_once(world: &mut World) {
    for chat in ["a", "b", "c"] {
        world.accept_in(chat).await;
    }
    world.claim("dead").await;
    world.claim("dead").await;
    world.claim("alive").await;
    assert_eq!(world.store().expire_leases(WorkerId::new("dead"), world.now()).await.unwrap(), 2);
    assert_eq!(world.store().status(world.now()).await.unwrap().expired_leases, 2);
    assert!(world.claim("w").await.interrupted && world.claim("w").await.interrupted);
    assert!(world.try_claim("w").await.is_none());
}

async fn an_interrupted_turn_does_not_pass_those_that_wait_longer(world: &mut World) {
    world.accept_in("crashed").await;
    world.claim("w").await;
    let waiting = world.accept_in("waiting").await.turn;
    world.advance(LEASE).await;
    assert_eq!(world.claim("v").await.lease.turn, waiting);
    assert!(world.claim("v").await.interrupted);
}

async fn a_conversation_waits_for_the_host_with_its_session_and_then_moves(world: &mut World) {
    world.accept_in("a").await;
    let claim = world.claim("w").await;
    assert_eq!(claim.session, None);
    let mut end = done();
    let session = Session { id: "s-1".to_owned(), host: HostId::new("host") };
    end.attempt.session = SessionChange::Set { agent: "claude".to_owned(), session: session.clone() };
    world.store().finish(claim.lease, end, world.now()).await.unwrap();
    world.accept_in("a").await;
    let affinity = Duration::from_secs(10);
    let elsewhere = ClaimRequest { host: HostId::new("other"), affinity, ..World::request("v") };
    let take = async |request: &ClaimRequest, now: Timestamp, world: &World| {
        world.store().claim(request.clone(), now).await.unwrap()
    };
    assert_eq!(take(&elsewhere, world.now(), world).await, None);
    world.advance(affinity).await;
    let moved = take(&elsewhere, world.now(), world).await.unwrap();
    assert_eq!(moved.session, Some(session));
    let mut end = done();
    end.attempt.session = SessionChange::Clear { agent: "claude".to_owned() };
    world.store().finish(moved.lease, end, world.now()).await.unwrap();
    world.accept_in("a").await;
    assert_eq!(take(&elsewhere, world.now(), world).await.unwrap().session, None);
}

async fn an_epoch_survives_a_restart(world: &mut World) {
    world.accept_in("a").await;
    let first = world.claim("w").await.lease;
    world.reopen().await;
    assert!(world.try_claim("v").await.is_none());
    world.advance(LEASE).await;
    let second = world.claim("v").await.lease;
    assert!(second.epoch > first.epoch);
    let refused = world.store().finish(first, done(), world.now()).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })), "{refused:?}");
}

async fn of_concurrent_claims_each_conversation_goes_to_one_worker(world: &mut World) {
    for chat in 0..8 {
        world.accept_in(&chat.to_string()).await;
    }
    let names: Vec<_> = (0..16).map(|number| number.to_string()).collect();
    let mut claims: Vec<_> = names.iter().map(|name| Box::pin(world.try_claim(name))).collect();
    // Polls all claims until each is done, so that they run concurrently.
    let mut claimed = Vec::new();
    std::future::poll_fn(|context| {
        claims.retain_mut(|claim| match claim.as_mut().poll(context) {
            std::task::Poll::Ready(done) => {
                claimed.extend(done);
                false
            }
            std::task::Poll::Pending => true,
        });
        if claims.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let mut conversations: Vec<_> = claimed.iter().map(|claim| claim.lease.conversation).collect();
    conversations.sort_unstable();
    conversations.dedup();
    assert_eq!((claimed.len(), conversations.len()), (8, 8));
}

async fn a_turn_that_waits_for_a_person_does_not_block_its_chat(world: &mut World) {
    for thread in ["1", "2", "3"] {
        let mut message = world.message("a");
        let Target::Address(new) = &mut message.target else { unreachable!() };
        thread.clone_into(&mut new.address.thread);
        world.accept(message).await;
    }
    let request = || ClaimRequest { max_running_per_chat: 1, ..World::request("w") };
    let claim = async |world: &World| world.store().claim(request(), world.now()).await.unwrap();
    let first = claim(world).await.unwrap();
    assert!(claim(world).await.is_none());
    let id = crate::ids::PermissionId::new(world.id());
    let permission =
        NewPermission { id, body: crate::ids::Json::empty(), deadline: world.now().after(Duration::from_hours(1)) };
    world.store().request_permission(first.lease, permission, Effects::default(), world.now()).await.unwrap();
    let second = claim(world).await.unwrap();
    assert_ne!(second.conversation.id, first.conversation.id);
    assert!(claim(world).await.is_none(), "the second one runs");
}

async fn a_clock_that_is_set_back_delays_no_turn(world: &mut World) {
    for back in [Duration::from_mins(1), Duration::from_hours(1), Duration::from_hours(24 * 365 * 70)] {
        // The conversation has just been used.
        world.accept_in("a").await;
        let lease = world.claim("w").await.lease;
        world.store().finish(lease, done(), world.now()).await.unwrap();
        world.set_back(back).await;
        world.accept_in("a").await;
        let lease = world.claim("w").await.lease;
        // A turn waits for its next attempt, and one for its first.
        let retry = HandBack { kind: HandBackKind::Retry(world.now().after(LEASE)), attempt: plain_end() };
        world.store().hand_back(lease, retry, world.now()).await.unwrap();
        world.accept_in("b").await;
        world.set_back(back).await;
        world.advance(LEASE + Duration::from_mins(1)).await;
        for _ in 0..2 {
            let lease = world.claim("w").await.lease;
            world.store().finish(lease, done(), world.now()).await.unwrap();
        }
    }
    // A pause has its time from the vendor.
    world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    let pause =
        HandBack { kind: HandBackKind::Pause(world.now().after(Duration::from_hours(24))), attempt: plain_end() };
    world.store().hand_back(lease, pause, world.now()).await.unwrap();
    world.set_back(Duration::from_hours(1)).await;
    assert!(world.try_claim("w").await.is_none());
}
