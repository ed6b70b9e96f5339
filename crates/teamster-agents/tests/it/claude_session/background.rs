//! Turns that the CLI begins by itself, when something has ended that it had left in the background.

use serde_json::{Value, json};
use teamster_agents::protocol::Input;
use teamster_types::event::{AnsweredBy, Event, PermissionDecision, WarningCode};
use teamster_types::request::{AgentInterface, RequestError, RunRequest};

use super::{Talk, Whose, init, own_result, result, says};
use crate::capture;

fn talk() -> Talk {
    Talk::new(true)
}

/// The CLI's answer to the last claim.
fn claimed(talk: &Talk, given_back: bool) -> Value {
    let claim = talk.written.last().unwrap();
    assert_eq!(claim["request"]["subtype"], "cancel_async_message", "{claim}");
    let response = json!({"cancelled": given_back});
    json!({"type": "control_response",
           "response": {"subtype": "success", "request_id": claim["request_id"], "response": response}})
}

fn hears(talk: &mut Talk, lines: &[Value]) {
    for line in lines {
        talk.line(line);
    }
}

/// A request for permission.
fn between_turns_asks() -> Value {
    json!({"type": "control_request", "request_id": "r1",
           "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}})
}

fn idle() -> Value {
    json!({"type": "system", "subtype": "session_state_changed", "state": "idle"})
}

fn ended(talk: &Talk) -> Vec<(Whose, &str)> {
    talk.ended.iter().map(|(whose, text)| (whose.clone(), text.as_str())).collect()
}

#[test]
fn a_turn_that_begins_while_no_prompt_waits_is_the_agents_own() {
    let mut talk = talk();
    let ended_task = json!({"type": "system", "subtype": "task_notification", "task_id": "b1", "tool_use_id": "t1",
                      "status": "completed", "summary": "It is over", "output_file": ""});
    hears(&mut talk, &[ended_task, init(), says("Own.")]);
    let turn = talk.turn.as_ref().unwrap();
    let warnings: Vec<_> = turn
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Warning(warning) => Some((&warning.code, warning.message.as_str(), json!(warning.data))),
            _ => None,
        })
        .collect();
    let data = json!({"taskId": "b1", "toolId": "t1", "status": "completed"});
    assert_eq!(warnings, [(&WarningCode::BackgroundTask, "It is over", data)]);
    hears(&mut talk, &[own_result()]);
    assert_eq!(ended(&talk), [(Whose::Own, "Own.")]);
    assert_eq!(talk.between, []);
}

#[test]
fn a_prompt_that_the_cli_has_taken_has_its_turn() {
    let mut talk = talk();
    talk.send();
    assert_eq!(talk.written.last().unwrap()["priority"], "later", "it would be taken up within another turn");
    hears(&mut talk, &[init(), says("One.")]);
    assert_eq!(talk.turn.as_ref().unwrap().events, [], "nobody knows yet whose it is");
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, says("Two."), result()]);
    assert_eq!(ended(&talk), [(Whose::Sent(1), "One.Two.")]);
}

#[test]
fn a_prompt_that_the_cli_gives_back_is_sent_again_after_the_agents_own_turn() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init(), says("Own.")]);
    let first = talk.written.last().unwrap()["request"]["message_uuid"].clone();
    let given_back = claimed(&talk, true);
    hears(&mut talk, &[given_back, says(" More."), own_result()]);
    assert_eq!((ended(&talk), talk.untaken), (vec![(Whose::Own, "Own. More.")], Some(1)));
    talk.send();
    let again = talk.written.last().unwrap();
    assert_eq!(again["message"]["content"], "Prompt 1.");
    assert_ne!(again["uuid"], first, "the CLI passes over what it has been asked back for");
    hears(&mut talk, &[init()]);
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, says("One."), result()]);
    assert_eq!(ended(&talk)[1..], [(Whose::Sent(1), "One.")]);
}

#[test]
fn a_turn_of_the_agents_own_that_was_over_before_the_answer_is_not_mixed_into_the_prompts() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init(), says("Own."), own_result()]);
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, init(), says("One."), result()]);
    assert_eq!(ended(&talk), [(Whose::Sent(1), "One."), (Whose::Own, "Own.")]);
}

#[test]
fn a_turn_that_was_over_before_the_answer_is_the_prompts_if_the_agent_did_not_begin_it() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init(), says("One."), result(), init(), says("Own.")]);
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, own_result()]);
    assert_eq!(ended(&talk), [(Whose::Sent(1), "One."), (Whose::Own, "Own.")]);
}

#[test]
fn that_the_cli_had_nothing_to_do_before_it_took_the_prompt_is_no_sign_that_it_dropped_it() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init(), says("Own."), own_result(), idle()]);
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, init(), says("One."), result()]);
    assert_eq!(ended(&talk), [(Whose::Sent(1), "One."), (Whose::Own, "Own.")]);
}

