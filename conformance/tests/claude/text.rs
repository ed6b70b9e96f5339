//! Text, reasoning and usage of an answer.

use anyhow::Result;
use teamster::Event;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::{AgentInterface, OutputMode};
use teamster_conformance::{TIMEOUT, TestEnv};
use teamster_testkit::provider::{Reply, Stop, Usage};

use crate::{numbers, usage_of};

#[tokio::test]
async fn the_one_shot_form_gives_the_same_answer() -> Result<()> {
    let words = ["chunk 1. ", "chunk 2. ", "chunk 3."];
    let env = TestEnv::claude(Reply::new().text_deltas(words)).await?;
    let mut request = env.request("Count.");
    request.interface = AgentInterface::Exec;
    let recording = env.run(request).await?;
    assert!(recording.texts().len() > 1, "{:?}", recording.texts());
    assert_eq!(recording.result.text, words.concat());
    assert_eq!(recording.init()?.agent, "claude");
    assert!(recording.requests[0].prompts().contains(&"Count."));
    Ok(())
}

#[tokio::test]
async fn init_is_the_first_event() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Hello.")).await?;
    let recording = env.run(env.request("Hi.")).await?;
    let init = recording.init()?;
    assert_eq!(init.agent, "claude");
    assert_eq!(init.agent_version.as_deref(), Some("2.1.197"));
    assert_eq!(init.cwd, Some(env.project().canonicalize()?));
    assert!(init.tools.as_ref().is_some_and(|tools| tools.iter().any(|tool| tool == "Bash")));
    assert_eq!(Some(&init.session_id), recording.result.session_id.as_ref());
    assert!(matches!(recording.events.first(), Some(Event::Init(_))));
    Ok(())
}

#[tokio::test]
async fn thinking_is_separate_from_text() -> Result<()> {
    let reply = Reply::new().thinking("The answer must be even.").text("It is 42.");
    let env = TestEnv::claude(reply).await?;
    let recording = env.run(env.request("What is it?")).await?;
    assert_eq!(recording.thinking(), "The answer must be even.");
    assert_eq!(recording.result.text, "It is 42.");
    Ok(())
}

#[tokio::test]
async fn the_result_has_the_providers_tokens_and_cost() -> Result<()> {
    let usage = Usage { input: 1_000, cache_read: 2_000, cache_write: 4_000, output: 8_000 };
    let env = TestEnv::claude(Reply::new().text("Expensive.").usage(usage)).await?;
    let mut request = env.request("Say something.");
    request.model = Some("claude-sonnet-4-5".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    assert_eq!(usage_of(&recording.result), Some(usage));
    // The vendor's prices in dollars per million tokens: input 3, cache read 0.30, cache write 3.75, output 15.
    let cost = recording.result.total_cost_usd.unwrap_or_default();
    let expected = (1_000.0 * 3.0 + 2_000.0 * 0.3 + 4_000.0 * 3.75 + 8_000.0 * 15.0) / 1e6;
    assert!((cost - expected).abs() < 1e-9, "{cost} instead of {expected}");
    assert_eq!(recording.result.model.as_deref(), Some("claude-sonnet-4-5"));
    Ok(())
}

#[tokio::test]
async fn messages_mode_emits_each_message_whole_and_once() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text_by(3, "A text of many small deltas.")).await?;
    let mut request = env.request("TestSession.");
    request.output = OutputMode::Messages;
    let recording = env.run(request).await?;
    let texts: Vec<&str> = recording.texts().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(texts, ["A text of many small deltas."]);
    assert_eq!(recording.result.text, "A text of many small deltas.");
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

#[tokio::test]
async fn two_blocks_of_text_are_both_in_the_result() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("First. ").text("Second.")).await?;
    let recording = env.run(env.request("TestSession.")).await?;
    assert_eq!(recording.result.text, "First. Second.");
    Ok(())
}

#[tokio::test]
async fn a_big_answer_is_whole_for_a_slow_consumer() -> Result<()> {
    // More than the 64 KiB of a pipe. At its exit, the CLI (2.1.197) drops what is not in the pipe.
    let text = numbers(60_000);
    let env = TestEnv::claude(Reply::new().text_by(1000, &text)).await?;
    for _ in 0..3 {
        let mut run = env.start(env.request("Everything."))?;
        run.until("the first delta", |event| matches!(event, Event::Text(_))).await?;
        // The slow consumer takes nothing until the CLI has exited.
        run.processes().wait_until_gone(TIMEOUT).await?;
        let recording = run.finish().await?;
        assert_eq!(recording.result.text.len(), text.len());
        assert!(recording.result.text == text, "the text differs");
        assert!(!recording.result.is_error);
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_cut_off_by_its_length_is_an_error_that_keeps_the_text() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("And then").stop(Stop::MaxTokens)).await?;
    let recording = env.run(env.request("Answer at length.")).await?;
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTokens));
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert!(recording.result.text.starts_with("And then"));
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_an_error_with_its_stop_reason() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("I cannot").stop(Stop::Refusal)).await?;
    let recording = env.run(env.request("Do it.")).await?;
    assert_eq!(recording.result.stop_reason, Some(StopReason::Refusal));
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert_eq!(recording.failure()?.retryable, Some(false));
    Ok(())
}
