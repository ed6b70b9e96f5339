//! Answers and tool calls: the same stream on every agent.

use anyhow::{Context as _, Result};
use teamster::event::{ErrorCode, Event};
use teamster::request::PermissionMode;
use teamster_conformance::{Agent, Recording, TIMEOUT, agent_tests};
use teamster_testkit::provider::{HttpError, Scenario};

const UNICODE: &str = "naïve 漢字 👩‍👩‍👧‍👦 \u{1f469}\u{1f3fd} e\u{301} \t\"quoted\" back\\slash \u{202e}rtl \u{2028}\n\n```rust\nfn main() {}\n```\nend.";

agent_tests! {
    an_answer_is_the_same_stream_on_every_agent: all,
    the_use_of_the_context_window_is_reported: [claude, codex, opencode],
    text_is_emitted_while_the_model_still_streams: all,
    every_character_arrives_unchanged_both_ways: all,
    a_long_answer_is_whole_on_every_agent: all,
    a_command_is_one_call_with_one_result_on_every_agent: all,
    text_around_a_command_keeps_its_place_on_every_agent: all,
    the_output_of_a_command_is_emitted_while_it_runs: [codex, opencode],
    a_command_that_fails_does_not_fail_the_run_on_any_agent: all,
    an_empty_answer_is_a_failure_on_every_agent: all,
    several_commands_at_once_each_have_their_result_on_every_agent: all,
    commands_in_turn_keep_their_order_on_every_agent: all,
    a_refused_key_is_the_same_error_on_every_agent: all,
}

/// Returns the types of the events. Consecutive events of one type count once.
fn kinds(recording: &Recording) -> Vec<&'static str> {
    let kind = |event: &Event| match event {
        Event::Init(_) => Some("init"),
        Event::Text(_) => Some("text"),
        Event::ToolUse(_) => Some("tool_use"),
        Event::ToolResult(_) => Some("tool_result"),
        Event::Error(_) => Some("error"),
        Event::Done(_) => Some("done"),
        _ => None,
    };
    let mut kinds: Vec<_> = recording.events.iter().filter_map(kind).collect();
    kinds.dedup();
    kinds
}

/// Runs a scenario with full permissions, and checks the usage.
async fn run(agent: &Agent, scenario: impl Into<Scenario>) -> Result<Recording> {
    let env = agent.test_env(scenario).await?;
    let mut request = agent.request(&env, "Go.");
    request.permissions.mode = PermissionMode::Full;
    let recording = env.run(request).await?;
    if !recording.result.is_error {
        agent.check_usage(env.provider().usage_total(), &recording.result)?;
    }
    Ok(recording)
}

/// A model that calls each command in a turn of its own, and then answers.
fn commands(agent: &Agent, commands: &[&str], answer: &str) -> Scenario {
    let calls = commands.iter().map(|command| {
        let (tool, input) = agent.shell(command);
        agent.reply().tool(tool, input)
    });
    calls.fold(Scenario::new(), Scenario::reply).reply(agent.reply().text(answer))
}

async fn an_answer_is_the_same_stream_on_every_agent(agent: &Agent) -> Result<()> {
    let recording = run(agent, agent.reply().text("Hello there, how are you?")).await?;
    assert_eq!(kinds(&recording), ["init", "text", "done"]);
    assert_eq!(recording.result.text, "Hello there, how are you?");
    assert_eq!(recording.result.final_text, recording.result.text);
    assert!(recording.result.session_id.is_some());
    Ok(())
}

async fn the_use_of_the_context_window_is_reported(agent: &Agent) -> Result<()> {
    let recording = run(agent, agent.reply().text("Hello.")).await?;
    let context = recording.result.context.context("no context")?;
    let last = recording.result.usage.context("no usage")?;
    // Claude Code also counts internal calls in its usage.
    assert!(context.used_tokens > 0 && context.used_tokens <= last.total(), "{context:?} {last:?}");
    // OpenCode 1.18.33 does not report the size.
    assert_eq!(context.window_tokens.is_some(), agent.name != "opencode", "{context:?}");
    Ok(())
}

async fn text_is_emitted_while_the_model_still_streams(agent: &Agent) -> Result<()> {
    let words: Vec<String> = (1..=20).map(|number| format!("chunk {number}, ")).collect();
    let env = agent.test_env(agent.reply().text_deltas(words.clone()).gate_after(19, "last")).await?;
    let mut run = env.start(agent.request(&env, "Count."))?;
    run.until("the first text", |event| matches!(event, Event::Text(_))).await?;
    env.provider().gate("last").wait_reached(TIMEOUT).await?;
    env.provider().gate("last").open();
    let recording = run.finish().await?;
    assert!(recording.texts().len() >= 5, "{} deltas", recording.texts().len());
    assert_eq!(recording.result.text.trim_end(), words.concat().trim_end());
    assert_eq!(recording.requests.len(), 1);
    Ok(())
}

async fn every_character_arrives_unchanged_both_ways(agent: &Agent) -> Result<()> {
    // Gemini CLI 0.61.0 treats U+2028 in the provider's output as a line end.
    let text = if agent.name == "gemini" { UNICODE.replace('\u{2028}', "") } else { UNICODE.to_owned() };
    let env = agent.test_env(agent.reply().text_by(1, &text)).await?;
    let recording = env.run(agent.request(&env, &text)).await?;
    assert_eq!(recording.result.text, text);
    assert_eq!(recording.prompts(0)?.last(), Some(&text.as_str()));
    Ok(())
}

