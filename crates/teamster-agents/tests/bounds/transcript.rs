//! The transcript limits the text, calls, ids, warnings and denials that it stores.

use serde_json::json;
use teamster_agents::protocol::Outcome;
use teamster_agents::transcript::{End, Transcript};
use teamster_types::event::{Delta, Done, Event, PermissionDenial, Warning, WarningCode};

use crate::{MIB, assert_grew_less_than, peak};

/// Passes events to a function, and stores none.
struct Sink<F>(F);

impl<F: FnMut(Event)> Extend<Event> for Sink<F> {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(&mut self.0);
    }
}

/// Ends a run. Returns its `done` and the events before it.
fn done(transcript: &mut Transcript) -> (Box<Done>, Vec<Event>) {
    transcript.set_outcome(Outcome::default());
    let mut last = Vec::new();
    transcript.end(&End::default(), &mut last);
    let Some(Event::Done(done)) = last.pop() else { panic!("no done") };
    (done, last)
}

fn event(value: serde_json::Value) -> Event {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_long_text_is_emitted_completely_and_truncated_in_the_result_which_reports_it() {
    let (mut transcript, mut emitted) = (Transcript::new(), 0);
    let piece = "x".repeat(64 << 10);
    let before = peak();
    for number in 0..5000 {
        let delta = Delta::new(format!("m{}", number / 100), piece.as_str());
        transcript.push(
            Event::Text(delta),
            &mut Sink(|event| {
                let Event::Text(delta) = event else { panic!("{event:?}") };
                emitted += delta.text.len();
            }),
        );
    }
    let (done, _) = done(&mut transcript);
    assert_grew_less_than(before, 120 * MIB);
    assert_eq!(emitted, 5000 * piece.len());
    assert!(done.result.text_truncated && done.result.text.len() <= 16 * MIB);
    let separators = 49 * "\n\n".len();
    assert_eq!(done.result.text.len() as u64 + done.result.text_missing_bytes, (emitted + separators) as u64);
    assert!(done.result.text.ends_with(done.result.final_text.as_str()) && !done.result.final_text.is_empty());
}

#[test]
fn the_result_of_a_short_text_has_no_truncation_fields() {
    let mut transcript = Transcript::new();
    transcript.push(event(json!({"type": "text", "messageId": "m", "text": "hi"})), &mut Sink(drop));
    let (done, _) = done(&mut transcript);
    let json = serde_json::to_value(&done.result).unwrap();
    assert_eq!((json.get("textTruncated"), json.get("textMissingBytes")), (None, None));
}

#[test]
fn open_calls_each_get_one_result_and_use_little_memory() {
    let (mut transcript, mut calls, mut results) = (Transcript::new(), 0, 0);
    let before = peak();
    let mut count = |event: &Event| match event {
        Event::ToolUse(_) => calls += 1,
        Event::ToolResult(result) => {
            assert_eq!(result.is_error, Some(true));
            results += 1;
        }
        _ => {}
    };
    let template = event(json!({"type": "tool_use", "toolId": "t", "toolName": "x", "input": {}, "kind": "other"}));
    for number in 0..50_000 {
        let mut event = template.clone();
        if let Event::ToolUse(tool) = &mut event {
            tool.tool_id = format!("a-call-with-a-name-of-usual-length-{number}").into();
        }
        transcript.push(event, &mut Sink(|event| count(&event)));
    }
    let (_, last) = done(&mut transcript);
    last.iter().for_each(&mut count);
    assert_eq!((calls, results), (50_000, 50_000));
    assert_grew_less_than(before, 24 * MIB);
}

#[test]
fn at_most_a_mebibyte_of_the_output_of_a_running_call_is_emitted() {
    let (mut transcript, mut emitted) = (Transcript::new(), 0);
    let call = event(json!({"type": "tool_use", "toolId": "t", "toolName": "x", "input": {}, "kind": "other"}));
    transcript.push(call, &mut Sink(drop));
    let output = event(json!({"type": "tool_output", "toolId": "t", "text": "x".repeat(1000)}));
    for _ in 0..2000 {
        transcript.push(output.clone(), &mut Sink(|_| emitted += 1000));
    }
    assert_eq!(emitted, 1_048_000);
}

#[test]
fn ids_of_closed_calls_and_of_messages_use_little_memory() {
    let mut transcript = Transcript::new();
    let before = peak();
    let result = event(json!({"type": "tool_result", "toolId": "t", "output": ""}));
    for number in 0..50_000 {
        let mut event = result.clone();
        if let Event::ToolResult(result) = &mut event {
            result.tool_id = format!("a-call-with-a-name-of-usual-length-{number}").into();
        }
        transcript.push(event, &mut Sink(drop));
        let id = format!("a-message-with-a-name-of-usual-length-{number}");
        transcript.push(Event::Thinking(Delta::new(id, "x")), &mut Sink(drop));
    }
    assert_grew_less_than(before, 24 * MIB);
    assert!(transcript.is_past_retraction());
}

#[test]
fn only_the_first_hundred_warnings_with_the_same_code_are_emitted_and_the_others_are_counted() {
    let (mut transcript, mut emitted) = (Transcript::new(), 0);
    for _ in 0..100_000 {
        transcript.push(Warning::new(WarningCode::MalformedLine, "noise").into(), &mut Sink(|_| emitted += 1));
    }
    transcript.push(Warning::new(WarningCode::Notice, "another").into(), &mut Sink(|_| emitted += 1));
    assert_eq!(emitted, 101);
    let (_, last) = done(&mut transcript);
    let [Event::Warning(summary)] = &last[..] else { panic!("{last:?}") };
    assert_eq!(summary.code, WarningCode::MalformedLine);
    assert_eq!(summary.data.as_ref().unwrap()["omitted"], 99_900);
}

#[test]
fn long_ids_use_little_memory() {
    let mut transcript = Transcript::new();
    let before = peak();
    for number in 0..80 {
        let id = format!("{number}{}", "x".repeat(MIB));
        let delta = Delta::new(id, "x");
        transcript.push(Event::Text(delta), &mut Sink(drop));
    }
    assert_grew_less_than(before, 56 * MIB);
    let (done, _) = done(&mut transcript);
    assert_eq!(done.result.text, vec!["x"; 80].join("\n\n"));
}

#[test]
fn denials_in_a_result_have_inputs_up_to_a_total_size() {
    let mut transcript = Transcript::new();
    let input = json!({"command": "x".repeat(MIB)});
    let denial = json!({"toolName": "shell", "toolId": "t", "input": input});
    let denial: PermissionDenial = serde_json::from_value(denial).unwrap();
    let mut outcome = Outcome::default();
    outcome.permission_denials = vec![denial; 100];
    transcript.set_outcome(outcome);
    let mut last = Vec::new();
    transcript.end(&End::default(), &mut last);
    let Some(Event::Done(done)) = last.pop() else { panic!("no done") };
    let denials = &done.result.permission_denials;
    assert_eq!((denials.len(), denials.iter().filter(|denial| denial.input.is_some()).count()), (100, 15));
    assert!(denials[0].input.is_some() && denials[99].input.is_none());
}
