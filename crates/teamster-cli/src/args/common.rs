//! The options that `run`, `chat` and `session` share, as typed.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use super::choices::{Delivery, Mode, Permission, Prompt, ToolOutput, Trust};
use super::values;

const CONVERSATION: &str = "Conversation";
pub(super) const INSTRUCTIONS: &str = "Instructions";
pub(super) const PERMISSIONS: &str = "Permissions";
pub(super) const LIMITS: &str = "Limits";
const CLI: &str = "The agent's CLI";
pub(super) const OUTPUT: &str = "Output";

// No doc comment here: clap would use it in place of the command's own description.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; a request has enums in their place")]
pub(crate) struct CommonArgs {
    /// Use this agent; auto: the first one with a login here
    ///
    /// Without it, claude is used if it is installed, otherwise auto.
    #[arg(short, long, value_name = "NAME", default_value = teamster::Registry::DEFAULT)]
    #[arg(value_parser = values::AgentName, hide_possible_values = true)]
    pub(crate) agent: String,

    /// Use this profile of the configuration file
    ///
    /// A profile is a table [profiles.NAME] with settings. Options on the command line and environment variables override
    /// it. See docs/configuration.md.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Use this model, named as the agent names it
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Set the reasoning effort, named as the agent names it
    ///
    /// Example: --effort high
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    pub(crate) effort: Option<String>,

    /// Set the agent's working directory
    ///
    /// Relative paths in other options are resolved against teamster's own working directory.
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Resume this session; the start of its id is enough
    ///
    /// Without an id, a list of the agent's sessions in the working directory opens. teamster sessions prints the sessions.
    #[arg(short, long, value_name = "ID", help_heading = CONVERSATION, group = "existing_session")]
    #[arg(num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// Resume the agent's newest session of the directory
    ///
    /// That is the session of --agent that was used last in exactly this working directory. If there is none, a new session is
    /// started. A note names another agent that has a newer one.
    #[arg(long = "continue", help_heading = CONVERSATION, group = "existing_session")]
    pub(crate) continue_last: bool,

    /// With --resume or --continue: copy the history into a new session
    #[arg(long, requires = "existing_session", help_heading = CONVERSATION, hide_short_help = true)]
    pub(crate) fork: bool,

