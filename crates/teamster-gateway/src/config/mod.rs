//! The configuration of the gateway, as data. `teamster serve` reads it from the user's file, variables and flags.

pub(crate) mod cost;
pub mod file;
mod rules;
pub(crate) mod separation;
mod variables;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use teamster::request::{PermissionMode, ProjectTrust};

pub(crate) use rules::{API, EVERYONE, resolve_message, rule_for};
pub use rules::{ConversationSettings, ForkOrigin, Origin, Rule, TurnSettings, resolve};

/// The configuration of the gateway.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where the API listens.
    pub listen: SocketAddr,
    /// A proxy in front of the gateway terminates TLS.
    pub behind_proxy: bool,
    /// Certificate and key, for TLS.
    pub tls: Option<Tls>,
    /// Names under which clients reach the gateway, for the check of `Host` and `Origin`. Loopback names are always allowed.
    pub hosts: Vec<String>,
    /// The file that the configuration was read from. Agents do not get it from the gateway.
    pub file: Option<PathBuf>,
    /// The directory of the store, attachments and the first token. Agents cannot work in it, above it or below it.
    pub data_dir: PathBuf,
    /// What turns use unless a rule or the conversation selects something else.
    pub turn: TurnDefaults,
    /// Directories below which agents may work. Empty: only the default directory.
    pub roots: Vec<PathBuf>,
    /// The rules. The first that matches applies.
    pub rules: Vec<Rule>,
    /// Instructions for agents.
    pub instructions: Instructions,
    /// The operator's hooks.
    pub hooks: Vec<crate::hooks::HookConfig>,
    /// The tools of the gateway for agents.
    pub tools: crate::tools::ToolsConfig,
    /// Upper bounds of schedules.
    pub schedules: crate::schedules::ScheduleLimits,
    /// Settings of all channels.
    pub channels: crate::channels::ChannelSettings,
    /// The webhook channels.
    pub webhooks: Vec<crate::channels::WebhookConfig>,
    /// The Discord bot.
    pub discord: Option<file::DiscordTable>,
    /// The Slack app.
    pub slack: Option<file::SlackTable>,
    /// The Telegram bot.
    pub telegram: Option<file::TelegramTable>,
    /// Upper bounds.
    pub limits: Limits,
    /// Time limits and intervals.
    pub timing: Timing,
    /// Retries of failed turns.
    pub retries: Retries,
    /// What happens to a turn that a crash has interrupted after it had an effect.
    pub interrupted: Interrupted,
    /// How long data is kept.
    pub retention: Retention,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The chain of certificates, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// What turns use unless something else is selected.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDefaults {
    /// The agent.
    pub agent: String,
    /// The program of the agent's CLI.
    pub cli_path: Option<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// What the agent may do.
    pub permission: PermissionMode,
    /// Rules of allowed tools.
    pub allow_tools: Vec<String>,
    /// Whether the configuration that a working directory has for agents is used: hooks, servers, instructions.
    pub project_trust: ProjectTrust,
    /// Environment variables with keys that agents inherit, besides their own keys. A name may contain one `*`.
    pub keep_keys: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// The maximum number of model calls of a turn.
    pub max_turns: Option<NonZeroU32>,
    /// The longest time of a turn. `None` has no limit.
    pub deadline: Option<Duration>,
}

/// Instructions that are appended to the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Markdown files, read again when they change.
    pub files: Vec<PathBuf>,
    /// A text.
    pub text: Option<String>,
}

/// Upper bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Running turns of a worker.
    pub max_running: u32,
    /// Running turns of a chat.
    pub max_running_per_chat: u32,
    /// Waiting turns of a chat.
    pub queue_per_chat: u32,
    /// Waiting turns of all conversations.
    pub queue_total: u32,
    /// Events of one turn. A turn with more is aborted.
    pub events_per_turn: u64,
    /// The size of a request's body.
    pub body_bytes: usize,
    /// The size of all attachments of a message.
    pub attachment_bytes: usize,
    /// The size of the attachments of all messages.
    pub files_bytes: u64,
    /// The size of the store. `None` has no limit.
    pub store_bytes: Option<u64>,
    /// Open event streams in total.
    pub subscribers: usize,
    /// Requests of a token or an address per second.
    pub requests_per_second: NonZeroU32,
    /// Concurrent requests of a token or an address, without event streams.
    pub concurrent_requests: usize,
    /// Idle sessions that stay open.
    pub idle_sessions: usize,
}

