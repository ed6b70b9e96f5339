//! The options of `teamster session`, as typed, and those that every conversation has.

use std::time::Duration;

use clap::ArgAction;

use super::frame::{FrameArgs, LIMITS, OUTPUT, PERMISSIONS};
use super::values;

/// Hold a conversation for a program: JSON commands in, events out
///
/// Reads one command a line from stdin and prints one event a line, as it happens. Each turn ends in one done; the session ends
/// with the end of stdin, after the turns that were sent. docs/session-protocol.md says more.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,

    /// Let the agent go on in the background
    ///
    /// With commands and subagents, when it has answered. When one has ended, it may begin a turn that nobody asked for, whose turnId is
    /// own-1, own-2 and so on. docs/sessions.md says more.
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub(crate) background_tasks: bool,

    /// Print help; --help tells more
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

// What is said of the command stands with the commands: a doc comment here would take its place.
#[derive(Debug, clap::Args)]
pub(crate) struct TalkArgs {
    #[command(flatten)]
    pub(crate) frame: FrameArgs,

    /// How long the agent waits for an answer to what it asks [default: 5m]
    ///
    /// Then it is denied. With 0 it waits as long as it takes, which is the default of a chat.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) answer_timeout: Option<Duration>,
}

const SHORT_AFTER: &str = "More options, commands, exit codes: teamster session --help";

const LONG_AFTER: &str = "\
Commands, one a line; each may have an \"id\":
  {\"type\":\"send\",\"text\":\"...\",\"attachments\":[{\"path\":\"a.png\"}],\"id\":\"1\"}
  {\"type\":\"send\",\"text\":\"...\",\"now\":true}
  {\"type\":\"interrupt\"}
  {\"type\":\"interrupt\",\"turnId\":\"1\"}
  {\"type\":\"answer\",\"requestId\":\"...\",\"decision\":\"allow|allow_always|deny\"}
  {\"type\":\"answer\",\"requestId\":\"...\",\"choices\":{\"question id\":[\"label\"]}}
  {\"type\":\"set_model\",\"model\":\"...\"}
  {\"type\":\"set_permission_mode\",\"mode\":\"read-only|ask|edit|full\"}
  {\"type\":\"close\"}

The id of a send is the turnId of its turn's events. A command that is wrong is an error with the code INVALID_REQUEST, and
ends nothing.

Example:
  echo '{\"type\":\"send\",\"text\":\"What does this project do?\"}' | teamster session

Environment variables stand behind options as with teamster run.

SIGINT, SIGTERM and SIGHUP ask the agent to stop and end the session; a second SIGINT ends it at once.

Exit codes:
  0    the last turn ended without error, or there was none
  1    the last turn ended in an error, or the output could not be written
  2    wrong usage; nothing was started
  124  in the last turn the agent was silent for too long, or its deadline passed
  127  the agent's CLI was not found
  130  interrupted
  141  whoever read the output stopped reading";
