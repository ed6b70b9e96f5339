//! What is stored for the next start: the session of the gateway, and the last handled message of each conversation's channel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The largest number of channels whose missed messages are requested.
const MAX_CHANNELS: usize = 500;

/// A session of the gateway, as of the last handled event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) sequence: u64,
    /// The URL to resume it; empty if it is that of new sessions.
    #[serde(default)]
    pub(crate) url: String,
    /// The intents of its identification. A resume keeps them; 0 if they are not known.
    #[serde(default)]
    pub(crate) intents: u64,
}

/// A channel with a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// The last handled message.
    pub(crate) last: u64,
    /// The server; missing for direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guild: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    #[serde(default)]
    pub(crate) session: Option<Session>,
    #[serde(default)]
    pub(crate) channels: BTreeMap<String, Progress>,
}

impl State {
    /// Records a handled message. Only a channel with a conversation is added.
    pub(crate) fn handled(&mut self, channel: &str, message: &str, guild: Option<&str>, is_conversation: bool) {
        let Ok(id) = message.parse::<u64>() else { return };
        match self.channels.get_mut(channel) {
            Some(progress) => progress.last = progress.last.max(id),
            None if is_conversation => {
                let guild = guild.map(str::to_owned);
                self.channels.insert(channel.to_owned(), Progress { last: id, guild });
                self.limit();
            }
            None => {}
        }
    }

    /// Returns whether a message of a channel with a conversation was handled before.
    pub(crate) fn is_handled(&self, channel: &str, message: &str) -> bool {
        let known = self.channels.get(channel).map(|progress| progress.last);
        message.parse::<u64>().is_ok_and(|id| known.is_some_and(|last| id <= last))
    }

    /// Removes the channel without a message for the longest time.
    fn limit(&mut self) {
        while self.channels.len() > MAX_CHANNELS {
            let oldest = self.channels.iter().min_by_key(|(_, progress)| progress.last).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            self.channels.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_channels_with_a_conversation_are_known_and_their_last_message_never_goes_back() {
        let mut state = State::default();
        state.handled("1", "10", None, false);
        assert!(state.channels.is_empty());
        state.handled("1", "10", Some("5"), true);
        state.handled("1", "30", Some("5"), false);
        state.handled("1", "20", Some("5"), true);
        state.handled("1", "no id", Some("5"), true);
        assert!(state.is_handled("1", "30") && state.is_handled("1", "20"));
        assert!(!state.is_handled("1", "31") && !state.is_handled("2", "20"));
        assert_eq!(state.channels["1"], Progress { last: 30, guild: Some("5".to_owned()) });
    }

    #[test]
    fn the_number_of_channels_is_bounded() {
        let mut state = State::default();
        for number in 1..=2_000_u64 {
            state.handled(&number.to_string(), &number.to_string(), None, true);
        }
        assert_eq!(state.channels.len(), MAX_CHANNELS);
        assert!(state.channels.contains_key("2000") && !state.channels.contains_key("1"));
    }

    #[test]
    fn a_stored_state_is_read_again_and_an_unknown_form_is_none() {
        let mut state = State::default();
        state.handled("1", "10", Some("5"), true);
        state.session = Some(Session { id: "s".to_owned(), sequence: 7, url: "wss://x".to_owned(), intents: 1 });
        let value = serde_json::to_value(&state).unwrap();
        assert_eq!(serde_json::from_value::<State>(value).unwrap(), state);
        assert!(serde_json::from_value::<State>(serde_json::json!([1])).is_err());
    }
}
