//! The inbox decides who may press a button, and the person who presses it learns what happened.

use serde_json::json;
use teamster_channel::{Channel as _, Content, Operation, RateScope, SendError, SendOutcome};
use teamster_testkit::discord::{Fault, Person};

use crate::world::{CHANNEL, World, ada, answer, mallory, outgoing, prompt};

/// Sends a prompt, and returns the id of its message.
async fn ask(world: &World) -> u64 {
    world.inbox.with(|contents| {
        contents.open = vec!["x".repeat(64), "deny".to_owned(), "text".to_owned()];
        contents.approvers = vec!["11".to_owned()];
    });
    world.sent(&outgoing(Operation::New, prompt())).await
}

/// The answer to a second acknowledgment of an interaction.
fn acknowledged_before() -> Fault {
    Fault::Error { status: 400, code: 40_060, message: "Interaction has already been acknowledged.".to_owned() }
}

/// Presses a button, and returns what the person sees.
async fn press(world: &World, message: u64, button: &str, by: &Person) -> String {
    let interaction = world.server.press(CHANNEL, message, button, by);
    world.shown_to(interaction).await
}

#[tokio::test]
async fn a_prompt_has_a_row_of_buttons_with_styles() {
    let world = World::new().await;
    let message = ask(&world).await;
    let shown = world.shown(CHANNEL, "May I?").await;
    assert_eq!(shown["id"], message.to_string());
    let buttons = shown["components"][0]["components"].as_array().unwrap();
    let styles: Vec<_> = buttons.iter().map(|button| button["style"].clone()).collect();
    assert_eq!(styles, [json!(3), json!(4), json!(2)]);
}

#[tokio::test]
async fn a_button_of_a_stranger_is_refused_and_the_request_stays_open() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    assert_eq!(press(&world, message, "Allow", &mallory()).await, "You must not answer this request.");
    let interaction = world.server.press(CHANNEL, message, "Allow", &ada());
    world.inbox.until("the answers", |contents| contents.answers.len() == 2).await;
    assert_eq!(world.server.acknowledged(interaction), Some(6));
    let answers = world.inbox.with(|contents| contents.answers.clone());
    assert_eq!((answers[0].author.id.as_str(), answers[1].author.id.as_str()), ("99", "11"));
    assert_eq!((&answers[1].token, &answers[1].address.chat), (&"x".repeat(64), &CHANNEL.to_string()));
    receiving.stop().await;
}

#[tokio::test]
async fn a_button_of_a_closed_request_is_removed() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    world.server.press(CHANNEL, message, "Deny", &ada());
    world.inbox.until("the answer", |contents| contents.answers.len() == 1).await;
    assert_eq!(press(&world, message, "Allow", &ada()).await, "This request is closed.");
    assert_eq!(world.shown(CHANNEL, "May I?").await["components"], json!([]));
    assert_eq!(press(&world, message, "forged", &ada()).await, "This request is closed.", "an id of another origin");
    receiving.stop().await;
}

#[tokio::test]
async fn a_closed_prompt_gets_its_text_and_loses_its_buttons() {
    let world = World::new().await;
    let message = ask(&world).await;
    let closed = Content::PromptClosed { id: "p".to_owned(), text: "Allowed.".to_owned(), outcome: "allow".to_owned() };
    world.sent(&outgoing(Operation::Edit(message.to_string()), closed)).await;
    assert_eq!(world.shown(CHANNEL, "Allowed.").await["components"], json!([]));
}

#[tokio::test]
async fn a_question_is_answered_in_a_form_and_a_stranger_cannot_answer_it() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    for (person, text, expected) in [
        (mallory(), "red", "You must not answer this request."),
        (ada(), "blue", "Done."),
        (ada(), "green", "This request is closed."),
    ] {
        let opened = world.server.press(CHANNEL, message, "Answer", &person);
        world.until("a form", |server| server.acknowledged(opened) == Some(9)).await;
        let submitted = world.server.submit(opened, text, &person).unwrap();
        assert_eq!(world.shown_to(submitted).await, expected);
    }
    let answer = world.inbox.with(|contents| contents.answers[1].clone());
    assert_eq!((answer.token.as_str(), answer.message.as_deref()), ("text", Some("blue")));
    receiving.stop().await;
}

#[tokio::test]
async fn a_press_is_answered_also_if_the_connection_was_resumed_in_between() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    world.server.cut_connections();
    world.until("the cut", |server| server.connections() == 0).await;
    let interaction = world.server.press(CHANNEL, message, "Allow", &ada());
    world.inbox.until("the answer", |contents| contents.answers.len() == 1).await;
    assert_eq!(world.server.acknowledged(interaction), Some(6));
    receiving.stop().await;
}

#[tokio::test]
async fn a_press_and_a_command_are_answered_in_time_while_the_whole_bot_must_wait() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    world.server.fail("createMessage", &Fault::RateLimit { after_ms: 60_000, is_global: true }, 1);
    let limited = world.channel.send(&outgoing(Operation::New, answer("later"))).await;
    assert!(matches!(limited, SendOutcome::NotSent(SendError::Later { scope: RateScope::Channel, .. })), "{limited:?}");
    assert_eq!(press(&world, message, "Allow", &mallory()).await, "You must not answer this request.");
    let command = world.server.slash(CHANNEL, "status", None, &ada());
    assert_eq!(world.shown_to(command).await, "**status** done");
    receiving.stop().await;
}

#[tokio::test]
async fn a_press_that_was_acknowledged_before_a_crash_has_its_effect_afterwards() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    world.server.fail("acknowledge", &acknowledged_before(), 1);
    world.server.press(CHANNEL, message, "Allow", &ada());
    world.inbox.until("the answer", |contents| contents.answers.len() == 1).await;
    receiving.stop().await;
}

#[tokio::test]
async fn a_form_that_was_acknowledged_before_a_crash_has_its_effect_afterwards() {
    let world = World::new().await;
    let receiving = world.receive().await;
    let message = ask(&world).await;
    let opened = world.server.press(CHANNEL, message, "Answer", &ada());
    world.until("a form", |server| server.acknowledged(opened) == Some(9)).await;
    world.server.fail("acknowledge", &acknowledged_before(), 1);
    world.server.submit(opened, "blue", &ada()).unwrap();
    world.inbox.until("the answer", |contents| contents.answers.len() == 1).await;
    assert_eq!(world.inbox.with(|contents| contents.answers[0].message.clone()).as_deref(), Some("blue"));
    receiving.stop().await;
}
