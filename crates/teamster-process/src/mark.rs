//! The mark of a tree: a variable in the environment of its leader, which every descendant inherits.
//!
//! It is for the ledger: when a keeper was killed with its host, a process whose parents have ended is kin to nobody any
//! more. Its environment still tells where it came from. The mark's name is unique, so that a tree inside another one
//! bears both. Only a process that threw its environment away escapes.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::getpid;

use crate::{process, sys};

/// What the names of the variables begin with that mark the trees in which a process runs.
pub const MARK_PREFIX: &str = "TEAMSTER_TREE_";

/// A variable that only one tree has.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    name: String,
}

impl Mark {
    /// One that no other tree of this machine bears.
    pub(crate) fn unique() -> Self {
        static TREES: AtomicU64 = AtomicU64::new(0);
        let pid = getpid().as_raw_nonzero().get();
        let start = process::start_of(pid).unwrap_or_default();
        let name = format!("{MARK_PREFIX}{pid}_{start}_{}", TREES.fetch_add(1, Ordering::Relaxed));
        Self { name }
    }

    /// The variable's name; its value says nothing.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Whether this can be the name of a mark.
pub(crate) fn is_name(name: &str) -> bool {
    let own = name.strip_prefix(MARK_PREFIX).unwrap_or_default();
    !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a process bears the mark of this name.
pub(crate) fn is_borne_by(pid: i32, name: &str) -> bool {
    borne_by(pid).is_some_and(|names| names.iter().any(|one| one == name))
}

/// The names of all marks that a process bears; `None` if it has no environment, or none that may be read.
pub(crate) fn borne_by(pid: i32) -> Option<Vec<String>> {
    let environ = sys::environ(pid);
    let variables = environ.split(|&byte| byte == 0).filter(|variable| variable.starts_with(MARK_PREFIX.as_bytes()));
    let names = variables.filter_map(|variable| variable.split(|&byte| byte == b'=').next());
    (!environ.is_empty()).then(|| names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_bears_the_mark_that_it_was_started_with_and_no_other() {
        let mark = Mark::unique();
        assert_ne!(mark.name(), Mark::unique().name());
        let mut child = std::process::Command::new("sleep").arg("30").env(mark.name(), "1").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(borne_by(pid).unwrap(), [mark.name()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(borne_by(pid), None);
    }

    #[test]
    fn only_what_can_be_the_name_of_a_mark_is_taken_for_one() {
        assert!(is_name(Mark::unique().name()));
        for name in ["", "PATH", "TEAMSTER_TREE_", "TEAMSTER_TREE_1=", "XTEAMSTER_TREE_1", "TEAMSTER_TREE_a b"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
