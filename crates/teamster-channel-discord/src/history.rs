//! Messages that were missed: a new session of the gateway has none of those before it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::Value;
use teamster_channel::InboxError;

use crate::api::{Body, Call, CallError};
use crate::receive::Receiver;
use crate::state::Progress;
use crate::types::Message;

/// The age from which a missed message is not answered any longer.
const MAX_AGE: Duration = Duration::from_hours(24);

/// The number of messages in an answer.
const PAGE: usize = 100;

/// The largest number of pages of a channel. Later messages of it are answered first at the next one.
const MAX_PAGES: usize = 10;

/// The milliseconds between 1970 and the first id of Discord.
const EPOCH_MS: u64 = 1_420_070_400_000;

impl Receiver<'_> {
    /// Handles the missed messages of all channels with a conversation.
    pub(crate) async fn missed(&mut self) -> Result<(), InboxError> {
        let oldest = first_id(SystemTime::now());
        let channels: Vec<_> = self.state.channels.clone().into_iter().collect();
        for (channel, progress) in channels {
            self.missed_in(&channel, &progress, oldest).await?;
        }
        Ok(())
    }

    async fn missed_in(&mut self, channel: &str, progress: &Progress, oldest: u64) -> Result<(), InboxError> {
        let mut after = progress.last.max(oldest);
        for _ in 0..MAX_PAGES {
            let mut call = Call::new(Method::GET, "history", channel, vec!["channels", channel, "messages"]);
            call.query = vec![("after", after.to_string()), ("limit", PAGE.to_string())];
            let page: Vec<Value> = match self.channel.api().call(&call, Body::None).await {
                Ok(page) => page,
                Err(CallError::Refused { status: 403 | 404, .. }) => {
                    self.state.channels.remove(channel);
                    return Ok(());
                }
                Err(error) => return Err(InboxError(format!("missed messages cannot be read: {error}"))),
            };
            let is_last = page.len() < PAGE;
            let mut messages: Vec<(u64, Message)> = page.into_iter().filter_map(read).collect();
            messages.sort_by_key(|(id, _)| *id);
            let Some((newest, _)) = messages.last() else { return Ok(()) };
            after = *newest;
            for (_, mut message) in messages {
                message.guild_id.clone_from(&progress.guild);
                self.message(&message).await?;
            }
            if is_last {
                return Ok(());
            }
        }
        tracing::warn!(channel, "a channel of Discord has more missed messages than are read");
        Ok(())
    }
}

fn read(value: Value) -> Option<(u64, Message)> {
    let message: Message = serde_json::from_value(value).ok()?;
    Some((message.id.parse().ok()?, message))
}

/// Returns the first id of the time for which missed messages are answered. An id starts with its time.
fn first_id(now: SystemTime) -> u64 {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = u64::try_from(now.saturating_sub(MAX_AGE).as_millis()).unwrap_or_default();
    start.saturating_sub(EPOCH_MS) << 22
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_day_ago_is_computed_from_the_time() {
        // The example of the documentation: 175928847299117063 is of 2016-04-30 11:18:25.796 UTC.
        let then = UNIX_EPOCH + Duration::from_millis(1_462_015_105_796) + MAX_AGE;
        assert_eq!(first_id(then), 175_928_847_299_117_063 >> 22 << 22);
        assert_eq!(first_id(UNIX_EPOCH), 0);
    }
}
