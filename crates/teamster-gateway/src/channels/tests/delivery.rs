//! Order, retries, limits and shutdown.

use std::time::{Duration, Instant};

use teamster_channel::{Content, File, Operation, RateScope, SendError};
use teamster_store::DeliveryState::{Failed, Pending, Sent, Unknown};
use teamster_store::WorkStore as _;

use super::service::{Reaction, Service};
use super::{World, answer, enqueue, events, shut_down, until};
use crate::channels::deliveries;

fn later(after: Option<Duration>, scope: RateScope) -> Reaction {
    Reaction::Refuse(SendError::Later { reason: "busy".to_owned(), after, scope })
}

fn down() -> Reaction {
    Reaction::Refuse(SendError::Unavailable { reason: "no network".to_owned(), after: None })
}

#[tokio::test]
async fn a_chat_keeps_its_order_although_sends_fail() {
    let never = || Reaction::Refuse(SendError::Never("bad request".to_owned()));
    let script = [later(None, RateScope::Chat), Reaction::Show, Reaction::Lose, Reaction::ShowAndLose, never()];
    let service = Service { can_find: true, ..Service::new(script) }.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    for text in ["one", "two", "three", "four"] {
        answer(&gateway, "a", text).await;
    }
    let states = world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(states, [Sent, Sent, Failed, Sent]);
    assert_eq!(service.texts("a"), ["one", "two", "four"]);
}

#[tokio::test]
async fn chats_do_not_wait_for_each_other_and_no_two_sends_of_a_chat_overlap() {
    let service = Service { latency: Duration::from_millis(30), ..Service::new([]) }.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    for number in 0..4 {
        for chat in ["a", "b", "c", "d"] {
            answer(&gateway, chat, &number.to_string()).await;
        }
    }
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    for chat in ["a", "b", "c", "d"] {
        assert_eq!(service.texts(chat), ["0", "1", "2", "3"]);
    }
    assert_eq!(*service.overlaps.lock().unwrap(), 0);
    let calls = service.calls();
    let first_of_d = calls.iter().position(|call| call.chat == "d").unwrap();
    let last_of_a = calls.iter().rposition(|call| call.chat == "a").unwrap();
    assert!(first_of_d < last_of_a, "chats are served at the same time");
}

#[tokio::test]
async fn a_delivery_is_given_up_visibly_after_its_attempts() {
    let service = Service::new((0..9).map(|_| later(None, RateScope::Chat))).shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.max_attempts = 3;
    let (gateway, mut tasks) = world.start();
    let accepted = answer(&gateway, "a", "lost").await;
    assert_eq!(world.settled().await, [Failed]);
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.calls().len(), 3);
    let failed = events(&gateway, accepted, "delivery_failed").await;
    assert_eq!(failed.len(), 1);
    assert!(failed[0].body.as_str().contains("given up after 3 attempts: busy"), "{}", failed[0].body.as_str());
    assert!(world.all().await[0].error.as_ref().unwrap().contains("given up"));
}

#[tokio::test]
async fn an_answer_outlasts_an_outage_of_its_channel() {
    let service = Service::new((0..9).map(|_| down())).shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.max_attempts = 3;
    let (gateway, mut tasks) = world.start();
    answer(&gateway, "a", "kept").await;
    assert_eq!(world.settled().await, [Sent]);
    shut_down(&gateway, &mut tasks).await;
    assert_eq!((service.calls().len(), service.texts("a")), (10, vec!["kept".to_owned()]));
}

#[tokio::test]
async fn a_wait_that_the_service_demands_is_kept() {
    let wait = Duration::from_millis(300);
    let service = Service::new([later(Some(wait), RateScope::Channel)]).shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    answer(&gateway, "a", "one").await;
    until("the first call is made", || service.calls().len() == 1).await;
    answer(&gateway, "b", "two").await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let calls = service.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls[1].at - calls[0].at >= wait, "the whole channel waits");
}

