//! One meaning: the same scenarios on all four real CLIs, and the streams compared. Each name is a promise.
//!
//! What is compared is the stream as a user sees it: the types of events in order, the text, what tools came to, and
//! usage against the provider's own numbers. Left out are the events that are about circumstances (`usage`, `warning`,
//! `rate_limit`, `plan`) and how often a text was cut.

mod answers;
mod conversations;
mod ending;
mod environment;
mod failures;
mod mcp;
mod mcp_failures;
mod merge_restore;
mod modes;
mod retries;
mod sessions;
mod tools;
mod trust;

use anyhow::{Context, Result};
use teamster::event::{ErrorCode, Event};
use teamster::request::PermissionMode;
use teamster_conformance::{AGENTS, Agent, BOUND, Recording};
use teamster_testkit::provider::{HttpError, Scenario};

const UNICODE: &str = "naïve 漢字 👩‍👩‍👧‍👦 \u{1f469}\u{1f3fd} e\u{301} \t\"quoted\" back\\slash \u{202e}rtl \u{2028}\n\n```rust\nfn main() {}\n```\nend.";

/// The types of a stream, runs of one type as one.
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

/// Runs a scenario on each agent with full permissions.
async fn on_each(scenario: impl Fn(&Agent) -> Scenario, look: impl Fn(&Agent, &Recording)) -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(scenario(agent)).await?;
        let mut request = agent.request(&lab, "Go.");
        request.permissions.mode = PermissionMode::Full;
        let recording = lab.run(request).await?;
        if !recording.result.is_error {
            agent.check_usage(&lab, &recording)?;
        }
        look(agent, &recording);
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_is_the_same_stream_on_every_agent() -> Result<()> {
    let scenario = |agent: &Agent| agent.reply().text("Hello there, how are you?").into();
    on_each(scenario, |agent, recording| {
        assert_eq!(kinds(recording), ["init", "text", "done"], "{}", agent.name);
        assert_eq!(recording.result.text, "Hello there, how are you?");
        assert_eq!(recording.result.final_text, recording.result.text);
        assert!(recording.result.session_id.is_some());
    })
    .await
}

