//! What goes wrong at the vendor, or before it is asked: the same code on all four agents, and the same word on another try.

use std::fs;

use anyhow::Result;
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event};
use teamster_conformance::{AGENTS, Agent, Recording, TestEnv};
use teamster_testkit::provider::HttpError;

/// A lab whose agent gives up early, as far as it lets itself be told.
async fn impatient(agent: &Agent, error: HttpError) -> Result<(TestEnv, RunRequest)> {
    let error = match agent.name {
        // It tries again five times, whatever its settings are, but waits only as long as the vendor asks for.
        "opencode" => error.header("retry-after-ms", "1"),
        _ => error,
    };
    let lab = agent.lab(error).await?;
    if agent.name == "gemini" {
        fs::create_dir_all(lab.home().join(".gemini"))?;
        fs::write(lab.home().join(".gemini/settings.json"), r#"{"general": {"maxAttempts": 1}}"#)?;
    }
    let request = agent.request(&lab, "Hello?");
    Ok((lab, request))
}

fn assert_failed(agent: &Agent, recording: &Recording, code: &ErrorCode, retryable: bool) -> Result<()> {
    let failure = recording.failure()?;
    assert_eq!(
        (&failure.code, failure.retryable),
        (code, Some(retryable)),
        "{}: {}",
        agent.name,
        failure.message.as_str()
    );
    assert_eq!(recording.result.text, "", "{}: the CLI's words about a failure are not the model's", agent.name);
    Ok(())
}

async fn fails(error: fn() -> HttpError, code: ErrorCode, retryable: bool) -> Result<()> {
    for agent in AGENTS {
        let (lab, request) = impatient(agent, error()).await?;
        let recording = lab.run(request).await?;
        assert!(!recording.requests.is_empty(), "{}: the vendor was never asked", agent.name);
        assert_failed(agent, &recording, &code, retryable)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_forbidden_key_is_auth() -> Result<()> {
    fails(HttpError::forbidden, ErrorCode::Auth, false).await
}

#[tokio::test]
async fn too_many_requests_are_a_rate_limit_on_every_agent() -> Result<()> {
    fails(HttpError::rate_limited, ErrorCode::RateLimit, true).await
}

#[tokio::test]
async fn a_rate_limit_with_a_retry_time_is_a_rate_limit() -> Result<()> {
    fails(|| HttpError::rate_limited().retry_after(1), ErrorCode::RateLimit, true).await
}

#[tokio::test]
async fn an_internal_error_of_the_vendor_is_retryable() -> Result<()> {
    fails(HttpError::internal, ErrorCode::Provider, true).await
}

#[tokio::test]
async fn a_service_that_is_down_is_overloaded_on_every_agent() -> Result<()> {
    fails(HttpError::unavailable, ErrorCode::Overloaded, true).await
}

#[tokio::test]
async fn status_529_is_overloaded() -> Result<()> {
    fails(|| HttpError::overloaded().status(529), ErrorCode::Overloaded, true).await
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_context_window_on_every_agent() -> Result<()> {
    fails(HttpError::prompt_too_long, ErrorCode::ContextWindow, false).await
}

#[tokio::test]
async fn an_account_without_credit_is_budget() -> Result<()> {
    fails(HttpError::out_of_credit, ErrorCode::Budget, false).await
}

/// The others' CLIs keep it to themselves.
#[tokio::test]
async fn the_vendors_retry_delay_is_reported_as_a_time() -> Result<()> {
    let wait = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow down.", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "90s"}]}}"#;
    for agent in AGENTS.iter().filter(|agent| ["gemini", "opencode"].contains(&agent.name)) {
        let error = match agent.name {
            "gemini" => HttpError::raw(429, "application/json", wait),
            _ => HttpError::rate_limited().retry_after(1),
        };
        let (lab, request) = impatient(agent, error).await?;
        let recording = lab.run(request).await?;
        assert_failed(agent, &recording, &ErrorCode::RateLimit, true)?;
        let told = recording.events.iter().find_map(|event| match event {
            Event::RateLimit(limit) => Some(limit.resets_at.clone()),
            _ => None,
        });
        let time = told.flatten().unwrap_or_default();
        assert!(time.len() >= 20 && time.starts_with("20") && time.ends_with('Z'), "{}: {time:?}", agent.name);
    }
    Ok(())
}
