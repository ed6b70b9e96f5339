//! Promises about deliveries.

use std::time::Duration;

use super::suite;
use super::world::{LEASE, World};
use crate::error::StoreError;
use crate::ids::{DeliveryId, WorkerId};
use crate::records::{
    ClaimedDelivery, DeliveryClaim, DeliveryFilter, DeliveryPart, DeliveryState, DeliveryStep, Effects, PageRequest,
    PartState,
};

suite![
    deliveries_of_a_chat_are_sent_in_order_one_at_a_time,
    a_retry_waits_although_the_clock_was_set_back,
    a_delivery_with_a_known_key_is_not_added_again,
    a_failed_delivery_is_sent_again_at_its_time_before_later_ones,
    a_started_part_is_known_after_a_crash_and_a_confirmed_one_is_not_sent_again,
    a_step_of_an_old_claim_is_refused,
    a_delivery_that_is_given_up_is_visible_frees_its_chat_and_can_be_queued_again,
    a_worker_gets_deliveries_of_its_channels_only,
    events_of_a_delivery_go_to_its_conversation,
    an_attempt_without_a_call_is_not_counted,
    a_clock_that_is_set_back_delays_no_new_delivery,
];

async fn add(world: &mut World, chat: &str) -> DeliveryId {
    let id = world.id();
    let new = super::records::delivery(id, chat, world.now());
    assert_eq!(world.store().enqueue(vec![new], world.now()).await.unwrap(), 1);
    DeliveryId::new(id)
}

async fn claim(world: &World, worker: &str) -> Vec<ClaimedDelivery> {
    let claim = DeliveryClaim {
        worker: WorkerId::new(worker),
        lease_for: LEASE,
        channels: vec!["webhook".to_owned()],
        limit: 10,
    };
    world.store().claim_deliveries(claim, world.now()).await.unwrap()
}

async fn step(world: &World, claimed: &ClaimedDelivery, step: DeliveryStep) -> crate::records::Delivery {
    world.store().advance_delivery(claimed.lease, step, Effects::default(), world.now()).await.unwrap()
}

fn ids(claimed: &[ClaimedDelivery]) -> Vec<DeliveryId> {
    claimed.iter().map(|one| one.delivery.id).collect()
}

async fn deliveries_of_a_chat_are_sent_in_order_one_at_a_time(world: &mut World) {
    let (a1, b1, a2) = (add(world, "a").await, add(world, "b").await, add(world, "a").await);
    let first = claim(world, "w").await;
    assert_eq!(ids(&first), [a1, b1]);
    assert_eq!(claim(world, "v").await, []);
    let sent = step(world, &first[0], DeliveryStep::Sent).await;
    assert_eq!((sent.state, sent.ended_at, sent.attempts), (DeliveryState::Sent, Some(world.now()), 1));
    assert_eq!(ids(&claim(world, "v").await), [a2]);
}

async fn a_retry_waits_although_the_clock_was_set_back(world: &mut World) {
    add(world, "a").await;
    let claimed = claim(world, "w").await;
    let back = world.now().as_millis() - 3_600_000;
    let set_back = crate::ids::Timestamp::from_millis(back);
    let at = set_back.after(Duration::from_secs(1));
    step(world, &claimed[0], DeliveryStep::Retry(at, "503".to_owned())).await;
    let request =
        DeliveryClaim { worker: WorkerId::new("w"), lease_for: LEASE, channels: vec!["webhook".to_owned()], limit: 10 };
    assert_eq!(world.store().claim_deliveries(request, set_back).await.unwrap(), []);
}

async fn a_delivery_with_a_known_key_is_not_added_again(world: &mut World) {
    let first = add(world, "a").await;
    let mut again = super::records::delivery(world.id(), "a", world.now());
    again.key = first.to_string();
    assert_eq!(world.store().enqueue(vec![again.clone()], world.now()).await.unwrap(), 0);
    let claimed = claim(world, "w").await;
    step(world, &claimed[0], DeliveryStep::Sent).await;
    assert_eq!(world.store().enqueue(vec![again], world.now()).await.unwrap(), 0);
    assert_eq!(claim(world, "w").await, []);
}

