//! Each message is accepted once, whatever happens, and in the form that people meant.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use teamster_channel::{Address, Receipt};
use teamster_channel_slack::{Channels, Replies, SlackChannel};
use teamster_testkit::slack::{BOT_USER, Person, Post, TEAM};

use crate::world::{CHANNEL, World, ada, config, meet, mention};

#[tokio::test]
async fn a_direct_message_is_accepted_and_acknowledged_after_that() {
    let world = World::new().await;
    let receiving = world.receive();
    let ts = world.server.write(Post::direct(&ada(), "hello &amp; <https://e.org|e.org>"));
    let message = world.messages(1).await.remove(0);
    assert_eq!((message.text.as_str(), message.is_addressed), ("hello & https://e.org", true));
    assert_eq!((message.author.id.as_str(), message.author.name.as_str()), ("U0ADA", "Ada"));
    assert_eq!(message.ids, [format!("{TEAM}:{}:{ts}", ada().direct())]);
    assert_eq!(message.address, Address { chat: ada().direct(), thread: String::new() });
    world.acknowledged().await;
    receiving.stop().await;
}

#[tokio::test]
async fn what_was_written_before_the_start_is_received() {
    let world = World::new().await;
    world.server.write(Post::direct(&ada(), "early"));
    let receiving = world.receive();
    assert_eq!(world.messages(1).await[0].text, "early");
    receiving.stop().await;
}

