//! The options of `teamster session`, as typed, and those that it shares with `teamster chat`.

use std::time::Duration;

use clap::ArgAction;

use super::common::{CommonArgs, LIMITS, OUTPUT, PERMISSIONS};
use super::values;

/// Run a session for a program: JSON commands in, events out
///
/// Reads one command per line from stdin and prints one event per line as it happens. Each turn ends with one done
/// event. At the end of stdin the session finishes the turns that were sent and exits. See docs/session-protocol.md.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,

    /// Allow background commands and subagents between turns
    ///
    /// They continue after the agent has answered. When one ends, the agent may start a turn by itself; its turnId is
    /// own-1, own-2 and so on. See docs/sessions.md.
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub(crate) background_tasks: bool,

    /// Print help; --help prints more details
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

// No doc comment here: clap would use it in place of the command's own description.
#[derive(Debug, clap::Args)]
pub(crate) struct ConversationArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,

    /// Deny a request without an answer in time [default: 5m]
    ///
    /// It applies to permission requests and questions. 0 means no limit, which is the default of teamster chat.
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = values::duration)]
    #[arg(hide_short_help = true)]
    pub(crate) answer_timeout: Option<Duration>,
}

const SHORT_AFTER: &str = "More options, commands, exit codes: teamster session --help";

const LONG_AFTER: &str = "\
Commands, one per line; each may have an \"id\":
  {\"type\":\"send\",\"text\":\"...\",\"attachments\":[{\"path\":\"a.png\"}],\"id\":\"1\"}
  {\"type\":\"send\",\"text\":\"...\",\"now\":true}
  {\"type\":\"interrupt\"}
  {\"type\":\"interrupt\",\"turnId\":\"1\"}
  {\"type\":\"answer\",\"requestId\":\"...\",\"decision\":\"allow|allow_always|deny\"}
  {\"type\":\"answer\",\"requestId\":\"...\",\"choices\":{\"question id\":[\"label\"]}}
  {\"type\":\"set_model\",\"model\":\"...\"}
  {\"type\":\"set_permission_mode\",\"mode\":\"read-only|ask|edit|full\"}
  {\"type\":\"close\"}

The id of a send is the turnId of its turn's events. An invalid command causes an error event with the code \
INVALID_REQUEST; the session continues.

Example:
  echo '{\"type\":\"send\",\"text\":\"What does this project do?\"}' | teamster session

The configuration of teamster run applies here too.

SIGINT, SIGTERM and SIGHUP ask the agent to stop and end the session; a second SIGINT kills the agent.

Exit codes:
  0    the last turn succeeded, or there was none
  1    the last turn failed, or the output could not be written
  2    wrong usage; nothing was started
  124  a timeout or the deadline of the last turn expired
  127  the agent's CLI was not found
  130  interrupted
  141  the reader of the output closed it";
