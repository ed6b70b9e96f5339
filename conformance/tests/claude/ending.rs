//! Runs that the caller ends.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use teamster::Event;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::Conversation;
use teamster_conformance::{BOUND, Lab, Recording};
use teamster_testkit::provider::{Message, Reply, Scenario};

use crate::{bash, full};

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31415";

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
        .reply(Reply::new().text("It begins and never ends.").stall_after(2))
        .branch("after", Reply::new().text("Here I am."))
}

fn running_a_tool() -> Scenario {
    Scenario::new()
        .reply(Reply::new().tool("Bash", bash(&format!("echo begun > begun; {ENDLESS}"))))
        .branch("after", Reply::new().text("Here I am."))
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_run_politely_and_it_can_be_resumed() -> Result<()> {
    let lab = Lab::claude(streaming()).await?;
    let mut live = lab.start(lab.request("Begin."))?;
    live.until("a delta", |event| matches!(event, Event::Text(_))).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert_aborted(&recording);
    assert_eq!(recording.result.signal, None, "it was not killed");
    assert!(recording.result.text.starts_with("It begi"), "{}", recording.result.text);
    resumes(&lab, &recording, "Begin.").await
}

#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_tool_and_the_run_can_be_resumed() -> Result<()> {
    let lab = Lab::claude(running_a_tool()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert_aborted(&recording);
    assert_eq!(recording.result.signal, None, "it was not killed");
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    resumes(&lab, &recording, "Begin.").await
}

#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_and_the_run_can_be_resumed() -> Result<()> {
    let lab = Lab::claude(running_a_tool()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    live.control().abort();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.only_tool()?.1.output, "interrupted");
    resumes(&lab, &recording, "Begin.").await
}

#[tokio::test]
async fn an_abort_in_mid_stream_leaves_nothing_and_the_run_can_be_resumed() -> Result<()> {
    let lab = Lab::claude(streaming()).await?;
    let mut live = lab.start(lab.request("Begin."))?;
    live.until("a delta", |event| matches!(event, Event::Text(_))).await?;
    live.control().abort();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    resumes(&lab, &recording, "Begin.").await
}

#[tokio::test]
async fn dropping_a_run_in_mid_tool_leaves_nothing() -> Result<()> {
    let lab = Lab::claude(running_a_tool()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    let trace = live.abandon();
    tokio::time::timeout(BOUND, lab.runtime().shutdown()).await?;
    assert_eq!(trace.processes(), []);
    assert!(fs::exists(lab.project().join("begun"))?);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_before_the_agent_has_said_anything_ends_the_run() -> Result<()> {
    let lab = Lab::claude(Reply::new().text("Too late.").gate_before("never")).await?;
    let live = lab.start(lab.request("Begin."))?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert!(Duration::from_millis(recording.result.duration_ms) < Duration::from_secs(10));
    Ok(())
}

#[tokio::test]
async fn an_interrupt_while_the_model_has_not_answered_yet_ends_the_run() -> Result<()> {
    let lab = Lab::claude(Reply::new().text("Too late.").gate_before("never")).await?;
    let live = lab.start(lab.request("Begin."))?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert_aborted(&recording);
    assert_eq!(recording.result.text, "");
    Ok(())
}
