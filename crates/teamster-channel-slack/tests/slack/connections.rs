//! Connections come and go, and no message is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use teamster_testkit::slack::{Fault, Post};

use crate::world::{LIMIT, World, ada};

/// Waits for a connection.
async fn connected(world: &World) {
    world.until("a connection", |server| server.connections() == 1).await;
}

fn opened(world: &World) -> usize {
    world.server.calls().iter().filter(|call| call.method == "apps.connections.open").count()
}

#[tokio::test]
async fn before_the_service_ends_a_connection_another_one_is_open() {
    for reason in ["warning", "refresh_requested"] {
        let world = World::new().await;
        let receiving = world.receive();
        connected(&world).await;
        world.server.announce_end(reason);
        world
            .until("another one, then the old one is closed", |server| {
                opened(&world) == 2 && server.connections() == 1 && server.closing() == 0
            })
            .await;
        world.server.write(Post::direct(&ada(), "hello"));
        world.messages(1).await;
        world.acknowledged().await;
        receiving.stop().await;
    }
}

#[tokio::test]
async fn what_arrives_during_a_refresh_is_acknowledged() {
    let world = World::new().await;
    world.server.set_ack_within(LIMIT);
    let receiving = world.receive();
    connected(&world).await;
    for number in 0..30 {
        if number % 10 == 5 {
            world.server.announce_end("refresh_requested");
        }
        world.server.write(Post::direct(&ada(), &number.to_string()));
        tokio::task::yield_now().await;
    }
    world.messages(30).await;
    world.acknowledged().await;
    // The service gives no order across connections.
    let numbers: BTreeSet<_> = world.inbox.texts().into_iter().collect();
    assert_eq!(numbers.len(), 30);
    assert_eq!(world.inbox.with(|contents| contents.duplicates), 0);
    receiving.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_cut_or_closed_is_replaced() {
    let world = World::new().await;
    world.server.set_ack_within(Duration::from_millis(200));
    let receiving = world.receive();
    for (number, end) in [0, 1].into_iter().enumerate() {
        connected(&world).await;
        let before = opened(&world);
        if end == 0 {
            world.server.cut_connections();
        } else {
            world.server.close_connections();
        }
        world.until("another one", |_| opened(&world) > before).await;
        world.server.write(Post::direct(&ada(), "hello"));
        world.messages(number + 1).await;
    }
    world.acknowledged().await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_acknowledgment_goes_over_another_connection_if_its_own_is_closed() {
    let world = World::new().await;
    world.server.set_ack_within(LIMIT);
    world.inbox.with(|contents| contents.failures = 4);
    let receiving = world.receive();
    connected(&world).await;
    world.server.write(Post::direct(&ada(), "hello"));
    world.inbox.until("a failure", |contents| contents.failures < 4).await;
    world.server.cut_connections();
    world.until("it is gone", |server| server.connections() == 0).await;
    world.messages(1).await;
    world.acknowledged().await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_connection_that_cannot_be_opened_is_tried_again() {
    let world = World::new().await;
    world.server.fail("auth.test", &Fault::CutBefore, 1);
    for fault in [
        Fault::CutBefore,
        Fault::BadGateway,
        Fault::RateLimit { retry_after: 1 },
        Fault::Error { error: "internal_error".to_owned() },
    ] {
        world.server.fail("apps.connections.open", &fault, 1);
    }
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_stop_closes_the_connection_and_acknowledges_what_was_stored() {
    let world = World::new().await;
    let receiving = world.receive();
    connected(&world).await;
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
    world.until("it is closed", |server| server.connections() == 0).await;
    world.acknowledged().await;
}

#[tokio::test]
async fn a_message_that_is_not_stored_at_a_stop_is_not_acknowledged() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.failures = u32::MAX);
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "hello"));
    world.inbox.until("a failure", |contents| contents.failures < u32::MAX).await;
    receiving.stop().await;
    world.until("it is closed", |server| server.connections() == 0).await;
    assert_eq!(world.server.unacknowledged(), 1);
}
