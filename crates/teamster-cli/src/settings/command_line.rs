//! Parses a command line, with the values in effect as clap's default values.
//!
//! So an option overrides every other source, and a value of another source never conflicts with an option.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Id};

use super::resolve::{Conflicts, Given, Resolution, resolve};
use super::table::{AGENT_COMMANDS, Kind, NEGATION, Setting, settings};
use crate::args::Trust;
use crate::config::ConfigError;
use crate::doctor::AgentOrigin;
use crate::plan::Inputs;
use crate::printable::Printable;
use crate::vendor;

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Matches {
    pub(crate) matches: ArgMatches,
    /// What the user should know about the sources of values.
    pub(crate) notes: Vec<Printable>,
    /// The problems of the configuration, for commands that do not fail because of them.
    pub(crate) problems: Vec<ConfigError>,
    /// Where the name of the agent comes from.
    pub(crate) agent_origin: AgentOrigin,
}

/// Why a command line cannot be executed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Clap's error, which is also how clap returns the help and version texts.
    Usage(clap::Error),
    Config(Vec<ConfigError>),
}

/// Further commands that use some of the settings.
const USERS: [&str; 2] = ["doctor", "usage"];

/// Options that need another one, which may come from another source than the command line.
pub(super) const NEEDS: [(&str, &str); 6] = [
    ("force", "record"),
    ("fork", "continue_last"),
    ("fork", "resume"),
    ("keep_key", "withhold_keys"),
    ("record_raw", "record"),
    ("retry_even_after", "retries"),
];

/// Parses a command line. The commands that start agents fail if the configuration has a problem; `doctor` does not. If
/// nothing names an agent or its program, `default_agent` selects the agent.
///
/// # Errors
/// The command line or the configuration is invalid.
pub(crate) fn matches(
    mut definition: Command,
    argv: &[OsString],
    inputs: &mut impl Inputs,
    default_agent: fn() -> &'static str,
) -> Result<Matches, Refusal> {
    let relaxed = without_needs(definition.clone(), |_| true);
    let given = match relaxed.try_get_matches_from(argv) {
        Ok(given) => given,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            definition = with_agent_of_help(definition, argv, inputs, default_agent);
            return Err(Refusal::Usage(definition.try_get_matches_from(argv).err().unwrap_or(error)));
        }
        Err(error) => return Err(Refusal::Usage(error)),
    };
    let (mut notes, mut problems) = (Vec::new(), Vec::new());
    let mut agent_origin = AgentOrigin::default();
    if let Some((name, matches)) = given.subcommand()
        && (AGENT_COMMANDS.contains(&name) || USERS.contains(&name))
    {
        let settings = settings(&definition);
        let given = given_by(matches);
        let resolution = resolve(&settings, &conflicts(&definition, name), &given, inputs);
        if !resolution.problems.is_empty() && name != "doctor" {
            return Err(Refusal::Config(resolution.problems));
        }
        notes = resolution.notes;
        notes.extend(resolution.renamed);
        problems = resolution.problems;
        let is_set = |id: &str| given.ids.contains(id) || resolution.values.contains_key(id);
        if given.ids.contains("agent") {
            agent_origin = AgentOrigin::CommandLine;
        } else if is_set("agent") || is_set("cli_path") {
            agent_origin = AgentOrigin::Configuration;
        }
        if name == "usage" {
            // It starts no agent, so notes on settings of agents do not matter.
            notes.clear();
        } else if agent_origin == AgentOrigin::Machine {
            let agent = default_agent();
            definition =
                definition.mut_subcommand(name, |command| command.mut_arg("agent", |arg| arg.default_value(agent)));
            if AGENT_COMMANDS.contains(&name) {
                notes.extend(vendor::note_of_default(agent));
            }
        }
        for assignment in resolution.values.into_values() {
            if let Some(setting) = settings.iter().find(|setting| setting.id == assignment.id) {
                definition = with_default(definition, name, setting, assignment.values);
            }
        }
    }
    let matches = definition.try_get_matches_from(argv).map_err(Refusal::Usage)?;
    Ok(Matches { matches, notes, problems, agent_origin })
}

