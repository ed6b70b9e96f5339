//! The options of `teamster doctor`, as typed.

use std::path::PathBuf;

use teamster::Registry;

use crate::args::values;

/// Check which agents can run here
///
/// Prints for each agent whether it is ready, and otherwise what to do. Only the names of credentials are printed, never
/// their values. No model is called. The exit code is 1 if the chosen agent cannot run.
///
/// It also prints how many runs of this user are live, and how many were left by crashes, if there are any. --sweep only
/// removes the latter; its exit code is 1 if something remains.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed")]
pub(crate) struct DoctorArgs {
    /// Require this agent to run; all agents are checked
    #[arg(short, long, value_name = "NAME", default_value = Registry::DEFAULT, value_parser = values::AgentName)]
    #[arg(hide_possible_values = true)]
    pub(crate) agent: String,

    /// Use this program as the chosen agent's CLI
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cli_path: Option<PathBuf>,

    /// Read definitions of further agents from this TOML file
    ///
    /// The default is ~/.config/teamster/config.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Offer to install, update and log in agents that are not ready
    ///
    /// With --agent only this one. Each command is shown first and runs only after y; q ends it. It needs a terminal, unless --yes is
    /// given.
    #[arg(long, conflicts_with_all = ["sweep", "restore", "json"])]
    pub(crate) fix: bool,

    /// With --fix: install and update without asking
    ///
    /// A login is never started then; its command is printed.
    #[arg(long, requires = "fix")]
    pub(crate) yes: bool,

    /// The origin of the agent's name.
    #[arg(skip)]
    pub(crate) agent_origin: AgentOrigin,

    /// Kill processes and remove files of crashed runs
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config"])]
    pub(crate) sweep: bool,

    /// Remove entries of crashed runs from configuration files
    ///
    /// Runs with --mcp-delivery merge-restore add entries to the agents' configuration files. See docs/mcp.md.
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config", "sweep"])]
    pub(crate) restore: bool,

    /// Print the program, credentials and unsupported options too
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// The origin of the agent's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AgentOrigin {
    /// It is the best agent that is installed.
    #[default]
    Machine,
    /// A file or a variable names it.
    Configuration,
    CommandLine,
}
