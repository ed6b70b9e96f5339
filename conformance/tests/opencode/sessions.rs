//! Sessions on OpenCode's server: permissions, questions, subagents, schemas. What is the same on all agents is in
//! `all/sessions.rs`.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use teamster::event::{ErrorCode, Event, PermissionRequest, WarningCode};
use teamster::request::{Answer, PermissionMode};
use teamster::{RunRequest, Sent};
use teamster_conformance::{TIMEOUT, TestEnv, TestRun};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario, Script};

use crate::{bash, bash_then_text, reply, tool_then_text};

/// Returns the caller's prompts as the model receives them.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    prompts.flat_map(Message::texts).filter(|text| text.starts_with("Prompt ")).collect()
}

fn counts() -> Scenario {
    Reply::from_fn(|request| reply().text(format!("Received {}.", prompts(request).len()))).into()
}

fn ask_mode(env: &TestEnv) -> RunRequest {
    let mut template = env.request("");
    template.permissions.mode = PermissionMode::Ask;
    template
}

async fn permission(run: &mut TestRun) -> Result<PermissionRequest> {
    let is_request = |event: &Event| matches!(event, Event::PermissionRequest(_));
    match run.until("a permission request", is_request).await? {
        Event::PermissionRequest(request) => Ok(*request),
        _ => unreachable!(),
    }
}

