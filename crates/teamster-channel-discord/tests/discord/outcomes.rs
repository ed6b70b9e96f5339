//! The three outcomes of a send, and how long to wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster_channel::{Address, Channel as _, Operation, Outgoing, RateScope, SendError, SendOutcome};
use teamster_channel_discord::DiscordChannel;
use teamster_testkit::discord::Fault;

use crate::world::{CHANNEL, World, answer, config, outgoing, to};

fn message() -> Outgoing {
    outgoing(Operation::New, answer("text"))
}

fn later(outcome: SendOutcome) -> (Option<Duration>, RateScope, String) {
    match outcome {
        SendOutcome::NotSent(SendError::Later { after, scope, reason }) => (after, scope, reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_long_limit_of_a_channel_waits_for_it_alone_and_one_of_the_bot_for_all() {
    let world = World::new().await;
    world.server.create_channel(crate::world::GUILD, 502);
    world.server.fail("createMessage", &Fault::RateLimit { after_ms: 35_000, is_global: false }, 1);
    let (after, scope, _) = later(world.channel.send(&message()).await);
    assert_eq!((after, scope), (Some(Duration::from_secs(35)), RateScope::Chat));
    assert!(matches!(world.channel.send(&to(502, Operation::New, answer("text"))).await, SendOutcome::Sent(_)));
    world.server.fail("createMessage", &Fault::RateLimit { after_ms: 40_000, is_global: true }, 1);
    let other = Outgoing { key: "other".to_owned(), ..to(502, Operation::New, answer("text")) };
    let (after, scope, _) = later(world.channel.send(&other).await);
    assert_eq!((after, scope), (Some(Duration::from_secs(40)), RateScope::Channel));
    let calls = world.server.count("createMessage");
    let (after, scope, _) = later(world.channel.send(&message()).await);
    assert!(after.unwrap() > Duration::from_secs(30) && scope == RateScope::Channel);
    assert_eq!(world.server.count("createMessage"), calls, "the service is not called meanwhile");
}

#[tokio::test]
async fn a_short_limit_is_waited_for() {
    let world = World::new().await;
    world.server.fail("createMessage", &Fault::RateLimit { after_ms: 300, is_global: false }, 2);
    let start = Instant::now();
    world.sent(&message()).await;
    assert!(start.elapsed() >= Duration::from_millis(600));
    assert_eq!(world.server.messages(CHANNEL).len(), 1);
}

#[tokio::test]
async fn a_bucket_that_is_empty_is_not_exceeded() {
    let world = World::new().await;
    world.server.limit("createMessage", 2, Duration::from_millis(700));
    for number in 0..5 {
        world.sent(&Outgoing { key: number.to_string(), ..message() }).await;
    }
    assert_eq!(world.server.messages(CHANNEL).len(), 5);
    assert_eq!(world.server.count("createMessage"), 5, "no call was answered with 429");
}

#[tokio::test]
async fn a_block_by_a_proxy_holds_all_calls() {
    let world = World::new().await;
    world.server.fail("createMessage", &Fault::Blocked { retry_after: 60 }, 1);
    let (after, scope, _) = later(world.channel.send(&message()).await);
    assert_eq!((after, scope), (Some(Duration::from_mins(1)), RateScope::Channel));
}

#[tokio::test]
async fn a_message_whose_answer_is_lost_is_repeated_and_shown_once() {
    for fault in [Fault::CutAfter, Fault::BadGatewayAfter, Fault::CutBefore, Fault::BadGateway] {
        let world = World::new().await;
        world.server.fail("createMessage", &fault, 2);
        world.sent(&message()).await;
        assert_eq!(world.server.messages(CHANNEL).len(), 1, "{fault:?}");
        assert_eq!(world.server.count("createMessage"), 3);
    }
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_is_reported_and_recognized_later() {
    let world = World::new().await;
    world.server.fail("createMessage", &Fault::CutAfter, 3);
    let outcome = world.channel.send(&message()).await;
    assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
    assert!(world.channel.capabilities().recognizes_repeats_for.is_some());
    assert!(world.channel.find(&message()).await.is_none(), "the service cannot be asked");
    world.sent(&message()).await;
    assert_eq!(world.server.messages(CHANNEL).len(), 1);
}

#[tokio::test]
async fn an_edit_that_fails_is_repeated_later() {
    let world = World::new().await;
    let id = world.sent(&message()).await.to_string();
    for fault in [Fault::BadGateway, Fault::CutBefore, Fault::CutAfter] {
        world.server.fail("editMessage", &fault, 1);
        let (after, scope, _) = later(world.channel.send(&outgoing(Operation::Edit(id.clone()), answer("new"))).await);
        assert_eq!((after, scope), (None, RateScope::Chat));
    }
}

#[tokio::test]
async fn a_channel_that_the_bot_cannot_write_to_gets_nothing_ever() {
    let world = World::new().await;
    let outcome = world.channel.send(&to(77, Operation::New, answer("text"))).await;
    assert!(
        matches!(&outcome, SendOutcome::NotSent(SendError::Never(text)) if text.contains("Unknown Channel")),
        "{outcome:?}"
    );
    let missing = Fault::Error { status: 403, code: 50_001, message: "Missing Access".to_owned() };
    world.server.fail("createMessage", &missing, 1);
    let outcome = world.channel.send(&message()).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Never(_))), "{outcome:?}");
    for chat in ["C0123", "", "../users/@me"] {
        let foreign = Outgoing { address: Address { chat: chat.to_owned(), thread: String::new() }, ..message() };
        assert!(matches!(world.channel.send(&foreign).await, SendOutcome::NotSent(SendError::Never(_))), "{chat}");
    }
}

#[tokio::test]
async fn with_a_rejected_token_all_messages_wait() {
    let world = World::new().await;
    world.server.revoke_token();
    let outcome = world.channel.send(&message()).await;
    let SendOutcome::NotSent(SendError::Unavailable { after, reason }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(after, Some(Duration::from_mins(1)));
    assert!(reason.contains("Unauthorized"), "{reason}");
}

#[tokio::test]
async fn a_service_that_is_not_there_has_not_got_it_and_no_error_shows_the_token() {
    let world = World::new().await;
    let (token, config) = (world.server.token(), config(&world.server));
    world.server.shutdown().await;
    let channel = Arc::new(DiscordChannel::new(config).unwrap());
    let outcome = channel.send(&message()).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Unavailable { .. })), "{outcome:?}");
    let secret = token.rsplit('.').next().unwrap();
    assert!(!format!("{channel:?}").contains(secret), "{channel:?}");
    for text in [format!("{outcome:?}"), channel.check().await.unwrap_err().to_string()] {
        assert!(!text.contains(secret) && !text.contains("/api/"), "{text}");
    }
}

#[tokio::test]
async fn an_unknown_outcome_stays_unknown_although_the_repeat_is_refused() {
    let world = World::new().await;
    world.server.fail("createMessage", &Fault::CutAfter, 1);
    world.server.fail("createMessage", &Fault::RateLimit { after_ms: 60_000, is_global: false }, 1);
    let outcome = world.channel.send(&message()).await;
    assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
    assert_eq!(world.server.messages(CHANNEL).len(), 1, "the service has the first one");
}
