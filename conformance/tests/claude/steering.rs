//! Messages that are sent while a turn of a session runs.

use std::fs::File;

use anyhow::{Context, Result, bail};
use serde_json::json;
use teamster::{Event, Sent};
use teamster_conformance::{TIMEOUT, TestEnv};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

/// A model that calls a tool, which ends when a file exists, and then answers.
async fn in_a_tool() -> Result<TestEnv> {
    let waits = json!({"command": "until [ -e go ]; do sleep 0.05; done; echo gone", "description": "Wait"});
    TestEnv::claude(Scenario::new().reply(Reply::new().tool("Bash", waits)).reply(Reply::new().text("Both received.")))
        .await
}

#[tokio::test]
async fn a_steering_message_reaches_the_model_after_the_running_tool() -> Result<()> {
    let env = in_a_tool().await?;
    let mut template = env.request("");
    template.permissions.allow = vec!["Bash".to_owned()];
    let session = env.open(template)?;
    let mut run = session.send("Wait for it.")?;
    run.until("the tool", |event| matches!(event, Event::ToolUse(_))).await?;
    let sent = session.handle().send_now("And hurry.");
    File::create(env.project().join("go"))?;
    let (sent, recording) = tokio::join!(tokio::time::timeout(TIMEOUT, sent), run.finish());
    let recording = recording?;
    assert!(matches!(sent??, Sent::Steered));
    assert_eq!(recording.result.text, "Both received.");
    let last = recording.requests.last().context("no request")?;
    // It is a system message that quotes the user.
    let mut texts = last.messages.iter().flat_map(Message::texts);
    assert!(texts.any(|text| text.contains("And hurry.")), "{:?}", last.messages.last());
    session.close().await
}

#[tokio::test]
async fn a_steering_message_that_comes_too_late_is_the_next_turn() -> Result<()> {
    let scenario = Reply::from_fn(|request: &ModelRequest| match request.prompts().last() {
        Some(&"One.") => Reply::new().text("Only ").gate_before("more").text("the first."),
        Some(&"Two.") => Reply::new().text("The second."),
        _ => Reply::new().text("The third."),
    });
    let env = TestEnv::claude(scenario).await?;
    let session = env.open(env.request(""))?;
    let first = session.send("One.")?;
    env.provider().gate("more").wait_reached(TIMEOUT).await?;
    let third = session.send("Three.")?;
    let end = async {
        env.provider().gate("more").open();
        first.finish().await
    };
    let (sent, first) = tokio::join!(tokio::time::timeout(TIMEOUT, session.handle().send_now("Two.")), end);
    assert_eq!(first?.result.text, "Only the first.");
    let Sent::Turn(second) = sent?? else { bail!("it was received in a turn that had ended") };
    assert_eq!(second.result().await.unwrap().text, "The second.");
    let third = third.finish().await?;
    assert_eq!(third.result.text, "The third.");
    let last = third.requests.last().context("no request")?;
    let prompts = last.messages.iter().filter(|message| message.is_prompt()).flat_map(Message::texts);
    let prompts: Vec<_> = prompts.filter(|text| ["One.", "Two.", "Three."].contains(text)).collect();
    assert_eq!(prompts, ["One.", "Two.", "Three."]);
    session.close().await
}
