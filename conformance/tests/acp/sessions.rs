//! Many turns of one conversation.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use teamster::event::{ErrorCode, Event, WarningCode};
use teamster::request::{Conversation, PermissionMode};
use teamster_conformance::BOUND;
use teamster_testkit::provider::{ModelRequest, Reply};

use crate::speaker::{Speaker, counts, heard, last_asked, with_each};

const TURNS: usize = 20;

#[tokio::test]
async fn each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order() -> Result<()> {
    with_each(async |speaker| {
        let lab = speaker.lab(counts()).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        let (mut said, mut id) = (Vec::new(), None);
        for turn in 1..=TURNS {
            said.push(format!("Prompt {turn}."));
            let recording = talk.say(format!("Prompt {turn}.")).await?;
            assert_eq!(recording.result.text, format!("Heard {turn}."), "{speaker:?}");
            assert_eq!(heard(last_asked(&recording)?), said, "{speaker:?}");
            assert!(recording.warnings(&WarningCode::SessionReopened).is_empty());
            let told = recording.result.session_id.clone();
            assert!(told.is_some() && (id.is_none() || id == told), "{speaker:?}: {id:?}, {told:?}");
            assert_eq!(recording.init()?.session_id, told.clone().context("no id")?);
            id = told;
        }
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn an_answer_comes_piece_by_piece() -> Result<()> {
    with_each(async |speaker| {
        let words: Vec<String> = (0..20).map(|word| format!("word-{word} ")).collect();
        let gated = Reply::new().text_deltas(words.clone()).gate_after(19, "last");
        let lab = speaker.lab(gated).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        let mut live = talk.send("Prompt 1.")?;
        live.until("text", |event| matches!(event, Event::Text(_))).await?;
        lab.provider().gate("last").open();
        let recording = live.finish().await?;
        assert!(recording.texts().len() >= 5, "{speaker:?}: {}", recording.texts().len());
        assert_eq!(recording.result.text.trim_end(), words.concat().trim_end());
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn an_interrupt_in_text_or_in_a_tool_ends_the_turn_and_not_the_session() -> Result<()> {
    with_each(async |speaker| {
        let (tool, input) = speaker.shell("tail -f /dev/null");
        let lab = speaker
            .lab(Reply::from_fn(move |request: &ModelRequest| match heard(request).last().map(String::as_str) {
                Some("Prompt 1.") => Reply::new().text_deltas(["Begun. ", "Ended."]).gate_after(1, "never"),
                Some("Prompt 2.") => Reply::new().tool(tool, input.clone()),
                _ => Reply::new().text("After."),
            }))
            .await?;
        let talk = lab.open(speaker.frame_in(&lab, PermissionMode::Full), |opening| opening)?;

        let mut live = talk.send("Prompt 1.")?;
        live.until("text", |event| matches!(event, Event::Text(_))).await?;
        live.control().interrupt();
        let first = live.finish().await?;
        assert!(first.result.aborted, "{speaker:?}: {:?}", first.result);

        let live = talk.send("Prompt 2.")?;
        talk.trace().wait_for("tail -f /dev/null", BOUND).await?;
        live.control().interrupt();
        let second = live.finish().await?;
        assert_eq!(second.result.error_code, Some(ErrorCode::Aborted), "{speaker:?}: {:?}", second.result);
        // It has its result. Both say of a command that was cut short that it completed.
        second.only_tool()?;

        let third = talk.say("Prompt 3.").await?;
        assert_eq!(third.result.text, "After.", "{speaker:?}: {:?}", third.events);
        assert!(third.warnings(&WarningCode::SessionReopened).is_empty(), "{speaker:?}");
        talk.close().await
    })
    .await
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[tokio::test]
async fn a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_its_history_is_not_lost() -> Result<()> {
    with_each(async |speaker| {
        let scenario = Reply::from_fn(move |request: &ModelRequest| {
            let heard = heard(request);
            let reply = Reply::new();
            let reply =
                if heard.last().is_some_and(|last| last == "Prompt 3.") { reply.gate_before("never") } else { reply };
            reply.text(format!("Heard {}.", heard.len()))
        });
        let lab = speaker.lab(scenario).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        talk.say("Prompt 1.").await?;
        kill_all(speaker, &talk).await?;
        talk.trace().wait_until_gone(BOUND).await?;
        let second = talk.say("Prompt 2.").await?;
        assert_eq!(second.result.text, "Heard 2.", "{speaker:?}: {:?}", second.events);
        assert_eq!(second.warnings(&WarningCode::SessionReopened).len(), 1);

        let live = talk.send("Prompt 3.")?;
        lab.provider().gate("never").wait_reached(BOUND).await?;
        kill_all(speaker, &talk).await?;
        let third = live.finish().await?;
        assert_eq!(third.result.error_code, Some(ErrorCode::CliSignaled), "{speaker:?}: {:?}", third.result);
        let fourth = talk.say("Prompt 4.").await?;
        let heard = &fourth.result.text;
        assert!(heard == "Heard 4." || heard == "Heard 3.", "{speaker:?}: {:?}", fourth.events);
        assert_eq!(fourth.result.session_id, second.result.session_id);
        talk.close().await
    })
    .await
}

async fn kill_all(speaker: Speaker, talk: &teamster_conformance::TestSession<'_>) -> Result<()> {
    let leader = talk.trace().wait_for(speaker.process(), BOUND).await?;
    for process in talk.trace().processes().iter().filter(|process| process.pid != leader.pid) {
        // It may be gone by now.
        _ = kill(process.pid);
    }
    kill(leader.pid)
}

#[tokio::test]
async fn a_session_is_resumed_by_its_id_and_its_replay_is_not_emitted() -> Result<()> {
    with_each(async |speaker| {
        let lab = speaker.lab(counts()).await?;
        let first = lab.open(speaker.frame(&lab), |opening| opening)?;
        let id = first.say("Prompt 1.").await?.result.session_id.context("no id")?;
        first.say("Prompt 2.").await?;
        first.close().await?;
        let mut frame = speaker.frame(&lab);
        frame.conversation = Conversation::Resume(id.clone());
        let talk = lab.open(frame, |opening| opening)?;
        let third = talk.say("Prompt 3.").await?;
        assert_eq!(third.result.text, "Heard 3.", "{speaker:?}: {:?}", third.events);
        assert_eq!(heard(last_asked(&third)?), ["Prompt 1.", "Prompt 2.", "Prompt 3."]);
        assert_eq!(third.result.session_id, Some(id));
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn an_unknown_id_is_session_not_found() -> Result<()> {
    with_each(async |speaker| {
        let lab = speaker.lab(counts()).await?;
        let mut frame = speaker.frame(&lab);
        frame.conversation = Conversation::Resume(speaker.unknown_session().into());
        let talk = lab.open(frame, |opening| opening)?;
        let recording = talk.say("Prompt 1.").await?;
        assert_eq!(
            recording.result.error_code,
            Some(ErrorCode::SessionNotFound),
            "{speaker:?}: {:?}",
            recording.events
        );
        assert!(recording.requests.is_empty(), "the model is not asked");
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn another_model_answers_from_the_next_turn_on() -> Result<()> {
    with_each(async |speaker| {
        let lab = speaker.lab(counts()).await?;
        let talk = lab.open(speaker.frame(&lab), |opening| opening)?;
        talk.say("Prompt 1.").await?;
        let model = speaker.other_model();
        talk.session().set_model(model)?;
        let second = talk.say("Prompt 2.").await?;
        let name = model.rsplit('/').next().unwrap_or_default();
        let asked = &last_asked(&second)?.model;
        assert!(asked.contains(name), "{speaker:?}: {asked}");
        assert_eq!(second.result.text, "Heard 2.");
        assert!(second.warnings(&WarningCode::SessionReopened).is_empty());
        talk.close().await
    })
    .await
}

#[tokio::test]
async fn four_sessions_at_once_do_not_mix() -> Result<()> {
    with_each(async |speaker| {
        let lab = speaker.lab(counts()).await?;
        let open = |_| lab.open(speaker.frame(&lab), |opening| opening);
        let talks = (0..4).map(open).collect::<Result<Vec<_>>>()?;
        for turn in 1..=2 {
            let turns = talks.iter().map(|talk| talk.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
            for live in turns {
                assert_eq!(live.finish().await?.result.text, format!("Heard {turn}."), "{speaker:?}");
            }
        }
        for talk in talks {
            talk.close().await?;
        }
        Ok(())
    })
    .await
}