/// Sets the agent that would be used, which the help text shows. Problems of the configuration do not matter here.
fn with_agent_of_help(
    definition: Command,
    argv: &[OsString],
    inputs: &mut impl Inputs,
    default_agent: fn() -> &'static str,
) -> Command {
    let is_command = |name: &str| AGENT_COMMANDS.contains(&name) || name == "doctor";
    let Some(name) = argv.iter().filter_map(|argument| argument.to_str()).find(|name| is_command(name)) else {
        return definition;
    };
    let settings = settings(&definition);
    let Resolution { mut values, .. } = resolve(&settings, &conflicts(&definition, name), &Given::default(), inputs);
    let agent = match values.remove("agent").and_then(|agent| agent.values.into_iter().next()) {
        Some(agent) => agent,
        None if values.contains_key("cli_path") => return definition,
        None => default_agent().to_owned(),
    };
    definition.mut_subcommand(name, |command| command.mut_arg("agent", |arg| arg.default_value(agent)))
}

/// Removes what options need, if `is_met` holds for the needed option.
fn without_needs(definition: Command, is_met: impl Fn(&str) -> bool) -> Command {
    let met = |id: &str| NEEDS.iter().any(|(option, needed)| *option == id && is_met(needed));
    AGENT_COMMANDS.into_iter().fold(definition, |definition, name| {
        definition.mut_subcommand(name, |command| {
            command.mut_args(|arg| if met(arg.get_id().as_str()) { arg.requires(Resettable::<Id>::Reset) } else { arg })
        })
    })
}

/// Returns the options of a command that exclude each other.
pub(crate) fn conflicts(definition: &Command, name: &str) -> Conflicts {
    let mut definition = definition.clone();
    // Clap creates the groups of options.
    definition.build();
    let Some(command) = definition.find_subcommand(name) else { return Conflicts::default() };
    let declared = command.get_arguments().flat_map(|arg| {
        command
            .get_arg_conflicts_with(arg)
            .into_iter()
            .map(|other| (arg.get_id().to_string(), other.get_id().to_string()))
    });
    let groups = command.get_groups().cloned().filter_map(|mut group| (!group.is_multiple()).then_some(group));
    let grouped = groups.flat_map(|group| {
        let ids: Vec<String> = group.get_args().map(ToString::to_string).collect();
        let pairs = ids.iter().flat_map(|one| ids.iter().map(move |other| (one.clone(), other.clone())));
        pairs.filter(|(one, other)| one != other).collect::<Vec<_>>()
    });
    declared.chain(grouped).flat_map(|(one, other)| [(other.clone(), one.clone()), (one, other)]).collect()
}

/// Returns what the command line itself sets. The negation of a switch sets the switch.
fn given_by(matches: &ArgMatches) -> Given {
    let typed = |id: &Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let ids: BTreeSet<String> = matches
        .ids()
        .filter(|id| typed(id))
        .map(|id| id.as_str().strip_prefix(NEGATION).unwrap_or(id.as_str()).to_owned())
        .collect();
    let path = |id: &str| ids.contains(id).then(|| matches.get_one::<PathBuf>(id).cloned()).flatten();
    Given {
        config: path("config"),
        cwd: path("cwd"),
        profile: ids.contains("profile").then(|| matches.get_one::<String>("profile").cloned()).flatten(),
        is_untrusted: ids
            .contains("project_trust")
            .then(|| matches.get_one::<Trust>("project_trust") == Some(&Trust::Untrusted)),
        ids,
    }
}

/// Sets the value as the default of the option.
fn with_default(definition: Command, name: &str, setting: &Setting, values: Vec<String>) -> Command {
    if setting.kind == Kind::Switch && values.first().is_none_or(|value| value != "true") {
        return definition;
    }
    let id = setting.id.as_str();
    if setting.arg.is_global_set() {
        return definition.mut_arg(id, |arg| arg.default_values(values));
    }
    let has_option =
        definition.find_subcommand(name).is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == id));
    if !has_option {
        return definition;
    }
    let definition = definition.mut_subcommand(name, |command| command.mut_arg(id, |arg| arg.default_values(values)));
    without_needs(definition, |needed| needed == id)
}
