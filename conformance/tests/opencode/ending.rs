//! Runs that end by the caller's word or by a limit.

use std::fs;
use std::num::NonZeroU32;

use anyhow::{Context, Result};
use teamster::event::{ErrorCode, StopReason};
use teamster::request::Conversation;
use teamster_conformance::{BOUND, Lab, Recording};
use teamster_testkit::provider::{Message, Reply, Scenario, Usage};

use crate::{bash, full, reply};

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31416";

fn scenario() -> Scenario {
    Scenario::new()
        .reply(reply().tool("bash", bash("true")))
        .reply(reply().tool("bash", bash(&format!("echo begun > begun; {ENDLESS}"))))
        .branch("after", reply().text("Here I am."))
}

/// The session answers again, with what was said before.
async fn resumes(lab: &Lab, recording: &Recording) -> Result<()> {
    let id = recording.result.session_id.clone().context("no session id")?;
    let mut request = lab.request("And now SCN:after");
    request.conversation = Conversation::Resume(id.clone());
    let resumed = lab.run(request).await?;
    assert_eq!(resumed.result.session_id, Some(id));
    assert_eq!(resumed.result.text, "Here I am.");
    let said: Vec<&str> = resumed.requests[0].messages.iter().flat_map(Message::texts).collect();
    assert!(said.iter().any(|text| text.contains("Begin.")), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn an_interrupt_in_mid_tool_leaves_nothing_and_the_session_can_be_resumed() -> Result<()> {
    let lab = Lab::opencode(scenario()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
    assert_eq!(recording.result.num_turns, Some(1));
    resumes(&lab, &recording).await
}

#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_and_the_session_can_be_resumed() -> Result<()> {
    let lab = Lab::opencode(scenario()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    live.control().abort();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    resumes(&lab, &recording).await
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_run() -> Result<()> {
    let lab = Lab::opencode(reply().text("It begins and never ends.").gate_after(2, "never")).await?;
    let live = lab.start(lab.request("Begin."))?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert!(recording.result.duration_ms < 60_000);
    Ok(())
}

#[tokio::test]
async fn dropping_a_run_in_mid_tool_leaves_nothing() -> Result<()> {
    let lab = Lab::opencode(scenario()).await?;
    let live = lab.start(full(lab.request("Begin.")))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    let trace = live.abandon();
    tokio::time::timeout(BOUND, lab.runtime().shutdown()).await?;
    assert_eq!(trace.processes(), []);
    assert!(fs::exists(lab.project().join("begun"))?);
    Ok(())
}

#[tokio::test]
async fn the_limit_of_turns_ends_the_run() -> Result<()> {
    let lab =
        Lab::opencode(Reply::from_fn(|request| reply().tool("bash", bash(&format!("echo {}", request.turn))))).await?;
    let mut request = full(lab.request("For ever."));
    request.max_turns = NonZeroU32::new(2);
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTurns));
    assert_eq!(recording.result.num_turns, Some(2));
    assert_eq!(recording.tools().len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_limit_of_cost_ends_the_run() -> Result<()> {
    let usage = Usage { output: 100_000, ..Usage::ZERO };
    let lab = Lab::opencode(Reply::new().tool("bash", bash("echo again")).usage(usage)).await?;
    let mut request = full(lab.request("For ever."));
    request.max_budget_usd = Some(0.01);
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Budget));
    assert!(recording.result.total_cost_usd.is_some_and(|cost| cost > 0.01));
    assert_eq!(recording.result.num_turns, Some(1));
    Ok(())
}
