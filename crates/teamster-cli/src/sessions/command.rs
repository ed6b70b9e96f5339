//! The command, and what it prints besides the list.

use std::io;
use std::path::PathBuf;

use clap::ValueHint;
use serde_json::json;
use teamster::sessions::{SessionList, SessionQuery, SkippedPath};
use teamster::{Registry, Runtime};

use super::table::{self, Table};
use crate::args::values;
use crate::config;
use crate::exit;
use crate::option_names;
use crate::plan::{SystemInputs, UsageError};
use crate::printable::{Printable, printable};
use crate::render::{self, write_notice};
use crate::runtime::report_usage_error;

/// The number of files that are named if they cannot be read.
const MAX_WARNINGS: usize = 10;

/// List the sessions that can be resumed
///
/// Lists the sessions of all agents, also those that were started without teamster: their ids, titles, ages, prompts and
/// costs. They are read from the agents' own files, which are not changed. The newest is the first.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct SessionsArgs {
    /// List sessions of all directories
    #[arg(long, conflicts_with = "cwd")]
    pub(crate) all: bool,

    /// List only sessions of this agent (repeatable)
    #[arg(short, long, value_name = "NAME", value_parser = values::AgentName, hide_possible_values = true)]
    pub(crate) agent: Vec<String>,

    /// List the sessions of this directory [default: the current one]
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// List at most this many sessions; 0 means all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Print as: text (default) or json
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) output: Format,

    /// Read definitions of further agents from this TOML file
    ///
    /// The default is ~/.config/teamster/config.toml.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// The output format of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

const AFTER: &str = "\
Examples:
  teamster sessions
  teamster sessions --all --agent codex
  teamster chat --agent codex --resume 01a20c5e

On a terminal, ids are shortened: --resume takes the start of an id.";

/// Runs the command and returns its exit code.
pub(crate) fn main(args: &SessionsArgs) -> u8 {
    let (registry, problems) = config::registry(args.config.as_deref(), &mut SystemInputs);
    if let Some(problem) = problems.into_iter().next() {
        return report_usage_error(&Printable::error(&problem), None);
    }
    let current = match std::env::current_dir() {
        Ok(current) => current,
        Err(error) => return report_usage_error(&Printable::error(&error), None),
    };
    let directory = args.cwd.as_ref().map_or_else(|| current.clone(), |cwd| current.join(cwd));
    let mut query = SessionQuery::default();
    query.agents.clone_from(&args.agent);
    query.directory = (!args.all).then_some(directory);
    query.limit = (args.limit > 0).then_some(args.limit);
    let runtime = Runtime::builder().registry(registry).build();
    let list = match runtime.sessions(&query) {
        Ok(list) => list,
        Err(error) => {
            let error = UsageError::from(error);
            return report_usage_error(&option_names::in_error(&error), error.hint());
        }
    };
    if let Some(missing) = missing_directory(&list, &query) {
        return report_usage_error(&missing, None);
    }
    let written = match args.output {
        Format::Json => write_json(&list),
        Format::Text => write_text(&list, &query, runtime.registry()),
    };
    match written {
        Ok(()) => exit::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::NO_READER,
        Err(error) => {
            render::write_error(&mut anstream::stderr(), &Printable::error(&error), None);
            exit::FAILURE
        }
    }
}

/// Returns an error if the directory does not exist. The sessions of a removed directory are listed.
fn missing_directory(list: &SessionList, query: &SessionQuery) -> Option<Printable> {
    let directory = query.directory.as_ref().filter(|directory| list.sessions.is_empty() && !directory.is_dir())?;
    let problem = if directory.exists() { "is not a directory" } else { "does not exist" };
    Some(printable!("the directory {} of --cwd {}", directory, problem))
}

fn write_json(list: &SessionList) -> io::Result<()> {
    let document = json!({ "sessions": list.sessions, "hasMore": list.has_more, "skipped": list.skipped });
    render::write_document(&serde_json::to_string_pretty(&document)?, &mut anstream::stdout())
}

fn write_text(list: &SessionList, query: &SessionQuery, registry: &Registry) -> io::Result<()> {
    let table = Table::of_stdout(query.directory.is_none());
    if !list.sessions.is_empty() {
        Printable::join(table.lines(&list.sessions), "\n").write_line(&mut anstream::stdout())?;
    }
    notes(list, query, registry, COMMANDS).iter().for_each(write_notice);
    Ok(())
}

/// The commands that list more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commands {
    /// Lists the sessions of all directories.
    pub(crate) all: &'static str,
    /// Lists older sessions too.
    pub(crate) older: &'static str,
}

const COMMANDS: Commands = Commands { all: "teamster sessions --all", older: "--limit 0" };

/// Returns what the user should know about a list.
pub(crate) fn notes(
    list: &SessionList,
    query: &SessionQuery,
    registry: &Registry,
    commands: Commands,
) -> Vec<Printable> {
    let mut notes: Vec<Printable> = list.skipped.iter().take(MAX_WARNINGS).map(warning).collect();
    if list.skipped.len() > MAX_WARNINGS {
        notes.push(printable!("and {} more files were skipped", list.skipped.len() - MAX_WARNINGS));
    }
    for name in &query.agents {
        if registry.get(name).is_ok_and(|agent| agent.session_store().is_none()) {
            notes.push(printable!("{} is not known to store sessions where teamster can read them", name));
        }
    }
    match &query.directory {
        Some(directory) if list.sessions.is_empty() => {
            let directory = table::directory_in_short(directory);
            notes.push(printable!("no sessions in {}; to list those of all directories: {}", directory, commands.all));
        }
        None if list.sessions.is_empty() => notes.push("no sessions".into()),
        _ if list.has_more => notes.push(printable!("there are older sessions; to list all: {}", commands.older)),
        _ => {}
    }
    notes
}

fn warning(skipped: &SkippedPath) -> Printable {
    printable!("skipped {}: {}", &skipped.path, Printable::message(&skipped.reason))
}
