//! Failures of the provider and of the agent, and their codes.

use std::fs;
use std::net::TcpListener;

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ErrorCode, WarningCode};
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::{HttpError, Reply};

use crate::exec;

/// Runs both forms of the agent. Only the one-shot form exits with a code for the failure.
async fn failing(error: HttpError) -> Result<[Recording; 2]> {
    let recordings = failing_with_any_exit(error).await?;
    assert_eq!(recordings.each_ref().map(|recording| recording.result.exit_code), [Some(0), Some(1)]);
    Ok(recordings)
}

/// Runs both forms of the agent, whatever their exit code is.
async fn failing_with_any_exit(error: HttpError) -> Result<[Recording; 2]> {
    let env = TestEnv::codex(error).await?;
    let app_server = env.run(env.request("Hello?")).await?;
    let exec = env.run(exec(env.request("Hello?"))).await?;
    assert_eq!((app_server.result.text.as_str(), exec.result.text.as_str()), ("", ""));
    Ok([app_server, exec])
}

fn assert_both(recordings: &[Recording; 2], code: &ErrorCode, retryable: bool) -> Result<()> {
    recordings.iter().try_for_each(|recording| assert_failed(recording, code.clone(), retryable))
}

fn assert_failed(recording: &Recording, code: ErrorCode, retryable: bool) -> Result<()> {
    let failure = recording.failure()?;
    assert_eq!((&failure.code, failure.retryable), (&code, Some(retryable)), "{}", failure.message.as_str());
    assert_eq!(recording.result.error_code, Some(code));
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_refused_is_auth() -> Result<()> {
    // The one-shot form is ended at its first response, so it has no exit code.
    assert_both(&failing_with_any_exit(HttpError::unauthorized()).await?, &ErrorCode::Auth, false)
}

#[tokio::test]
async fn too_many_requests_are_a_rate_limit() -> Result<()> {
    assert_both(&failing(HttpError::rate_limited()).await?, &ErrorCode::RateLimit, true)
}

#[tokio::test]
async fn an_account_without_credit_is_budget() -> Result<()> {
    assert_both(&failing(HttpError::out_of_credit()).await?, &ErrorCode::Budget, false)
}

#[tokio::test]
async fn a_used_up_plan_is_a_rate_limit_that_is_not_retryable() -> Result<()> {
    let body = r#"{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}}"#;
    assert_both(&failing(HttpError::raw(429, "application/json", body)).await?, &ErrorCode::RateLimit, false)
}

#[tokio::test]
async fn an_internal_error_of_the_provider_is_retryable() -> Result<()> {
    let recordings = failing(HttpError::internal()).await?;
    assert!(recordings.iter().all(|recording| recording.requests.len() > 1), "the agent retried");
    assert_both(&recordings, &ErrorCode::Provider, true)
}

#[tokio::test]
async fn an_overloaded_provider_is_overloaded() -> Result<()> {
    assert_both(&failing(HttpError::overloaded()).await?, &ErrorCode::Overloaded, true)
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_context_window() -> Result<()> {
    let recordings = failing(HttpError::prompt_too_long()).await?;
    assert!(recordings.iter().all(|recording| recording.requests.len() == 1));
    assert_both(&recordings, &ErrorCode::ContextWindow, false)
}

#[tokio::test]
async fn an_invalid_request_is_reported_with_the_vendors_message_and_not_retried() -> Result<()> {
    let recordings = failing(HttpError::bad_request("Unknown parameter: 'foo'.")).await?;
    for recording in &recordings {
        assert_eq!(recording.requests.len(), 1);
        assert_eq!(recording.failure()?.message, "Unknown parameter: 'foo'.");
    }
    assert_both(&recordings, &ErrorCode::InvalidRequest, false)
}

#[tokio::test]
async fn a_broken_connection_is_reported_and_retried() -> Result<()> {
    for form in [|request| request, exec] {
        let env = TestEnv::codex(Reply::new().text("The whole answer.").cut_once_after(2)).await?;
        let recording = env.run(form(env.request("Hello?"))).await?;
        assert_eq!(recording.result.text, "The whole answer.");
        assert!(!recording.result.is_error);
        let warnings = recording.warnings(&WarningCode::Retrying);
        let data = warnings[0].data.clone().unwrap_or_default();
        assert_eq!((&data["attempt"], &data["max"]), (&json!(1), &json!(1)));
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_always_breaks_is_a_connection_failure() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Never whole.").cut_after(1)).await?;
    let recording = env.run(env.request("Hello?")).await?;
    assert_eq!(recording.result.text, "", "a part of a message is retracted");
    assert_failed(&recording, ErrorCode::Connection, true)
}

fn with_config(mut request: RunRequest, entry: &str) -> RunRequest {
    request.cli_args.push(format!("--config={entry}"));
    request
}

/// Without a limit, the agent retries without end.
#[tokio::test]
async fn a_provider_that_does_not_listen_is_a_connection_failure_in_bounded_time() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    drop(listener);
    let recording =
        env.run(with_config(env.request("Hello?"), &format!("model_providers.test.base_url=\"{url}\""))).await?;
    assert!(!recording.warnings(&WarningCode::Retrying).is_empty());
    assert_failed(&recording, ErrorCode::Connection, true)
}

#[tokio::test]
async fn a_key_that_is_not_set_is_auth() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    let request = with_config(env.request("Hello?"), "model_providers.test.env_key=\"NO_SUCH_KEY\"");
    let recording = env.run(request).await?;
    assert!(recording.requests.is_empty());
    assert_failed(&recording, ErrorCode::Auth, false)
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_with_its_position() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    fs::write(env.home().join(".codex/config.toml"), "model = \n")?;
    for request in [env.request("Hello?"), exec(env.request("Hello?"))] {
        let recording = env.run(request).await?;
        assert!(recording.failure()?.message.contains("config.toml:1:"), "{}", recording.failure()?.message.as_str());
        assert_failed(&recording, ErrorCode::Config, false)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_flag_that_does_not_exist_is_an_invalid_request() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    let mut request = env.request("Hello?");
    request.cli_args.push("--no-such-flag".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.result.exit_code, Some(2));
    assert_failed(&recording, ErrorCode::InvalidRequest, false)
}

/// The launcher prints its help and exits with 0.
#[tokio::test]
async fn help_output_is_not_a_success() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    let mut request = env.request("Hello?");
    request.cli_args.push("--help".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.result.exit_code, Some(0));
    assert_eq!(recording.result.error_code, Some(ErrorCode::Protocol));
    Ok(())
}
