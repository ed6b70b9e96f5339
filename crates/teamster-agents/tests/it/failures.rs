//! The tables of failures: every row is shown by a recorded run, and nothing but the CLI's own word is a sign.

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
use crate::drive::{Driver, events, last_word};
use crate::subject::{SUBJECTS, Subject, precise};

fn table(subject: &Subject) -> &'static [FailureRow] {
    subject.agent.capabilities().unwrap().failures
}

/// For each recorded run of an agent the place of the row that tells what its failure means.
fn told(subject: &Subject) -> BTreeMap<String, Option<usize>> {
    let place = |row: &'static FailureRow| table(subject).iter().position(|known| known == row).unwrap();
    let captures = subject.captures().into_iter();
    let rows = captures.map(|capture| {
        let row = last_word(subject, &capture).and_then(|outcome| outcome.classified_by);
        (capture.name, row)
    });
    // Some are recorded in another form.
    let others = if subject.agent.name() == "opencode" { crate::opencode_serve::told() } else { BTreeMap::new() };
    rows.chain(others).map(|(name, row)| (name, row.map(place))).collect()
}

#[test]
fn every_row_is_shown_by_the_recorded_runs_that_it_names() {
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        let told = told(subject);
        for (place, row) in table(subject).iter().enumerate() {
            let name = subject.agent.name();
            if row.captures.is_empty() {
                wrong.push(format!("{name}: {:?} names no run", row.matchers));
            }
            for run in row.captures {
                match told.get(*run) {
                    Some(Some(other)) if *other == place => {}
                    Some(Some(other)) => {
                        let other = &table(subject)[*other];
                        wrong.push(format!("{name} {run}: {:?} comes before {:?}", other.matchers, row.matchers));
                    }
                    Some(None) => wrong.push(format!("{name} {run}: not told by {:?}", row.matchers)),
                    None => wrong.push(format!("{name}: there is no run {run}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn better_sources_come_first_in_every_table() {
    for subject in SUBJECTS {
        let sources: Vec<_> = table(subject).iter().map(FailureRow::source).collect();
        assert!(sources.is_sorted(), "{}: {sources:?}", subject.agent.name());
    }
}

/// A text that stands for anything in a pattern must not stand at its beginning: what quotes it would be taken for it.
#[test]
fn every_text_is_compared_from_its_beginning() {
    for subject in SUBJECTS {
        for sign in table(subject).iter().flat_map(|row| row.matchers) {
            if let Matcher::Message(pattern) | Matcher::Stderr(pattern) = sign {
                assert!(!pattern.starts_with('…'), "{}: {pattern}", subject.agent.name());
            }
        }
    }
}

/// Every text of every table, as it could stand in an answer.
static TEXTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let signs = SUBJECTS.iter().flat_map(table).flat_map(|row| row.matchers);
    let texts = signs.filter_map(|sign| match sign {
        Matcher::Message(text) | Matcher::Stderr(text) => Some(*text),
        _ => None,
    });
    texts.collect()
});

/// Words with one of the tables' texts amid them, or at their beginning.
fn words() -> impl Strategy<Value = String> {
    let around = || select(vec!["", "I read: ", "The log says:\n", "429 ", "[API Error: ", "Error: "]);
    (around(), select(TEXTS.clone()), "[a-z0-9 ]{0,8}", around())
        .prop_map(|(before, text, anything, after)| format!("{before}{}{after}", text.replace('…', &anything)))
}

/// An answer and the output of a tool that both say so, as each agent writes them.
fn spoken(subject: &Subject, words: &str) -> Vec<Value> {
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
        other => panic!("{other} has no such lines yet"),
    }
}

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

/// What an agent says before the model has a word, where the rest means nothing without it.
fn opening(subject: &Subject) -> Vec<Value> {
    match subject.agent.name() {
        "acp" => vec![
            json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}),
        ],
        _ => Vec::new(),
    }
}

