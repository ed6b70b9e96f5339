//! The inbox decides who may press a button, and the person who presses it learns what happened.

use teamster_channel::{Channel as _, Content, Operation, SendOutcome};
use teamster_testkit::telegram::{Person, Post};

use crate::world::{LIMIT, World, ada, outgoing, prompt};

/// Sends a prompt, and returns the id of its message.
async fn ask(world: &World) -> i64 {
    world.meet();
    world.inbox.with(|contents| {
        contents.open = vec!["x".repeat(43), "deny".to_owned(), "text".to_owned()];
        contents.approvers = vec!["11".to_owned()];
    });
    let SendOutcome::Sent(sent) = world.channel.send(&outgoing(Operation::New, prompt())).await else { panic!() };
    sent.message_id.unwrap().parse().unwrap()
}

/// Presses a button, and returns what the person sees.
async fn press(world: &World, message: i64, button: &str, by: &Person) -> String {
    let query = world.server.press(11, message, button, by);
    let in_time = world.server.wait_until(LIMIT, |server| server.answer_to(&query).is_some()).await;
    assert!(in_time, "the press gets an answer");
    world.server.answer_to(&query).unwrap()
}

#[tokio::test]
async fn a_button_of_a_stranger_is_refused_and_the_request_stays_open() {
    let world = World::new().await;
    let receiving = world.receive();
    let message = ask(&world).await;
    let stranger = Person::new(99, "Mallory");
    assert_eq!(press(&world, message, "Allow", &stranger).await, "You must not answer this request.");
    assert_eq!(press(&world, message, "Allow", &ada()).await, "Done.");
    let answers = world.inbox.with(|contents| contents.answers.clone());
    assert_eq!(answers.len(), 2);
    assert_eq!((answers[0].author.id.as_str(), answers[1].author.id.as_str()), ("99", "11"));
    assert_eq!((answers[1].token.as_str(), answers[1].address.chat.as_str()), ("x".repeat(43).as_str(), "11"));
    receiving.stop().await;
}

#[tokio::test]
async fn a_button_of_a_closed_request_is_removed() {
    let world = World::new().await;
    let receiving = world.receive();
    let message = ask(&world).await;
    press(&world, message, "Deny", &ada()).await;
    assert_eq!(press(&world, message, "Allow", &ada()).await, "This request is closed.");
    let has_none = |message: &serde_json::Value| message["reply_markup"].is_null();
    let in_time = world.server.wait_until(LIMIT, |server| server.messages(11).iter().all(has_none)).await;
    assert!(in_time, "the buttons are removed");
    assert_eq!(press(&world, message, "forged", &ada()).await, "This request is closed.", "data of another origin");
    receiving.stop().await;
}

#[tokio::test]
async fn a_closed_prompt_gets_its_text_and_loses_its_buttons() {
    let world = World::new().await;
    let message = ask(&world).await;
    let closed = Content::PromptClosed { id: "p".to_owned(), text: "Allowed.".to_owned(), outcome: "allow".to_owned() };
    let edit = outgoing(Operation::Edit(message.to_string()), closed);
    assert!(matches!(world.channel.send(&edit).await, SendOutcome::Sent(_)));
    let shown = world.shown(11, "Allowed.").await;
    assert!(shown["reply_markup"].is_null(), "{shown}");
}

#[tokio::test]
async fn a_question_is_answered_by_a_reply_and_a_later_reply_is_a_message() {
    let world = World::new().await;
    let receiving = world.receive();
    let message = ask(&world).await;
    assert_eq!(press(&world, message, "Answer", &ada()).await, "Reply to this message with your answer.");
    let mallory = Person::new(99, "Mallory");
    world.server.write(Post::to(11, &mallory, "red").reply_to(message));
    world.shown(11, "You must not answer").await;
    world.server.write(Post::private(&ada(), "blue").reply_to(message));
    world.inbox.until("the answer", |contents| contents.answers.len() == 2).await;
    let answer = world.inbox.with(|contents| contents.answers[1].clone());
    assert_eq!((answer.token.as_str(), answer.message.as_deref()), ("text", Some("blue")));
    world.server.write(Post::private(&ada(), "and green").reply_to(message));
    world.inbox.until("a message", |contents| contents.messages.iter().any(|one| one.text == "and green")).await;
    receiving.stop().await;
}

#[tokio::test]
async fn an_answer_to_a_question_is_no_message_after_a_crash_that_follows_it() {
    let world = World::new().await;
    let message = ask(&world).await;
    world.inbox.with(|contents| contents.hangs_after_accept = true);
    world.server.write(Post::private(&ada(), "blue").reply_to(message));
    world.server.write(Post::private(&ada(), "next"));
    let receiving = world.receive();
    // The receiving side stops at the message before those two, since it was not accepted yet.
    world.inbox.until("a message", |contents| contents.messages.len() == 1).await;
    receiving.crash().await;
    let receiving = world.receive();
    world.inbox.until("the next message", |contents| contents.messages.len() == 2).await;
    receiving.crash().await;
    assert_eq!(world.inbox.with(|contents| contents.answers.len()), 1);
    world.inbox.with(|contents| contents.hangs_after_accept = false);
    let receiving = world.receive();
    world.confirmed().await;
    receiving.stop().await;
    assert_eq!(world.inbox.texts(), ["hi", "next"]);
}
