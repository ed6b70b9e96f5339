//! Drives a protocol without a process, in the same way as the driver.

use teamster_agents::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol};
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_types::event::{ErrorCode, Event, Failure};
use teamster_types::request::RunRequest;

use crate::capture::{Capture, Exit};
use crate::subject::{CLAUDE, Subject};

/// An effect of an input.
#[derive(Debug)]
pub(crate) enum Step {
    Event(Event),
    Wrote(Vec<u8>),
    CloseStdin,
    Interrupt,
    Stop,
}

pub(crate) struct Driver {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    pub(crate) steps: Vec<Step>,
    is_timer_set: bool,
}

impl Driver {
    pub(crate) fn start(request: &RunRequest) -> Self {
        Self::start_of(CLAUDE, request)
    }

    pub(crate) fn start_of(subject: &Subject, request: &RunRequest) -> Self {
        let protocol = subject.agent.plan(request).unwrap().protocol;
        let mut driver = Self { protocol, transcript: Transcript::new(), steps: Vec::new(), is_timer_set: false };
        driver.handle(Input::Started);
        driver
    }

    pub(crate) fn handle(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => self.record(|transcript, out| transcript.push(event, out)),
                Action::Outcome(outcome) => self.transcript.set_outcome(*outcome),
                Action::Process(ProcessAction::Write(bytes)) => self.steps.push(Step::Wrote(bytes)),
                Action::Process(ProcessAction::CloseStdin) => self.steps.push(Step::CloseStdin),
                Action::Process(ProcessAction::Interrupt) => self.steps.push(Step::Interrupt),
                Action::Process(ProcessAction::Stop) => self.steps.push(Step::Stop),
                Action::SetTimer(_) => self.is_timer_set = true,
                Action::ClearTimer => self.is_timer_set = false,
                _ => {}
            }
        }
    }

    pub(crate) fn end(mut self, end: &End<'_>) -> Vec<Step> {
        // A process is silent before it exits.
        while std::mem::take(&mut self.is_timer_set) {
            self.handle(Input::TimerElapsed);
        }
        if let Some(exit) = end.exit {
            self.handle(Input::Exited(exit));
        }
        self.record(|transcript, out| transcript.end(end, out));
        self.steps
    }

    fn record(&mut self, emit: impl FnOnce(&mut Transcript, &mut Vec<Event>)) {
        let mut events = Vec::new();
        emit(&mut self.transcript, &mut events);
        self.steps.extend(events.into_iter().map(Step::Event));
    }
}

/// Replays a recorded run.
pub(crate) fn replay(subject: &Subject, capture: &Capture) -> Vec<Step> {
    replay_with(subject, capture, <[u8]>::to_vec)
}

/// Replays a recorded run whose lines are changed.
pub(crate) fn replay_with(subject: &Subject, capture: &Capture, mut change: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<Step> {
    let mut driver = Driver::start_of(subject, &(subject.request)(capture));
    // The first step writes the request, which differs from the recorded one.
    driver.steps.clear();
    for line in capture.stderr.lines() {
        driver.handle(Input::Diagnostic(line.as_bytes()));
    }
    for line in capture.lines() {
        driver.handle(Input::Line(&change(line)));
    }
    let exit = |code, signal| Some(ExitReport { code, signal, stderr: &capture.stderr });
    driver.end(&match &capture.exit {
        Exit::Code(code) => End { exit: exit(Some(*code), None), ..End::default() },
        Exit::Signal(name) => End { exit: exit(None, Some(name)), ..End::default() },
        Exit::NotStarted(error) => {
            let code = if error.starts_with("No such file") { ErrorCode::CliNotFound } else { ErrorCode::SpawnFailed };
            End { cause: Some(Cause::Failed(Failure::new(code, error.as_str()))), ..End::default() }
        }
    })
}

/// Returns the last outcome that a protocol reports for a recorded run.
pub(crate) fn last_outcome(subject: &Subject, capture: &Capture) -> Option<Outcome> {
    let mut protocol = subject.agent.plan(&(subject.request)(capture)).unwrap().protocol;
    let mut actions = Vec::new();
    protocol.handle(Input::Started, &mut actions);
    for line in capture.lines() {
        protocol.handle(Input::Line(line), &mut actions);
    }
    let (code, signal) = match &capture.exit {
        Exit::Code(code) => (Some(*code), None),
        Exit::Signal(name) => (None, Some(*name)),
        Exit::NotStarted(_) => return None,
    };
    protocol.handle(Input::Exited(ExitReport { code, signal, stderr: &capture.stderr }), &mut actions);
    actions.into_iter().rev().find_map(|action| match action {
        Action::Outcome(outcome) => Some(*outcome),
        _ => None,
    })
}

/// Returns the events of the steps.
pub(crate) fn events(steps: &[Step]) -> Vec<Event> {
    let event = |step: &Step| match step {
        Step::Event(event) => Some(event.clone()),
        _ => None,
    };
    steps.iter().filter_map(event).collect()
}
