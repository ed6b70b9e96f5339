//! An interrupt on Claude Code. What is the same on all agents is in `all/ending.rs`.

use anyhow::Result;
use teamster::event::{ErrorCode, StopReason};
use teamster_conformance::{TIMEOUT, TestEnv};
use teamster_testkit::provider::Reply;

#[tokio::test]
async fn an_interrupt_while_the_model_has_not_answered_yet_ends_the_run() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Too late.").gate_before("never")).await?;
    let run = env.start(env.request("Start."))?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    assert_eq!(recording.result.stop_reason, Some(StopReason::Cancelled));
    assert_eq!(recording.result.signal, None, "it was not killed");
    assert_eq!(recording.result.text, "");
    Ok(())
}
