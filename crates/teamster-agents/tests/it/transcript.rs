//! For any events in any order, the output of the transcript follows the rules of the stream.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::protocol::{ExitReport, Outcome};
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{Done, ErrorCode, Event, Failure, RunResult, Usage, UsageScope, Warning, WarningCode};

/// Any event. There are few ids, so that events refer to each other.
fn event() -> impl Strategy<Value = Event> {
    // The last id looks like the renamed id of a second attempt.
    let message = || select(vec!["m1", "m2", "m1~2"]);
    let tool = || select(vec!["t1", "t2", "t1~2"]);
    let parent = || select(vec![None, None, Some("t1")]);
    let text = || select(vec!["", "a", "b", "👋"]);
    let delta = move |kind: &'static str| {
        (message(), text(), parent()).prop_map(move |(message, text, parent)| {
            with_parent(json!({"type": kind, "messageId": message, "text": text}), parent)
        })
    };
    let value = prop_oneof![
        6 => delta("text"),
        2 => delta("thinking"),
        2 => message().prop_map(|message| json!({"type": "retract", "messageId": message})),
        4 => (tool(), parent()).prop_map(|(tool, parent)| {
            let call = json!({"type": "tool_use", "toolId": tool, "toolName": "x", "input": {}, "kind": "other"});
            with_parent(call, parent)
        }),
        4 => (tool(), parent()).prop_map(|(tool, parent)| {
            with_parent(json!({"type": "tool_result", "toolId": tool, "output": ""}), parent)
        }),
        2 => (tool(), parent(), select(vec!["", "o"])).prop_map(|(tool, parent, text)| {
            with_parent(json!({"type": "tool_output", "toolId": tool, "text": text}), parent)
        }),
        1 => select(vec!["s1", "s2"]).prop_map(|id| json!({"type": "init", "agent": "a", "sessionId": id})),
        1 => Just(json!({"type": "warning", "message": "m", "code": "NOTICE"})),
        1 => Just(json!({"type": "plan", "entries": []})),
    ];
    let read = value.prop_map(|value| serde_json::from_value(value).unwrap());
    prop_oneof![20 => read, 1 => Just(Event::Error(failure(ErrorCode::Auth).into())), 1 => Just(done())]
}

fn with_parent(mut event: Value, parent: Option<&str>) -> Value {
    if let Some(parent) = parent {
        event["parentToolId"] = parent.into();
    }
    event
}

fn failure(code: ErrorCode) -> Failure {
    Failure::new(code, "why")
}

fn done() -> Event {
    Event::Done(Box::new(Done::new(RunResult::default())))
}

fn outcome() -> impl Strategy<Value = Option<Outcome>> {
    let outcome = (any::<bool>(), any::<bool>(), proptest::option::of(0..100_u64));
    let outcome = outcome.prop_map(|(failed, interrupted, tokens)| {
        let mut outcome = Outcome::default();
        outcome.usage = tokens.map(|tokens| (used(tokens), UsageScope::Run));
        outcome.failure = failed.then(|| failure(ErrorCode::Provider));
        outcome.interrupted = interrupted;
        outcome
    });
    proptest::option::of(outcome)
}

fn used(tokens: u64) -> Usage {
    let mut usage = Usage::default();
    usage.output_tokens = tokens;
    usage
}

/// The events and the outcome of each attempt.
type Attempts = Vec<(Vec<Event>, Option<Outcome>)>;

fn attempts() -> impl Strategy<Value = Attempts> {
    vec((vec(event(), 0..20), outcome()), 1..4)
}

/// Returns the emitted events of each attempt. The last one includes the end.
fn emitted(attempts: &Attempts, end: &End<'_>) -> Vec<Vec<Event>> {
    let mut transcript = Transcript::new();
    let mut all = Vec::new();
    for (number, (events, outcome)) in attempts.iter().enumerate() {
        let mut out = Vec::new();
        for event in events {
            transcript.push(event.clone(), &mut out);
        }
        if let Some(outcome) = outcome {
            transcript.set_outcome(outcome.clone());
        }
        if number + 1 < attempts.len() {
            transcript.start_attempt(&mut out);
        } else {
            transcript.end(end, &mut out);
        }
        all.push(out);
    }
    all
}

fn result(events: &[Vec<Event>]) -> &RunResult {
    let Some(Event::Done(done)) = events.last().and_then(|events| events.last()) else { panic!("{events:#?}") };
    &done.result
}

