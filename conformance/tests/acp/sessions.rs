//! Sessions of ACP agents: conversations of many turns.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use teamster::event::{ErrorCode, Event, WarningCode};
use teamster::request::{Conversation, PermissionMode};
use teamster_conformance::{TIMEOUT, TestSession};
use teamster_testkit::provider::{ModelRequest, Reply};

use crate::agent::{AcpAgent, counts, last_request, prompts};

/// The number of turns of a long conversation.
const TURNS: usize = 20;

acp_tests! {
    each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order,
    an_answer_is_streamed,
    an_interrupt_in_text_or_in_a_tool_ends_the_turn_and_not_the_session,
    a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_its_history_is_not_lost,
    a_session_is_resumed_by_its_id_and_its_replay_is_not_emitted,
    an_unknown_id_is_session_not_found,
    another_model_answers_from_the_next_turn_on,
    four_sessions_at_once_do_not_mix,
}

async fn each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order(agent: AcpAgent) -> Result<()> {
    let env = agent.test_env(counts()).await?;
    let session = env.open(agent.request(&env))?;
    let (mut sent, mut id) = (Vec::new(), None);
    for turn in 1..=TURNS {
        sent.push(format!("Prompt {turn}."));
        let recording = session.run_turn(format!("Prompt {turn}.")).await?;
        assert_eq!(recording.result.text, format!("Received {turn}."));
        assert_eq!(prompts(last_request(&recording)?), sent);
        assert!(recording.warnings(&WarningCode::SessionReopened).is_empty());
        let reported = recording.result.session_id.clone();
        assert!(reported.is_some() && (id.is_none() || id == reported), "{id:?}, {reported:?}");
        assert_eq!(recording.init()?.session_id, reported.clone().context("no id")?);
        id = reported;
    }
    session.close().await
}

async fn an_answer_is_streamed(agent: AcpAgent) -> Result<()> {
    let words: Vec<String> = (0..20).map(|word| format!("word-{word} ")).collect();
    let gated = Reply::new().text_deltas(words.clone()).gate_after(19, "last");
    let env = agent.test_env(gated).await?;
    let session = env.open(agent.request(&env))?;
    let mut run = session.send("Prompt 1.")?;
    run.until("text", |event| matches!(event, Event::Text(_))).await?;
    env.provider().gate("last").open();
    let recording = run.finish().await?;
    assert!(recording.texts().len() >= 5, "{} deltas", recording.texts().len());
    assert_eq!(recording.result.text.trim_end(), words.concat().trim_end());
    session.close().await
}

