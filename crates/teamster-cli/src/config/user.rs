//! The user's configuration file.

use std::path::{Path, PathBuf};

use teamster::Registry;

use super::error::{ConfigError, is_absent};
use super::file::{ConfigFile, Owner, parse};
use crate::plan::Inputs;
use crate::settings::Setting;

/// Returns the user's configuration file: the named one, or the default one, which may be missing.
pub(crate) fn user_file(named: Option<&Path>, inputs: &impl Inputs) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| {
        let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
        Some(folder.join("teamster/config.toml"))
    })
}

/// Reads the user's configuration file. A missing default file is empty; a missing named file is a
/// problem. Without `settings` only the agents are read.
pub(crate) fn read_user_file(
    named: Option<&Path>,
    settings: Option<&[Setting]>,
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

/// Returns the built-in agents and those of the configuration file, and the problems in its definitions of agents.
pub(crate) fn registry(named: Option<&Path>, inputs: &mut impl Inputs) -> (Registry, Vec<ConfigError>) {
    let ConfigFile { agents, problems, .. } = read_user_file(named, None, inputs);
    let mut registry = Registry::default();
    for agent in agents {
        registry.register(agent);
    }
    (registry, problems)
}
