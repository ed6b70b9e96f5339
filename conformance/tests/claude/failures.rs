//! Failures of the provider, and how the run reports them.

use anyhow::Result;
use serde_json::{Value, json};
use teamster::Event;
use teamster::event::{ErrorCode, WarningCode};
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::{HttpError, Reply};

use crate::{bash, full, no_retries};

async fn fails(error: HttpError, code: ErrorCode, retryable: bool) -> Result<Recording> {
    let env = TestEnv::claude(error).await?;
    let recording = env.run(no_retries(env.request("Hello?"))).await?;
    assert_eq!(recording.result.error_code, Some(code));
    assert_eq!(recording.failure()?.retryable, Some(retryable), "{}", recording.failure()?.message.as_str());
    assert_eq!(recording.result.text, "", "the CLI's words about a failure are not the model's");
    assert!(recording.result.session_id.is_some());
    Ok(recording)
}

#[tokio::test]
async fn a_key_that_is_refused_is_auth() -> Result<()> {
    fails(HttpError::unauthorized(), ErrorCode::Auth, false).await?;
    Ok(())
}

#[tokio::test]
async fn a_key_without_permission_is_auth() -> Result<()> {
    fails(HttpError::forbidden(), ErrorCode::Auth, false).await?;
    Ok(())
}

#[tokio::test]
async fn a_permanent_rate_limit_is_rate_limit() -> Result<()> {
    fails(HttpError::rate_limited(), ErrorCode::RateLimit, true).await?;
    Ok(())
}

#[tokio::test]
async fn an_internal_error_of_the_vendor_is_provider() -> Result<()> {
    fails(HttpError::internal(), ErrorCode::Provider, true).await?;
    Ok(())
}

#[tokio::test]
async fn an_overloaded_vendor_is_overloaded() -> Result<()> {
    fails(HttpError::overloaded(), ErrorCode::Overloaded, true).await?;
    Ok(())
}

#[tokio::test]
async fn a_model_that_does_not_exist_is_an_invalid_request() -> Result<()> {
    fails(HttpError::model_not_found(), ErrorCode::InvalidRequest, false).await?;
    Ok(())
}

#[tokio::test]
async fn an_account_without_credit_is_budget() -> Result<()> {
    fails(HttpError::out_of_credit(), ErrorCode::Budget, false).await?;
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_context_window() -> Result<()> {
    fails(HttpError::prompt_too_long(), ErrorCode::ContextWindow, false).await?;
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_too_large_is_context_window() -> Result<()> {
    fails(HttpError::request_too_large(), ErrorCode::ContextWindow, false).await?;
    Ok(())
}

#[tokio::test]
async fn an_error_page_of_a_proxy_is_provider() -> Result<()> {
    let page = HttpError::raw(502, "text/html", "<html><body>Bad Gateway</body></html>");
    fails(page, ErrorCode::Provider, true).await?;
    Ok(())
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_is_connection() -> Result<()> {
    let env = TestEnv::claude(Reply::new()).await?;
    let mut request = no_retries(env.request("Hello?"));
    // No program listens on the discard port.
    request.env.insert("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:9".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Connection));
    assert_eq!(recording.failure()?.retryable, Some(true));
    Ok(())
}

#[tokio::test]
async fn each_retry_is_a_warning_and_then_the_answer_comes() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Now.").fail_times(2, HttpError::rate_limited())).await?;
    let recording = env.run(env.request("Hello?")).await?;
    assert_eq!(recording.result.text, "Now.");
    assert!(!recording.result.is_error);
    let warnings = recording.warnings(&WarningCode::Retrying);
    let data: Vec<_> = warnings.iter().map(|warning| warning.data.clone().unwrap_or_default()).collect();
    assert_eq!(data.iter().map(|data| data["attempt"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    assert!(data.iter().all(|data| data["max"] == 10 && data["delayMs"].as_u64().is_some_and(|delay| delay > 0)));
    assert_eq!(recording.requests.len(), 3);
    Ok(())
}

/// Returns the text deltas of the answer, and the retractions.
fn deltas_and_retractions(recording: &Recording) -> Vec<Value> {
    let values = recording.events.iter().filter_map(|event| match event {
        Event::Text(delta) => Some(json!(delta.text)),
        Event::Retract(_) => Some(json!({"retract": true})),
        _ => None,
    });
    values.collect()
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_retracted_and_emitted_exactly_once() -> Result<()> {
    let answer = "This answer breaks off in the middle and comes again.";
    let env = TestEnv::claude(Reply::new().text(answer).cut_once_after(4)).await?;
    let recording = env.run(env.request("Answer.")).await?;
    assert_eq!(recording.result.text, answer);
    assert_eq!(recording.result.final_text, answer);
    assert_eq!(
        deltas_and_retractions(&recording).iter().filter(|value| value.is_object()).count(),
        1,
        "{:?}",
        deltas_and_retractions(&recording)
    );
    assert!(!recording.result.is_error);
    assert_eq!(recording.requests.len(), 2);
    Ok(())
}

#[tokio::test]
async fn an_answer_with_an_error_in_the_middle_is_retracted_and_emitted_exactly_once() -> Result<()> {
    let answer = "This answer fails in the middle and comes again.";
    let broken = Reply::new().text(answer).error_after(4, HttpError::overloaded());
    let env = TestEnv::claude(Reply::new().text(answer).at_first(1, broken)).await?;
    let recording = env.run(env.request("Answer.")).await?;
    assert_eq!(recording.result.text, answer);
    assert_eq!(
        deltas_and_retractions(&recording).iter().filter(|value| value.is_object()).count(),
        1,
        "{:?}",
        deltas_and_retractions(&recording)
    );
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_after_a_whole_block_keeps_the_block() -> Result<()> {
    // A delta has seven characters. The first block takes two deltas; the cut is in the tool call after it.
    let reply = Reply::new().text("A whole block.").tool("Bash", bash("echo never")).cut_after(4).drop_unstreamed();
    let env = TestEnv::claude(reply).await?;
    let recording = env.run(full(no_retries(env.request("Go.")))).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Connection));
    assert_eq!(recording.failure()?.retryable, Some(true));
    assert_eq!(recording.result.text, "A whole block.");
    Ok(())
}

#[tokio::test]
async fn an_overload_reported_before_the_first_text_is_not_taken_for_an_answer() -> Result<()> {
    let env =
        TestEnv::claude(Reply::new().text("Never.").error_after(0, HttpError::overloaded()).drop_unstreamed()).await?;
    let recording = env.run(no_retries(env.request("Hello?"))).await?;
    assert!(recording.result.is_error);
    assert_eq!(recording.failure()?.retryable, Some(true));
    assert_eq!(recording.result.text, "");
    Ok(())
}
