//! Sessions: many turns of one conversation, on the real CLIs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, UsageScope, WarningCode};
use teamster::request::{Answer, PermissionMode};
use teamster::{AnswerError, RunRequest, SessionOptions};
use teamster_conformance::{AGENTS, Agent, BOUND, TestEnv, request_of};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

/// Turns of a long conversation: a spawned one costs a start of the CLI each.
const WARM: usize = 20;
const SPAWNED: usize = 3;

/// Those whose process lives through many turns.
fn warm() -> impl Iterator<Item = &'static Agent> {
    AGENTS.iter().filter(|agent| is_warm(agent))
}

fn is_warm(agent: &Agent) -> bool {
    ["claude", "codex", "opencode"].contains(&agent.name)
}

/// What the user has said, as the model sees it.
fn heard(request: &ModelRequest) -> Vec<&str> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    prompts.flat_map(Message::texts).filter(|text| text.starts_with("Prompt ")).collect()
}

/// Says how many prompts it has heard.
fn counts(agent: &Agent) -> Scenario {
    let reply = agent.reply();
    Reply::from_fn(move |request: &ModelRequest| reply.clone().text(format!("Heard {}.", heard(request).len()))).into()
}

fn frame(agent: &Agent, lab: &TestEnv) -> RunRequest {
    agent.request(lab, "")
}

async fn converses(agent: &Agent, how: fn(SessionOptions) -> SessionOptions, turns: usize) -> Result<()> {
    let lab = agent.lab(counts(agent)).await?;
    let talk = lab.open(frame(agent, &lab), how)?;
    let mut said = Vec::new();
    let mut id = None;
    for turn in 1..=turns {
        said.push(format!("Prompt {turn}."));
        let recording = talk.say(format!("Prompt {turn}.")).await?;
        assert_eq!(recording.result.text, format!("Heard {turn}."), "{}", agent.name);
        assert!(!recording.result.is_error);
        if recording.result.usage_scope == Some(UsageScope::Run) {
            let usage = recording.result.usage.as_ref().context("no usage")?;
            assert_eq!((usage.input_tokens, usage.output_tokens), (25, 40), "{}: of this turn alone", agent.name);
        }
        assert_eq!(heard(recording.requests.last().context("no request")?), said, "{}", agent.name);
        assert!(recording.warnings(&WarningCode::SessionReopened).is_empty());
        // The conversation stays the same one.
        let told = recording.result.session_id.clone();
        assert!(told.is_some() && (id.is_none() || id == told), "{}: {id:?}, {told:?}", agent.name);
        assert_eq!(talk.session().id(), told);
        id = told;
    }
    talk.close().await
}

