//! What a caller asks for: one prompt with everything around it, checked before anything is started.

mod attachment;
mod command;
mod environment;
mod limits;
mod mcp;
mod retries;
mod session;
mod validate;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attachment::{Attachment, AttachmentKind};
pub use command::{Decision, NoAnswer, SessionCommand};
pub use environment::{BASE_VARIABLES, Inherit, env_name_matches};
pub use limits::Limits;
pub use mcp::{McpEndpoint, McpServer, McpTransport};
pub use retries::{Retries, RetryPolicy};
pub use session::{Answer, Prompt, with_instructions};
pub use validate::{RequestError, validate_argument};

use crate::event::SessionId;

/// One run: a prompt and everything around it.
///
/// ```
/// use teamster_types::request::{PermissionMode, RunRequest};
///
/// let mut request = RunRequest::new("Fix the failing test");
/// request.model = Some("sonnet".into());
/// request.permissions.mode = PermissionMode::Edit;
/// request.validate()?;
/// # Ok::<(), teamster_types::request::RequestError>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunRequest {
    /// What the model is told.
    pub prompt: String,
    /// Files that go to the model with the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Where the agent works; the caller's directory if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The model, in the agent's words; the agent's default if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard the model is to think, in the agent's words (`low`, `high`, ...).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// A fresh conversation, or which one to go on with.
    pub conversation: Conversation,
    /// Replaces the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Is added to the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// What the agent may do.
    pub permissions: Permissions,
    /// How many turns (calls of the model) the agent may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
    /// How many US dollars the run may cost; in a session, each turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// How many US dollars all turns of the session may cost together. A run is a session of one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_session_budget_usd: Option<f64>,
    /// How many tokens the run may use; in a session, each turn. All kinds are counted: read, cached and generated ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU64>,
    /// How many tokens all turns of the session may use together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_session_tokens: Option<NonZeroU64>,
    /// Directories beside the working directory that the agent may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<PathBuf>,
    /// MCP servers of this run, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Whether the user's own MCP servers are there too.
    pub user_mcp_servers: UserMcpServers,
    /// How the agent gets them.
    pub mcp_delivery: McpDelivery,
    /// The JSON schema that the answer must follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Variables added to the CLI's environment. Values are secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What the CLI inherits of the host's environment.
    pub inherit: Inherit,
    /// The CLI's program, where the agent's usual name is not the right one: a name or a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_path: Option<PathBuf>,
    /// Arguments passed to the CLI as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cli_args: Vec<String>,
    /// Whether the agent may use agent configuration that it finds in the working directory.
    pub project_trust: ProjectTrust,
    /// Whether the agent may interpret the prompt.
    pub prompt_mode: PromptMode,
    /// In which of its forms the agent is driven.
    pub mode: Mode,
    /// How the answer is to come.
    pub output: OutputMode,
    /// What becomes of processes that the agent started and left.
    pub background: Background,
    /// Whether the agent may go on with something in the background when it has answered; in a session only.
    pub background_tasks: BackgroundTasks,
    /// A file in which what goes in and out of the CLI is [recorded](crate::recording), created with mode 0600. It must
    /// not exist yet. It belongs to the host: a request from elsewhere cannot name one.
    #[serde(skip)]
    pub record: Option<PathBuf>,
    /// Whether the recording holds the exact bytes. Otherwise known secrets are taken out of it.
    #[serde(skip)]
    pub record_raw: bool,
    /// Whether the recording may replace a regular file that exists. Otherwise that is an error.
    #[serde(skip)]
    pub record_overwrite: bool,
    /// How long things may take.
    pub limits: Limits,
    /// How often a run that failed in passing is started again.
    pub retries: Retries,
    /// For whom this runs: a user, a conversation. Turns that wait for a place are taken from one key after the other, so that
    /// no key with many turns delays the others. Without it they are in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_key: Option<String>,
    /// The caller's labels, by name: they are on every stamped event and in logs. They are not secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl RunRequest {
    /// A run of this prompt with every default.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }
}

