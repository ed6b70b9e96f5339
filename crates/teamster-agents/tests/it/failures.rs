//! The failure tables: each row matches a recorded run, and only the CLI's own report of a failure is matched.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use teamster_agents::agent::{FailureRow, Matcher};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult};
use teamster_types::request::{AgentInterface, OutputMode};

use crate::capture::Capture;
use crate::drive::{Driver, events, last_outcome};
use crate::subject::{SUBJECTS, Subject, complete_request};

fn table(subject: &Subject) -> &'static [FailureRow] {
    subject.agent.capabilities().unwrap().failures
}

/// Returns the index of the row that matches, for each recorded run of an agent.
fn matched_rows(subject: &Subject) -> BTreeMap<String, Option<usize>> {
    let index = |row: &'static FailureRow| table(subject).iter().position(|known| known == row).unwrap();
    let captures = subject.captures().into_iter();
    let rows = captures.map(|capture| {
        let row = last_outcome(subject, &capture).and_then(|outcome| outcome.classified_by);
        (capture.name, row)
    });
    // Runs of the server are recorded in another format.
    let others =
        if subject.agent.name() == "opencode" { crate::opencode_serve::failure_rows() } else { BTreeMap::new() };
    rows.chain(others).map(|(name, row)| (name, row.map(index))).collect()
}

#[test]
fn each_row_matches_the_recorded_runs_that_it_names() {
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        let matched = matched_rows(subject);
        for (index, row) in table(subject).iter().enumerate() {
            let name = subject.agent.name();
            if row.captures.is_empty() {
                wrong.push(format!("{name}: {:?} names no recorded run", row.matchers));
            }
            for run in row.captures {
                match matched.get(*run) {
                    Some(Some(other)) if *other == index => {}
                    Some(Some(other)) => {
                        let other = &table(subject)[*other];
                        wrong.push(format!("{name} {run}: {:?} comes before {:?}", other.matchers, row.matchers));
                    }
                    Some(None) => wrong.push(format!("{name} {run}: not matched by {:?}", row.matchers)),
                    None => wrong.push(format!("{name}: there is no recorded run {run}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rows_are_sorted_by_the_reliability_of_their_sources() {
    for subject in SUBJECTS {
        let sources: Vec<_> = table(subject).iter().map(FailureRow::source).collect();
        assert!(sources.is_sorted(), "{}: {sources:?}", subject.agent.name());
    }
}

/// A pattern must not start with a wildcard: it would match a message that quotes another message.
#[test]
fn no_pattern_starts_with_a_wildcard() {
    for subject in SUBJECTS {
        for matcher in table(subject).iter().flat_map(|row| row.matchers) {
            if let Matcher::Message(pattern) | Matcher::Stderr(pattern) = matcher {
                assert!(!pattern.starts_with('…'), "{}: {pattern}", subject.agent.name());
            }
        }
    }
}

/// The texts of all tables.
static TEXTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let matchers = SUBJECTS.iter().flat_map(table).flat_map(|row| row.matchers);
    let texts = matchers.filter_map(|matcher| match matcher {
        Matcher::Message(text) | Matcher::Stderr(text) => Some(*text),
        _ => None,
    });
    texts.collect()
});

/// A message that contains a text of the tables.
fn message() -> impl Strategy<Value = String> {
    let around = || select(vec!["", "I read: ", "The log says:\n", "429 ", "[API Error: ", "Error: "]);
    (around(), select(TEXTS.clone()), "[a-z0-9 ]{0,8}", around())
        .prop_map(|(before, text, anything, after)| format!("{before}{}{after}", text.replace('…', &anything)))
}

/// Returns an answer of the model and the output of a tool with these words, in the format of each agent.
fn answer_and_tool_output(subject: &Subject, words: &str) -> Vec<Value> {
    match subject.agent.name() {
        "claude" => vec![
            json!({"type": "assistant", "message": {"id": "m", "model": "x", "content": [
                {"type": "text", "text": words}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}}),
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": words}]}}),
        ],
        "codex" => vec![
            json!({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": words}}),
            json!({"type": "item.completed", "item": {
                "id": "t", "type": "command_execution", "command": "x", "aggregated_output": words, "exit_code": 1,
                "status": "failed"}}),
        ],
        "gemini" => vec![
            json!({"type": "message", "role": "assistant", "content": words, "delta": true}),
            json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t", "parameters": {}}),
            json!({"type": "tool_result", "tool_id": "t", "status": "error", "output": words,
                "error": {"type": "shell_execute_error", "message": words}}),
        ],
        "opencode" => vec![
            json!({"type": "text", "part": {"messageID": "m", "text": words}}),
            json!({"type": "tool_use", "part": {"id": "p", "callID": "t", "tool": "bash",
                "state": {"status": "error", "input": {}, "error": words}}}),
        ],
        "acp" => vec![
            update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}})),
            update(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": words, "status": "in_progress"})),
            update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed", "content": [
                {"type": "content", "content": {"type": "text", "text": words}}]})),
        ],
        other => panic!("{other} is missing here"),
    }
}

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