/// Returns the ids of messages and calls.
fn ids(events: &[Event]) -> HashSet<String> {
    let id = |event: &Event| match event {
        Event::Text(delta) | Event::Thinking(delta) => Some(format!("message {}", delta.message_id.as_str())),
        Event::ToolUse(tool) => Some(format!("call {}", tool.tool_id.as_str())),
        _ => None,
    };
    events.iter().filter_map(id).collect()
}

fn end() -> impl Strategy<Value = End<'static>> {
    let cause = select(vec![None, Some(Cause::Aborted), Some(Cause::Failed(failure(ErrorCode::DeadlineExceeded)))]);
    let exit = (any::<Option<i32>>(), select(vec![None, Some("SIGKILL")]), select(vec!["", "a\nb\n"]));
    let exit = exit.prop_map(|(code, signal, stderr)| ExitReport { code, signal, stderr });
    (cause, proptest::option::of(exit)).prop_map(|(cause, exit)| End { cause, exit, left: Vec::new(), duration_ms: 1 })
}

proptest! {
    #[test]
    fn any_events_result_in_a_stream_that_follows_the_rules(
        events in vec(event(), 0..40), outcome in outcome(), end in end(), late in event(),
    ) {
        let mut transcript = Transcript::new();
        let mut out = Vec::new();
        for event in events {
            transcript.push(event, &mut out);
        }
        if let Some(outcome) = outcome {
            transcript.set_outcome(outcome);
        }
        transcript.end(&end, &mut out);
        // Nothing is emitted after the end.
        transcript.push(late, &mut out);
        transcript.end(&end, &mut out);
        prop_assert_eq!(check(&out), Ok(()), "{:#?}", out);
    }

    #[test]
    fn any_attempts_result_in_one_stream_that_follows_the_rules(attempts in attempts(), end in end()) {
        let events = emitted(&attempts, &end).concat();
        prop_assert_eq!(check(&events), Ok(()), "{:#?}", events);
    }

    #[test]
    fn the_result_has_the_text_of_the_last_attempt_and_the_usage_of_all(attempts in attempts(), end in end()) {
        let events = emitted(&attempts, &end);
        let last = emitted(&attempts[attempts.len() - 1..].to_vec(), &end);
        let (all, alone) = (result(&events), result(&last));
        prop_assert_eq!((&all.text, &all.final_text), (&alone.text, &alone.final_text));
        prop_assert_eq!((&all.error_code, all.aborted), (&alone.error_code, alone.aborted));
        let tokens = attempts.iter().filter_map(|(_, outcome)| Some(outcome.as_ref()?.usage.as_ref()?.0.output_tokens));
        let tokens = tokens.reduce(|one, other| one + other);
        prop_assert_eq!(all.usage.as_ref().map(|usage| usage.output_tokens), tokens);
    }

    #[test]
    fn no_id_is_used_in_two_attempts(attempts in attempts(), end in end()) {
        let events = emitted(&attempts, &end);
        for (number, earlier) in events.iter().enumerate() {
            for later in &events[number + 1..] {
                prop_assert!(ids(earlier).is_disjoint(&ids(later)), "{:#?}", events);
            }
        }
    }

    #[test]
    fn different_ids_of_an_attempt_stay_different(events in vec(event(), 0..30)) {
        let once = emitted(&vec![(events.clone(), None)], &End::default());
        let twice = emitted(&vec![(events.clone(), None), (events, None)], &End::default());
        prop_assert_eq!(ids(&once[0]).len(), ids(&twice[1]).len());
    }

    #[test]
    fn a_stream_that_follows_the_rules_is_emitted_unchanged(events in vec(event(), 0..40)) {
        let mut first = Transcript::new();
        let mut once = Vec::new();
        for event in events {
            first.push(event, &mut once);
        }
        let mut second = Transcript::new();
        let mut twice = Vec::new();
        for event in once.clone() {
            second.push(event, &mut twice);
        }
        prop_assert_eq!(once, twice);
    }
}

#[test]
fn only_a_compaction_that_the_prompt_requested_needs_no_answer() {
    for (trigger, is_error) in [("manual", false), ("auto", true)] {
        let mut outcome = Outcome::default();
        outcome.usage = Some((used(40), UsageScope::Run));
        let warning = Warning::new(WarningCode::Compacted, "compacted").with("trigger", trigger);
        let events = emitted(&vec![(vec![warning.into()], Some(outcome))], &End::default());
        assert_eq!(result(&events).is_error, is_error, "{trigger}");
    }
}
