//! The inbox decides who may press a button, and the person who presses it learns what happened.

use teamster_channel::{Address, Channel as _, Content, Operation, Outgoing, SendOutcome};
use teamster_testkit::slack::{Fault, Person, Post};

use crate::world::{CHANNEL, World, ada, direct, meet, outgoing, prompt};

fn mallory() -> Person {
    Person::new("U0MALLORY", "Mallory")
}

/// Sends a prompt, and returns the time of its message.
async fn ask(world: &World, address: Address) -> String {
    world.inbox.with(|contents| {
        contents.open = vec!["x".repeat(43), "deny".to_owned(), "text".to_owned()];
        contents.approvers = vec!["U0ADA".to_owned()];
    });
    let question = Outgoing { address, ..outgoing(Operation::New, prompt()) };
    let SendOutcome::Sent(sent) = world.channel.send(&question).await else { panic!() };
    sent.message_id.unwrap()
}

#[tokio::test]
async fn a_button_of_a_stranger_is_refused_and_the_request_stays_open() {
    let world = World::new().await;
    let receiving = world.receive();
    let first = world.server.write(Post::to(CHANNEL, &ada(), "topic"));
    let ts = ask(&world, Address { chat: CHANNEL.to_owned(), thread: first.clone() }).await;
    let press = world.server.press(CHANNEL, &ts, "Allow", &mallory());
    world.until("a refusal", |server| server.responses(&press).is_some_and(|all| !all.is_empty())).await;
    let refusal = world.response(&press).await.remove(0);
    assert_eq!(refusal["text"], "You must not answer this request.");
    assert_eq!((&refusal["response_type"], &refusal["thread_ts"]), (&"ephemeral".into(), &first.clone().into()));
    let press = world.server.press(CHANNEL, &ts, "Allow", &ada());
    assert!(world.response(&press).await.is_empty(), "the message itself shows it");
    let answers = world.inbox.with(|contents| contents.answers.clone());
    assert_eq!((answers[0].author.id.as_str(), answers[1].author.id.as_str()), ("U0MALLORY", "U0ADA"));
    assert_eq!(answers[1].token, "x".repeat(43));
    assert_eq!(answers[1].address, Address { chat: CHANNEL.to_owned(), thread: first });
    receiving.stop().await;
}

#[tokio::test]
async fn a_press_on_a_closed_request_is_answered_and_keeps_its_recorded_decision() {
    let world = World::new().await;
    meet(&world);
    let receiving = world.receive();
    let ts = ask(&world, direct()).await;
    let chat = ada().direct();
    world.server.press(&chat, &ts, "Deny", &ada());
    world.inbox.until("the answer", |contents| contents.open.is_empty()).await;
    let late = world.server.press(&chat, &ts, "Allow", &ada());
    let closed = Content::PromptClosed { id: "p".to_owned(), text: "Denied.".to_owned(), outcome: "deny".to_owned() };
    assert!(matches!(world.channel.send(&outgoing(Operation::Edit(ts.clone()), closed)).await, SendOutcome::Sent(_)));
    let is_shown = |all: Vec<serde_json::Value>| all.iter().any(|one| one["text"] == "This request is closed.");
    world.until("an answer", |server| server.responses(&late).is_some_and(is_shown)).await;
    // A stop waits for what follows a press.
    receiving.stop().await;
    let shown = world.shown(&chat, "Denied.").await;
    assert_eq!(shown["ts"], ts);
    assert!(!shown["blocks"].to_string().contains("actions"), "{shown}");
    assert_eq!(world.server.calls().iter().filter(|call| call.method == "chat.update").count(), 1);
}

#[tokio::test]
async fn a_press_is_acknowledged_before_its_dialog_is_open() {
    let world = World::new().await;
    meet(&world);
    let receiving = world.receive();
    let ts = ask(&world, direct()).await;
    // The call is longer than the test waits.
    world.server.fail("views.open", &Fault::Hang, 1);
    let press = world.server.press(&ada().direct(), &ts, "Answer", &ada());
    assert!(world.response(&press).await.is_empty());
    receiving.crash().await;
}

#[tokio::test]
async fn a_button_of_another_app_is_nothing() {
    let world = World::new().await;
    meet(&world);
    let receiving = world.receive();
    let ts = ask(&world, direct()).await;
    let press = world.server.press(&ada().direct(), &ts, "another-action", &ada());
    assert!(world.response(&press).await.is_empty());
    assert!(world.inbox.with(|contents| contents.answers.is_empty()));
    receiving.stop().await;
}

#[tokio::test]
async fn a_closed_prompt_gets_its_text_and_loses_its_buttons() {
    let world = World::new().await;
    meet(&world);
    let ts = ask(&world, direct()).await;
    let closed = Content::PromptClosed { id: "p".to_owned(), text: "Allowed.".to_owned(), outcome: "allow".to_owned() };
    assert!(matches!(world.channel.send(&outgoing(Operation::Edit(ts), closed)).await, SendOutcome::Sent(_)));
    let shown = world.shown(&ada().direct(), "Allowed.").await;
    assert!(!shown["blocks"].to_string().contains("actions"), "{shown}");
}

#[tokio::test]
async fn a_question_is_answered_in_a_dialog_by_those_who_may() {
    let world = World::new().await;
    meet(&world);
    let receiving = world.receive();
    let ts = ask(&world, direct()).await;
    let press = world.server.press(&ada().direct(), &ts, "Answer", &ada());
    world.until("a dialog", |server| server.view(&press).is_some()).await;
    let sent = world.server.submit(&press, " red ", &mallory());
    let refused = world.response(&sent).await.remove(0);
    assert_eq!(refused["response_action"], "errors");
    assert_eq!(refused["errors"]["answer"], "You must not answer this request.");
    let sent = world.server.submit(&press, " blue ", &ada());
    assert!(world.response(&sent).await.is_empty(), "the dialog closes");
    let answer = world.inbox.with(|contents| contents.answers[1].clone());
    assert_eq!((answer.token.as_str(), answer.message.as_deref()), ("text", Some("blue")));
    assert_eq!(answer.address, direct());
    let sent = world.server.submit(&press, "green", &ada());
    assert_eq!(world.response(&sent).await[0]["errors"]["answer"], "This request is closed.");
    receiving.stop().await;
}