#[tokio::test]
async fn permission_is_given_once_or_for_the_session_or_denied_with_a_reason() -> Result<()> {
    // Four turns on one server: each makes a file.
    let scenario = Reply::from_fn(|request| {
        let turn = prompts(request).len();
        if request.messages.last().is_some_and(Message::is_prompt) {
            reply().tool("bash", bash(&format!("touch made{turn}")))
        } else {
            reply().text("Done.")
        }
    });
    let env = TestEnv::opencode(scenario).await?;
    let session = env.open(ask_mode(&env))?;
    for (turn, answer, made) in [
        (1, Some(Answer::Deny { message: Some("Not today.".to_owned()) }), false),
        (2, Some(Answer::Allow { input: None }), true),
        (3, Some(Answer::AllowAlways), true),
        // No request follows.
        (4, None, true),
    ] {
        let mut run = session.send(format!("Prompt {turn}."))?;
        if let Some(answer) = answer {
            let request = permission(&mut run).await?;
            assert_eq!(request.tool_name, "bash");
            assert_eq!(request.input.to_value()?["command"], format!("touch made{turn}"));
            assert!(request.tool_id.is_some());
            session.handle().answer(request.request_id, answer).await?;
        }
        let recording = run.finish().await?;
        assert_eq!(env.project().join(format!("made{turn}")).exists(), made, "turn {turn}");
        let (_, result) = recording.only_tool()?;
        assert_eq!(result.is_error, Some(!made), "{}", result.output.as_str());
        assert!(made || result.output.contains("Not today."), "{}", result.output.as_str());
        assert_eq!(recording.result.final_text, "Done.");
        assert_eq!(recording.result.num_turns, Some(2));
    }
    session.close().await
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    let env = TestEnv::opencode(bash_then_text("touch made")).await?;
    let mut template = ask_mode(&env);
    template.limits.answer = Duration::from_millis(300);
    let session = env.open(template)?;
    let recording = session.run_turn("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!env.project().join("made").exists());
    assert_eq!(recording.result.final_text, "Done.");
    session.close().await
}

#[tokio::test]
async fn a_subagents_permission_request_reaches_the_caller_and_its_text_is_under_its_call() -> Result<()> {
    let worker = json!({"description": "Work", "prompt": "Do it. SCN:worker", "subagent_type": "general"});
    let scenario = Scenario::new()
        .reply(reply().tool("task", worker))
        .reply(reply().text("Done."))
        .branch("worker", Script::new().reply(reply().tool("bash", bash("touch made"))).reply(reply().text("Tried.")));
    let env = TestEnv::opencode(scenario).await?;
    let mut template = ask_mode(&env);
    template.permissions.allow = vec!["task".to_owned()];
    let session = env.open(template)?;
    let mut run = session.send("Delegate.")?;
    let request = permission(&mut run).await?;
    session.handle().answer(request.request_id, Answer::Allow { input: None }).await?;
    let recording = run.finish().await?;
    assert!(env.project().join("made").exists());
    assert_eq!(recording.result.final_text, "Done.");
    let call =
        recording.tools().iter().find(|(tool, _)| tool.tool_name == "task").context("no task")?.0.tool_id.clone();
    let of_subagent: Vec<_> = recording.texts().into_iter().filter(|delta| delta.parent_tool_id.is_some()).collect();
    assert!(!of_subagent.is_empty() && of_subagent.iter().all(|delta| delta.parent_tool_id.as_ref() == Some(&call)));
    assert!(!recording.result.text.contains("Tried."));
    assert_eq!(crate::usage_of(&recording.result), Some(env.provider().usage_total()), "subagents' calls too");
    session.close().await
}

#[tokio::test]
async fn a_question_is_answered_by_its_id_or_declined() -> Result<()> {
    let input = json!({"questions": [{
        "question": "Which one?", "header": "Choice",
        "options": [{"label": "Red", "description": "As roses"}, {"label": "Blue", "description": "As the sky"}],
    }]});
    for (choose, expected) in [(true, "Blue"), (false, "Ask another person.")] {
        let env = TestEnv::opencode(tool_then_text("question", input.clone())).await?;
        let session = env.open(ask_mode(&env))?;
        let mut run = session.send("Ask me.")?;
        let is_question = |event: &Event| matches!(event, Event::Question(_));
        let Event::Question(question) = run.until("a question", is_question).await? else { unreachable!() };
        assert_eq!(question.questions[0].options[1].label, "Blue");
        let answer = if choose {
            Answer::Choose([(question.questions[0].id.clone().into_string(), vec!["Blue".to_owned()])].into())
        } else {
            Answer::Deny { message: Some("Ask another person.".to_owned()) }
        };
        session.handle().answer(question.request_id.clone(), answer).await?;
        let recording = run.finish().await?;
        assert_eq!(recording.result.final_text, "Done.");
        assert!(recording.requests[1].tool_results()[0].output.contains(expected), "the model receives the answer");
        session.close().await?;
    }
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[tokio::test]
async fn a_server_that_is_killed_between_turns_or_within_one_is_replaced_and_the_conversation_continues() -> Result<()>
{
    let scenario = Reply::from_fn(|request: &ModelRequest| {
        let text = format!("Received {}.", prompts(request).len());
        if request.prompts().contains(&"Prompt 3.") {
            reply().gate_before("never").text(text)
        } else {
            reply().text(text)
        }
    });
    let env = TestEnv::opencode(scenario).await?;
    let session = env.open(env.request(""))?;
    session.run_turn("Prompt 1.").await?;
    kill(session.processes().wait_for("serve", TIMEOUT).await?.pid)?;
    session.processes().wait_until_gone(TIMEOUT).await?;
    let second = session.run_turn("Prompt 2.").await?;
    assert_eq!(second.result.text, "Received 2.");
    assert_eq!(second.warnings(&WarningCode::SessionReopened).len(), 1);
    let run = session.send("Prompt 3.")?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    kill(session.processes().wait_for("serve", TIMEOUT).await?.pid)?;
    let third = run.finish().await?;
    assert_eq!(third.result.error_code, Some(ErrorCode::CliSignaled));
    env.provider().gate("never").open();
    let fourth = session.run_turn("Prompt 4.").await?;
    assert_eq!(fourth.result.text, "Received 4.", "the answer was stored");
    assert_eq!(fourth.warnings(&WarningCode::SessionReopened).len(), 1);
    session.close().await
}

#[tokio::test]
async fn a_message_sent_in_mid_text_joins_the_turn_and_an_interrupt_ends_the_turn_and_not_the_session() -> Result<()> {
    let scenario = Reply::from_fn(|request: &ModelRequest| match prompts(request).len() {
        1 => reply().text("It starts and waits.").gate_after(2, "continue"),
        2 => reply().text("Received both."),
        3 => reply().text("It starts and never ends.").gate_after(2, "never"),
        _ => reply().text("After."),
    });
    let env = TestEnv::opencode(scenario).await?;
    let session = env.open(env.request(""))?;
    let is_text = |event: &Event| matches!(event, Event::Text(_));
    let mut run = session.send("Prompt 1.")?;
    run.until("some text", is_text).await?;
    let sent = session.handle().send_now("Prompt 2.").await?;
    assert!(matches!(sent, Sent::Steered), "{sent:?}");
    env.provider().gate("continue").open();
    let recording = run.finish().await?;
    assert_eq!(recording.result.text, "It starts and waits.\n\nReceived both.");
    assert_eq!(recording.requests.iter().map(|request| prompts(request).len()).collect::<Vec<_>>(), [1, 2]);
    let mut run = session.send("Prompt 3.")?;
    run.until("some text", is_text).await?;
    run.control().interrupt();
    let recording = run.finish().await?;
    assert!(recording.result.aborted, "{:?}", recording.result);
    let after = session.run_turn("Prompt 4.").await?;
    assert_eq!(after.result.text, "After.");
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

#[tokio::test]
async fn another_model_and_another_mode_hold_from_then_on() -> Result<()> {
    let env = TestEnv::opencode(bash_then_text("touch made")).await?;
    let session = env.open(ask_mode(&env))?;
    session.handle().set_model("test/m2")?;
    session.handle().set_permission_mode(PermissionMode::ReadOnly)?;
    let recording = session.run_turn("Make it.").await?;
    assert!(recording.requests.iter().all(|request| request.model == "m2"));
    assert!(!env.project().join("made").exists());
    assert_eq!(recording.result.final_text, "Done.");
    session.close().await
}

#[tokio::test]
async fn two_runs_at_once_in_two_sessions_do_not_mix() -> Result<()> {
    let env = TestEnv::opencode(counts()).await?;
    // Two at a time: each server needs half a gigabyte.
    for _ in 0..2 {
        let talks = (0..2).map(|_| env.open(env.request(""))).collect::<Result<Vec<_>>>()?;
        for turn in 1..=2 {
            let turns =
                talks.iter().map(|session| session.send(format!("Prompt {turn}."))).collect::<Result<Vec<_>>>()?;
            for run in turns {
                assert_eq!(run.finish().await?.result.text, format!("Received {turn}."));
            }
        }
        for session in talks {
            session.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_follows_a_schema_or_is_an_error() -> Result<()> {
    let schema = json!({"type": "object", "properties": {"answer": {"type": "number"}}, "required": ["answer"]});
    let run = async |scenario: Reply| {
        let env = TestEnv::opencode(scenario).await?;
        let mut request = env.request("What is it?");
        request.schema = Some(schema.clone());
        env.run(request).await
    };
    let good = run(reply().tool("StructuredOutput", json!({"answer": 42}))).await?;
    assert_eq!(good.result.structured_output, Some(json!({"answer": 42}).into()));
    assert!(!good.result.is_error && good.tools().is_empty());
    // The server does not exit by itself. The result does not report how it was ended.
    assert_eq!((good.result.exit_code, good.result.signal), (None, None));
    let bad = run(reply().text("I would rather not.")).await?;
    assert_eq!(bad.result.error_code, Some(ErrorCode::StructuredOutput), "{:?}", bad.result);
    assert_eq!(bad.result.structured_output, None);
    Ok(())
}
