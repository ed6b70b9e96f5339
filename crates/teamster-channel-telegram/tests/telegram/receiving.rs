//! Each message is accepted once, whatever happens, and in the form that people meant.

use teamster_channel::{Address, Receipt};
use teamster_channel_telegram::Groups;
use teamster_testkit::telegram::{BOT_NAME, Fault, Person, Post};

use crate::world::{GROUP, World, ada};

#[tokio::test]
async fn a_direct_message_is_accepted_and_confirmed_after_that() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "hello"));
    let message = world.messages(1).await.remove(0);
    assert_eq!((message.text.as_str(), message.author.id.as_str(), message.is_addressed), ("hello", "11", true));
    assert_eq!(message.address, Address { chat: "11".to_owned(), thread: String::new() });
    world.confirmed().await;
    receiving.stop().await;
    let offset = world.inbox.with(|contents| contents.states["offset:4242"].clone());
    assert_eq!(offset, 1_001, "the offset is stored for this bot");
}

#[tokio::test]
async fn what_was_written_before_the_start_is_received() {
    let world = World::new().await;
    world.server.write(Post::private(&ada(), "early"));
    let receiving = world.receive();
    assert_eq!(world.messages(1).await[0].text, "early");
    receiving.stop().await;
}

#[tokio::test]
async fn a_repeated_update_is_recognized_by_the_id_of_its_message() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    world.server.repeat_updates();
    world.inbox.until("the repeat", |contents| contents.duplicates == 1).await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_crash_between_the_accept_and_the_offset_loses_and_doubles_nothing() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.hangs_after_accept = true);
    world.server.write(Post::private(&ada(), "one"));
    world.server.write(Post::private(&ada(), "two"));
    let receiving = world.receive();
    world.messages(1).await;
    receiving.crash().await;
    assert_eq!(world.server.unconfirmed(), 2);
    world.inbox.with(|contents| contents.hangs_after_accept = false);
    let receiving = world.receive();
    world.messages(2).await;
    world.confirmed().await;
    assert_eq!(world.inbox.texts(), ["one", "two"]);
    assert_eq!(world.inbox.with(|contents| contents.duplicates), 1);
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_accepted_is_received_again_in_order() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.failures = 2);
    world.server.write(Post::private(&ada(), "one"));
    world.server.write(Post::private(&ada(), "two"));
    let receiving = world.receive();
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["one", "two"]);
    world.confirmed().await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_poll_that_fails_is_repeated() {
    let world = World::new().await;
    world.server.fail("getMe", &Fault::CutBefore, 1);
    world.server.fail("getUpdates", &Fault::CutBefore, 1);
    world.server.fail("getUpdates", &Fault::BadGateway, 1);
    world.server.fail("getUpdates", &Fault::RateLimit { retry_after: 1 }, 1);
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_album_is_one_message() {
    let world = World::new().await;
    let receiving = world.receive();
    let photo = |text: &str, content: &str| Post::private(&ada(), text).photo(content).album("a1");
    world.server.write(photo("look", "one"));
    tokio::task::yield_now().await;
    world.server.write(photo("", "two"));
    world.server.write(Post::private(&Person::new(12, "Bob"), "in between"));
    world.server.write(photo("", "three"));
    let messages = world.messages(2).await;
    let album = messages.iter().find(|message| message.author.id == "11").unwrap();
    let contents: Vec<_> = album.attachments.iter().map(|file| file.bytes.clone()).collect();
    assert_eq!((album.text.as_str(), album.ids.len()), ("look", 3));
    assert_eq!(contents, [&b"one"[..], b"two", b"three"]);
    world.confirmed().await;
    assert_eq!(world.inbox.with(|contents| contents.messages.len()), 2);
    receiving.stop().await;
}

#[tokio::test]
async fn a_long_text_that_the_client_has_split_is_one_message_and_an_edit_of_a_part_changes_nothing() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), &"x".repeat(4_096)));
    let part = world.server.write(Post::private(&ada(), "the rest"));
    let message = world.messages(1).await.remove(0);
    assert_eq!(message.text, format!("{}the rest", "x".repeat(4_096)));
    assert_eq!(message.ids.len(), 2);
    world.server.edit(11, part, "changed");
    world.server.write(Post::private(&ada(), "next"));
    world.messages(2).await;
    assert!(world.inbox.with(|contents| contents.edits.is_empty()));
    receiving.stop().await;
}

#[tokio::test]
async fn in_a_group_only_messages_to_the_bot_are_accepted_and_topics_are_threads() {
    let world = World::new().await;
    world.server.set_privacy(false);
    world.server.create_group(GROUP, &[7]);
    let receiving = world.receive();
    let post = |text: &str| Post::to(GROUP, &ada(), text);
    world.server.write(post("not for the bot"));
    world.server.write(post(&format!("@{BOT_NAME} general")));
    world.server.write(post(&format!("in a topic @{BOT_NAME}")).thread(7));
    let messages = world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["general", "in a topic"]);
    let threads: Vec<_> = messages.iter().map(|message| message.address.thread.as_str()).collect();
    assert_eq!(threads, ["", "7"]);
    assert_eq!(messages[1].address.chat, "-500");
    receiving.stop().await;
}

