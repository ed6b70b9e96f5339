//! Turns that the CLI starts by itself when a background task has ended.

use serde_json::{Value, json};
use teamster_agents::protocol::Input;
use teamster_types::event::{AnsweredBy, Event, PermissionDecision, WarningCode};
use teamster_types::request::{AgentInterface, RequestError, RunRequest};

use super::{Owner, TestSession, agent_turn_result, assistant, init, result};
use crate::capture;

fn session() -> TestSession {
    TestSession::new(true)
}

/// Returns the CLI's answer to the last request to remove a prompt.
fn cancel_answer(session: &TestSession, is_removed: bool) -> Value {
    let request = session.written.last().unwrap();
    assert_eq!(request["request"]["subtype"], "cancel_async_message", "{request}");
    let response = json!({"cancelled": is_removed});
    json!({"type": "control_response",
           "response": {"subtype": "success", "request_id": request["request_id"], "response": response}})
}

fn read_lines(session: &mut TestSession, lines: &[Value]) {
    for line in lines {
        session.line(line);
    }
}

/// Returns a permission request.
fn permission_request() -> Value {
    json!({"type": "control_request", "request_id": "r1",
           "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}})
}

fn idle() -> Value {
    json!({"type": "system", "subtype": "session_state_changed", "state": "idle"})
}

fn ended(session: &TestSession) -> Vec<(Owner, &str)> {
    session.ended.iter().map(|(owner, text)| (owner.clone(), text.as_str())).collect()
}

#[test]
fn a_turn_that_starts_while_no_prompt_waits_is_the_agents_own() {
    let mut session = session();
    let ended_task = json!({"type": "system", "subtype": "task_notification", "task_id": "b1", "tool_use_id": "t1",
                      "status": "completed", "summary": "It is over", "output_file": ""});
    read_lines(&mut session, &[ended_task, init(), assistant("Own.")]);
    let turn = session.turn.as_ref().unwrap();
    let warnings: Vec<_> = turn
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Warning(warning) => Some((&warning.code, warning.message.as_str(), json!(warning.data))),
            _ => None,
        })
        .collect();
    let data = json!({"taskId": "b1", "toolId": "t1", "status": "completed"});
    assert_eq!(warnings, [(&WarningCode::BackgroundTask, "a background task has ended: It is over", data)]);
    read_lines(&mut session, &[agent_turn_result()]);
    assert_eq!(ended(&session), [(Owner::Agent, "Own.")]);
    assert_eq!(session.between, []);
}

#[test]
fn an_accepted_prompt_has_the_turn_that_started() {
    let mut session = session();
    session.send();
    assert_eq!(session.written.last().unwrap()["priority"], "later", "the CLI would insert it into another turn");
    read_lines(&mut session, &[init(), assistant("One.")]);
    assert_eq!(session.turn.as_ref().unwrap().events, [], "the owner is unknown yet");
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, assistant("Two."), result()]);
    assert_eq!(ended(&session), [(Owner::Prompt(1), "One.Two.")]);
}

#[test]
fn a_prompt_that_the_cli_removes_is_sent_again_after_the_agents_own_turn() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init(), assistant("Own.")]);
    let first = session.written.last().unwrap()["request"]["message_uuid"].clone();
    let removed = cancel_answer(&session, true);
    read_lines(&mut session, &[removed, assistant(" More."), agent_turn_result()]);
    assert_eq!((ended(&session), session.not_accepted), (vec![(Owner::Agent, "Own. More.")], Some(1)));
    session.send();
    let again = session.written.last().unwrap();
    assert_eq!(again["message"]["content"], "Prompt 1.");
    assert_ne!(again["uuid"], first, "the CLI ignores an id that was removed");
    read_lines(&mut session, &[init()]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, assistant("One."), result()]);
    assert_eq!(ended(&session)[1..], [(Owner::Prompt(1), "One.")]);
}

#[test]
fn an_own_turn_of_the_agent_that_ended_before_the_answer_is_separate_from_the_prompts_turn() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init(), assistant("Own."), agent_turn_result()]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, init(), assistant("One."), result()]);
    assert_eq!(ended(&session), [(Owner::Prompt(1), "One."), (Owner::Agent, "Own.")]);
}

#[test]
fn a_turn_that_ended_before_the_answer_is_the_prompts_if_the_agent_did_not_start_it() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init(), assistant("One."), result(), init(), assistant("Own.")]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, agent_turn_result()]);
    assert_eq!(ended(&session), [(Owner::Prompt(1), "One."), (Owner::Agent, "Own.")]);
}

#[test]
fn an_idle_state_before_the_cli_accepts_the_prompt_does_not_mean_that_it_dropped_it() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init(), assistant("Own."), agent_turn_result(), idle()]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, init(), assistant("One."), result()]);
    assert_eq!(ended(&session), [(Owner::Prompt(1), "One."), (Owner::Agent, "Own.")]);
}

