//! Runs that the caller ends.

use std::time::Duration;

use anyhow::{Context, Result};
use teamster::Event;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::Conversation;
use teamster_conformance::{BOUND, Lab, Recording};
use teamster_testkit::provider::{Reply, Scenario};

use crate::{full, prompts, request, shell};

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31417";

fn assert_aborted(recording: &Recording) {
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert!(recording.result.duration_ms < 20_000);
}

fn streaming() -> Scenario {
    Scenario::new()
        .reply(Reply::new().text("It begins and never ends.").stall_after(2))
        .branch("after", Reply::new().text("Here I am."))
}

fn running_a_tool() -> Scenario {
    Scenario::new()
        .reply(Reply::new().tool("run_shell_command", shell(ENDLESS)))
        .branch("after", Reply::new().text("Here I am."))
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_run_politely_and_it_can_be_resumed() -> Result<()> {
    let lab = Lab::gemini(streaming()).await?;
    let mut live = lab.start(request(&lab, "Begin."))?;
    live.until("a delta", |event| matches!(event, Event::Text(_))).await?;
    live.control().interrupt();
    let run = live.finish().await?;
    assert_aborted(&run);
    assert_eq!((run.result.stop_reason, run.result.signal), (Some(StopReason::Cancelled), None));

    let id = run.result.session_id.context("no session id")?;
    let mut again = request(&lab, "And now SCN:after");
    again.conversation = Conversation::Resume(id);
    let resumed = lab.run(again).await?;
    assert_eq!(resumed.result.text, "Here I am.");
    assert!(prompts(&resumed.requests[0]).concat().contains("Begin."));
    Ok(())
}

/// The command has a session of its own, and survives every signal to the CLI.
#[tokio::test]
async fn an_interrupt_in_mid_tool_leaves_nothing_behind() -> Result<()> {
    let lab = Lab::gemini(running_a_tool()).await?;
    let live = lab.start(full(&lab, "Begin."))?;
    let trace = live.trace();
    trace.wait_for_command(ENDLESS, BOUND).await?;
    live.control().interrupt();
    let run = live.finish().await?;
    assert_aborted(&run);
    assert_eq!(run.only_tool()?.1.output, "interrupted");
    trace.wait_until_gone(Duration::ZERO).await
}

#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_behind() -> Result<()> {
    let lab = Lab::gemini(running_a_tool()).await?;
    let live = lab.start(full(&lab, "Begin."))?;
    let trace = live.trace();
    trace.wait_for_command(ENDLESS, BOUND).await?;
    live.control().abort();
    assert_aborted(&live.finish().await?);
    trace.wait_until_gone(Duration::ZERO).await
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_nothing_behind() -> Result<()> {
    let lab = Lab::gemini(running_a_tool()).await?;
    let live = lab.start(full(&lab, "Begin."))?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    live.abandon().wait_until_gone(BOUND).await
}

#[tokio::test]
async fn a_silent_vendor_is_left_when_the_limit_is_over() -> Result<()> {
    let lab = Lab::gemini(streaming()).await?;
    let mut asked = request(&lab, "Begin.");
    asked.limits.silence = Duration::from_secs(5);
    let run = lab.run(asked).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::WatchdogTimeout));
    Ok(())
}