/// Returns the lines that must precede all others.
fn handshake(subject: &Subject) -> Vec<Value> {
    match subject.agent.name() {
        "acp" => vec![
            json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}),
        ],
        _ => Vec::new(),
    }
}

/// Returns the report of a success, in the format of each agent.
fn success(subject: &Subject, words: &str) -> Value {
    match subject.agent.name() {
        "claude" => json!({"type": "result", "subtype": "success", "is_error": false, "result": words}),
        "codex" => json!({"type": "turn.completed", "usage": {}}),
        "gemini" => json!({"type": "result", "status": "success", "stats": {"total_tokens": 5}}),
        "opencode" => json!({"type": "step_finish", "part": {"reason": "stop"}}),
        "acp" => json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}),
        other => panic!("{other} is missing here"),
    }
}

/// Returns the report of a failure with these words, in the format of each agent.
fn failure(subject: &Subject, words: &str) -> Value {
    match subject.agent.name() {
        "claude" => json!({"type": "result", "subtype": "success", "is_error": true, "result": words}),
        "codex" => json!({"type": "turn.failed", "error": {"message": words}}),
        "gemini" => json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": words}}),
        "opencode" => json!({"type": "error", "error": {"name": "UnknownError", "data": {"message": words}}}),
        "acp" => json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": words}}),
        other => panic!("{other} is missing here"),
    }
}

/// Returns the result of a run with these lines.
fn ended(subject: &Subject, lines: &[Value], code: i32, stderr: &str) -> RunResult {
    let mut request = complete_request("x");
    // The lines have the format of this interface.
    request.interface = AgentInterface::Exec;
    let mut driver = Driver::start_of(subject, &request);
    for line in handshake(subject).iter().chain(lines) {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    let exit = Some(ExitReport { code: Some(code), signal: None, stderr });
    match events(&driver.end(&End { exit, ..End::default() })).pop() {
        Some(Event::Done(done)) => done.result,
        other => panic!("{other:?} is not `done`"),
    }
}

/// The recorded runs whose failure is in a table, with the index of the agent.
static FAILED: LazyLock<Vec<(usize, Capture)>> = LazyLock::new(|| {
    let named = |subject: &Subject, capture: &Capture| {
        // Batch output is one document, so no lines can be inserted.
        (subject.request)(capture).output != OutputMode::Batch
            && table(subject).iter().any(|row| row.captures.contains(&capture.name.as_str()))
    };
    let of = |(index, subject): (usize, &'static Subject)| {
        let captures = subject.captures().into_iter().filter(|capture| named(subject, capture));
        captures.map(|capture| (index, capture)).collect::<Vec<_>>()
    };
    SUBJECTS.iter().enumerate().flat_map(of).collect()
});

proptest! {
    #[test]
    fn a_success_does_not_depend_on_the_words_of_the_model_or_a_tool(words in message()) {
        for subject in SUBJECTS {
            let mut lines = answer_and_tool_output(subject, &words);
            lines.push(success(subject, &words));
            let result = ended(subject, &lines, 0, &words);
            prop_assert!(!result.is_error, "{}: {:?}", subject.agent.name(), result.error_code);
        }
    }

    #[test]
    fn an_error_that_quotes_a_text_of_the_tables_does_not_match_it(words in message()) {
        for subject in SUBJECTS {
            let line = failure(subject, &format!("It failed, and the model said: {words}"));
            let result = ended(subject, &[line], 1, "");
            prop_assert_eq!(result.error_code, Some(ErrorCode::Provider), "{}", subject.agent.name());
        }
    }

    #[test]
    fn a_failure_does_not_depend_on_the_words_of_the_model_or_a_tool((run, words) in (any::<Index>(), message())) {
        let (subject, capture) = run.get(&FAILED);
        let subject = &SUBJECTS[*subject];
        let expected = last_outcome(subject, capture).unwrap();
        let mut stdout = capture.stdout.clone();
        // After the line that names the session, if there is one.
        let at = stdout.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<String> = answer_and_tool_output(subject, &words).iter().map(Value::to_string).collect();
        stdout.splice(at..at, (lines.join("\n") + "\n").bytes());
        let found = last_outcome(subject, &Capture { stdout, ..capture.clone() }).unwrap();
        prop_assert_eq!((found.failure, found.classified_by), (expected.failure, expected.classified_by), "{}", capture.name);
    }
}
