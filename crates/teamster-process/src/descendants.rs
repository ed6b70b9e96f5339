//! Finds the living descendants of a process.

use std::collections::{HashMap, HashSet};

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::{env_marker, stat::Stat, supervise::termination::Members, sys};

/// The descendants of a keeper.
///
/// Where a keeper adopts orphans (Linux), the tree is exactly the keeper's descendants. On macOS an
/// orphan also belongs to the tree if an earlier scan found it, if it is in the keeper's session,
/// or if its environment has the tree's marker.
#[derive(Debug, Default)]
pub(crate) struct Descendants {
    keeper: i32,
    marker: String,
    seen: HashSet<(i32, u64)>,
}

impl Descendants {
    pub(crate) fn of_keeper(keeper: i32, marker: String) -> Self {
        Self { keeper, marker, seen: HashSet::new() }
    }

    /// Returns the living descendants that one scan of all processes finds. A keeper that cannot
    /// list processes still finds its own children, by pid alone.
    pub(crate) fn scan(&mut self) -> Vec<Stat> {
        let is_of_it = |stat: &Stat| stat.parent == self.keeper || self.is_orphan(stat);
        let alive = sys::snapshot().map(|snapshot| with_descendants(snapshot, is_of_it, Stat::is_still));
        let mut alive = alive.unwrap_or_default();
        let is_shown = |pid| sys::stat_of(pid).is_some();
        if alive.is_empty()
            && self.keeper == getpid().as_raw_nonzero().get()
            && !sys::children().into_iter().any(is_shown)
        {
            // An empty scan is no proof that the tree is gone: `/proc` may be unusable or hide
            // processes.
            alive = sys::own_children();
        }
        if !sys::ADOPTS_ORPHANS {
            self.seen.extend(alive.iter().map(|stat| (stat.pid, stat.start)));
        }
        alive
    }

    /// Returns whether an orphan belongs to the tree.
    fn is_orphan(&self, stat: &Stat) -> bool {
        !sys::ADOPTS_ORPHANS
            && stat.parent == 1
            && (self.seen.contains(&(stat.pid, stat.start))
                || is_in_session_of(stat.pid, self.keeper)
                || env_marker::has_marker(stat.pid, &self.marker))
    }
}

/// Used by the keeper itself.
impl Members for Descendants {
    fn children(&mut self, seen: impl FnMut(Stat)) {
        sys::children().into_iter().rev().filter_map(sys::stat_of).filter(Stat::is_alive).for_each(seen);
    }

    fn scan(&mut self) -> Vec<Stat> {
        self.scan()
    }
}

/// Kills a process and all its living descendants, as far as one scan finds them. The process must be a child of this
/// program that was not reaped yet, so that its pid means no other process.
pub fn kill_with_descendants(pid: u32) {
    let is_root = |stat: &Stat| u32::try_from(stat.pid) == Ok(pid);
    let alive = sys::snapshot().map(|snapshot| with_descendants(snapshot, is_root, Stat::is_still)).unwrap_or_default();
    for stat in alive.iter().filter(|stat| stat.is_still()) {
        if let Some(pid) = Pid::from_raw(stat.pid) {
            // It may have exited.
            _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns whether a process other than the keeper is in the keeper's session.
#[expect(unsafe_code, reason = "the safe call panics on a session that has no pid in this namespace")]
pub(crate) fn is_in_session_of(pid: i32, keeper: i32) -> bool {
    // SAFETY: the call takes and returns numbers.
    pid != keeper && unsafe { libc::getsid(pid) } == keeper
}

/// Returns the living processes of a snapshot that `is_root` accepts, and all their living
/// descendants.
///
/// A snapshot takes time, and a pid can be reused meanwhile: `is_still` checks that a pid still
/// means the same process. If it does, the children in the snapshot are its own.
pub(crate) fn with_descendants(
    snapshot: Vec<Stat>,
    is_root: impl Fn(&Stat) -> bool,
    is_still: impl Fn(&Stat) -> bool,
) -> Vec<Stat> {
    let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
    for (index, stat) in snapshot.iter().enumerate() {
        children.entry(stat.parent).or_default().push(index);
    }
    let roots = |(index, stat): (usize, &Stat)| (stat.is_alive() && is_root(stat)).then_some(index);
    let mut waiting: Vec<usize> = snapshot.iter().enumerate().filter_map(roots).collect();
    let mut found = HashSet::new();
    while let Some(index) = waiting.pop() {
        let Some(stat) = snapshot.get(index).filter(|stat| stat.is_alive() && stat.pid > 1) else {
            continue;
        };
        if !found.insert(index) {
            continue;
        }
        if let Some(indices) = children.get(&stat.pid).filter(|_| is_still(stat)) {
            waiting.extend(indices);
        }
    }
    snapshot.into_iter().enumerate().filter(|(index, _)| found.contains(index)).map(|(_, stat)| stat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::State;

    fn process(pid: i32, parent: i32) -> Stat {
        Stat { pid, name: "x".into(), state: State::Alive, parent, start: pid.unsigned_abs().into() }
    }

    fn found(snapshot: &[Stat], roots: &[i32], gone: &[i32]) -> Vec<i32> {
        let is_root = |stat: &Stat| roots.contains(&stat.pid);
        let is_still = |stat: &Stat| !gone.contains(&stat.pid);
        with_descendants(snapshot.to_vec(), is_root, is_still).iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn only_the_descendants_of_a_root_are_found() {
        let snapshot = [process(1, 0), process(5, 1), process(10, 5), process(11, 10), process(12, 11), process(13, 5)];
        assert_eq!(found(&snapshot, &[10], &[]), [10, 11, 12]);
        assert_eq!(found(&snapshot, &[], &[]), [] as [i32; 0]);
        assert_eq!(found(&snapshot, &[1], &[]), [] as [i32; 0], "process 1 is never found");
    }

    #[test]
    fn children_of_a_reused_pid_are_not_descendants() {
        let snapshot = [process(10, 5), process(11, 10)];
        assert_eq!(found(&snapshot, &[10], &[10]), [10]);
    }

    #[test]
    fn dead_processes_are_not_found() {
        let dead = Stat { state: State::Dead, ..process(10, 5) };
        assert_eq!(found(&[dead, process(11, 10)], &[10], &[]), [] as [i32; 0]);
    }

    #[test]
    fn a_parent_cycle_in_an_inconsistent_snapshot_terminates() {
        assert_eq!(found(&[process(11, 10), process(12, 11), process(11, 12)], &[12], &[]), [12, 11]);
    }
}
