//! Each message is accepted once, whatever happens, and in the form that people meant.

use teamster_channel::{Address, Operation, Receipt};
use teamster_channel_discord::Servers;
use teamster_testkit::discord::{Person, Post};

use crate::world::{CHANNEL, DIRECT, GUILD, World, ada, answer, is_own, outgoing, to};

#[tokio::test]
async fn a_direct_message_is_accepted_and_the_session_is_stored_after_that() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let id = world.server.write(Post::private(&ada(), "hello"));
    let message = world.messages(1).await.remove(0);
    assert_eq!((message.text.as_str(), message.author.id.as_str(), message.is_addressed), ("hello", "11", true));
    assert_eq!((message.author.name.as_str(), message.author.is_bot), ("Ada", false));
    assert_eq!(message.address, Address { chat: DIRECT.to_string(), thread: String::new() });
    assert_eq!(message.ids, [id.to_string()]);
    receiving.stop().await;
    let state = world.state().await;
    assert_eq!(state["session"]["id"], "session-1");
    assert_eq!(state["channels"][DIRECT.to_string()]["last"], id);
}

#[tokio::test]
async fn in_a_server_only_mentions_replies_and_mentions_of_its_roles_are_for_the_bot() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let post = |text: &str| Post::to(CHANNEL, &ada(), text);
    world.server.write(post("not for the bot"));
    world.server.write(post("@everyone look"));
    world.server.write(post("<@&999> another role"));
    world.server.write(Post::mention(CHANNEL, &ada(), "one"));
    world.server.write(post(&format!("<@&{}> two", GUILD + 1)));
    world.messages(2).await;
    let own = world.sent(&outgoing(Operation::New, answer("hi"))).await;
    world.server.write(post("three").reply_to(own));
    let messages = world.messages(3).await;
    assert_eq!(world.inbox.texts(), ["one", "two", "three"]);
    assert!(messages.iter().all(|message| message.address.chat == CHANNEL.to_string()));
    receiving.stop().await;
}

#[tokio::test]
async fn with_all_messages_of_servers_no_mention_is_needed() {
    let world = World::with(|config| config.servers = Servers::All).await;
    let receiving = world.receive().await;
    world.server.write(Post::to(CHANNEL, &ada(), "hello"));
    assert_eq!(world.messages(1).await[0].text, "hello");
    receiving.stop().await;
}

#[tokio::test]
async fn without_servers_only_direct_messages_are_received() {
    let world = World::with(|config| config.servers = Servers::Off).await;
    let receiving = world.receive().await;
    world.server.write(Post::mention(CHANNEL, &ada(), "in a server"));
    world.server.write(Post::private(&ada(), "direct"));
    world.messages(1).await;
    assert_eq!(world.inbox.texts(), ["direct"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_mention_of_a_person_becomes_a_name() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::mention(CHANNEL, &ada(), "ask <@12>"));
    assert_eq!(world.messages(1).await[0].text, "ask @user12");
    receiving.stop().await;
}

#[tokio::test]
async fn an_event_that_comes_twice_is_accepted_once() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    world.server.repeat_events();
    world.inbox.until("the repeat", |contents| contents.duplicates == 1).await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn messages_of_the_bot_itself_are_ignored_and_those_of_programs_are_marked() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.meet();
    world.sent(&to(DIRECT, Operation::New, answer("I wrote this"))).await;
    let robot = Person { is_bot: true, ..Person::new(77, "Robot") };
    world.server.write(Post::private(&robot, "beep"));
    world.server.write(Post::mention(CHANNEL, &Person::new(78, "Hook"), "by a webhook").webhook());
    let messages = world.messages(3).await;
    let authors: Vec<_> = messages.iter().map(|message| (message.author.id.as_str(), message.author.is_bot)).collect();
    assert_eq!(authors, [("11", false), ("77", true), ("78", true)]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_of_the_service_is_no_message_of_a_person() {
    let world = World::with(|config| config.servers = Servers::All).await;
    let receiving = world.receive().await;
    world.server.write(Post::to(CHANNEL, &ada(), "Ada has joined").kind(7));
    world.server.write(Post::to(CHANNEL, &ada(), "hello"));
    world.messages(1).await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_accepted_is_tried_again_in_order_and_the_connection_lives_on() {
    let world = World::new().await;
    world.server.set_heartbeat(std::time::Duration::from_millis(100));
    let receiving = world.receive().await;
    world.inbox.with(|contents| contents.failures = 3);
    world.server.write(Post::private(&ada(), "one"));
    world.server.write(Post::private(&ada(), "two"));
    world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["one", "two"]);
    world.until("heartbeats", |server| server.gateway_counts().2 > 2).await;
    assert_eq!(world.server.gateway_counts().0, 1, "one identification");
    receiving.stop().await;
}

#[tokio::test]
async fn an_edit_by_the_author_reaches_the_message_and_a_preview_of_a_link_is_no_edit() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let id = world.server.write(Post::mention(CHANNEL, &ada(), "helo"));
    world.messages(1).await;
    world.server.unfurl(CHANNEL, id);
    world.server.edit(CHANNEL, id, "<@4242> hello");
    world.inbox.until("the edit", |contents| !contents.edits.is_empty()).await;
    let edits = world.inbox.with(|contents| contents.edits.clone());
    assert_eq!(edits.len(), 1, "{edits:?}");
    assert_eq!((&edits[0].id, edits[0].text.as_str()), (&id.to_string(), "hello"));
    receiving.stop().await;
}

#[tokio::test]
async fn a_deleted_message_is_withdrawn_by_its_id() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let id = world.server.write(Post::private(&ada(), "never mind"));
    world.messages(1).await;
    world.server.delete(DIRECT, id);
    world.inbox.until("the deletion", |contents| contents.deletions == [id.to_string()]).await;
    receiving.stop().await;
}

