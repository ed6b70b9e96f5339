//! When the bot may identify itself. Discord permits one identification in 5 seconds and 1,000 in a day, and resets the token of a
//! bot that exceeds that. Resuming a session does not count.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use twilight_gateway::queue::Queue;

/// The longest delay. With it, a day has 144 identifications.
const MAX_DELAY: Duration = Duration::from_mins(10);

/// The time without an identification after which the delay is the shortest one again.
const CALM: Duration = Duration::from_mins(20);

/// The identifications of one start of the channel.
#[derive(Clone, Debug)]
pub(crate) struct Identifies(Arc<Mutex<Starts>>);

#[derive(Clone, Copy, Debug)]
struct Starts {
    interval: Duration,
    last: Option<Instant>,
    in_a_row: u32,
}

impl Identifies {
    pub(crate) fn new(interval: Duration) -> Self {
        Self(Arc::new(Mutex::new(Starts { interval, last: None, in_a_row: 0 })))
    }
}

impl Queue for Identifies {
    fn enqueue(&self, _shard: u32) -> oneshot::Receiver<()> {
        let (mut permit, permitted) = oneshot::channel();
        let delay = self.0.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        tokio::spawn(async move {
            tokio::select! {
                () = permit.closed() => {}
                () = tokio::time::sleep(delay) => {
                    // If the shard has gone, nothing waits for the permit.
                    _ = permit.send(());
                }
            }
        });
        permitted
    }
}

impl Starts {
    /// Returns how long the next identification must wait. It doubles with each one that follows soon.
    fn next(&mut self, now: Instant) -> Duration {
        let Some(last) = self.last else {
            self.last = Some(now);
            return Duration::ZERO;
        };
        if now.saturating_duration_since(last) >= CALM {
            self.in_a_row = 0;
        }
        let delay = self.interval.saturating_mul(2_u32.saturating_pow(self.in_a_row.min(16))).min(MAX_DELAY);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let at = (last + delay).max(now);
        self.last = Some(at);
        at.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifications_in_a_row_wait_longer_and_a_day_has_far_fewer_than_a_thousand() {
        let start = Instant::now();
        let mut starts = Starts { interval: Duration::from_secs(5), last: None, in_a_row: 0 };
        assert_eq!(starts.next(start), Duration::ZERO);
        assert_eq!(starts.next(start), Duration::from_secs(5));
        assert_eq!(starts.next(start + Duration::from_secs(5)), Duration::from_secs(10));
        let (mut now, mut count) = (start, 0);
        while now < start + Duration::from_hours(24) {
            now += starts.next(now);
            count += 1;
        }
        assert!(count < 200, "{count}");
    }

    #[test]
    fn after_a_calm_time_the_delay_is_short_again() {
        let start = Instant::now();
        let mut starts = Starts { interval: Duration::from_secs(5), last: Some(start), in_a_row: 9 };
        assert_eq!(starts.next(start + CALM), Duration::ZERO);
        assert_eq!(starts.next(start + CALM), Duration::from_secs(10));
    }
}
