//! The three outcomes of a send, and how long to wait.

use std::sync::Arc;
use std::time::Duration;

use teamster_channel::{Address, Channel as _, Operation, Outgoing, RateScope, SendError, SendOutcome};
use teamster_channel_telegram::TelegramChannel;
use teamster_testkit::telegram::{Fault, Person, Post};

use crate::world::{World, answer, config, outgoing};

fn to(chat: i64) -> Outgoing {
    let address = Address { chat: chat.to_string(), thread: String::new() };
    Outgoing { address, ..outgoing(Operation::New, answer("text")) }
}

#[tokio::test]
async fn a_limit_of_a_chat_waits_for_it_alone_and_one_of_the_bot_for_all() {
    let world = World::new().await;
    world.meet();
    world.server.write(Post::private(&Person::new(12, "Bob"), "hi"));
    world.server.fail("sendMessage", &Fault::RateLimit { retry_after: 35 }, 2);
    for (chat, expected) in [(11, RateScope::Chat), (12, RateScope::Channel)] {
        match world.channel.send(&to(chat)).await {
            SendOutcome::NotSent(SendError::Later { after, scope, .. }) => {
                assert_eq!((after, scope), (Some(Duration::from_secs(35)), expected));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.server.messages(11).len(), 1, "nothing was sent");
}

#[tokio::test]
async fn too_many_messages_are_answered_with_the_time_to_wait() {
    let world = World::new().await;
    world.meet();
    world.server.limit_chats(1, Duration::from_mins(1));
    assert!(matches!(world.channel.send(&to(11)).await, SendOutcome::Sent(_)));
    let SendOutcome::NotSent(SendError::Later { after, .. }) = world.channel.send(&to(11)).await else { panic!() };
    assert_eq!(after, Some(Duration::from_mins(1)));
}

#[tokio::test]
async fn a_cut_after_the_message_was_stored_is_unknown() {
    let world = World::new().await;
    world.meet();
    world.server.fail("sendMessage", &Fault::CutAfter, 1);
    let outcome = world.channel.send(&to(11)).await;
    assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
    world.shown(11, "text").await;
    assert!(world.channel.find(&to(11)).await.is_none(), "the service cannot be asked");
}

#[tokio::test]
async fn an_error_of_the_service_is_unknown_for_a_message_and_repeated_for_an_edit() {
    let world = World::new().await;
    world.meet();
    let internal = Fault::Error { code: 500, description: "Internal Server Error".to_owned() };
    for fault in [Fault::BadGateway, internal, Fault::CutBefore] {
        world.server.fail("sendMessage", &fault, 1);
        let outcome = world.channel.send(&to(11)).await;
        assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
        if fault == Fault::CutBefore {
            continue;
        }
        world.server.fail("editMessageText", &fault, 1);
        let edit = Outgoing { operation: Operation::Edit("1".to_owned()), ..to(11) };
        let outcome = world.channel.send(&edit).await;
        assert!(matches!(outcome, SendOutcome::NotSent(SendError::Later { .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_chat_that_the_bot_cannot_write_to_gets_nothing_ever() {
    let world = World::new().await;
    world.meet();
    let outcome = world.channel.send(&to(77)).await;
    assert!(
        matches!(&outcome, SendOutcome::NotSent(SendError::Never(text)) if text.contains("chat not found")),
        "{outcome:?}"
    );
    let blocked = Fault::Error { code: 403, description: "Forbidden: bot was blocked by the user".to_owned() };
    world.server.fail("sendMessage", &blocked, 1);
    let outcome = world.channel.send(&to(11)).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Never(_))), "{outcome:?}");
    let foreign = Outgoing { address: Address { chat: "C0123".to_owned(), thread: String::new() }, ..to(11) };
    assert!(matches!(world.channel.send(&foreign).await, SendOutcome::NotSent(SendError::Never(_))));
}

#[tokio::test]
async fn with_a_rejected_token_all_messages_wait() {
    let world = World::new().await;
    world.meet();
    world.server.revoke_token();
    let outcome = world.channel.send(&to(11)).await;
    let SendOutcome::NotSent(SendError::Unavailable { after, reason }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(after, Some(Duration::from_mins(1)));
    assert!(reason.contains("Unauthorized"), "{reason}");
}

#[tokio::test]
async fn a_service_that_is_not_there_has_not_got_it_and_no_error_shows_the_token() {
    let world = World::new().await;
    let (token, config) = (world.server.token(), config(&world.server));
    world.server.shutdown().await;
    let channel = Arc::new(TelegramChannel::new(config).unwrap());
    let outcome = channel.send(&to(11)).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Unavailable { .. })), "{outcome:?}");
    let secret = token.split_once(':').unwrap().1;
    let texts = [format!("{outcome:?}"), format!("{channel:?}"), channel.check().await.unwrap_err().to_string()];
    for text in texts {
        assert!(!text.contains(secret) && !text.contains("/bot"), "{text}");
    }
}
