//! What an operator must correct is a clear error with the way to do it, without the token.

use serde_json::json;
use teamster_channel::{Channel as _, ChannelError};
use teamster_channel_discord::{ConfigError, DiscordChannel, Servers};
use teamster_testkit::discord::Fault;

use crate::world::{CHANNEL, GUILD, World, ada, config};

#[tokio::test]
async fn a_good_configuration_is_confirmed() {
    World::new().await.channel.check().await.unwrap();
    World::with(|config| config.threads = true).await.channel.check().await.unwrap();
}

#[tokio::test]
async fn a_rejected_token_is_reported_by_the_check_and_ends_the_channel() {
    let world = World::new().await;
    world.server.revoke_token();
    for error in [world.channel.check().await.unwrap_err(), world.start().error().await] {
        assert!(matches!(error, ChannelError::Credentials { .. }), "{error}");
        assert!(error.to_string().contains("Reset Token"), "{error}");
        assert!(!format!("{error:?}").contains("secret_of"), "{error}");
    }
}

#[tokio::test]
async fn a_token_that_is_revoked_while_the_channel_receives_is_reported() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.revoke_token();
    world.server.cut_connections();
    let error = receiving.error().await;
    assert!(matches!(error, ChannelError::Credentials { .. }) && error.to_string().contains("4004"), "{error}");
}

#[tokio::test]
async fn a_revoked_token_is_reported_also_while_an_event_is_tried_again() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.fail("channel", &Fault::Error { status: 500, code: 0, message: "failed".to_owned() }, 1_000);
    let unknown = json!({"id": "7", "channel_id": "599", "guild_id": GUILD.to_string(), "type": 0, "content": "hello",
        "author": {"id": "11", "username": "ada"}});
    world.server.raw_event("MESSAGE_CREATE", &unknown);
    world.until("a failed attempt", |server| server.count("channel") > 0).await;
    world.server.revoke_token();
    world.server.cut_connections();
    let error = receiving.error().await;
    assert!(matches!(error, ChannelError::Credentials { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_message_content_intent_is_reported_with_the_way_to_it() {
    let world = World::new().await;
    world.server.set_content_intent(false);
    for error in [world.channel.check().await.unwrap_err(), world.start().error().await] {
        let text = error.to_string();
        assert!(text.contains("Message Content Intent") && text.contains("discord.com/developers"), "{text}");
    }
}

#[tokio::test]
async fn without_message_contents_the_intent_is_not_needed_and_mentions_work() {
    for servers in [Servers::Mentions, Servers::Off] {
        let world = World::with(|config| {
            config.message_content = servers == Servers::Off;
            config.servers = servers;
        })
        .await;
        world.server.set_content_intent(false);
        world.channel.check().await.unwrap();
        let receiving = world.receive().await;
        world.server.write(teamster_testkit::discord::Post::private(&ada(), "direct"));
        world.messages(1).await;
        if servers == Servers::Mentions {
            world.server.write(teamster_testkit::discord::Post::mention(CHANNEL, &ada(), "in a channel"));
            assert_eq!(world.messages(2).await[1].text, "in a channel");
        }
        receiving.stop().await;
    }
}

#[tokio::test]
async fn missing_permissions_are_named_with_the_server_and_an_invitation() {
    let world = World::with(|config| config.threads = true).await;
    world.server.set_permissions(GUILD, (1 << 10) | (1 << 11));
    let text = world.channel.check().await.unwrap_err().to_string();
    for part in
        ["Attach Files", "Create Public Threads", "Server 500", "oauth2/authorize?client_id=4343", "permissions="]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    world.server.set_permissions(GUILD, 8);
    world.channel.check().await.unwrap();
}

#[tokio::test]
async fn used_up_starts_are_reported() {
    let world = World::new().await;
    world.server.set_starts_left(0);
    let text = world.channel.check().await.unwrap_err().to_string();
    assert!(text.contains("again in 61 minutes"), "{text}");
}

#[tokio::test]
async fn a_close_for_good_ends_the_channel_with_its_code() {
    for (code, expected) in [(4_011, "more servers"), (4_013, "4013"), (4_010, "4010")] {
        let world = World::new().await;
        let receiving = world.receive().await;
        world.server.close_connections(code);
        let text = receiving.error().await.to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_work_is_refused() {
    let world = World::new().await;
    let mut without_content = config(&world.server);
    (without_content.threads, without_content.message_content) = (true, false);
    assert_eq!(DiscordChannel::new(without_content).unwrap_err(), ConfigError::ThreadsWithoutContent);
    let mut gateway = config(&world.server);
    gateway.gateway_url = Some("ws://gateway.discord.gg".to_owned());
    assert!(matches!(DiscordChannel::new(gateway).unwrap_err(), ConfigError::GatewayUrl(_)));
    let mut own = config(&world.server);
    own.gateway_url = Some(world.server.gateway_url());
    let own = World { channel: DiscordChannel::new(own).unwrap().into(), ..world };
    own.receive().await.stop().await;
    assert_eq!(own.server.count("gateway"), 0, "the service is not asked for the gateway");
}
