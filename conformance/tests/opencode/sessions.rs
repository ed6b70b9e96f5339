//! Conversations that go on from run to run.

use std::time::Duration;

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId, WarningCode};
use teamster::request::{Conversation, Mode};
use teamster_conformance::{Lab, Recording};
use teamster_testkit::provider::{Message, ModelRequest, Reply};

use crate::{reply, usage_of};

/// A model that says how often it has been asked in this conversation.
async fn lab() -> Result<Lab> {
    Lab::opencode(Reply::from_fn(|request| reply().text(format!("Answer {}.", prompts(request).len())))).await
}

fn prompts(request: &ModelRequest) -> Vec<&str> {
    request.messages.iter().filter(|message| message.is_prompt()).flat_map(Message::texts).collect()
}

fn with(mut request: RunRequest, conversation: Conversation) -> RunRequest {
    request.conversation = conversation;
    request
}

fn session(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

#[tokio::test]
async fn a_conversation_is_resumed_continued_and_forked_with_its_history() -> Result<()> {
    let lab = lab().await?;
    let id = session(&lab.run(lab.request("First.")).await?)?;
    let second = lab.run(with(lab.request("Second."), Conversation::Resume(id.clone()))).await?;
    assert_eq!(session(&second)?, id);
    assert_eq!(prompts(&second.requests[0]), ["First.", "Second."]);
    assert_eq!(second.result.text, "Answer 2.");
    // A resumed run tells its own share, not the session's.
    assert_eq!(usage_of(&second.result), Some(lab.provider().usage_where(|request| request.number == 2)));

    let fork = lab.run(with(lab.request("Aside."), Conversation::Fork(id.clone()))).await?;
    assert_ne!(session(&fork)?, id);
    assert_eq!(prompts(&fork.requests[0]), ["First.", "Second.", "Aside."]);

    let third = lab.run(with(lab.request("Third."), Conversation::Resume(id))).await?;
    assert_eq!(prompts(&third.requests[0]), ["First.", "Second.", "Third."]);

    let newest = lab.run(with(lab.request("More."), Conversation::Continue)).await?;
    assert!(prompts(&newest.requests[0]).starts_with(&["First.", "Second."]));
    Ok(())
}

#[tokio::test]
async fn continuing_where_there_is_nothing_begins_anew() -> Result<()> {
    let lab = lab().await?;
    let recording = lab.run(with(lab.request("Go on."), Conversation::Continue)).await?;
    assert_eq!(prompts(&recording.requests[0]), ["Go on."]);
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_named_so() -> Result<()> {
    let lab = lab().await?;
    for id in ["ses_dff6f0bfeffeb0oxj5zKAoqDNm", "no such thing"] {
        let recording = lab.run(with(lab.request("Hello?"), Conversation::Resume(id.into()))).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound), "{id}");
        assert_eq!(recording.failure()?.retryable, Some(false));
        assert!(recording.requests.is_empty(), "the model was asked");
    }
    Ok(())
}

#[tokio::test]
async fn a_session_of_another_directory_is_refused_before_the_model_is_asked() -> Result<()> {
    let lab = lab().await?;
    let id = session(&lab.run(lab.request("First.")).await?)?;
    let mut request = with(lab.request("Second."), Conversation::Resume(id));
    request.cwd = Some(lab.directory("elsewhere")?);
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound));
    assert!(recording.failure()?.message.contains("directory"), "{}", recording.failure()?.message);
    assert!(recording.requests.is_empty(), "the model was asked");
    Ok(())
}

/// 1.18.33 works on in the other directory and never says a word.
#[tokio::test]
async fn in_one_shot_a_session_of_another_directory_ends_by_the_watchdog_with_the_reason() -> Result<()> {
    let lab = lab().await?;
    let id = session(&lab.run(lab.request("First.")).await?)?;
    let mut request = with(lab.request("Second."), Conversation::Resume(id));
    request.mode = Mode::Exec;
    request.cwd = Some(lab.directory("elsewhere")?);
    request.limits.startup = Duration::from_secs(20);
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::WatchdogTimeout));
    assert_eq!(recording.warnings(&WarningCode::SessionMismatch).len(), 1);
    Ok(())
}
