//! Runs that the caller ends.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use teamster::event::{ErrorCode, StopReason};
use teamster::request::PermissionMode;
use teamster::{Event, RunRequest};
use teamster_conformance::{AGENTS, Agent, BOUND, Live, Recording, TestEnv};
use teamster_testkit::provider::Scenario;

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31415";

fn streaming(agent: &Agent) -> Scenario {
    Scenario::new()
        .reply(agent.reply().text("It begins and never ends.").gate_after(2, "never"))
        .branch("after", agent.reply().text("Here I am."))
}

fn running_a_tool(agent: &Agent) -> Scenario {
    let (tool, input) = agent.shell(&format!("echo begun > begun; {ENDLESS}"));
    Scenario::new().reply(agent.reply().tool(tool, input)).branch("after", agent.reply().text("Here I am."))
}

fn begin(agent: &Agent, lab: &TestEnv) -> RunRequest {
    let mut request = agent.request(lab, "Begin.");
    request.permissions.mode = PermissionMode::Full;
    request
}

/// A run of which the first words are there, and more never come.
async fn speaking<'lab>(agent: &Agent, lab: &'lab TestEnv) -> Result<Live<'lab>> {
    let mut live = lab.start(begin(agent, lab))?;
    live.until("a delta", |event| matches!(event, Event::Text(_))).await?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    Ok(live)
}

/// A run whose command runs.
async fn working<'lab>(agent: &Agent, lab: &'lab TestEnv) -> Result<Live<'lab>> {
    let mut live = lab.start(begin(agent, lab))?;
    live.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    Ok(live)
}

fn assert_aborted(agent: &Agent, recording: &Recording) {
    assert!(recording.result.aborted, "{}", agent.name);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted), "{}", agent.name);
}

/// It ended by itself, as it was asked to.
fn assert_interrupted(agent: &Agent, recording: &Recording) {
    assert_aborted(agent, recording);
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled), "{}", agent.name);
}

async fn is_resumable(agent: &Agent, lab: &TestEnv, ended: &Recording) -> Result<()> {
    let resumed = lab.resume(agent.request(lab, "And now SCN:after"), ended, "Begin.").await.context(agent.name)?;
    assert_eq!(resumed.result.text, "Here I am.", "{}", agent.name);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_run_and_it_can_be_resumed_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(streaming(agent)).await?;
        let live = speaking(agent, &lab).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert_interrupted(agent, &recording);
        assert!(recording.result.text.starts_with("It begi"), "{}: {}", agent.name, recording.result.text.as_str());
        is_resumable(agent, &lab, &recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_tool_and_the_run_can_be_resumed_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(running_a_tool(agent)).await?;
        let live = working(agent, &lab).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert_interrupted(agent, &recording);
        assert_eq!(recording.only_tool()?.1.is_error, Some(true), "{}", agent.name);
        is_resumable(agent, &lab, &recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_and_the_run_can_be_resumed_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(running_a_tool(agent)).await?;
        let live = working(agent, &lab).await?;
        live.control().abort();
        let recording = live.finish().await?;
        assert_aborted(agent, &recording);
        assert_eq!(recording.only_tool()?.1.output, "interrupted", "{}", agent.name);
        is_resumable(agent, &lab, &recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_abort_in_mid_stream_leaves_nothing_and_the_run_can_be_resumed_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(streaming(agent)).await?;
        let live = speaking(agent, &lab).await?;
        live.control().abort();
        let recording = live.finish().await?;
        assert_aborted(agent, &recording);
        is_resumable(agent, &lab, &recording).await?;
    }
    Ok(())
}

#[tokio::test]
async fn dropping_a_run_in_mid_tool_leaves_nothing_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(running_a_tool(agent)).await?;
        let trace = working(agent, &lab).await?.abandon();
        tokio::time::timeout(BOUND, lab.runtime().shutdown()).await?;
        assert_eq!(trace.processes(), [], "{}", agent.name);
        assert!(fs::exists(lab.project().join("begun"))?, "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn an_interrupt_before_any_output_ends_the_run() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(agent.reply().text("Too late.").gate_before("never")).await?;
        let live = lab.start(begin(agent, &lab))?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert!(recording.result.aborted, "{}", agent.name);
        assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted), "{}", agent.name);
        assert_eq!(recording.result.text, "", "{}", agent.name);
        let took = Duration::from_millis(recording.result.duration_ms);
        assert!(took < BOUND, "{}: it was ended, after {took:?}", agent.name);
    }
    Ok(())
}