async fn an_interrupt_in_text_or_in_a_tool_ends_the_turn_and_not_the_session(agent: AcpAgent) -> Result<()> {
    let (tool, input) = agent.shell("tail -f /dev/null");
    let scenario = Reply::from_fn(move |request: &ModelRequest| match prompts(request).last().map(String::as_str) {
        Some("Prompt 1.") => Reply::new().text_deltas(["Started. ", "Ended."]).gate_after(1, "never"),
        Some("Prompt 2.") => Reply::new().tool(tool, input.clone()),
        _ => Reply::new().text("After."),
    });
    let env = agent.test_env(scenario).await?;
    let session = env.open(agent.request_in(&env, PermissionMode::Full))?;

    let mut run = session.send("Prompt 1.")?;
    run.until("text", |event| matches!(event, Event::Text(_))).await?;
    run.control().interrupt();
    let first = run.finish().await?;
    assert!(first.result.aborted, "{:?}", first.result);

    let run = session.send("Prompt 2.")?;
    session.processes().wait_for("tail -f /dev/null", TIMEOUT).await?;
    run.control().interrupt();
    let second = run.finish().await?;
    assert_eq!(second.result.error_code, Some(ErrorCode::Aborted), "{:?}", second.result);
    // The call has its result. The agents report that an interrupted command completed.
    second.only_tool()?;

    let third = session.run_turn("Prompt 3.").await?;
    assert_eq!(third.result.text, "After.", "{:?}", third.events);
    assert!(third.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

async fn kill_all(agent: AcpAgent, session: &TestSession) -> Result<()> {
    let leader = session.processes().wait_for(agent.process(), TIMEOUT).await?;
    for process in session.processes().list().iter().filter(|process| process.pid != leader.pid) {
        // It may have exited.
        _ = kill(process.pid);
    }
    kill(leader.pid)
}

async fn a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_its_history_is_not_lost(
    agent: AcpAgent,
) -> Result<()> {
    let scenario = Reply::from_fn(move |request: &ModelRequest| {
        let prompts = prompts(request);
        let is_third = prompts.last().is_some_and(|last| last == "Prompt 3.");
        let reply = if is_third { Reply::new().gate_before("never") } else { Reply::new() };
        reply.text(format!("Received {}.", prompts.len()))
    });
    let env = agent.test_env(scenario).await?;
    let session = env.open(agent.request(&env))?;
    session.run_turn("Prompt 1.").await?;
    kill_all(agent, &session).await?;
    session.processes().wait_until_gone(TIMEOUT).await?;
    let second = session.run_turn("Prompt 2.").await?;
    assert_eq!(second.result.text, "Received 2.", "{:?}", second.events);
    assert_eq!(second.warnings(&WarningCode::SessionReopened).len(), 1);

    let run = session.send("Prompt 3.")?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    kill_all(agent, &session).await?;
    let third = run.finish().await?;
    assert_eq!(third.result.error_code, Some(ErrorCode::CliSignaled), "{:?}", third.result);
    let fourth = session.run_turn("Prompt 4.").await?;
    let text = &fourth.result.text;
    assert!(text == "Received 4." || text == "Received 3.", "{:?}", fourth.events);
    assert_eq!(fourth.result.session_id, second.result.session_id);
    session.close().await
}

async fn a_session_is_resumed_by_its_id_and_its_replay_is_not_emitted(agent: AcpAgent) -> Result<()> {
    let env = agent.test_env(counts()).await?;
    let first = env.open(agent.request(&env))?;
    let id = first.run_turn("Prompt 1.").await?.result.session_id.context("no id")?;
    first.run_turn("Prompt 2.").await?;
    first.close().await?;
    let mut request = agent.request(&env);
    request.conversation = Conversation::Resume(id.clone());
    let session = env.open(request)?;
    let third = session.run_turn("Prompt 3.").await?;
    assert_eq!(third.result.text, "Received 3.", "{:?}", third.events);
    assert_eq!(prompts(last_request(&third)?), ["Prompt 1.", "Prompt 2.", "Prompt 3."]);
    assert_eq!(third.result.session_id, Some(id));
    session.close().await
}

async fn an_unknown_id_is_session_not_found(agent: AcpAgent) -> Result<()> {
    let env = agent.test_env(counts()).await?;
    let mut request = agent.request(&env);
    request.conversation = Conversation::Resume(agent.unknown_session().into());
    let session = env.open(request)?;
    let recording = session.run_turn("Prompt 1.").await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound), "{:?}", recording.events);
    assert!(recording.requests.is_empty(), "a request reached the model");
    session.close().await
}

async fn another_model_answers_from_the_next_turn_on(agent: AcpAgent) -> Result<()> {
    let env = agent.test_env(counts()).await?;
    let session = env.open(agent.request(&env))?;
    session.run_turn("Prompt 1.").await?;
    let model = agent.other_model();
    session.handle().set_model(model)?;
    let second = session.run_turn("Prompt 2.").await?;
    let name = model.rsplit('/').next().unwrap_or_default();
    let requested = &last_request(&second)?.model;
    assert!(requested.contains(name), "{requested}");
    assert_eq!(second.result.text, "Received 2.");
    assert!(second.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

async fn four_sessions_at_once_do_not_mix(agent: AcpAgent) -> Result<()> {
    let env = agent.test_env(counts()).await?;
    let sessions = (0..4).map(|_| env.open(agent.request(&env))).collect::<Result<Vec<_>>>()?;
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
