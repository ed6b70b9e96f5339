//! The command line as typed, with defaults from the environment.
//!
//! Clap checks each value and rejects options that exclude each other; [`crate::plan`] interprets the values.
//! Environment variables are set as clap's default values. So an option overrides its variable, a variable never
//! conflicts with an option, and an empty variable counts as unset.

mod chat;
mod common;
mod run;
mod session;
pub(crate) mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};
use teamster::backend::{split_rules, variables};

use crate::doctor::DoctorArgs;
use crate::fake::FakeArgs;
use crate::replay::ReplayArgs;

pub(crate) use chat::ChatArgs;
pub(crate) use common::{CommonArgs, Permission, ToolOutput};
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
    Doctor(DoctorArgs),
    Replay(ReplayArgs),
    Fake(FakeArgs),
    /// Print a shell completion script
    #[command(after_help = "Example:  teamster completions bash > ~/.local/share/bash-completion/completions/teamster")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The commands that have the options of [`CommonArgs`].
const AGENT_COMMANDS: [&str; 3] = ["run", "chat", "session"];

/// The environment variables that set an option's default, by the option's id.
const VARIABLES: [(&str, &str); 7] = [
    ("agent", variables::AGENT),
    ("cli_path", variables::CLI_PATH),
    ("model", variables::MODEL),
    ("max_turns", variables::MAX_TURNS),
    ("mcp_delivery", "BACKEND_MCP_DELIVERY"),
    ("allow_tool", variables::ALLOWED_TOOLS),
    ("deadline", variables::QUERY_TIMEOUT_MS),
];

/// Parses a command line; `variable` returns the value of an environment variable.
///
/// # Errors
/// Returns clap's error, which is also how clap returns the help and version texts.
pub(crate) fn parse(
    argv: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Cli, clap::Error> {
    let argv: Vec<OsString> = argv.into_iter().collect();
    let mut command = command(&variable);
    let matches = command.try_get_matches_from_mut(&argv).map_err(|error| name_variable(error, &argv, &variable))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Builds clap's definition of the command.
pub(crate) fn command(variable: impl Fn(&str) -> Option<OsString>) -> clap::Command {
    let command = Cli::command().mut_subcommand("doctor", |doctor| {
        let chosen = variable(variables::AGENT).filter(|value| !value.is_empty());
        let program = variable(variables::CLI_PATH).filter(|value| !value.is_empty());
        let doctor = doctor.mut_arg("cli_path", |arg| match program {
            Some(program) => arg.default_value(program),
            None => arg,
        });
        doctor.mut_arg("agent", |arg| match chosen {
            Some(chosen) => arg.default_value(chosen),
            None => arg,
        })
    });
    AGENT_COMMANDS
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |subcommand| with_variables(subcommand, &variable)))
}

fn with_variables(subcommand: clap::Command, variable: impl Fn(&str) -> Option<OsString>) -> clap::Command {
    VARIABLES.into_iter().fold(subcommand, |subcommand, (id, name)| {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return subcommand };
        subcommand.mut_arg(id, |arg| match value.to_str() {
            Some(list) if id == "allow_tool" => arg.default_values(split_rules(list)),
            Some(number) if id == "deadline" => arg.default_value(milliseconds(number)),
            _ => arg.default_value(value),
        })
    })
}

/// Returns the duration, as `--deadline` reads it, of a variable's number of milliseconds.
fn milliseconds(number: &str) -> String {
    format!("{}ms", number.trim())
}

/// Adds the variable's name to the error if an invalid value came from a variable: clap names only the option.
fn name_variable(
    mut error: clap::Error,
    argv: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> clap::Error {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return error };
    let typed = argv.iter().any(|argument| argument.to_string_lossy().contains(value.as_str()));
    let is_origin =
        |held: OsString| held == value.as_str() || held.to_str().is_some_and(|held| milliseconds(held) == *value);
    let origin = VARIABLES.into_iter().find(|(_, name)| variable(name).is_some_and(is_origin));
    if let (false, Some((_, name))) = (typed, origin) {
        let tip = StyledStr::from(format!("the value comes from the environment: {name}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod packaging;
#[cfg(test)]
mod tests;