#[tokio::test]
async fn the_intervals_of_a_service_are_kept() {
    let mut service = Service::new([]);
    service.capabilities.chat_interval = Duration::from_millis(80);
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    let started = Instant::now();
    answer(&gateway, "a", &"word ".repeat(90)).await;
    answer(&gateway, "b", "one").await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let of_a: Vec<_> = service.calls().into_iter().filter(|call| call.chat == "a").map(|call| call.at).collect();
    assert!(of_a.len() > 2 && of_a.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(80)));
    assert!(started.elapsed() < super::SOON);
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_time_limit_and_is_settled() {
    let mut service = Service { can_find: true, ..Service::new([Reaction::ShowAndHang]) };
    service.capabilities.send_timeout = Duration::from_millis(100);
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    answer(&gateway, "a", "once").await;
    assert_eq!(world.settled().await, [Sent]);
    shut_down(&gateway, &mut tasks).await;
    assert_eq!((service.texts("a"), service.calls().len()), (vec!["once".to_owned()], 1));
}

#[tokio::test]
async fn a_panic_of_a_channel_loses_nothing_and_stops_no_other_chat() {
    let service = Service::new([Reaction::Panic]).shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    answer(&gateway, "a", "one").await;
    until("the channel panics", || service.calls().len() == 1).await;
    answer(&gateway, "b", "two").await;
    until("the other chat is served", || service.texts("b") == ["two"]).await;
    world.store.expire_leases(gateway.worker().clone(), gateway.now()).await.unwrap();
    assert_eq!(world.settled().await, [Sent, Sent]);
    shut_down(&gateway, &mut tasks).await;
    assert_eq!((service.texts("a"), service.texts("b")), (vec!["one".to_owned()], vec!["two".to_owned()]));
}

#[tokio::test]
async fn a_long_call_keeps_its_lease() {
    let service = Service { latency: Duration::from_secs(4), ..Service::new([]) }.shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.lease = Duration::from_secs(2);
    let (gateway, mut tasks) = world.start();
    let (other, mut others) = world.start();
    answer(&gateway, "a", "once").await;
    other.announce_growth(accepted_conversation(&world).await);
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    shut_down(&other, &mut others).await;
    assert_eq!(service.texts("a"), ["once"]);
}

async fn accepted_conversation(world: &World) -> teamster_store::ConversationId {
    world.all().await[0].conversation.unwrap()
}

#[tokio::test]
async fn the_answer_replaces_the_message_about_the_work_where_the_service_can_edit() {
    let mut service = Service::new([]);
    service.capabilities.edits = true;
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    enqueue(&gateway, "a", |to| {
        let progress = deliveries::progress(to).unwrap();
        let answer = deliveries::answer(to, &"word ".repeat(90), None).unwrap();
        [progress, answer].concat()
    })
    .await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.shown();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!(shown[0].edits, 1);
    assert!(shown.iter().all(|shown| matches!(shown.content, Content::Answer { .. })));
}

#[tokio::test]
async fn a_message_that_is_gone_is_replaced_by_a_new_one() {
    let mut service = Service::new([Reaction::Show, Reaction::Refuse(SendError::Gone("deleted".to_owned()))]);
    service.capabilities.edits = true;
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    enqueue(&gateway, "a", |to| {
        [deliveries::progress(to).unwrap(), deliveries::answer(to, "done", None).unwrap()].concat()
    })
    .await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.texts("a"), ["…", "done"]);
    assert_eq!(service.calls()[2].outgoing.operation, Operation::New);
}

#[tokio::test]
async fn a_service_without_edits_shows_no_message_about_the_work() {
    let service = Service::new([]).shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    enqueue(&gateway, "a", |to| {
        [deliveries::progress(to).unwrap(), deliveries::answer(to, "done", None).unwrap()].concat()
    })
    .await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.texts("a"), ["done"]);
}

#[tokio::test]
async fn a_file_is_sent_with_its_bytes_and_one_that_is_too_large_is_reported_in_the_chat() {
    let mut service = Service::new([]);
    service.capabilities.max_file_bytes = 5;
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    for content in [&b"small"[..], &b"larger"[..]] {
        let hash = gateway.attachments().put(content.to_vec()).await.unwrap();
        let file = File { name: "a`b.txt".into(), media_type: "text/plain".into(), hash, caption: "See".into() };
        enqueue(&gateway, "a", |to| {
            let (turn, key) = (to.turn.unwrap().0, file.hash.clone());
            deliveries::of_tool(to.conversation, turn, to.address, key, Content::File(file), to.now).unwrap()
        })
        .await;
    }
    let states = world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(states, [Sent, Failed, Sent]);
    assert_eq!(&*service.calls()[0].outgoing.bytes, b"small");
    assert!(service.texts("a")[1].contains("the file has 6 bytes"), "{:?}", service.texts("a"));
}

