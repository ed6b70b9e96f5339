//! Finds the file of a project.

use std::io;
use std::path::{Path, PathBuf};

use crate::plan::Inputs;

/// The name of a project's file.
pub(crate) const NAME: &str = ".teamster.toml";

/// The maximum size of the file.
const MAX_BYTES: u64 = 1 << 20;

/// The file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    pub(crate) path: PathBuf,
    /// Its directory, without links.
    pub(crate) directory: PathBuf,
}

/// Returns the file of the project of a directory: in the directory itself, or in the next parent up to the root of the
/// Git repository. Outside of a repository only the directory itself is searched.
pub(crate) fn find(directory: &Path, inputs: &impl Inputs) -> Option<ProjectFile> {
    let parents: Vec<&Path> = directory.ancestors().collect();
    let root = parents.iter().position(|parent| inputs.exists(&parent.join(".git"))).unwrap_or(0);
    let parent = parents.into_iter().take(root + 1).find(|parent| inputs.exists(&parent.join(NAME)))?;
    // The file is read by the path that is checked: a link in another path could change meanwhile.
    let directory = inputs.canonical(parent).ok()?;
    Some(ProjectFile { path: directory.join(NAME), directory })
}

/// Reads the file of a project.
///
/// # Errors
/// It cannot be read, is no regular file, or is too long.
pub(crate) fn read(path: &Path, inputs: &mut impl Inputs) -> io::Result<Vec<u8>> {
    inputs.limited_file(path, MAX_BYTES)
}
