//! The configuration files: the user's own one, and that of a project.
//!
//! - [`file`]: reads a file into settings, profiles and agents, and its problems.
//! - [`agents`]: the tables `[agents.NAME]`, which define programs that speak ACP.
//! - [`project`]: finds the file of a project; [`trust`]: the directories whose files are used.
//! - [`command`]: `teamster config`; [`template`]: the file that `teamster config init` writes.
//!
//! Invariant: nothing in a file is ignored; an invalid entry is an error with its line number.

mod agents;
mod command;
mod file;
mod project;
mod show;
mod template;
mod trust;

use std::io;
use std::path::{Path, PathBuf};

use teamster::Registry;

use crate::args;
use crate::plan::Inputs;
use crate::settings;

pub(crate) use command::{ConfigArgs, main};
pub(crate) use file::{ConfigFile, Owner, parse};
pub(crate) use project::{ProjectFile, find as find_project};
pub(crate) use trust::trusted as trusted_projects;

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", file.to_string_lossy())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: {problem}", file.to_string_lossy())]
    Invalid { file: PathBuf, line: usize, problem: String },
    #[error("environment variable {name}: {problem}")]
    Variable { name: String, problem: String },
    #[error("{0}")]
    UnknownProfile(String),
}

/// Returns the user's configuration file: the named one, or the default one, which may be missing.
pub(crate) fn user_file(named: Option<&Path>, inputs: &impl Inputs) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| {
        let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
        Some(folder.join("teamster/config.toml"))
    })
}

/// Reads the user's configuration file. A missing default file is empty; a missing named file is a problem.
pub(crate) fn read_user_file(
    named: Option<&Path>,
    settings: &[settings::Setting],
    inputs: &mut impl Inputs,
) -> ConfigFile {
    let Some(path) = user_file(named, inputs) else { return ConfigFile::default() };
    match inputs.file(&path) {
        Ok(bytes) => parse(&path, &bytes, Owner::User, settings, inputs),
        Err(error) if named.is_none() && is_absent(&error) => ConfigFile::default(),
        Err(source) => {
            ConfigFile { problems: vec![ConfigError::Unreadable { file: path, source }], ..ConfigFile::default() }
        }
    }
}

/// Returns the built-in agents and those of the configuration file, and the problems of the file.
pub(crate) fn registry(named: Option<&Path>, inputs: &mut impl Inputs) -> (Registry, Vec<ConfigError>) {
    let settings = settings::settings(&args::command());
    let ConfigFile { agents, problems, .. } = read_user_file(named, &settings, inputs);
    let mut registry = Registry::default();
    for agent in agents {
        registry.register(agent);
    }
    (registry, problems)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
