//! Sessions: conversations of many turns.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use teamster::SessionOptions;
use teamster::event::{ErrorCode, UsageScope, WarningCode};
use teamster::request::PermissionMode;
use teamster_conformance::{Agent, TIMEOUT, agent_tests};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

/// The number of turns on one process, and with a process for each turn.
const LIVE_TURNS: usize = 20;
const SPAWNED_TURNS: usize = 3;

agent_tests! {
    each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order: all,
    a_caller_cannot_distinguish_spawned_turns_from_live_ones: [claude, codex, opencode],
    turns_that_are_sent_at_once_are_taken_in_order: [claude, codex, gemini],
    an_interrupt_ends_the_turn_and_not_the_session: all,
    a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_the_conversation_continues:
        [claude, codex, opencode],
    four_sessions_at_once_do_not_mix: [claude, codex, opencode],
}

/// Returns the caller's prompts as the model receives them.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    prompts.flat_map(Message::texts).filter(|text| text.starts_with("Prompt ")).collect()
}

/// A model that answers with the number of prompts that it received.
fn counts(agent: &Agent) -> Scenario {
    let reply = agent.reply();
    Reply::from_fn(move |request: &ModelRequest| reply.clone().text(format!("Received {}.", prompts(request).len())))
        .into()
}

async fn converse(agent: &Agent, options: fn(SessionOptions) -> SessionOptions, turns: usize) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let session = env.open_with(agent.request(&env, ""), options)?;
    let mut sent = Vec::new();
    let mut id = None;
    for turn in 1..=turns {
        sent.push(format!("Prompt {turn}."));
        let recording = session.run_turn(format!("Prompt {turn}.")).await?;
        assert_eq!(recording.result.text, format!("Received {turn}."));
        assert!(!recording.result.is_error);
        if recording.result.usage_scope == Some(UsageScope::Run) {
            let usage = recording.result.usage.as_ref().context("no usage")?;
            assert_eq!((usage.input_tokens, usage.output_tokens), (25, 40), "of this turn alone");
        }
        assert_eq!(prompts(recording.requests.last().context("no request")?), sent);
        assert!(recording.warnings(&WarningCode::SessionReopened).is_empty());
        // The conversation stays the same.
        let reported = recording.result.session_id.clone();
        assert!(reported.is_some() && (id.is_none() || id == reported), "{id:?}, {reported:?}");
        assert_eq!(session.handle().id(), reported);
        id = reported;
    }
    session.close().await
}

async fn each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order(agent: &Agent) -> Result<()> {
    // Gemini CLI is slow to answer: the same promise is tested with more turns in `tests/acp`.
    let turns = if agent.name == "gemini" { SPAWNED_TURNS } else { LIVE_TURNS };
    converse(agent, |options| options, turns).await
}

async fn a_caller_cannot_distinguish_spawned_turns_from_live_ones(agent: &Agent) -> Result<()> {
    converse(agent, SessionOptions::process_per_turn, SPAWNED_TURNS).await
}

async fn turns_that_are_sent_at_once_are_taken_in_order(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let session = env.open(agent.request(&env, ""))?;
    let turns = (1..=3).map(|turn| session.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
    for (turn, run) in turns.into_iter().enumerate() {
        assert_eq!(run.finish().await?.result.text, format!("Received {}.", turn + 1));
    }
    session.close().await
}

async fn an_interrupt_ends_the_turn_and_not_the_session(agent: &Agent) -> Result<()> {
    let tool = agent.shell("sleep 60");
    let reply = agent.reply();
    let scenario = Reply::from_fn(move |request: &ModelRequest| match prompts(request).last() {
        Some(&"Prompt 1.") => reply.clone().tool(tool.0, tool.1.clone()),
        _ => reply.clone().text("After."),
    });
    let env = agent.test_env(scenario).await?;
    let mut request = agent.request(&env, "");
    request.permissions.mode = PermissionMode::Full;
    let session = env.open(request)?;
    let run = session.send("Prompt 1.")?;
    session.processes().wait_for("sleep 60", TIMEOUT).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert!(recording.result.aborted, "{:?}", recording.result);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    let after = session.run_turn("Prompt 2.").await?;
    assert!(!after.result.is_error, "{:?}", after.result);
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

async fn a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_the_conversation_continues(
    agent: &Agent,
) -> Result<()> {
    // An argument by which the agent's process is found.
    let argument = match agent.name {
        "claude" => "--input-format",
        "codex" => "app-server",
        _ => "serve",
    };
    let scenario = Reply::from_fn(move |request: &ModelRequest| {
        let text = format!("Received {}.", prompts(request).len());
        if request.prompts().contains(&"Prompt 3.") {
            Reply::new().gate_before("never").text(text)
        } else {
            Reply::new().text(text)
        }
    });
    let env = agent.test_env(scenario).await?;
    let session = env.open(agent.request(&env, ""))?;
    session.run_turn("Prompt 1.").await?;
    agent.saved(&env, "Received 1.").await?;
    kill(session.processes().wait_for(argument, TIMEOUT).await?.pid)?;
    session.processes().wait_until_gone(TIMEOUT).await?;
    let second = session.run_turn("Prompt 2.").await?;
    assert_eq!(second.result.text, "Received 2.");
    assert_eq!(second.warnings(&WarningCode::SessionReopened).len(), 1);
    agent.saved(&env, "Received 2.").await?;
    let run = session.send("Prompt 3.")?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    kill(session.processes().wait_for(argument, TIMEOUT).await?.pid)?;
    let third = run.finish().await?;
    assert_eq!(third.result.error_code, Some(ErrorCode::CliSignaled));
    let fourth = session.run_turn("Prompt 4.").await?;
    assert!(fourth.result.text == "Received 4." || fourth.result.text == "Received 3.", "{:?}", fourth.result);
    assert_eq!(fourth.warnings(&WarningCode::SessionReopened).len(), 1);
    session.close().await
}

async fn four_sessions_at_once_do_not_mix(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let sessions = (0..4).map(|_| env.open(agent.request(&env, ""))).collect::<Result<Vec<_>>>()?;
    for turn in 1..=2 {
        let turns =
            sessions.iter().map(|session| session.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
        for run in turns {
            assert_eq!(run.finish().await?.result.text, format!("Received {turn}."));
        }
    }
    for session in sessions {
        session.close().await?;
    }
    Ok(())
}
