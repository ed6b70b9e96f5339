//! Resolves paths, and decides which paths have one certain meaning.

use std::path::{Component, Path, PathBuf};

/// The maximum length of a text that can be a path.
pub(super) const LONGEST: usize = 4096;

/// Resolves paths in the file system, which this crate does not access itself.
pub trait PathResolver {
    /// Resolves the symbolic links of an absolute path, as the operating system does when it opens the file. Components that do
    /// not exist are retained. Returns `None` if the path cannot be resolved.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// Returns the user's home directory, for `~/`.
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// A [`PathResolver`] without a file system. Paths are compared as text, and symbolic links are not resolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOnly;

impl PathResolver for TextOnly {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(normalized(path))
    }
}

/// Removes `.`, and `..` with the component before it.
pub(super) fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            other => whole.push(other),
        }
    }
    whole
}

/// Whether a path resolves to this directory.
pub(super) fn is_directory(path: &str, cwd: Option<&Path>, files: &dyn PathResolver) -> bool {
    let Some(cwd) = cwd else { return false };
    path.is_empty()
        || is_certain(path) && files.resolve(&cwd.join(path)).is_some_and(|path| files.resolve(cwd) == Some(path))
}

/// Whether all tools read a path in the same way: nothing in it is expanded, decoded or trimmed, and it has no `..`.
pub(super) fn is_certain(path: &str) -> bool {
    !path.is_empty()
        && path.trim() == path
        && path.len() <= LONGEST
        && !path.starts_with(['~', '@', '"', '\'', '$', '%', '`'])
        && !path.contains(['\\', '\0'])
        && !path.chars().any(char::is_control)
        && !path.contains("://")
        && !path.to_ascii_lowercase().starts_with("file:")
        && !path.split('/').any(|part| part == "..")
        && !is_of_process(Path::new(path))
}

/// Whether a path refers to the files of a process, such as `/dev/fd` or `/proc/self/cwd`. It names different files in different
/// processes.
pub(super) fn is_of_process(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    match (parts.next(), parts.next()) {
        (Some("dev"), Some("fd" | "stdin" | "stdout" | "stderr")) => path.starts_with('/'),
        (Some("proc"), Some(_)) if path.starts_with('/') => {
            parts.any(|part| matches!(part, "cwd" | "root" | "fd" | "exe" | "map_files"))
        }
        _ => false,
    }
}
