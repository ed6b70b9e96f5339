//! The options of `teamster chat`, as typed.

use clap::ArgAction;

use super::frame::OUTPUT;
use super::session::TalkArgs;

/// Hold a conversation in the terminal
///
/// Type what the agent is to do. It asks before it does what its permissions do not cover. /help lists the commands; what
/// was typed in conversations before comes back with the arrow keys.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,

    /// Print help; --help tells more
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

const SHORT_AFTER: &str = "More options, exit codes: teamster chat --help";

const LONG_AFTER: &str = "\
Examples:
  teamster chat
  teamster chat --agent codex --permission edit
  teamster chat --resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4

Keys: Ctrl-C stops the agent; at the prompt twice, or Ctrl-D, ends the conversation. Alt-Enter, or a backslash at the end of
a line, begins another line. What is typed while the agent works is said after its turn.

Without --answer-timeout the agent waits for an answer as long as it takes. Environment variables stand behind options as with
teamster run. Lines that were typed are kept in $XDG_STATE_HOME/teamster/chat-history (~/.local/state), for this user alone;
not those that begin with a space.

Colours are for terminals; NO_COLOR and CLICOLOR_FORCE override that.

Exit codes:
  0    ended by the person
  2    wrong usage, or no terminal; nothing was started
  130  ended by a signal
  141  the terminal is gone";
