//! Conversations of several runs on OpenCode. What is the same on all agents is in `all/conversations.rs`.

use std::time::Duration;

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId, WarningCode};
use teamster::request::{AgentInterface, Conversation};
use teamster_conformance::{Recording, TestEnv};

use crate::reply;

fn with(mut request: RunRequest, conversation: Conversation) -> RunRequest {
    request.conversation = conversation;
    request
}

fn session_id(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

#[tokio::test]
async fn a_session_of_another_directory_is_refused_before_the_model_is_asked() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Here I am.")).await?;
    let id = session_id(&env.run(env.request("First.")).await?)?;
    let mut request = with(env.request("Second."), Conversation::Resume(id));
    request.cwd = Some(env.create_directory("elsewhere")?);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound));
    assert!(recording.failure()?.message.contains("directory"), "{}", recording.failure()?.message.as_str());
    assert!(recording.requests.is_empty(), "a request reached the model");
    Ok(())
}

/// 1.18.33 continues in the other directory, and emits no event.
#[tokio::test]
async fn the_one_shot_form_ends_a_session_of_another_directory_by_the_watchdog() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Here I am.")).await?;
    let id = session_id(&env.run(env.request("First.")).await?)?;
    let mut request = with(env.request("Second."), Conversation::Resume(id));
    request.interface = AgentInterface::Exec;
    request.cwd = Some(env.create_directory("elsewhere")?);
    request.limits.startup = Duration::from_secs(20);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::WatchdogTimeout));
    assert_eq!(recording.warnings(&WarningCode::SessionMismatch).len(), 1);
    Ok(())
}
