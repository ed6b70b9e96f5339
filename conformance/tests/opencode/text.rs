//! Text, reasoning and usage of an answer.

use anyhow::Result;
use teamster::Event;
use teamster::event::{ErrorCode, StopReason, WarningCode};
use teamster::request::{AgentInterface, OutputMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Scenario, Stop, Usage};

use crate::{bash, full, reply, usage_of};

#[tokio::test]
async fn the_answer_is_emitted_once_and_whole() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Hello there, how are you?")).await?;
    let recording = env.run(env.request("Say hello.")).await?;
    let texts: Vec<&str> = recording.texts().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(texts.concat(), "Hello there, how are you?");
    assert_eq!(recording.result.text, "Hello there, how are you?");
    assert_eq!(recording.result.stop_reason, Some(StopReason::EndTurn));
    assert_eq!(recording.prompts(0)?, ["Say hello."]);
    // There is no request for a title.
    assert_eq!(recording.requests.len(), 1);
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn messages_are_emitted_when_they_are_complete() -> Result<()> {
    let env = TestEnv::opencode(reply().text_by(4, "Hello there, how are you?")).await?;
    let mut request = env.request("Say hello.");
    request.output = OutputMode::Messages;
    let recording = env.run(request).await?;
    let texts: Vec<&str> = recording.texts().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(texts, ["Hello there, how are you?"]);
    Ok(())
}

#[tokio::test]
async fn the_one_shot_form_emits_each_part_when_it_is_complete() -> Result<()> {
    let env = TestEnv::opencode(reply().text_by(4, "Hello there, how are you?")).await?;
    let mut request = env.request("Say hello.");
    request.interface = AgentInterface::Exec;
    let recording = env.run(request).await?;
    let texts: Vec<&str> = recording.texts().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(texts, ["Hello there, how are you?"]);
    assert_eq!(recording.result.exit_code, Some(0));
    assert_eq!(recording.requests.len(), 1);
    Ok(())
}

#[tokio::test]
async fn init_is_the_first_event() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Hello.")).await?;
    let recording = env.run(env.request("Hi.")).await?;
    let init = recording.init()?;
    assert_eq!(init.agent, "opencode");
    assert_eq!(Some(&init.session_id), recording.result.session_id.as_ref());
    assert!(matches!(recording.events.first(), Some(Event::Init(_))));
    Ok(())
}

#[tokio::test]
async fn thinking_is_separate_from_text() -> Result<()> {
    let env = TestEnv::opencode(reply().thinking("The answer must be even.").text("It is 42.")).await?;
    let recording = env.run(env.request("What is it?")).await?;
    assert_eq!(recording.thinking(), "The answer must be even.");
    assert_eq!(recording.result.text, "It is 42.");
    Ok(())
}

#[tokio::test]
async fn the_result_has_the_providers_tokens_and_cost() -> Result<()> {
    let usage = Usage { input: 1_000, cache_read: 2_000, cache_write: 0, output: 8_000 };
    let scenario = Scenario::new()
        .reply(reply().tool("bash", bash("true")).usage(usage))
        .reply(reply().text("Expensive.").usage(usage));
    let env = TestEnv::opencode(scenario).await?;
    let recording = env.run(full(env.request("Say something."))).await?;
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    assert_eq!(usage_of(&recording.result), Some(usage + usage));
    let cost = recording.result.total_cost_usd.unwrap_or_default();
    let expected = 2.0 * (1_000.0 * 3.0 + 2_000.0 * 0.3 + 8_000.0 * 15.0) / 1e6;
    assert!((cost - expected).abs() < 1e-9, "{cost} instead of {expected}");
    assert_eq!(recording.result.num_turns, Some(2));
    let usages = recording.events.iter().filter(|event| matches!(event, Event::Usage(_)));
    assert_eq!(usages.count(), 2);
    Ok(())
}

#[tokio::test]
async fn an_answer_cut_off_by_its_length_keeps_its_text() -> Result<()> {
    let env = TestEnv::opencode(reply().text("And then").stop(Stop::MaxTokens)).await?;
    let recording = env.run(env.request("Answer at length.")).await?;
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTokens));
    assert_eq!(recording.result.text, "And then");
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_an_error_with_its_stop_reason() -> Result<()> {
    let env = TestEnv::opencode(reply().text("I cannot").stop(Stop::Refusal)).await?;
    let recording = env.run(env.request("Do it.")).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Refusal));
    assert_eq!(recording.failure()?.retryable, Some(false));
    Ok(())
}

#[tokio::test]
async fn incomplete_answers_are_retried_a_limited_number_of_times() -> Result<()> {
    let env = TestEnv::opencode(reply().text("It breaks off").stop(Stop::Other(String::new()))).await?;
    let recording = env.run(env.request("Answer.")).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider));
    assert_eq!(recording.result.num_turns, Some(3));
    Ok(())
}

#[tokio::test]
async fn a_big_answer_is_whole() -> Result<()> {
    let text = crate::numbers(60_000);
    let env = TestEnv::opencode(reply().text_by(10_000, &text)).await?;
    let recording = env.run(env.request("Everything.")).await?;
    assert!(recording.result.text == text, "{} bytes instead of {}", recording.result.text.len(), text.len());
    Ok(())
}

#[tokio::test]
async fn batch_output_is_read_as_it_comes() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Hello.")).await?;
    let mut request = env.request("Hi.");
    request.output = OutputMode::Batch;
    let recording = env.run(request).await?;
    assert_eq!(recording.warnings(&WarningCode::OptionIgnored).len(), 0);
    assert_eq!(recording.result.text, "Hello.");
    Ok(())
}
