//! Methods of a reply that define its delivery, and what replaces it in the first attempts.

use std::time::Duration;

use super::delivery::{DeliveryEvent, DeliveryEventKind};
use super::{Override, Reply, Turn};
use crate::provider::failure::HttpError;

/// Methods that define the delivery. An event after `n` deltas happens before delta `n + 1`, or
/// before the end of the message if there are no more deltas.
impl Reply {
    /// Sends nothing, including headers, until the gate is open.
    #[must_use]
    pub fn gate_before(mut self, gate: impl Into<String>) -> Self {
        self.delivery.gate_before = Some(gate.into());
        self
    }

    /// Stops after this many deltas until the gate is open. A reply that is not streamed waits as a
    /// whole.
    #[must_use]
    pub fn gate_after(self, deltas: usize, gate: impl Into<String>) -> Self {
        self.event(deltas, DeliveryEventKind::Gate(gate.into()))
    }

    /// Waits before anything is sent.
    #[must_use]
    pub fn delay_before(mut self, delay: Duration) -> Self {
        self.delivery.delay_before = Some(delay);
        self
    }

    /// Waits between two deltas.
    #[must_use]
    pub fn delay_between(mut self, delay: Duration) -> Self {
        self.delivery.delay_between = Some(delay);
        self
    }

    /// Breaks the connection after this many deltas. Requests without streaming get the whole
    /// reply.
    #[must_use]
    pub fn cut_after(self, deltas: usize) -> Self {
        self.event(deltas, DeliveryEventKind::Cut)
    }

    /// Breaks the connection after this many deltas on the first attempt. Later requests get the
    /// whole reply.
    #[must_use]
    pub fn cut_once_after(self, deltas: usize) -> Self {
        let mut cut = self.clone().cut_after(deltas);
        cut.overrides.clear();
        self.at_first(1, cut)
    }

    /// Breaks the connection of a request without streaming before the response is complete.
    #[must_use]
    pub fn drop_unstreamed(mut self) -> Self {
        self.delivery.drop_unstreamed = true;
        self
    }

    /// Sends an error event after this many deltas and ends the stream.
    #[must_use]
    pub fn error_after(self, deltas: usize, error: HttpError) -> Self {
        self.event(deltas, DeliveryEventKind::Error(error))
    }

    /// Sends nothing after this many deltas, and keeps the connection open.
    #[must_use]
    pub fn stall_after(self, deltas: usize) -> Self {
        self.event(deltas, DeliveryEventKind::Stall { ping_every: None })
    }

    /// Sends only pings after this many deltas.
    #[must_use]
    pub fn ping_forever_after(self, deltas: usize, every: Duration) -> Self {
        self.event(deltas, DeliveryEventKind::Stall { ping_every: Some(every) })
    }

    fn event(mut self, after: usize, what: DeliveryEventKind) -> Self {
        self.delivery.events.push(DeliveryEvent { after, what });
        self
    }

    /// Responds to the first requests for this reply with something else. Repeated calls add up in
    /// order.
    ///
    /// Requests are counted over all conversations of the provider.
    #[must_use]
    pub fn at_first(mut self, times: usize, turn: impl Into<Turn>) -> Self {
        self.overrides.push(Override { times, turn: turn.into() });
        self
    }

    /// Responds to the first requests for this reply with an error.
    #[must_use]
    pub fn fail_times(self, times: usize, error: HttpError) -> Self {
        self.at_first(times, error)
    }

    /// Returns the response that replaces this reply at the given attempt, counted from one.
    pub(crate) fn override_for(&self, attempt: usize) -> Option<&Turn> {
        let mut until = 0;
        self.overrides.iter().find_map(|entry| {
            until += entry.times;
            (attempt <= until).then_some(&entry.turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpError, Reply};

    #[test]
    fn overrides_are_used_in_the_order_in_which_they_were_added() {
        let reply = Reply::new()
            .text("whole")
            .fail_times(2, HttpError::rate_limited())
            .at_first(1, Reply::new().text("second"));
        let kinds: Vec<_> = (1..=4)
            .map(|attempt| reply.override_for(attempt).map(|turn| format!("{turn:?}").contains("RateLimited")))
            .collect();
        assert_eq!(kinds, [Some(true), Some(true), Some(false), None]);
    }
}
