//! What is told of a turn, and what is answered in it.

use serde_json::{Value, json};
use teamster_agents::agent::acp::Acp;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{Event, StopReason};
use teamster_types::request::{Answer, PermissionMode, PromptMode};

use super::{Played, frame, selected};

#[test]
fn whoever_waits_for_leave_is_told_before_the_turn_is_cancelled() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.ask(3, "execute");
    let id = played.requests()[0].clone();
    played.tell(Input::Interrupt);
    let last: Vec<_> = played.written.iter().rev().take(2).collect();
    assert_eq!(last[0]["method"], "session/cancel");
    assert_eq!(last[1]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(played.withdrawn, [id]);
    // What comes too late is cancelled as well.
    played.ask(4, "execute");
    assert_eq!(played.reply(4)[0]["result"]["outcome"]["outcome"], "cancelled");
    played.line(&json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}));
    let outcome = &played.outcomes[0];
    assert!(outcome.interrupted && outcome.stop_reason == Some(StopReason::Cancelled));
    assert!(!played.reopens, "the session goes on");
}

#[test]
fn a_turn_that_ended_before_it_heard_of_the_interrupt_was_not_interrupted() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.tell(Input::Interrupt);
    played.answer(&json!({"stopReason": "end_turn"}));
    assert!(!played.outcomes[0].interrupted && played.outcomes[0].failure.is_none());
}

#[test]
fn a_prompt_that_was_interrupted_before_it_was_sent_is_never_sent() {
    let mut played = Played::new(&frame());
    played.send("Go.");
    played.tell(Input::Interrupt);
    assert!(played.outcomes[0].interrupted);
    played.welcome(&json!({}));
    played.answer(&json!({"sessionId": "s"}));
    assert_eq!(played.methods(), ["initialize", "session/new"]);
}

