//! How a reply reaches the client: gates, pauses, faults, and what stands in for it at first.

use std::time::Duration;

use super::{Reply, Turn};
use crate::provider::failure::HttpError;

/// How an answer reaches the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    pub(crate) gate_before: Option<String>,
    pub(crate) delay_before: Option<Duration>,
    pub(crate) delay_between: Option<Duration>,
    pub(crate) cues: Vec<Cue>,
    pub(crate) drop_unstreamed: bool,
}

/// Something that happens once so many deltas are out.
#[derive(Debug, Clone)]
pub(crate) struct Cue {
    pub(crate) after: usize,
    pub(crate) what: CueKind,
}

#[derive(Debug, Clone)]
pub(crate) enum CueKind {
    Gate(String),
    Cut,
    Error(HttpError),
    Stall { ping_every: Option<Duration> },
}

/// What is said instead of a reply for so many requests.
#[derive(Debug, Clone)]
pub(crate) struct StandIn {
    times: usize,
    turn: Turn,
}

/// How the answer is delivered. What happens after `n` deltas happens before the delta `n + 1`, and at the latest before the
/// end of the message is told.
impl Reply {
    /// Sends nothing, not even the headers, until the gate is open.
    #[must_use]
    pub fn gate_before(mut self, gate: impl Into<String>) -> Self {
        self.delivery.gate_before = Some(gate.into());
        self
    }

    /// Stops after so many deltas until the gate is open. An answer that is not streamed waits as a whole.
    #[must_use]
    pub fn gate_after(self, deltas: usize, gate: impl Into<String>) -> Self {
        self.cue(deltas, CueKind::Gate(gate.into()))
    }

    /// Waits so long before anything is sent.
    #[must_use]
    pub fn delay_before(mut self, delay: Duration) -> Self {
        self.delivery.delay_before = Some(delay);
        self
    }

    /// Waits so long between two deltas.
    #[must_use]
    pub fn delay_between(mut self, delay: Duration) -> Self {
        self.delivery.delay_between = Some(delay);
        self
    }

    /// Breaks the connection after so many deltas. Requests that ask for no stream are answered in full.
    #[must_use]
    pub fn cut_after(self, deltas: usize) -> Self {
        self.cue(deltas, CueKind::Cut)
    }

    /// Breaks the connection after so many deltas the first time; later requests are answered in full.
    #[must_use]
    pub fn cut_once_after(self, deltas: usize) -> Self {
        let mut cut = self.clone().cut_after(deltas);
        cut.stand_ins.clear();
        self.at_first(1, cut)
    }

    /// Breaks the connection of a request that asks for no stream before it has its whole answer.
    #[must_use]
    pub fn drop_unstreamed(mut self) -> Self {
        self.delivery.drop_unstreamed = true;
        self
    }

    /// Puts an error event into the stream after so many deltas and ends it there.
    #[must_use]
    pub fn error_after(self, deltas: usize, error: HttpError) -> Self {
        self.cue(deltas, CueKind::Error(error))
    }

    /// Goes silent after so many deltas, and stays so.
    #[must_use]
    pub fn stall_after(self, deltas: usize) -> Self {
        self.cue(deltas, CueKind::Stall { ping_every: None })
    }

    /// Sends only pings after so many deltas.
    #[must_use]
    pub fn ping_forever_after(self, deltas: usize, every: Duration) -> Self {
        self.cue(deltas, CueKind::Stall { ping_every: Some(every) })
    }

    fn cue(mut self, after: usize, what: CueKind) -> Self {
        self.delivery.cues.push(Cue { after, what });
        self
    }

    /// Answers the first requests for this reply with something else. Calls add up: what is said first comes first.
    ///
    /// Requests are counted over all conversations of the provider.
    #[must_use]
    pub fn at_first(mut self, times: usize, turn: impl Into<Turn>) -> Self {
        self.stand_ins.push(StandIn { times, turn: turn.into() });
        self
    }

    /// Fails the first requests for this reply.
    #[must_use]
    pub fn fail_times(self, times: usize, error: HttpError) -> Self {
        self.at_first(times, error)
    }

    /// What stands in for this reply at the given attempt, which counts from one.
    pub(crate) fn stand_in(&self, attempt: usize) -> Option<&Turn> {
        let mut until = 0;
        self.stand_ins.iter().find_map(|stand_in| {
            until += stand_in.times;
            (attempt <= until).then_some(&stand_in.turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpError, Reply};

    #[test]
    fn stand_ins_are_used_up_in_the_order_they_were_said() {
        let reply = Reply::new()
            .text("whole")
            .fail_times(2, HttpError::rate_limited())
            .at_first(1, Reply::new().text("second"));
        let kinds: Vec<_> = (1..=4)
            .map(|attempt| reply.stand_in(attempt).map(|turn| format!("{turn:?}").contains("RateLimited")))
            .collect();
        assert_eq!(kinds, [Some(true), Some(true), Some(false), None]);
    }
}
