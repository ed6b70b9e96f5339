//! What goes wrong at the provider or in the agent, by its name.

use std::fs;
use std::net::TcpListener;

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ErrorCode, WarningCode};
use teamster_conformance::{Lab, Recording};
use teamster_testkit::provider::{HttpError, Reply};

async fn failing(error: HttpError) -> Result<(Lab, Recording)> {
    let lab = Lab::codex(error).await?;
    let recording = lab.run(lab.request("Hello?")).await?;
    assert_eq!(recording.result.exit_code, Some(1));
    assert_eq!(recording.result.text, "");
    Ok((lab, recording))
}

fn assert_failed(recording: &Recording, code: ErrorCode, retryable: bool) -> Result<()> {
    let failure = recording.failure()?;
    assert_eq!((&failure.code, failure.retryable), (&code, Some(retryable)), "{}", failure.message);
    assert_eq!(recording.result.error_code, Some(code));
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_refused_is_auth() -> Result<()> {
    let (_, recording) = failing(HttpError::unauthorized()).await?;
    assert_failed(&recording, ErrorCode::Auth, false)
}

#[tokio::test]
async fn too_many_requests_are_a_rate_limit() -> Result<()> {
    let (_, recording) = failing(HttpError::rate_limited()).await?;
    assert_failed(&recording, ErrorCode::RateLimit, true)
}

#[tokio::test]
async fn an_account_without_credit_is_a_budget() -> Result<()> {
    let (_, recording) = failing(HttpError::out_of_credit()).await?;
    assert_failed(&recording, ErrorCode::Budget, false)
}

#[tokio::test]
async fn a_plan_that_is_used_up_is_a_rate_limit_that_does_not_pass() -> Result<()> {
    let body = r#"{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}}"#;
    let (_, recording) = failing(HttpError::raw(429, "application/json", body)).await?;
    assert_failed(&recording, ErrorCode::RateLimit, false)
}

#[tokio::test]
async fn a_fault_of_the_provider_may_pass() -> Result<()> {
    let (_, recording) = failing(HttpError::internal()).await?;
    assert!(recording.requests.len() > 1, "it was tried again");
    assert_failed(&recording, ErrorCode::Provider, true)
}

#[tokio::test]
async fn a_provider_with_too_much_to_do_is_overloaded() -> Result<()> {
    let (_, recording) = failing(HttpError::overloaded()).await?;
    assert_failed(&recording, ErrorCode::Overloaded, true)
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_as_such() -> Result<()> {
    let (_, recording) = failing(HttpError::prompt_too_long()).await?;
    assert_eq!(recording.requests.len(), 1);
    assert_failed(&recording, ErrorCode::ContextWindow, false)
}

#[tokio::test]
async fn a_wrong_request_is_told_in_the_vendors_words_and_not_tried_again() -> Result<()> {
    let (_, recording) = failing(HttpError::bad_request("Unknown parameter: 'foo'.")).await?;
    assert_eq!(recording.requests.len(), 1);
    assert_eq!(recording.failure()?.message, "Unknown parameter: 'foo'.");
    assert_failed(&recording, ErrorCode::InvalidRequest, false)
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_and_tried_again() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("The whole answer.").cut_once_after(2)).await?;
    let recording = lab.run(lab.request("Hello?")).await?;
    assert_eq!(recording.result.text, "The whole answer.");
    assert!(!recording.result.is_error);
    let warnings = recording.warnings(&WarningCode::Retrying);
    let data = warnings[0].data.clone().unwrap_or_default();
    assert_eq!((&data["attempt"], &data["max"]), (&json!(1), &json!(1)));
    Ok(())
}

#[tokio::test]
async fn a_connection_that_always_breaks_is_a_connection_failure() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Never whole.").cut_after(1)).await?;
    let recording = lab.run(lab.request("Hello?")).await?;
    assert_eq!(recording.result.text, "", "half a message is none");
    assert_failed(&recording, ErrorCode::Connection, true)
}

fn with_config(mut request: RunRequest, entry: &str) -> RunRequest {
    request.cli_args.push(format!("--config={entry}"));
    request
}

/// By itself the agent tries for ever.
#[tokio::test]
async fn a_provider_that_does_not_listen_is_a_connection_failure_in_bounded_time() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Unheard.")).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    drop(listener);
    let recording =
        lab.run(with_config(lab.request("Hello?"), &format!("model_providers.lab.base_url=\"{url}\""))).await?;
    assert!(!recording.warnings(&WarningCode::Retrying).is_empty());
    assert_failed(&recording, ErrorCode::Connection, true)
}

#[tokio::test]
async fn a_key_that_is_not_set_is_auth() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Unheard.")).await?;
    let request = with_config(lab.request("Hello?"), "model_providers.lab.env_key=\"NO_SUCH_KEY\"");
    let recording = lab.run(request).await?;
    assert!(recording.requests.is_empty());
    assert_failed(&recording, ErrorCode::Auth, false)
}

#[tokio::test]
async fn a_broken_configuration_is_named_with_its_place() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Unheard.")).await?;
    fs::write(lab.home().join(".codex/config.toml"), "model = \n")?;
    let recording = lab.run(lab.request("Hello?")).await?;
    assert!(recording.failure()?.message.contains("config.toml:1:"), "{}", recording.failure()?.message);
    assert_failed(&recording, ErrorCode::Config, false)
}

#[tokio::test]
async fn a_flag_that_does_not_exist_is_an_invalid_request() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Unheard.")).await?;
    let mut request = lab.request("Hello?");
    request.cli_args.push("--no-such-flag".to_owned());
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.exit_code, Some(2));
    assert_failed(&recording, ErrorCode::InvalidRequest, false)
}

/// The launcher prints its help and exits with 0.
#[tokio::test]
async fn help_instead_of_an_answer_is_no_success() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Unheard.")).await?;
    let mut request = lab.request("Hello?");
    request.cli_args.push("--help".to_owned());
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.exit_code, Some(0));
    assert_eq!(recording.result.error_code, Some(ErrorCode::Protocol));
    Ok(())
}
