//! The marker of a tree: a variable in the environment of its leader, which every descendant inherits.
//!
//! It is for the ledger: when a keeper was killed with its host, a process whose parents have ended is kin to nobody any
//! more. Its environment still tells where it came from. The marker's name is unique, so that a tree inside another one
//! bears both. Only a process that threw its environment away escapes.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::getpid;

use crate::{process, sys};

/// What the names of the variables begin with that marker the trees in which a process runs.
pub const ENV_MARKER_PREFIX: &str = "TEAMSTER_TREE_";

/// A variable that only one tree has.
#[derive(Clone, Debug)]
pub(crate) struct EnvMarker {
    name: String,
}

impl EnvMarker {
    /// One that no other tree of this machine bears.
    pub(crate) fn unique() -> Self {
        static TREES: AtomicU64 = AtomicU64::new(0);
        let pid = getpid().as_raw_nonzero().get();
        let start = process::start_of(pid).unwrap_or_default();
        let name = format!("{ENV_MARKER_PREFIX}{pid}_{start}_{}", TREES.fetch_add(1, Ordering::Relaxed));
        Self { name }
    }

    /// The variable's name; its value says nothing.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Whether this can be the name of a marker.
pub(crate) fn is_marker_name(name: &str) -> bool {
    let own = name.strip_prefix(ENV_MARKER_PREFIX).unwrap_or_default();
    !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a process bears the marker of this name.
pub(crate) fn has_marker(pid: i32, name: &str) -> bool {
    markers_of(pid).is_some_and(|names| names.iter().any(|one| one == name))
}

/// The names of all marks that a process bears; `None` if it has no environment, or none that may be read.
pub(crate) fn markers_of(pid: i32) -> Option<Vec<String>> {
    let environ = sys::environ(pid);
    let variables = environ.split(|&byte| byte == 0).filter(|variable| variable.starts_with(ENV_MARKER_PREFIX.as_bytes()));
    let names = variables.filter_map(|variable| variable.split(|&byte| byte == b'=').next());
    (!environ.is_empty()).then(|| names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_bears_the_mark_that_it_was_started_with_and_no_other() {
        let marker = EnvMarker::unique();
        assert_ne!(marker.name(), EnvMarker::unique().name());
        let mut child = std::process::Command::new("sleep").arg("30").env(marker.name(), "1").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(markers_of(pid).unwrap(), [marker.name()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(markers_of(pid), None);
    }

    #[test]
    fn only_what_can_be_the_name_of_a_mark_is_taken_for_one() {
        assert!(is_marker_name(EnvMarker::unique().name()));
        for name in ["", "PATH", "TEAMSTER_TREE_", "TEAMSTER_TREE_1=", "XTEAMSTER_TREE_1", "TEAMSTER_TREE_a b"] {
            assert!(!is_marker_name(name), "{name:?}");
        }
    }
}
