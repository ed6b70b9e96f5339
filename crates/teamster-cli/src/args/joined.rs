//! The options with which `teamster chat` joins a conversation of a gateway.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use uuid::Uuid;

use super::{CommonArgs, Permission};
use crate::client::ServerArgs;

/// The id of the option that joins a conversation.
const CONVERSATION: &str = "gateway_conversation";

/// The options that select the gateway.
const SERVER: [&str; 3] = ["server", "data_dir", "insecure"];

/// The options that a new conversation has.
const OF_NEW: [&str; 4] = ["agent", "model", "permission", "cwd"];

/// The options that concern the terminal.
const OF_TERMINAL: [&str; 4] = ["prompt", "keys", "tool_output", "help"];

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayChatArgs {
    /// Join a conversation of a gateway; new creates one
    ///
    /// The last turns are shown first, then everything that happens in the conversation. teamster conversations lists the
    /// ids.
    #[arg(id = "gateway_conversation", long = "conversation", value_name = "ID|new", value_parser = conversation)]
    conversation: Option<ConversationName>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[arg(skip)]
    joined: Option<JoinedConversation>,
}

/// The value of `--conversation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversationName {
    New,
    Existing(Uuid),
}

/// The conversation that a chat joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JoinedConversation {
    New(NewConversationArgs),
    Existing(Uuid),
}

/// What the command line sets for a new conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewConversationArgs {
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) permission: Option<Permission>,
    pub(crate) cwd: Option<PathBuf>,
}

impl GatewayChatArgs {
    /// Returns the conversation to join, if there is one.
    pub(crate) fn joined(&self) -> Option<JoinedConversation> {
        self.joined.clone()
    }
}

fn conversation(text: &str) -> Result<ConversationName, String> {
    if text == "new" {
        return Ok(ConversationName::New);
    }
    let id = Uuid::parse_str(text).map_err(|_| "the id of a conversation is needed, or new".to_owned())?;
    Ok(ConversationName::Existing(id))
}

/// Makes `--conversation` exclude the options that configure an agent of this process, and those of the gateway need it.
pub(super) fn with_exclusions(command: Command) -> Command {
    let is_compatible =
        |id: &str| id == CONVERSATION || [&SERVER[..], &OF_NEW, &OF_TERMINAL].iter().any(|ids| ids.contains(&id));
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let excluded = ids.into_iter().filter(|id| !is_compatible(id));
    let command = command.mut_arg(CONVERSATION, |arg| arg.conflicts_with_all(excluded));
    // The short help has no room for them.
    let needs_conversation = |arg: Arg| arg.requires(CONVERSATION).hide_short_help(true);
    SERVER.into_iter().fold(command, |command, id| command.mut_arg(id, needs_conversation))
}

/// Notes which conversation a chat joins. Values of the configuration are those of runs on this machine, so only the command
/// line counts.
///
/// # Errors
/// An option of a new conversation is used with an existing one.
pub(super) fn note(
    gateway: &mut GatewayChatArgs,
    common: &CommonArgs,
    matches: &ArgMatches,
    definition: &mut Command,
) -> Result<(), clap::Error> {
    let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let joined = match gateway.conversation {
        None => return Ok(()),
        Some(ConversationName::Existing(id)) => {
            if let Some(option) = OF_NEW.into_iter().find(|id| is_typed(id)) {
                let text = format!("--{option} is for a new conversation: use it with --conversation new");
                return Err(definition.error(ErrorKind::ArgumentConflict, text));
            }
            JoinedConversation::Existing(id)
        }
        Some(ConversationName::New) => JoinedConversation::New(NewConversationArgs {
            agent: is_typed("agent").then(|| common.agent.clone()),
            model: common.model.clone().filter(|_| is_typed("model")),
            permission: is_typed("permission").then_some(common.permission),
            cwd: common.cwd.clone().filter(|_| is_typed("cwd")),
        }),
    };
    gateway.joined = Some(joined);
    Ok(())
}
