//! When the bot may identify itself. Discord permits one identification in 5 seconds and 1,000 in a day, and resets the token of a
//! bot that exceeds that. Resuming a session does not count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

    fn lock(&self) -> MutexGuard<'_, Starts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Identifies {
    fn enqueue(&self, _shard: u32) -> oneshot::Receiver<()> {
        let (mut permit, permitted) = oneshot::channel();
        let delay = self.lock().delay(Instant::now());
        let identifies = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = permit.closed() => {}
                () = tokio::time::sleep(delay) => {
                    let mut starts = identifies.lock();
                    // If the shard has gone, nothing waits for the permit, and there is no identification to count.
                    if permit.send(()).is_ok() {
                        starts.count(Instant::now());
                    }
                }
            }
        });
        permitted
    }
}

impl Starts {
    /// Returns how long the next identification must wait. It doubles with each one that follows soon.
    fn delay(&self, now: Instant) -> Duration {
        let Some(last) = self.last else { return Duration::ZERO };
        let in_a_row = if self.is_calm(now) { 0 } else { self.in_a_row };
        let delay = self.interval.saturating_mul(2_u32.saturating_pow(in_a_row.min(16))).min(MAX_DELAY);
        (last + delay).saturating_duration_since(now)
    }

    /// Counts an identification.
    fn count(&mut self, now: Instant) {
        self.in_a_row = match self.last {
            None => 0,
            Some(_) if self.is_calm(now) => 1,
            Some(_) => self.in_a_row.saturating_add(1),
        };
        self.last = Some(now);
    }

    fn is_calm(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) >= CALM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifies as early as permitted, and returns the delay.
    fn next(starts: &mut Starts, now: Instant) -> Duration {
        let delay = starts.delay(now);
        starts.count(now + delay);
        delay
    }

    #[test]
    fn identifications_in_a_row_wait_longer_and_a_day_has_far_fewer_than_a_thousand() {
        let start = Instant::now();
        let mut starts = Starts { interval: Duration::from_secs(5), last: None, in_a_row: 0 };
        assert_eq!(next(&mut starts, start), Duration::ZERO);
        assert_eq!(next(&mut starts, start), Duration::from_secs(5));
        assert_eq!(next(&mut starts, start + Duration::from_secs(5)), Duration::from_secs(10));
        let (mut now, mut count) = (start, 0);
        while now < start + Duration::from_hours(24) {
            now += next(&mut starts, now);
            count += 1;
        }
        assert!(count < 200, "{count}");
    }

    #[test]
    fn after_a_calm_time_the_delay_is_short_again() {
        let start = Instant::now();
        let mut starts = Starts { interval: Duration::from_secs(5), last: Some(start), in_a_row: 9 };
        assert_eq!(next(&mut starts, start + CALM), Duration::ZERO);
        assert_eq!(next(&mut starts, start + CALM), Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_permit_that_is_not_used_delays_no_later_one() {
        let identifies = Identifies::new(Duration::from_millis(50));
        identifies.enqueue(0).await.unwrap();
        for _ in 0..100 {
            drop(identifies.enqueue(0));
        }
        assert!(identifies.lock().delay(Instant::now()) <= Duration::from_millis(50));
        identifies.enqueue(0).await.unwrap();
        assert_eq!(identifies.lock().in_a_row, 1);
    }
}
