//! Failures of the vendor: the same code on all four agents, and the same advice about a retry.

use std::fs;

use anyhow::Result;
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event};
use teamster_conformance::{Agent, Recording, TestEnv, agent_tests};
use teamster_testkit::provider::HttpError;

agent_tests! {
    a_forbidden_key_is_auth: all,
    too_many_requests_are_a_rate_limit_on_every_agent: all,
    a_rate_limit_with_a_retry_time_is_a_rate_limit: all,
    an_internal_error_of_the_vendor_is_retryable: all,
    a_service_that_is_down_is_overloaded_on_every_agent: all,
    status_529_is_overloaded: all,
    a_conversation_that_is_too_long_is_context_window_on_every_agent: all,
    an_account_without_credit_is_budget: all,
    // The other two CLIs do not report it.
    the_vendors_retry_delay_is_reported_as_a_time: [gemini, opencode],
}

/// Creates an environment whose agent makes as few attempts as it can be configured to make.
async fn few_attempts(agent: &Agent, error: HttpError) -> Result<(TestEnv, RunRequest)> {
    let error = match agent.name {
        // It makes six attempts with any settings, but waits only as long as the vendor requests.
        "opencode" => error.header("retry-after-ms", "1"),
        _ => error,
    };
    let env = agent.test_env(error).await?;
    if agent.name == "gemini" {
        fs::create_dir_all(env.home().join(".gemini"))?;
        fs::write(env.home().join(".gemini/settings.json"), r#"{"general": {"maxAttempts": 1}}"#)?;
    }
    let request = agent.request(&env, "Hello?");
    Ok((env, request))
}

fn assert_failed(recording: &Recording, code: &ErrorCode, retryable: bool) -> Result<()> {
    let failure = recording.failure()?;
    assert_eq!((&failure.code, failure.retryable), (code, Some(retryable)), "{}", failure.message.as_str());
    assert_eq!(recording.result.text, "", "the CLI's message about a failure is not the model's text");
    Ok(())
}

async fn fails(agent: &Agent, error: HttpError, code: ErrorCode, retryable: bool) -> Result<()> {
    let (env, request) = few_attempts(agent, error).await?;
    let recording = env.run(request).await?;
    assert!(!recording.requests.is_empty(), "no request reached the vendor");
    assert_failed(&recording, &code, retryable)
}

async fn a_forbidden_key_is_auth(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::forbidden(), ErrorCode::Auth, false).await
}

async fn too_many_requests_are_a_rate_limit_on_every_agent(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::rate_limited(), ErrorCode::RateLimit, true).await
}

async fn a_rate_limit_with_a_retry_time_is_a_rate_limit(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::rate_limited().retry_after(1), ErrorCode::RateLimit, true).await
}

async fn an_internal_error_of_the_vendor_is_retryable(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::internal(), ErrorCode::Provider, true).await
}

async fn a_service_that_is_down_is_overloaded_on_every_agent(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::unavailable(), ErrorCode::Overloaded, true).await
}

async fn status_529_is_overloaded(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::overloaded().status(529), ErrorCode::Overloaded, true).await
}

async fn a_conversation_that_is_too_long_is_context_window_on_every_agent(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::prompt_too_long(), ErrorCode::ContextWindow, false).await
}

async fn an_account_without_credit_is_budget(agent: &Agent) -> Result<()> {
    fails(agent, HttpError::out_of_credit(), ErrorCode::Budget, false).await
}

async fn the_vendors_retry_delay_is_reported_as_a_time(agent: &Agent) -> Result<()> {
    let wait = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow down.", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "90s"}]}}"#;
    let error = match agent.name {
        "gemini" => HttpError::raw(429, "application/json", wait),
        _ => HttpError::rate_limited().retry_after(1),
    };
    let (env, request) = few_attempts(agent, error).await?;
    let recording = env.run(request).await?;
    assert_failed(&recording, &ErrorCode::RateLimit, true)?;
    let resets_at = recording.events.iter().find_map(|event| match event {
        Event::RateLimit(limit) => Some(limit.resets_at.clone()),
        _ => None,
    });
    let time = resets_at.flatten().unwrap_or_default();
    assert!(time.len() >= 20 && time.starts_with("20") && time.ends_with('Z'), "{time:?}");
    Ok(())
}
