//! The trait of the gateway's channels, and what all channels share.
//!
//! A [`Channel`] connects the gateway with one service: it receives messages and sends deliveries. It keeps no state that must
//! survive a crash, except through the [`Inbox`]. The gateway decides what is sent, in which order, and when it is sent again.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `inbound` | the input of a channel, and the [`Inbox`] that accepts it |
//! | `outbound` | the output of a channel, and the outcomes |
//! | `capabilities` | the capabilities of a service, as data |
//! | `commands` | the commands of a chat |
//! | `split` | splits Markdown into parts that a service accepts |
//! | `pace` | rate limiting: intervals, and waits that a service requires |
//! | `live_edit` | shows an unfinished text by edits |
//! | `formatted` | Markdown as a text with ranges, for services with formatting beside the text |
//! | `render` | tool calls, plans and permission requests as Markdown |
//! | [`signature`] | the signatures of webhooks |
//! | `testing` | an inbox in memory, for the tests of channels (feature `testing`) |
//!
//! Invariant: this crate depends on no service and on no part of the gateway. It does no I/O and reads no clock.

mod capabilities;
mod commands;
mod formatted;
mod inbound;
mod live_edit;
mod outbound;
mod pace;
pub mod render;
pub mod signature;
mod split;
#[cfg(feature = "testing")]
pub mod testing;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

pub use capabilities::{Capabilities, TextLimit, TextUnit};
pub use commands::{COMMANDS, CommandSpec, parse_command};
pub use formatted::{Entity, EntityKind, Formatted, formatted, is_shown, utf16_length};
pub use inbound::{
    Attachment, Author, ChatCommand, CommandReply, Edit, EditOutcome, Inbox, InboxError, Message, PromptAnswer,
    PromptDecision, Receipt,
};
pub use live_edit::{EditStep, LiveEdit};
pub use outbound::{
    Address, Button, ButtonStyle, Content, Delivered, File, Operation, Outgoing, Part, Prompt, REPEAT_MARK, RateScope,
    SendError, SendOutcome,
};
pub use pace::Pace;
pub use split::{MIN_LIMIT, split};
pub use teamster_markdown::escape_names;

/// A service through which people or programs use agents.
///
/// The gateway calls [`receive`](Self::receive) once per start, and the other methods from its delivery task. Calls of
/// [`send`](Self::send) for one chat never overlap.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Returns the name of the channel, for example `discord`. It is a part of every chat's address: it must not change.
    fn name(&self) -> &str;

    /// Returns what the service supports.
    fn capabilities(&self) -> Capabilities;

    /// Checks the credentials and settings with the service, without sending a message.
    async fn check(&self) -> Result<(), ChannelError>;

    /// Receives until `stop` is cancelled. The service gets its acknowledgment only after the inbox has returned.
    ///
    /// The method reconnects automatically. An error means that reconnecting cannot help, for example because a token
    /// is revoked.
    async fn receive(&self, inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError>;

    /// Sends one part of a delivery. The call has a time limit ([`Capabilities::send_timeout`]) and may be dropped; then its
    /// outcome is unknown.
    async fn send(&self, outgoing: &Outgoing) -> SendOutcome;

    /// Asks the service for a part whose outcome is unknown, for example in the chat's history. `None` means that the service
    /// cannot be asked. [`SendOutcome::Unknown`] means that it does not answer now, and
    /// [`SendError::Unavailable`] that it cannot be reached. Another [`SendOutcome::NotSent`] means that it does not have the part.
    async fn find(&self, _outgoing: &Outgoing) -> Option<SendOutcome> {
        None
    }

    /// Shows that the agent works, if the service can show that. A failure has no consequence.
    async fn typing(&self, _address: &Address) {}
}

/// Why a channel cannot work. The texts contain no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The service rejects the credentials.
    #[error("{service} rejects the credentials: {reason}")]
    Credentials {
        /// The service.
        service: &'static str,
        /// Its answer, without secrets.
        reason: String,
    },
    /// A setting is missing in the service or in the configuration.
    #[error("{0}")]
    Setting(String),
    /// The service cannot be reached.
    #[error("{service} cannot be reached: {reason}")]
    Unreachable {
        /// The service.
        service: &'static str,
        /// What failed, without secrets.
        reason: String,
    },
}