/// How each agent says that all is well.
fn well(subject: &Subject, words: &str) -> Value {
    match subject.agent.name() {
        "claude" => json!({"type": "result", "subtype": "success", "is_error": false, "result": words}),
        "codex" => json!({"type": "turn.completed", "usage": {}}),
        "gemini" => json!({"type": "result", "status": "success", "stats": {"total_tokens": 5}}),
        "opencode" => json!({"type": "step_finish", "part": {"reason": "stop"}}),
        "acp" => json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}),
        other => panic!("{other} has no such line yet"),
    }
}

/// How each agent says that it failed for a reason in its own words.
fn failed(subject: &Subject, words: &str) -> Value {
    match subject.agent.name() {
        "claude" => json!({"type": "result", "subtype": "success", "is_error": true, "result": words}),
        "codex" => json!({"type": "turn.failed", "error": {"message": words}}),
        "gemini" => json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": words}}),
        "opencode" => json!({"type": "error", "error": {"name": "UnknownError", "data": {"message": words}}}),
        "acp" => json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": words}}),
        other => panic!("{other} has no such line yet"),
    }
}

fn ended(subject: &Subject, lines: &[Value], code: i32, stderr: &str) -> RunResult {
    let mut request = precise("x");
    // In the form that the lines are of.
    request.interface = AgentInterface::Exec;
    let mut driver = Driver::start_of(subject, &request);
    for line in opening(subject).iter().chain(lines) {
        driver.tell(Input::Line(line.to_string().as_bytes()));
    }
    let exit = Some(ExitReport { code: Some(code), signal: None, stderr });
    match events(&driver.end(&End { exit, ..End::default() })).pop() {
        Some(Event::Done(done)) => done.result,
        other => panic!("{other:?} is no done"),
    }
}

/// Recorded runs that failed for a reason that a table knows.
static FAILED: LazyLock<Vec<(usize, Capture)>> = LazyLock::new(|| {
    let named = |subject: &Subject, capture: &Capture| {
        // A batch has no lines for the model's words: they stand in its one document.
        (subject.request)(capture).output != OutputMode::Batch
            && table(subject).iter().any(|row| row.captures.contains(&capture.name.as_str()))
    };
    let of = |(place, subject): (usize, &'static Subject)| {
        let captures = subject.captures().into_iter().filter(|capture| named(subject, capture));
        captures.map(|capture| (place, capture)).collect::<Vec<_>>()
    };
    SUBJECTS.iter().enumerate().flat_map(of).collect()
});

proptest! {
    #[test]
    fn whatever_the_model_or_a_tool_says_a_success_stays_one(words in words()) {
        for subject in SUBJECTS {
            let mut lines = spoken(subject, &words);
            lines.push(well(subject, &words));
            let result = ended(subject, &lines, 0, &words);
            prop_assert!(!result.is_error, "{}: {:?}", subject.agent.name(), result.error_code);
        }
    }

    #[test]
    fn an_error_that_quotes_a_text_of_the_tables_is_not_taken_for_it(words in words()) {
        for subject in SUBJECTS {
            let line = failed(subject, &format!("It failed, and the model said: {words}"));
            let result = ended(subject, &[line], 1, "");
            prop_assert_eq!(result.error_code, Some(ErrorCode::Provider), "{}", subject.agent.name());
        }
    }

    #[test]
    fn whatever_the_model_or_a_tool_says_a_failure_means_what_it_did((place, words) in (any::<Index>(), words())) {
        let (subject, capture) = place.get(&FAILED);
        let subject = &SUBJECTS[*subject];
        let expected = last_word(subject, capture).unwrap();
        let mut said = capture.stdout.clone();
        // After the line that names the session, if there is one.
        let at = said.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<String> = spoken(subject, &words).iter().map(Value::to_string).collect();
        said.splice(at..at, (lines.join("\n") + "\n").bytes());
        let found = last_word(subject, &Capture { stdout: said, ..capture.clone() }).unwrap();
        prop_assert_eq!((found.failure, found.classified_by), (expected.failure, expected.classified_by), "{}", capture.name);
    }
}
