//! The capabilities of a service, as data.

use std::time::Duration;

/// The features and limits of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a service")]
pub struct Capabilities {
    /// Whether a sent message can be edited.
    pub edits: bool,
    /// Whether chats have threads.
    pub threads: bool,
    /// Whether a message can have buttons. Without them, the text of a prompt contains where to answer.
    pub buttons: bool,
    /// The maximum size of a file in bytes. 0: files cannot be sent.
    pub max_file_bytes: u64,
    /// The maximum length of a text.
    pub text_limit: TextLimit,
    /// How long the service recognizes a repeated key ([`Outgoing::key`](crate::Outgoing)). A repeat within this time does
    /// not show the message twice. `None`: the service does not recognize repeats.
    pub recognizes_repeats_for: Option<Duration>,
    /// Whether every sender is authenticated by a secret of the operator. Otherwise senders are strangers: they need a rule
    /// of the configuration that names their channel, chat or author.
    pub senders_are_authenticated: bool,
    /// The shortest time between two calls for one chat.
    pub chat_interval: Duration,
    /// The shortest time between two calls for all chats.
    pub channel_interval: Duration,
    /// The shortest time between two edits of a message that shows an unfinished answer.
    pub edit_interval: Duration,
    /// The age from which a message can no longer be edited, or only at a low rate. `None` has no limit.
    pub edit_window: Option<Duration>,
    /// How long a typing indicator is visible. `None`: the service has none.
    pub typing_lasts: Option<Duration>,
    /// The longest time of one call.
    pub send_timeout: Duration,
    /// The number of attempts after which a delivery is given up. `None` is that of the gateway.
    pub max_attempts: Option<u32>,
}

/// The maximum length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    /// The number of units.
    pub max: usize,
    /// The unit.
    pub unit: TextUnit,
}

/// The unit in which a service measures a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    /// Unicode code points.
    Chars,
    /// Code units of UTF-16.
    Utf16,
    /// Bytes of UTF-8.
    Bytes,
}

impl TextUnit {
    /// Returns the length of a text.
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Chars => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Bytes => text.len(),
        }
    }
}

impl Default for Capabilities {
    /// A service with plain messages of 4,000 characters and nothing else.
    fn default() -> Self {
        Self {
            edits: false,
            threads: false,
            buttons: false,
            max_file_bytes: 0,
            text_limit: TextLimit { max: 4_000, unit: TextUnit::Utf16 },
            recognizes_repeats_for: None,
            senders_are_authenticated: false,
            chat_interval: Duration::ZERO,
            channel_interval: Duration::ZERO,
            edit_interval: Duration::from_secs(2),
            edit_window: None,
            typing_lasts: None,
            send_timeout: Duration::from_secs(30),
            max_attempts: None,
        }
    }
}