#[test]
fn a_call_is_told_once_and_has_one_result_whatever_is_said_of_it_and_when() {
    let kinds = |played: &Played| {
        let kind = |event: &Event| match event {
            Event::ToolUse(tool) => Some(format!("use {} {}", tool.tool_name.as_str(), tool.input.as_str())),
            Event::ToolResult(result) => Some(format!("result {:?} {}", result.is_error, result.output.as_str())),
            _ => None,
        };
        played.events.iter().filter_map(kind).collect::<Vec<_>>()
    };
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-3"});
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        update
    };
    // Asked for first, denied, and spoken of again.
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.ask(3, "execute");
    let id = played.requests()[0].clone();
    let deny = Answer::Deny { message: Some("Not today.".to_owned()) };
    played.tell(Input::Command(Command::Answer { request: &id, answer: &deny }));
    played.update(&call(json!({"status": "failed"})));
    assert_eq!(kinds(&played), [r#"use execute {"title":"do it"}"#, "result Some(true) Not today."]);
    assert_eq!(played.reply(3)[0]["result"], selected("no"));
    played.answer(&json!({"stopReason": "cancelled"}));
    assert!(played.outcomes[0].failure.is_none(), "it gave up since leave was denied");
    assert_eq!(played.outcomes[0].permission_denials.len(), 1);

    // Begun without its arguments, as OpenCode does.
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/"}});
    played.update(&begun);
    assert!(kinds(&played).is_empty());
    played.update(&call(json!({"status": "in_progress", "title": "ls", "rawInput": {"command": "ls"}})));
    played.update(&call(json!({"status": "completed", "rawOutput": {"output": "a file"}})));
    played.update(&call(json!({"status": "completed", "rawOutput": {"output": "twice"}})));
    assert_eq!(kinds(&played), [r#"use bash {"command":"ls"}"#, "result Some(false) a file"]);
    played.answer(&json!({"stopReason": "end_turn"}));

    // What is said of it in the next turn comes too late, unless it begins anew.
    played.events.clear();
    played.send("Again.");
    played.update(&call(json!({"status": "completed"})));
    assert!(kinds(&played).is_empty());
    played.update(&begun);
    played.answer(&json!({"stopReason": "end_turn"}));
    assert_eq!(kinds(&played), [r#"use bash {"cwd":"/"}"#], "it never began, and is told all the same");
}

#[test]
fn a_deny_rule_wins_over_what_the_mode_allows() {
    for (mode, kind) in [(PermissionMode::Full, "edit"), (PermissionMode::Edit, "edit"), (PermissionMode::Ask, "read")]
    {
        for (rule, denies) in [(kind, true), ("execute", false)] {
            let mut frame = frame();
            frame.permissions.mode = mode;
            frame.permissions.deny = vec![rule.to_owned()];
            let mut played = Played::of(&Gemini, &frame);
            played.welcome(&json!({}));
            played.answer(&json!({"sessionId": "s"}));
            played.send("Go.");
            played.ask(3, kind);
            let asks = !denies && mode == PermissionMode::Ask;
            assert_eq!(played.requests().len(), usize::from(asks), "{mode:?} {rule}");
            let replies: Vec<_> = played.reply(3).iter().map(|reply| reply["result"].clone()).collect();
            let expected = if asks { vec![] } else { vec![selected(if denies { "no" } else { "yes" })] };
            assert_eq!(replies, expected, "{mode:?} {rule}");
            let told = |event: &Event| matches!(event, Event::ToolResult(result) if result.output.contains(&format!("rule {rule}")));
            assert_eq!(played.events.iter().any(told), denies, "{mode:?} {rule}");
        }
    }
}

#[test]
fn what_a_deny_rule_may_mean_is_allowed_by_no_mode() {
    for (command, denied, asked) in
        [("timeout 5 rm x", true, false), ("$program x", false, true), ("ls 'x", false, true), ("ls x", false, false)]
    {
        let mut frame = frame();
        frame.permissions.mode = PermissionMode::Full;
        frame.permissions.deny = vec!["execute(rm:*)".to_owned()];
        let mut played = Played::of(&Acp::any(), &frame);
        played.welcome(&json!({}));
        played.answer(&json!({"sessionId": "s"}));
        played.send("Go.");
        played
            .update(&json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "do it", "kind": "execute",
            "status": "pending", "rawInput": {"command": command}}));
        played.ask(3, "execute");
        assert_eq!(played.requests().len(), usize::from(asked), "{command}");
        let replies: Vec<_> = played.reply(3).iter().map(|reply| reply["result"].clone()).collect();
        let expected = if asked { vec![] } else { vec![selected(if denied { "no" } else { "yes" })] };
        assert_eq!(replies, expected, "{command}");
    }
}

#[test]
fn a_request_that_we_do_not_serve_is_answered_with_an_error() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played
        .line(&json!({"jsonrpc": "2.0", "id": "x", "method": "fs/write_text_file", "params": {"path": "/etc/passwd"}}));
    let last = played.written.last().unwrap();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn gemini_runs_no_command_of_a_literal_prompt() {
    let mut frame = frame();
    frame.prompt_mode = PromptMode::Literal;
    for (text, goes) in
        [("/memory add x", false), (" $help", false), ("/quit", true), ("say /help", true), ("@file", true)]
    {
        let mut played = Played::of(&Gemini, &frame);
        played.welcome(&json!({}));
        played.answer(&json!({"sessionId": "s"}));
        played.send(text);
        assert_eq!(played.methods().contains(&"session/prompt"), goes, "{text}");
        assert_eq!(played.outcomes.is_empty(), goes, "{text}");
    }
}

#[test]
fn a_call_whose_input_cannot_be_read_is_denied_and_told_with_all_of_its_input() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    let input = format!(r#"{{"id":18446744073709551617,"deep":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c","kind":"execute","rawInput":{input}}},"options":[{{"optionId":"yes","name":"Yes","kind":"allow_once"}}]}}}}"#
    );
    played.tell(Input::Line(line.as_bytes()));
    let told = played.events.iter().find_map(|event| match event {
        Event::ToolUse(tool) => Some(tool.input.as_str()),
        _ => None,
    });
    assert_eq!(told, Some(input.as_str()));
    assert_ne!(played.reply(3)[0]["result"], selected("yes"));
}