#[test]
fn a_prompt_that_the_cli_has_dropped_is_sent_again() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init(), assistant("Own."), agent_turn_result()]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, idle()]);
    assert_eq!(session.not_accepted, Some(1));
    session.send();
    read_lines(&mut session, &[init()]);
    let accepted = cancel_answer(&session, false);
    read_lines(&mut session, &[accepted, assistant("One."), result()]);
    assert_eq!(ended(&session), [(Owner::Agent, "Own."), (Owner::Prompt(1), "One.")]);
}

#[test]
fn output_of_a_subagent_in_the_background_belongs_to_no_turn() {
    let mut session = session();
    let call = json!({"type": "assistant", "message": {"id": "m", "content": [
        {"type": "tool_use", "id": "t1", "name": "Agent", "input": {}}]}});
    let within = |text: &str| {
        let mut line = assistant(text);
        line["parent_tool_use_id"] = "t1".into();
        line
    };
    let launched = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}});
    read_lines(
        &mut session,
        &[
            init(),
            call,
            within("in the foreground"),
            launched,
            within("in the background"),
            agent_turn_result(),
            within("between"),
        ],
    );
    assert_eq!(ended(&session), [(Owner::Agent, "in the foregroundx")]);
    assert_eq!(session.between, []);
}

#[test]
fn a_permission_request_of_a_subagent_between_turns_is_denied_and_belongs_to_no_turn() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[permission_request()]);
    assert_eq!(session.written.last().unwrap()["response"]["response"]["behavior"], "deny");
    assert_eq!(session.turn.as_ref().unwrap().events, []);
}

#[test]
fn a_denial_between_turns_is_reported_when_the_next_turn_starts() {
    let mut session = session();
    read_lines(&mut session, &[permission_request(), init(), assistant("Own.")]);
    let mut answers = session.turn.as_ref().unwrap().events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(answered),
        _ => None,
    });
    let answered = answers.next().expect("one answer");
    assert_eq!((&answered.decision, &answered.by), (&PermissionDecision::Deny, &AnsweredBy::Unattended));
    assert_eq!(answered.request.as_ref().unwrap().tool_name, "Bash");
    assert_eq!(answers.next(), None);
}

#[test]
fn a_session_with_background_tasks_supports_no_steering() {
    assert!(!session().protocol.supports_steering());
    assert!(TestSession::new(false).protocol.supports_steering());
}

#[test]
fn a_cli_that_never_answers_is_stopped_before_its_output_fills_the_memory() {
    let mut session = session();
    session.send();
    read_lines(&mut session, &[init()]);
    let long = assistant(&"x".repeat(1 << 20));
    for _ in 0..16 {
        session.line(&long);
    }
    assert!(session.stopped);
    assert_eq!(ended(&session), [(Owner::Prompt(1), "")]);
}

/// The recording `bg_claimed`: a command ends between two turns, and prompts are sent during the CLI's own turn and after it.
#[test]
fn each_turn_of_a_recorded_session_is_separate() {
    let capture = capture::all("claude").into_iter().find(|capture| capture.name == "bg_claimed").unwrap();
    let mut session = session();
    for line in capture.lines() {
        let read: Value = serde_json::from_slice(line).unwrap();
        let answer = &read["response"];
        if read["subtype"] == "init" {
            // The second turn was started by the CLI, which removed the prompt.
            session.send();
        }
        if answer["request_id"].as_str().is_some_and(|id| id.starts_with("claim-")) {
            let answer = cancel_answer(&session, answer["response"]["cancelled"] == true);
            session.line(&answer);
        } else {
            session.handle(Input::Line(line));
        }
    }
    let owner: Vec<_> = ended(&session).into_iter().map(|(owner, _)| owner).collect();
    assert_eq!(owner, [Owner::Prompt(1), Owner::Agent, Owner::Prompt(2)]);
}

#[test]
fn a_run_and_a_turn_that_is_a_run_have_no_background_tasks() {
    let mut request = RunRequest::new("x");
    request.background_tasks = true;
    assert!(matches!(request.validate(), Err(RequestError::Contradiction { first: "background tasks", .. })));
    request.prompt.clear();
    assert_eq!(request.validate_session(), Ok(()));
    assert_eq!(request.turn("x".into(), request.conversation.clone()).validate(), Ok(()));
    for mode in [AgentInterface::Spawn, AgentInterface::Exec] {
        request.interface = mode;
        let rejected = request.validate_session();
        assert!(matches!(rejected, Err(RequestError::Contradiction { first: "background tasks", .. })), "{mode:?}");
    }
}
