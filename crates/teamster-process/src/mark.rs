//! The mark of a tree: a variable in the environment of its leader, which every descendant inherits.
//!
//! A process that left its group and its session, and whose parents ended between two looks at `/proc`, is kin to
//! nobody any more. Its environment still tells where it came from. The mark's name is unique, so that a tree inside
//! another one bears both. Only a process that threw its environment away escapes.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem::Finder;
use rustix::process::getpid;

use crate::procfs;

/// A variable that only one tree has.
#[derive(Debug)]
pub(crate) struct Mark {
    name: OsString,
    finder: Finder<'static>,
}

impl Mark {
    /// One that no other tree of this machine bears.
    pub(crate) fn unique() -> Self {
        static TREES: AtomicU64 = AtomicU64::new(0);
        let pid = getpid().as_raw_nonzero().get();
        let start = procfs::start_of(pid).unwrap_or_default();
        let name = format!("TEAMSTER_TREE_{pid}_{start}_{}", TREES.fetch_add(1, Ordering::Relaxed));
        // With its end, so that 1 is not found in 10.
        let finder = Finder::new(&format!("{name}=")).into_owned();
        Self { name: name.into(), finder }
    }

    /// The variable's name; its value says nothing.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether a process bears it. One whose environment may not be read does not.
    pub(crate) fn is_borne_by(&self, pid: i32) -> bool {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| self.finder.find(&environ).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_bears_the_mark_that_it_was_started_with_and_no_other() {
        let (mark, other) = (Mark::unique(), Mark::unique());
        let mut child = std::process::Command::new("sleep").arg("30").env(mark.name(), "1").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // `spawn` returns when the program has been executed, so the environment is its own.
        assert!(mark.is_borne_by(pid));
        assert!(!other.is_borne_by(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!mark.is_borne_by(pid));
    }
}
