//! Threads are conversations.

use teamster_channel::{Address, Operation, Outgoing, Receipt};
use teamster_testkit::discord::{Fault, Post};

use crate::world::{CHANNEL, GUILD, World, ada, answer, outgoing, to};

fn address(thread: u64) -> Address {
    Address { chat: CHANNEL.to_string(), thread: thread.to_string() }
}

#[tokio::test]
async fn a_thread_has_the_chat_of_its_parent_and_needs_a_mention_if_the_bot_did_not_open_it() {
    let world = World::new().await;
    let receiving = world.receive().await;
    world.server.create_thread(CHANNEL, 600, &ada());
    world.server.write(Post::to(600, &ada(), "not for the bot"));
    world.server.write(Post::mention(600, &ada(), "hello"));
    let message = world.messages(1).await.remove(0);
    assert_eq!((message.text.as_str(), message.address), ("hello", address(600)));
    receiving.stop().await;
}

#[tokio::test]
async fn a_mention_opens_a_thread_whose_messages_need_no_mention() {
    let world = World::with(|config| config.threads = true).await;
    let receiving = world.receive().await;
    let id = world.server.write(Post::mention(CHANNEL, &ada(), "fix the\nbug"));
    assert_eq!(world.messages(1).await[0].address, address(id));
    world.until("a thread", |server| !server.channel(id).is_null()).await;
    let thread = world.server.channel(id);
    assert_eq!((&thread["name"], &thread["parent_id"]), (&"fix the bug".into(), &CHANNEL.to_string().into()));
    world.server.write(Post::to(id, &ada(), "and another one"));
    let message = world.messages(2).await.remove(1);
    assert_eq!((message.text.as_str(), message.is_addressed, message.address), ("and another one", true, address(id)));
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_that_no_rule_admits_opens_no_thread() {
    let world = World::with(|config| config.threads = true).await;
    let receiving = world.receive().await;
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Ignored));
    world.server.write(Post::mention(CHANNEL, &ada(), "let me in"));
    // Events are handled in order: when the command is answered, the message before it was handled.
    let command = world.server.slash(CHANNEL, "status", None, &ada());
    world.shown_to(command).await;
    assert_eq!(world.server.count("openThread"), 0);
    receiving.stop().await;
}

#[tokio::test]
async fn a_thread_that_was_not_opened_before_a_crash_is_opened_by_the_first_answer() {
    let world = World::with(|config| config.threads = true).await;
    let message = world.server.write(Post::mention(CHANNEL, &ada(), "hello"));
    let sent = Outgoing { address: address(message), ..outgoing(Operation::New, answer("Hi!")) };
    world.sent(&sent).await;
    assert_eq!(world.server.messages(message).len(), 1);
    world.shown(message, "Hi!").await;
    let again = Outgoing { key: "other".to_owned(), ..sent };
    world.sent(&again).await;
    assert_eq!(world.server.count("openThread"), 1);
}

#[tokio::test]
async fn a_thread_that_is_open_already_is_used() {
    let world = World::with(|config| config.threads = true).await;
    let receiving = world.receive().await;
    // The first call opens it, and its answer is lost.
    world.server.fail("openThread", &Fault::CutAfter, 1);
    let id = world.server.write(Post::mention(CHANNEL, &ada(), "hello"));
    world.messages(1).await;
    let sent = Outgoing { address: address(id), ..outgoing(Operation::New, answer("Hi!")) };
    world.sent(&sent).await;
    world.shown(id, "Hi!").await;
    receiving.stop().await;
}

#[tokio::test]
async fn without_the_permission_for_threads_people_learn_what_is_missing() {
    let world = World::with(|config| config.threads = true).await;
    world.server.set_permissions(GUILD, 1 << 10);
    let receiving = world.receive().await;
    world.server.write(Post::mention(CHANNEL, &ada(), "hello"));
    world.shown(CHANNEL, "Create Public").await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_direct_message_opens_no_thread() {
    let world = World::with(|config| config.threads = true).await;
    let receiving = world.receive().await;
    world.server.write(Post::private(&ada(), "hello"));
    assert_eq!(world.messages(1).await[0].address.thread, "");
    world.sent(&to(crate::world::DIRECT, Operation::New, answer("Hi!"))).await;
    assert_eq!(world.server.count("openThread"), 0);
    receiving.stop().await;
}
