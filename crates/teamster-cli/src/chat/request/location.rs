//! Where a call has its effect: in the agent's working directory, or elsewhere.

use std::path::{Component, Path, PathBuf};

/// The location of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the agent's working directory.
    Inside,
    /// In another directory, or at a path that cannot be resolved.
    Outside,
    Unknown,
}

/// The location of a path, and the path without symbolic links if it has any.
pub(super) fn of_path(path: &str, directory: &Path) -> (Location, Option<PathBuf>) {
    let whole = directory.join(path);
    let Some(real) = resolved(&whole) else { return (Location::Outside, None) };
    let root = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let location = if real.starts_with(&root) { Location::Inside } else { Location::Outside };
    let named = whole.strip_prefix(directory).map_or_else(|_| whole.clone(), |rest| root.join(rest));
    let is_same = named.components().eq(real.components());
    (location, (!is_same).then_some(real))
}

/// The location of a directory in which a command runs.
pub(super) fn of_directory(path: &str, directory: &Path) -> Location {
    let same =
        resolved(&directory.join(path)).is_some_and(|real| directory.canonicalize().is_ok_and(|own| own == real));
    if path.is_empty() || same || Path::new(path) == directory { Location::Inside } else { Location::Outside }
}

/// Resolves the links of a path. Components that do not exist are kept. `None` for a link to nowhere, and for `..` after a
/// component that does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return Some(rest.iter().rev().fold(real, |whole, part| whole.join(part)));
        }
        if ancestor.symlink_metadata().is_ok() {
            return None;
        }
        match ancestor.components().next_back() {
            Some(Component::Normal(name)) => rest.push(name.to_owned()),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_parents_lead_out_of_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::write(root.join("other"), "").unwrap();
        std::fs::write(project.join("a"), "").unwrap();
        for (link, target) in [("link", "../other"), ("lost", "../nothing"), ("up", ".."), ("same", "a")] {
            symlink(target, project.join(link)).unwrap();
        }
        let whole = |path: &str| root.join(path).to_string_lossy().into_owned();
        for (path, location, real) in [
            ("a", Location::Inside, None),
            ("./src/new/file", Location::Inside, None),
            (&*whole("project/a"), Location::Inside, None),
            ("same", Location::Inside, Some("project/a")),
            ("link", Location::Outside, Some("other")),
            ("lost", Location::Outside, None),
            ("up/new", Location::Outside, Some("new")),
            ("new/../../x", Location::Outside, None),
            ("../other", Location::Outside, Some("other")),
            (&*whole("other"), Location::Outside, None),
        ] {
            assert_eq!(of_path(path, &project), (location, real.map(|real| root.join(real))), "{path}");
        }
        for (path, location) in
            [("", Location::Inside), (".", Location::Inside), ("src", Location::Outside), ("up", Location::Outside)]
        {
            assert_eq!(of_directory(path, &project), location, "{path}");
        }
    }
}
