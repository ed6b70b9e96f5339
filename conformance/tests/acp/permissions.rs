//! Permission requests of ACP agents.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use teamster::AnswerError;
use teamster::event::WarningCode;
use teamster::request::{Answer, PermissionMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::agent::{AcpAgent, next_request};

acp_tests! {
    a_permission_request_is_allowed_or_denied_and_answered_once,
    what_was_allowed_for_the_session_is_not_asked_again,
    an_unanswered_request_is_denied_after_its_time,
    an_interrupt_releases_a_request_that_waits,
    the_permission_mode_answers_where_it_can,
}

/// A model that wants to create a file.
async fn creates_a_file(agent: AcpAgent) -> Result<TestEnv> {
    let (tool, input) = agent.shell("touch made && echo it is made");
    agent.test_env(Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))).await
}

async fn a_permission_request_is_allowed_or_denied_and_answered_once(agent: AcpAgent) -> Result<()> {
    for (answer, made) in [
        (Answer::Allow { input: None }, true),
        (Answer::AllowAlways, true),
        (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
        (Answer::Allow { input: Some(json!({"command": "true"})) }, false),
    ] {
        let env = creates_a_file(agent).await?;
        let session = env.open(agent.request(&env))?;
        let mut run = session.send("Make it.")?;
        let id = next_request(&mut run).await?;
        session.handle().answer(id.clone(), answer.clone()).await?;
        let second = session.handle().answer(id.clone(), Answer::Deny { message: None }).await;
        assert_eq!(second, Err(AnswerError::NotWaiting { request: id }));
        let recording = run.finish().await?;
        let (tool, result) = recording.only_tool()?;
        assert_eq!(env.project().join("made").exists(), made, "{answer:?}");
        assert_eq!(result.is_error == Some(true), !made, "{answer:?}: {}", result.output.as_str());
        assert_eq!(tool.input.to_value()?["command"], "touch made && echo it is made");
        assert_eq!(recording.result.permission_denials.len(), usize::from(!made));
        assert!(!recording.result.is_error, "{answer:?}: {:?}", recording.events);
        session.close().await?;
    }
    Ok(())
}

async fn what_was_allowed_for_the_session_is_not_asked_again(agent: AcpAgent) -> Result<()> {
    let (tool, input) = agent.shell("touch made");
    let twice = Scenario::new()
        .reply(Reply::new().tool(tool, input.clone()))
        .reply(Reply::new().tool(tool, input))
        .reply(Reply::new().text("Done."));
    let env = agent.test_env(twice).await?;
    let session = env.open(agent.request(&env))?;
    let mut run = session.send("Make it.")?;
    let id = next_request(&mut run).await?;
    session.handle().answer(id, Answer::AllowAlways).await?;
    if !agent.allows_always() {
        // The answer is the strongest permission that the agent offers: for this call.
        let id = next_request(&mut run).await?;
        session.handle().answer(id, Answer::AllowAlways).await?;
    }
    let recording = run.finish().await?;
    assert_eq!(recording.tools().len(), 2);
    assert_eq!(recording.result.text, "Done.");
    session.close().await
}

async fn an_unanswered_request_is_denied_after_its_time(agent: AcpAgent) -> Result<()> {
    let env = creates_a_file(agent).await?;
    let mut request = agent.request(&env);
    request.limits.answer = Duration::from_millis(300);
    let session = env.open(request)?;
    let recording = session.run_turn("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!env.project().join("made").exists());
    session.close().await
}

async fn an_interrupt_releases_a_request_that_waits(agent: AcpAgent) -> Result<()> {
    let env = creates_a_file(agent).await?;
    let session = env.open(agent.request(&env))?;
    let mut run = session.send("Make it.")?;
    let id = next_request(&mut run).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert!(recording.result.aborted, "{:?}", recording.result);
    let late = session.handle().answer(id.clone(), Answer::AllowAlways).await;
    assert_eq!(late, Err(AnswerError::NotWaiting { request: id }));
    assert!(!env.project().join("made").exists());
    session.close().await
}

async fn the_permission_mode_answers_where_it_can(agent: AcpAgent) -> Result<()> {
    let env = creates_a_file(agent).await?;
    let session = env.open(agent.request_in(&env, PermissionMode::Full))?;
    let recording = session.run_turn("Make it.").await?;
    assert!(env.project().join("made").exists(), "{:?}", recording.events);
    session.close().await?;

    let env = creates_a_file(agent).await?;
    let session = env.open(agent.request(&env))?;
    session.handle().set_permission_mode(PermissionMode::ReadOnly)?;
    let recording = session.run_turn("Make it.").await?;
    assert!(!env.project().join("made").exists(), "{:?}", recording.events);
    session.close().await
}
