//! The representation of conversations in requests and responses.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use teamster_store::{Conversation, ConversationState};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::problem::Result;
use super::settings::{Change, Permission};
use super::wire::{Time, read, whole};
use crate::config::{ConversationSettings, ForkOrigin};

/// A conversation to create. Absent fields are selected by the configuration.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewConversation {
    /// The agent.
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    pub(super) agent: Option<String>,
    /// The model.
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    pub(super) model: Option<String>,
    /// What the agent may do. Only an admin can select more than the configuration.
    pub(super) permission: Option<Permission>,
    /// The working directory: `directory` or one of `roots` of the configuration, or a directory below them.
    #[schema(value_type = Option<String>)]
    pub(super) directory: Option<PathBuf>,
    /// Instructions, appended to all others.
    #[schema(max_length = 100_000, pattern = r"^[^\x00]*$")]
    pub(super) instructions: Option<String>,
    /// A title for people.
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    pub(super) title: Option<String>,
    /// Values of the caller, which the gateway returns and does not interpret.
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Map<String, Value>>,
}

/// A change of a conversation. An absent field keeps its value, and `null` removes it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConversationUpdate {
    /// The agent.
    pub(super) agent: Option<String>,
    /// The model.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 500, pattern = r"^[^\x00]*$")]
    pub(super) model: Change<String>,
    /// What the agent may do. Only an admin can select more than the configuration.
    #[serde(default)]
    #[schema(value_type = Option<Permission>)]
    pub(super) permission: Change<Permission>,
    /// The working directory: `directory` or one of `roots` of the configuration, or a directory below them.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) directory: Change<PathBuf>,
    /// Instructions, appended to all others.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 100_000, pattern = r"^[^\x00]*$")]
    pub(super) instructions: Change<String>,
    /// A title for people.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 500, pattern = r"^[^\x00]*$")]
    pub(super) title: Change<String>,
    /// Values of the caller. They replace the earlier ones.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Change<Map<String, Value>>,
    /// Applies the change only to this version. The header `If-Match` does the same.
    #[serde(default, deserialize_with = "whole")]
    pub(super) expected_version: Option<u64>,
}

/// The end of the history that a fork gets.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ForkRequest {
    /// The last event that is copied. Without it, the whole log is copied.
    #[serde(default, deserialize_with = "whole")]
    pub(super) after_seq: Option<u64>,
}

/// Which conversations are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConversationQuery {
    /// Only conversations in this state.
    #[param(inline)]
    pub(super) state: Option<StateName>,
    /// Only conversations with this agent.
    pub(super) agent: Option<String>,
    /// Only conversations of this channel.
    pub(super) channel: Option<String>,
    /// A part of the title or of a message, in any case of ASCII letters. A search that takes too long is stopped.
    #[param(max_length = 200)]
    pub(super) q: Option<String>,
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    pub(super) limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    pub(super) cursor: Option<String>,
}

/// The state of a conversation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConversationState)]
pub(super) enum StateName {
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

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Conversation)]
pub(super) struct ConversationView {
    /// Its id.
    id: Uuid,
    /// The channel, for example `http`.
    channel: String,
    /// The chat in the channel.
    chat: String,
    /// The thread in the chat.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    thread: String,
    /// The agent.
    agent: String,
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The model, if one was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// What the agent may do, if it was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<Permission>,
    /// The working directory, if one was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    directory: Option<PathBuf>,
    /// Instructions, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    /// Values of the caller.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    metadata: Map<String, Value>,
    /// The origin of a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkOrigin>,
    /// Its state.
    state: StateName,
    /// The number of turns that wait.
    queued: u32,
    /// The agent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The number of its last event. 0 if there is none.
    last_seq: u64,
    /// The number of its oldest event that can be read.
    oldest_seq: u64,
    /// The worker that runs its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// No turn starts before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<Time>,
    /// It increases with each change of agent, title or settings. It is the value of `ETag`.
    version: u64,
    /// When it was created.
    created_at: Time,
}

/// Returns a conversation as it is sent.
pub(super) fn view(conversation: Conversation) -> Result<ConversationView> {
    let settings: ConversationSettings = read(&conversation.settings)?;
    let ConversationSettings { model, permission, directory, instructions, metadata, forked_from, permission_by: _ } =
        settings;
    Ok(ConversationView {
        id: conversation.id.uuid(),
        channel: conversation.address.channel,
        chat: conversation.address.chat,
        thread: conversation.address.thread,
        agent: conversation.agent,
        title: conversation.title,
        model,
        permission: permission.map(Into::into),
        directory,
        instructions,
        metadata,
        forked_from,
        state: conversation.state.into(),
        queued: conversation.queued,
        session_id: conversation.session_id,
        last_seq: conversation.last_seq.get(),
        oldest_seq: conversation.oldest_seq.get(),
        worker: conversation.worker.map(|worker| worker.as_str().to_owned()),
        paused_until: conversation.paused_until.map(Time),
        version: conversation.version,
        created_at: Time(conversation.created_at),
    })
}

impl From<ConversationState> for StateName {
    fn from(state: ConversationState) -> Self {
        match state {
            ConversationState::Idle => Self::Idle,
            ConversationState::Queued => Self::Queued,
            ConversationState::Running => Self::Running,
            ConversationState::Waiting => Self::Waiting,
            ConversationState::Paused => Self::Paused,
        }
    }
}

impl From<StateName> for ConversationState {
    fn from(state: StateName) -> Self {
        match state {
            StateName::Idle => Self::Idle,
            StateName::Queued => Self::Queued,
            StateName::Running => Self::Running,
            StateName::Waiting => Self::Waiting,
            StateName::Paused => Self::Paused,
        }
    }
}
