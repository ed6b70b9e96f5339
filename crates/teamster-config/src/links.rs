//! Checks the links on the path to a file of a project: only the user's own are followed, and only to targets in the project.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;

use crate::error::{ConfigError, TargetProblem, io_error, target};

/// The maximum number of links, as in the system.
const MAX_LINKS: usize = 40;

/// Checks every link on the path from `root`, which contains no links itself, to the file `below` it.
///
/// # Errors
/// A link belongs to another user or leads out of `root`.
pub(crate) fn check(root: &Path, below: &Path) -> Result<(), ConfigError> {
    let refused = || target(&root.join(below), TargetProblem::ForeignLink);
    let mut here = root.to_owned();
    let mut rest: VecDeque<PathBuf> = parts(below);
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        match part.components().next() {
            Some(Component::Normal(name)) => here.push(name),
            Some(Component::ParentDir) => _ = here.pop(),
            _ => continue,
        }
        if !here.starts_with(root) {
            return Err(refused());
        }
        let metadata = match fs::symlink_metadata(&here) {
            Ok(metadata) => metadata,
            // A missing component is created as a directory, and never as a link.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(io_error("find", &here)(error)),
        };
        if !metadata.is_symlink() {
            continue;
        }
        links += 1;
        if metadata.uid() != geteuid().as_raw() || links > MAX_LINKS {
            return Err(refused());
        }
        let leads = fs::read_link(&here).map_err(io_error("read", &here))?;
        here.pop();
        if leads.is_absolute() {
            let inside = leads.strip_prefix(root).map_err(|_| refused())?;
            root.clone_into(&mut here);
            prepend(&mut rest, inside);
        } else {
            prepend(&mut rest, &leads);
        }
    }
    Ok(())
}

/// Checks that a path that had no links still has none.
///
/// # Errors
/// It has a link.
pub(crate) fn check_none(root: &Path, path: &Path) -> Result<(), ConfigError> {
    let below = path.ancestors().take_while(|ancestor| *ancestor != root);
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if below.into_iter().any(is_link) {
        return Err(target(path, TargetProblem::ForeignLink));
    }
    Ok(())
}

fn parts(path: &Path) -> VecDeque<PathBuf> {
    path.components().map(|part| PathBuf::from(part.as_os_str())).collect()
}

fn prepend(rest: &mut VecDeque<PathBuf>, path: &Path) {
    for part in parts(path).into_iter().rev() {
        rest.push_front(part);
    }
}
