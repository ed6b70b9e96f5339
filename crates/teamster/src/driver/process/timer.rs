//! The timer of a protocol.

use std::time::Duration;

use tokio::time::Instant;

use crate::driver::alarm::Alarm;

/// A timer that is later than this shows that the host was stopped or blocked.
const HOST_STOPPED: Duration = Duration::from_secs(1);

/// The timer of a protocol, which reads no clock.
///
/// It measures how long the agent has been silent. So it runs only while the agent's output is read, and starts again if the host
/// was stopped: then the agent was usually stopped too.
#[derive(Debug, Default)]
pub(in crate::driver) struct ProtocolTimer {
    set: Option<Set>,
    alarm: Alarm,
}

/// A timer that is set.
#[derive(Debug)]
struct Set {
    after: Duration,
    due: Instant,
    /// Whether it has started again because the host was stopped. On a host that is always late, it elapses all the same.
    has_restarted: bool,
}

impl ProtocolTimer {
    /// Sets the timer. It replaces a time that was set before.
    pub(in crate::driver) fn set(&mut self, after: Duration) {
        let due = Instant::now();
        self.set = due.checked_add(after).map(|due| Set { after, due, has_restarted: false });
    }

    /// Clears the timer.
    pub(in crate::driver) fn clear(&mut self) {
        self.set = None;
    }

    /// Starts the timer again, because the agent's output was not read until now.
    pub(in crate::driver) fn restart(&mut self) {
        if let Some(set) = &mut self.set {
            set.due = Instant::now() + set.after;
        }
    }

    /// Waits until the timer is due. Waits forever if it is not set. Cancel safe.
    pub(in crate::driver) async fn reached(&mut self) {
        match &self.set {
            Some(set) => self.alarm.reached(set.due).await,
            None => std::future::pending().await,
        }
    }

    /// Starts the timer again if it is late. Returns whether it was.
    pub(in crate::driver) fn restart_if_late(&mut self) -> bool {
        let now = Instant::now();
        let is_late = |set: &&mut Set| now.saturating_duration_since(set.due) > HOST_STOPPED && !set.has_restarted;
        let Some(set) = self.set.as_mut().filter(is_late) else { return false };
        tracing::debug!("the host was stopped or blocked; the protocol's timer starts again");
        (set.due, set.has_restarted) = (now + set.after, true);
        true
    }

    /// Clears the timer if it is due. Returns whether it was.
    pub(in crate::driver) fn take_if_due(&mut self) -> bool {
        let now = Instant::now();
        self.set.take_if(|set| set.due <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_elapses_once_and_a_second_time_replaces_the_first() {
        let (mut timer, start) = (ProtocolTimer::default(), Instant::now());
        timer.set(Duration::from_secs(9));
        timer.set(Duration::from_millis(20));
        assert!(!timer.take_if_due());
        timer.reached().await;
        assert_eq!(start.elapsed(), Duration::from_millis(20));
        assert!(timer.take_if_due() && !timer.take_if_due());
        timer.set(Duration::ZERO);
        timer.clear();
        assert!(!timer.take_if_due());
        assert!(tokio::time::timeout(Duration::from_secs(99), timer.reached()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_timer_starts_again_once() {
        let mut timer = ProtocolTimer::default();
        timer.set(Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(timer.restart_if_late() && !timer.take_if_due());
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(!timer.restart_if_late() && timer.take_if_due());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_of_a_time_that_cannot_be_expressed_never_elapses() {
        let mut timer = ProtocolTimer::default();
        timer.set(Duration::MAX);
        assert!(!timer.take_if_due());
    }
}
