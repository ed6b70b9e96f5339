//! The options of `teamster run`, as typed.

use std::path::PathBuf;

use clap::{ArgAction, ValueHint};

use super::frame::{FrameArgs, INSTRUCTIONS, LIMITS, OUTPUT};
use super::values;

/// Give an agent one prompt and show what it does
///
/// Starts the agent's CLI, shows what it says and does while it works, and ends when it ends. Nothing that it started
/// is left behind.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct RunArgs {
    /// What the agent is to do; read from stdin if absent or -
    ///
    /// One argument. Whatever follows -- is the prompt too, dashes and all, its words joined by spaces.
    pub(crate) prompt: Option<String>,

    /// The prompt, word by word
    #[arg(last = true, hide = true, value_name = "WORD AFTER --", conflicts_with = "prompt")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) frame: FrameArgs,

    /// Send this file with the prompt (repeatable)
    ///
    /// Text, PNG, JPEG, GIF, WebP or PDF, as far as the agent takes it.
    #[arg(long, value_name = "FILE", help_heading = INSTRUCTIONS, value_hint = ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,

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

    /// Let the CLI say all at its end, in its one-document mode
    #[arg(long, help_heading = OUTPUT, hide_short_help = true, conflicts_with_all = ["whole_messages", "attach"])]
    pub(crate) batch: bool,

    /// Print help; --help tells more
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

/// What of a failed attempt may stand when the run is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EvenAfter {
    Prompt,
    Tools,
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
