//! Limits that the caller sets.

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario, Usage};

use crate::{bash, full};

fn never_done() -> Scenario {
    Scenario::new().reply(Reply::new().tool("Bash", bash("echo again")))
}

#[tokio::test]
async fn the_limit_of_turns_ends_the_run() -> Result<()> {
    let env = TestEnv::claude(never_done()).await?;
    let mut request = full(env.request("Never stop."));
    request.max_turns = NonZeroU32::new(3);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTurns));
    assert_eq!(recording.requests.len(), 3);
    assert_eq!(recording.failure()?.retryable, Some(false));
    Ok(())
}

#[tokio::test]
async fn the_limit_of_cost_ends_the_run() -> Result<()> {
    let usage = Usage { output: 100_000, ..Usage::ZERO };
    let env = TestEnv::claude(Reply::new().tool("Bash", bash("echo again")).usage(usage)).await?;
    let mut request = full(env.request("Never stop."));
    request.max_budget_usd = Some(0.01);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Budget));
    assert!(recording.result.total_cost_usd.is_some_and(|cost| cost > 0.01));
    assert!(recording.requests.len() <= 2, "{} calls", recording.requests.len());
    Ok(())
}

#[tokio::test]
async fn a_silent_model_triggers_the_watchdog() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Then silence falls.").stall_after(1)).await?;
    let mut request = env.request("TestSession.");
    request.limits.silence = Duration::from_secs(2);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::WatchdogTimeout));
    assert!(!recording.result.aborted);
    Ok(())
}

#[tokio::test]
async fn the_deadline_ends_a_run_that_is_busy() -> Result<()> {
    let env = TestEnv::claude(never_done()).await?;
    let mut request = full(env.request("Never stop."));
    request.limits.deadline = Duration::from_secs(3);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::DeadlineExceeded));
    assert!(recording.result.duration_ms < 10_000);
    Ok(())
}
