//! Limits of a run.

use std::num::NonZeroU32;

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Usage};

use crate::{bash, full, reply};

#[tokio::test]
async fn the_limit_of_turns_ends_the_run() -> Result<()> {
    let env =
        TestEnv::opencode(Reply::from_fn(|request| reply().tool("bash", bash(&format!("echo {}", request.turn)))))
            .await?;
    let mut request = full(env.request("Never stop."));
    request.max_turns = NonZeroU32::new(2);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTurns));
    assert_eq!(recording.result.num_turns, Some(2));
    assert_eq!(recording.tools().len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_limit_of_cost_ends_the_run() -> Result<()> {
    let usage = Usage { output: 100_000, ..Usage::ZERO };
    let env = TestEnv::opencode(Reply::new().tool("bash", bash("echo again")).usage(usage)).await?;
    let mut request = full(env.request("Never stop."));
    request.max_budget_usd = Some(0.01);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Budget));
    assert!(recording.result.total_cost_usd.is_some_and(|cost| cost > 0.01));
    assert_eq!(recording.result.num_turns, Some(1));
    Ok(())
}
