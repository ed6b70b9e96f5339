//! Threads and the turns on them: how they begin, what is told of them, and how they end.

use serde_json::json;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{ErrorCode, Event, WarningCode};
use teamster_types::request::{Conversation, PermissionMode, RunRequest};

use super::talk::{Talk, frame};
use super::{OTHER, THREAD};

#[test]
fn a_run_is_one_turn_and_closes_standard_input_after_it() {
    let mut talk = Talk::run(&RunRequest::new("Go."));
    talk.open(THREAD);
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Go.");
    talk.turn_starts("turn-1");
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    assert!(!talk.closed);
    talk.turn_ends("turn-1", "completed");
    assert!(talk.closed);
    assert_eq!((talk.result().text.as_str(), talk.result().is_error), ("Done.", false));
    assert_eq!(talk.result().model.as_deref(), Some("m"));
}

#[test]
fn another_thread_than_the_one_asked_for_gets_no_prompt() {
    for (conversation, thread) in [
        (Conversation::Resume(THREAD.into()), OTHER),
        (Conversation::Fork(THREAD.into()), THREAD),
        (Conversation::New, ""),
    ] {
        let mut request = RunRequest::new("x");
        (request.conversation, request.model) = (conversation, Some("m".to_owned()));
        let mut talk = Talk::run(&request);
        talk.open(thread);
        assert!(talk.wrote("turn/start").is_none() && talk.closed);
        assert_eq!(talk.result().error_code, Some(ErrorCode::Protocol));
        assert_eq!(talk.warned(&WarningCode::SessionMismatch), 1);
    }
}

#[test]
fn a_thread_that_goes_on_keeps_its_model_unless_another_is_asked_for() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume(THREAD.into());
    let mut talk = Talk::run(&request);
    talk.reply("initialize", &json!({}));
    talk.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "its-own"}}));
    assert_eq!(talk.wrote("thread/resume").unwrap()["params"]["model"], "its-own");
    request.model = Some("another".to_owned());
    let mut talk = Talk::run(&request);
    talk.reply("initialize", &json!({}));
    assert_eq!(talk.wrote("thread/resume").unwrap()["params"]["model"], "another");
}

#[test]
fn the_newest_thread_of_the_directory_is_resumed_or_a_new_one_begun() {
    for (found, method) in [(json!([{"id": THREAD}]), "thread/resume"), (json!([]), "thread/start")] {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Continue;
        request.cwd = Some("/home/dev/project".into());
        request.model = Some("m".to_owned());
        let mut talk = Talk::run(&request);
        talk.reply("initialize", &json!({}));
        assert_eq!(talk.wrote("thread/list").unwrap()["params"]["cwd"], "/home/dev/project");
        talk.reply("thread/list", &json!({ "data": found }));
        assert!(talk.wrote(method).is_some());
    }
}

#[test]
fn what_is_of_another_thread_or_turn_is_not_told() {
    let mut talk = Talk::running(&frame());
    let before = talk.events.len();
    let message = |text: &str| json!({"type": "agentMessage", "id": "m", "text": text});
    talk.notify("item/completed", json!({"threadId": OTHER, "turnId": "turn-1", "item": message("other thread")}));
    talk.notify("item/completed", json!({"turnId": "turn-0", "item": message("other turn")}));
    talk.notify("turn/completed", json!({"turn": {"id": "turn-0", "status": "completed"}}));
    talk.notify("turn/completed", json!({"threadId": OTHER, "turn": {"id": "turn-1", "status": "completed"}}));
    talk.notify("item/agentMessage/delta", json!({"turnId": "turn-0", "itemId": "m", "delta": "x"}));
    assert_eq!(talk.events.len(), before);
    // A command that outlives its turn ends in the next one, which did not begin it.
    talk.item("item/completed", &message("Done."));
    talk.turn_ends("turn-1", "completed");
    talk.send("More.");
    talk.turn_starts("turn-2");
    talk.item("item/completed", &json!({"type": "commandExecution", "id": "c", "command": "x", "status": "completed"}));
    assert!(!talk.events.iter().any(|event| matches!(event, Event::ToolResult(_))));
}

