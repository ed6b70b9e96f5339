//! Threads and their turns: start, events and end.

use std::num::NonZeroU32;

use serde_json::json;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{ErrorCode, Event, WarningCode};
use teamster_types::request::{Conversation, PermissionMode, RunRequest};

use super::session::{TestSession, session_request};
use super::{OTHER, THREAD};

#[test]
fn a_run_is_one_turn_and_closes_standard_input_after_it() {
    let mut session = TestSession::run(&RunRequest::new("Go."));
    session.open(THREAD);
    assert_eq!(session.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Go.");
    session.turn_starts("turn-1");
    session.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    assert!(!session.closed);
    session.turn_ends("turn-1", "completed");
    assert!(session.closed);
    assert_eq!((session.result().text.as_str(), session.result().is_error), ("Done.", false));
    assert_eq!(session.result().model.as_deref(), Some("m"));
}

#[test]
fn a_wrong_thread_gets_no_prompt() {
    for (conversation, thread) in [
        (Conversation::Resume(THREAD.into()), OTHER),
        (Conversation::Fork(THREAD.into()), THREAD),
        (Conversation::New, ""),
    ] {
        let mut request = RunRequest::new("x");
        (request.conversation, request.model) = (conversation, Some("m".to_owned()));
        let mut session = TestSession::run(&request);
        session.open(thread);
        assert!(session.wrote("turn/start").is_none() && session.closed);
        assert_eq!(session.result().error_code, Some(ErrorCode::Protocol));
        assert_eq!(session.warned(&WarningCode::SessionMismatch), 1);
    }
}

#[test]
fn a_resumed_thread_keeps_its_model_unless_the_request_names_another() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume(THREAD.into());
    let mut session = TestSession::run(&request);
    session.reply("initialize", &json!({}));
    session.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "its-own"}}));
    assert_eq!(session.wrote("thread/resume").unwrap()["params"]["model"], "its-own");
    request.model = Some("another".to_owned());
    let mut session = TestSession::run(&request);
    session.reply("initialize", &json!({}));
    assert_eq!(session.wrote("thread/resume").unwrap()["params"]["model"], "another");
}

#[test]
fn the_newest_thread_of_the_directory_is_resumed_or_forked_and_without_one_a_new_one_starts() {
    let newest = json!([{"id": THREAD}]);
    for (conversation, found, method) in [
        (Conversation::Continue, &newest, "thread/resume"),
        (Conversation::Continue, &json!([]), "thread/start"),
        (Conversation::ForkNewest, &newest, "thread/fork"),
        (Conversation::ForkNewest, &json!([]), "thread/start"),
    ] {
        let mut request = RunRequest::new("x");
        request.conversation = conversation;
        request.cwd = Some("/home/dev/project".into());
        request.model = Some("m".to_owned());
        let mut session = TestSession::run(&request);
        session.reply("initialize", &json!({}));
        assert_eq!(session.wrote("thread/list").unwrap()["params"]["cwd"], "/home/dev/project");
        session.reply("thread/list", &json!({ "data": found }));
        assert!(session.wrote(method).is_some());
    }
}

#[test]
fn output_of_another_thread_or_turn_is_not_emitted() {
    let mut session = TestSession::running(&session_request());
    let before = session.events.len();
    let message = |text: &str| json!({"type": "agentMessage", "id": "m", "text": text});
    session.notify("item/completed", json!({"threadId": OTHER, "turnId": "turn-1", "item": message("other thread")}));
    session.notify("item/completed", json!({"turnId": "turn-0", "item": message("other turn")}));
    session.notify("turn/completed", json!({"turn": {"id": "turn-0", "status": "completed"}}));
    session.notify("turn/completed", json!({"threadId": OTHER, "turn": {"id": "turn-1", "status": "completed"}}));
    session.notify("item/agentMessage/delta", json!({"turnId": "turn-0", "itemId": "m", "delta": "x"}));
    assert_eq!(session.events.len(), before);
    // A command that outlives its turn ends in the next one, which did not start it.
    session.item("item/completed", &message("Done."));
    session.turn_ends("turn-1", "completed");
    session.send("More.");
    session.turn_starts("turn-2");
    session
        .item("item/completed", &json!({"type": "commandExecution", "id": "c", "command": "x", "status": "completed"}));
    assert!(!session.events.iter().any(|event| matches!(event, Event::ToolResult(_))));
}

