//! What people see.

use teamster_channel::{Address, Channel as _, Content, Operation, Outgoing, SendError, SendOutcome};
use teamster_testkit::discord::{Fault, Post};

use crate::world::{CHANNEL, World, ada, answer, outgoing};

#[tokio::test]
async fn an_answer_is_shown_as_markdown_without_previews_and_notifies_no_person() {
    let world = World::new().await;
    let text = "**Hi** @everyone <@11> <@&501>, see [this](https://e.org):\n\n```rust\nlet x = \"<&>\";\n```";
    world.sent(&outgoing(Operation::New, answer(text))).await;
    let shown = world.shown(CHANNEL, "Hi").await;
    assert_eq!(shown["content"], text);
    assert_eq!(
        (&shown["mention_everyone"], &shown["mentions"], &shown["flags"]),
        (&false.into(), &serde_json::json!([]), &4.into())
    );
    assert_eq!(shown["mention_roles"], serde_json::json!([]));
}

#[tokio::test]
async fn a_text_of_the_largest_length_is_sent_and_one_without_characters_is_visible() {
    let world = World::new().await;
    for text in ["😀".repeat(1_000), "x".repeat(2_000), " \n\u{200b}".to_owned()] {
        let message = Outgoing { key: text.clone(), ..outgoing(Operation::New, answer(&text)) };
        world.sent(&message).await;
    }
    assert_eq!(world.server.messages(CHANNEL).last().unwrap()["content"], "…");
}

#[tokio::test]
async fn an_edit_replaces_the_text_and_the_same_edit_counts_as_sent() {
    let world = World::new().await;
    let id = world.sent(&outgoing(Operation::New, Content::Progress { text: "…".to_owned() })).await;
    for _ in 0..2 {
        let edited = world.sent(&outgoing(Operation::Edit(id.to_string()), answer("*done*"))).await;
        assert_eq!(edited, id);
    }
    assert_eq!(world.shown(CHANNEL, "done").await["id"], id.to_string());
    assert_eq!(world.server.messages(CHANNEL).len(), 1);
    let call = world.server.calls().pop().unwrap();
    assert_eq!(call.body["allowed_mentions"], serde_json::json!({"parse": []}), "an edit notifies no person");
}

#[tokio::test]
async fn an_edit_of_a_message_that_is_not_there_or_too_old_is_gone_and_its_deletion_is_done() {
    let world = World::new().await;
    let id = world.sent(&outgoing(Operation::New, answer("x"))).await.to_string();
    let old = Fault::Error { status: 400, code: 30_046, message: "Maximum number of edits".to_owned() };
    world.server.fail("editMessage", &old, 1);
    let edited = world.channel.send(&outgoing(Operation::Edit(id.clone()), answer("y"))).await;
    assert!(matches!(edited, SendOutcome::NotSent(SendError::Gone(_))), "too old: {edited:?}");
    for _ in 0..2 {
        let deleted = world.channel.send(&outgoing(Operation::Delete(id.clone()), answer("x"))).await;
        assert!(matches!(deleted, SendOutcome::Sent(_)), "{deleted:?}");
    }
    let foreign = world.server.write(Post::to(CHANNEL, &ada(), "mine")).to_string();
    for id in [id.as_str(), "999", "no number", &foreign] {
        let edited = world.channel.send(&outgoing(Operation::Edit(id.to_owned()), answer("y"))).await;
        assert!(matches!(edited, SendOutcome::NotSent(SendError::Gone(_))), "{id}: {edited:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_sent_twice_is_shown_once() {
    let world = World::new().await;
    let message = outgoing(Operation::New, answer("Hello."));
    let first = world.sent(&message).await;
    assert_eq!(world.sent(&message).await, first);
    let other = Outgoing { key: "another".to_owned(), ..message };
    assert_ne!(world.sent(&other).await, first, "another part with the same text is another message");
    assert_eq!(world.server.messages(CHANNEL).len(), 2);
}

#[tokio::test]
async fn a_possible_repeat_is_marked() {
    let world = World::new().await;
    world.sent(&Outgoing { may_be_repeat: true, ..outgoing(Operation::New, answer("Hello.")) }).await;
    world.shown(CHANNEL, "*(possibly a repeat)*\nHello.").await;
}

#[tokio::test]
async fn typing_is_shown_in_the_thread() {
    let world = World::new().await;
    world.server.create_thread(CHANNEL, 600, &ada());
    world.channel.typing(&Address { chat: CHANNEL.to_string(), thread: "600".to_owned() }).await;
    let call = world.server.calls().pop().unwrap();
    assert_eq!((call.route.as_str(), call.path.as_str()), ("typing", "channels/600/typing"));
}