#[tokio::test]
async fn messages_that_are_deleted_at_once_are_withdrawn() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let deleted = serde_json::json!({"ids": ["7", "8"], "channel_id": CHANNEL.to_string()});
    world.server.raw_event("MESSAGE_DELETE_BULK", &deleted);
    world.inbox.until("the deletions", |contents| contents.deletions == ["7", "8"]).await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_edit_of_the_bot_is_ignored() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let id = world.sent(&outgoing(Operation::New, answer("a"))).await;
    let edit = Operation::Edit(id.to_string());
    world.sent(&outgoing(edit, answer("b"))).await;
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert!(world.inbox.with(|contents| contents.edits.is_empty()));
    receiving.stop().await;
}

#[tokio::test]
async fn an_author_learns_that_a_message_was_refused_or_must_wait() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Refused("Too *long*.".to_owned())));
    let first = world.server.write(Post::private(&ada(), "hello"));
    let shown = world.shown(DIRECT, "Too \\*long\\*").await;
    assert_eq!(shown["referenced_message"]["id"], first.to_string(), "it is a reply");
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Busy("The queue is full.".to_owned())));
    world.server.write(Post::private(&ada(), "hello again"));
    world.shown(DIRECT, "Send the message again later.").await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_sticker_is_not_read_and_its_sender_learns_that() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.write(Post::to(CHANNEL, &ada(), "").sticker());
    world.server.write(Post::private(&ada(), "").sticker());
    world.shown(DIRECT, "cannot be read").await;
    assert!(world.server.messages(CHANNEL).len() == 1, "it is not for the bot");
    receiving.stop().await;
}

#[tokio::test]
async fn a_program_gets_no_reply_to_what_is_not_accepted() {
    let world = World::with(|config| config.max_download_bytes = 10).await;
    let receiving = world.receive().await;
    let robot = Person { is_bot: true, ..Person::new(77, "Robot") };
    world.server.write(Post::mention(CHANNEL, &robot, "").sticker());
    world.server.write(Post::private(&robot, "").sticker());
    world.server.write(Post::mention(CHANNEL, &robot, "large").file("a.txt", "more than ten bytes"));
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Refused("Too long.".to_owned())));
    world.server.write(Post::mention(CHANNEL, &robot, "long"));
    world.server.write(Post::private(&ada(), "hello"));
    world.shown(DIRECT, "Too long").await;
    let written =
        [CHANNEL, robot.direct()].map(|channel| world.server.messages(channel).into_iter().filter(is_own).count());
    assert_eq!(written, [0, 0]);
    receiving.stop().await;
}

#[tokio::test]
async fn an_event_of_an_unknown_form_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive().await;
    for data in [serde_json::json!(5), serde_json::json!({"id": 7, "author": []}), serde_json::json!(null)] {
        world.server.raw_event("MESSAGE_CREATE", &data);
        world.server.raw_event("INTERACTION_CREATE", &data);
        world.server.raw_event("SOMETHING_NEW", &data);
    }
    world.server.raw_text("no JSON");
    world.server.raw_text(r#"{"op":99,"d":null}"#);
    world.server.write(Post::private(&ada(), "hello"));
    world.messages(1).await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_command_that_is_received_twice_runs_once() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.meet();
    world.messages(1).await;
    let id = u64::MAX.to_string();
    let command = serde_json::json!({"id": id, "channel_id": DIRECT.to_string(), "type": 0, "content": "/status",
        "author": {"id": "11", "username": "ada"}});
    for _ in 0..2 {
        world.server.raw_event("MESSAGE_CREATE", &command);
    }
    world.server.write(Post::private(&ada(), "last"));
    world.messages(2).await;
    assert_eq!(world.inbox.with(|contents| contents.commands.len()), 1);
    receiving.stop().await;
}