#[test]
fn a_prompt_that_the_cli_has_dropped_is_sent_again() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init(), says("Own."), own_result()]);
    let gone = claimed(&talk, false);
    hears(&mut talk, &[gone, idle()]);
    assert_eq!(talk.untaken, Some(1));
    talk.send();
    hears(&mut talk, &[init()]);
    let taken = claimed(&talk, false);
    hears(&mut talk, &[taken, says("One."), result()]);
    assert_eq!(ended(&talk), [(Whose::Own, "Own."), (Whose::Sent(1), "One.")]);
}

#[test]
fn what_a_subagent_in_the_background_says_is_in_no_turn() {
    let mut talk = talk();
    let call = json!({"type": "assistant", "message": {"id": "m", "content": [
        {"type": "tool_use", "id": "t1", "name": "Agent", "input": {}}]}});
    let within = |text: &str| {
        let mut line = says(text);
        line["parent_tool_use_id"] = "t1".into();
        line
    };
    let launched = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}});
    hears(&mut talk, &[init(), call, within("in sight"), launched, within("behind"), own_result(), within("between")]);
    assert_eq!(ended(&talk), [(Whose::Own, "in sightx")]);
    assert_eq!(talk.between, []);
}

#[test]
fn what_a_subagent_asks_between_turns_is_denied_and_in_no_turn() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[between_turns_asks()]);
    assert_eq!(talk.written.last().unwrap()["response"]["response"]["behavior"], "deny");
    assert_eq!(talk.turn.as_ref().unwrap().events, []);
}

#[test]
fn what_was_denied_between_turns_is_reported_when_the_next_turn_begins() {
    let mut talk = talk();
    hears(&mut talk, &[between_turns_asks(), init(), says("Own.")]);
    let mut answers = talk.turn.as_ref().unwrap().events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(answered),
        _ => None,
    });
    let answered = answers.next().expect("one answer");
    assert_eq!((&answered.decision, &answered.by), (&PermissionDecision::Deny, &AnsweredBy::Unattended));
    assert_eq!(answered.request.as_ref().unwrap().tool_name, "Bash");
    assert_eq!(answers.next(), None);
}

#[test]
fn nothing_can_be_said_within_a_turn_where_nobody_could_tell_which_one_hears_it() {
    assert!(!talk().protocol.supports_steering());
    assert!(Talk::new(false).protocol.supports_steering());
}

#[test]
fn a_cli_that_never_answers_is_ended_and_not_waited_for_with_all_that_it_says() {
    let mut talk = talk();
    talk.send();
    hears(&mut talk, &[init()]);
    let long = says(&"x".repeat(1 << 20));
    for _ in 0..16 {
        talk.line(&long);
    }
    assert!(talk.stopped);
    assert_eq!(ended(&talk), [(Whose::Sent(1), "")]);
}

/// `bg_claimed`: a command ends between two turns, and prompts are sent while the CLI's own turn runs and after it.
#[test]
fn a_recorded_session_has_each_turn_for_itself() {
    let capture = capture::all("claude").into_iter().find(|capture| capture.name == "bg_claimed").unwrap();
    let mut talk = talk();
    for line in capture.lines() {
        let read: Value = serde_json::from_slice(line).unwrap();
        let claim = &read["response"];
        if read["subtype"] == "init" {
            // The second time the CLI had begun by itself, and gave the prompt back.
            talk.send();
        }
        if claim["request_id"].as_str().is_some_and(|id| id.starts_with("claim-")) {
            let answer = claimed(&talk, claim["response"]["cancelled"] == true);
            talk.line(&answer);
        } else {
            talk.tell(Input::Line(line));
        }
    }
    let whose: Vec<_> = ended(&talk).into_iter().map(|(whose, _)| whose).collect();
    assert_eq!(whose, [Whose::Sent(1), Whose::Own, Whose::Sent(2)]);
}

#[test]
fn a_run_and_turns_that_are_runs_leave_nothing_in_the_background() {
    let mut request = RunRequest::new("x");
    request.background_tasks = true;
    assert!(matches!(request.validate(), Err(RequestError::Contradiction { first: "background tasks", .. })));
    request.prompt.clear();
    assert_eq!(request.validate_session(), Ok(()));
    assert_eq!(request.turn("x".into(), request.conversation.clone()).validate(), Ok(()));
    for mode in [AgentInterface::Spawn, AgentInterface::Exec] {
        request.interface = mode;
        let refused = request.validate_session();
        assert!(matches!(refused, Err(RequestError::Contradiction { first: "background tasks", .. })), "{mode:?}");
    }
}
