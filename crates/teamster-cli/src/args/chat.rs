//! The options of `teamster chat`, as typed.

use clap::ArgAction;

use super::common::{OUTPUT, PERMISSIONS};
#[cfg(feature = "serve")]
use super::joined::GatewayChatArgs;
use super::session::ConversationArgs;
use crate::input::Keys;

/// Chat with an agent in the terminal
///
/// Type a prompt and press Enter. The agent asks before it does anything that its permissions do not allow. /help lists
/// the commands and the keys.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER, after_long_help = LONG_AFTER, disable_help_flag = true)]
pub(crate) struct ChatArgs {
    /// The first prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,

    /// Allow background commands and subagents between turns
    ///
    /// They continue after the agent has answered. When one ends, the agent may continue by itself. See docs/sessions.md.
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub(crate) background_tasks: bool,

    /// Edit with the keys of emacs (default) or vi
    #[arg(long, value_name = "KEYS", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) keys: Option<Keys>,

    /// Print help; --help prints more details
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT)]
    help: Option<bool>,

    #[cfg(feature = "serve")]
    #[command(flatten, next_help_heading = "Gateway")]
    pub(crate) gateway: GatewayChatArgs,
}

const SHORT_AFTER: &str = "More options, exit codes: teamster chat --help";

const LONG_AFTER: &str = "\
Examples:
  teamster chat
  teamster chat 'fix the failing test'
  teamster chat --agent codex --permission edit
  teamster chat --resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4
  teamster chat --conversation new --agent codex

Keys:
  Enter        send; while the agent works: send after its turn
  Ctrl-S       send into the running turn
  Alt-Enter    start a new line, as do Ctrl-J and a backslash at the end
  Tab          complete a command, its argument, or @FILE
  Up, Ctrl-R   earlier texts; Up in an empty line: edit what waits
  Ctrl-G       edit the text in $VISUAL or $EDITOR
  Esc, Ctrl-C  stop the agent; Ctrl-C again: kill it
  Ctrl-D       quit

What waits when the agent is stopped or fails is sent only after Enter in an empty line. Lines that arrive at once, as \
in a paste, are one prompt. Keys that are typed before a request is shown never answer it.

Without --answer-timeout the agent waits for an answer without a limit. The configuration of teamster run applies here \
too. Prompts are stored per directory in $XDG_STATE_HOME/teamster/chat-history.d (~/.local/state), readable by the user \
only. A prompt that starts with a space is not stored.

With --conversation the agent runs in a gateway (teamster serve). Prompts are sent at once, also while the agent works, \
and the gateway keeps their order. Messages of others appear with their authors. Requests can be answered by anyone who \
is permitted to. Ctrl-D leaves the chat, and turns continue. The options that configure an agent do not apply; with new, \
--agent, --model, --permission and --cwd do. A lost gateway is called again until it is reached.

Colors are used on terminals only; NO_COLOR and CLICOLOR_FORCE override that.

Exit codes:
  0    ended by the user
  1    the gateway cannot be used, or the conversation is gone
  2    wrong usage, or no terminal; nothing was started
  130  ended by a signal
  141  the terminal was closed";
