//! What an agent asks leave for.

use std::time::Duration;

use anyhow::Result;
use teamster::event::WarningCode;
use teamster::request::{Answer, PermissionMode};
use teamster::{AnswerError, SessionOptions};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::speaker::{Speaker, asked, with_each};

/// A model that wants to make a file.
async fn asks(speaker: Speaker) -> Result<TestEnv> {
    let (tool, input) = speaker.shell("touch made && echo it is made");
    speaker.lab(Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))).await
}

#[tokio::test]
async fn a_permission_request_is_allowed_or_denied_and_answered_once() -> Result<()> {
    with_each(async |speaker| {
        for (answer, made) in [
            (Answer::Allow { input: None }, true),
            (Answer::AllowAlways, true),
            (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
            (Answer::Allow { input: Some(serde_json::json!({"command": "true"})) }, false),
        ] {
            let lab = asks(speaker).await?;
            let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
            let mut live = talk.send("Make it.")?;
            let id = asked(&mut live).await?;
            talk.session().answer(id.clone(), answer.clone()).await?;
            let again = talk.session().answer(id.clone(), Answer::Deny { message: None }).await;
            assert_eq!(again, Err(AnswerError::NotWaiting { request: id }));
            let recording = live.finish().await?;
            let (tool, result) = recording.only_tool()?;
            assert_eq!(lab.project().join("made").exists(), made, "{speaker:?} {answer:?}");
            assert_eq!(result.is_error == Some(true), !made, "{speaker:?} {answer:?}: {}", result.output.as_str());
            assert_eq!(tool.input.to_value()?["command"], "touch made && echo it is made", "{speaker:?}");
            assert_eq!(recording.result.permission_denials.len(), usize::from(!made), "{speaker:?}");
            assert!(!recording.result.is_error, "{speaker:?} {answer:?}: {:?}", recording.events);
            talk.close().await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_was_allowed_for_the_session_is_not_asked_again() -> Result<()> {
    with_each(async |speaker| {
        let (tool, input) = speaker.shell("touch made");
        let twice = Scenario::new()
            .reply(Reply::new().tool(tool, input.clone()))
            .reply(Reply::new().tool(tool, input))
            .reply(Reply::new().text("Done."));
        let lab = speaker.lab(twice).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        let mut live = talk.send("Make it.")?;
        let id = asked(&mut live).await?;
        talk.session().answer(id, Answer::AllowAlways).await?;
        if !speaker.allows_always() {
            // Leave is given by what is offered: once.
            let id = asked(&mut live).await?;
            talk.session().answer(id, Answer::AllowAlways).await?;
        }
        let recording = live.finish().await?;
        assert_eq!(recording.tools().len(), 2, "{speaker:?}");
        assert_eq!(recording.result.text, "Done.");
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    with_each(async |speaker| {
        let lab = asks(speaker).await?;
        let mut frame = speaker.frame(&lab);
        frame.limits.answer = Duration::from_millis(300);
        let talk = lab.open(frame, |opening| opening)?;
        let recording = talk.say("Make it.").await?;
        assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1, "{speaker:?}");
        assert!(!lab.project().join("made").exists());
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn an_interrupt_releases_a_request_that_waits() -> Result<()> {
    with_each(async |speaker| {
        let lab = asks(speaker).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        let mut live = talk.send("Make it.")?;
        let id = asked(&mut live).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert!(recording.result.aborted, "{speaker:?}: {:?}", recording.result);
        let late = talk.session().answer(id.clone(), Answer::AllowAlways).await;
        assert_eq!(late, Err(AnswerError::NotWaiting { request: id }));
        assert!(!lab.project().join("made").exists());
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn the_permission_mode_answers_where_it_can() -> Result<()> {
    with_each(async |speaker| {
        let lab = asks(speaker).await?;
        let talk = lab.open(speaker.frame_in(&lab, PermissionMode::Full), |opening: SessionOptions| opening)?;
        let recording = talk.say("Make it.").await?;
        assert!(lab.project().join("made").exists(), "{speaker:?}: {:?}", recording.events);
        talk.close().await?;

        let lab = asks(speaker).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        talk.session().set_permission_mode(PermissionMode::ReadOnly)?;
        let recording = talk.say("Make it.").await?;
        assert!(!lab.project().join("made").exists(), "{speaker:?}: {:?}", recording.events);
        talk.close().await
    })
    .await
}
