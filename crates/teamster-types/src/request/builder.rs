//! Builder methods of a request.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde_json::Value;

use super::{
    Attachment, Conversation, Inherit, Limits, McpServer, OrphanPolicy, OutputMode, PermissionMode, Permissions,
    ProjectTrust, PromptMode, Retries, RunRequest,
};

impl RunRequest {
    /// Creates a request with this prompt and default options.
    #[must_use]
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }

    /// Creates the request of a session: it has no prompt.
    #[must_use]
    pub fn session() -> Self {
        Self::default()
    }

    /// Sets the working directory.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn with_effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// Sets the conversation to start, resume or fork.
    #[must_use]
    pub fn with_conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = conversation;
        self
    }

    /// Sets a system prompt that replaces the agent's.
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(system_prompt.into());
        self
    }

    /// Sets a text that is appended to the agent's system prompt.
    #[must_use]
    pub fn with_append_system_prompt(mut self, append_system_prompt: impl Into<String>) -> Self {
        self.append_system_prompt = Some(append_system_prompt.into());
        self
    }

    /// Sets the permissions.
    #[must_use]
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Sets the permission mode. Rules stay as they are.
    #[must_use]
    pub fn with_permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permissions.mode = mode;
        self
    }

    /// Sets the maximum number of turns.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: NonZeroU32) -> Self {
        self.max_turns = Some(max_turns);
        self
    }

    /// Sets the maximum cost of the run in US dollars; in a session, of each turn.
    #[must_use]
    pub fn with_max_budget_usd(mut self, max_budget_usd: f64) -> Self {
        self.max_budget_usd = Some(max_budget_usd);
        self
    }

    /// Sets the JSON schema that the answer must match.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets which variables the CLI inherits.
    #[must_use]
    pub fn with_inherit(mut self, inherit: Inherit) -> Self {
        self.inherit = inherit;
        self
    }

    /// Sets the CLI's program.
    #[must_use]
    pub fn with_cli_path(mut self, cli_path: impl Into<PathBuf>) -> Self {
        self.cli_path = Some(cli_path.into());
        self
    }

    /// Sets whether agent configuration in the working directory is used.
    #[must_use]
    pub fn with_project_trust(mut self, project_trust: ProjectTrust) -> Self {
        self.project_trust = project_trust;
        self
    }

    /// Sets whether the agent may interpret the prompt.
    #[must_use]
    pub fn with_prompt_mode(mut self, prompt_mode: PromptMode) -> Self {
        self.prompt_mode = prompt_mode;
        self
    }

    /// Sets when the text of the answer is emitted.
    #[must_use]
    pub fn with_output(mut self, output: OutputMode) -> Self {
        self.output = output;
        self
    }

    /// Sets what happens to processes that are alive when the CLI exits.
    #[must_use]
    pub fn with_orphans(mut self, orphans: OrphanPolicy) -> Self {
        self.orphans = orphans;
        self
    }

    /// Sets the time limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the retries after transient failures.
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the key in the queue.
    #[must_use]
    pub fn with_queue_key(mut self, queue_key: impl Into<String>) -> Self {
        self.queue_key = Some(queue_key.into());
        self
    }

    /// Adds a file that is sent to the model with the prompt.
    #[must_use]
    pub fn with_attachment(mut self, attachment: Attachment) -> Self {
        self.attachments.push(attachment);
        self
    }

    /// Adds a directory that the agent may use.
    #[must_use]
    pub fn with_add_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.add_dirs.push(directory.into());
        self
    }

    /// Adds an MCP server. It replaces a server with the same name.
    #[must_use]
    pub fn with_mcp_server(mut self, name: impl Into<String>, server: McpServer) -> Self {
        self.mcp_servers.insert(name.into(), server);
        self
    }

    /// Adds a variable to the CLI's environment. The value is a secret.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}
