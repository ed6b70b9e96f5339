//! The three outcomes of a send, how long to wait, and the search for an unknown one.

use std::sync::Arc;
use std::time::Duration;

use teamster_channel::{Address, Channel as _, Content, File, Operation, Outgoing, RateScope, SendError, SendOutcome};
use teamster_channel_slack::SlackChannel;
use teamster_testkit::slack::{Fault, Post};

use crate::world::{CHANNEL, World, ada, answer, config, meet, outgoing};

fn new() -> Outgoing {
    outgoing(Operation::New, answer("text"))
}

fn to(chat: &str) -> Outgoing {
    Outgoing { address: Address { chat: chat.to_owned(), thread: String::new() }, ..new() }
}

#[tokio::test]
async fn a_limit_of_messages_waits_for_its_chat_and_one_of_edits_for_all() {
    let world = World::new().await;
    meet(&world);
    let SendOutcome::Sent(sent) = world.channel.send(&new()).await else { panic!() };
    let edit = Outgoing { operation: Operation::Edit(sent.message_id.unwrap()), ..new() };
    for (method, outgoing, expected) in
        [("chat.postMessage", new(), RateScope::Chat), ("chat.update", edit, RateScope::Channel)]
    {
        world.server.fail(method, &Fault::RateLimit { retry_after: 35 }, 1);
        match world.channel.send(&outgoing).await {
            SendOutcome::NotSent(SendError::Later { after, scope, .. }) => {
                assert_eq!((after, scope), (Some(Duration::from_secs(35)), expected));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn too_many_messages_are_answered_with_the_time_to_wait() {
    let world = World::new().await;
    meet(&world);
    world.server.limit_channels(1, Duration::from_mins(1));
    assert!(matches!(world.channel.send(&new()).await, SendOutcome::Sent(_)));
    let SendOutcome::NotSent(SendError::Later { after, .. }) = world.channel.send(&new()).await else { panic!() };
    assert_eq!(after, Some(Duration::from_mins(1)));
}

#[tokio::test]
async fn a_message_whose_answer_was_cut_is_unknown_and_is_found_by_its_key() {
    for fault in [Fault::CutAfter, Fault::ErrorAfter { error: "fatal_error".to_owned() }] {
        let world = World::new().await;
        meet(&world);
        world.server.fail("chat.postMessage", &fault, 1);
        let outcome = world.channel.send(&new()).await;
        assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
        let shown = world.shown(&ada().direct(), "text").await;
        let Some(SendOutcome::Sent(found)) = world.channel.find(&new()).await else { panic!() };
        assert_eq!(found.message_id.as_deref(), shown["ts"].as_str());
        let other = Outgoing { key: "another part".to_owned(), ..new() };
        let found = world.channel.find(&other).await;
        assert!(matches!(found, Some(SendOutcome::NotSent(SendError::Later { .. }))), "{found:?}");
    }
}

#[tokio::test]
async fn a_message_of_a_thread_is_found_in_it_behind_many_others() {
    let world = World::new().await;
    let thread = world.server.write(Post::to(CHANNEL, &ada(), "topic"));
    for number in 0..250 {
        world.server.write(Post::to(CHANNEL, &ada(), &number.to_string()).thread(&thread));
    }
    let part = Outgoing { address: Address { chat: CHANNEL.to_owned(), thread }, ..new() };
    let SendOutcome::Sent(sent) = world.channel.send(&part).await else { panic!() };
    assert_eq!(world.channel.find(&part).await, Some(SendOutcome::Sent(sent)));
    world.server.fail("conversations.replies", &Fault::CutBefore, 1);
    assert!(matches!(world.channel.find(&part).await, Some(SendOutcome::Unknown(_))));
}

#[tokio::test]
async fn what_the_history_cannot_show_is_not_asked_for() {
    let world = World::new().await;
    meet(&world);
    let file = Content::File(File {
        name: "a".into(),
        media_type: String::new(),
        hash: String::new(),
        caption: String::new(),
    });
    assert_eq!(world.channel.find(&outgoing(Operation::New, file)).await, None);
    assert_eq!(world.channel.find(&outgoing(Operation::Edit("1.0".to_owned()), answer("x"))).await, None);
    world.server.remove_scope("channels:history");
    assert_eq!(world.channel.find(&new()).await, None);
}

#[tokio::test]
async fn an_error_of_the_service_is_unknown_for_a_message_and_repeated_for_an_edit() {
    let world = World::new().await;
    meet(&world);
    for fault in [Fault::BadGateway, Fault::Error { error: "internal_error".to_owned() }, Fault::CutBefore] {
        world.server.fail("chat.postMessage", &fault, 1);
        let outcome = world.channel.send(&new()).await;
        assert!(matches!(outcome, SendOutcome::Unknown(_)), "{outcome:?}");
        world.server.fail("chat.update", &fault, 1);
        let edit = Outgoing { operation: Operation::Edit("1.0".to_owned()), ..new() };
        let outcome = world.channel.send(&edit).await;
        assert!(matches!(outcome, SendOutcome::NotSent(SendError::Later { .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_chat_that_the_bot_cannot_write_to_gets_nothing_ever() {
    let world = World::new().await;
    meet(&world);
    world.server.create_channel_without_bot("C0OTHER");
    for (chat, reason) in
        [("C0NONE", "channel_not_found"), ("C0OTHER", "not_in_channel"), ("-500", "not one of Slack"), ("", "not one")]
    {
        let outcome = world.channel.send(&to(chat)).await;
        let is_it = matches!(&outcome, SendOutcome::NotSent(SendError::Never(text)) if text.contains(reason));
        assert!(is_it, "{outcome:?}");
    }
    let archived = Fault::Error { error: "is_archived".to_owned() };
    world.server.fail("chat.postMessage", &archived, 1);
    assert!(matches!(world.channel.send(&new()).await, SendOutcome::NotSent(SendError::Never(_))));
    world.server.fail("chat.postMessage", &Fault::Error { error: "msg_too_long".to_owned() }, 1);
    assert!(matches!(world.channel.send(&new()).await, SendOutcome::NotSent(SendError::Never(_))));
}

#[tokio::test]
async fn an_edit_after_the_time_limit_of_the_workspace_is_gone() {
    let world = World::new().await;
    meet(&world);
    world.server.fail("chat.update", &Fault::Error { error: "edit_window_closed".to_owned() }, 1);
    let edit = Outgoing { operation: Operation::Edit("1.0".to_owned()), ..new() };
    assert!(matches!(world.channel.send(&edit).await, SendOutcome::NotSent(SendError::Gone(_))));
}

#[tokio::test]
async fn without_a_valid_token_or_its_scope_all_messages_wait_and_without_a_permission_those_of_the_chat() {
    let world = World::new().await;
    meet(&world);
    world.server.remove_scope("chat:write");
    world.server.fail("chat.postMessage", &Fault::Error { error: "ekm_access_denied".to_owned() }, 1);
    let outcome = world.channel.send(&new()).await;
    let SendOutcome::NotSent(SendError::Later { scope, after, reason }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((scope, after), (RateScope::Chat, Some(Duration::from_mins(1))));
    assert!(reason.contains("ekm_access_denied"), "{reason}");
    for expected in ["chat:write", "invalid_auth"] {
        if expected == "invalid_auth" {
            world.server.revoke_bot_token();
        }
        let outcome = world.channel.send(&new()).await;
        let SendOutcome::NotSent(SendError::Unavailable { after, reason }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(after, Some(Duration::from_mins(1)));
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn a_file_without_its_scope_delays_no_message_and_names_the_scope() {
    let world = World::new().await;
    meet(&world);
    world.server.remove_scope("files:write");
    let file = Content::File(File {
        name: "a.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        hash: String::new(),
        caption: String::new(),
    });
    let outcome = world.channel.send(&Outgoing { bytes: Arc::from(*b"x"), ..outgoing(Operation::New, file) }).await;
    let SendOutcome::NotSent(SendError::Never(reason)) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("files:write") && reason.contains("Reinstall"), "{reason}");
    assert!(matches!(world.channel.send(&new()).await, SendOutcome::Sent(_)));
}

#[tokio::test]
async fn a_service_that_is_not_there_has_not_got_it_and_no_error_shows_a_token() {
    let world = World::new().await;
    let tokens = [world.server.bot_token(), world.server.app_token()];
    let config = config(&world.server);
    world.server.shutdown().await;
    let channel = Arc::new(SlackChannel::new(config).unwrap());
    let outcome = channel.send(&new()).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Unavailable { .. })), "{outcome:?}");
    let texts = [format!("{outcome:?}"), format!("{channel:?}"), channel.check().await.unwrap_err().to_string()];
    for text in texts {
        assert!(!tokens.iter().any(|token| text.contains(token)), "{text}");
    }
}
