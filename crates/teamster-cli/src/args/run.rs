//! The options of `teamster run`, as typed.

use std::path::PathBuf;

use clap::{ArgAction, ValueHint};

use super::common::{CommonArgs, INSTRUCTIONS, LIMITS, OUTPUT};
use super::values;

/// Run an agent with one prompt
///
/// Starts the agent's CLI, and prints its output and tool calls while it works. Exits when the CLI exits, and kills the
/// processes that the CLI started.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct RunArgs {
    /// The prompt; read from stdin if absent or -
    ///
    /// It is one argument. Alternatively, all arguments after -- are the prompt, joined by spaces. Piped standard input is
    /// appended to it: see --stdin.
    pub(crate) prompt: Option<String>,

    /// The words of the prompt
    #[arg(last = true, hide = true, value_name = "WORD AFTER --", conflicts_with = "prompt")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) common: CommonArgs,

    /// Use standard input: auto (default), read or ignore
    ///
    ///   auto    append it to the prompt, unless it is a terminal; fail if nothing arrives for 5 minutes
    ///   read    the same, without a time limit
    ///   ignore  do not read it, for example in a loop that reads it itself
    ///
    /// The text is appended between two tags whose name it cannot contain. The limit is 10 MiB.
    #[arg(long, value_name = "MODE", help_heading = INSTRUCTIONS, hide_short_help = true, verbatim_doc_comment)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) stdin: StdinMode,

    /// Send this file with the prompt (repeatable)
    ///
    /// Supported are text, PNG, JPEG, GIF, WebP and PDF, if the agent accepts them.
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,

    /// Retry a run up to N times after a transient failure
    ///
    /// Transient failures are an overloaded vendor, a rate limit and a broken connection. A retry starts once the agent's
    /// own retries have failed. The first delay is 5 to 10 seconds; it doubles up to 1 to 2 minutes. A retry
    /// waits for a rate limit that resets within 10 minutes. There is no retry after a tool has run, or if a resumed
    /// session may already contain the prompt: see --retry-even-after.
    #[arg(long, value_name = "N", help_heading = LIMITS, value_parser = values::retries, allow_negative_numbers = true)]
    pub(crate) retries: Option<u32>,

    /// With --retries: retry even after: prompt or tools
    ///
    ///   prompt  the resumed session may then contain the prompt twice
    ///   tools   the tools may run again; includes prompt
    #[arg(long, value_name = "WHAT", help_heading = LIMITS, requires = "retries", verbatim_doc_comment)]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    pub(crate) retry_even_after: Option<RetryPolicy>,

    /// Print as: pretty (default), text, ndjson or json
    ///
    ///   pretty  for people: answer and tool calls, as they happen
    ///   text    only the final answer, at the end
    ///   ndjson  for programs: one event per line, as it happens
    ///   json    for programs: the result as one document, at the end
    ///
    /// Errors go to stderr in every format, as does the summary of pretty.
    #[arg(short, long, value_name = "FORMAT", help_heading = OUTPUT, verbatim_doc_comment)]
    #[arg(default_value = "pretty", hide_default_value = true, hide_possible_values = true)]
    pub(crate) output: Format,

    /// Show no status while the agent works
    ///
    /// The format pretty shows it on terminals, except in CI.
    #[arg(short, long, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) quiet: bool,

    /// Print launches, versions, limits and timings to stderr
    #[arg(short, long, help_heading = OUTPUT, hide_short_help = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Use the CLI's non-streaming mode
    ///
    /// The CLI prints one document at its end, so no event arrives before that.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true, conflicts_with_all = ["whole_messages", "attach"])]
    pub(crate) batch: bool,

    /// Print help; --help prints more details
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

/// Whether and how standard input is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StdinMode {
    Auto,
    Read,
    Ignore,
}

/// The effects of a failed attempt after which a retry is still allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RetryPolicy {
    Prompt,
    Tools,
}

/// The output format.
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
  git diff | teamster run 'Review this diff'
  teamster run --resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4 'And now the docs'
  teamster run --output ndjson -- --help me | jq -r 'select(.type == \"tool_use\") | .toolName'

Configuration:
  Each option has a key in ~/.config/teamster/config.toml and a variable:
  --max-turns is max_turns and TEAMSTER_MAX_TURNS. Options override variables,
  and variables override files. --no-NAME turns off a switch that is on there.
  teamster config show prints all values. See docs/configuration.md.

  These variables work too: AGENT_BACKEND (--agent), BACKEND_CLI_PATH,
  BACKEND_MODEL, BACKEND_MAX_TURNS, BACKEND_MCP_DELIVERY, WORKING_DIR (--cwd),
  ALLOWED_TOOLS (--allow-tool) and QUERY_TIMEOUT_MS (--deadline, in milliseconds).

Colors are used on terminals only; NO_COLOR and CLICOLOR_FORCE override that.

Ctrl-C asks the agent to stop; a second Ctrl-C kills it. SIGTERM and SIGHUP ask it to stop.

Exit codes:
  0    the run succeeded
  1    the run failed, or its output could not be written
  2    wrong usage; nothing was started
  124  a timeout or the deadline expired
  127  the agent's CLI was not found
  130  interrupted
  141  the reader of the output closed it";
