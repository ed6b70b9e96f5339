//! Failures of the vendor, of the connection, and of the CLI's settings.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::OutputMode;
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::{HttpError, Reply, Scenario};

use crate::{full, one_attempt, request, shell, user_settings};

async fn fails(error: HttpError) -> Result<Recording> {
    let env = TestEnv::gemini(Scenario::new().reply(error)).await?;
    one_attempt(&env)?;
    let run = env.run(request(&env, "Hello?")).await?;
    assert!(run.result.is_error);
    assert_eq!(run.result.text, "");
    Ok(run)
}

fn code(run: &Recording) -> Result<(&str, Option<bool>)> {
    let failure = run.failure()?;
    Ok((failure.code.as_str(), failure.retryable))
}

#[tokio::test]
async fn a_refused_key_is_auth() -> Result<()> {
    let run = fails(HttpError::unauthorized()).await?;
    assert_eq!(code(&run)?, ("AUTH", Some(false)));
    assert_eq!(run.result.exit_code, Some(145));
    assert_eq!(run.failure()?.message, "Request had invalid authentication credentials.");
    assert_eq!(code(&fails(HttpError::forbidden()).await?)?, ("AUTH", Some(false)));
    Ok(())
}

#[tokio::test]
async fn a_rate_limit_is_retryable() -> Result<()> {
    assert_eq!(code(&fails(HttpError::rate_limited()).await?)?, ("RATE_LIMIT", Some(true)));
    Ok(())
}

#[tokio::test]
async fn a_used_up_daily_quota_is_not_retryable() -> Result<()> {
    let body = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
         "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}"#;
    let run = fails(HttpError::raw(429, "application/json", body)).await?;
    assert_eq!(code(&run)?, ("RATE_LIMIT", Some(false)));
    Ok(())
}

#[tokio::test]
async fn an_error_of_the_vendor_is_retryable() -> Result<()> {
    assert_eq!(code(&fails(HttpError::internal()).await?)?, ("PROVIDER", Some(true)));
    assert_eq!(code(&fails(HttpError::overloaded()).await?)?, ("OVERLOADED", Some(true)));
    Ok(())
}

#[tokio::test]
async fn an_invalid_request_is_not_retryable() -> Result<()> {
    assert_eq!(code(&fails(HttpError::bad_request("no")).await?)?, ("INVALID_REQUEST", Some(false)));
    assert_eq!(code(&fails(HttpError::model_not_found()).await?)?, ("INVALID_REQUEST", Some(false)));
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_reported_by_the_cli_and_by_the_vendor_alike() -> Result<()> {
    assert_eq!(code(&fails(HttpError::prompt_too_long()).await?)?, ("CONTEXT_WINDOW", Some(false)));

    // The CLI counts the tokens first, and then exits with 0.
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    let mut asked = request(&env, "word ".repeat(1_200_000));
    asked.output = OutputMode::Batch;
    let run = env.run(asked.clone()).await?;
    assert_eq!(run.result.exit_code, Some(0));
    assert_eq!(code(&run)?, ("CONTEXT_WINDOW", Some(false)));
    assert!(run.requests.is_empty());
    // A stream starts with the whole prompt, which is larger than the pipe. The CLI exits without writing the rest: the
    // result may be lost.
    asked.output = OutputMode::Stream;
    let run = env.run(asked).await?;
    assert!(matches!(code(&run)?.0, "CONTEXT_WINDOW" | "PROTOCOL"));
    Ok(())
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_is_a_failed_connection() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    one_attempt(&env)?;
    let mut asked = request(&env, "Hello?");
    asked.env.insert("GOOGLE_GEMINI_BASE_URL".to_owned(), "http://127.0.0.1:9".to_owned());
    let run = env.run(asked).await?;
    assert_eq!(code(&run)?, ("CONNECTION", Some(true)));
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_in_mid_stream_is_connection() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("It starts and then it breaks.").cut_after(2)).await?;
    let run = env.run(request(&env, "Hello?")).await?;
    assert_eq!(code(&run)?, ("CONNECTION", Some(true)));
    assert!("It starts and then it breaks.".starts_with(run.result.text.as_str()));
    Ok(())
}

#[tokio::test]
async fn the_failure_of_a_batch_run_is_read_from_stderr() -> Result<()> {
    let env = TestEnv::gemini(Scenario::new().reply(HttpError::unauthorized())).await?;
    let mut asked = request(&env, "Hello?");
    asked.output = OutputMode::Batch;
    let run = env.run(asked).await?;
    assert_eq!(code(&run)?, ("AUTH", Some(false)));
    Ok(())
}

#[tokio::test]
async fn the_limit_of_turns_ends_the_run() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().tool("run_shell_command", shell("date +%N"))).await?;
    let mut asked = full(&env, "Never stop.");
    asked.max_turns = std::num::NonZeroU32::new(2);
    let run = env.run(asked).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(run.result.stop_reason, Some(StopReason::MaxTurns));
    assert_eq!(run.requests.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_stopped_and_that_is_not_a_success() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().tool("list_directory", json!({"dir_path": "."}))).await?;
    let run = env.run(full(&env, "Go.")).await?;
    assert_eq!(run.result.exit_code, Some(0), "the CLI reports a success");
    assert_eq!(code(&run)?, ("PROVIDER", Some(false)));
    Ok(())
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_an_error_and_are_left_alone() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    user_settings(&env, "{ broken")?;
    let run = env.run(request(&env, "Hello?")).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::Config));
    assert_eq!(fs::read_to_string(env.home().join(".gemini/settings.json"))?, "{ broken");
    Ok(())
}

#[tokio::test]
async fn a_run_without_a_key_is_auth() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    let mut asked = request(&env, "Hello?");
    asked.env.insert("GEMINI_API_KEY".to_owned(), String::new());
    let run = env.run(asked).await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::Auth));
    Ok(())
}
