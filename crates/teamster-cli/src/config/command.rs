//! `teamster config`: shows, creates and edits the configuration, and lists the trusted projects.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueHint;
use serde_json::{Map, Value};

use super::error::{ConfigError, is_absent};
use super::user::{read_user_file, user_file};
use super::{file, project, set_command, show, template, trust};
use crate::exit;
use crate::plan::{Inputs as _, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::{write_document, write_error};
use crate::runtime::report_usage_error;
use crate::settings::{Assignment, Given, Origin, Setting, conflicts, resolve, settings};
use crate::vendor;

/// Show and edit the configuration
///
/// See docs/configuration.md.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,

    /// Use this file instead of ~/.config/teamster/config.toml
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print each setting with its value and its origin
    Show {
        /// Use this profile
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,

        /// Use the project of this directory
        #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,

        /// Print the settings without a value, and all values of the gateway too
        #[arg(long)]
        all: bool,

        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Write a configuration file with every setting as a comment
    Init,
    /// Set a value in the configuration file
    ///
    /// The file is created if it is missing. Its comments stay, and a value that is not valid is not written.
    #[command(after_help = SET_EXAMPLES)]
    Set {
        /// A setting, or the path of a key: profiles.NAME.KEY, serve.KEY, agents.NAME.KEY
        #[arg(value_name = "KEY")]
        key: String,

        /// The value; several for a list
        #[arg(value_name = "VALUE", required = true, num_args = 1.., allow_negative_numbers = true)]
        values: Vec<String>,
    },
    /// Remove a value from the configuration file
    Unset {
        /// The key, as for set
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Print the path of the configuration file
    Path,
    /// Open the configuration file in $VISUAL or $EDITOR, then check it
    Edit,
    /// Use the file .teamster.toml of a directory
    ///
    /// The file can restrict the agent and add instructions, but cannot give it permissions. Without a directory, the
    /// file of the working directory's project is trusted.
    Trust {
        /// The directory of the file
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,

        /// Remove the directory from the trusted ones
        #[arg(long)]
        remove: bool,

        /// Print the trusted directories
        #[arg(long, conflicts_with_all = ["directory", "remove"])]
        list: bool,
    },
}

const SET_EXAMPLES: &str = "\
Examples:
  teamster config set model claude-opus-4-8
  teamster config set usage_journal ~/.local/state/teamster/usage.ndjson
  teamster config set allow_tool 'Bash(npm test)' 'Bash(git diff:*)'
  teamster config set profiles.review.permission read-only
  teamster config set serve.listen 127.0.0.1:4780";

/// Runs the command and returns its exit code. `definition` is that of all commands.
pub(crate) fn main(args: ConfigArgs, definition: &clap::Command) -> u8 {
    let settings = settings(definition);
    let named = args.config.or_else(|| SystemInputs.variable_os("TEAMSTER_CONFIG").map(PathBuf::from));
    let named = named.filter(|path| !path.as_os_str().is_empty());
    match args.action {
        Action::Show { profile, cwd, all, json } => {
            let given = Given { config: named, profile, cwd, ..Given::default() };
            show_values(definition, &given, all, json)
        }
        Action::Init => with_file(named.as_deref(), |path| init(path, &settings)),
        Action::Set { key, values } => {
            with_file(named.as_deref(), |path| set_command::set(path, &key, &values, &settings))
        }
        Action::Unset { key } => with_file(named.as_deref(), |path| set_command::unset(path, &key, &settings)),
        Action::Path => with_file(named.as_deref(), |path| print(&printable!("{}", path))),
        Action::Edit => with_file(named.as_deref(), |path| edit(path, &settings)),
        Action::Trust { list: true, .. } => list_trusted(),
        Action::Trust { directory, remove, .. } => change_trust(directory.as_deref(), !remove, &settings),
    }
}

fn with_file(named: Option<&Path>, action: impl FnOnce(&Path) -> u8) -> u8 {
    match user_file(named, &SystemInputs) {
        Some(path) => action(&path),
        None => report_usage_error(
            &"there is no directory for the configuration".into(),
            Some("set HOME, or name the file with --config".into()),
        ),
    }
}

fn print(text: &Printable) -> u8 {
    match text.write_line(&mut anstream::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

fn failure(what: &'static str, path: &Path, error: &io::Error) -> u8 {
    write_error(&mut anstream::stderr(), &printable!("cannot {} {}: {}", what, path, Printable::error(error)), None);
    exit::FAILURE
}

/// Prints problems of the configuration. Returns the exit code.
fn report(problems: &[ConfigError]) -> u8 {
    for problem in problems {
        write_error(&mut anstream::stderr(), &Printable::error(problem), None);
    }
    if problems.is_empty() { exit::SUCCESS } else { exit::FAILURE }
}

fn show_values(definition: &clap::Command, given: &Given, all: bool, json: bool) -> u8 {
    let settings = settings(definition);
    let mut resolution = resolve(&settings, &conflicts(definition, "run"), given, &mut SystemInputs);
    if !resolution.values.contains_key("agent") && !resolution.values.contains_key("cli_path") {
        let values = vec![vendor::default_agent().to_owned()];
        let agent = Assignment { id: "agent".to_owned(), values, origin: Origin::Machine };
        resolution.values.insert(agent.id.clone(), agent);
    }
    let mut stdout = anstream::stdout();
    let written = if json {
        let mut document = show::document(&settings, &resolution);
        add_gateway(&mut document, definition, given, &mut resolution.problems);
        serde_json::to_string_pretty(&Value::Object(document))
            .map_err(io::Error::from)
            .and_then(|text| write_document(&text, &mut stdout))
    } else {
        show::write(&mut stdout, &settings, &resolution, all)
            .and_then(|()| write_gateway(&mut stdout, definition, given, all, &mut resolution.problems))
    };
    match written {
        Ok(()) => report(&resolution.problems),
        Err(_) => exit::NO_READER,
    }
}

/// Returns the values of `teamster serve`. Problems that are not known yet are added.
#[cfg(feature = "serve")]
fn gateway(
    definition: &clap::Command,
    given: &Given,
    problems: &mut Vec<ConfigError>,
) -> crate::serve::values::ServeValues {
    let args = crate::serve::ServeArgs { config: given.config.clone(), ..Default::default() };
    let (values, found) = crate::serve::inspect(&args, definition, vendor::default_agent);
    let known: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.extend(found.into_iter().filter(|found| !known.contains(&found.to_string())));
    values
}

#[cfg(feature = "serve")]
fn write_gateway(
    out: &mut impl io::Write,
    definition: &clap::Command,
    given: &Given,
    all: bool,
    problems: &mut Vec<ConfigError>,
) -> io::Result<()> {
    super::show_serve::write(out, &gateway(definition, given, problems), all)
}

#[cfg(not(feature = "serve"))]
#[expect(clippy::unnecessary_wraps, reason = "with the gateway, writing can fail")]
fn write_gateway(
    _out: &mut impl io::Write,
    _definition: &clap::Command,
    _given: &Given,
    _all: bool,
    _problems: &mut Vec<ConfigError>,
) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "serve")]
fn add_gateway(
    document: &mut Map<String, Value>,
    definition: &clap::Command,
    given: &Given,
    problems: &mut Vec<ConfigError>,
) {
    document.extend(super::show_serve::document(&gateway(definition, given, problems)));
}

#[cfg(not(feature = "serve"))]
fn add_gateway(
    _document: &mut Map<String, Value>,
    _definition: &clap::Command,
    _given: &Given,
    _problems: &mut Vec<ConfigError>,
) {
}

fn init(path: &Path, settings: &[Setting]) -> u8 {
    match create(path, settings) {
        Ok(()) => print(&printable!("written: {}", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => report_usage_error(
            &printable!("{} exists and is kept", path),
            Some("to change it: teamster config edit; for another file: --config FILE".into()),
        ),
        Err(error) => failure("write", path, &error),
    }
}

/// Writes the template to a new file, which only the user can read: it may get secrets.
fn create(path: &Path, settings: &[Setting]) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(template::text(settings).as_bytes())
}

fn edit(path: &Path, settings: &[Setting]) -> u8 {
    match create(path, settings) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return failure("write", path, &error),
    }
    let set = |name: &str| SystemInputs.variable(name).filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The variable may contain arguments, as for git.
    let status = Command::new("/bin/sh").arg("-c").arg(format!("{editor} \"$@\"")).arg("editor").arg(path).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            let problem = printable!(
                "the editor {} failed: {}",
                Printable::exact(&editor),
                Printable::exact(&status.to_string())
            );
            write_error(&mut anstream::stderr(), &problem, None);
            return exit::FAILURE;
        }
        Err(error) => return failure("start an editor for", path, &error),
    }
    let problems = read_user_file(Some(path), Some(settings), &mut SystemInputs).problems;
    if problems.is_empty() { print(&printable!("{} is valid", path)) } else { report(&problems) }
}

