//! The options that a run and a session share: in what frame the agent works, as typed.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use super::values;

const CONVERSATION: &str = "Conversation";
pub(super) const INSTRUCTIONS: &str = "Instructions";
pub(super) const PERMISSIONS: &str = "Permissions";
pub(super) const LIMITS: &str = "Limits";
const CLI: &str = "The agent's CLI";
pub(super) const OUTPUT: &str = "Output";

// What is said of the command stands with the commands: a doc comment here would take its place.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; a request has enums in their place")]
pub(crate) struct FrameArgs {
    /// Which agent runs
    #[arg(short, long, value_name = "NAME", default_value = teamster::Registry::DEFAULT, hide_default_value = true)]
    #[arg(value_parser = values::AgentName)]
    pub(crate) agent: String,

    /// Its model, in the agent's own words
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// How hard the model is to think, in the agent's own words
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    pub(crate) effort: Option<String>,

    /// Where the agent works
    ///
    /// Relative paths in other options count from where teamster was started.
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Go on with this session
    #[arg(short, long, value_name = "ID", help_heading = CONVERSATION, conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,

    /// Go on with the newest session of the directory
    ///
    /// Where there is none, a new one begins.
    #[arg(long = "continue", help_heading = CONVERSATION)]
    pub(crate) continue_last: bool,

    /// With --resume: begin a new session with that one's history
    #[arg(long, requires = "resume", help_heading = CONVERSATION, hide_short_help = true)]
    pub(crate) fork: bool,

