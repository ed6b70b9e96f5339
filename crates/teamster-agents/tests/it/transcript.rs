//! Whatever any protocol tells, in whatever order: what comes out of the transcript keeps the rules.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::protocol::{ExitReport, Outcome};
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{Done, ErrorCode, Event, Failure, RunResult, Usage, UsageScope};

/// Any event, with few ids, so that they meet.
fn event() -> impl Strategy<Value = Event> {
    // The last ones look like what is told of the first ones' next attempt.
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
    Event::Done(Box::new(Done { result: RunResult::default() }))
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

/// What an agent tells in one attempt after the other.
type Attempts = Vec<(Vec<Event>, Option<Outcome>)>;

fn attempts() -> impl Strategy<Value = Attempts> {
    vec((vec(event(), 0..20), outcome()), 1..4)
}

/// What comes out of each attempt, the end with the last.
fn tell(attempts: &Attempts, end: &End<'_>) -> Vec<Vec<Event>> {
    let mut transcript = Transcript::new();
    let mut told = Vec::new();
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
        told.push(out);
    }
    told
}

fn result(told: &[Vec<Event>]) -> &RunResult {
    let Some(Event::Done(done)) = told.last().and_then(|events| events.last()) else { panic!("{told:#?}") };
    &done.result
}

/// The ids of the messages and of the calls.
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
    fn any_events_come_out_as_a_stream_that_keeps_the_rules(
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
        // Nothing comes out after the end.
        transcript.push(late, &mut out);
        transcript.end(&end, &mut out);
        prop_assert_eq!(check(&out), Ok(()), "{:#?}", out);
    }

    #[test]
    fn any_attempts_come_out_as_one_stream_that_keeps_the_rules(attempts in attempts(), end in end()) {
        let told = tell(&attempts, &end).concat();
        prop_assert_eq!(check(&told), Ok(()), "{:#?}", told);
    }

    #[test]
    fn only_the_last_attempt_counts_for_the_answer_and_all_for_the_cost(attempts in attempts(), end in end()) {
        let told = tell(&attempts, &end);
        let last = tell(&attempts[attempts.len() - 1..].to_vec(), &end);
        let (all, alone) = (result(&told), result(&last));
        prop_assert_eq!((&all.text, &all.final_text), (&alone.text, &alone.final_text));
        prop_assert_eq!((&all.error_code, all.aborted), (&alone.error_code, alone.aborted));
        let tokens = attempts.iter().filter_map(|(_, outcome)| Some(outcome.as_ref()?.usage.as_ref()?.0.output_tokens));
        let tokens = tokens.reduce(|one, other| one + other);
        prop_assert_eq!(all.usage.as_ref().map(|usage| usage.output_tokens), tokens);
    }

    #[test]
    fn no_id_of_an_attempt_comes_again_in_a_later_one(attempts in attempts(), end in end()) {
        let told = tell(&attempts, &end);
        for (number, earlier) in told.iter().enumerate() {
            for later in &told[number + 1..] {
                prop_assert!(ids(earlier).is_disjoint(&ids(later)), "{:#?}", told);
            }
        }
    }

    #[test]
    fn ids_that_differ_in_an_attempt_are_told_as_different(events in vec(event(), 0..30)) {
        let once = tell(&vec![(events.clone(), None)], &End::default());
        let twice = tell(&vec![(events.clone(), None), (events, None)], &End::default());
        prop_assert_eq!(ids(&once[0]).len(), ids(&twice[1]).len());
    }

    #[test]
    fn a_stream_that_keeps_the_rules_comes_out_as_it_went_in(events in vec(event(), 0..40)) {
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