#[test]
fn an_interrupted_turn_ends_when_its_commands_have_ended() {
    let mut session = TestSession::running(&session_request());
    session.item(
        "item/started",
        &json!({"type": "commandExecution", "id": "c", "command": "sleep", "status": "inProgress"}),
    );
    session.handle(Input::Interrupt);
    assert_eq!(session.wrote("turn/interrupt").unwrap()["params"], json!({"threadId": THREAD, "turnId": "turn-1"}));
    session.turn_ends("turn-1", "interrupted");
    assert!(session.in_turn, "its command may run");
    session.reply("thread/backgroundTerminals/clean", &json!({}));
    assert!(session.result().aborted && !session.closed && !session.restarts);
    session.send("More.");
    assert!(session.wrote("turn/start").is_some());
}

#[test]
fn an_interrupt_waits_until_the_turn_can_be_interrupted() {
    let mut session = TestSession::session(&session_request());
    session.open(THREAD);
    session.send("Go.");
    session.handle(Input::Interrupt);
    session.reply("turn/start", &json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(session.wrote("turn/interrupt").is_none(), "it has not started");
    session.notify("turn/started", json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(session.wrote("turn/interrupt").is_some());
}

#[test]
fn an_interrupt_before_the_thread_is_open_drops_the_prompt() {
    let mut session = TestSession::session(&session_request());
    session.send("Go.");
    session.handle(Input::Interrupt);
    assert!(session.result().aborted);
    session.open(THREAD);
    assert!(session.wrote("turn/start").is_none());
    session.send("Now.");
    assert_eq!(session.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Now.");
}

#[test]
fn a_turn_that_the_agent_interrupts_by_itself_fails() {
    let mut session = TestSession::running(&session_request());
    session.turn_ends("turn-1", "interrupted");
    assert!(session.result().is_error && !session.result().aborted);
}

#[test]
fn a_compaction_a_model_change_and_a_near_limit_are_emitted() {
    let mut session = TestSession::running(&session_request());
    session.item("item/completed", &json!({"type": "contextCompaction", "id": "x"}));
    session.notify("model/rerouted", json!({"turnId": "turn-1", "fromModel": "a", "toModel": "b"}));
    let window = json!({"usedPercent": 95, "windowDurationMins": 300, "resetsAt": 1_999_999_999});
    session.line(&json!({"method": "account/rateLimits/updated", "params": {"rateLimits": {"primary": window}}}));
    assert_eq!((session.warned(&WarningCode::Compacted), session.warned(&WarningCode::ModelFallback)), (1, 1));
    assert!(session.events.iter().any(|event| matches!(event, Event::RateLimit(_))));
}

#[test]
fn the_parts_of_a_summary_are_lines_and_missing_text_is_emitted_at_the_end() {
    let mut session = TestSession::running(&session_request());
    for (delta, part) in [("One", 0), (".", 0), ("Two", 1)] {
        let params = json!({"turnId": "turn-1", "itemId": "r", "delta": delta, "summaryIndex": part});
        session.notify("item/reasoning/summaryTextDelta", params);
    }
    session.item(
        "item/completed",
        &json!({"type": "reasoning", "id": "r", "summary": ["One.", "Two."], "content": ["raw"]}),
    );
    let emitted: String = session
        .events
        .iter()
        .filter_map(|event| if let Event::Thinking(delta) = event { Some(delta.text.as_str()) } else { None })
        .collect();
    assert_eq!(emitted, "One.\nTwo.");
}

#[test]
fn a_thread_that_cannot_be_opened_fails_each_turn_and_requests_another_process() {
    let mut session = TestSession::session(&session_request());
    session.reply("initialize", &json!({}));
    session.refuse("thread/start", "failed to load configuration: x");
    session.send("Go.");
    assert_eq!(session.result().error_code, Some(ErrorCode::Config));
    assert!(session.restarts);
}

#[test]
fn another_model_is_used_from_the_next_turn_and_another_mode_needs_another_process() {
    let mut session = TestSession::running(&session_request());
    session.handle(Input::Command(Command::SetModel("m2")));
    session.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    session.turn_ends("turn-1", "completed");
    session.send("More.");
    assert_eq!(session.wrote("turn/start").unwrap()["params"]["model"], "m2");
    session.handle(Input::Command(Command::SetPermissionMode(PermissionMode::ReadOnly)));
    assert!(session.restarts);
}

#[test]
fn a_hook_of_the_user_that_ends_a_turn_is_named() {
    let hook = |session: &mut TestSession, event: &str, status: &str, text: &str| {
        let run = json!({"eventName": event, "status": status, "entries": [{"kind": "feedback", "text": text}]});
        session.notify("hook/completed", json!({"turnId": "turn-1", "run": run}));
    };
    let answer = json!({"type": "agentMessage", "id": "m", "text": "Done."});
    let mut refused = TestSession::running(&session_request());
    hook(&mut refused, "sessionStart", "completed", "context");
    hook(&mut refused, "userPromptSubmit", "blocked", "no secrets");
    refused.turn_ends("turn-1", "completed");
    let error = refused.result().error.as_ref().unwrap();
    assert_eq!(error.code, ErrorCode::HookStopped);
    assert_eq!(error.message, "the hook userPromptSubmit stopped the agent: no secrets");
    // After this hook the model continues with its text.
    let mut answered = TestSession::running(&session_request());
    hook(&mut answered, "postToolUse", "stopped", "enough");
    answered.item("item/completed", &answer);
    answered.turn_ends("turn-1", "completed");
    assert!(!answered.result().is_error);
    let mut ended = TestSession::running(&session_request());
    ended.item("item/completed", &answer);
    hook(&mut ended, "stop", "stopped", "enough");
    ended.turn_ends("turn-1", "completed");
    assert!(!ended.result().is_error);
    let warned = ended.events.iter().find_map(|event| match event {
        Event::Warning(warning) if warning.code == WarningCode::HookStopped => Some(warning.message.as_str()),
        _ => None,
    });
    assert_eq!(warned, Some("the hook stop ended the turn after the answer: enough"));
}

#[test]
fn a_turn_that_continues_after_its_last_permitted_model_call_is_stopped() {
    let mut request = session_request();
    request.max_turns = NonZeroU32::new(2);
    let mut session = TestSession::running(&request);
    let call = |session: &mut TestSession, id: &str, tokens: u64| {
        let item = |status: &str| json!({"type": "commandExecution", "id": id, "command": "x", "status": status});
        session.item("item/started", &item("inProgress"));
        session.item("item/completed", &item("completed"));
        let tokens = json!({"total": {"inputTokens": tokens, "outputTokens": 1}, "last": {"inputTokens": 9}});
        for _ in 0..2 {
            // A repeated figure is no further call.
            session.notify("thread/tokenUsage/updated", json!({"turnId": "turn-1", "tokenUsage": tokens}));
        }
    };
    call(&mut session, "a", 10);
    assert!(session.wrote("turn/interrupt").is_none());
    call(&mut session, "b", 20);
    assert!(session.wrote("turn/interrupt").is_some());
    session.turn_ends("turn-1", "interrupted");
    session.reply("thread/backgroundTerminals/clean", &json!({}));
    assert_eq!(session.result().error_code, Some(ErrorCode::MaxTurns));
    assert!(!session.result().aborted && !session.closed);
}

#[test]
fn an_answer_by_the_last_permitted_model_call_is_a_success() {
    let mut request = session_request();
    request.max_turns = NonZeroU32::MIN.into();
    let mut session = TestSession::running(&request);
    session.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    let tokens = json!({"total": {"inputTokens": 10}, "last": {"inputTokens": 10}});
    session.notify("thread/tokenUsage/updated", json!({"turnId": "turn-1", "tokenUsage": tokens}));
    assert!(session.wrote("turn/interrupt").is_none());
    session.turn_ends("turn-1", "completed");
    assert_eq!((session.result().text.as_str(), session.result().is_error), ("Done.", false));
}
