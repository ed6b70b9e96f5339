//! The options of `teamster chat`, as typed.

use clap::ArgAction;

use super::common::OUTPUT;
use super::session::ConversationArgs;

/// Chat with an agent in the terminal
///
/// Type a prompt and press Enter. The agent asks before it does anything that its permissions do not allow. /help lists
/// the commands. The arrow keys show lines of earlier chats.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,

    /// Print help; --help prints more details
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,
}

const SHORT_AFTER: &str = "More options, exit codes: teamster chat --help";

const LONG_AFTER: &str = "\
Examples:
  teamster chat
  teamster chat --agent codex --permission edit
  teamster chat --resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4

Keys:
  Ctrl-C     stop the agent; at the prompt, pressed twice: quit
  Ctrl-D     quit
  Alt-Enter  start a new line, as does a backslash at the end of a line

Lines that are typed while the agent works are sent after its turn.

Without --answer-timeout the agent waits for an answer without a limit. The configuration of teamster run applies here
too. Typed lines are stored in $XDG_STATE_HOME/teamster/chat-history (~/.local/state), readable by the user
only. A line that starts with a space is not stored.

Colors are used on terminals only; NO_COLOR and CLICOLOR_FORCE override that.

Exit codes:
  0    ended by the user
  2    wrong usage, or no terminal; nothing was started
  130  ended by a signal
  141  the terminal was closed";
