//! Conversations that go on from run to run.

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId};
use teamster::request::Conversation;
use teamster_conformance::{Lab, Recording};
use teamster_testkit::provider::{Message, ModelRequest, Reply};

use crate::usage_of;

/// A model that says how often it has been asked in this conversation.
async fn lab() -> Result<Lab> {
    Lab::claude(Reply::from_fn(|request| Reply::new().text(format!("Answer {}.", prompts(request).len())))).await
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
async fn a_resumed_conversation_has_its_history_and_its_id() -> Result<()> {
    let lab = lab().await?;
    let first = lab.run(lab.request("First.")).await?;
    let id = session(&first)?;
    let second = lab.run(with(lab.request("Second."), Conversation::Resume(id.clone()))).await?;
    assert_eq!(session(&second)?, id);
    assert_eq!(second.init()?.session_id, id);
    assert_eq!(prompts(&second.requests[0]), ["First.", "Second."]);
    assert_eq!(second.result.text, "Answer 2.");
    // A resumed run tells its own share, not the session's.
    assert_eq!(usage_of(&second.result), Some(lab.provider().usage_where(|request| request.number == 2)));
    Ok(())
}

#[tokio::test]
async fn a_fork_has_the_history_and_an_id_of_its_own() -> Result<()> {
    let lab = lab().await?;
    let id = session(&lab.run(lab.request("First.")).await?)?;
    let fork = lab.run(with(lab.request("Fork."), Conversation::Fork(id.clone()))).await?;
    assert_ne!(session(&fork)?, id);
    assert_eq!(prompts(&fork.requests[0]), ["First.", "Fork."]);
    let original = lab.run(with(lab.request("Second."), Conversation::Resume(id.clone()))).await?;
    assert_eq!(prompts(&original.requests[0]), ["First.", "Second."]);
    Ok(())
}

#[tokio::test]
async fn continuing_takes_up_the_newest_conversation_of_the_directory() -> Result<()> {
    let lab = lab().await?;
    lab.run(lab.request("Old.")).await?;
    let newest = session(&lab.run(lab.request("Newest.")).await?)?;
    let recording = lab.run(with(lab.request("Go on."), Conversation::Continue)).await?;
    assert_eq!(session(&recording)?, newest);
    assert_eq!(prompts(&recording.requests[0]), ["Newest.", "Go on."]);
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
    for id in ["00000000-0000-4000-8000-000000000000", "no such title"] {
        let recording = lab.run(with(lab.request("Hello?"), Conversation::Resume(id.into()))).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound), "{id}");
        assert_eq!(recording.failure()?.retryable, Some(false));
        assert!(recording.requests.is_empty(), "the model was asked");
    }
    Ok(())
}

#[tokio::test]
async fn two_runs_at_once_in_one_home_do_not_disturb_each_other() -> Result<()> {
    let lab = Lab::claude(Reply::from_fn(|request| {
        Reply::new().text(format!("You said {:?}.", request.prompts())).gate_before("both")
    }))
    .await?;
    let (one, two) = (lab.start(lab.request("One."))?, lab.start(lab.request("Two."))?);
    lab.provider().wait_until(teamster_conformance::BOUND, |requests| requests.len() == 2).await?;
    lab.provider().gate("both").open();
    let (one, two) = tokio::join!(one.finish(), two.finish());
    let (one, two) = (one?, two?);
    assert_eq!(one.result.text, "You said [\"One.\"].");
    assert_eq!(two.result.text, "You said [\"Two.\"].");
    assert_ne!(session(&one)?, session(&two)?);
    let again = lab.run(with(lab.request("Again."), Conversation::Resume(session(&one)?))).await?;
    assert_eq!(prompts(&again.requests[0]), ["One.", "Again."]);
    Ok(())
}
