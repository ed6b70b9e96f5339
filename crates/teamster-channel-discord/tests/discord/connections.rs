//! The connection to the gateway is lost in every way, and no message is.

use std::sync::Arc;
use std::time::Duration;

use teamster_channel_discord::{DiscordChannel, Servers};
use teamster_testkit::discord::{Fault, Post};

use crate::world::{CHANNEL, GUILD, World, ada, config};

/// Writes, and waits until it is accepted.
async fn accepted(world: &World, text: &str, count: usize) {
    world.server.write(Post::private(&ada(), text));
    world.messages(count).await;
}

#[tokio::test]
async fn a_cut_connection_is_resumed_and_what_was_written_meanwhile_is_received() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "before", 1).await;
    world.server.cut_connections();
    world.until("the cut", |server| server.connections() == 0).await;
    world.server.write(Post::private(&ada(), "meanwhile"));
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["before", "meanwhile"]);
    assert_eq!(world.server.gateway_counts().0, 1, "no second identification");
    receiving.stop().await;
}

#[tokio::test]
async fn a_demand_to_connect_again_keeps_the_session() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.request_reconnect();
    world.until("a resume", |server| server.gateway_counts().1 == 1).await;
    world.connected().await;
    accepted(&world, "after", 1).await;
    assert_eq!(world.server.gateway_counts().0, 1);
    receiving.stop().await;
}

#[tokio::test]
async fn an_invalid_session_that_can_be_resumed_is_resumed_and_another_one_starts_anew() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.send_invalid_session(true);
    world.until("a resume", |server| server.gateway_counts().1 == 1).await;
    world.connected().await;
    world.server.send_invalid_session(false);
    world.until("an identification", |server| server.gateway_counts().0 == 2).await;
    world.connected().await;
    accepted(&world, "after", 1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn messages_that_a_new_session_has_missed_are_read_from_the_history_of_known_channels() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "direct", 1).await;
    world.server.write(Post::mention(CHANNEL, &ada(), "in a channel"));
    world.messages(2).await;
    receiving.stop().await;
    world.server.invalidate_sessions();
    world.server.write(Post::private(&ada(), "missed"));
    world.server.write(Post::to(CHANNEL, &ada(), "not for the bot"));
    world.server.write(Post::mention(CHANNEL, &ada(), "missed as well"));
    let receiving = world.receive().await;
    world.messages(4).await;
    let mut texts = world.inbox.texts();
    texts.sort();
    assert_eq!(texts, ["direct", "in a channel", "missed", "missed as well"]);
    assert_eq!(world.inbox.with(|contents| contents.duplicates), 0, "nothing is read twice");
    receiving.stop().await;
}

#[tokio::test]
async fn more_missed_messages_than_a_page_has_are_read_in_order() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "0", 1).await;
    receiving.stop().await;
    world.server.invalidate_sessions();
    for number in 1..=1_150 {
        world.server.write(Post::private(&ada(), &number.to_string()));
    }
    world.server.fail("history", &Fault::BadGateway, 1);
    let receiving = world.receive().await;
    world.inbox.until("all messages", |contents| contents.messages.len() == 1_151).await;
    let expected: Vec<_> = (0..=1_150).map(|number| number.to_string()).collect();
    assert_eq!(world.inbox.texts(), expected);
    receiving.stop().await;
}

#[tokio::test]
async fn a_stop_while_missed_messages_are_read_is_not_delayed_and_the_next_start_reads_the_others() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "direct", 1).await;
    receiving.stop().await;
    world.server.invalidate_sessions();
    world.server.write(Post::private(&ada(), "missed"));
    world.server.fail("history", &Fault::Hang, 1);
    let receiving = world.receive().await;
    world.until("a page", |server| server.count("history") == 1).await;
    tokio::time::timeout(Duration::from_secs(5), receiving.stop()).await.expect("it does not wait for the page");
    assert_eq!(world.inbox.texts(), ["direct"]);
    let receiving = world.receive().await;
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["direct", "missed"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_stop_keeps_the_session_and_the_next_start_resumes_it() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "before", 1).await;
    receiving.stop().await;
    assert!(!matches!(world.server.closed_with(), Some(1_000 | 1_001)), "{:?}", world.server.closed_with());
    world.server.write(Post::private(&ada(), "while it was down"));
    let receiving = world.receive().await;
    world.messages(2).await;
    let (identified, resumed, _) = world.server.gateway_counts();
    assert_eq!((identified, resumed), (1, 1));
    receiving.stop().await;
}

