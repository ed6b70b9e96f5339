//! Interrupts and aborts on Codex: the one-shot form and the launcher. What is the same on all agents is in
//! `all/ending.rs`.

use std::path::PathBuf;

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster::{Event, RunRequest};
use teamster_conformance::{Recording, TIMEOUT, TestEnv, TestRun};
use teamster_testkit::provider::{Reply, Scenario};

use crate::{exec, full, shell};

/// A command that does not end by itself, and that no other test runs.
const ENDLESS: &str = "sleep 31416";

fn assert_aborted(recording: &Recording) {
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
}

async fn assert_resumable(env: &TestEnv, finished: &Recording) -> Result<()> {
    let resumed = env.resume(env.request("And now SCN:after"), finished, "Start.").await?;
    assert_eq!(resumed.result.text, "Here I am.");
    Ok(())
}

fn running_a_tool() -> Scenario {
    Scenario::new()
        .reply(Reply::new().tool("exec_command", shell(ENDLESS)))
        .branch("after", Reply::new().text("Here I am."))
}

/// Starts a run and waits until its command runs.
async fn start_tool(env: &TestEnv, request: RunRequest) -> Result<TestRun> {
    let mut run = env.start(request)?;
    run.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    run.processes().wait_for_command(ENDLESS, TIMEOUT).await?;
    Ok(run)
}

/// Runs the launcher, which starts the agent.
fn launched(mut request: RunRequest) -> RunRequest {
    request.cli_path = Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin/codex"));
    request
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_ends_the_one_shot_form_without_a_kill() -> Result<()> {
    let silent = Reply::new().text("It starts and never ends.").gate_after(2, "never");
    let env = TestEnv::codex(Scenario::new().reply(silent).branch("after", Reply::new().text("Here I am."))).await?;
    let run = env.start(exec(env.request("Start.")))?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert_aborted(&recording);
    assert_eq!(
        (recording.result.signal.as_deref(), recording.result.exit_code),
        (None, Some(1)),
        "it exited by itself"
    );
    assert_resumable(&env, &recording).await
}

#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_tool_below_the_launcher_and_in_one_shot() -> Result<()> {
    for form in [launched, exec] {
        let env = TestEnv::codex(running_a_tool()).await?;
        let run = start_tool(&env, form(full(env.request("Start.")))).await?;
        run.control().interrupt();
        let recording = run.finish().await?;
        assert_aborted(&recording);
        assert_eq!(recording.only_tool()?.1.is_error, Some(true));
        assert_resumable(&env, &recording).await?;
    }
    Ok(())
}

/// The child of a killed command is orphaned, in a session of its own.
#[tokio::test]
async fn an_abort_in_mid_tool_leaves_nothing_below_the_launcher() -> Result<()> {
    let env = TestEnv::codex(running_a_tool()).await?;
    let run = start_tool(&env, launched(full(env.request("Start.")))).await?;
    run.control().abort();
    let recording = run.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.only_tool()?.1.output, "interrupted");
    assert_resumable(&env, &recording).await
}

#[tokio::test]
async fn a_sandboxed_command_ends_with_its_run() -> Result<()> {
    let env = TestEnv::codex(running_a_tool()).await?;
    let run = start_tool(&env, env.request("Start.")).await?;
    run.control().interrupt();
    assert_aborted(&run.finish().await?);
    Ok(())
}