async fn a_failed_delivery_is_sent_again_at_its_time_before_later_ones(world: &mut World) {
    let (first, second) = (add(world, "a").await, add(world, "a").await);
    let claimed = claim(world, "w").await;
    let later = world.now().after(Duration::from_secs(5));
    let failed = step(world, &claimed[0], DeliveryStep::Retry(later, "503".to_owned())).await;
    assert_eq!((failed.state, failed.error.as_deref()), (DeliveryState::Pending, Some("503")));
    assert_eq!(claim(world, "w").await, []);
    world.advance(Duration::from_secs(5)).await;
    let again = claim(world, "w").await;
    assert_eq!((ids(&again), again[0].delivery.attempts), (vec![first], 2));
    step(world, &again[0], DeliveryStep::Sent).await;
    assert_eq!(ids(&claim(world, "w").await), [second]);
}

async fn a_started_part_is_known_after_a_crash_and_a_confirmed_one_is_not_sent_again(world: &mut World) {
    add(world, "a").await;
    let claimed = claim(world, "w").await;
    step(world, &claimed[0], DeliveryStep::PartStarted(0)).await;
    step(world, &claimed[0], DeliveryStep::PartSent(0, Some("m-1".to_owned()))).await;
    step(world, &claimed[0], DeliveryStep::PartStarted(1)).await;
    world.reopen().await;
    world.advance(LEASE).await;
    let again = claim(world, "v").await;
    let parts = [
        DeliveryPart { index: 0, state: PartState::Sent(Some("m-1".to_owned())) },
        DeliveryPart { index: 1, state: PartState::Started },
    ];
    assert_eq!((again[0].delivery.parts.as_slice(), again[0].delivery.attempts), (parts.as_slice(), 2));
    for wrong in [DeliveryStep::PartStarted(0), DeliveryStep::Sent] {
        let refused = world.store().advance_delivery(again[0].lease, wrong, Effects::default(), world.now()).await;
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
    }
    let known = step(world, &again[0], DeliveryStep::PartNotSent(1)).await;
    assert_eq!(known.parts, parts[..1]);
    step(world, &again[0], DeliveryStep::Sent).await;
}

async fn a_step_of_an_old_claim_is_refused(world: &mut World) {
    add(world, "a").await;
    let old = claim(world, "w").await.remove(0);
    world.advance(LEASE / 2).await;
    step(world, &old, DeliveryStep::Renew(LEASE)).await;
    world.advance(LEASE / 2).await;
    assert_eq!(claim(world, "v").await, []);
    world.advance(LEASE / 2).await;
    let new = claim(world, "v").await.remove(0);
    assert!(new.lease.epoch > old.lease.epoch);
    for late in [DeliveryStep::Sent, DeliveryStep::PartStarted(0), DeliveryStep::Renew(LEASE)] {
        let refused = world.store().advance_delivery(old.lease, late, Effects::default(), world.now()).await;
        assert!(matches!(refused, Err(StoreError::DeliveryLeaseLost { .. })), "{refused:?}");
    }
    step(world, &new, DeliveryStep::Sent).await;
    let twice = world.store().advance_delivery(new.lease, DeliveryStep::Sent, Effects::default(), world.now()).await;
    assert!(matches!(twice, Err(StoreError::DeliveryLeaseLost { .. })), "{twice:?}");
    assert_eq!(world.store().expire_leases(WorkerId::new("v"), world.now()).await.unwrap(), 0);
}

