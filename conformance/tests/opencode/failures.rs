//! Failures of the provider, and how the run reports them.

use std::time::Duration;

use anyhow::Result;
use teamster::Event;
use teamster::event::{ErrorCode, WarningCode};
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::{HttpError, Reply};

use crate::reply;

async fn fails(error: HttpError, code: ErrorCode) -> Result<Recording> {
    let env = TestEnv::opencode(error).await?;
    let recording = env.run(env.request("Hello?")).await?;
    assert_eq!(recording.result.error_code, Some(code));
    assert_eq!(recording.failure()?.retryable, Some(false), "{}", recording.failure()?.message.as_str());
    assert_eq!(recording.result.text, "");
    assert!(recording.result.session_id.is_some());
    Ok(recording)
}

#[tokio::test]
async fn a_failure_that_is_not_retried_is_reported_at_once() -> Result<()> {
    fails(HttpError::unauthorized(), ErrorCode::Auth).await?;
    fails(HttpError::forbidden(), ErrorCode::Auth).await?;
    fails(HttpError::model_not_found(), ErrorCode::InvalidRequest).await?;
    Ok(())
}

#[tokio::test]
async fn a_rate_limit_and_an_internal_error_are_retried_until_the_answer() -> Result<()> {
    for error in [HttpError::rate_limited(), HttpError::internal()] {
        let env = TestEnv::opencode(reply().text("Now.").fail_times(1, error)).await?;
        let recording = env.run(env.request("Hello?")).await?;
        assert_eq!(recording.result.text, "Now.");
        assert!(!recording.result.is_error);
        assert_eq!(recording.requests.len(), 2);
    }
    Ok(())
}

/// 1.18.33 waits as long as the vendor requests, even for hours.
#[tokio::test]
async fn a_vendor_that_requests_an_hour_triggers_the_watchdog() -> Result<()> {
    let env = TestEnv::opencode(HttpError::rate_limited().retry_after(3600)).await?;
    let mut request = env.request("Hello?");
    request.limits.silence = Duration::from_secs(20);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::WatchdogTimeout));
    assert_eq!(recording.requests.len(), 1);
    assert_eq!(recording.warnings(&WarningCode::Retrying).len(), 1);
    assert!(recording.events.iter().any(|event| matches!(event, Event::RateLimit(_))));
    Ok(())
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_is_connection_in_the_end() -> Result<()> {
    let env = TestEnv::opencode(Reply::new()).await?;
    let mut request = env.request("Hello?");
    // No program listens on the discard port.
    let config = r#"{"model":"test/m1","provider":{"test":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://127.0.0.1:9/v1","apiKey":"x"},"models":{"m1":{}}}}}"#;
    request.env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config.to_owned());
    request.limits.deadline = Duration::from_mins(2);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Connection));
    assert_eq!(recording.failure()?.retryable, Some(true));
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_stays_too_long_is_context_window() -> Result<()> {
    let env = TestEnv::opencode(HttpError::prompt_too_long()).await?;
    let recording = env.run(env.request("Hello?")).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::ContextWindow));
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_is_compacted_and_answered_is_not_an_error() -> Result<()> {
    let summary = reply().text("SUMMARY");
    let env =
        TestEnv::opencode(reply().text("The answer.").at_first(1, HttpError::prompt_too_long()).at_first(1, summary))
            .await?;
    let recording = env.run(env.request("Hello?")).await?;
    assert_eq!(recording.result.text, "The answer.");
    assert!(!recording.result.is_error);
    assert_eq!(recording.warnings(&WarningCode::Compacted).len(), 1);
    Ok(())
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_emitted_exactly_once() -> Result<()> {
    let answer = "This answer breaks off in the middle and comes again.";
    let env = TestEnv::opencode(reply().text(answer).cut_once_after(4)).await?;
    let recording = env.run(env.request("Answer.")).await?;
    assert_eq!(recording.result.text, answer);
    assert!(!recording.result.is_error);
    assert_eq!(recording.requests.len(), 2);
    Ok(())
}

#[tokio::test]
async fn an_unknown_model_is_an_invalid_request_with_its_reason() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Never.")).await?;
    let mut request = env.request("Hello?");
    request.model = Some("test/none".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(
        recording.result.error_code,
        Some(ErrorCode::InvalidRequest),
        "{}",
        recording.failure()?.message.as_str()
    );
    assert!(recording.failure()?.message.contains("none"), "{}", recording.failure()?.message.as_str());
    Ok(())
}
