//! Conversations of several runs on Codex. What is the same on all agents is in `all/conversations.rs`.

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId, UsageScope};
use teamster::request::Conversation;
use teamster_conformance::{Recording, TIMEOUT, TestEnv};
use teamster_testkit::provider::{Message, ModelRequest, Reply};

use crate::{exec, usage_of};

/// A model that answers with the number of prompts in the conversation.
async fn test_env() -> Result<TestEnv> {
    TestEnv::codex(Reply::from_fn(|request| Reply::new().text(format!("Answer {}.", prompts(request).len())))).await
}

pub(crate) fn prompts(request: &ModelRequest) -> Vec<&str> {
    request.messages.iter().filter(|message| message.is_prompt()).flat_map(Message::texts).collect()
}

fn with(mut request: RunRequest, conversation: Conversation) -> RunRequest {
    request.conversation = conversation;
    request
}

fn session_id(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

/// The one-shot form does not report the usage before the run.
#[tokio::test]
async fn usage_of_the_one_shot_form_covers_the_whole_thread_and_is_marked_so() -> Result<()> {
    let env = test_env().await?;
    let id = session_id(&env.run(exec(env.request("First."))).await?)?;
    let second = env.run(exec(with(env.request("Second."), Conversation::Resume(id)))).await?;
    assert_eq!(prompts(&second.requests[0]), ["First.", "Second."]);
    assert_eq!(second.result.usage_scope, Some(UsageScope::Session));
    assert_eq!(usage_of(&second.result), Some(env.provider().usage_total()));
    Ok(())
}

/// Without an option, the agent would change to the model of its configuration.
#[tokio::test]
async fn a_resumed_conversation_keeps_its_model() -> Result<()> {
    let env = test_env().await?;
    let mut request = env.request("First.");
    request.model = Some("gpt-5.4".to_owned());
    let id = session_id(&env.run(request).await?)?;
    for conversation in [Conversation::Resume(id.clone()), Conversation::Fork(id)] {
        let recording = env.run(with(env.request("Second."), conversation)).await?;
        assert_eq!(recording.requests[0].model, "gpt-5.4");
        assert_eq!(recording.result.model.as_deref(), Some("gpt-5.4"));
    }
    Ok(())
}

#[tokio::test]
async fn a_session_id_in_capitals_is_the_same_session() -> Result<()> {
    let env = test_env().await?;
    let id = session_id(&env.run(env.request("First.")).await?)?;
    let capitals = SessionId::from(id.as_str().to_uppercase());
    let second = env.run(with(env.request("Second."), Conversation::Resume(capitals))).await?;
    assert_eq!(session_id(&second)?, id);
    assert_eq!(prompts(&second.requests[0]), ["First.", "Second."]);
    Ok(())
}

#[tokio::test]
async fn a_missing_session_is_session_not_found_in_each_form() -> Result<()> {
    let env = test_env().await?;
    let id = || SessionId::from("00000000-0000-4000-8000-000000000000");
    for (conversation, form) in [
        (Conversation::Resume(id()), (|request| request) as fn(RunRequest) -> RunRequest),
        (Conversation::Fork(id()), |request| request),
        (Conversation::Resume(id()), exec),
    ] {
        let recording = env.run(form(with(env.request("Hello?"), conversation))).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound));
        assert_eq!(recording.failure()?.retryable, Some(false));
        assert!(recording.requests.is_empty(), "a request reached the model");
    }
    Ok(())
}

#[tokio::test]
async fn a_name_is_refused_before_anything_is_started() -> Result<()> {
    let env = test_env().await?;
    for name in ["some name", "00000000000040008000000000000000", "{00000000-0000-4000-8000-000000000000}"] {
        for conversation in [Conversation::Resume(name.into()), Conversation::Fork(name.into())] {
            let error = env.start(with(env.request("Hello?"), conversation)).err().context("the run was started")?;
            assert!(error.to_string().contains("UUID"), "{error}");
        }
    }
    assert!(env.provider().requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_session_in_use_is_refused_and_retryable() -> Result<()> {
    let env = TestEnv::codex(Reply::from_fn(|request| match request.number {
        2 => Reply::new().text("Slowly.").gate_before("slow"),
        _ => Reply::new().text("At once."),
    }))
    .await?;
    let id = session_id(&env.run(env.request("First.")).await?)?;
    let slow = env.start(with(env.request("Second."), Conversation::Resume(id.clone())))?;
    env.provider().gate("slow").wait_reached(TIMEOUT).await?;
    let refused = env.run(with(env.request("Third."), Conversation::Resume(id.clone()))).await?;
    assert_eq!(refused.result.error_code, Some(ErrorCode::InvalidRequest));
    assert_eq!(refused.failure()?.retryable, Some(true));
    env.provider().gate("slow").open();
    assert_eq!(slow.finish().await?.result.text, "Slowly.");
    Ok(())
}
