//! The state of a session. Every transition is in this file. `P` is the process, so that tests need none.

/// The state of a session.
#[derive(Debug, PartialEq)]
pub(super) enum SessionState<P> {
    /// There is no process. The next turn starts one.
    NoProcess,
    /// The process exited unexpectedly. The next turn starts another one, and reports that.
    Lost,
    /// The process waits for a turn.
    Idle(P),
    /// The agent has started the next turn, with prompts that came too late to steer the turn before.
    SteerTurn(P),
    /// A turn runs and owns the process.
    InTurn,
}

/// What the driver does with a process for a turn.
#[derive(Debug, PartialEq)]
pub(super) enum TurnProcess<P> {
    /// Send the prompt.
    Ready(P),
    /// Send nothing: the agent has the prompts of the turn.
    Steered(P),
}

/// What a turn leaves.
#[derive(Debug, PartialEq)]
pub(super) enum TurnEnd<P> {
    /// A process for the next turn.
    Idle(P),
    /// A process whose agent has started the next turn, with prompts that came too late to steer.
    SteerTurn(P),
    /// No process: it was closed, because another one must resume the conversation.
    Closed,
    /// No process: it exited.
    Exited,
}

impl<P> SessionState<P> {
    /// A process was started. Returns whether it replaces one that exited unexpectedly.
    pub(super) fn started(&mut self, process: P) -> bool {
        let replaces_lost = matches!(self, Self::Lost);
        *self = Self::Idle(process);
        replaces_lost
    }

    /// A turn starts. Returns its process; `None` if there is none.
    pub(super) fn start_turn(&mut self) -> Option<TurnProcess<P>> {
        let (next, process) = match std::mem::replace(self, Self::InTurn) {
            Self::Idle(process) => (Self::InTurn, Some(TurnProcess::Ready(process))),
            Self::SteerTurn(process) => (Self::InTurn, Some(TurnProcess::Steered(process))),
            other => (other, None),
        };
        *self = next;
        process
    }

    /// The running turn has ended.
    pub(super) fn turn_ended(&mut self, end: TurnEnd<P>) {
        *self = match end {
            TurnEnd::Idle(process) => Self::Idle(process),
            TurnEnd::SteerTurn(process) => Self::SteerTurn(process),
            TurnEnd::Closed => Self::NoProcess,
            TurnEnd::Exited => Self::Lost,
        };
    }

    /// No prompt came too late to steer after all. The process waits for a turn.
    pub(super) fn no_steer_turn(&mut self) {
        *self = match std::mem::replace(self, Self::NoProcess) {
            Self::SteerTurn(process) => Self::Idle(process),
            other => other,
        };
    }

    /// The idle process has exited or is unusable. Returns it, so that the caller closes it.
    pub(super) fn exited(&mut self) -> Option<P> {
        let process = self.close();
        *self = Self::Lost;
        process
    }

    /// The idle process is no longer needed. Returns it, so that the caller closes it.
    pub(super) fn close(&mut self) -> Option<P> {
        match std::mem::replace(self, Self::NoProcess) {
            Self::Idle(process) | Self::SteerTurn(process) => Some(process),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Returns the process that waits for a turn.
    pub(super) fn process(&self) -> Option<&P> {
        match self {
            Self::Idle(process) | Self::SteerTurn(process) => Some(process),
            Self::NoProcess | Self::Lost | Self::InTurn => None,
        }
    }

    /// Returns the process that waits for a turn.
    pub(super) fn process_mut(&mut self) -> Option<&mut P> {
        match self {
            Self::Idle(process) | Self::SteerTurn(process) => Some(process),
            Self::NoProcess | Self::Lost | Self::InTurn => None,
        }
    }

    /// Whether the agent has started the next turn, with prompts that came too late to steer.
    pub(super) fn is_steer_turn(&self) -> bool {
        matches!(self, Self::SteerTurn(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = SessionState<&'static str>;

    #[test]
    fn a_session_starts_a_process_runs_a_turn_on_it_and_keeps_it_for_the_next_turn() {
        let mut state = State::NoProcess;
        assert_eq!(state.start_turn(), None);
        assert!(!state.started("first"), "nothing was lost");
        assert_eq!(state.start_turn(), Some(TurnProcess::Ready("first")));
        assert_eq!(state, State::InTurn);
        assert_eq!(state.process(), None, "the turn owns the process");
        state.turn_ended(TurnEnd::Idle("first"));
        assert_eq!(state.start_turn(), Some(TurnProcess::Ready("first")));
    }

    #[test]
    fn a_process_that_replaces_a_lost_one_is_reported_once() {
        for mut state in [State::Idle("first"), State::SteerTurn("first")] {
            assert_eq!(state.exited(), Some("first"), "the caller closes it");
            assert_eq!(state, State::Lost);
            assert_eq!(state.start_turn(), None);
            assert_eq!(state, State::Lost, "a failed start changes nothing");
            assert!(state.started("second"));
            assert_eq!(state.close(), Some("second"));
            assert!(!state.started("third"));
        }
        let mut state = State::InTurn;
        state.turn_ended(TurnEnd::Exited);
        assert!(state.started("second"));
    }

    #[test]
    fn a_process_that_was_closed_on_purpose_is_replaced_without_a_report() {
        let mut state = State::InTurn;
        state.turn_ended(TurnEnd::Closed);
        assert!(!state.started("second"));
        assert_eq!(state.close(), Some("second"));
        assert_eq!(state, State::NoProcess);
        assert_eq!(state.close(), None);
    }

    #[test]
    fn a_turn_of_late_steering_prompts_sends_nothing() {
        let mut state = State::InTurn;
        state.turn_ended(TurnEnd::SteerTurn("process"));
        assert!(state.is_steer_turn());
        assert_eq!(state.start_turn(), Some(TurnProcess::Steered("process")));
        state.turn_ended(TurnEnd::SteerTurn("process"));
        state.no_steer_turn();
        assert_eq!(state.start_turn(), Some(TurnProcess::Ready("process")));
    }

    #[test]
    fn closing_a_session_without_an_idle_process_keeps_its_state() {
        for mut state in [State::Lost, State::InTurn] {
            let before = format!("{state:?}");
            assert_eq!(state.close(), None);
            assert_eq!(format!("{state:?}"), before);
        }
    }
}
