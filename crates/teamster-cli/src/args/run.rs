//! The options of `teamster run`, as typed.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ValueHint};

use super::values;

const CONVERSATION: &str = "Conversation";
const INSTRUCTIONS: &str = "Instructions";
const PERMISSIONS: &str = "Permissions";
const LIMITS: &str = "Limits";
const CLI: &str = "The agent's CLI";
const OUTPUT: &str = "Output";

/// Give an agent one prompt and show what it does
///
/// Starts the agent's CLI, shows what it says and does while it works, and ends when it ends. Nothing that it started
/// is left behind.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; a request has enums in their place")]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct RunArgs {
    /// What the agent is to do; read from stdin if absent or -
    ///
    /// One argument. Whatever follows -- is the prompt too, dashes and all, its words joined by spaces.
    pub(crate) prompt: Option<String>,

    /// The prompt, word by word
    #[arg(last = true, hide = true, value_name = "WORD AFTER --", conflicts_with = "prompt")]
    pub(crate) words: Vec<String>,

    /// Which agent runs
    #[arg(short, long, value_name = "NAME", default_value = teamster::Registry::DEFAULT, hide_default_value = true)]
    #[arg(value_parser = values::agent(), ignore_case = true)]
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

    /// Send this file with the prompt (repeatable)
    ///
    /// Text, PNG, JPEG, GIF, WebP or PDF, as far as the agent takes it.
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,

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
    ///   ask        what changes something is asked for: a run cannot ask, so it is denied
    ///   edit       it may edit files; other changes are denied
    ///   full       it may do everything
    #[arg(long, value_name = "MODE", help_heading = PERMISSIONS, verbatim_doc_comment)]
    #[arg(default_value = "ask", hide_default_value = true, hide_possible_values = true)]
    pub(crate) permission: Permission,

    /// Allow this tool (repeatable)
    ///
    /// A rule in the agent's own language, such as 'Bash(git diff:*)'.
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS)]
    pub(crate) allow_tool: Vec<String>,

    /// Deny this tool (repeatable)
    ///
    /// A rule in the agent's own language, such as 'Bash(rm:*)'.
    #[arg(long, value_name = "RULE", help_heading = PERMISSIONS)]
    pub(crate) deny_tool: Vec<String>,

    /// Let the agent use this directory too (repeatable)
    #[arg(long, value_name = "DIR", help_heading = PERMISSIONS, value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// trusted (default), or untrusted: agent configuration in the directory is not used
    ///
    /// A directory of strangers can carry hooks, MCP servers and settings that send the vendor's key elsewhere.
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

    /// How much the run may cost, in US dollars
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

    /// Start a run again whose failure may pass
    ///
    /// At most so often. Such failures are an overloaded vendor, a rate limit or a broken connection, once the agent itself
    /// has given up. The first wait is 5 to 10 seconds; each further one is twice as long, up to 1 to 2 minutes. A limit
    /// that ends within 10 minutes is waited for. No run is started again once a tool has run, or where the session that
    /// it goes on with may hold the prompt already: see --retry-even-after.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::retries, allow_negative_numbers = true)]
    pub(crate) retries: Option<u32>,

    /// With --retries: prompt or tools
    ///
    ///   prompt  even where a resumed session may hold the prompt twice then
    ///   tools   even where tools have run, and may run again
    ///
    /// With tools, after a prompt too.
    #[arg(long, value_name = "WHAT", help_heading = LIMITS, requires = "retries", verbatim_doc_comment)]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    pub(crate) retry_even_after: Option<EvenAfter>,

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

    /// pretty (default), text, ndjson or json
    ///
    ///   pretty  for people: the answer and what the agent does, as it happens
    ///   text    the final answer alone, at the end
    ///   ndjson  for programs: one event a line, as it happens
    ///   json    for programs: the result as one document, at the end
    ///
    /// Errors go to stderr with every format, and the summary of pretty goes there too.
    #[arg(long, value_name = "FORMAT", help_heading = OUTPUT, verbatim_doc_comment)]
    #[arg(default_value = "pretty", hide_default_value = true, hide_possible_values = true)]
    pub(crate) output: Format,

    /// Tell the answer message by message, not as it is made
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) whole_messages: bool,

    /// Let the CLI say all at its end, in its one-document mode
    #[arg(long, help_heading = OUTPUT, hide_short_help = true, conflicts_with_all = ["whole_messages", "attach"])]
    pub(crate) batch: bool,

    /// Print help; --help tells more
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
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

/// What of a failed attempt may stand when the run is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EvenAfter {
    Prompt,
    Tools,
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

/// How the run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Pretty,
    Text,
    Ndjson,
    Json,
}

const SHORT_AFTER: &str = "More options, examples, environment, exit codes: teamster run --help";

const LONG_AFTER: &str = "\
Examples:
  teamster run 'What does this project do?'
  teamster run --permission edit --max-turns 20 'Fix the failing test'
  git diff | teamster run --append-system-prompt 'Review this diff.' --output text
  teamster run --resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4 'And now the docs'
  teamster run --output ndjson -- --help me | jq -r 'select(.type == \"tool_use\") | .toolName'

Environment variables (options win; an empty variable counts as unset):
  AGENT_BACKEND         --agent
  BACKEND_CLI_PATH      --cli-path
  BACKEND_MODEL         --model
  BACKEND_MAX_TURNS     --max-turns
  BACKEND_MCP_DELIVERY  --mcp-delivery
  ALLOWED_TOOLS         --allow-tool, with commas between rules

Colours are for terminals; NO_COLOR and CLICOLOR_FORCE override that.

Ctrl-C asks the agent to stop; a second one ends it at once. SIGTERM and SIGHUP ask it to stop.

Exit codes:
  0    done without error
  1    the run ended in an error, or its output could not be written
  2    wrong usage; nothing was started
  124  the agent was silent for too long, or the deadline passed
  127  the agent's CLI was not found
  130  interrupted
  141  whoever read the output stopped reading";