#[tokio::test]
async fn a_mention_is_accepted_once_although_it_arrives_as_two_events() {
    let world = World::new().await;
    let receiving = world.receive();
    let ts = world.server.write(Post::to(CHANNEL, &ada(), &mention("hello")));
    let message = world.messages(1).await.remove(0);
    assert_eq!((message.text.as_str(), message.address.thread.as_str()), ("hello", ts.as_str()));
    world.acknowledged().await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_repeated_event_is_recognized_also_after_a_restart() {
    let world = World::new().await;
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    world.acknowledged().await;
    world.server.repeat_events();
    world.acknowledged().await;
    assert_eq!(world.inbox.with(|contents| contents.duplicates), 0, "it is known without the inbox");
    receiving.stop().await;
    let receiving = world.receive();
    world.server.repeat_events();
    world.inbox.until("the repeat", |contents| contents.duplicates == 1).await;
    world.acknowledged().await;
    assert_eq!(world.inbox.texts(), ["hello"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_crash_between_the_accept_and_the_acknowledgment_loses_and_doubles_nothing() {
    let world = World::new().await;
    world.server.set_ack_within(Duration::from_millis(100));
    world.inbox.with(|contents| contents.hangs_after_accept = true);
    world.server.write(Post::direct(&ada(), "one"));
    world.server.write(Post::direct(&ada(), "two"));
    let receiving = world.receive();
    world.messages(1).await;
    receiving.crash().await;
    assert_eq!(world.server.unacknowledged(), 2);
    world.inbox.with(|contents| contents.hangs_after_accept = false);
    let receiving = world.receive();
    world.messages(2).await;
    world.acknowledged().await;
    let mut texts = world.inbox.texts();
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_accepted_is_tried_again_in_order_and_acknowledged_once_it_is() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.failures = 2);
    let receiving = world.receive();
    for text in ["one", "two", "three"] {
        world.server.write(Post::direct(&ada(), text));
    }
    world.messages(3).await;
    assert_eq!(world.inbox.texts(), ["one", "two", "three"]);
    world.acknowledged().await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_event_that_comes_again_while_it_is_handled_is_handled_once() {
    let world = World::new().await;
    world.server.set_ack_within(Duration::from_millis(60));
    world.inbox.with(|contents| contents.failures = 1);
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "one"));
    world.messages(1).await;
    world.acknowledged().await;
    assert_eq!(world.inbox.with(|contents| contents.duplicates), 0);
    receiving.stop().await;
}

#[tokio::test]
async fn in_a_channel_only_messages_to_the_bot_are_accepted_and_its_threads_need_no_mention() {
    let world = World::new().await;
    let receiving = world.receive();
    let post = |text: &str| Post::to(CHANNEL, &ada(), text);
    world.server.write(post("not for the bot"));
    let first = world.server.write(post(&mention("start")));
    world.messages(1).await;
    world.acknowledged().await;
    world.server.write(post("and now?").thread(&first));
    world.server.write(post("<@U0BOB> and you?").thread(&first));
    let other = world.server.write(post("another topic"));
    world.server.write(post("not for the bot").thread(&other));
    world.server.write(post(&mention("last")).thread(&other));
    let messages = world.messages(3).await;
    assert_eq!(world.inbox.texts(), ["start", "and now?", "last"]);
    let threads: Vec<_> = messages.iter().map(|message| message.address.thread.as_str()).collect();
    assert_eq!(threads, [&first, &first, &other]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_thread_of_the_bot_is_known_after_a_restart() {
    let world = World::new().await;
    let receiving = world.receive();
    let first = world.server.write(Post::to(CHANNEL, &ada(), &mention("start")));
    world.messages(1).await;
    world.acknowledged().await;
    receiving.stop().await;
    let channel = Arc::new(SlackChannel::new(config(&world.server)).unwrap());
    let other = World { channel, ..world };
    let receiving = other.receive();
    other.server.write(Post::to(CHANNEL, &ada(), "and now?").thread(&first));
    assert_eq!(other.messages(2).await[1].text, "and now?");
    receiving.stop().await;
}

#[tokio::test]
async fn with_replies_in_the_channel_it_is_one_conversation_and_a_thread_another_one() {
    let world = World::with(|config| config.replies = Replies::Channel).await;
    let receiving = world.receive();
    let first = world.server.write(Post::to(CHANNEL, &ada(), &mention("one")));
    world.server.write(Post::to(CHANNEL, &ada(), &mention("two")));
    world.server.write(Post::to(CHANNEL, &ada(), &mention("three")).thread(&first));
    let messages = world.messages(3).await;
    let threads: Vec<_> = messages.iter().map(|message| message.address.thread.as_str()).collect();
    assert_eq!(threads, ["", "", first.as_str()]);
    receiving.stop().await;
}

#[tokio::test]
async fn channels_can_be_off_or_whole() {
    for (channels, expected) in [(Channels::Off, vec!["direct"]), (Channels::All, vec!["plain", "mention", "direct"])] {
        let world = World::with(|config| config.channels = channels).await;
        let receiving = world.receive();
        world.server.write(Post::to(CHANNEL, &ada(), "plain"));
        world.server.write(Post::to(CHANNEL, &ada(), &mention("mention")));
        world.acknowledged().await;
        world.server.write(Post::direct(&ada(), "direct"));
        world.messages(expected.len()).await;
        assert_eq!(world.inbox.texts(), expected);
        receiving.stop().await;
    }
}

#[tokio::test]
async fn an_edit_and_a_deletion_by_the_author_reach_the_message_by_its_id() {
    let world = World::new().await;
    let receiving = world.receive();
    let ts = world.server.write(Post::direct(&ada(), "helo"));
    let id = world.messages(1).await.remove(0).ids.remove(0);
    world.server.edit(&ada().direct(), &ts, "hello");
    world.server.delete(&ada().direct(), &ts);
    world.inbox.until("the deletion", |contents| !contents.deletions.is_empty()).await;
    let (edits, deletions) = world.inbox.with(|contents| (contents.edits.clone(), contents.deletions.clone()));
    assert_eq!((edits[0].id.as_str(), edits[0].text.as_str()), (id.as_str(), "hello"));
    assert_eq!(deletions, [id]);
    receiving.stop().await;
}

#[tokio::test]
async fn a_message_of_the_bot_is_ignored_and_one_of_another_bot_is_one_of_a_program() {
    let world = World::new().await;
    let receiving = world.receive();
    meet(&world);
    world.messages(1).await;
    let own = json!({"type": "message", "channel": CHANNEL, "user": BOT_USER, "text": mention("loop"), "ts": "1.0"});
    world.server.raw_event(&own);
    let other = Person { is_bot: true, ..Person::new("U0ROBOT", "Robot") };
    world.server.write(Post::to(CHANNEL, &other, &mention("beep")));
    let messages = world.messages(2).await;
    assert_eq!(world.inbox.texts(), ["hi", "beep"]);
    assert!(messages[1].author.is_bot);
    receiving.stop().await;
}

#[tokio::test]
async fn an_author_learns_in_the_thread_that_a_message_was_refused_or_must_wait() {
    let world = World::new().await;
    let receiving = world.receive();
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Refused("Too *long*.".to_owned())));
    let ts = world.server.write(Post::to(CHANNEL, &ada(), &mention("hello")));
    let reply = world.shown(CHANNEL, "Too *long*.").await;
    assert_eq!(reply["thread_ts"], ts);
    world.inbox.with(|contents| contents.receipt = Some(Receipt::Busy("The queue is full.".to_owned())));
    world.server.write(Post::direct(&ada(), "hello again"));
    world.shown(&ada().direct(), "The queue is full. Send the message again later.").await;
    world.acknowledged().await;
    let replies = world.server.messages(CHANNEL).len();
    assert_eq!(replies, 2, "one reply for both events of the mention");
    receiving.stop().await;
}

#[tokio::test]
async fn an_author_whose_name_the_service_does_not_give_is_named_by_the_id() {
    let world = World::new().await;
    world.server.remove_scope("users:read");
    let receiving = world.receive();
    world.server.write(Post::direct(&ada(), "one"));
    world.server.write(Post::direct(&ada(), "two"));
    let messages = world.messages(2).await;
    assert_eq!(messages[1].author.name, "U0ADA");
    assert_eq!(world.server.calls().iter().filter(|call| call.method == "users.info").count(), 1, "it is asked once");
    receiving.stop().await;
}

#[tokio::test]
async fn an_event_or_an_envelope_of_an_unknown_form_blocks_nothing() {
    let world = World::new().await;
    let receiving = world.receive();
    for content in [json!(5), json!({"type": "message", "channel": CHANNEL, "ts": []}), json!({}), json!(null)] {
        world.server.raw_event(&content);
    }
    world.server.raw_envelope("new_kind", json!([1]));
    world.server.raw_envelope("interactive", json!({"type": "block_actions", "actions": 5}));
    world.server.write(Post::direct(&ada(), "hello"));
    world.messages(1).await;
    world.acknowledged().await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_thread_that_was_not_stored_is_stored_by_the_next_attempt() {
    let world = World::new().await;
    world.inbox.with(|contents| contents.state_failures = 1);
    let receiving = world.receive();
    let ts = world.server.write(Post::to(CHANNEL, &ada(), &mention("hello")));
    world.acknowledged().await;
    let states = world.inbox.with(|contents| contents.states.clone());
    assert!(states.values().any(|threads| *threads == json!([format!("{CHANNEL}:{ts}")])), "{states:?}");
    receiving.stop().await;
}
