//! Conversations and the agents' sessions.

use crate::ids::{ConversationId, Epoch, HostId, Json, Seq, Timestamp, WorkerId};

/// The address of a conversation. There is at most one conversation for each address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatAddress {
    /// The channel, for example `http`.
    pub channel: String,
    /// The chat in the channel.
    pub chat: String,
    /// The thread in the chat; empty if there is none.
    pub thread: String,
}

/// A conversation to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its address.
    pub address: ChatAddress,
    /// The agent.
    pub agent: String,
    /// A title for people.
    pub title: Option<String>,
    /// Model, permission, directory and other settings. The engine interprets them.
    pub settings: Json,
}

/// The largest number of events that a fork copies. They are copied in one transaction, which delays all other writes.
pub const MAX_FORK_EVENTS: u64 = 50_000;

/// The largest size of the events that a fork copies, in bytes.
pub const MAX_FORK_BYTES: u64 = 64 << 20;

/// The origin of a new conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The conversation whose log is copied. Its turns and sessions are not.
    pub from: ConversationId,
    /// The last event that is copied.
    pub after: Seq,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Its address.
    pub address: ChatAddress,
    /// The agent.
    pub agent: String,
    /// A title for people.
    pub title: Option<String>,
    /// Model, permission, directory and other settings.
    pub settings: Json,
    /// Increases with each change of agent, title or settings.
    pub version: u64,
    /// Its state.
    pub state: ConversationState,
    /// The number of its last event.
    pub last_seq: Seq,
    /// The number of its oldest event that can be read; one more than `last_seq` if there is none.
    pub oldest_seq: Seq,
    /// The number of turns that wait.
    pub queued: u32,
    /// The id of the session that its agent keeps for it.
    pub session_id: Option<String>,
    /// The worker that holds it.
    pub worker: Option<WorkerId>,
    /// The number of the last claim.
    pub epoch: Epoch,
    /// No turn starts before this time.
    pub paused_until: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The state of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConversationState {
    /// No turn waits or runs.
    Idle,
    /// A turn waits for a worker.
    Queued,
    /// A turn runs.
    Running,
    /// A turn runs and waits for the answer to a permission request.
    Waiting,
    /// A turn waits for the end of a pause.
    Paused,
}

/// A change of a conversation. `None` keeps a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// Another agent.
    pub agent: Option<String>,
    /// Another title, or none.
    pub title: Option<Option<String>>,
    /// Other settings.
    pub settings: Option<Json>,
    /// Applies the change only to this version.
    pub expected_version: Option<u64>,
}

/// Which conversations are listed. `None` does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// The state.
    pub state: Option<ConversationState>,
    /// The agent.
    pub agent: Option<String>,
    /// The channel.
    pub channel: Option<String>,
    /// A part of the title or of a message, in any case of ASCII letters.
    pub text: Option<String>,
}

/// The session that an agent keeps for a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The agent's own id.
    pub id: String,
    /// The host with its files.
    pub host: HostId,
}
