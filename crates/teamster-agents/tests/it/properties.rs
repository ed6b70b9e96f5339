//! For any output of an agent in any order, no protocol panics, and the stream follows its rules.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::{Cause, End};
use teamster_testkit::check::{check, check_ndjson};
use teamster_types::event::{ErrorCode, Failure};
use teamster_types::request::{AgentInterface, Conversation, OutputMode, RunRequest};

use crate::drive::{Driver, events};
use crate::lines::{damaged, disordered, distorted, plausible_line, vocabulary, written};
use crate::subject::{SUBJECTS, complete_request};

#[derive(Clone, Debug)]
enum Step {
    Line(Vec<u8>),
    Interrupt,
    Exited(Option<i32>),
}

#[derive(Clone, Debug)]
enum EndCause {
    Agent,
    Aborted,
    Failed,
}

/// Drives all agents through the same steps, except those that do not support the request.
fn drive(request: &RunRequest, steps: &[Step], cause: &EndCause) {
    for subject in SUBJECTS.iter().filter(|subject| subject.agent.plan(request).is_ok()) {
        drive_one(Driver::start_of(subject, request), steps, cause);
    }
}

fn drive_one(mut driver: Driver, steps: &[Step], cause: &EndCause) {
    for step in steps {
        driver.handle(match step {
            Step::Line(line) => Input::Line(line),
            Step::Interrupt => Input::Interrupt,
            Step::Exited(code) => Input::Exited(ExitReport { code: *code, ..ExitReport::default() }),
        });
    }
    let cause = match cause {
        EndCause::Agent => None,
        EndCause::Aborted => Some(Cause::Aborted),
        EndCause::Failed => Some(Cause::Failed(Failure::new(ErrorCode::WatchdogTimeout, "silent"))),
    };
    let exit = Some(ExitReport { code: Some(1), signal: None, stderr: "Error: no" });
    let events = events(&driver.end(&End { cause, exit, left: Vec::new(), duration_ms: 1 }));
    assert_eq!(check(&events), Ok(()), "{events:#?}");
    let printed = events.iter().fold(String::new(), |text, event| text + &serde_json::to_string(event).unwrap() + "\n");
    assert_eq!(check_ndjson(&printed).err(), None, "{printed}");
}

fn cause() -> impl Strategy<Value = EndCause> {
    select(vec![EndCause::Agent, EndCause::Aborted, EndCause::Failed])
}

fn request() -> impl Strategy<Value = RunRequest> {
    let session = "00000000-0000-4000-8000-000000000001";
    let conversations = vec![Conversation::New, Conversation::Continue, Conversation::Resume(session.into())];
    let outputs = vec![OutputMode::Stream, OutputMode::Messages, OutputMode::Batch];
    let modes = vec![AgentInterface::Auto, AgentInterface::Exec];
    (select(conversations), select(outputs), any::<bool>(), select(modes)).prop_map(
        |(conversation, output, schema, mode)| {
            let mut request = complete_request("x");
            request.interface = mode;
            request.conversation = conversation;
            request.output = output;
            request.schema = schema.then(|| json!({"type": "object"}));
            request
        },
    )
}

/// Adds interrupts and exits between the lines.
fn among(lines: impl Strategy<Value = Vec<Vec<u8>>>) -> impl Strategy<Value = Vec<Step>> {
    let others = prop_oneof![Just(Step::Interrupt), any::<Option<i32>>().prop_map(Step::Exited)];
    (lines, vec((any::<Index>(), others), 0..3)).prop_map(|(lines, others)| {
        let mut steps: Vec<_> = lines.into_iter().map(Step::Line).collect();
        for (at, other) in others {
            steps.insert(at.index(steps.len() + 1), other);
        }
        steps
    })
}

proptest! {
    #[test]
    fn any_bytes_follow_the_rules(
        request in request(), steps in among(vec(vec(any::<u8>(), 0..60), 0..20)), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }

    #[test]
    fn any_json_follows_the_rules(
        request in request(), steps in among(vec(vocabulary(), 0..20).prop_map(written)), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }

    #[test]
    fn plausible_lines_in_any_order_follow_the_rules(
        request in request(), steps in among(vec(plausible_line(), 0..60).prop_map(written)), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }

    #[test]
    fn recorded_lines_in_any_order_follow_the_rules(
        request in request(), steps in among(disordered()), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }

    #[test]
    fn recorded_lines_with_damaged_bytes_follow_the_rules(
        request in request(), steps in among(damaged()), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }

    #[test]
    fn recorded_lines_with_other_values_follow_the_rules(
        request in request(), steps in among(distorted()), cause in cause(),
    ) {
        drive(&request, &steps, &cause);
    }
}

/// The maximum number of lines of a run. Further lines are of the same kinds.
const LINES_CUT: usize = 60;

#[test]
fn a_recorded_run_that_ends_after_any_line_follows_the_rules() {
    let request = complete_request("x");
    for subject in SUBJECTS {
        for capture in subject.captures().iter().step_by(4) {
            let lines: Vec<_> = capture.lines().take(LINES_CUT).map(<[u8]>::to_vec).map(Step::Line).collect();
            for count in 0..=lines.len() {
                drive_one(Driver::start_of(subject, &request), &lines[..count], &EndCause::Agent);
            }
        }
    }
}