#[tokio::test]
async fn text_is_emitted_while_the_model_still_streams() -> Result<()> {
    for agent in AGENTS {
        let words: Vec<String> = (1..=20).map(|number| format!("chunk {number}, ")).collect();
        let lab = agent.lab(agent.reply().text_deltas(words.clone()).gate_after(19, "last")).await?;
        let mut live = lab.start(agent.request(&lab, "Count."))?;
        live.until("the first text", |event| matches!(event, Event::Text(_))).await.context(agent.name)?;
        lab.provider().gate("last").wait_reached(BOUND).await?;
        lab.provider().gate("last").open();
        let recording = live.finish().await?;
        assert!(recording.texts().len() >= 5, "{}: {} pieces", agent.name, recording.texts().len());
        assert_eq!(recording.result.text.trim_end(), words.concat().trim_end(), "{}", agent.name);
        assert_eq!(recording.requests.len(), 1, "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn every_character_arrives_unchanged_both_ways() -> Result<()> {
    for agent in AGENTS {
        // Gemini CLI 0.61.0 takes U+2028 for the end of a line of its provider's.
        let text = if agent.name == "gemini" { UNICODE.replace('\u{2028}', "") } else { UNICODE.to_owned() };
        let lab = agent.lab(agent.reply().text_by(1, &text)).await?;
        let recording = lab.run(agent.request(&lab, &text)).await?;
        assert_eq!(recording.result.text, text, "{}", agent.name);
        assert_eq!(recording.prompts(0)?.last(), Some(&text.as_str()), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_long_answer_is_whole_on_every_agent() -> Result<()> {
    let numbers: Vec<String> = (0..30_000).map(|number| format!("{number:09}\n")).collect();
    let long = numbers.concat();
    let scenario = |agent: &Agent| agent.reply().text_by(4000, &long).into();
    on_each(scenario, |agent, recording| {
        // Some take the last line end away.
        assert_eq!(recording.result.text.trim_end(), long.trim_end(), "{}", agent.name);
    })
    .await
}

#[tokio::test]
async fn a_command_is_one_call_with_one_result_on_every_agent() -> Result<()> {
    let scenario = |agent: &Agent| {
        let (tool, input) = agent.shell("printf 'sum-%s' 42");
        Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text("Done."))
    };
    on_each(scenario, |agent, recording| {
        assert_eq!(kinds(recording), ["init", "tool_use", "tool_result", "text", "done"], "{}", agent.name);
        let (tool, result) = recording.only_tool().unwrap();
        assert_eq!(tool.kind.as_str(), "execute", "{}", agent.name);
        assert!(result.output.contains("sum-42"), "{}: {}", agent.name, result.output.as_str());
        assert_ne!(result.is_error, Some(true), "{}", agent.name);
        assert_eq!(recording.result.final_text, "Done.");
    })
    .await
}

#[tokio::test]
async fn text_around_a_command_keeps_its_place_on_every_agent() -> Result<()> {
    let scenario = |agent: &Agent| {
        let (tool, input) = agent.shell("echo here");
        let first = agent.reply().text("First this. ").tool(tool, input);
        Scenario::new().reply(first).reply(agent.reply().text("Then that."))
    };
    on_each(scenario, |agent, recording| {
        assert_eq!(kinds(recording), ["init", "text", "tool_use", "tool_result", "text", "done"], "{}", agent.name);
        assert_eq!(recording.result.final_text, "Then that.");
        assert_eq!(recording.result.text.replace(' ', ""), "Firstthis.Thenthat.");
    })
    .await
}

#[tokio::test]
async fn a_command_that_fails_does_not_fail_the_run_on_any_agent() -> Result<()> {
    let scenario = |agent: &Agent| {
        let (tool, input) = agent.shell("echo out; echo boom >&2; exit 3");
        Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text("It failed."))
    };
    on_each(scenario, |agent, recording| {
        assert_eq!(kinds(recording), ["init", "tool_use", "tool_result", "text", "done"], "{}", agent.name);
        let (_, result) = recording.only_tool().unwrap();
        assert!(result.output.contains("boom"), "{}: {}", agent.name, result.output.as_str());
        assert_eq!(recording.result.final_text, "It failed.");
        assert!(!recording.result.is_error, "{}", agent.name);
    })
    .await
}

#[tokio::test]
async fn several_commands_at_once_each_have_their_result_on_every_agent() -> Result<()> {
    let scenario = |agent: &Agent| {
        let calls = ["echo first", "echo second", "echo third"].map(|command| agent.shell(command));
        let reply = calls.into_iter().fold(agent.reply(), |reply, (tool, input)| reply.tool(tool, input));
        Scenario::new().reply(reply).reply(agent.reply().text("Done."))
    };
    on_each(scenario, |agent, recording| {
        let mut outputs: Vec<_> = recording.tools().iter().map(|(_, result)| result.output.trim().to_owned()).collect();
        outputs.sort();
        assert_eq!(outputs.len(), 3, "{}", agent.name);
        for (output, expected) in outputs.iter().zip(["first", "second", "third"]) {
            assert!(output.contains(expected), "{}: {outputs:?}", agent.name);
        }
    })
    .await
}

#[tokio::test]
async fn commands_in_turn_keep_their_order_on_every_agent() -> Result<()> {
    let scenario = |agent: &Agent| {
        let reply = |command: &str| {
            let (tool, input) = agent.shell(command);
            agent.reply().tool(tool, input)
        };
        Scenario::new()
            .reply(reply("echo one > file; echo one"))
            .reply(reply("cat file; echo two"))
            .reply(agent.reply().text("Done."))
    };
    on_each(scenario, |agent, recording| {
        let expected = ["init", "tool_use", "tool_result", "tool_use", "tool_result", "text", "done"];
        assert_eq!(kinds(recording), expected, "{}", agent.name);
        let last = recording.tools().last().unwrap().1.output.clone();
        assert!(last.contains("one") && last.contains("two"), "{}: {last:?}", agent.name);
    })
    .await
}

#[tokio::test]
async fn a_refused_key_is_the_same_error_on_every_agent() -> Result<()> {
    let scenario = |_: &Agent| HttpError::unauthorized().into();
    on_each(scenario, |agent, recording| {
        let failure = recording.failure().unwrap();
        assert_eq!(failure.code, ErrorCode::Auth, "{}: {failure:?}", agent.name);
        assert_eq!(failure.retryable, Some(false), "{}", agent.name);
        let kinds = kinds(recording);
        assert_eq!(kinds.last_chunk(), Some(&["error", "done"]), "{}", agent.name);
        assert_eq!(recording.result.text, "");
    })
    .await
}
