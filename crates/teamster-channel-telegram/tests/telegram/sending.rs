//! What people see.

use teamster_channel::{Address, Channel as _, Content, Operation, Outgoing, SendError, SendOutcome};
use teamster_testkit::telegram::{Fault, Post};

use crate::world::{GROUP, World, ada, answer, outgoing};

/// Sends, and returns the id of the message.
async fn sent(world: &World, outgoing: &Outgoing) -> String {
    match world.channel.send(outgoing).await {
        SendOutcome::Sent(delivered) => delivered.message_id.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_is_shown_with_entities_without_previews_and_without_mentions() {
    let world = World::new().await;
    world.meet();
    let text = "**Hi** @ada, see [this](https://e.org):\n\n```rust\nlet x = \"<&>\";\n```";
    sent(&world, &outgoing(Operation::New, answer(text))).await;
    let shown = world.shown(11, "Hi").await;
    assert_eq!(shown["text"], "Hi @\u{2060}ada, see this:\n\nlet x = \"<&>\";");
    let kinds: Vec<_> = shown["entities"].as_array().unwrap().iter().map(|entity| entity["type"].clone()).collect();
    assert_eq!(kinds, ["bold", "text_link", "pre"]);
    let call = world.server.calls().pop().unwrap();
    assert_eq!(call.parameters["link_preview_options"]["is_disabled"], true);
}

#[tokio::test]
async fn a_text_of_the_largest_length_is_sent_whatever_its_markup_is() {
    let world = World::new().await;
    world.meet();
    for text in
        ["😀".repeat(2_048), "**b** ".repeat(682), "@name ".repeat(682), "- x\n".repeat(1_024), "`c` ".repeat(1_024)]
    {
        let text = answer(&text);
        sent(&world, &outgoing(Operation::New, text)).await;
    }
}

#[tokio::test]
async fn an_edit_replaces_the_text_and_the_same_edit_counts_as_sent() {
    let world = World::new().await;
    world.meet();
    let id = sent(&world, &outgoing(Operation::New, Content::Progress { text: "…".to_owned() })).await;
    for _ in 0..2 {
        let edited = sent(&world, &outgoing(Operation::Edit(id.clone()), answer("*done*"))).await;
        assert_eq!(edited, id);
    }
    assert_eq!(world.shown(11, "done").await["message_id"].to_string(), id);
    assert_eq!(world.server.messages(11).len(), 2);
}

#[tokio::test]
async fn an_edit_of_a_message_that_is_not_there_is_gone_and_its_deletion_is_done() {
    let world = World::new().await;
    world.meet();
    let id = sent(&world, &outgoing(Operation::New, answer("x"))).await;
    for _ in 0..2 {
        let deleted = world.channel.send(&outgoing(Operation::Delete(id.clone()), answer("x"))).await;
        assert!(matches!(deleted, SendOutcome::Sent(_)), "{deleted:?}");
    }
    for id in [id.as_str(), "999", "no number"] {
        let edited = world.channel.send(&outgoing(Operation::Edit(id.to_owned()), answer("y"))).await;
        assert!(matches!(edited, SendOutcome::NotSent(SendError::Gone(_))), "{edited:?}");
    }
    let other = world.channel.send(&outgoing(Operation::Edit("1".to_owned()), answer("y"))).await;
    assert!(matches!(other, SendOutcome::NotSent(SendError::Gone(_))), "a message of a person: {other:?}");
}

#[tokio::test]
async fn a_text_whose_entities_are_refused_is_sent_without_them() {
    let world = World::new().await;
    world.meet();
    let refused = || Fault::Error { code: 400, description: "Bad Request: can't parse entities: x".to_owned() };
    world.server.fail("sendMessage", &refused(), 1);
    let id = sent(&world, &outgoing(Operation::New, answer("**bold**"))).await;
    assert_eq!(world.shown(11, "bold").await["entities"], serde_json::json!([]));
    world.server.fail("editMessageText", &refused(), 1);
    sent(&world, &outgoing(Operation::Edit(id), answer("**bolder**"))).await;
    world.shown(11, "bolder").await;
}

#[tokio::test]
async fn a_topic_gets_its_messages_and_the_general_topic_has_no_number() {
    let world = World::new().await;
    world.server.create_group(GROUP, &[7]);
    for (thread, expected) in
        [("7", serde_json::json!(7)), ("", serde_json::Value::Null), ("1", serde_json::Value::Null)]
    {
        let address = Address { chat: GROUP.to_string(), thread: thread.to_owned() };
        world.channel.typing(&address).await;
        sent(&world, &Outgoing { address, ..outgoing(Operation::New, answer("x")) }).await;
        assert_eq!(world.server.messages(GROUP).pop().unwrap()["message_thread_id"], expected);
    }
    assert_eq!(world.server.calls().iter().filter(|call| call.method == "sendChatAction").count(), 3);
}

#[tokio::test]
async fn a_group_with_a_new_id_gets_its_messages_at_once_and_later() {
    let world = World::new().await;
    world.server.create_group(GROUP, &[]);
    world.server.migrate(GROUP, -1_000_500);
    let address = Address { chat: GROUP.to_string(), thread: String::new() };
    for _ in 0..2 {
        sent(&world, &Outgoing { address: address.clone(), ..outgoing(Operation::New, answer("moved")) }).await;
    }
    assert_eq!(world.server.messages(-1_000_500).len(), 2);
    let calls = world.server.calls();
    assert_eq!(calls.iter().filter(|call| call.method == "sendMessage").count(), 3, "the new id is remembered");
}

#[tokio::test]
async fn a_possible_repeat_is_marked() {
    let world = World::new().await;
    world.server.write(Post::private(&ada(), "hi"));
    sent(&world, &Outgoing { may_be_repeat: true, ..outgoing(Operation::New, answer("Hello.")) }).await;
    world.shown(11, "(possibly a repeat)\nHello.").await;
}