    /// Replace the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = INSTRUCTIONS, conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// Replace the agent's system prompt with a file's text
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Append to the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = INSTRUCTIONS, conflicts_with = "append_system_prompt_file")]
    pub(crate) append_system_prompt: Option<String>,

    /// Append a file's text to the agent's system prompt
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// Require an answer that matches a schema
    ///
    /// The value is a file or the schema itself. The result contains the answer as structuredOutput; the formats pretty
    /// and text print it. Example: `--schema '{"type":"object","required":["name"]}'`
    #[arg(long, value_name = "FILE|JSON", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) schema: Option<String>,

    /// Add MCP servers (repeatable)
    ///
    /// The value is a JSON or .toml file, or the JSON itself. ${NAME} is replaced by that environment variable. Each
    /// server name must be unique. Format: {"mcpServers": {"name": {"command": "..."}}}. See docs/mcp.md.
    #[arg(long, value_name = "FILE|JSON", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) mcp_config: Vec<String>,

    /// Ignore MCP servers of the user and of the project
    #[arg(long, help_heading = INSTRUCTIONS, hide_short_help = true)]
    pub(crate) mcp_strict: bool,

    /// Deliver MCP servers by: auto (default) or merge-restore
    ///
    /// auto passes the servers to the agent without changing any of the user's files. merge-restore adds them to the agent's
    /// configuration file and removes them when the run ends. See docs/mcp.md.
    #[arg(long, value_name = "DELIVERY", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) mcp_delivery: Delivery,

    /// Allow: read-only, ask (default), edit or full
    ///
    ///   read-only  reading only
    ///   ask        reading; every change needs permission, which run denies
    ///   edit       reading and editing files; other changes as with ask
    ///   full       everything
    #[arg(long, value_name = "MODE", help_heading = PERMISSIONS, verbatim_doc_comment)]
    #[arg(default_value = "ask", hide_default_value = true, hide_possible_values = true)]
    pub(crate) permission: Permission,

    /// Allow this tool (repeatable)
    ///
    /// The rule uses the agent's own tool name. Example: --allow-tool 'Bash(git diff:*)'. See docs/sessions.md.
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS, value_parser = values::rule)]
    pub(crate) allow_tool: Vec<String>,

    /// Deny this tool (repeatable)
    ///
    /// Example: --deny-tool 'Bash(rm:*)'
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS, value_parser = values::rule)]
    pub(crate) deny_tool: Vec<String>,

    /// Let the agent use this directory too (repeatable)
    #[arg(long, value_name = "DIR", help_heading = PERMISSIONS, value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Treat the project as: trusted (default) or untrusted
    ///
    /// With untrusted, agent configuration in the working directory is not used. Hooks, MCP servers and settings in it
    /// could run commands or send the vendor's key elsewhere. OpenCode cannot ignore such configuration, so it is not
    /// started where there is any.
    #[arg(long, value_name = "TRUST", help_heading = PERMISSIONS, hide_short_help = true)]
    #[arg(default_value = "trusted", hide_default_value = true, hide_possible_values = true)]
    pub(crate) project_trust: Trust,

    /// Interpret the prompt: agent (default) or literal
    ///
    /// With agent, the agent interprets the prompt: a leading / runs a command, @path reads a file. With literal, the
    /// model gets the prompt unchanged.
    #[arg(long, value_name = "MODE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(default_value = "agent", hide_default_value = true, hide_possible_values = true)]
    pub(crate) prompt_mode: Prompt,

    /// Stop after this many calls of the model
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::turns, allow_negative_numbers = true)]
    pub(crate) max_turns: Option<NonZeroU32>,

    /// Stop a run (or a session's turn) after this many tokens
    ///
    /// Input, cached and output tokens count. The agent is stopped after the model call that exceeds the limit.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::tokens, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_tokens: Option<NonZeroU64>,

    /// Limit the tokens of all turns of a session
    ///
    /// Once the limit is reached, further turns are rejected and nothing is sent.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::tokens, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_session_tokens: Option<NonZeroU64>,

    /// Limit the cost of all turns of a session
    ///
    /// Once the limit is reached, further turns are rejected and nothing is sent.
    #[arg(long, value_name = "USD", help_heading = LIMITS, value_parser = values::dollars, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_session_budget: Option<f64>,

    /// Stop a run that costs more, in US dollars
    ///
    /// In a session the limit applies to each turn. Example: --max-budget 0.5
    #[arg(long, value_name = "USD", help_heading = LIMITS, value_parser = values::dollars, allow_negative_numbers = true)]
    pub(crate) max_budget: Option<f64>,

    /// Stop a run that is silent this long [default: 5m]
    ///
    /// Time in which a tool runs does not count: see --tool-timeout. 0 disables a timeout. Examples of durations: 500ms,
    /// 90s, 5m, 1h30m.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Stop a run without output after its start [default: 5m]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) startup_timeout: Option<Duration>,

    /// Limit silence while a tool runs [default: 30m]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) tool_timeout: Option<Duration>,

    /// Stop a run that takes longer than this
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    pub(crate) deadline: Option<Duration>,

    /// Wait this long for the agent to exit [default: 1.5s]
    ///
    /// The time starts when the agent is asked to stop. After it, the agent is killed. 0 kills it immediately.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) grace: Option<Duration>,

    /// Keep background processes after the run
    ///
    /// Use it for servers and watchers that the agent starts. Without it they are killed at the end of the run. The
    /// result lists the kept processes. A run that is interrupted or stopped by a limit keeps none.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) keep_background: bool,

    /// Run this program as the agent's CLI
    ///
    /// A name without a slash is looked up in PATH.
    #[arg(long, value_name = "PROGRAM", help_heading = CLI, value_hint = ValueHint::CommandName)]
    pub(crate) cli_path: Option<PathBuf>,

    /// Use this configuration file
    ///
    /// It contains defaults, profiles and further agents. The default is ~/.config/teamster/config.toml. See
    /// docs/configuration.md.
    #[arg(long, value_name = "FILE", help_heading = CLI, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Use the CLI's interface: auto (default), exec or spawn
    ///
    ///   auto   the most capable interface: text deltas, graceful interrupt
    ///   exec   the one-shot interface
    ///   spawn  one process for each turn of a session; a run is one turn
    #[arg(long, value_name = "MODE", help_heading = CLI, hide_short_help = true, verbatim_doc_comment)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) mode: Mode,

    /// Pass this argument to the CLI unchanged (repeatable)
    #[arg(long, value_name = "ARG", help_heading = CLI, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) cli_arg: Vec<String>,

    /// Record the CLI's input and output in this file
    ///
    /// The file must not exist, unless --force is given. It is created with mode 0600, because it contains prompts and
    /// answers. Known secrets are replaced by their names. `teamster replay` shows the recording; `teamster fake` plays
    /// back its CLI.
    #[arg(long, value_name = "FILE", help_heading = CLI, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,

    /// With --record: record the exact bytes, secrets included
    #[arg(long, requires = "record", help_heading = CLI, hide_short_help = true)]
    pub(crate) record_raw: bool,

    /// With --record: replace an existing file
    ///
    /// Links, pipes and devices are never replaced.
    #[arg(long, requires = "record", help_heading = CLI, hide_short_help = true)]
    pub(crate) force: bool,

    /// Fail if the system prevents full process control
    ///
    /// Process control is limited where the system hides processes or denies handles to them. By default the CLI starts
    /// there with a warning. See docs/security.md for what is not guaranteed in that case.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) require_process_control: bool,

    /// Set an environment variable for the CLI (repeatable)
    #[arg(long, value_name = "NAME=VALUE", help_heading = CLI, value_parser = values::variable, hide_short_help = true)]
    pub(crate) env: Vec<(String, String)>,

    /// Pass only these environment variables on (repeatable)
    ///
    /// Variables that every agent needs, such as PATH and HOME, are also passed. The agent's key is not: name it here,
    /// unless the agent is logged in. Variables of --env are always set. Example: `--env-only 'ANTHROPIC_API_KEY,AWS_*'`
    #[arg(long, value_name = "NAME,...", help_heading = CLI, value_delimiter = ',', hide_short_help = true)]
    #[arg(conflicts_with = "withhold_keys")]
    pub(crate) env_only: Option<Vec<String>>,

    /// Withhold keys of other services from the CLI
    ///
    /// It removes environment variables with keys of other vendors, of cloud providers and of code hosts.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) withhold_keys: bool,

    /// With --withhold-keys: pass these keys on (repeatable)
    #[arg(long, value_name = "NAME,...", help_heading = CLI, value_delimiter = ',', hide_short_help = true)]
    #[arg(requires = "withhold_keys")]
    pub(crate) keep_key: Vec<String>,

    /// Show the output of tools: none, short or full
    ///
    ///   none   not at all
    ///   short  the last lines
    ///   full   everything
    ///
    /// The format pretty and a chat show it. The default is short on a terminal, otherwise none.
    #[arg(long, value_name = "AMOUNT", help_heading = OUTPUT, hide_short_help = true, verbatim_doc_comment)]
    #[arg(hide_possible_values = true)]
    pub(crate) tool_output: Option<ToolOutput>,

    /// Emit whole messages instead of text deltas
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) whole_messages: bool,

    /// Append tokens and cost of each run to this file
    ///
    /// `teamster usage` sums them. The file contains the time, the agent, the model, the directory, the session id and the
    /// outcome, but no prompts and no answers. Only the user can read it. By default nothing is stored. See
    /// docs/configuration.md.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) usage_journal: Option<PathBuf>,

    /// Add this label to every event and log line (repeatable)
    ///
    /// The events of --output ndjson and of a session contain it in "labels". Do not use secrets. Example: --label
    /// team=search
    #[arg(long, value_name = "KEY=VALUE", help_heading = OUTPUT, hide_short_help = true, value_parser = values::label)]
    pub(crate) label: Vec<(String, String)>,
}