    /// Replace the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = INSTRUCTIONS, conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// Replace the agent's system prompt by this file's text
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Add to the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = INSTRUCTIONS, conflicts_with = "append_system_prompt_file")]
    pub(crate) append_system_prompt: Option<String>,

    /// Add this file's text to the agent's system prompt
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// JSON schema that the answer must follow
    ///
    /// A file, or the schema itself. The answer is in the result's structuredOutput, and in the formats for people it
    /// is printed.
    #[arg(long, value_name = "FILE|JSON", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) schema: Option<String>,

    /// MCP servers for this run (repeatable)
    ///
    /// A file (JSON, or .toml), or the JSON itself, in the usual form: {"mcpServers": {"name": {"command": "..."}}}.
    /// ${NAME} stands for a variable. A name may come once only. docs/mcp.md says more.
    #[arg(long, value_name = "FILE|JSON", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) mcp_config: Vec<String>,

    /// Leave out the MCP servers of the user's and the project's configuration
    #[arg(long, help_heading = INSTRUCTIONS, hide_short_help = true)]
    pub(crate) mcp_strict: bool,

    /// auto (default), or merge-restore: by the agent's own configuration file
    ///
    /// By themselves MCP servers reach an agent without a change to any file. With merge-restore they are put into the file
    /// from which it takes the user's own ones, for as long as the run lives. More: docs/mcp.md
    #[arg(long, value_name = "DELIVERY", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) mcp_delivery: Delivery,

    /// read-only, ask (default), edit or full
    ///
    ///   read-only  it may read
    ///   ask        what changes something is asked for; a run, which cannot ask, denies it
    ///   edit       it may edit files; other changes as with ask
    ///   full       it may do everything
    #[arg(long, value_name = "MODE", help_heading = PERMISSIONS, verbatim_doc_comment)]
    #[arg(default_value = "ask", hide_default_value = true, hide_possible_values = true)]
    pub(crate) permission: Permission,

    /// Allow this tool (repeatable)
    ///
    /// A rule with the agent's own name of the tool, such as 'Bash(git diff:*)'. docs/sessions.md says what rules mean.
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS)]
    pub(crate) allow_tool: Vec<String>,

    /// Deny this tool (repeatable)
    ///
    /// A rule such as 'Bash(rm:*)'.
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS)]
    pub(crate) deny_tool: Vec<String>,

    /// Let the agent use this directory too (repeatable)
    #[arg(long, value_name = "DIR", help_heading = PERMISSIONS, value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// trusted (default), or untrusted: agent configuration in the directory is not used
    ///
    /// A directory of strangers can carry hooks, MCP servers and settings that send the vendor's key elsewhere. OpenCode uses its
    /// configuration there whatever it is told, so that it is not started where there is any.
    #[arg(long, value_name = "TRUST", help_heading = PERMISSIONS, hide_short_help = true)]
    #[arg(default_value = "trusted", hide_default_value = true, hide_possible_values = true)]
    pub(crate) project_trust: Trust,

    /// agent (default), or literal: the model gets the prompt as it is
    ///
    /// By themselves agents interpret prompts: a leading / runs a command, @path reads a file.
    #[arg(long, value_name = "MODE", help_heading = INSTRUCTIONS, hide_short_help = true)]
    #[arg(default_value = "agent", hide_default_value = true, hide_possible_values = true)]
    pub(crate) prompt_mode: Prompt,

    /// How often the model may be called
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::turns, allow_negative_numbers = true)]
    pub(crate) max_turns: Option<NonZeroU32>,

    /// How many tokens the run may use (each turn of a session)
    ///
    /// Counts all kinds: read, cached and generated tokens. The agent is stopped after the call of the model that passes the limit.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::tokens, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_tokens: Option<NonZeroU64>,

    /// How many tokens all turns of a session may use
    ///
    /// When they are used up, further turns are refused and nothing is sent.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::tokens, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_session_tokens: Option<NonZeroU64>,

    /// How much all turns of a session may cost, in US dollars
    ///
    /// When it is spent, further turns are refused and nothing is sent.
    #[arg(long, value_name = "USD", help_heading = LIMITS, value_parser = values::dollars, allow_negative_numbers = true)]
    #[arg(hide_short_help = true)]
    pub(crate) max_session_budget: Option<f64>,

    /// How much the run may cost, in US dollars
    ///
    /// In a session it holds for each turn.
    #[arg(long, value_name = "USD", help_heading = LIMITS, value_parser = values::dollars, allow_negative_numbers = true)]
    pub(crate) max_budget: Option<f64>,

    /// End a run that is silent for so long [default: 5m]
    ///
    /// Silence counts while no tool runs. Here and below a duration is written 500ms, 90s, 5m or 1h30m; a timeout of 0
    /// is none.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,

    /// End a run without a sign of life for so long after its start [default: 2m]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) startup_timeout: Option<Duration>,

    /// End a run that is silent for so long while a tool runs [default: 30m]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) tool_timeout: Option<Duration>,

    /// End a run that takes longer in all
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    pub(crate) deadline: Option<Duration>,

    /// How long the agent may take to end when asked to [default: 1.5s]
    ///
    /// Then it is ended harder; with 0, at once.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) grace: Option<Duration>,

    /// Keep processes that the agent leaves in the background
    ///
    /// Servers and watchers, for instance. Otherwise they end with the run. The result names them; a run that is
    /// interrupted, or ended by a limit, keeps none.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) keep_background: bool,

    /// The CLI's program, if not the usual one
    ///
    /// A name that is looked up in PATH, or a path.
    #[arg(long, value_name = "PROGRAM", help_heading = CLI, value_hint = ValueHint::CommandName)]
    pub(crate) cli_path: Option<PathBuf>,

    /// Agents of your own, by name [default: ~/.config/teamster/config.toml]
    ///
    /// A TOML file that names programs which speak ACP; docs/acp.md says more.
    #[arg(long, value_name = "FILE", help_heading = CLI, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// auto (default), exec or spawn: in which of its forms the CLI is driven
    ///
    ///   auto   the form that serves best: deltas, a polite interrupt
    ///   exec   its one-shot form
    ///   spawn  a process for each turn of a session; a run is one turn
    #[arg(long, value_name = "MODE", help_heading = CLI, hide_short_help = true, verbatim_doc_comment)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) mode: Mode,

    /// Pass this argument to the CLI as it is (repeatable)
    #[arg(long, value_name = "ARG", help_heading = CLI, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) cli_arg: Vec<String>,

    /// Record what goes in and out of the CLI in this file
    ///
    /// The file must not exist. It is created with mode 0600, because it holds prompts and answers. Known secrets are
    /// replaced by their names. `teamster replay` shows the recording, and `teamster fake` plays its CLI.
    #[arg(long, value_name = "FILE", help_heading = CLI, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,

    /// Record the exact bytes, secrets included
    #[arg(long, requires = "record", help_heading = CLI, hide_short_help = true)]
    pub(crate) record_raw: bool,

    /// Let --record replace a file that exists
    ///
    /// Links, pipes and devices are never replaced.
    #[arg(long, requires = "record", help_heading = CLI, hide_short_help = true)]
    pub(crate) record_overwrite: bool,

    /// Refuse to start where the system hides processes or refuses handles of them
    ///
    /// By default the CLI starts there too, with a warning. docs/security.md says what is not
    /// guaranteed then.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) require_process_control: bool,

    /// Set a variable for the CLI (repeatable)
    #[arg(long, value_name = "NAME=VALUE", help_heading = CLI, value_parser = values::variable)]
    pub(crate) env: Vec<(String, String)>,

    /// Let the CLI inherit these variables only (repeatable)
    ///
    /// Names, or patterns such as AWS_*, with commas between them. PATH, HOME and what else no agent can run without are
    /// inherited too, but not the agent's key: name it, unless the agent has logged in. --env is always there.
    #[arg(long, value_name = "NAME,...", help_heading = CLI, value_delimiter = ',', hide_short_help = true)]
    #[arg(conflicts_with = "withhold_keys")]
    pub(crate) env_only: Option<Vec<String>>,

    /// Withhold keys that are not the agent's own
    ///
    /// Those of other vendors, of clouds and code hosts, that stand in variables.
    #[arg(long, help_heading = CLI, hide_short_help = true)]
    pub(crate) withhold_keys: bool,

    /// With --withhold-keys: let these through (repeatable)
    #[arg(long, value_name = "NAME,...", help_heading = CLI, value_delimiter = ',', hide_short_help = true)]
    #[arg(requires = "withhold_keys")]
    pub(crate) keep_key: Vec<String>,

    /// Tell the answer message by message, not as it is made
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) whole_messages: bool,

    /// Put this label on every event and log line (repeatable)
    ///
    /// KEY=VALUE. It is in the labels of each event of --output ndjson and of a session. It is no secret.
    #[arg(long, value_name = "KEY=VALUE", help_heading = OUTPUT, hide_short_help = true, value_parser = values::label)]
    pub(crate) label: Vec<(String, String)>,
}

/// What the agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Permission {
    ReadOnly,
    Ask,
    Edit,
    Full,
}

/// How the agent gets MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Delivery {
    Auto,
    MergeRestore,
}

/// In which of its forms the CLI is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    Auto,
    Exec,
    Spawn,
}

/// Whether the directory's own agent configuration is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

/// Whether the agent interprets the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prompt {
    Agent,
    Literal,
}