/// Time limits and intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a session stays open without a turn.
    pub idle_timeout: Duration,
    /// How long a claim lasts without a renewal.
    pub lease: Duration,
    /// How long a conversation waits for the host with its session files.
    pub affinity_timeout: Duration,
    /// How long a permission request waits for an answer.
    pub permission_timeout: Duration,
    /// The interval of comments on a silent event stream.
    pub heartbeat: Duration,
    /// How long a shutdown waits for running turns.
    pub shutdown_timeout: Duration,
    /// The longest delay before a delta is appended to the log.
    pub batch: Duration,
}

/// Retries of failed turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of further attempts.
    pub max: u32,
    /// The delay before the second attempt. It doubles with each further one.
    pub first_delay: Duration,
    /// Whether a turn that has called tools is retried.
    pub after_tools: bool,
    /// Whether a conversation pauses until the end of a rate limit.
    pub pause_on_rate_limit: bool,
}

/// What happens to a turn that a crash has interrupted after it had an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupted {
    /// The interruption is reported in the chat, and the turn has failed.
    #[default]
    Report,
    /// The agent is asked to continue, in the same session.
    Resume,
}

/// How long data is kept. `None` keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Events of ended turns.
    pub events: Option<Duration>,
    /// The number of events of a conversation.
    pub events_per_conversation: Option<u64>,
    /// Ended turns and deliveries.
    pub turns: Option<Duration>,
    /// Attachments, since they were sent last.
    pub files: Option<Duration>,
}

/// Returns a message of the library with the gateway's keys instead of the fields of a request.
pub fn with_keys(message: &str) -> String {
    message.replace("`inherit.keep`", "`serve.keep_keys`")
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4780)),
            behind_proxy: false,
            tls: None,
            hosts: Vec::new(),
            file: None,
            data_dir: PathBuf::from("."),
            turn: TurnDefaults::default(),
            roots: Vec::new(),
            rules: Vec::new(),
            instructions: Instructions::default(),
            hooks: Vec::new(),
            tools: crate::tools::ToolsConfig::default(),
            schedules: crate::schedules::ScheduleLimits::default(),
            channels: crate::channels::ChannelSettings::default(),
            webhooks: Vec::new(),
            discord: None,
            slack: None,
            telegram: None,
            limits: Limits::default(),
            timing: Timing::default(),
            retries: Retries::default(),
            interrupted: Interrupted::default(),
            retention: Retention::default(),
        }
    }
}

impl Default for TurnDefaults {
    fn default() -> Self {
        Self {
            agent: "claude".to_owned(),
            cli_path: None,
            model: None,
            permission: PermissionMode::Ask,
            allow_tools: Vec::new(),
            project_trust: ProjectTrust::Untrusted,
            keep_keys: Vec::new(),
            directory: PathBuf::from("."),
            max_turns: NonZeroU32::new(25),
            deadline: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_running: 16,
            max_running_per_chat: 4,
            queue_per_chat: 100,
            queue_total: 10_000,
            events_per_turn: 100_000,
            body_bytes: 10 << 20,
            attachment_bytes: 20 << 20,
            files_bytes: 10 << 30,
            store_bytes: None,
            subscribers: 1_000,
            requests_per_second: NonZeroU32::new(50).unwrap_or(NonZeroU32::MIN),
            concurrent_requests: 32,
            idle_sessions: 32,
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_mins(10),
            lease: Duration::from_secs(30),
            affinity_timeout: Duration::from_mins(1),
            permission_timeout: Duration::from_hours(1),
            heartbeat: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(30),
            batch: Duration::from_millis(25),
        }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self { max: 3, first_delay: Duration::from_secs(5), after_tools: false, pause_on_rate_limit: true }
    }
}
