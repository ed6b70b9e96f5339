//! The rules that a person saved in earlier chats of a directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use teamster::Session;

use super::Inputs;
use crate::config;

/// The saved rules of a directory, and the file that has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedRules {
    /// The user's configuration file; `None` without a home directory.
    file: Option<PathBuf>,
    /// The directory without links.
    directory: PathBuf,
    by_agent: BTreeMap<String, Vec<String>>,
}

impl SavedRules {
    /// Reads the rules of a directory. Problems of the file are reported elsewhere.
    pub(super) fn read(named: Option<&Path>, directory: &Path, inputs: &mut impl Inputs) -> Self {
        let directory = inputs.canonical(directory).unwrap_or_else(|_| directory.to_owned());
        let mut projects = config::read_user_file(named, None, inputs).projects;
        let by_agent = projects.remove(&directory).unwrap_or_default();
        Self { file: config::user_file(named, inputs), directory, by_agent }
    }

    /// Returns the rules for an agent.
    pub(crate) fn of(&self, agent: &str) -> &[String] {
        self.by_agent.get(agent).map(Vec::as_slice).unwrap_or_default()
    }

    /// Allows the rules for an agent in a session. A rule of its request that denies has priority.
    pub(crate) fn allow_in(&self, session: &Session, agent: &str) {
        for rule in self.of(agent) {
            // The file was checked, so only a session that has ended rejects a rule.
            _ = session.allow_rule(rule.as_str());
        }
    }

    /// Returns the file to which rules are saved.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Saves rules for an agent.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub(crate) fn save(&mut self, agent: &str, rules: &[String]) -> io::Result<()> {
        let file = self.file.as_deref().ok_or_else(|| io::Error::other("there is no configuration file: set HOME"))?;
        config::save_rules(file, &self.directory, agent, rules)?;
        let known = self.by_agent.entry(agent.to_owned()).or_default();
        known.extend(rules.iter().filter(|rule| !known.contains(rule)).cloned().collect::<Vec<_>>());
        Ok(())
    }

    /// Removes a rule of an agent. Returns false if it was not saved.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub(crate) fn remove(&mut self, agent: &str, rule: &str) -> io::Result<bool> {
        let Some(rules) = self.by_agent.get_mut(agent).filter(|rules| rules.iter().any(|known| known == rule)) else {
            return Ok(false);
        };
        if let Some(file) = &self.file {
            config::remove_rule(file, &self.directory, agent, rule)?;
        }
        rules.retain(|known| known != rule);
        Ok(true)
    }
}
