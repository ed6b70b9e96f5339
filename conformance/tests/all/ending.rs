//! Runs that the caller interrupts, aborts or drops.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::PermissionMode;
use teamster::{Event, RunRequest};
use teamster_conformance::{Agent, Recording, TIMEOUT, TestEnv, TestRun, agent_tests};
use teamster_testkit::provider::Scenario;

/// A command that does not end by itself, and that no other test runs.
const ENDLESS: &str = "sleep 31415";

agent_tests! {
    an_interrupt_in_mid_stream_ends_the_run_and_it_can_be_resumed_on_every_agent: all,
    an_interrupt_in_mid_tool_ends_the_tool_and_the_run_can_be_resumed_on_every_agent: all,
    an_abort_in_mid_tool_leaves_nothing_and_the_run_can_be_resumed_on_every_agent: all,
    an_abort_in_mid_stream_leaves_nothing_and_the_run_can_be_resumed_on_every_agent: all,
    dropping_a_run_in_mid_tool_leaves_nothing_on_every_agent: all,
    an_interrupt_before_any_output_ends_the_run: all,
}

fn streaming(agent: &Agent) -> Scenario {
    Scenario::new()
        .reply(agent.reply().text("It starts and never ends.").gate_after(2, "never"))
        .branch("after", agent.reply().text("Here I am."))
}

fn running_a_tool(agent: &Agent) -> Scenario {
    let (tool, input) = agent.shell(&format!("echo started > started; {ENDLESS}"));
    Scenario::new().reply(agent.reply().tool(tool, input)).branch("after", agent.reply().text("Here I am."))
}

fn full_permissions(agent: &Agent, env: &TestEnv) -> RunRequest {
    let mut request = agent.request(env, "Start.");
    request.permissions.mode = PermissionMode::Full;
    request
}

/// Starts a run, and waits until the model has streamed a part of an answer that never ends.
async fn start_streaming(agent: &Agent, env: &TestEnv) -> Result<TestRun> {
    let mut run = env.start(full_permissions(agent, env))?;
    run.until("a delta", |event| matches!(event, Event::Text(_))).await?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    Ok(run)
}

/// Starts a run, and waits until its command runs.
async fn start_tool(agent: &Agent, env: &TestEnv) -> Result<TestRun> {
    let mut run = env.start(full_permissions(agent, env))?;
    run.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    run.processes().wait_for_command(ENDLESS, TIMEOUT).await?;
    Ok(run)
}

fn assert_aborted(recording: &Recording) {
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
}

/// The agent ended the run by itself.
fn assert_interrupted(recording: &Recording) {
    assert_aborted(recording);
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
}

async fn assert_resumable(agent: &Agent, env: &TestEnv, finished: &Recording) -> Result<()> {
    let resumed = env.resume(agent.request(env, "And now SCN:after"), finished, "Start.").await?;
    assert_eq!(resumed.result.text, "Here I am.");
    Ok(())
}

async fn an_interrupt_in_mid_stream_ends_the_run_and_it_can_be_resumed_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(streaming(agent)).await?;
    let run = start_streaming(agent, &env).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert_interrupted(&recording);
    assert!(recording.result.text.starts_with("It star"), "{}", recording.result.text.as_str());
    assert_resumable(agent, &env, &recording).await
}

async fn an_interrupt_in_mid_tool_ends_the_tool_and_the_run_can_be_resumed_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(running_a_tool(agent)).await?;
    let run = start_tool(agent, &env).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert_interrupted(&recording);
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_resumable(agent, &env, &recording).await
}

async fn an_abort_in_mid_tool_leaves_nothing_and_the_run_can_be_resumed_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(running_a_tool(agent)).await?;
    let run = start_tool(agent, &env).await?;
    run.control().abort();
    let recording = run.finish().await?;
    assert_aborted(&recording);
    assert_eq!(recording.only_tool()?.1.output, "interrupted");
    assert_resumable(agent, &env, &recording).await
}

async fn an_abort_in_mid_stream_leaves_nothing_and_the_run_can_be_resumed_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(streaming(agent)).await?;
    let run = start_streaming(agent, &env).await?;
    run.control().abort();
    let recording = run.finish().await?;
    assert_aborted(&recording);
    assert_resumable(agent, &env, &recording).await
}

async fn dropping_a_run_in_mid_tool_leaves_nothing_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(running_a_tool(agent)).await?;
    let processes = start_tool(agent, &env).await?.abandon();
    tokio::time::timeout(TIMEOUT, env.runtime().wait_idle()).await?;
    assert_eq!(processes.list(), []);
    assert!(fs::exists(env.project().join("started"))?);
    Ok(())
}

async fn an_interrupt_before_any_output_ends_the_run(agent: &Agent) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Too late.").gate_before("never")).await?;
    let run = env.start(full_permissions(agent, &env))?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert_aborted(&recording);
    assert_eq!(recording.result.text, "");
    let took = Duration::from_millis(recording.result.duration_ms);
    assert!(took < TIMEOUT, "it ended after {took:?}");
    Ok(())
}
