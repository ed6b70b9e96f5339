//! Runs that end by a limit.

use std::time::Duration;

use anyhow::Result;
use teamster::event::ErrorCode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::request;

#[tokio::test]
async fn a_silent_vendor_is_left_when_the_limit_is_over() -> Result<()> {
    let lab = TestEnv::gemini(Reply::new().text("It begins and never ends.").stall_after(2)).await?;
    let mut asked = request(&lab, "Begin.");
    asked.limits.silence = Duration::from_secs(5);
    let run = lab.run(asked).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::WatchdogTimeout));
    Ok(())
}
