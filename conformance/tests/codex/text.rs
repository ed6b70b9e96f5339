//! Text, reasoning and usage of an answer.

use anyhow::Result;
use teamster::Event;
use teamster::event::{ErrorCode, StopReason, UsageScope};
use teamster::request::{AgentInterface, OutputMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Stop, Usage};

use crate::{numbers, usage_of};

#[tokio::test]
async fn messages_mode_emits_an_answer_once_and_whole() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text_by(3, "A text of many small deltas.")).await?;
    for (output, mode, is_whole) in [
        (OutputMode::Stream, AgentInterface::Auto, false),
        (OutputMode::Messages, AgentInterface::Auto, true),
        (OutputMode::Batch, AgentInterface::Auto, true),
        (OutputMode::Stream, AgentInterface::Exec, true),
    ] {
        let mut request = env.request("TestSession.");
        (request.output, request.interface) = (output, mode);
        let recording = env.run(request).await?;
        let texts: Vec<&str> = recording.texts().iter().map(|delta| delta.text.as_str()).collect();
        assert_eq!(texts.concat(), "A text of many small deltas.");
        assert_eq!(texts.len() == 1, is_whole, "{texts:?}");
        assert_eq!(recording.result.text, "A text of many small deltas.");
        assert!(!recording.result.is_error);
        assert_eq!(recording.result.exit_code, Some(0));
        assert_eq!(recording.requests.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn init_is_emitted_before_the_model_has_answered() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Hello.").gate_before("answer")).await?;
    let mut run = env.start(env.request("Hi."))?;
    run.until("init", |event| matches!(event, Event::Init(_))).await?;
    env.provider().gate("answer").open();
    let recording = run.finish().await?;
    let init = recording.init()?;
    assert_eq!(init.agent, "codex");
    assert_eq!(Some(&init.session_id), recording.result.session_id.as_ref());
    assert!(matches!(recording.events.first(), Some(Event::Init(_))));
    Ok(())
}

#[tokio::test]
async fn thinking_is_separate_from_text() -> Result<()> {
    let env = TestEnv::codex(Reply::new().thinking("The answer must be even.").text("It is 42.")).await?;
    let recording = env.run(env.request("What is it?")).await?;
    assert_eq!(recording.thinking(), "The answer must be even.");
    assert_eq!(recording.result.text, "It is 42.");
    Ok(())
}

#[tokio::test]
async fn the_result_has_the_providers_tokens() -> Result<()> {
    let usage = Usage { input: 1_000, cache_read: 2_000, cache_write: 4_000, output: 8_000 };
    let env = TestEnv::codex(Reply::new().text("Expensive.").usage(usage)).await?;
    let recording = env.run(env.request("Say something.")).await?;
    assert_eq!(usage_of(&recording.result), Some(usage));
    assert_eq!(recording.result.usage_scope, Some(UsageScope::Run));
    Ok(())
}

#[tokio::test]
async fn two_messages_are_both_in_the_text_and_the_last_one_is_final() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("First. ").text("Second.")).await?;
    let recording = env.run(env.request("TestSession.")).await?;
    assert_eq!(recording.result.text, "First. \n\nSecond.");
    assert_eq!(recording.result.final_text, "Second.");
    Ok(())
}

#[tokio::test]
async fn a_big_answer_is_whole_in_one_line() -> Result<()> {
    let text = numbers(200_000);
    let env = TestEnv::codex(Reply::new().text_by(10_000, &text)).await?;
    let recording = env.run(env.request("Everything.")).await?;
    assert!(recording.result.text == text, "the text differs, with {} bytes", recording.result.text.len());
    Ok(())
}

#[tokio::test]
async fn an_answer_cut_off_by_its_length_is_an_error_that_keeps_the_text() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("And then").stop(Stop::MaxTokens)).await?;
    let recording = env.run(env.request("Answer at length.")).await?;
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTokens));
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert_eq!(recording.failure()?.retryable, Some(false));
    assert_eq!(recording.result.text, "And then");
    Ok(())
}

#[tokio::test]
async fn an_empty_answer_is_not_a_success() -> Result<()> {
    let env = TestEnv::codex(Reply::new()).await?;
    let recording = env.run(env.request("TestSession.")).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert_eq!(recording.result.exit_code, Some(0), "the agent reports a success");
    Ok(())
}
