//! The children of this process, found without `/proc`: the system tells for each number whether it could be waited for.

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, getpid, waitid},
};

use super::{procfs, read_text_of_system};
use crate::process::{Stat, State, UNKNOWN_START};

/// The highest number of a process that any system gives, where it does not say.
const MOST: i32 = 1 << 22;

/// Whether a process is a child of this one that was not waited for yet. Its number is its own until then.
pub(crate) fn is_own_child(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| state(pid).is_some())
}

/// The children of this process that are alive, without names and start times.
///
/// They are looked for among the numbers that were given since this process was started; if there are children and none of
/// them is among these, then among all.
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

/// Those of these numbers that are children, dead ones too.
fn among(first: i32, last: i32) -> Vec<Stat> {
    let own = getpid().as_raw_nonzero().get();
    let child = |pid: i32| {
        let state = state(Pid::from_raw(pid)?)?;
        let name = "unknown".to_owned();
        Some(Stat { pid, name, state, parent: own, start: UNKNOWN_START })
    };
    (first..=last).filter_map(child).collect()
}

/// What a child does; `None` if this process has no such child.
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

/// The number that the system gives to a process now.
#[expect(unsafe_code, reason = "no safe call forks")]
fn newest_number() -> Option<i32> {
    // SAFETY: only helpers call this, which have one thread. The child ends at once and runs nothing of this program.
    match unsafe { libc::fork() } {
        -1 => None,
        // SAFETY: it ends the child, without anything that is run at the end of a program.
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
    fn a_child_is_known_until_it_was_waited_for() {
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
