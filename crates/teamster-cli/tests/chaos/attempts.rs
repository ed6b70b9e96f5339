//! Verifies the attempts of a turn: which of them may follow another one, and which ends a turn may have.

use std::collections::BTreeSet;

use serde_json::Value;

/// The number of attempts of a turn that fails again and again.
const MAX_ATTEMPTS: usize = 4;

/// The number of crashes after which a turn is not started again.
const MAX_CRASHES: usize = 3;

/// How an attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptEnd {
    /// Its end is not in the log: the process of the gateway has ended.
    Lost,
    /// Its failure is recorded, and another one follows.
    Retried,
    /// The turn has ended with it.
    Final,
}

/// An attempt of a turn.
#[derive(Debug)]
struct Attempt<'a> {
    events: Vec<&'a Value>,
    end: AttemptEnd,
}

impl<'a> Attempt<'a> {
    fn of_type(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().copied().filter(move |event| event["type"] == kind)
    }

    fn has_tools(&self) -> bool {
        self.of_type("tool_use").next().is_some()
    }

    /// Returns whether the attempt has done anything that a person or a file shows.
    fn has_progress(&self) -> bool {
        ["text", "thinking", "tool_use"].iter().any(|kind| self.of_type(kind).next().is_some())
    }
}

/// Splits the events of a turn into its attempts.
fn attempts(events: &[Value]) -> Vec<Attempt<'_>> {
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for event in events {
        if event["type"] == "turn_started" {
            attempts.push(Attempt { events: Vec::new(), end: AttemptEnd::Lost });
        }
        let Some(last) = attempts.last_mut() else { continue };
        match event["type"].as_str() {
            Some("turn_retrying" | "turn_paused") => last.end = AttemptEnd::Retried,
            // The next process records the end of a turn that it does not continue.
            Some("done") if !matches!(event["result"]["errorCode"].as_str(), Some("INTERRUPTED" | "PARKED")) => {
                last.end = AttemptEnd::Final;
            }
            _ => {}
        }
        last.events.push(event);
    }
    attempts
}

/// Checks the attempts of a turn that ended like this. A steered message that came too late may have been stopped by an
/// interrupt after it had an effect.
pub(crate) fn check(turn: &str, events: &[Value], end: &Value, is_steered: bool) {
    let attempts = attempts(events);
    let Some((last, earlier)) = attempts.split_last() else {
        let is_stopped = is_steered && end["errorCode"] == "INTERRUPTED";
        assert!(is_stopped || end["state"] == "aborted", "{turn}: it ended without an attempt: {end}");
        return;
    };
    for attempt in earlier {
        match attempt.end {
            AttemptEnd::Lost => assert!(!attempt.has_progress(), "{turn}: an attempt with an effect runs again"),
            AttemptEnd::Retried => check_retried(turn, attempt),
            AttemptEnd::Final => panic!("{turn}: an attempt follows the last one"),
        }
    }
    let crashes = attempts.iter().filter(|attempt| attempt.end == AttemptEnd::Lost).count();
    match end["errorCode"].as_str() {
        Some("INTERRUPTED") => {
            assert!(last.end == AttemptEnd::Lost && last.has_progress(), "{turn}: nothing of it had run: {last:?}");
        }
        Some("PARKED") => assert!(crashes >= MAX_CRASHES, "{turn}: it is parked after {crashes} crashes"),
        Some("CLI_EXIT" | "OVERLOADED" | "RATE_LIMIT" | "PROVIDER" | "DEADLINE_EXCEEDED") => {
            let is_last = attempts.len() >= MAX_ATTEMPTS || last.has_tools();
            assert!(is_last, "{turn}: it could be repeated: {last:?}");
        }
        _ => {}
    }
}

/// An attempt that is repeated has called no tool, and its text is void.
fn check_retried(turn: &str, attempt: &Attempt<'_>) {
    assert!(!attempt.has_tools(), "{turn}: an attempt with tools is repeated");
    let ids = |kind: &str| -> BTreeSet<_> {
        attempt.of_type(kind).map(|event| event["messageId"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids("text"), ids("retract"), "{turn}: the text of a repeated attempt is void");
}
