//! A model of the end of a run: its steps, their orders, and the expected result of each order.

use std::fmt;

/// A step of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The agent prints its result.
    Result,
    /// The agent prints a result that reports an error.
    Fail,
    /// The agent closes its stdout.
    Close,
    /// The agent exits, with code 0.
    Exit,
    /// A grandchild that holds the agent's stdout exits.
    Release,
    /// The caller interrupts the run.
    Interrupt,
    /// The caller aborts the run.
    Abort,
    /// The caller drops the run.
    Drop,
    /// The caller stops reading until the run has ended.
    StopReading,
}

impl Step {
    fn is_agent_step(self) -> bool {
        matches!(self, Self::Result | Self::Fail | Self::Close | Self::Exit)
    }
}

/// The expected result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Success,
    Failed,
    Aborted,
    NoResult,
}

/// A sequence of steps.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) steps: Vec<Step>,
    /// Whether a grandchild holds the agent's stdout.
    pub(crate) held: bool,
}

/// The state of the run after some steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) answer: AgentResult,
    pub(crate) stop: Stop,
    /// The caller ended the run before the agent had reported a result.
    pub(crate) aborted: bool,
    pub(crate) exited: bool,
    /// A grandchild holds stdout.
    pub(crate) held: bool,
}

/// The state of the agent's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentResult {
    Pending,
    Read,
    /// It was read, and reports an error.
    Failed,
    /// Stdout was closed before it.
    Lost,
}

/// The caller's action while the agent was alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    None,
    Interrupted,
    Forced,
}

impl Progress {
    /// Applies a step. The agent continues until its exit step, whatever the caller does; the
    /// grandchild exits on SIGTERM.
    pub(crate) fn after(mut self, step: Step) -> Self {
        match step {
            Step::Result if self.answer == AgentResult::Pending => self.answer = AgentResult::Read,
            Step::Fail if self.answer == AgentResult::Pending => self.answer = AgentResult::Failed,
            Step::Close if self.answer == AgentResult::Pending => self.answer = AgentResult::Lost,
            Step::Result | Step::Fail | Step::Close | Step::StopReading => {}
            Step::Exit => self.exited = true,
            Step::Release => self.held = false,
            Step::Interrupt => self.stopped(Stop::Interrupted),
            Step::Abort | Step::Drop => {
                self.stopped(Stop::Forced);
                self.held = false;
            }
        }
        self
    }

    fn stopped(&mut self, stop: Stop) {
        if !self.exited {
            self.stop = self.stop.max(stop);
            self.aborted |= matches!(self.answer, AgentResult::Pending | AgentResult::Lost);
        }
    }

    /// Returns whether all processes have exited.
    pub(crate) fn is_over(self) -> bool {
        self.exited && !self.held
    }

    /// The rule: a success that was read remains a success. Otherwise the first of these counts:
    /// the caller's stop, or the agent's reported result, or its exit without a result.
    fn verdict(self) -> Verdict {
        match (self.answer, self.aborted) {
            (AgentResult::Read, _) => Verdict::Success,
            (_, true) => Verdict::Aborted,
            (AgentResult::Failed, false) => Verdict::Failed,
            (AgentResult::Pending | AgentResult::Lost, false) => Verdict::NoResult,
        }
    }
}

impl Order {
    /// Returns every order of these steps that contains the agent's exit, and at most one step
    /// after the end.
    pub(crate) fn all(held: bool, steps: &[Step]) -> Vec<Self> {
        let (mut orders, mut open) = (Vec::new(), vec![Self { steps: Vec::new(), held }]);
        while let Some(order) = open.pop() {
            if order.end().exited {
                orders.push(order.clone());
            }
            if !order.is_beyond_the_end() {
                let next = steps.iter().filter(|&&step| order.allows(step));
                open.extend(next.map(|&step| Self { steps: [order.steps.as_slice(), &[step]].concat(), held }));
            }
        }
        orders
    }

    pub(crate) fn initial_progress(&self) -> Progress {
        Progress { answer: AgentResult::Pending, stop: Stop::None, aborted: false, exited: false, held: self.held }
    }

    pub(crate) fn end(&self) -> Progress {
        self.steps.iter().fold(self.initial_progress(), |progress, &step| progress.after(step))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.end().verdict()
    }

    pub(crate) fn has(&self, step: Step) -> bool {
        self.steps.contains(&step)
    }

    /// Returns whether these steps, performed at the same time, may have the effect of that order:
    /// all of them, or all before the end.
    pub(crate) fn may_end_as(&self, other: &Self) -> bool {
        let is_in_time = |step| other.has(step) || (other.end().is_over() && !step.is_agent_step());
        self.held == other.held
            && other.steps.iter().all(|&step| self.has(step))
            && self.steps.iter().all(|&step| is_in_time(step))
    }

    fn allows(&self, step: Step) -> bool {
        let possible = match step {
            Step::Result | Step::Fail => !self.end().exited && self.end().answer != AgentResult::Failed,
            Step::Close | Step::Exit => !self.end().exited,
            // A dropped run is aborted and has no reader.
            Step::Abort | Step::StopReading => !self.has(Step::Drop),
            _ => true,
        };
        possible && !self.has(step)
    }

    /// Returns whether the last step follows the end.
    fn is_beyond_the_end(&self) -> bool {
        self.steps.split_last().is_some_and(|(_, before)| {
            before.iter().fold(self.initial_progress(), |progress, &step| progress.after(step)).is_over()
        })
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.steps, if self.held { " with a grandchild" } else { "" })
    }
}
