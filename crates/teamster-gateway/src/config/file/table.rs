//! The table `[serve]` as written. The first line of each description is that of the template and the JSON schema.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::channels::{BotsTable, DeliveryTable};
use super::discord::DiscordTable;
use super::rule::RuleTable;
use super::slack::SlackTable;
use super::telegram::TelegramTable;
use super::values::{CompatName, InterruptedName, PermissionName, Role, Time, TrustName};
use crate::channels::WebhookConfig;
use crate::hooks::HookConfig;
use crate::schedules::ScheduleLimits;
use crate::tools::ToolsConfig;

/// The table `[serve]`. Each value is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeTable {
    /// Listen on this address, HOST:PORT; port 0 picks a free one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// A proxy in front of the gateway terminates TLS
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_proxy: Option<bool>,
    /// Certificate and key for TLS
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsTable>,
    /// Host names under which clients reach the gateway, besides loopback names
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The directory with the store, attachments and the first token
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// The store: the path of an SQLite file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The maximum size of the store in bytes; without a value it is limited by the disk
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_bytes: Option<NonZeroU64>,
    /// The role of this process: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The agent of new conversations
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The program of the agent's CLI
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_path: Option<PathBuf>,
    /// The model, named as the agent names it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Start with the defaults of another gateway: aetheel
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<CompatName>,
    /// What agents may do: read-only, ask, edit or full
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionName>,
    /// Rules for tools that need no permission
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_tools: Option<Vec<String>>,
    /// Whether agents use the configuration of their working directory: trusted or untrusted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_trust: Option<TrustName>,
    /// Environment variables with keys that agents inherit besides their own; a name may contain one asterisk
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_keys: Option<Vec<String>>,
    /// The working directory of agents
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The maximum number of model calls of a turn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
    /// The maximum duration of a turn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Directories below which agents may work, besides the working directory
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<PathBuf>>,
    /// After a crash: report it in the chat, or resume the turn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<InterruptedName>,
    /// Instructions that are appended to the agent's system prompt
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionsTable>,
    /// Upper bounds
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsTable>,
    /// Time limits and intervals
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingTable>,
    /// Retries of failed turns
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetriesTable>,
    /// How long data is kept; without a value it is never deleted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionTable>,
    /// The tools that the gateway offers to agents
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsConfig>,
    /// Upper bounds of schedules
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedules: Option<ScheduleLimits>,
    /// How answers are sent to channels
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryTable>,
    /// Messages of programs in channels
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bots: Option<BotsTable>,
    /// A Discord bot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discord: Option<DiscordTable>,
    /// A Slack app
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<SlackTable>,
    /// A Telegram bot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telegram: Option<TelegramTable>,
    /// Rules for chats and authors; the first that matches applies
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleTable>,
    /// Commands and webhooks that the gateway runs at events
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookConfig>,
    /// Webhook channels: other programs that send messages and get answers
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookConfig>,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// The chain of certificates, a PEM file
    pub certificate: PathBuf,
    /// The private key, a PEM file
    pub key: PathBuf,
}

/// Instructions for agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InstructionsTable {
    /// Markdown files; they are read again when they change
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<PathBuf>>,
    /// A text; {channel}, {chat}, {author}, {time} and {conversation} are replaced
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Upper bounds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Turns that run at the same time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<NonZeroU32>,
    /// Turns of one chat that run at the same time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running_per_chat: Option<NonZeroU32>,
    /// Waiting turns of one chat
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_per_chat: Option<NonZeroU32>,
    /// Waiting turns of all conversations
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_total: Option<NonZeroU32>,
    /// Events of one turn; a turn with more is aborted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_per_turn: Option<NonZeroU32>,
    /// The size of a request's body in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<NonZeroU32>,
    /// The size of all attachments of a message in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment_bytes: Option<NonZeroU32>,
    /// The size of the attachments of all messages in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_bytes: Option<NonZeroU64>,
    /// Open event streams in total
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<NonZeroU32>,
    /// Requests of a token or an address per second
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// Concurrent requests of a token or an address, without event streams
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_requests: Option<NonZeroU32>,
    /// Idle sessions of agents that stay open
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_sessions: Option<u32>,
}

/// Time limits and intervals.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimingTable {
    /// How long an agent's session stays open without a turn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Time>,
    /// How long the lease of a conversation lasts without a renewal
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Time>,
    /// How long a turn waits for the host that has the agent's session files
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity_timeout: Option<Time>,
    /// How long a permission request waits for an answer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_timeout: Option<Time>,
    /// The interval of comments on a silent event stream
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Time>,
    /// How long a shutdown waits for running turns
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_timeout: Option<Time>,
    /// The longest delay before an event is appended to the log
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Time>,
}

/// Retries of failed turns.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetriesTable {
    /// The maximum number of further attempts
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// The delay before the second attempt; it doubles with each further one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_delay: Option<Time>,
    /// Retry a turn that has called tools
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tools: Option<bool>,
    /// Pause a conversation until the end of a rate limit
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_on_rate_limit: Option<bool>,
}

/// How long data is kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionTable {
    /// How long events of ended turns are kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Time>,
    /// The number of events of one conversation that are kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_per_conversation: Option<NonZeroU32>,
    /// How long ended turns and deliveries are kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Time>,
    /// How long attachments are kept after their last use, even if a message refers to them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Time>,
}
