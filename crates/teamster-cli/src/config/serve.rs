//! The table `[serve]` of the user's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use teamster_gateway::config::file::{Parsed, ServeTable};
use toml::Spanned;
use toml::de::DeValue;

use super::error::Invalid;

/// The table with the lines of its keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServeSection {
    /// The values. Paths are absolute.
    pub(crate) table: ServeTable,
    /// The file.
    pub(crate) file: PathBuf,
    /// The line of each key, by its path, such as `limits.max_running`.
    pub(crate) lines: BTreeMap<String, usize>,
    /// The keys whose values cannot be read.
    pub(crate) removed: Vec<String>,
}

impl ServeSection {
    /// Returns the line of a key, or of the table that contains it.
    pub(crate) fn line(&self, key: &str) -> Option<usize> {
        let parents = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(parent, _)| parent));
        parents.into_iter().find_map(|key| self.lines.get(key).copied())
    }

    /// Returns whether the value of a key, or a part of it, cannot be read. A further problem of it would be a consequence.
    pub(crate) fn is_incomplete(&self, key: &str) -> bool {
        let is_part =
            |removed: &String| removed.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.removed.iter().any(is_part)
    }
}

/// Reads the table. Problems are added to those of the file.
pub(super) fn read(
    value: Spanned<DeValue<'_>>,
    file: &Path,
    text: &str,
    home: Option<&Path>,
    problems: &mut Vec<Invalid>,
) -> ServeSection {
    let at = value.span().start;
    let Parsed { mut table, offsets, problems: found, removed } = teamster_gateway::config::file::read(value);
    problems.extend(found.into_iter().map(|found| Invalid { at: found.at.unwrap_or(at), problem: found.problem }));
    table.resolve_paths(file.parent().unwrap_or(Path::new("/")), home);
    let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let lines = offsets.into_iter().map(|(key, at)| (key, line(at))).collect();
    ServeSection { table, file: file.to_owned(), lines, removed }
}