async fn a_long_answer_is_whole_on_every_agent(agent: &Agent) -> Result<()> {
    let numbers: Vec<String> = (0..30_000).map(|number| format!("{number:09}\n")).collect();
    let long = numbers.concat();
    let recording = run(agent, agent.reply().text_by(4000, &long)).await?;
    // Some agents remove the last line end.
    assert!(recording.result.text.trim_end() == long.trim_end(), "{} bytes", recording.result.text.len());
    Ok(())
}

async fn a_command_is_one_call_with_one_result_on_every_agent(agent: &Agent) -> Result<()> {
    let recording = run(agent, commands(agent, &["printf 'sum-%s' 42"], "Done.")).await?;
    assert_eq!(kinds(&recording), ["init", "tool_use", "tool_result", "text", "done"]);
    let (tool, result) = recording.only_tool()?;
    assert_eq!(tool.kind.as_str(), "execute");
    assert!(result.output.contains("sum-42"), "{}", result.output.as_str());
    assert_ne!(result.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

async fn text_around_a_command_keeps_its_place_on_every_agent(agent: &Agent) -> Result<()> {
    let (tool, input) = agent.shell("echo here");
    let first = agent.reply().text("First this. ").tool(tool, input);
    let scenario = Scenario::new().reply(first).reply(agent.reply().text("Then that."));
    let recording = run(agent, scenario).await?;
    assert_eq!(kinds(&recording), ["init", "text", "tool_use", "tool_result", "text", "done"]);
    assert_eq!(recording.result.final_text, "Then that.");
    let messages: Vec<_> = recording.result.text.split("\n\n").map(str::trim).collect();
    assert_eq!(messages, ["First this.", "Then that."]);
    Ok(())
}

async fn the_output_of_a_command_is_emitted_while_it_runs(agent: &Agent) -> Result<()> {
    let command = "sleep 1; for line in 1 2 3; do echo line-$line; sleep 1; done";
    let recording = run(agent, commands(agent, &[command], "Done.")).await?;
    let (tool, result) = recording.only_tool()?;
    let parts: Vec<_> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolOutput(output) if output.tool_id == tool.tool_id => Some(output.text.as_str()),
            _ => None,
        })
        .collect();
    assert!(parts.len() >= 2, "{parts:?}");
    // The first part may be missing on Codex (0.169.0).
    let streamed = parts.concat();
    assert!(result.output.contains(&*streamed) && streamed.contains("line-2\nline-3"), "{streamed:?}");
    Ok(())
}

async fn a_command_that_fails_does_not_fail_the_run_on_any_agent(agent: &Agent) -> Result<()> {
    let recording = run(agent, commands(agent, &["echo out; echo boom >&2; exit 3"], "It failed.")).await?;
    assert_eq!(kinds(&recording), ["init", "tool_use", "tool_result", "text", "done"]);
    let (_, result) = recording.only_tool()?;
    assert!(result.output.contains("boom"), "{}", result.output.as_str());
    // Gemini CLI 0.61.0 reports neither the exit code nor the failure.
    let reported = (agent.name != "gemini").then_some((true, 3));
    assert_eq!((result.is_error, result.exit_code), reported.unzip());
    assert_eq!(recording.result.final_text, "It failed.");
    assert!(!recording.result.is_error);
    Ok(())
}

async fn an_empty_answer_is_a_failure_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(Scenario::new().reply(agent.reply())).await?;
    let recording = env.run(agent.request(&env, "Go.")).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Provider), "{:?}", recording.result);
    assert_eq!(recording.result.text, "");
    Ok(())
}

async fn several_commands_at_once_each_have_their_result_on_every_agent(agent: &Agent) -> Result<()> {
    let calls = ["echo first", "echo second", "echo third"].map(|command| agent.shell(command));
    let reply = calls.into_iter().fold(agent.reply(), |reply, (tool, input)| reply.tool(tool, input));
    let recording = run(agent, Scenario::new().reply(reply).reply(agent.reply().text("Done."))).await?;
    let mut outputs: Vec<_> = recording.tools().iter().map(|(_, result)| result.output.trim().to_owned()).collect();
    outputs.sort();
    assert_eq!(outputs.len(), 3);
    for (output, expected) in outputs.iter().zip(["first", "second", "third"]) {
        assert!(output.contains(expected), "{outputs:?}");
    }
    Ok(())
}

async fn commands_in_turn_keep_their_order_on_every_agent(agent: &Agent) -> Result<()> {
    let scenario = commands(agent, &["echo one > file; echo one", "cat file; echo two"], "Done.");
    let recording = run(agent, scenario).await?;
    let expected = ["init", "tool_use", "tool_result", "tool_use", "tool_result", "text", "done"];
    assert_eq!(kinds(&recording), expected);
    let last = recording.tools().last().map(|(_, result)| result.output.clone()).unwrap_or_default();
    assert!(last.contains("one") && last.contains("two"), "{last:?}");
    Ok(())
}

async fn a_refused_key_is_the_same_error_on_every_agent(agent: &Agent) -> Result<()> {
    let recording = run(agent, HttpError::unauthorized()).await?;
    let failure = recording.failure()?;
    assert_eq!(failure.code, ErrorCode::Auth, "{failure:?}");
    assert_eq!(failure.retryable, Some(false));
    assert_eq!(kinds(&recording).last_chunk(), Some(&["error", "done"]));
    assert_eq!(recording.result.text, "");
    Ok(())
}
