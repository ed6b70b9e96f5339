//! Slash commands: they are registered, answered in time, and run once.

use std::time::Duration;

use serde_json::json;
use teamster_testkit::discord::{Fault, Person, Post};

use crate::world::{CHANNEL, DIRECT, World, ada, is_own, mallory};

#[tokio::test]
async fn commands_are_registered_once_and_only_changed_ones_again() {
    let world = World::new().await;
    world.receive().await.stop().await;
    let commands = world.server.commands();
    let names: Vec<_> = commands.iter().map(|command| command["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["agent", "model", "new", "stop", "status", "usage"]);
    assert_eq!((&commands[0]["options"][0]["name"], &commands[0]["contexts"]), (&json!("name"), &json!([0, 1])));
    world.receive().await.stop().await;
    assert_eq!(world.server.count("setCommands"), 1);
}

#[tokio::test]
async fn a_command_is_answered_to_its_sender_only() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let interaction = world.server.slash(CHANNEL, "agent", Some("codex"), &ada());
    assert_eq!(world.shown_to(interaction).await, "**agent** done");
    assert_eq!(world.server.acknowledged(interaction), Some(5));
    let command = world.inbox.with(|contents| contents.commands[0].clone());
    assert_eq!(
        (command.name.as_str(), command.argument.as_str(), command.author.id.as_str()),
        ("agent", "codex", "11")
    );
    assert_eq!(command.address.chat, CHANNEL.to_string());
    assert!(world.server.messages(CHANNEL).is_empty(), "other people do not get it");
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_in_a_thread_and_in_a_direct_chat_has_its_address() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.create_thread(CHANNEL, 600, &ada());
    for channel in [600, DIRECT] {
        let interaction = world.server.slash(channel, "stop", None, &ada());
        world.shown_to(interaction).await;
    }
    let addresses = world.inbox.with(|contents| contents.commands.clone());
    let addresses: Vec<_> =
        addresses.into_iter().map(|command| (command.address.chat, command.address.thread)).collect();
    let text = |id: u64| id.to_string();
    assert_eq!(addresses, [(text(CHANNEL), text(600)), (text(DIRECT), String::new())]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_that_is_written_as_a_text_works_too() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::mention(CHANNEL, &ada(), "/agent codex"));
    world.shown(CHANNEL, "**agent** done").await;
    world.server.write(Post::to(CHANNEL, &ada(), "/status for others"));
    world.server.write(Post::private(&ada(), "/etc/passwd is a file"));
    world.messages(1).await;
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.stop().await;
}

#[tokio::test]
async fn a_written_command_of_a_program_or_of_a_stranger_in_a_channel_gets_no_reply() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.strangers = vec![mallory().id.to_string()]);
    let receiving = world.receive().await;
    let robot = Person { is_bot: true, ..Person::new(77, "Robot") };
    world.server.write(Post::mention(CHANNEL, &robot, "/status"));
    world.server.write(Post::private(&robot, "/status"));
    world.server.write(Post::mention(CHANNEL, &Person::new(78, "Hook"), "/status").webhook());
    world.server.write(Post::mention(CHANNEL, &mallory(), "/status"));
    // A direct message with the reason does not disturb other people.
    world.server.write(Post::private(&mallory(), "/usage"));
    world.shown(mallory().direct(), "**usage** done").await;
    let written =
        [CHANNEL, robot.direct()].map(|channel| world.server.messages(channel).into_iter().filter(is_own).count());
    assert_eq!(written, [0, 0]);
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_is_acknowledged_at_once_also_if_a_message_before_it_takes_long() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.inbox.with(|contents| contents.failures = 3);
    world.server.write(Post::private(&ada(), "slow"));
    let interaction = world.server.slash(CHANNEL, "status", None, &ada());
    world.until("the first answer", |server| server.acknowledged(interaction).is_some()).await;
    assert!(world.inbox.texts().is_empty(), "the message still waits");
    world.shown_to(interaction).await;
    assert_eq!(world.inbox.texts(), ["slow"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_whose_time_is_over_is_not_run() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let late = world.server.slash_late(CHANNEL, "new", &ada());
    let next = world.server.slash(CHANNEL, "status", None, &ada());
    world.shown_to(next).await;
    let names = world.inbox.with(|contents| contents.commands.iter().map(|one| one.name.clone()).collect::<Vec<_>>());
    assert_eq!(names, ["status"]);
    assert_eq!(world.server.shown_to(late), None);
    receiving.stop().await;
}

#[tokio::test]
async fn a_first_answer_whose_connection_is_cut_is_repeated_and_the_command_runs_once() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.fail("acknowledge", &Fault::CutAfter, 1);
    let interaction = world.server.slash(CHANNEL, "status", None, &ada());
    world.shown_to(interaction).await;
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_that_another_program_has_answered_is_not_run() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let answered =
        Fault::Error { status: 400, code: 40_060, message: "Interaction has already been acknowledged.".to_owned() };
    world.server.fail("acknowledge", &answered, 1);
    world.server.slash(CHANNEL, "new", None, &ada());
    let next = world.server.slash(CHANNEL, "status", None, &ada());
    world.shown_to(next).await;
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.stop().await;
}

#[tokio::test]
async fn an_unknown_command_is_answered() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let interaction = world.server.slash(CHANNEL, "dance", None, &ada());
    assert_eq!(world.shown_to(interaction).await, "This command is unknown.");
    receiving.stop().await;
}

#[tokio::test]
async fn a_reply_within_the_rate_limit_waits_for_it() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.fail("editReply", &Fault::RateLimit { after_ms: 300, is_global: false }, 2);
    let interaction = world.server.slash(CHANNEL, "status", None, &ada());
    let in_time = tokio::time::timeout(Duration::from_secs(10), world.shown_to(interaction)).await;
    assert_eq!(in_time.unwrap(), "**status** done");
    receiving.stop().await;
}