#[tokio::test]
async fn a_changed_setting_of_what_is_received_has_its_effect_after_a_restart() {
    let world = World::with(|config| config.servers = Servers::Off).await;
    let receiving = world.receive().await;
    accepted(&world, "direct", 1).await;
    receiving.stop().await;
    world.server.write(Post::private(&ada(), "while it was down"));
    let with_mentions = DiscordChannel::new(config(&world.server)).unwrap();
    let world = World { channel: Arc::new(with_mentions), ..world };
    let receiving = world.start();
    world.until("a new session", |server| server.gateway_counts().0 == 2).await;
    world.server.write(Post::mention(CHANNEL, &ada(), "in a channel"));
    world.messages(3).await;
    assert_eq!(world.inbox.texts(), ["direct", "while it was down", "in a channel"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_crash_between_the_accept_and_the_stored_session_loses_and_doubles_nothing() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "zero", 1).await;
    world.state().await;
    world.inbox.with(|contents| contents.hangs_after_accept = true);
    world.server.write(Post::private(&ada(), "one"));
    world.server.write(Post::private(&ada(), "two"));
    world.messages(2).await;
    receiving.crash().await;
    world.inbox.with(|contents| contents.hangs_after_accept = false);
    let receiving = world.receive().await;
    world.messages(3).await;
    assert_eq!(world.inbox.texts(), ["zero", "one", "two"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_session_that_times_out_is_replaced() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "before", 1).await;
    world.server.invalidate_sessions();
    world.server.close_connections(4_009);
    world.until("an identification", |server| server.gateway_counts().0 == 2).await;
    world.connected().await;
    world.server.write(Post::private(&ada(), "after"));
    world.messages(2).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_resume_that_is_refused_again_and_again_is_given_up() {
    let world = World::new().await;
    let receiving = world.receive().await;
    accepted(&world, "before", 1).await;
    world.server.refuse_resumes(4_000, 50);
    world.server.cut_connections();
    world.until("an identification", |server| server.gateway_counts().0 == 2).await;
    assert!(world.server.gateway_counts().1 <= 4, "{:?}", world.server.gateway_counts());
    world.connected().await;
    world.server.write(Post::private(&ada(), "after"));
    world.messages(2).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_refused_identification_is_repeated_slowly() {
    let world = World::new().await;
    world.server.refuse_identifies(2);
    let receiving = world.start();
    world.connected().await;
    assert_eq!(world.server.gateway_counts().0, 3);
    accepted(&world, "hello", 1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_connection_whose_heartbeats_get_no_answer_is_replaced() {
    let world = World::new().await;
    world.server.set_heartbeat(Duration::from_millis(100));
    let receiving = world.receive().await;
    world.server.set_mute(true);
    world.until("a resume", |server| server.gateway_counts().1 >= 1).await;
    world.server.set_mute(false);
    world.connected().await;
    accepted(&world, "after", 1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_heartbeat_is_sent_when_the_service_asks_for_it() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let before = world.server.gateway_counts().2;
    world.server.request_heartbeat();
    world.until("a heartbeat", |server| server.gateway_counts().2 > before).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_service_that_does_not_answer_at_the_start_is_asked_again() {
    let world = World::new().await;
    world.server.fail("me", &Fault::CutBefore, 1);
    world.server.fail("application", &Fault::BadGateway, 1);
    world.server.fail("gateway", &Fault::RateLimit { after_ms: 200, is_global: false }, 1);
    world.server.fail("gateway", &Fault::BadGateway, 1);
    world.server.fail("commands", &Fault::BadGateway, 1);
    let receiving = world.start();
    world.connected().await;
    accepted(&world, "hello", 1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_start_beyond_the_limit_of_the_service_waits() {
    let world = World::new().await;
    world.server.set_starts_left(0);
    let receiving = world.start();
    world.until("a question", |server| server.count("gateway") > 0).await;
    assert_eq!(world.server.gateway_counts().0, 0);
    receiving.stop().await;
}

#[tokio::test]
async fn a_channel_that_cannot_be_read_for_now_loses_no_message() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.create_channel(GUILD, 502);
    accepted(&world, "before", 1).await;
    receiving.stop().await;
    // After a resume no event describes the channel.
    let channel = DiscordChannel::new(config(&world.server)).unwrap();
    let other = World { channel: Arc::new(channel), ..world };
    other.server.fail("channel", &Fault::BadGateway, 2);
    other.server.write(Post::mention(502, &ada(), "hello"));
    let receiving = other.receive().await;
    assert_eq!(other.messages(2).await[1].text, "hello");
    assert!(other.server.count("channel") >= 3);
    receiving.stop().await;
}
