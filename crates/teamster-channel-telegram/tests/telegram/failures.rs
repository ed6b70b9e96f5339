//! What an operator must correct is a clear error, without the token.

use std::sync::Arc;

use serde_json::json;
use teamster_channel::{Channel as _, ChannelError};
use teamster_channel_telegram::Groups;
use teamster_testkit::telegram::{Fault, Post};

use crate::world::{World, ada};

#[tokio::test]
async fn a_good_configuration_is_confirmed() {
    World::new().await.channel.check().await.unwrap();
}

#[tokio::test]
async fn a_webhook_of_the_bot_is_reported_by_the_check_and_ends_the_poll() {
    let world = World::new().await;
    world.server.set_webhook("https://example.org/secret-path");
    for error in [world.channel.check().await.unwrap_err(), world.receive().error().await] {
        let text = error.to_string();
        assert!(text.contains("has a webhook") && text.contains("deleteWebhook"), "{text}");
        assert!(!text.contains("secret-path"), "{text}");
    }
}

#[tokio::test]
async fn privacy_mode_is_reported_if_all_messages_of_groups_are_wanted() {
    let world = World::with(|config| config.groups = Groups::All).await;
    let text = world.channel.check().await.unwrap_err().to_string();
    assert!(text.contains("/setprivacy"), "{text}");
    world.server.set_privacy(false);
    world.channel.check().await.unwrap();
}

#[tokio::test]
async fn a_rejected_token_is_reported() {
    let world = World::new().await;
    world.server.revoke_token();
    for error in [world.channel.check().await.unwrap_err(), world.receive().error().await] {
        assert!(matches!(error, ChannelError::Credentials { .. }), "{error}");
        assert!(!format!("{error:?}").contains("AAtest"), "{error}");
    }
}

#[tokio::test]
async fn two_programs_with_one_token_are_reported() {
    let world = World::new().await;
    let other = World { server: world.server, channel: Arc::clone(&world.channel), inbox: Arc::default() };
    let first = other.receive();
    let second = World { inbox: Arc::default(), ..other };
    let error = tokio::select! {
        error = first.error() => error,
        error = second.receive().error() => error,
    };
    assert!(error.to_string().contains("another program polls"), "{error}");
}

#[tokio::test]
async fn one_conflict_is_retried_because_the_service_may_hold_an_older_poll_of_our_own() {
    let world = World::new().await;
    let conflict =
        Fault::Error { code: 409, description: "Conflict: terminated by other getUpdates request".to_owned() };
    world.server.fail("getUpdates", &conflict, 2);
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_update_of_an_unknown_form_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive();
    for content in [json!(5), json!({"chat": "none", "message_id": []}), json!({}), json!(null)] {
        world.server.raw_update("message", content);
    }
    world.server.write(Post::private(&ada(), "hello"));
    world.inbox.until("the message", |contents| contents.messages.iter().any(|one| one.text == "hello")).await;
    world.confirmed().await;
    receiving.stop().await;
}
