//! The end of a run as a model: the steps by which it comes about, their orders, and what is to be told of each.

use std::fmt;

/// What happens while a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The agent prints its result.
    Result,
    /// The agent prints a result that says that it failed.
    Fail,
    /// The agent closes its stdout.
    Close,
    /// The agent exits, with code 0.
    Exit,
    /// A grandchild that holds the agent's stdout ends.
    LetGo,
    /// The caller asks the agent to stop.
    Interrupt,
    /// The caller ends the run.
    Abort,
    /// The caller drops the run.
    Drop,
    /// The caller reads no further until the run has ended.
    StopReading,
}

impl Step {
    fn is_the_agents(self) -> bool {
        matches!(self, Self::Result | Self::Fail | Self::Close | Self::Exit)
    }
}

/// What is to be told of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Success,
    Failed,
    Aborted,
    NoResult,
}

/// Steps, one after the other.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) steps: Vec<Step>,
    /// Whether a grandchild holds the agent's stdout.
    pub(crate) held: bool,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) answer: Answer,
    pub(crate) stop: Stop,
    /// The caller ended the run before the agent had given its word.
    pub(crate) aborted: bool,
    pub(crate) exited: bool,
    /// A grandchild holds stdout.
    pub(crate) held: bool,
}

/// What became of the agent's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Awaited,
    Read,
    /// It was read, and says that the agent failed.
    Failed,
    /// Stdout was closed first.
    Lost,
}

/// What the caller did while the agent lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    No,
    Asked,
    Forced,
}

impl Progress {
    /// What a step changes. The agent goes on until its own exit, whatever the caller does; the grandchild obeys SIGTERM.
    pub(crate) fn after(mut self, step: Step) -> Self {
        match step {
            Step::Result if self.answer == Answer::Awaited => self.answer = Answer::Read,
            Step::Fail if self.answer == Answer::Awaited => self.answer = Answer::Failed,
            Step::Close if self.answer == Answer::Awaited => self.answer = Answer::Lost,
            Step::Result | Step::Fail | Step::Close | Step::StopReading => {}
            Step::Exit => self.exited = true,
            Step::LetGo => self.held = false,
            Step::Interrupt => self.stopped(Stop::Asked),
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
            self.aborted |= matches!(self.answer, Answer::Awaited | Answer::Lost);
        }
    }

    /// Whether nothing of the run is left.
    pub(crate) fn is_over(self) -> bool {
        self.exited && !self.held
    }

    /// The rule: a success that was read stands; else it counts what came first, the caller's end of the run or the
    /// agent's word, which is its exit if it gave no other.
    fn verdict(self) -> Verdict {
        match (self.answer, self.aborted) {
            (Answer::Read, _) => Verdict::Success,
            (_, true) => Verdict::Aborted,
            (Answer::Failed, false) => Verdict::Failed,
            (Answer::Awaited | Answer::Lost, false) => Verdict::NoResult,
        }
    }
}

impl Order {
    /// Every order of some of these steps in which the agent exits, with no more than one step after the run's end.
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

    pub(crate) fn begin(&self) -> Progress {
        Progress { answer: Answer::Awaited, stop: Stop::No, aborted: false, exited: false, held: self.held }
    }

    pub(crate) fn end(&self) -> Progress {
        self.steps.iter().fold(self.begin(), |progress, &step| progress.after(step))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.end().verdict()
    }

    pub(crate) fn has(&self, step: Step) -> bool {
        self.steps.contains(&step)
    }

    /// Whether these steps, taken at once, may be taken in that order: all of them, or all that came before the end.
    pub(crate) fn may_end_as(&self, other: &Self) -> bool {
        let is_in_time = |step| other.has(step) || (other.end().is_over() && !step.is_the_agents());
        self.held == other.held
            && other.steps.iter().all(|&step| self.has(step))
            && self.steps.iter().all(|&step| is_in_time(step))
    }

    fn allows(&self, step: Step) -> bool {
        let possible = match step {
            Step::Result | Step::Fail => !self.end().exited && self.end().answer != Answer::Failed,
            Step::Close | Step::Exit => !self.end().exited,
            // A run that is dropped is aborted, and has no reader.
            Step::Abort | Step::StopReading => !self.has(Step::Drop),
            _ => true,
        };
        possible && !self.has(step)
    }

    /// Whether the last step came after the end.
    fn is_beyond_the_end(&self) -> bool {
        self.steps.split_last().is_some_and(|(_, before)| {
            before.iter().fold(self.begin(), |progress, &step| progress.after(step)).is_over()
        })
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.steps, if self.held { " with a grandchild" } else { "" })
    }
}
