//! The loop ends between any two steps of a delivery, and another one continues.

use std::time::Duration;

use teamster_channel::SendError;
use teamster_store::DeliveryState;

use super::service::{Reaction, Service};
use super::{World, answer, enqueue, events, shut_down};
use crate::channels::decision::UNKNOWN;
use crate::channels::deliveries;
use crate::channels::failpoint::{Failpoint, Step};
use crate::channels::settings::UnknownOutcome;

const STEPS: [Step; 5] = [Step::Claimed, Step::Started, Step::Sent, Step::Confirmed, Step::AllConfirmed];

/// What the service can do about repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    RecognizesKeys,
    CanBeAsked,
    Nothing,
}

fn service(memory: Memory) -> Service {
    let mut service = Service::new([]);
    service.can_find = memory == Memory::CanBeAsked;
    if memory == Memory::RecognizesKeys {
        service.capabilities.recognizes_repeats_for = Some(Duration::from_mins(5));
    }
    service
}

/// Sends an answer of three parts and a second answer, with a crash at a step.
async fn crash_at(step: Step, number: u32, memory: Memory, policy: UnknownOutcome) -> (World, std::sync::Arc<Service>) {
    let service = service(memory).shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.unknown = policy;
    let failpoint = Failpoint::at(step, number);
    let (gateway, tasks) = world.start_with(failpoint.clone());
    let first = answer(&gateway, "a", &"word ".repeat(90)).await;
    answer(&gateway, "a", "second").await;
    tokio::time::timeout(super::SOON, failpoint.stopped()).await.expect("the step is reached");
    world.crash(&gateway, tasks).await;
    let (gateway, mut tasks) = world.start();
    let states = world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    match policy {
        UnknownOutcome::Repeat => {
            assert!(states.iter().all(|state| *state == DeliveryState::Sent), "{step:?} {states:?}");
        }
        UnknownOutcome::Report => {
            let unknown = states.iter().filter(|state| **state == DeliveryState::Unknown).count();
            assert_eq!(events(&gateway, first, "delivery_failed").await.len(), unknown, "{step:?}");
        }
    }
    (world, service)
}

#[tokio::test]
async fn each_part_is_shown_once_and_in_order_if_the_service_recognizes_keys_or_can_be_asked() {
    for memory in [Memory::RecognizesKeys, Memory::CanBeAsked] {
        for step in STEPS {
            for number in [1, 2] {
                let (_world, service) = crash_at(step, number, memory, UnknownOutcome::Repeat).await;
                let shown = service.shown();
                let texts: Vec<_> = shown.iter().map(|shown| shown.content.text().to_owned()).collect();
                assert_eq!(texts.len(), 4, "{memory:?} {step:?} {number}: {texts:?}");
                assert_eq!(texts[3], "second");
                assert!(shown.iter().all(|shown| !shown.may_be_repeat), "{memory:?} {step:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_service_that_recognizes_no_repeats_shows_them_marked_and_loses_nothing() {
    for step in STEPS {
        let (_world, service) = crash_at(step, 1, Memory::Nothing, UnknownOutcome::Repeat).await;
        let shown = service.shown();
        let keys: std::collections::BTreeSet<_> = shown.iter().map(|shown| shown.key.clone()).collect();
        assert_eq!(keys.len(), 4, "{step:?}: {shown:?}");
        let wanted = if step == Step::Sent { 5 } else { 4 };
        assert_eq!(shown.len(), wanted, "{step:?}: {shown:?}");
        let marked = usize::from(matches!(step, Step::Started | Step::Sent));
        assert_eq!(shown.iter().filter(|shown| shown.may_be_repeat).count(), marked, "{step:?}: {shown:?}");
        assert_eq!(shown.last().unwrap().content.text(), "second");
    }
}

#[tokio::test]
async fn with_the_other_policy_nothing_is_shown_twice_and_an_unknown_outcome_is_visible() {
    for step in STEPS {
        let (world, service) = crash_at(step, 1, Memory::Nothing, UnknownOutcome::Report).await;
        let shown = service.shown();
        let keys: std::collections::BTreeSet<_> = shown.iter().map(|shown| shown.key.clone()).collect();
        assert_eq!(keys.len(), shown.len(), "{step:?}: {shown:?}");
        let is_unknown = matches!(step, Step::Started | Step::Sent);
        let all = world.all().await;
        assert_eq!(all[0].state == DeliveryState::Unknown, is_unknown, "{step:?}");
        if is_unknown {
            assert!(all[0].error.as_ref().unwrap().starts_with(UNKNOWN));
            assert!(service.texts("a").iter().any(|text| text.starts_with("A message may not have been delivered")));
        }
        assert!(service.texts("a").iter().any(|text| text == "second"), "the next answer is not lost: {step:?}");
    }
}

#[tokio::test]
async fn an_unknown_delivery_is_sent_when_the_operator_queues_it_again() {
    let (world, service) = crash_at(Step::Sent, 1, Memory::Nothing, UnknownOutcome::Report).await;
    let unknown = world.all().await.into_iter().find(|delivery| delivery.state == DeliveryState::Unknown).unwrap();
    let (gateway, mut tasks) = world.start();
    gateway.store().retry_delivery(unknown.id, gateway.now()).await.unwrap();
    let states = world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert!(states.iter().all(|state| *state == DeliveryState::Sent), "{states:?}");
    assert_eq!(service.shown().iter().filter(|shown| shown.may_be_repeat).count(), 1);
}

#[tokio::test]
async fn a_message_that_is_gone_is_not_replaced_twice_without_a_mark_after_a_crash() {
    let gone = || Reaction::Refuse(SendError::Gone("deleted".to_owned()));
    let mut service = Service::new([Reaction::Show, gone(), Reaction::Show, gone()]);
    service.capabilities.edits = true;
    let service = service.shared();
    let world = World::new(service.clone()).await;
    // The third call is that of the new message.
    let failpoint = Failpoint::at(Step::Sent, 3);
    let (gateway, tasks) = world.start_with(failpoint.clone());
    enqueue(&gateway, "a", |to| {
        [deliveries::progress(to).unwrap(), deliveries::answer(to, "done", None).unwrap()].concat()
    })
    .await;
    tokio::time::timeout(super::SOON, failpoint.stopped()).await.expect("the step is reached");
    world.crash(&gateway, tasks).await;
    let (gateway, mut tasks) = world.start();
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.shown();
    let answers: Vec<_> = shown.iter().filter(|shown| shown.content.text() == "done").collect();
    assert_eq!(answers.iter().filter(|shown| !shown.may_be_repeat).count(), 1, "{shown:?}");
}
