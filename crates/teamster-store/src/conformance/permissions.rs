//! Promises about permission requests.

use std::time::Duration;

use super::suite;
use super::world::{LEASE, World, done};
use crate::error::StoreError;
use crate::ids::{Json, PermissionId};
use crate::records::{
    Answer, AnswerOutcome, Claim, ConversationState, Decision, DeliveryFilter, Effects, NewPermission, PageRequest,
    Permission, PermissionClosing, PermissionFilter, PermissionOutcome,
};

suite![
    an_open_request_survives_a_restart_and_is_answered_once,
    an_answer_at_the_time_limit_or_later_has_no_effect,
    an_answer_to_a_dead_worker_has_no_effect,
    the_next_worker_closes_the_requests_of_a_dead_one,
    the_end_of_a_turn_closes_its_requests,
    a_closing_that_comes_after_an_answer_adds_nothing,
];

async fn request(world: &mut World, claim: &Claim) -> PermissionId {
    let id = PermissionId::new(world.id());
    let request = NewPermission { id, body: Json::empty(), deadline: world.now().after(LEASE * 10) };
    let effects = Effects::events(vec![world.event("permission_request")]);
    let stored = world.store().request_permission(claim.lease, request, effects, world.now()).await.unwrap();
    assert_eq!((stored.id, stored.closing), (id, None));
    id
}

/// Returns the effects of a closed request: its event, and a delivery with a key of its own.
fn shown(world: &mut World, id: PermissionId, name: &str) -> Effects {
    let mut delivery = super::records::delivery(world.id(), "a", world.now());
    delivery.key = format!("{id}:{name}");
    Effects { events: vec![world.event("permission_answered")], deliveries: vec![delivery] }
}

/// Returns the keys of all deliveries in order.
async fn keys(world: &World) -> Vec<String> {
    let page = world.store().deliveries(DeliveryFilter::default(), PageRequest::first(10)).await.unwrap();
    page.items.into_iter().map(|one| one.key).collect()
}

async fn answer(world: &mut World, id: PermissionId, decision: Decision) -> AnswerOutcome {
    let effects = shown(world, id, "answered");
    let answer = Answer { id, decision, by: "bob".to_owned(), message: None, effects };
    world.store().answer_permission(answer, world.now()).await.unwrap()
}

async fn open(world: &World) -> Vec<Permission> {
    let filter = PermissionFilter { open: true, ..Default::default() };
    world.store().permissions(filter, PageRequest::first(10)).await.unwrap().items
}

