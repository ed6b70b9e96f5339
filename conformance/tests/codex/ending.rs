//! Runs that the caller ends.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use teamster::event::{ErrorCode, StopReason};
use teamster::request::{Conversation, Mode};
use teamster::{Event, RunRequest};
use teamster_conformance::{BOUND, Lab, Live, Recording};
use teamster_testkit::provider::{Message, Reply, Scenario};

use crate::{exec, full, shell};

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31416";

fn assert_aborted(recording: &Recording) {
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
    assert!(recording.result.duration_ms < 20_000);
}

/// The session answers again, with what was said before.
async fn resumes(lab: &Lab, recording: &Recording, prompt: &str) -> Result<()> {
    let id = recording.result.session_id.clone().context("no session id")?;
    let mut request = lab.request("And now SCN:after");
    request.conversation = Conversation::Resume(id.clone());
    let resumed = lab.run(request).await?;
    assert_eq!(resumed.result.session_id, Some(id));
    assert_eq!(resumed.result.text, "Here I am.");
    let said: Vec<&str> = resumed.requests[0].messages.iter().flat_map(Message::texts).collect();
    assert!(said.iter().any(|text| text.contains(prompt)), "{said:?}");
    Ok(())
}

fn streaming() -> Scenario {
    Scenario::new()
        .reply(Reply::new().text("It begins and never ends.").gate_after(2, "never"))
        .branch("after", Reply::new().text("Here I am."))
}

/// Starts a run and waits until its command runs.
async fn begin(lab: &Lab, request: RunRequest) -> Result<Live<'_>> {
    let mut live = lab.start(request)?;
    live.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    Ok(live)
}

fn running_a_tool() -> Scenario {
    Scenario::new()
        .reply(Reply::new().tool("exec_command", shell(&format!("echo begun > begun; {ENDLESS}"))))
        .branch("after", Reply::new().text("Here I am."))
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_run_politely_and_it_can_be_resumed() -> Result<()> {
    for (form, code) in [((|request| request) as fn(RunRequest) -> RunRequest, 0), (exec, 1)] {
        let lab = Lab::codex(streaming()).await?;
        let live = lab.start(form(lab.request("Begin.")))?;
        lab.provider().gate("never").wait_reached(BOUND).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert_aborted(&recording);
        assert_eq!(recording.result.signal, None, "it was not killed");
        assert_eq!(recording.result.exit_code, Some(code));
        resumes(&lab, &recording, "Begin.").await?;
    }
    Ok(())
}

/// With the launcher between us and the agent too.
#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_tool_and_the_run_can_be_resumed() -> Result<()> {
    let launcher = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin/codex");
    for (cli, mode) in [(None, Mode::Auto), (Some(launcher), Mode::Auto), (None, Mode::Exec)] {
        let lab = Lab::codex(running_a_tool()).await?;
        let mut request: RunRequest = full(lab.request("Begin."));
        request.mode = mode;
        request.cli_path = cli.or(request.cli_path);
        let live = begin(&lab, request).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert_aborted(&recording);
        assert_eq!(recording.only_tool()?.1.is_error, Some(true));
        resumes(&lab, &recording, "Begin.").await?;
    }
    Ok(())
}

/// A killed command's child is orphaned in a session of its own.
#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_and_the_run_can_be_resumed() -> Result<()> {
    let launcher = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin/codex");
    for cli in [None, Some(launcher)] {
        let lab = Lab::codex(running_a_tool()).await?;
        let mut request: RunRequest = full(lab.request("Begin."));
        request.cli_path = cli.or(request.cli_path);
        let live = begin(&lab, request).await?;
        live.control().abort();
        let recording = live.finish().await?;
        assert!(recording.result.aborted);
        assert_eq!(recording.only_tool()?.1.output, "interrupted");
        resumes(&lab, &recording, "Begin.").await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_abort_in_mid_stream_leaves_nothing_and_the_run_can_be_resumed() -> Result<()> {
    let lab = Lab::codex(streaming()).await?;
    let live = lab.start(lab.request("Begin."))?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    live.control().abort();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    resumes(&lab, &recording, "Begin.").await
}

#[tokio::test]
async fn dropping_a_run_in_mid_tool_leaves_nothing() -> Result<()> {
    let lab = Lab::codex(running_a_tool()).await?;
    let live = begin(&lab, full(lab.request("Begin."))).await?;
    let trace = live.abandon();
    tokio::time::timeout(BOUND, lab.runtime().shutdown()).await?;
    assert_eq!(trace.processes(), []);
    assert!(fs::exists(lab.project().join("begun"))?);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_before_the_agent_has_said_anything_ends_the_run() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Too late.").gate_before("never")).await?;
    let live = lab.start(lab.request("Begin."))?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert!(Duration::from_millis(recording.result.duration_ms) < Duration::from_secs(10));
    Ok(())
}

#[tokio::test]
async fn a_sandboxed_command_ends_with_its_run() -> Result<()> {
    let lab = Lab::codex(Scenario::new().reply(Reply::new().tool("exec_command", shell(ENDLESS)))).await?;
    let live = begin(&lab, lab.request("Begin.")).await?;
    live.control().interrupt();
    assert_aborted(&live.finish().await?);
    Ok(())
}
