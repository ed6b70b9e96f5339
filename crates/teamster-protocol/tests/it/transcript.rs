//! Whatever any protocol tells, in whatever order: what comes out of the transcript keeps the rules.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_protocol::event::{Done, ErrorCode, Event, Failure, RunResult};
use teamster_protocol::protocol::{ExitReport, Outcome};
use teamster_protocol::transcript::{Cause, End, Transcript};
use teamster_testkit::check::check;

/// Any event, with few ids, so that they meet.
fn event() -> impl Strategy<Value = Event> {
    let message = || select(vec!["m1", "m2", "m3"]);
    let tool = || select(vec!["t1", "t2", "t3"]);
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
        1 => Just(json!({"type": "init", "agent": "a", "sessionId": "s"})),
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
    let outcome = (any::<bool>(), any::<bool>()).prop_map(|(failed, interrupted)| {
        let mut outcome = Outcome::default();
        outcome.failure = failed.then(|| failure(ErrorCode::Provider));
        outcome.interrupted = interrupted;
        outcome
    });
    proptest::option::of(outcome)
}

fn end() -> impl Strategy<Value = End<'static>> {
    let cause = select(vec![None, Some(Cause::Aborted), Some(Cause::Failed(failure(ErrorCode::DeadlineExceeded)))]);
    let exit = (any::<Option<i32>>(), select(vec![None, Some("SIGKILL")]), select(vec!["", "a\nb\n"]));
    let exit = exit.prop_map(|(code, signal, stderr)| ExitReport { code, signal, stderr });
    (cause, proptest::option::of(exit)).prop_map(|(cause, exit)| End { cause, exit, duration_ms: 1 })
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
