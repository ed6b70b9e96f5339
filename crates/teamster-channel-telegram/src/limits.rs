//! Whose limit a 429 is. The Bot API does not state whether a chat or the bot has sent too much.

use std::time::{Duration, Instant};

use teamster_channel::RateScope;

/// Chats that must wait. One chat that must wait has its own limit. If a second one must wait meanwhile, it is the bot's limit.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    last: Option<(i64, Instant)>,
}

impl Limits {
    /// Returns what must wait after a 429 for this chat.
    pub(crate) fn limited(&mut self, chat: i64, wait: Duration, now: Instant) -> RateScope {
        let is_general = self.last.is_some_and(|(other, until)| other != chat && until > now);
        self.last = now.checked_add(wait).map(|until| (chat, until));
        if is_general { RateScope::Channel } else { RateScope::Chat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_chat_that_must_wait_meanwhile_makes_it_a_limit_of_the_bot() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(limits.limited(1, second * 10, now), RateScope::Chat);
        assert_eq!(limits.limited(1, second * 10, now + second), RateScope::Chat);
        assert_eq!(limits.limited(2, second * 10, now + second * 2), RateScope::Channel);
        assert_eq!(limits.limited(3, second * 10, now + second * 30), RateScope::Chat);
    }
}