#[tokio::test]
async fn with_all_messages_of_groups_no_mention_is_needed() {
    let world = World::with(|config| config.groups = Groups::All).await;
    world.server.set_privacy(false);
    world.server.create_group(GROUP, &[]);
    let receiving = world.receive();
    world.server.write(Post::to(GROUP, &ada(), "hello"));
    assert_eq!(world.messages(1).await[0].text, "hello");
    receiving.stop().await;
}

#[tokio::test]
async fn an_edit_reaches_the_message_by_its_id() {
    let world = World::new().await;
    let receiving = world.receive();
    let message = world.server.write(Post::private(&ada(), "helo"));
    let id = world.messages(1).await.remove(0).ids.remove(0);
    world.server.edit(11, message, "hello");
    world.inbox.until("the edit", |contents| !contents.edits.is_empty()).await;
    let edit = world.inbox.with(|contents| contents.edits[0].clone());
    assert_eq!((edit.id, edit.text.as_str()), (id, "hello"));
    receiving.stop().await;
}

#[tokio::test]
async fn commands_are_registered_run_once_and_answered() {
    let world = World::new().await;
    world.server.create_group(GROUP, &[]);
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "/agent codex"));
    let reply = world.shown(11, "agent done").await;
    assert_eq!(reply["entities"][0]["type"], "bold");
    assert_eq!(reply["reply_to_message"]["text"], "/agent codex");
    world.server.write(Post::to(GROUP, &ada(), &format!("/status@{BOT_NAME}")));
    world.shown(GROUP, "status done").await;
    world.confirmed().await;
    receiving.stop().await;
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "/start"));
    world.shown(11, "your author id is 11").await;
    let commands = world.inbox.with(|contents| contents.commands.clone());
    let names: Vec<_> = commands.iter().map(|command| (command.name.as_str(), command.argument.as_str())).collect();
    assert_eq!(names, [("agent", "codex"), ("status", "")]);
    assert_eq!(world.server.commands()[0]["command"], "agent");
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_runs_once_although_the_offset_cannot_be_stored_which_is_tried_again() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.state_failures = 3);
    let receiving = world.receive();
    world.server.write(Post::private(&ada(), "/status"));
    world.inbox.until("the offset", |contents| contents.states.get("offset:4242") == Some(&1_001.into())).await;
    world.confirmed().await;
    let commands = world.inbox.with(|contents| contents.commands.len());
    assert_eq!((commands, world.server.messages(11).len()), (1, 2), "one command and one reply");
    receiving.stop().await;
}

#[tokio::test]
async fn a_program_gets_no_help_no_command_and_no_refusal_and_a_stranger_gets_none_in_a_group() {
    let world = World::new().await;
    world.server.set_privacy(false);
    world.server.create_group(GROUP, &[]);
    world.inbox.with(|contents| {
        contents.strangers = vec!["99".to_owned()];
        contents.receipt = Some(Receipt::Refused("Too long.".to_owned()));
    });
    let receiving = world.receive();
    let robot = Person { is_bot: true, ..Person::new(12, "Robot") };
    let mallory = Person::new(99, "Mallory");
    for text in [format!("/start@{BOT_NAME}"), format!("/status@{BOT_NAME}"), format!("@{BOT_NAME} beep")] {
        world.server.write(Post::to(GROUP, &robot, &text));
        world.server.write(Post::to(GROUP, &mallory, &text));
    }
    world.server.write(Post::private(&mallory, "/start"));
    world.shown(99, "your author id is 99").await;
    world.confirmed().await;
    receiving.stop().await;
    assert_eq!(world.server.messages(GROUP).len(), 6, "no reply");
    assert!(world.inbox.with(|contents| contents.commands.is_empty()));
}

#[tokio::test]
async fn an_author_learns_that_a_message_was_refused_or_must_wait() {
    let world = World::new().await;
    let receiving = world.receive();
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Refused("Too *long*.".to_owned())));
    world.server.write(Post::private(&ada(), "hello"));
    world.shown(11, "Too *long*.").await;
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Busy("The queue is full.".to_owned())));
    world.server.write(Post::private(&ada(), "hello again"));
    world.shown(11, "The queue is full. Send the message again later.").await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_group_that_becomes_a_supergroup_keeps_its_address_also_after_a_restart() {
    let world = World::new().await;
    world.server.create_group(GROUP, &[]);
    let receiving = world.receive();
    world.server.write(Post::to(GROUP, &ada(), &format!("@{BOT_NAME} before")));
    world.messages(1).await;
    world.server.migrate(GROUP, -1_000_500);
    world.server.write(Post::to(-1_000_500, &ada(), &format!("@{BOT_NAME} after")));
    assert_eq!(world.messages(2).await[1].address.chat, "-500");
    world.inbox.until("the new id is stored", |contents| contents.states.contains_key("chats:4242")).await;
    receiving.stop().await;
    let other = World { inbox: world.inbox, ..World::new().await };
    // The other server has numbers of its own.
    other.inbox.with(|contents| contents.states.remove("offset:4242"));
    other.server.create_group(-1_000_500, &[]);
    let receiving = other.receive();
    other.server.write(Post::to(-1_000_500, &ada(), &format!("@{BOT_NAME} later")));
    other.server.write(Post::to(-1_000_500, &ada(), &format!("@{BOT_NAME} last")));
    assert_eq!(other.messages(3).await[2].address.chat, "-500");
    receiving.stop().await;
}
