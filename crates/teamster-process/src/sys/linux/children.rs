//! Finds the children of this process without `/proc`: `waitid` shows for each pid whether it is a
//! child.

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, getpid, waitid},
};

use super::{procfs, read_text_of_system};
use crate::stat::{Stat, State, UNKNOWN_START};

/// The highest possible pid, used if the system's own limit is unknown.
const MOST: i32 = 1 << 22;

/// Returns whether a process is an unreaped child of this one. Its pid cannot be reused until then.
pub(crate) fn is_own_child(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| state(pid).is_some())
}

/// Returns the living children of this process, without names and start times.
///
/// First it searches the pids that were assigned since this process started. If there are children
/// but none is among those, it searches all pids.
pub(crate) fn own_children() -> Vec<Stat> {
    if !has_children() {
        return Vec::new();
    }
    let own = getpid().as_raw_nonzero().get();
    let newest = newest_number().unwrap_or(MOST);
    let most = procfs::any().ok().and_then(|root| read_text_of_system(&root, "sys/kernel/pid_max")).unwrap_or(MOST);
    let recent = if newest > own { among(own + 1, newest) } else { [among(own + 1, most), among(2, newest)].concat() };
    let mut children = if recent.is_empty() { among(2, most) } else { recent };
    children.retain(Stat::is_alive);
    children
}

/// Returns the children in this range of pids, including dead ones.
fn among(first: i32, last: i32) -> Vec<Stat> {
    let own = getpid().as_raw_nonzero().get();
    let child = |pid: i32| {
        let state = state(Pid::from_raw(pid)?)?;
        let name = "unknown".to_owned();
        Some(Stat { pid, name, state, parent: own, start: UNKNOWN_START })
    };
    (first..=last).filter_map(child).collect()
}

/// Returns the state of a child; `None` if this process has no such child.
fn state(pid: Pid) -> Option<State> {
    let ask = |what| waitid(WaitId::Pid(pid), what | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    match ask(WaitIdOptions::EXITED) {
        Ok(Some(_)) => Some(State::Dead),
        Ok(None) => Some(match ask(WaitIdOptions::STOPPED) {
            Ok(Some(_)) => State::Stopped,
            _ => State::Alive,
        }),
        Err(_) => None,
    }
}

fn has_children() -> bool {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, any), Err(Errno::CHILD))
}

/// Returns the pid that the system assigns now.
#[expect(unsafe_code, reason = "no safe call forks")]
fn newest_number() -> Option<i32> {
    // SAFETY: only the helper processes call this, which have one thread. The child exits at once
    // and runs no code of this program.
    match unsafe { libc::fork() } {
        -1 => None,
        // SAFETY: it ends the child without running exit handlers.
        0 => unsafe { libc::_exit(0) },
        child => {
            let pid = Pid::from_raw(child)?;
            while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED) {}
            Some(child)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_known_until_it_is_reaped() {
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(is_own_child(pid) && has_children());
        let found = among(pid, pid);
        assert_eq!(found.iter().map(|stat| (stat.pid, stat.state)).collect::<Vec<_>>(), [(pid, State::Alive)]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_own_child(pid) && among(pid, pid).is_empty());
        assert!(!is_own_child(1));
    }
}
