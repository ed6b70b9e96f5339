//! An environment variable that marks the processes of one tree. The leader gets it, and every
//! descendant inherits it.
//!
//! The ledger uses it. If a keeper was killed with its host, the parents of an orphan no longer
//! lead to its tree, but its environment still does. The name is unique, so a tree inside another
//! tree has both variables. A process that clears its environment loses the marker.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::getpid;

use crate::{process, sys};

/// The prefix of the variable names that mark process trees.
pub const ENV_MARKER_PREFIX: &str = "TEAMSTER_TREE_";

/// The marker of one tree.
#[derive(Clone, Debug)]
pub(crate) struct EnvMarker {
    name: String,
}

impl EnvMarker {
    /// Returns a marker that no other tree on this machine has.
    pub(crate) fn unique() -> Self {
        static TREES: AtomicU64 = AtomicU64::new(0);
        let pid = getpid().as_raw_nonzero().get();
        let start = process::start_of(pid).unwrap_or_default();
        let name = format!("{ENV_MARKER_PREFIX}{pid}_{start}_{}", TREES.fetch_add(1, Ordering::Relaxed));
        Self { name }
    }

    /// Returns the variable's name. Its value has no meaning.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Returns whether this is a valid marker name.
pub(crate) fn is_marker_name(name: &str) -> bool {
    let own = name.strip_prefix(ENV_MARKER_PREFIX).unwrap_or_default();
    !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether a process has the marker with this name.
pub(crate) fn has_marker(pid: i32, name: &str) -> bool {
    markers_of(pid).is_some_and(|names| names.iter().any(|one| one == name))
}

/// Returns the names of all markers in a process's environment; `None` if it has no environment or
/// it cannot be read.
pub(crate) fn markers_of(pid: i32) -> Option<Vec<String>> {
    let environ = sys::environ(pid);
    let variables =
        environ.split(|&byte| byte == 0).filter(|variable| variable.starts_with(ENV_MARKER_PREFIX.as_bytes()));
    let names = variables.filter_map(|variable| variable.split(|&byte| byte == b'=').next());
    (!environ.is_empty()).then(|| names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_has_only_the_marker_that_it_was_started_with() {
        let marker = EnvMarker::unique();
        assert_ne!(marker.name(), EnvMarker::unique().name());
        let mut child = std::process::Command::new("sleep").arg("30").env(marker.name(), "1").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // A spawn may return before the kernel has set the environment of the new program.
        let limit = Instant::now() + Duration::from_secs(10);
        while markers_of(pid).is_none() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(markers_of(pid).unwrap(), [marker.name()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(markers_of(pid), None);
    }

    #[test]
    fn invalid_marker_names_are_rejected() {
        assert!(is_marker_name(EnvMarker::unique().name()));
        for name in ["", "PATH", "TEAMSTER_TREE_", "TEAMSTER_TREE_1=", "XTEAMSTER_TREE_1", "TEAMSTER_TREE_a b"] {
            assert!(!is_marker_name(name), "{name:?}");
        }
    }
}
