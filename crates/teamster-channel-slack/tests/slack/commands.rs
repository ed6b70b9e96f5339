//! Slash commands and commands in texts.

use serde_json::Value;
use teamster_channel::Receipt;
use teamster_channel_slack::Replies;
use teamster_testkit::slack::{Fault, Person, Post};

use crate::world::{CHANNEL, World, ada, mention};

async fn replied(world: &World, channel: &str, text: &str) -> Value {
    let id = world.server.command(channel, &ada(), text);
    world.response(&id).await.remove(0)
}

#[tokio::test]
async fn a_slash_command_in_a_direct_message_runs_and_its_reply_is_for_the_sender() {
    let world = World::new().await;
    let receiving = world.receive();
    let reply = replied(&world, &ada().direct(), "agent codex").await;
    assert_eq!((&reply["response_type"], &reply["text"]), (&"ephemeral".into(), &"agent done".into()));
    assert_eq!(reply["blocks"][0]["elements"][0]["elements"][0]["style"]["bold"], true, "{reply}");
    replied(&world, &ada().direct(), "/stop").await;
    let commands = world.inbox.with(|contents| contents.commands.clone());
    let names: Vec<_> = commands.iter().map(|command| (command.name.as_str(), command.argument.as_str())).collect();
    assert_eq!(names, [("agent", "codex"), ("stop", "")]);
    assert_eq!((commands[0].address.chat.clone(), commands[0].author.id.as_str()), (ada().direct(), "U0ADA"));
    receiving.stop().await;
}

#[tokio::test]
async fn a_slash_command_without_a_known_name_shows_the_commands_and_the_ids_for_a_rule() {
    let world = World::new().await;
    let receiving = world.receive();
    for text in ["", "help", "nonsense"] {
        let reply = replied(&world, CHANNEL, text).await;
        let text = reply["text"].as_str().unwrap();
        assert!(text.contains("your author id is U0ADA") && text.contains(CHANNEL), "{text}");
        assert!(text.contains("stop: ") && text.contains("usage: "), "{text}");
    }
    assert!(world.inbox.with(|contents| contents.commands.is_empty()));
    receiving.stop().await;
}

#[tokio::test]
async fn in_a_channel_whose_threads_are_conversations_a_slash_command_shows_how_to_write_it() {
    let world = World::new().await;
    let receiving = world.receive();
    let reply = replied(&world, CHANNEL, "stop").await;
    assert!(reply["text"].as_str().unwrap().contains("Write in the thread"), "{reply}");
    assert!(world.inbox.with(|contents| contents.commands.is_empty()));
    receiving.stop().await;
    let world = World::with(|config| config.replies = Replies::Channel).await;
    let receiving = world.receive();
    assert_eq!(replied(&world, CHANNEL, "stop").await["text"], "stop done");
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_in_a_thread_runs_once_and_is_answered_there() {
    let world = World::new().await;
    let receiving = world.receive();
    let first = world.server.write(Post::to(CHANNEL, &ada(), &mention("start")));
    world.messages(1).await;
    world.server.write(Post::to(CHANNEL, &ada(), &mention("/status")).thread(&first));
    let reply = world.shown(CHANNEL, "status done").await;
    assert_eq!(reply["thread_ts"], first);
    world.acknowledged().await;
    let commands = world.inbox.with(|contents| contents.commands.clone());
    assert_eq!(commands.len(), 1);
    assert_eq!(commands[0].address.thread, first);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_is_acknowledged_before_its_reply_is_written() {
    let world = World::new().await;
    let receiving = world.receive();
    // The call is longer than the test waits.
    world.server.fail("chat.postMessage", &Fault::Hang, 1);
    world.server.write(Post::to(CHANNEL, &ada(), &mention("/status")));
    world.inbox.until("the command", |contents| contents.commands.len() == 1).await;
    world.acknowledged().await;
    world.server.repeat_events();
    world.acknowledged().await;
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.crash().await;
}

#[tokio::test]
async fn a_mention_without_a_text_shows_the_help() {
    let world = World::new().await;
    let receiving = world.receive();
    let ts = world.server.write(Post::to(CHANNEL, &ada(), &mention("")));
    let reply = world.shown(CHANNEL, "your author id is U0ADA").await;
    assert_eq!(reply["thread_ts"], ts);
    world.acknowledged().await;
    assert_eq!(world.server.messages(CHANNEL).len(), 2);
    receiving.stop().await;
}

#[tokio::test]
async fn a_program_gets_no_help_no_command_and_no_refusal() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Refused("Too long.".to_owned())));
    let receiving = world.receive();
    let robot = Person { is_bot: true, ..Person::new("U0ROBOT", "Robot") };
    for text in ["", "/help", "/status", "beep"] {
        world.server.write(Post::to(CHANNEL, &robot, &mention(text)));
    }
    world.server.write(Post::to(CHANNEL, &robot, &mention("")).file("a.txt", "more than ten bytes"));
    world.acknowledged().await;
    world.server.write(Post::direct(&ada(), "/help"));
    world.shown(&ada().direct(), "your author id is U0ADA").await;
    receiving.stop().await;
    assert_eq!(world.server.messages(CHANNEL).len(), 5, "no reply");
    assert!(world.inbox.with(|contents| contents.commands.is_empty()));
}

#[tokio::test]
async fn a_stranger_gets_the_help_in_a_direct_message_only() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.strangers = vec!["U0MALLORY".to_owned()]);
    let receiving = world.receive();
    let mallory = Person::new("U0MALLORY", "Mallory");
    for text in ["", "/help", "/status"] {
        world.server.write(Post::to(CHANNEL, &mallory, &mention(text)));
    }
    world.acknowledged().await;
    world.server.write(Post::direct(&mallory, "/help"));
    world.shown(&mallory.direct(), "your author id is U0MALLORY").await;
    receiving.stop().await;
    assert_eq!(world.server.messages(CHANNEL).len(), 3, "no reply");
    assert!(world.inbox.with(|contents| contents.commands.is_empty()));
}