async fn an_open_request_survives_a_restart_and_is_answered_once(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let id = request(world, &claim).await;
    world.reopen().await;
    assert_eq!(open(world).await.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    let conversation = world.store().conversation(accepted.conversation, world.now()).await.unwrap().unwrap();
    assert_eq!(conversation.state, ConversationState::Waiting);
    let AnswerOutcome::Applied(applied) = answer(world, id, Decision::AllowAlways).await else { panic!() };
    let closing = applied.closing.clone().unwrap();
    assert_eq!((closing.outcome, closing.by.as_deref()), (PermissionOutcome::AllowedAlways, Some("bob")));
    assert_eq!(answer(world, id, Decision::Deny).await, AnswerOutcome::Closed(applied.clone()));
    assert_eq!(world.store().permission(id).await.unwrap(), Some(applied));
    assert_eq!(open(world).await, []);
    assert_eq!(world.log(accepted.conversation).await.len(), 3);
    let missing = Answer {
        id: PermissionId::new(world.id()),
        decision: Decision::Deny,
        by: String::new(),
        message: None,
        effects: Effects::default(),
    };
    let missing = world.store().answer_permission(missing, world.now()).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
}

async fn an_answer_at_the_time_limit_or_later_has_no_effect(world: &mut World) {
    world.accept_in("a").await;
    let claim = world.claim("w").await;
    let id = request(world, &claim).await;
    for _ in 0..20 {
        world.advance(LEASE / 2).await;
        world.store().renew(vec![claim.lease], LEASE, world.now()).await.unwrap();
    }
    assert!(matches!(answer(world, id, Decision::Allow).await, AnswerOutcome::Expired(_)));
    // It stays open until the worker closes it as timed out, which is not a refusal by a person.
    assert_eq!(open(world).await.len(), 1);
    let effects = Effects::events(vec![world.event("permission_answered")]);
    let closing = PermissionClosing { id, outcome: PermissionOutcome::TimedOut, effects };
    let closed = world.store().close_permissions(claim.lease, vec![closing], world.now()).await.unwrap();
    assert_eq!(closed, [id]);
    let AnswerOutcome::Closed(closed) = answer(world, id, Decision::Allow).await else { panic!() };
    assert_eq!(closed.closing.unwrap().outcome, PermissionOutcome::TimedOut);
}

async fn an_answer_to_a_dead_worker_has_no_effect(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let id = request(world, &claim).await;
    world.advance(LEASE).await;
    assert!(matches!(answer(world, id, Decision::Allow).await, AnswerOutcome::Expired(_)));
    // The next worker holds the conversation, but the agent of the request no longer runs.
    world.claim("v").await;
    assert!(matches!(answer(world, id, Decision::Allow).await, AnswerOutcome::Expired(_)));
    assert_eq!(world.log(accepted.conversation).await.len(), 2);
}

async fn the_next_worker_closes_the_requests_of_a_dead_one(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let id = request(world, &claim).await;
    world.advance(LEASE + Duration::from_secs(1)).await;
    let next = world.claim("v").await;
    assert_eq!(next.open_permissions.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    let effects = shown(world, id, "lost");
    let closing = PermissionClosing { id, outcome: PermissionOutcome::WorkerLost, effects };
    for expected in [vec![id], vec![]] {
        let closings = vec![closing.clone()];
        assert_eq!(world.store().close_permissions(next.lease, closings, world.now()).await.unwrap(), expected);
    }
    assert_eq!(world.log(accepted.conversation).await.len(), 3);
    assert_eq!(keys(world).await, [format!("{id}:lost")]);
}

async fn the_end_of_a_turn_closes_its_requests(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let (reported, forgotten) = (request(world, &claim).await, request(world, &claim).await);
    let mut end = done();
    let effects = shown(world, reported, "closed");
    end.attempt.closings = vec![PermissionClosing { id: reported, outcome: PermissionOutcome::TimedOut, effects }];
    end.attempt.effects.events = vec![world.event("turn_finished")];
    end.attempt.effects.deliveries = shown(world, reported, "answer").deliveries;
    world.store().finish(claim.lease, end, world.now()).await.unwrap();
    for (id, outcome) in [(reported, PermissionOutcome::TimedOut), (forgotten, PermissionOutcome::TurnEnded)] {
        let closed = world.store().permission(id).await.unwrap().unwrap();
        assert_eq!(closed.closing.unwrap().outcome, outcome);
    }
    let kinds: Vec<_> = world.log(accepted.conversation).await.into_iter().map(|event| event.kind).collect();
    let expected = ["turn_queued", "permission_request", "permission_request", "permission_answered", "turn_finished"];
    assert_eq!(kinds, expected);
    assert_eq!(keys(world).await, [format!("{reported}:closed"), format!("{reported}:answer")]);
}

async fn a_closing_that_comes_after_an_answer_adds_nothing(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let id = request(world, &claim).await;
    assert!(matches!(answer(world, id, Decision::Deny).await, AnswerOutcome::Applied(_)));
    let effects = Effects { events: vec![world.event("late")], ..shown(world, id, "late") };
    let closing = PermissionClosing { id, outcome: PermissionOutcome::TimedOut, effects };
    assert_eq!(world.store().close_permissions(claim.lease, vec![closing], world.now()).await.unwrap(), []);
    assert!(matches!(answer(world, id, Decision::Allow).await, AnswerOutcome::Closed(_)));
    assert!(world.log(accepted.conversation).await.iter().all(|event| event.kind != "late"));
    assert_eq!(keys(world).await, [format!("{id}:answered")]);
    let kept = world.store().permission(id).await.unwrap().unwrap();
    assert_eq!(kept.closing.unwrap().outcome, PermissionOutcome::Denied);
}
