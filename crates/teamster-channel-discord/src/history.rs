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

    /// Handles the missed messages of a channel, page by page. Only their age bounds their number.
    async fn missed_in(&mut self, channel: &str, progress: &Progress, oldest: u64) -> Result<(), InboxError> {
        let mut after = progress.last.max(oldest);
        loop {
            let Some(page) = self.page(channel, after).await? else {
                self.state.channels.remove(channel);
                return Ok(());
            };
            let is_last = page.len() < PAGE;
            let newest = page.iter().filter_map(id_of).max().unwrap_or_default();
            let mut messages: Vec<(u64, Message)> = page.into_iter().filter_map(read).collect();
            messages.sort_by_key(|(id, _)| *id);
            for (_, mut message) in messages {
                if self.stop.is_cancelled() {
                    return Err(stopped());
                }
                message.guild_id.clone_from(&progress.guild);
                if self.message(&message).await? {
                    // A crash must not repeat a command. The old session stays, so the next start reads the other messages.
                    self.store().await;
                }
            }
            // A service that ignores `after` would send the same page without end.
            if is_last || newest <= after {
                return Ok(());
            }
            after = newest;
        }
    }

    /// Returns the first messages after an id. `None`: the bot cannot see the channel any longer.
    async fn page(&self, channel: &str, after: u64) -> Result<Option<Vec<Value>>, InboxError> {
        let mut call = Call::new(Method::GET, "history", channel, vec!["channels", channel, "messages"]);
        call.query = vec![("after", after.to_string()), ("limit", PAGE.to_string())];
        let page = tokio::select! {
            () = self.stop.cancelled() => return Err(stopped()),
            page = self.channel.api().call(&call, Body::None) => page,
        };
        match page {
            Ok(page) => Ok(Some(page)),
            Err(CallError::Refused { status: 403 | 404, .. }) => Ok(None),
            Err(error) => Err(InboxError(format!("missed messages cannot be read: {error}"))),
        }
    }
}

/// The error that keeps the start of the session unhandled, so that the next start reads the other messages.
fn stopped() -> InboxError {
    InboxError("the channel ends before all missed messages are read".to_owned())
}

fn id_of(value: &Value) -> Option<u64> {
    value.get("id")?.as_str()?.parse().ok()
}

fn read(value: Value) -> Option<(u64, Message)> {
    let id = id_of(&value)?;
    Some((id, serde_json::from_value(value).ok()?))
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
