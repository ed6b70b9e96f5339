//! Runs that the caller ends, as far as they differ from agent to agent; what is the same stands in `all/ending.rs`.

use std::path::PathBuf;

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster::{Event, RunRequest};
use teamster_conformance::{BOUND, Live, Recording, TestEnv};
use teamster_testkit::provider::{Reply, Scenario};

use crate::{exec, full, shell};

/// A command that nobody else runs, and that goes on for ever.
const ENDLESS: &str = "sleep 31416";

fn assert_aborted(recording: &Recording) {
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
}

async fn is_resumable(lab: &TestEnv, ended: &Recording) -> Result<()> {
    let resumed = lab.resume(lab.request("And now SCN:after"), ended, "Begin.").await?;
    assert_eq!(resumed.result.text, "Here I am.");
    Ok(())
}

fn running_a_tool() -> Scenario {
    Scenario::new()
        .reply(Reply::new().tool("exec_command", shell(ENDLESS)))
        .branch("after", Reply::new().text("Here I am."))
}

/// Starts a run and waits until its command runs.
async fn begin(lab: &TestEnv, request: RunRequest) -> Result<Live<'_>> {
    let mut live = lab.start(request)?;
    live.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    live.trace().wait_for_command(ENDLESS, BOUND).await?;
    Ok(live)
}

/// The request with the launcher between us and the agent.
fn launched(mut request: RunRequest) -> RunRequest {
    request.cli_path = Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin/codex"));
    request
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_one_shot_form_politely() -> Result<()> {
    let silent = Reply::new().text("It begins and never ends.").gate_after(2, "never");
    let lab = TestEnv::codex(Scenario::new().reply(silent).branch("after", Reply::new().text("Here I am."))).await?;
    let live = lab.start(exec(lab.request("Begin.")))?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    live.control().interrupt();
    let recording = live.finish().await?;
    assert_aborted(&recording);
    assert_eq!((recording.result.signal.as_deref(), recording.result.exit_code), (None, Some(1)), "it was not killed");
    is_resumable(&lab, &recording).await
}

#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_tool_behind_the_launcher_and_in_one_shot() -> Result<()> {
    for form in [launched, exec] {
        let lab = TestEnv::codex(running_a_tool()).await?;
        let live = begin(&lab, form(full(lab.request("Begin.")))).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert_aborted(&recording);
        assert_eq!(recording.only_tool()?.1.is_error, Some(true));
        is_resumable(&lab, &recording).await?;
    }
    Ok(())
}

/// A killed command's child is orphaned in a session of its own.
#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_behind_the_launcher() -> Result<()> {
    let lab = TestEnv::codex(running_a_tool()).await?;
    let live = begin(&lab, launched(full(lab.request("Begin.")))).await?;
    live.control().abort();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.only_tool()?.1.output, "interrupted");
    is_resumable(&lab, &recording).await
}

#[tokio::test]
async fn a_sandboxed_command_ends_with_its_run() -> Result<()> {
    let lab = TestEnv::codex(running_a_tool()).await?;
    let live = begin(&lab, lab.request("Begin.")).await?;
    live.control().interrupt();
    assert_aborted(&live.finish().await?);
    Ok(())
}
