//! What people see.

use teamster_channel::{Address, Channel as _, Content, Operation, Outgoing, SendError, SendOutcome, split};
use teamster_testkit::slack::{Fault, Post};

use crate::world::{CHANNEL, World, ada, answer, meet, outgoing};

/// Sends, and returns the time of the message.
async fn sent(world: &World, outgoing: &Outgoing) -> String {
    match world.channel.send(outgoing).await {
        SendOutcome::Sent(delivered) => delivered.message_id.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_is_shown_with_formatting_without_previews_and_without_mentions() {
    let world = World::new().await;
    meet(&world);
    let text = "**Hi** <!channel>, see [this](https://e.org):\n\n```rust\nlet x = \"<@U1>\";\n```";
    sent(&world, &outgoing(Operation::New, answer(text))).await;
    let shown = world.shown(&ada().direct(), "Hi").await;
    assert_eq!(shown["text"], "Hi &lt;!channel&gt;, see this:\n\nlet x = \"&lt;@U1&gt;\";");
    let elements = &shown["blocks"][0]["elements"];
    assert_eq!(elements[0]["elements"][0]["style"]["bold"], true);
    assert_eq!(elements[0]["elements"][1]["text"], " <!channel>, see ", "it is a text, which mentions no person");
    assert_eq!(elements[0]["elements"][2]["type"], "link");
    assert_eq!(elements[1]["type"], "rich_text_preformatted");
    let call = world.server.calls().pop().unwrap();
    assert_eq!(
        (&call.parameters["unfurl_links"], &call.parameters["unfurl_media"]),
        (&"false".into(), &"false".into())
    );
}

#[tokio::test]
async fn a_text_of_the_largest_length_is_sent_and_edited_whatever_its_characters_are() {
    let world = World::new().await;
    meet(&world);
    for text in ["&".repeat(3_000), "😀".repeat(3_000), "**b** ".repeat(500), "- x\n".repeat(750), "`c` ".repeat(750)]
    {
        let id = sent(&world, &outgoing(Operation::New, answer(&text))).await;
        sent(&world, &outgoing(Operation::Edit(id), answer(&text))).await;
    }
}

#[tokio::test]
async fn a_code_block_that_is_split_is_one_in_each_part() {
    let world = World::new().await;
    meet(&world);
    let code = format!("```rust\n{}```", "let x = \"<&>\";\n".repeat(400));
    let parts = split(&code, world.channel.capabilities().text_limit);
    assert!(parts.len() > 1);
    for part in parts {
        sent(&world, &outgoing(Operation::New, answer(&part))).await;
        let shown = world.server.messages(&ada().direct()).pop().unwrap();
        let elements = shown["blocks"][0]["elements"].as_array().unwrap();
        assert_eq!((elements.len(), &elements[0]["type"]), (1, &"rich_text_preformatted".into()));
    }
}

#[tokio::test]
async fn an_edit_replaces_the_text_and_the_same_edit_counts_as_sent() {
    let world = World::new().await;
    meet(&world);
    let id = sent(&world, &outgoing(Operation::New, Content::Progress { text: "…".to_owned() })).await;
    for _ in 0..2 {
        let edited = sent(&world, &outgoing(Operation::Edit(id.clone()), answer("*done*"))).await;
        assert_eq!(edited, id);
        assert_eq!(world.server.calls().pop().unwrap().parameters["parse"], "none", "no name becomes a mention");
    }
    assert_eq!(world.shown(&ada().direct(), "done").await["ts"], id);
    assert_eq!(world.server.messages(&ada().direct()).len(), 2);
}

#[tokio::test]
async fn an_edit_of_a_message_that_is_not_there_is_gone_and_its_deletion_is_done() {
    let world = World::new().await;
    meet(&world);
    let id = sent(&world, &outgoing(Operation::New, answer("x"))).await;
    for _ in 0..2 {
        let deleted = world.channel.send(&outgoing(Operation::Delete(id.clone()), answer("x"))).await;
        assert!(matches!(deleted, SendOutcome::Sent(_)), "{deleted:?}");
    }
    let of_person = world.server.write(Post::direct(&ada(), "mine"));
    for id in [id.as_str(), "999.9", &of_person] {
        let edited = world.channel.send(&outgoing(Operation::Edit(id.to_owned()), answer("y"))).await;
        assert!(matches!(edited, SendOutcome::NotSent(SendError::Gone(_))), "{edited:?}");
    }
}

#[tokio::test]
async fn a_text_whose_blocks_are_refused_is_sent_without_them() {
    let world = World::new().await;
    meet(&world);
    for code in ["invalid_blocks", "msg_blocks_too_long"] {
        let refused = Fault::Error { error: code.to_owned() };
        world.server.fail("chat.postMessage", &refused, 1);
        let id = sent(&world, &outgoing(Operation::New, answer("**bold** <!here>"))).await;
        let shown = world.shown(&ada().direct(), "bold &lt;!here&gt;").await;
        assert!(shown["blocks"].is_null(), "{shown}");
        world.server.fail("chat.update", &refused, 1);
        sent(&world, &outgoing(Operation::Edit(id), answer("**bolder**"))).await;
        world.shown(&ada().direct(), "bolder").await;
    }
}

#[tokio::test]
async fn a_message_is_sent_to_its_thread() {
    let world = World::new().await;
    let thread = world.server.write(Post::to(CHANNEL, &ada(), "topic"));
    for (thread, expected) in [(thread.as_str(), thread.clone().into()), ("", serde_json::Value::Null)] {
        let address = Address { chat: CHANNEL.to_owned(), thread: thread.to_owned() };
        sent(&world, &Outgoing { address, ..outgoing(Operation::New, answer("x")) }).await;
        assert_eq!(world.server.messages(CHANNEL).pop().unwrap()["thread_ts"], expected);
    }
}

#[tokio::test]
async fn a_possible_repeat_is_marked() {
    let world = World::new().await;
    meet(&world);
    sent(&world, &Outgoing { may_be_repeat: true, ..outgoing(Operation::New, answer("Hello.")) }).await;
    world.shown(&ada().direct(), "(possibly a repeat)\nHello.").await;
}
