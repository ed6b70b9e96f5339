//! A rate limiter for calls: the intervals of a service and the waits that it requires. Pure: time is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::capabilities::Capabilities;
use crate::outbound::RateScope;

/// The longest wait. A longer one is shortened, so that it can be added to a time.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The number of chats above which chats that need not wait are removed.
const MAX_CHATS: usize = 1_024;

/// Decides when the next call of a channel may start.
#[derive(Clone, Debug)]
pub struct Pace {
    chat_interval: Duration,
    channel_interval: Duration,
    /// The first time of the next call for all chats.
    channel: Option<Instant>,
    /// The first time of the next call for each chat.
    chats: HashMap<String, Instant>,
}

impl Pace {
    /// Uses the intervals of a service.
    pub fn new(capabilities: &Capabilities) -> Self {
        let Capabilities { chat_interval, channel_interval, .. } = *capabilities;
        Self { chat_interval, channel_interval, channel: None, chats: HashMap::new() }
    }

    /// Reserves a call for a chat if it may be made now. Otherwise returns how long the call must wait; then call this
    /// again.
    pub fn reserve(&mut self, chat: &str, now: Instant) -> Result<(), Duration> {
        let at = [self.channel, self.chats.get(chat).copied()].into_iter().flatten().max().unwrap_or(now);
        if at > now {
            return Err(at.saturating_duration_since(now));
        }
        self.called(chat, now);
        Ok(())
    }

    /// Measures the intervals from now, because the reserved call is made now and not when it was reserved.
    pub fn called(&mut self, chat: &str, now: Instant) {
        let channel = now + self.channel_interval;
        self.channel = Some(self.channel.map_or(channel, |at| at.max(channel)));
        let next = self.chats.get(chat).map_or(now, |at| *at).max(now + self.chat_interval);
        self.set(chat, next, now);
    }

    /// Permits no call of the chat, or of the channel, for a time of at most 24 hours.
    pub fn hold(&mut self, chat: &str, scope: RateScope, wait: Duration, now: Instant) {
        let until = now + wait.min(MAX_WAIT);
        match scope {
            RateScope::Channel => self.channel = Some(self.channel.map_or(until, |at| at.max(until))),
            RateScope::Chat => {
                let until = self.chats.get(chat).map_or(until, |at| (*at).max(until));
                self.set(chat, until, now);
            }
        }
    }

    /// Returns how long the whole channel must wait.
    pub fn channel_wait(&self, now: Instant) -> Duration {
        self.channel.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    fn set(&mut self, chat: &str, at: Instant, now: Instant) {
        if self.chats.len() >= MAX_CHATS {
            self.chats.retain(|_, at| *at > now);
        }
        self.chats.insert(chat.to_owned(), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(chat: Duration, channel: Duration) -> Pace {
        Pace::new(&Capabilities { chat_interval: chat, channel_interval: channel, ..Capabilities::default() })
    }

    #[test]
    fn calls_of_a_chat_and_of_the_channel_keep_their_intervals() {
        let (mut pace, now) = (pace(SECOND, SECOND / 10), Instant::now());
        assert_eq!(pace.reserve("a", now), Ok(()));
        assert_eq!(pace.reserve("b", now), Err(SECOND / 10));
        assert_eq!(pace.reserve("b", now + SECOND / 10), Ok(()));
        assert_eq!(pace.reserve("a", now + SECOND / 2), Err(SECOND / 2));
        assert_eq!(pace.reserve("a", now + SECOND), Ok(()));
    }

    #[test]
    fn a_demanded_wait_of_a_chat_does_not_delay_others_and_one_of_the_channel_does() {
        let (mut pace, now) = (pace(Duration::ZERO, Duration::ZERO), Instant::now());
        pace.hold("a", RateScope::Chat, SECOND * 9, now);
        assert_eq!(pace.reserve("a", now), Err(SECOND * 9));
        assert_eq!(pace.reserve("b", now), Ok(()));
        pace.hold("a", RateScope::Channel, SECOND * 3, now);
        assert_eq!(pace.reserve("c", now), Err(SECOND * 3));
        assert_eq!(pace.channel_wait(now + SECOND), SECOND * 2);
    }

    #[test]
    fn a_shorter_wait_never_ends_a_longer_one() {
        let (mut pace, now) = (pace(Duration::ZERO, Duration::ZERO), Instant::now());
        for wait in [SECOND * 9, SECOND] {
            pace.hold("a", RateScope::Chat, wait, now);
            pace.hold("a", RateScope::Channel, wait / 2, now);
        }
        assert_eq!(pace.channel_wait(now), SECOND * 9 / 2);
        assert_eq!(pace.reserve("a", now), Err(SECOND * 9));
    }

    #[test]
    fn an_absurd_wait_is_one_of_a_day() {
        for (scope, chat) in [(RateScope::Chat, "a"), (RateScope::Channel, "b")] {
            let (mut pace, now) = (pace(Duration::ZERO, Duration::ZERO), Instant::now());
            pace.hold("a", scope, Duration::MAX, now);
            assert_eq!(pace.reserve(chat, now), Err(MAX_WAIT));
        }
    }

    #[test]
    fn the_number_of_known_chats_is_bounded() {
        let (mut pace, start) = (pace(SECOND, Duration::ZERO), Instant::now());
        for number in 0..10_000_u32 {
            pace.reserve(&number.to_string(), start + SECOND * 2 * number).unwrap();
        }
        assert!(pace.chats.len() <= MAX_CHATS, "{}", pace.chats.len());
    }
}
