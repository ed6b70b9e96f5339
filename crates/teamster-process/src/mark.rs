//! The mark of a tree: a variable in the environment of its leader, which every descendant inherits.
//!
//! It is for the ledger: when a keeper was killed with its host, a process whose parents have ended is kin to nobody any
//! more. Its environment still tells where it came from. The mark's name is unique, so that a tree inside another one
//! bears both. Only a process that threw its environment away escapes.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::getpid;

use crate::procfs;

/// What the names of the variables begin with that mark the trees in which a process runs.
pub const MARK_PREFIX: &str = "TEAMSTER_TREE_";

/// How often and how long a process is waited for that is about to get its environment.
const EXEC_LOOKS: usize = 50;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// A variable that only one tree has.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    name: OsString,
}

impl Mark {
    /// One that no other tree of this machine bears.
    pub(crate) fn unique() -> Self {
        static TREES: AtomicU64 = AtomicU64::new(0);
        let pid = getpid().as_raw_nonzero().get();
        let start = procfs::start_of(pid).unwrap_or_default();
        let name = format!("{MARK_PREFIX}{pid}_{start}_{}", TREES.fetch_add(1, Ordering::Relaxed));
        Self { name: name.into() }
    }

    /// The variable's name; its value says nothing.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }
}

/// Whether this can be the name of a mark.
pub(crate) fn is_name(name: &str) -> bool {
    let own = name.strip_prefix(MARK_PREFIX).unwrap_or_default();
    !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The names of all marks that a process bears; `None` if it has no environment, or none that may be read.
pub(crate) fn borne_by(pid: i32) -> Option<Vec<String>> {
    let environ = environ(pid);
    let variables = environ.split(|&byte| byte == 0).filter(|variable| variable.starts_with(MARK_PREFIX.as_bytes()));
    let names = variables.filter_map(|variable| variable.split(|&byte| byte == b'=').next());
    (!environ.is_empty()).then(|| names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The environment of a process; nothing if it may not be read.
fn environ(pid: i32) -> Vec<u8> {
    for _ in 0..EXEC_LOOKS {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if !environ.is_empty() || !is_being_executed(pid) {
            return environ;
        }
        std::thread::sleep(EXEC_PAUSE);
    }
    Vec::new()
}

/// Whether a process has a new program already, but that program's environment not yet: the system shows none until
/// then. (Who started it may go on before.)
fn is_being_executed(pid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = memchr::memrchr(b')', &stat).and_then(|end| stat.get(end + 1..)).unwrap_or_default();
    // The address where the environment ends is field 51 in proc(5); the state, behind the name, is field 3.
    let end = fields.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(48);
    // Threads of the kernel have no environment either, and no program.
    end == Some(b"0") && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
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
        assert_eq!(borne_by(pid).unwrap(), [mark.name().to_str().unwrap()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(borne_by(pid), None);
    }

    #[test]
    fn only_what_can_be_the_name_of_a_mark_is_taken_for_one() {
        assert!(is_name(Mark::unique().name().to_str().unwrap()));
        for name in ["", "PATH", "TEAMSTER_TREE_", "TEAMSTER_TREE_1=", "XTEAMSTER_TREE_1", "TEAMSTER_TREE_a b"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
