//! The request of a run or session: a prompt and its options. It is validated before anything is started.

mod attachment;
mod builder;
mod command;
mod environment;
mod limits;
mod mcp;
mod options;
mod permissions;
mod retries;
mod schema;
mod session;
mod validate;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attachment::{Attachment, AttachmentKind};
pub use command::{Decision, InvalidAnswer, SessionCommand};
pub use environment::{BASE_VARIABLES, Inherit, env_name_matches};
pub use limits::Limits;
pub use mcp::{McpEndpoint, McpServer, McpTransport};
pub use options::{
    AgentInterface, Conversation, McpDelivery, OrphanPolicy, OutputMode, ProjectTrust, PromptMode, UserMcpServers,
};
pub use permissions::{PermissionMode, Permissions};
pub use retries::{Retries, RetryPolicy};
pub use session::{Answer, Prompt, with_instructions};
pub use validate::{RequestError, validate_argument};

/// The request of a run: a prompt and its options. Without a prompt, the request of a session.
///
/// ```
/// use teamster_types::request::{PermissionMode, RunRequest};
///
/// let request = RunRequest::new("Fix the failing test")
///     .with_model("sonnet")
///     .with_permission_mode(PermissionMode::Edit);
/// request.validate()?;
/// # Ok::<(), teamster_types::request::RequestError>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunRequest {
    /// The prompt.
    pub prompt: String,
    /// Files that are sent to the model with the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The agent's working directory. The default is the working directory of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The model, named as the agent names it. The default is the agent's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reasoning effort, named as the agent names it (`low`, `high`, ...).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether the run starts a new conversation, or which one it resumes.
    pub conversation: Conversation,
    /// Replaces the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Is appended to the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// What the agent may do.
    pub permissions: Permissions,
    /// The maximum number of turns (calls of the model).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
    /// The maximum cost of the run in US dollars; in a session, of each turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// The maximum cost of all turns of the session in US dollars. A run is a session of one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_session_budget_usd: Option<f64>,
    /// The maximum number of tokens of the run; in a session, of each turn. All kinds count: read, cached and generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU64>,
    /// The maximum number of tokens of all turns of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_session_tokens: Option<NonZeroU64>,
    /// Further directories that the agent may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<PathBuf>,
    /// MCP servers of this run, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Whether the MCP servers of the user's configuration are used too.
    pub user_mcp_servers: UserMcpServers,
    /// How the MCP servers of this run are passed to the agent.
    pub mcp_delivery: McpDelivery,
    /// The JSON schema that the answer must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Variables added to the CLI's environment. The values are secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Which variables the CLI inherits from this process.
    pub inherit: Inherit,
    /// The CLI's program: a name, which is searched in PATH, or a path, relative to the directory of the host process. The
    /// default is the agent's usual name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_path: Option<PathBuf>,
    /// Arguments that are passed to the CLI unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cli_args: Vec<String>,
    /// Whether the agent may use the agent configuration in the working directory.
    pub project_trust: ProjectTrust,
    /// Whether the agent may interpret the prompt.
    pub prompt_mode: PromptMode,
    /// The interface of the CLI that is used.
    #[serde(rename = "mode")]
    pub interface: AgentInterface,
    /// When the text of the answer is emitted.
    pub output: OutputMode,
    /// What happens to processes that are alive when the CLI exits.
    pub orphans: OrphanPolicy,
    /// Whether the agent may continue work in the background between turns (sessions only). When such work ends, the agent
    /// may start a turn by itself.
    pub background_tasks: bool,
    /// The file for a [recording](crate::recording) of the CLI's input and output. It is created with mode 0600 and must not
    /// exist. Only the host can set it; it is not part of the JSON form.
    #[serde(skip)]
    pub record: Option<PathBuf>,
    /// Whether the recording contains the exact bytes. By default, known secrets are redacted.
    #[serde(skip)]
    pub record_raw: bool,
    /// Whether the recording may replace an existing regular file.
    #[serde(skip)]
    pub record_overwrite: bool,
    /// Time limits.
    pub limits: Limits,
    /// Retries after transient failures.
    pub retries: Retries,
    /// The key of the run in the queue, such as a user or a conversation. The queue takes turns from the keys in rotation, so
    /// that a key with many waiting turns does not delay the others. Runs without a key share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_key: Option<String>,
    /// The caller's labels, by name. They are on every stamped event and in logs; they are not secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl std::fmt::Debug for RunRequest {
    /// Shows neither the prompt nor the values of variables.
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
            .field("orphans", &self.orphans)
            .field("background_tasks", &self.background_tasks)
            .field("prompt_mode", &self.prompt_mode)
            .field("interface", &self.interface)
            .field("output", &self.output)
            .field("limits", &self.limits)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