impl std::fmt::Debug for RunRequest {
    /// Shows the shape of the request, neither prompts nor values of variables.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RunRequest")
            .field("prompt", &format_args!("{} bytes", self.prompt.len()))
            .field("attachments", &self.attachments.len())
            .field("cwd", &self.cwd)
            .field("model", &self.model)
            .field("conversation", &self.conversation)
            .field("permissions", &self.permissions)
            .field("mcp_servers", &self.mcp_servers)
            .field("user_mcp_servers", &self.user_mcp_servers)
            .field("mcp_delivery", &self.mcp_delivery)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("inherit", &self.inherit)
            .field("cli_path", &self.cli_path)
            .field("project_trust", &self.project_trust)
            .field("background", &self.background)
            .field("background_tasks", &self.background_tasks)
            .field("prompt_mode", &self.prompt_mode)
            .field("mode", &self.mode)
            .field("output", &self.output)
            .field("limits", &self.limits)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Which conversation a run belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Conversation {
    /// A new one.
    #[default]
    New,
    /// Goes on with this one.
    Resume(SessionId),
    /// Begins a new one with this one's history.
    Fork(SessionId),
    /// Goes on with the newest one of the working directory, or begins a new one where there is none.
    Continue,
}

/// In which of its forms an agent is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// In the one that serves best: a run as one turn of the agent's live form where that tells more, a session on one process
    /// where the agent has a form that lives.
    #[default]
    Auto,
    /// In its one-shot form, in a session too: each turn is a run of its own.
    Exec,
    /// As a process for each turn of a session, in the form that serves best. A run is one such turn.
    Spawn,
}

/// How the answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OutputMode {
    /// As it is made: deltas of text where the agent has them.
    #[default]
    Stream,
    /// Message by message: no deltas, otherwise as `Stream`.
    Messages,
    /// One document at the end, where the agent has that form.
    Batch,
}

/// Whether a working directory's own agent configuration is used: it can run hooks, start MCP servers, and send the
/// vendor's key elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ProjectTrust {
    /// As the agent does by itself.
    #[default]
    Trusted,
    /// Nothing of it is used.
    Untrusted,
}

/// What becomes of the MCP servers that the agent finds in the user's and the project's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum UserMcpServers {
    /// They are there beside those of the request.
    #[default]
    Used,
    /// They are not started: the servers of the request are all there are.
    LeftOut,
}

/// How an agent gets the MCP servers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum McpDelivery {
    /// By arguments, variables and private files: no file of the user's is touched.
    #[default]
    Auto,
    /// By the user's own configuration file, into which they are put for as long as the run lives.
    MergeRestore,
}

/// What becomes of processes of the agent's that are alive when it exits: servers, watchers, jobs of its shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Background {
    /// They end with the run.
    #[default]
    End,
    /// They live on, and the result says who they are. Only if the agent exits by itself: what is aborted, or ended by a
    /// limit, is ended whole, and so is the run of a host that dies.
    Keep,
}

/// Whether the agent may go on with something in the background when it has answered: a command, a subagent. When that has ended,
/// the agent may begin a turn that nobody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum BackgroundTasks {
    /// It has no means for that, where it would begin turns by itself.
    #[default]
    Off,
    /// It may.
    On,
}

/// What becomes of a prompt that means something to the agent: a leading `/` runs a command, `@path` reads a file of the
/// host, `$name` injects a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PromptMode {
    /// As the agent does by itself.
    #[default]
    Agent,
    /// The model gets the text as it is.
    Literal,
}

/// What the agent may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Permissions {
    /// The mode.
    pub mode: PermissionMode,
    /// Tools that are allowed without asking, with the agent's own names of them (`Bash(git diff:*)`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Tools that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl Permissions {
    /// Creates permissions of this mode, without rules.
    #[must_use]
    pub fn new(mode: PermissionMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Adds rules for tools that are allowed without a request.
    #[must_use]
    pub fn with_allow(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allow.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds rules for tools that are denied.
    #[must_use]
    pub fn with_deny(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.deny.extend(rules.into_iter().map(Into::into));
        self
    }
}

/// Permission modes, with one meaning for every agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Reads only.
    ReadOnly,
    /// What changes something is asked for; in a run, which cannot ask, it is denied.
    #[default]
    Ask,
    /// File edits are allowed; other things are asked for.
    Edit,
    /// Everything is allowed. Never the default.
    Full,
}
