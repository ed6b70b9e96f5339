//! The table of settings, derived from clap's definition.

use clap::{Arg, ArgAction, ValueHint};
use teamster::backend::{split_rules, variables};

use super::project_rule::{self, ProjectRule};

/// The commands whose options are settings.
pub(crate) const AGENT_COMMANDS: [&str; 3] = ["run", "chat", "session"];

/// The prefix of the ids of options that turn a switch off, for switches that are on in the configuration.
pub(crate) const NEGATION: &str = "no_";

/// How a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// True or false.
    Switch,
    One,
    List,
}

/// Where a setting can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everywhere.
    Everywhere,
    /// In all places except profiles.
    NotInProfiles,
    /// On the command line and in the environment: it belongs to one call.
    OneCall,
}

/// An option of a command, with its names.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The id in clap's definition.
    pub(crate) id: String,
    /// The key in files.
    pub(crate) key: String,
    /// The environment variable.
    pub(crate) variable: String,
    /// The variable of earlier versions.
    pub(crate) older: Option<OlderVariable>,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    /// What the file of a project may set.
    pub(crate) project: ProjectRule,
    /// The commands that have the option.
    pub(crate) commands: Vec<&'static str>,
    /// Clap's definition.
    pub(crate) arg: Arg,
}

/// A variable of earlier versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OlderVariable {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// Whether its use is reported: other programs may use the same name.
    pub(crate) is_noted: bool,
    /// Converts the text to the values of the option, or returns what is wrong with it.
    pub(crate) read: fn(&str) -> Result<Vec<String>, String>,
    /// What is used instead of an invalid value. An invalid value of another variable is an error.
    pub(crate) fallback: Option<fn() -> String>,
}

const OLDER: [OlderVariable; 8] = [
    OlderVariable { id: "agent", name: variables::AGENT, is_noted: false, read: one, fallback: None },
    OlderVariable { id: "cli_path", name: variables::CLI_PATH, is_noted: false, read: one, fallback: None },
    OlderVariable { id: "model", name: variables::MODEL, is_noted: true, read: one, fallback: None },
    OlderVariable { id: "max_turns", name: variables::MAX_TURNS, is_noted: true, read: one, fallback: Some(max_turns) },
    OlderVariable { id: "cwd", name: variables::WORKING_DIR, is_noted: true, read: one, fallback: None },
    OlderVariable { id: "mcp_delivery", name: "BACKEND_MCP_DELIVERY", is_noted: true, read: one, fallback: None },
    OlderVariable { id: "allow_tool", name: variables::ALLOWED_TOOLS, is_noted: true, read: rules, fallback: None },
    OlderVariable {
        id: "deadline",
        name: variables::QUERY_TIMEOUT_MS,
        is_noted: true,
        read: milliseconds,
        fallback: None,
    },
];

#[expect(clippy::unnecessary_wraps, reason = "other variables can be invalid")]
fn one(text: &str) -> Result<Vec<String>, String> {
    Ok(vec![text.to_owned()])
}

#[expect(clippy::unnecessary_wraps, reason = "other variables can be invalid")]
fn rules(text: &str) -> Result<Vec<String>, String> {
    Ok(split_rules(text))
}

fn max_turns() -> String {
    variables::DEFAULT_MAX_TURNS.to_string()
}

fn milliseconds(text: &str) -> Result<Vec<String>, String> {
    match text.trim().parse::<u64>() {
        Ok(number) => Ok(vec![format!("{number}ms")]),
        Err(_) => Err(format!("invalid value {text:?}: use a whole number of milliseconds, such as 90000")),
    }
}

/// The options that belong to one call.
const ONE_CALL: [&str; 7] = ["attach", "config", "continue_last", "force", "fork", "record", "resume"];

/// Returns the settings in the order of `--help`.
pub(crate) fn settings(definition: &clap::Command) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    let root: Vec<&Arg> = definition.get_arguments().filter(|arg| arg.is_global_set()).collect();
    let mut add = |arg: &Arg, command: &'static str| {
        let Some(long) = arg.get_long().filter(|_| is_setting(arg)) else { return };
        match settings.iter_mut().find(|setting| setting.id == arg.get_id().as_str()) {
            Some(known) => known.commands.push(command),
            None => settings.push(setting(arg, long, command)),
        }
    };
    for command in AGENT_COMMANDS {
        let subcommand = definition.find_subcommand(command);
        subcommand.into_iter().flat_map(clap::Command::get_arguments).for_each(|arg| add(arg, command));
        for arg in &root {
            add(arg, command);
        }
    }
    settings
}

/// The options that select a gateway and its conversation. They are no settings of a run.
pub(super) const OF_GATEWAY: [&str; 4] = ["gateway_conversation", "server", "data_dir", "insecure"];

/// Whether the argument is an option that sets something; the hidden ones are the negations of switches.
fn is_setting(arg: &Arg) -> bool {
    !OF_GATEWAY.contains(&arg.get_id().as_str())
        && !arg.is_hide_set()
        && !matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong)
}

fn setting(arg: &Arg, long: &str, command: &'static str) -> Setting {
    let id = arg.get_id().to_string();
    let key = long.replace('-', "_");
    let scope = match &*id {
        "profile" => Scope::NotInProfiles,
        id if ONE_CALL.contains(&id) => Scope::OneCall,
        _ => Scope::Everywhere,
    };
    Setting {
        variable: format!("TEAMSTER_{}", key.to_uppercase()),
        older: OLDER.into_iter().find(|older| older.id == id),
        kind: match arg.get_action() {
            ArgAction::SetTrue => Kind::Switch,
            ArgAction::Append => Kind::List,
            _ if arg.get_value_delimiter().is_some() => Kind::List,
            _ => Kind::One,
        },
        scope,
        project: project_rule::rule_of(&id),
        commands: vec![command],
        arg: arg.clone(),
        key,
        id,
    }
}

impl Setting {
    /// Whether a value may be JSON instead of a file's name.
    pub(crate) fn takes_json(&self) -> bool {
        self.value_name().contains("JSON")
    }

    /// Whether each value is a name and a value, separated by `=`.
    pub(crate) fn takes_pairs(&self) -> bool {
        self.value_name().contains('=')
    }

    /// Whether the value is a duration.
    pub(crate) fn takes_duration(&self) -> bool {
        self.value_name() == "DURATION"
    }

    /// Whether a file may have a number as the value. A duration is one with a unit, which its own error names.
    pub(crate) fn takes_number(&self) -> bool {
        self.takes_duration() || self.takes_pairs() || matches!(self.value_name(), "N" | "USD")
    }

    /// Returns the name of the value in `--help`.
    pub(crate) fn value_name(&self) -> &str {
        self.arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str())
    }

    /// Whether a value is a path, or a program if it contains a slash.
    pub(crate) fn takes_path(&self, value: &str) -> bool {
        match self.arg.get_value_hint() {
            ValueHint::FilePath | ValueHint::DirPath => {
                !(self.takes_json() && value.trim_start().starts_with(['{', '[']))
            }
            ValueHint::CommandName => value.contains('/'),
            _ => false,
        }
    }
}
