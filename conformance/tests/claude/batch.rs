//! Batch output: one document at the end instead of a stream.

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ErrorCode, StopReason};
use teamster::request::{Conversation, OutputMode, PermissionMode};
use teamster_conformance::{TIMEOUT, TestEnv};
use teamster_testkit::provider::{HttpError, Reply, Scenario};

use crate::prompts::{LIKE_OPTIONS, ODD_CHARACTERS};
use crate::{bash, full, no_retries, numbers, tool_then_text, usage_of};

fn batch(mut request: RunRequest) -> RunRequest {
    request.output = OutputMode::Batch;
    request
}

fn two_messages() -> Scenario {
    Scenario::new()
        .reply(Reply::new().text("Let me see. ").tool("Bash", bash("echo seen")))
        .reply(Reply::new().text("Seen."))
}

#[tokio::test]
async fn the_document_has_the_last_message_and_the_usage() -> Result<()> {
    let env = TestEnv::claude(two_messages()).await?;
    let recording = env.run(batch(full(env.request("Look.")))).await?;
    assert_eq!(recording.result.final_text, "Seen.");
    assert_eq!(recording.result.stop_reason, Some(StopReason::EndTurn));
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    assert!(recording.result.session_id.is_some());
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn the_verbose_document_has_all_events() -> Result<()> {
    let env = TestEnv::claude(two_messages()).await?;
    let mut request = batch(full(env.request("Look.")));
    request.cli_args = vec!["--verbose".to_owned()];
    let recording = env.run(request).await?;
    assert_eq!(recording.init()?.agent_version.as_deref(), Some("2.1.197"));
    assert_eq!(recording.only_tool()?.1.output, "seen");
    assert_eq!(recording.result.text, "Let me see. \n\nSeen.");
    assert_eq!(recording.result.final_text, "Seen.");
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

/// A batch run cannot ask for permission. Rules implement the mode.
#[tokio::test]
async fn editing_changes_files_of_the_project_and_no_others() -> Result<()> {
    for (name, is_changed) in [("made", true), ("sub/made", true), ("../made", false), (".git/hooks/made", false)] {
        let env = TestEnv::claude(tool_then_text("Write", json!({"file_path": name, "content": "written"}))).await?;
        let path = env.project().join(name);
        let mut request = batch(env.request("Write it."));
        request.permissions.mode = PermissionMode::Edit;
        let recording = env.run(request).await?;
        assert_eq!(path.exists(), is_changed, "{name}: {:?}", recording.result.permission_denials);
        assert_eq!(recording.result.permission_denials.is_empty(), is_changed, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn odd_prompts_reach_the_model_unchanged() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    // The prompt is sent on standard input: a sample of each kind is enough.
    for &prompt in LIKE_OPTIONS.iter().step_by(4).chain(ODD_CHARACTERS.iter().step_by(5)).chain([&ODD_CHARACTERS[1]]) {
        let recording = env.run(batch(env.request(prompt))).await?;
        assert_eq!(recording.requests.len(), 1, "{prompt:?}");
        assert_eq!(recording.prompts(0)?, [prompt]);
        assert_eq!(recording.result.text, "Aye.");
    }
    Ok(())
}

#[tokio::test]
async fn a_prompt_of_a_megabyte_reaches_the_model_once() -> Result<()> {
    let prompt = numbers(100_000);
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    let recording = env.run(batch(env.request(prompt.as_str()))).await?;
    let texts = recording.prompts(0)?;
    assert_eq!(texts.len(), 1);
    assert!(texts[0] == prompt, "{} bytes instead of {}", texts[0].len(), prompt.len());
    Ok(())
}

#[tokio::test]
async fn a_big_answer_is_whole() -> Result<()> {
    let text = numbers(60_000);
    let env = TestEnv::claude(Reply::new().text_by(1000, &text)).await?;
    let recording = env.run(batch(env.request("Everything."))).await?;
    assert!(recording.result.text == text, "{} bytes instead of {}", recording.result.text.len(), text.len());
    Ok(())
}

#[tokio::test]
async fn errors_have_the_same_codes_as_in_a_stream() -> Result<()> {
    let env = TestEnv::claude(HttpError::unauthorized()).await?;
    let recording = env.run(batch(no_retries(env.request("Hello?")))).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Auth));
    let mut request = batch(env.request("Hello?"));
    request.conversation = Conversation::Resume("00000000-0000-4000-8000-000000000000".into());
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound));
    Ok(())
}

#[tokio::test]
async fn an_interrupt_ends_the_run() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Too late.").gate_before("never")).await?;
    let run = env.start(batch(env.request("Begin.")))?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert!(recording.result.aborted);
    assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
    Ok(())
}