#[tokio::test]
async fn a_shutdown_finishes_the_call_that_is_under_way_and_leaves_the_rest_for_the_next_start() {
    let service = Service { latency: Duration::from_millis(100), ..Service::new([]) }.shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.shutdown_timeout = Duration::from_secs(2);
    let (gateway, mut tasks) = world.start();
    answer(&gateway, "a", &"word ".repeat(1200)).await;
    until("the first part is under way", || service.calls().len() == 1).await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.texts("a").len();
    assert!((1..25).contains(&shown), "no part is started that has no time to end: {shown}");
    assert_eq!(service.calls().len(), shown, "the part that was under way is complete");
    let waiting = world.all().await.remove(0);
    assert_eq!((waiting.state, waiting.attempts), (Pending, 0), "the attempt is not counted");
    let (gateway, mut tasks) = world.start();
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.shown();
    assert!(shown.len() > 25 && shown.iter().all(|shown| !shown.may_be_repeat), "{shown:?}");
}

#[tokio::test]
async fn a_shutdown_sends_the_answers_that_are_ready() {
    let service = Service { latency: Duration::from_millis(20), ..Service::new([]) }.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    gateway.stopping().cancel();
    for number in 0..3 {
        answer(&world.gateway(), "a", &number.to_string()).await;
    }
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.texts("a"), ["0", "1", "2"]);
}

#[tokio::test]
async fn a_delivery_that_always_panics_is_given_up_visibly_and_frees_its_chat() {
    let service = Service::new((0..3).map(|_| Reaction::Panic)).shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.max_attempts = 3;
    let (gateway, mut tasks) = world.start();
    let accepted = answer(&gateway, "a", "broken").await;
    answer(&gateway, "a", "next").await;
    for count in 1..=3 {
        until("the service is called", || service.calls().len() >= count).await;
        // Each attempt has panicked. The delivery is claimed again when its lease has expired.
        world.store.expire_leases(gateway.worker().clone(), gateway.now()).await.unwrap();
    }
    let states = world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(states[..2], [Unknown, Sent]);
    assert_eq!(service.calls().iter().filter(|call| call.outgoing.content.text() == "broken").count(), 3);
    assert_eq!(events(&gateway, accepted, "delivery_failed").await.len(), 1);
}

#[tokio::test]
async fn a_wait_for_the_pace_of_a_service_uses_up_no_attempts() {
    let mut service = Service::new([]);
    service.capabilities.channel_interval = Duration::from_hours(1);
    let service = service.shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.max_attempts = 1;
    let (gateway, mut tasks) = world.start();
    for chat in ["a", "b"] {
        answer(&gateway, chat, "hello").await;
    }
    until("one of them is sent", || service.shown().len() == 1).await;
    shut_down(&gateway, &mut tasks).await;
    let waiting = world.all().await.into_iter().find(|delivery| delivery.state == Pending).unwrap();
    assert_eq!((waiting.attempts, waiting.error), (0, None));
}

#[tokio::test]
async fn the_same_item_is_delivered_once_although_it_is_enqueued_twice() {
    let service = Service::new([]).shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    enqueue(&gateway, "a", |to| {
        [deliveries::answer(to, "one", None).unwrap(), deliveries::answer(to, "one", None).unwrap()].concat()
    })
    .await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.texts("a"), ["one"]);
}

#[tokio::test]
async fn a_crash_during_an_outage_does_not_end_a_delivery() {
    let service = Service::new((0..9).map(|_| down())).shared();
    let mut world = World::new(service.clone()).await;
    world.config.channels.delivery.max_attempts = 4;
    let (mut gateway, mut tasks) = world.start();
    answer(&gateway, "a", "done").await;
    for calls in [3, 6] {
        until("the service was called", || service.calls().len() >= calls).await;
        world.crash(&gateway, tasks).await;
        (gateway, tasks) = world.start();
    }
    assert_eq!(world.settled().await, [Sent]);
    assert_eq!(service.texts("a"), ["done"]);
    shut_down(&gateway, &mut tasks).await;
}
