//! The definition of the command line.
//!
//! Clap checks each value and rejects options that exclude each other; [`crate::settings`] adds the values of files and
//! variables, and [`crate::plan`] interprets all values.

mod chat;
mod choices;
mod common;
#[cfg(feature = "serve")]
mod joined;
mod run;
mod session;
mod suggestion;
pub(crate) mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, CommandFactory as _, FromArgMatches as _};
use clap_complete::ArgValueCompleter;

use crate::completion;
use crate::config::{ConfigArgs, ConfigError};
use crate::doctor::DoctorArgs;
use crate::fake::FakeArgs;
use crate::plan::Inputs;
use crate::printable::Printable;
use crate::replay::ReplayArgs;
use crate::sessions::SessionsArgs;
use crate::settings::{self, AGENT_COMMANDS, Matches, NEGATION, Refusal};
use crate::usage::UsageArgs;
use crate::vendor;

pub(crate) use chat::ChatArgs;
pub(crate) use choices::{Permission, ToolOutput, Trust};
pub(crate) use common::CommonArgs;
#[cfg(feature = "serve")]
pub(crate) use joined::{GatewayChatArgs, JoinedConversation, NewConversationArgs};
pub(crate) use run::{Format, RetryPolicy, RunArgs, StdinMode};
pub(crate) use session::{ConversationArgs, SessionArgs};

/// Run AI agent CLIs with one interface
#[derive(Debug, clap::Parser)]
#[command(name = "teamster", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log to stderr by this filter, such as teamster=debug
    #[arg(long, global = true, value_name = "FILTER", help_heading = common::OUTPUT, hide_short_help = true)]
    pub(crate) log: Option<String>,

    /// Append the log to this file instead [--log teamster=debug]
    #[arg(long, global = true, value_name = "FILE", help_heading = common::OUTPUT, hide_short_help = true)]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub(crate) log_file: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Chat(Box<ChatArgs>),
    Session(Box<SessionArgs>),
    Sessions(SessionsArgs),
    Doctor(DoctorArgs),
    Usage(UsageArgs),
    #[cfg(feature = "serve")]
    Serve(crate::serve::ServeArgs),
    #[cfg(feature = "serve")]
    Send(crate::client::SendArgs),
    #[cfg(feature = "serve")]
    Conversations(crate::client::ConversationsArgs),
    #[cfg(feature = "serve")]
    Tail(crate::client::TailArgs),
    #[cfg(feature = "serve")]
    Approve(crate::client::ApproveArgs),
    #[cfg(feature = "serve")]
    Store(crate::store::StoreArgs),
    Config(ConfigArgs),
    Replay(ReplayArgs),
    Fake(FakeArgs),
    /// Show the manual page of teamster, or of one of its commands
    ///
    /// On a terminal, the program man shows it. A pipe gets plain text.
    Man {
        /// A command, such as run
        command: Option<String>,
    },
    /// Print a shell completion script
    #[command(after_help = "Example:  teamster completions bash > ~/.local/share/bash-completion/completions/teamster")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) cli: Cli,
    /// What the user should know about the sources of values.
    pub(crate) notes: Vec<Printable>,
    /// The problems of the configuration, for `doctor`.
    pub(crate) problems: Vec<ConfigError>,
}

/// Parses a command line, with the values of files and variables as defaults. If nothing names an agent or its program,
/// `default_agent` selects the agent.
///
/// # Errors
/// The command line or the configuration is invalid. Clap returns help and version texts as errors too.
pub(crate) fn parse(
    argv: &[OsString],
    inputs: &mut impl Inputs,
    default_agent: fn() -> &'static str,
) -> Result<Invocation, Refusal> {
    let matches = settings::matches(command(), argv, inputs, default_agent);
    let Matches { matches, notes, problems, agent_origin } = matches.map_err(|refusal| match refusal {
        Refusal::Usage(error) => Refusal::Usage(suggestion::improved(error, &command(), argv)),
        refusal @ Refusal::Config(_) => refusal,
    })?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| Refusal::Usage(error.format(&mut command())))?;
    #[cfg(feature = "serve")]
    if let Command::Chat(args) = &mut cli.command
        && let Some(matches) = matches.subcommand_matches("chat")
    {
        let ChatArgs { gateway, conversation, .. } = &mut **args;
        joined::note(gateway, &conversation.common, matches, &mut command()).map_err(Refusal::Usage)?;
    }
    if let Command::Doctor(args) = &mut cli.command {
        args.agent_origin = agent_origin;
    }
    let mut notes = notes;
    notes.extend(choose_agent(&mut cli.command));
    Ok(Invocation { cli, notes, problems })
}

/// Replaces the agent `auto` by one that is installed, and returns a note on it.
fn choose_agent(command: &mut Command) -> Option<Printable> {
    let agent = match command {
        Command::Run(args) => &mut args.common.agent,
        Command::Chat(args) => &mut args.conversation.common.agent,
        Command::Session(args) => &mut args.conversation.common.agent,
        Command::Doctor(args) => &mut args.agent,
        _ => return None,
    };
    if !vendor::is_auto(agent) {
        return None;
    }
    let chosen = vendor::auto_agent();
    chosen.clone_into(agent);
    Some(vendor::note_of_auto(chosen))
}

/// Builds clap's definition of the command. Each switch gets a hidden negation, such as `--no-mcp-strict`.
pub(crate) fn command() -> clap::Command {
    let command = ["doctor", "sessions"]
        .into_iter()
        .fold(Cli::command(), |command, name| command.mut_subcommand(name, with_completion));
    let for_agents = |command| with_completion(with_negations(command));
    let command = AGENT_COMMANDS.into_iter().fold(command, |command, name| command.mut_subcommand(name, for_agents));
    #[cfg(feature = "serve")]
    let command = command.mut_subcommand("chat", joined::with_exclusions);
    command
}

/// Adds the completion of values that depend on this machine.
fn with_completion(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let candidates: completion::Candidates = match arg.get_id().as_str() {
            "agent" => completion::agents,
            "model" => completion::models,
            "profile" => completion::profiles,
            "resume" => completion::session_ids,
            _ => return arg,
        };
        arg.add(ArgValueCompleter::new(candidates))
    })
}

fn with_negations(command: clap::Command) -> clap::Command {
    let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue) && !arg.is_hide_set();
    let switches: Vec<(String, String)> = command
        .get_arguments()
        .filter(is_switch)
        .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_long()?.to_owned())))
        .collect();
    switches.into_iter().fold(command, |command, (id, long)| {
        let negation = format!("{NEGATION}{id}");
        let arg = Arg::new(negation.clone()).long(format!("no-{long}")).action(ArgAction::SetTrue).hide(true);
        command.mut_arg(&id, |switch| switch.overrides_with(negation)).arg(arg.overrides_with(id))
    })
}

#[cfg(test)]
mod tests;
