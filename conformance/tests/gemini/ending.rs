//! Limits of a run.

use std::time::Duration;

use anyhow::Result;
use teamster::event::ErrorCode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::request;

#[tokio::test]
async fn a_silent_vendor_triggers_the_watchdog() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("It starts and never ends.").stall_after(2)).await?;
    let mut asked = request(&env, "Start.");
    asked.limits.silence = Duration::from_secs(5);
    let run = env.run(asked).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::WatchdogTimeout));
    Ok(())
}