fn list_trusted() -> u8 {
    match trust::trusted(&mut SystemInputs) {
        Ok(directories) => {
            let mut stdout = anstream::stdout();
            let written =
                directories.iter().try_for_each(|path| printable!("{}", path.as_path()).write_line(&mut stdout));
            if written.is_ok() { exit::SUCCESS } else { exit::NO_READER }
        }
        Err(error) => report(&[error]),
    }
}

fn change_trust(directory: Option<&Path>, is_trusted: bool, settings: &[Setting]) -> u8 {
    let Some(list) = trust::list_file(&SystemInputs) else {
        return report_usage_error(&"there is no directory for the list: HOME is not set".into(), None);
    };
    let start = match directory {
        Some(directory) => directory.canonicalize().map_err(|error| (directory.to_owned(), error)),
        None => std::env::current_dir().map_err(|error| (PathBuf::from("."), error)),
    };
    let start = match start {
        Ok(start) => start,
        // A removed directory can be removed from the list too.
        Err((directory, error)) if !is_trusted && is_absent(&error) => directory,
        Err((directory, error)) => return failure("open", &directory, &error),
    };
    let found = project::find(&start, &SystemInputs).filter(|found| directory.is_none() || found.directory == start);
    let trusted = match found {
        Some(found) => found.directory,
        None if !is_trusted => start,
        None => {
            let problem = printable!("there is no file {} in {}", project::NAME, start.as_path());
            return report_usage_error(&problem, Some("create it first: docs/configuration.md".into()));
        }
    };
    if is_trusted {
        let problems = project_problems(&trusted, settings);
        if !problems.is_empty() {
            return report(&problems);
        }
    }
    match trust::change(&list, &trusted, is_trusted) {
        Ok(has_changed) => {
            let state = match (is_trusted, has_changed) {
                (true, true) => "is trusted now",
                (true, false) => "is already trusted",
                (false, true) => "is no longer trusted",
                (false, false) => "is not trusted",
            };
            print(&printable!("{} {}", trusted.as_path(), state))
        }
        Err(error) => failure("change", &list, &error),
    }
}

/// Returns the problems of the file of a project.
fn project_problems(directory: &Path, settings: &[Setting]) -> Vec<ConfigError> {
    let path = directory.join(project::NAME);
    match project::read(&path, &mut SystemInputs) {
        Ok(bytes) => file::parse(&path, &bytes, file::Owner::Project, Some(settings), &SystemInputs).problems,
        Err(source) => vec![ConfigError::Unreadable { file: path, source }],
    }
}
