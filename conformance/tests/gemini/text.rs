//! Text and usage of an answer.

use anyhow::Result;
use serde_json::json;
use teamster::request::OutputMode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario, Stop};

use crate::{full, request, shell, tool_then_text, usage, usage_of};

#[tokio::test]
async fn an_answer_is_streamed_unchanged() -> Result<()> {
    let text = "Grüße, 世界 👩\u{200d}💻 — \"quoted\"\n\ttabs and \\ backslashes\r\nend";
    let env = TestEnv::gemini(Scenario::new().reply(Reply::new().text(text).usage(usage()))).await?;
    let run = env.run(request(&env, "Hello?")).await?;
    assert_eq!(run.result.text, text);
    assert!(run.texts().len() > 3, "it is streamed");
    assert_eq!(run.init()?.model.as_deref(), Some("gemini-2.5-flash"));
    assert_eq!(run.result.model.as_deref(), Some("gemini-2.5-flash"));
    assert_eq!(run.prompts(0)?, ["Hello?"]);
    Ok(())
}

#[tokio::test]
async fn usage_separates_cached_tokens_and_includes_thoughts_in_the_output() -> Result<()> {
    let reply = Reply::new().thinking("Hm.").text("Done.").usage(usage());
    let scenario = tool_then_text("list_directory", json!({"dir_path": "."})).branch("think", reply);
    let env = TestEnv::gemini(scenario).await?;
    let run = env.run(request(&env, "Think. SCN:think")).await?;
    assert_eq!(usage_of(&run.result), Some(env.provider().usage_total()));
    assert_eq!(run.result.usage.as_ref().and_then(|usage| usage.reasoning_tokens), Some(10));
    assert_eq!(run.thinking(), "", "the CLI does not show thoughts");
    Ok(())
}

#[tokio::test]
async fn usage_of_a_batch_run_is_the_same() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().thinking("Hm.").text("Done.").usage(usage())).await?;
    let mut asked = request(&env, "Think.");
    asked.output = OutputMode::Batch;
    let run = env.run(asked).await?;
    assert_eq!(run.result.text, "Done.");
    assert_eq!(usage_of(&run.result), Some(env.provider().usage_total()));
    assert_eq!(run.result.usage.as_ref().and_then(|usage| usage.reasoning_tokens), Some(10));
    Ok(())
}

#[tokio::test]
async fn messages_mode_emits_the_message_after_a_tool_separately() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().text("I shall look first.").tool("run_shell_command", shell("echo seen")))
        .reply(Reply::new().text("I have seen it all."));
    let env = TestEnv::gemini(scenario).await?;
    let mut asked = full(&env, "Look.");
    asked.output = OutputMode::Messages;
    let run = env.run(asked).await?;
    let texts: Vec<_> = run.texts().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(texts, ["I shall look first.", "I have seen it all."]);
    assert_eq!(run.result.final_text, "I have seen it all.");
    Ok(())
}

#[tokio::test]
async fn text_of_a_failed_attempt_is_retracted_and_the_run_fails() -> Result<()> {
    let broken = Reply::new().text("Half of it").stop(Stop::Other(String::new()));
    let env = TestEnv::gemini(broken).await?;
    let run = env.run(request(&env, "Hello?")).await?;
    assert_eq!(run.result.exit_code, Some(0), "the CLI reports a success");
    assert_eq!(run.failure()?.code.as_str(), "PROVIDER");
    assert_eq!(run.failure()?.retryable, Some(true));
    assert_eq!(run.result.text, "");
    assert!(run.requests.len() > 1, "the CLI retried");
    Ok(())
}

#[tokio::test]
async fn a_long_answer_after_a_tool_loses_nothing_of_its_end() -> Result<()> {
    let numbers: Vec<String> = (0..40_000).map(|number| format!("{number:08}\n")).collect();
    let text = numbers.concat();
    let env = TestEnv::gemini(Reply::new().text_by(360_000, &text)).await?;
    for _ in 0..3 {
        let run = env.run(request(&env, "Go.")).await?;
        assert!(!run.result.is_error);
        assert_eq!(run.result.text.len(), text.len());
    }
    Ok(())
}