async fn a_delivery_that_is_given_up_is_visible_frees_its_chat_and_can_be_queued_again(world: &mut World) {
    let (first, second) = (add(world, "a").await, add(world, "a").await);
    let claimed = claim(world, "w").await;
    step(world, &claimed[0], DeliveryStep::Unknown("timeout".to_owned())).await;
    let claimed = claim(world, "w").await;
    assert_eq!(ids(&claimed), [second]);
    step(world, &claimed[0], DeliveryStep::Failed("403".to_owned())).await;
    assert_eq!(world.store().status(world.now()).await.unwrap().failed_deliveries, 2);
    let filter = DeliveryFilter { state: Some(DeliveryState::Unknown), ..Default::default() };
    let unknown = world.store().deliveries(filter, PageRequest::first(5)).await.unwrap().items;
    assert_eq!((unknown.len(), unknown[0].id), (1, first));
    let again = world.store().retry_delivery(first, world.now()).await.unwrap();
    assert_eq!(again.state, DeliveryState::Pending);
    let twice = world.store().retry_delivery(first, world.now()).await;
    assert!(matches!(twice, Err(StoreError::WrongState { .. })), "{twice:?}");
    assert_eq!(ids(&claim(world, "w").await), [first]);
}

async fn a_worker_gets_deliveries_of_its_channels_only(world: &mut World) {
    add(world, "a").await;
    let other = DeliveryClaim {
        worker: WorkerId::new("w"),
        lease_for: LEASE,
        channels: vec!["discord".to_owned(), "web\"hook".to_owned()],
        limit: 10,
    };
    assert_eq!(world.store().claim_deliveries(other, world.now()).await.unwrap(), []);
    assert_eq!(claim(world, "w").await.len(), 1);
}

async fn events_of_a_delivery_go_to_its_conversation(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let mut new = super::records::delivery(world.id(), "a", world.now());
    new.conversation = Some(accepted.conversation);
    world.store().enqueue(vec![new], world.now()).await.unwrap();
    let claimed = claim(world, "w").await;
    let effects = Effects::events(vec![world.event("delivery_failed")]);
    let failed = DeliveryStep::Failed("403".to_owned());
    world.store().advance_delivery(claimed[0].lease, failed, effects, world.now()).await.unwrap();
    assert_eq!(world.log(accepted.conversation).await[1].kind, "delivery_failed");
    world.store().delete_conversation(accepted.conversation, world.now()).await.unwrap();
    let all = world.store().deliveries(DeliveryFilter::default(), PageRequest::first(5)).await.unwrap();
    assert_eq!(all.items, []);
}

async fn an_attempt_without_a_call_is_not_counted(world: &mut World) {
    let id = add(world, "a").await;
    for _ in 0..3 {
        let claimed = claim(world, "w").await;
        assert_eq!(claimed[0].delivery.attempts, 1);
        let later = world.now().after(Duration::from_secs(1));
        let waiting = step(world, &claimed[0], DeliveryStep::Postpone(later)).await;
        assert_eq!((waiting.state, waiting.attempts, waiting.error), (DeliveryState::Pending, 0, None));
        assert_eq!(claim(world, "w").await, []);
        world.advance(Duration::from_secs(1)).await;
    }
    let claimed = claim(world, "w").await;
    let wait = DeliveryStep::Wait { at: world.now(), error: "no network".to_owned(), attempts: 7 };
    let waiting = step(world, &claimed[0], wait).await;
    assert_eq!((waiting.state, waiting.attempts), (DeliveryState::Pending, 7), "the number is the one of the step");
    assert_eq!(waiting.error.as_deref(), Some("no network"));
    // An operator gives a delivery all of its attempts again.
    let claimed = claim(world, "w").await;
    step(world, &claimed[0], DeliveryStep::Failed("403".to_owned())).await;
    assert_eq!(world.store().retry_delivery(id, world.now()).await.unwrap().attempts, 0);
}

async fn a_clock_that_is_set_back_delays_no_new_delivery(world: &mut World) {
    let first = add(world, "a").await;
    let claimed = claim(world, "w").await;
    let later = world.now().after(Duration::from_secs(5));
    step(world, &claimed[0], DeliveryStep::Retry(later, "503".to_owned())).await;
    let other = add(world, "b").await;
    world.set_back(Duration::from_hours(1)).await;
    assert_eq!(ids(&claim(world, "w").await), [other]);
    world.set_back(Duration::from_hours(48)).await;
    assert_eq!(ids(&claim(world, "w").await), [first], "no delay is that long");
}
