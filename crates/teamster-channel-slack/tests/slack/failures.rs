//! What an operator must correct is a clear error, without a token.

use teamster_channel::{Channel as _, ChannelError};
use teamster_channel_slack::Channels;
use teamster_testkit::slack::Fault;

use crate::world::World;

async fn problem(world: &World) -> String {
    let error = world.channel.check().await.unwrap_err();
    let text = error.to_string();
    assert!(![world.server.bot_token(), world.server.app_token()].iter().any(|token| text.contains(token)), "{text}");
    text
}

#[tokio::test]
async fn a_good_configuration_is_confirmed_and_leaves_no_connection() {
    let world = World::new().await;
    world.channel.check().await.unwrap();
    world.until("it is closed", |server| server.connections() == 0).await;
    assert!(world.server.calls().iter().all(|call| call.method != "chat.postMessage"));
}

#[tokio::test]
async fn each_missing_scope_is_named_with_the_place_to_add_it() {
    let world = World::new().await;
    world.server.remove_scope("files:write");
    world.server.remove_scope("groups:history");
    let text = problem(&world).await;
    assert!(text.contains("files:write") && text.contains("groups:history"), "{text}");
    assert!(!text.contains("chat:write") && text.contains("Reinstall"), "{text}");
}

#[tokio::test]
async fn a_scope_that_the_settings_do_not_need_may_be_missing() {
    let world = World::with(|config| {
        config.channels = Channels::Off;
        config.max_download_bytes = 0;
        config.max_upload_bytes = 0;
    })
    .await;
    for scope in
        ["files:write", "files:read", "groups:history", "mpim:history", "channels:history", "app_mentions:read"]
    {
        world.server.remove_scope(scope);
    }
    world.channel.check().await.unwrap();
}

#[tokio::test]
async fn socket_mode_that_is_off_is_reported_by_the_check_and_ends_the_channel() {
    let world = World::new().await;
    let receiving = world.receive();
    world.until("a connection", |server| server.connections() == 1).await;
    world.server.set_socket_mode(false);
    let ended = receiving.error().await.to_string();
    for text in [ended, problem(&world).await] {
        assert!(text.contains("Socket Mode is off") && text.contains("turn it on"), "{text}");
    }
}

#[tokio::test]
async fn an_app_token_without_the_scope_is_reported() {
    let world = World::new().await;
    let missing = Fault::Error { error: "not_allowed_token_type".to_owned() };
    world.server.fail("apps.connections.open", &missing, 2);
    for text in [problem(&world).await, world.receive().error().await.to_string()] {
        assert!(text.contains("App-Level Tokens"), "{text}");
    }
}

#[tokio::test]
async fn a_rejected_token_is_reported_by_its_kind() {
    let world = World::new().await;
    world.server.revoke_app_token();
    for error in [world.channel.check().await.unwrap_err(), world.receive().error().await] {
        assert!(matches!(error, ChannelError::Credentials { .. }), "{error}");
        assert!(error.to_string().contains("xapp-"), "{error}");
    }
    world.server.revoke_bot_token();
    for error in [world.channel.check().await.unwrap_err(), world.receive().error().await] {
        assert!(matches!(error, ChannelError::Credentials { .. }), "{error}");
        assert!(error.to_string().contains("xoxb-"), "{error}");
    }
}

#[tokio::test]
async fn tokens_of_two_apps_are_reported() {
    let world = World::new().await;
    world.server.mix_apps();
    let text = problem(&world).await;
    assert!(text.contains("two Slack apps") && text.contains("A0OTHER"), "{text}");
}

#[tokio::test]
async fn a_service_that_fails_is_not_a_wrong_setting() {
    let world = World::new().await;
    for method in ["auth.test", "apps.connections.open"] {
        world.server.fail(method, &Fault::BadGateway, 1);
        let error = world.channel.check().await.unwrap_err();
        assert!(matches!(error, ChannelError::Unreachable { .. }), "{error}");
    }
}
