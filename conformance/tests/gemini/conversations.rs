//! Conversations of several runs on Gemini CLI. What is the same on all agents is in `all/conversations.rs`.

use std::fs;

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId};
use teamster::request::Conversation;
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::Reply;

use crate::{prompts, request, usage, user_settings};

/// A model that answers with the number of prompts in the conversation.
async fn test_env() -> Result<TestEnv> {
    let answer = |request: &_| Reply::new().text(format!("Answer {}.", prompts(request).len())).usage(usage());
    TestEnv::gemini(Reply::from_fn(answer)).await
}

fn with(mut request: RunRequest, conversation: Conversation) -> RunRequest {
    request.conversation = conversation;
    request
}

fn session_id(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

async fn resume(env: &TestEnv, id: &SessionId, prompt: &str) -> Result<Recording> {
    env.run(with(request(env, prompt), Conversation::Resume(id.clone()))).await
}

/// If a session was resumed in a later minute than its start, the CLI deletes it when another session starts. Teamster
/// prevents that.
#[tokio::test]
async fn a_session_that_was_resumed_is_still_there_after_other_runs() -> Result<()> {
    let env = test_env().await?;
    let id = session_id(&env.run(request(&env, "First.")).await?)?;
    let chats = env.home().join(".gemini/tmp/project/chats");
    for entry in fs::read_dir(&chats)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // `session-2026-11-22T03-15-ID8.jsonl`: as if it had started long ago.
        let tail = name.get(name.len() - "12345678.jsonl".len()..).context("a short name")?;
        fs::rename(entry.path(), chats.join(format!("session-2026-01-01T00-00-{tail}")))?;
    }
    resume(&env, &id, "Second.").await?;
    env.run(request(&env, "Another.")).await?;
    env.run(request(&env, "One more.")).await?;
    let third = resume(&env, &id, "Third.").await?;
    assert_eq!(prompts(&third.requests[0]), ["First.", "Second.", "Third."]);
    Ok(())
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_an_error_before_the_model_is_asked() -> Result<()> {
    let env = test_env().await?;
    let id = SessionId::from("00000000-0000-4000-8000-000000000000");
    let run = resume(&env, &id, "Hello?").await?;
    assert_eq!(run.result.error_code, Some(ErrorCode::SessionNotFound));
    assert_eq!(run.result.session_id, None);
    assert!(run.requests.is_empty());
    for no_id in ["latest", "1", "../x", "a b"] {
        assert!(env.start(with(request(&env, "x"), Conversation::Resume(no_id.into()))).is_err(), "{no_id}");
    }
    Ok(())
}

#[tokio::test]
async fn the_users_own_files_are_used_and_stay_unchanged() -> Result<()> {
    let env = test_env().await?;
    let settings = "{\n  // mine\n  \"context\": {\"fileName\": \"NOTES.md\"} /* too */\n}\n";
    user_settings(&env, settings)?;
    fs::write(env.home().join(".gemini/NOTES.md"), "Mind the notes.")?;
    let run = env.run(request(&env, "First.")).await?;
    assert!(run.requests[0].system.contains("Mind the notes."));
    assert_eq!(fs::read_to_string(env.home().join(".gemini/settings.json"))?, settings);
    assert_eq!(fs::read_to_string(env.home().join(".gemini/NOTES.md"))?, "Mind the notes.");
    let mut names: Vec<_> =
        fs::read_dir(env.home().join(".gemini"))?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["NOTES.md", "history", "settings.json", "tmp"]);
    Ok(())
}

#[tokio::test]
async fn projects_of_the_same_name_keep_their_sessions_apart() -> Result<()> {
    let env = test_env().await?;
    let id = session_id(&env.run(request(&env, "First.")).await?)?;
    let other = env.create_directory("other")?.join("project");
    fs::create_dir(&other)?;
    let mut elsewhere = with(request(&env, "Elsewhere."), Conversation::Resume(id.clone()));
    elsewhere.cwd = Some(other);
    assert_eq!(env.run(elsewhere).await?.result.error_code, Some(ErrorCode::SessionNotFound));
    assert_eq!(session_id(&resume(&env, &id, "Second.").await?)?, id);
    Ok(())
}