#[test]
fn an_interrupt_ends_the_turn_when_its_commands_have_ended() {
    let mut talk = Talk::running(&frame());
    talk.item(
        "item/started",
        &json!({"type": "commandExecution", "id": "c", "command": "sleep", "status": "inProgress"}),
    );
    talk.tell(Input::Interrupt);
    assert_eq!(talk.wrote("turn/interrupt").unwrap()["params"], json!({"threadId": THREAD, "turnId": "turn-1"}));
    talk.turn_ends("turn-1", "interrupted");
    assert!(talk.in_turn, "its command may run");
    talk.reply("thread/backgroundTerminals/clean", &json!({}));
    assert!(talk.result().aborted && !talk.closed && !talk.reopens);
    talk.send("More.");
    assert!(talk.wrote("turn/start").is_some());
}

#[test]
fn an_interrupt_is_kept_until_the_turn_can_be_interrupted() {
    let mut talk = Talk::session(&frame());
    talk.open(THREAD);
    talk.send("Go.");
    talk.tell(Input::Interrupt);
    talk.reply("turn/start", &json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(talk.wrote("turn/interrupt").is_none(), "it has not begun");
    talk.notify("turn/started", json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(talk.wrote("turn/interrupt").is_some());
}

#[test]
fn an_interrupt_before_there_is_a_thread_keeps_the_prompt_from_the_model() {
    let mut talk = Talk::session(&frame());
    talk.send("Go.");
    talk.tell(Input::Interrupt);
    assert!(talk.result().aborted);
    talk.open(THREAD);
    assert!(talk.wrote("turn/start").is_none());
    talk.send("Now.");
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Now.");
}

#[test]
fn a_turn_that_the_agent_interrupts_by_itself_has_failed() {
    let mut talk = Talk::running(&frame());
    talk.turn_ends("turn-1", "interrupted");
    assert!(talk.result().is_error && !talk.result().aborted);
}

#[test]
fn a_shortened_conversation_another_model_and_a_near_limit_are_told() {
    let mut talk = Talk::running(&frame());
    talk.item("item/completed", &json!({"type": "contextCompaction", "id": "x"}));
    talk.notify("model/rerouted", json!({"turnId": "turn-1", "fromModel": "a", "toModel": "b"}));
    let window = json!({"usedPercent": 95, "windowDurationMins": 300, "resetsAt": 1_999_999_999});
    talk.line(&json!({"method": "account/rateLimits/updated", "params": {"rateLimits": {"primary": window}}}));
    assert_eq!((talk.warned(&WarningCode::Compacted), talk.warned(&WarningCode::ModelFallback)), (1, 1));
    assert!(talk.events.iter().any(|event| matches!(event, Event::RateLimit(_))));
}

#[test]
fn parts_of_a_summary_are_lines_and_what_deltas_lacked_is_told_at_the_end() {
    let mut talk = Talk::running(&frame());
    for (delta, part) in [("One", 0), (".", 0), ("Two", 1)] {
        let params = json!({"turnId": "turn-1", "itemId": "r", "delta": delta, "summaryIndex": part});
        talk.notify("item/reasoning/summaryTextDelta", params);
    }
    talk.item(
        "item/completed",
        &json!({"type": "reasoning", "id": "r", "summary": ["One.", "Two."], "content": ["raw"]}),
    );
    let told: String = talk
        .events
        .iter()
        .filter_map(|event| if let Event::Thinking(delta) = event { Some(delta.text.as_str()) } else { None })
        .collect();
    assert_eq!(told, "One.\nTwo.");
}

#[test]
fn a_thread_that_cannot_be_opened_ends_each_turn_and_another_process_is_asked_for() {
    let mut talk = Talk::session(&frame());
    talk.reply("initialize", &json!({}));
    talk.refuse("thread/start", "failed to load configuration: x");
    talk.send("Go.");
    assert_eq!(talk.result().error_code, Some(ErrorCode::Config));
    assert!(talk.reopens);
}

#[test]
fn another_model_holds_from_the_next_turn_and_another_mode_needs_another_process() {
    let mut talk = Talk::running(&frame());
    talk.tell(Input::Command(Command::SetModel("m2")));
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    talk.turn_ends("turn-1", "completed");
    talk.send("More.");
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["model"], "m2");
    talk.tell(Input::Command(Command::SetPermissionMode(PermissionMode::ReadOnly)));
    assert!(talk.reopens);
}