#[tokio::test]
async fn each_prompt_of_a_long_conversation_reaches_the_model_once_and_in_order() -> Result<()> {
    for agent in AGENTS {
        converses(agent, |opening| opening, if is_warm(agent) { WARM } else { SPAWNED }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_caller_cannot_tell_spawned_turns_from_warm_ones() -> Result<()> {
    for agent in warm() {
        converses(agent, SessionOptions::process_per_turn, SPAWNED).await?;
    }
    Ok(())
}

#[tokio::test]
async fn turns_that_are_sent_at_once_are_taken_in_order() -> Result<()> {
    // Some that are warm, and one whose turns are runs.
    for agent in AGENTS.iter().take(3) {
        let lab = agent.lab(counts(agent)).await?;
        let talk = lab.open(frame(agent, &lab), |opening| opening)?;
        let turns = (1..=3).map(|turn| talk.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
        for (turn, live) in turns.into_iter().enumerate() {
            assert_eq!(live.finish().await?.result.text, format!("Heard {}.", turn + 1), "{}", agent.name);
        }
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_not_the_session() -> Result<()> {
    for agent in AGENTS {
        let tool = agent.shell("sleep 60");
        let reply = agent.reply();
        let scenario = Reply::from_fn(move |request: &ModelRequest| match heard(request).last() {
            Some(&"Prompt 1.") => reply.clone().tool(tool.0, tool.1.clone()),
            _ => reply.clone().text("After."),
        });
        let lab = agent.lab(scenario).await?;
        let mut frame = frame(agent, &lab);
        frame.permissions.mode = PermissionMode::Full;
        let talk = lab.open(frame, |opening| opening)?;
        let live = talk.send("Prompt 1.")?;
        talk.trace().wait_for("sleep 60", BOUND).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert!(recording.result.aborted, "{}: {:?}", agent.name, recording.result);
        assert_eq!(recording.result.error_code, Some(ErrorCode::Aborted));
        let after = talk.say("Prompt 2.").await?;
        assert!(!after.result.is_error, "{}: {:?}", agent.name, after.result);
        assert!(after.warnings(&WarningCode::SessionReopened).is_empty(), "{}", agent.name);
        talk.close().await?;
    }
    Ok(())
}

/// Waits until Claude Code has written something into the file of its conversation.
async fn is_written(lab: &TestEnv, words: &str) -> Result<()> {
    let projects = lab.home().join(".claude/projects");
    let holds = |file: PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(words));
    let files = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let looks = async {
        while !files(projects.clone()).flat_map(files).any(holds) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    Ok(tokio::time::timeout(BOUND, looks).await?)
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[tokio::test]
async fn a_process_that_is_killed_between_turns_or_within_one_is_replaced_and_the_conversation_continues() -> Result<()>
{
    for agent in warm() {
        let argument = match agent.name {
            "claude" => "--input-format",
            "codex" => "app-server",
            _ => "serve",
        };
        is_replaced(agent, argument).await?;
    }
    Ok(())
}

/// `argument` is one by which the agent's process is known.
async fn is_replaced(agent: &Agent, argument: &str) -> Result<()> {
    let scenario = Reply::from_fn(move |request: &ModelRequest| {
        let text = format!("Heard {}.", heard(request).len());
        if request.prompts().contains(&"Prompt 3.") {
            Reply::new().gate_before("never").text(text)
        } else {
            Reply::new().text(text)
        }
    });
    let lab = agent.lab(scenario).await?;
    let talk = lab.open(frame(agent, &lab), |opening| opening)?;
    talk.say("Prompt 1.").await?;
    if agent.name == "claude" {
        // 2.1.197 writes it down a moment after it has said it, and what was not written is lost with the process.
        is_written(&lab, "Heard 1.").await?;
    }
    kill(talk.trace().wait_for(argument, BOUND).await?.pid)?;
    talk.trace().wait_until_gone(BOUND).await?;
    let second = talk.say("Prompt 2.").await?;
    assert_eq!(second.result.text, "Heard 2.", "{}", agent.name);
    assert_eq!(second.warnings(&WarningCode::SessionReopened).len(), 1);
    let live = talk.send("Prompt 3.")?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    kill(talk.trace().wait_for(argument, BOUND).await?.pid)?;
    let third = live.finish().await?;
    assert_eq!(third.result.error_code, Some(ErrorCode::CliSignaled));
    let fourth = talk.say("Prompt 4.").await?;
    assert!(fourth.result.text == "Heard 4." || fourth.result.text == "Heard 3.", "{:?}", fourth.result);
    assert_eq!(fourth.warnings(&WarningCode::SessionReopened).len(), 1);
    talk.close().await
}

/// A session of Claude Code whose model wants to make a file.
async fn asks() -> Result<TestEnv> {
    let tool = json!({"command": "touch made && echo it is made", "description": "Make a file"});
    TestEnv::claude(Scenario::new().reply(Reply::new().tool("Bash", tool)).reply(Reply::new().text("Done."))).await
}

async fn asked(live: &mut teamster_conformance::Live<'_>) -> Result<RequestId> {
    let event = live.until("a permission request", |event| request_of(event).is_some()).await?;
    request_of(&event).cloned().context("no request")
}

#[tokio::test]
async fn a_permission_request_is_allowed_or_denied_and_answered_once() -> Result<()> {
    for (answer, made) in [
        (Answer::Allow { input: None }, true),
        (Answer::AllowAlways, true),
        (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
    ] {
        let lab = asks().await?;
        let talk = lab.open(lab.request(""), |opening| opening)?;
        let mut live = talk.send("Make it.")?;
        let id = asked(&mut live).await?;
        talk.session().answer(id.clone(), answer.clone()).await?;
        let again = talk.session().answer(id.clone(), Answer::Deny { message: None }).await;
        assert_eq!(again, Err(AnswerError::NotWaiting { request: id }));
        let recording = live.finish().await?;
        let (_, result) = recording.only_tool()?;
        assert_eq!(lab.project().join("made").exists(), made, "{answer:?}");
        assert_eq!(result.is_error == Some(true), !made, "{answer:?}: {}", result.output.as_str());
        assert!(made || result.output.contains("Not today."), "{}", result.output.as_str());
        assert!(!lab.project().join(".claude").exists(), "nothing is written for the next session");
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_can_be_allowed_with_other_arguments() -> Result<()> {
    let lab = asks().await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let mut live = talk.send("Make it.")?;
    let id = asked(&mut live).await?;
    let input = Some(json!({"command": "touch other", "description": "Make another file"}));
    talk.session().answer(id, Answer::Allow { input }).await?;
    live.finish().await?;
    assert!(lab.project().join("other").exists() && !lab.project().join("made").exists());
    talk.close().await
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    let lab = asks().await?;
    let mut frame = lab.request("");
    frame.limits.answer = Duration::from_millis(300);
    let talk = lab.open(frame, |opening| opening)?;
    let recording = talk.say("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!lab.project().join("made").exists());
    assert_eq!(recording.result.text, "Done.");
    talk.close().await
}

#[tokio::test]
async fn a_handler_answers_and_one_that_panics_has_denied() -> Result<()> {
    let lab = asks().await?;
    let talk =
        lab.open(lab.request(""), |opening| opening.with_handler(|_| async { Answer::Allow { input: None } }))?;
    talk.say("Make it.").await?;
    assert!(lab.project().join("made").exists());
    talk.close().await?;

    let lab = asks().await?;
    let panics = |_: Event| async { if true { panic!("the handler's bug") } else { Answer::AllowAlways } };
    let talk = lab.open(lab.request(""), |opening| opening.with_handler(panics))?;
    let recording = talk.say("Make it.").await?;
    assert!(!lab.project().join("made").exists());
    assert_eq!(recording.result.text, "Done.");
    talk.close().await
}

#[tokio::test]
async fn an_interrupt_releases_a_request_that_waits() -> Result<()> {
    let lab = asks().await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let mut live = talk.send("Make it.")?;
    let id = asked(&mut live).await?;
    live.control().interrupt();
    assert!(live.finish().await?.result.aborted);
    let late = talk.session().answer(id.clone(), Answer::AllowAlways).await;
    assert_eq!(late, Err(AnswerError::NotWaiting { request: id }));
    assert!(!lab.project().join("made").exists());
    talk.close().await
}

#[tokio::test]
async fn another_model_and_another_mode_hold_from_then_on() -> Result<()> {
    let lab = asks().await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    talk.session().set_model("claude-haiku-4-5")?;
    talk.session().set_permission_mode(PermissionMode::ReadOnly)?;
    let recording = talk.say("Make it.").await?;
    assert!(
        recording.requests.iter().all(|request| request.model.contains("haiku")),
        "{:?}",
        recording.requests[0].model
    );
    assert!(!lab.project().join("made").exists() && recording.result.text == "Done.");
    assert!(recording.warnings(&WarningCode::SessionReopened).is_empty(), "it was asked for");
    talk.close().await
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_by_its_id() -> Result<()> {
    let input = json!({"questions": [{
        "question": "Which one?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "Red", "description": "As roses"}, {"label": "Blue", "description": "As the sky"}],
    }]});
    let scenario = Scenario::new().reply(Reply::new().tool("AskUserQuestion", input)).reply(Reply::new().text("Done."));
    let lab = TestEnv::claude(scenario).await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let mut live = talk.send("Ask me.")?;
    let Event::Question(question) = live.until("a question", |event| matches!(event, Event::Question(_))).await? else {
        unreachable!()
    };
    assert_eq!(question.questions[0].options[1].label, "Blue");
    let chosen = [(question.questions[0].id.clone().into_string(), vec!["Blue".to_owned()])].into();
    talk.session().answer(question.request_id.clone(), Answer::Choose(chosen)).await?;
    let recording = live.finish().await?;
    assert!(recording.requests[1].tool_results()[0].output.contains("Blue"), "the model hears it");
    talk.close().await
}

#[tokio::test]
async fn dropping_a_session_ends_its_processes() -> Result<()> {
    let lab = asks().await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let mut live = talk.send("Make it.")?;
    asked(&mut live).await?;
    let trace = talk.abandon();
    let recording = live.finish().await?;
    assert!(recording.result.aborted);
    trace.wait_until_gone(BOUND).await
}

#[tokio::test]
async fn four_sessions_at_once_do_not_mix() -> Result<()> {
    for agent in warm() {
        let lab = agent.lab(counts(agent)).await?;
        let talks = (0..4).map(|_| lab.open(frame(agent, &lab), |opening| opening)).collect::<Result<Vec<_>>>()?;
        for turn in 1..=2 {
            let turns = talks.iter().map(|talk| talk.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
            for live in turns {
                assert_eq!(live.finish().await?.result.text, format!("Heard {turn}."), "{}", agent.name);
            }
        }
        for talk in talks {
            talk.close().await?;
        }
    }
    Ok(())
}
