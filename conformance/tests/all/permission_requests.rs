//! Requests of a session to its caller, on Claude Code: permissions and questions. The same promises on Codex are in
//! `tests/codex`, on OpenCode in `tests/opencode`, and on ACP agents in `tests/acp`.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::AnswerError;
use teamster::event::{Event, RequestId, WarningCode};
use teamster::request::{Answer, PermissionMode};
use teamster_conformance::{TIMEOUT, TestEnv, TestRun, request_id};
use teamster_testkit::provider::{Reply, Scenario};

/// A model that wants to create a file.
async fn creates_a_file() -> Result<TestEnv> {
    let tool = json!({"command": "touch made && echo it is made", "description": "Make a file"});
    TestEnv::claude(Scenario::new().reply(Reply::new().tool("Bash", tool)).reply(Reply::new().text("Done."))).await
}

async fn next_request(run: &mut TestRun) -> Result<RequestId> {
    let event = run.until("a permission request", |event| request_id(event).is_some()).await?;
    request_id(&event).cloned().context("no request")
}

#[tokio::test]
async fn a_permission_request_is_allowed_or_denied_and_answered_once() -> Result<()> {
    for (answer, made) in [
        (Answer::Allow { input: None }, true),
        (Answer::AllowAlways, true),
        (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
    ] {
        let env = creates_a_file().await?;
        let session = env.open(env.request(""))?;
        let mut run = session.send("Make it.")?;
        let id = next_request(&mut run).await?;
        session.handle().answer(id.clone(), answer.clone()).await?;
        let second = session.handle().answer(id.clone(), Answer::Deny { message: None }).await;
        assert_eq!(second, Err(AnswerError::NotWaiting { request: id }));
        let recording = run.finish().await?;
        let (_, result) = recording.only_tool()?;
        assert_eq!(env.project().join("made").exists(), made, "{answer:?}");
        assert_eq!(result.is_error == Some(true), !made, "{answer:?}: {}", result.output.as_str());
        assert!(made || result.output.contains("Not today."), "{}", result.output.as_str());
        assert!(!env.project().join(".claude").exists(), "no rule is saved for the next session");
        session.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_can_be_allowed_with_other_arguments() -> Result<()> {
    let env = creates_a_file().await?;
    let session = env.open(env.request(""))?;
    let mut run = session.send("Make it.")?;
    let id = next_request(&mut run).await?;
    let input = Some(json!({"command": "touch other", "description": "Make another file"}));
    session.handle().answer(id, Answer::Allow { input }).await?;
    run.finish().await?;
    assert!(env.project().join("other").exists() && !env.project().join("made").exists());
    session.close().await
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    let env = creates_a_file().await?;
    let mut request = env.request("");
    request.limits.answer = Duration::from_millis(300);
    let session = env.open(request)?;
    let recording = session.run_turn("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!env.project().join("made").exists());
    assert_eq!(recording.result.text, "Done.");
    session.close().await
}

#[tokio::test]
async fn a_handler_answers_and_one_that_panics_has_denied() -> Result<()> {
    let env = creates_a_file().await?;
    let session =
        env.open_with(env.request(""), |options| options.with_handler(|_| async { Answer::Allow { input: None } }))?;
    session.run_turn("Make it.").await?;
    assert!(env.project().join("made").exists());
    session.close().await?;

    let env = creates_a_file().await?;
    let panics = |_: Event| async { if true { panic!("the handler's bug") } else { Answer::AllowAlways } };
    let session = env.open_with(env.request(""), |options| options.with_handler(panics))?;
    let recording = session.run_turn("Make it.").await?;
    assert!(!env.project().join("made").exists());
    assert_eq!(recording.result.text, "Done.");
    session.close().await
}

#[tokio::test]
async fn an_interrupt_releases_a_request_that_waits() -> Result<()> {
    let env = creates_a_file().await?;
    let session = env.open(env.request(""))?;
    let mut run = session.send("Make it.")?;
    let id = next_request(&mut run).await?;
    run.control().interrupt();
    assert!(run.finish().await?.result.aborted);
    let late = session.handle().answer(id.clone(), Answer::AllowAlways).await;
    assert_eq!(late, Err(AnswerError::NotWaiting { request: id }));
    assert!(!env.project().join("made").exists());
    session.close().await
}

#[tokio::test]
async fn another_model_and_another_mode_hold_from_then_on() -> Result<()> {
    let env = creates_a_file().await?;
    let session = env.open(env.request(""))?;
    session.handle().set_model("claude-haiku-4-5")?;
    session.handle().set_permission_mode(PermissionMode::ReadOnly)?;
    let recording = session.run_turn("Make it.").await?;
    let models: Vec<_> = recording.requests.iter().map(|request| &request.model).collect();
    assert!(models.iter().all(|model| model.contains("haiku")), "{models:?}");
    assert!(!env.project().join("made").exists() && recording.result.text == "Done.");
    assert!(recording.warnings(&WarningCode::SessionReopened).is_empty(), "the caller requested it");
    session.close().await
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_by_its_id() -> Result<()> {
    let input = json!({"questions": [{
        "question": "Which one?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "Red", "description": "As roses"}, {"label": "Blue", "description": "As the sky"}],
    }]});
    let scenario = Scenario::new().reply(Reply::new().tool("AskUserQuestion", input)).reply(Reply::new().text("Done."));
    let env = TestEnv::claude(scenario).await?;
    let session = env.open(env.request(""))?;
    let mut run = session.send("Ask me.")?;
    let Event::Question(question) = run.until("a question", |event| matches!(event, Event::Question(_))).await? else {
        unreachable!()
    };
    assert_eq!(question.questions[0].options[1].label, "Blue");
    let chosen = [(question.questions[0].id.clone().into_string(), vec!["Blue".to_owned()])].into();
    session.handle().answer(question.request_id.clone(), Answer::Choose(chosen)).await?;
    let recording = run.finish().await?;
    assert!(recording.requests[1].tool_results()[0].output.contains("Blue"), "the model receives the answer");
    session.close().await
}

#[tokio::test]
async fn dropping_a_session_ends_its_processes() -> Result<()> {
    let env = creates_a_file().await?;
    let session = env.open(env.request(""))?;
    let mut run = session.send("Make it.")?;
    next_request(&mut run).await?;
    let processes = session.abandon();
    let recording = run.finish().await?;
    assert!(recording.result.aborted);
    processes.wait_until_gone(TIMEOUT).await
}
