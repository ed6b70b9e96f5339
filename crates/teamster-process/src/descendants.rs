//! Who descends from whom.

use std::collections::{HashMap, HashSet};

use rustix::process::getpid;

use crate::{env_marker, process::Stat, supervise::termination::Members, sys};

/// The tree below a keeper.
///
/// Where a keeper adopts orphans, whoever descends from it is of the tree, and nobody else. Elsewhere an orphan is of the
/// tree too if it was seen before, is in the keeper's session, or bears the marker, which not every process shows.
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

    /// Who of it is alive, as one scan of all processes shows it. A keeper that cannot see processes still finds its own
    /// children, by number alone.
    pub(crate) fn scan(&mut self) -> Vec<Stat> {
        let is_of_it = |stat: &Stat| stat.parent == self.keeper || self.is_orphan(stat);
        let alive = sys::snapshot().map(|snapshot| with_descendants(snapshot, is_of_it, Stat::is_still));
        let mut alive = alive.unwrap_or_default();
        let is_shown = |pid| sys::stat_of(pid).is_some();
        if alive.is_empty()
            && self.keeper == getpid().as_raw_nonzero().get()
            && !sys::children().into_iter().any(is_shown)
        {
            // Not to see anybody does not mean that nobody is there: `/proc` may be of no use, or hide processes.
            alive = sys::own_children();
        }
        if !sys::ADOPTS_ORPHANS {
            self.seen.extend(alive.iter().map(|stat| (stat.pid, stat.start)));
        }
        alive
    }

    /// Whether a process is of the tree though nobody above it is.
    fn is_orphan(&self, stat: &Stat) -> bool {
        !sys::ADOPTS_ORPHANS
            && stat.parent == 1
            && (self.seen.contains(&(stat.pid, stat.start))
                || is_in_session_of(stat.pid, self.keeper)
                || env_marker::has_marker(stat.pid, &self.marker))
    }
}

/// For the keeper itself.
impl Members for Descendants {
    fn children(&mut self, seen: impl FnMut(Stat)) {
        sys::children().into_iter().rev().filter_map(sys::stat_of).filter(Stat::is_alive).for_each(seen);
    }

    fn scan(&mut self) -> Vec<Stat> {
        self.scan()
    }
}

/// Whether a process is in the session that a keeper has opened, the keeper apart.
#[expect(unsafe_code, reason = "the safe call takes the sessions of others, which have no number here, for impossible")]
pub(crate) fn is_in_session_of(pid: i32, keeper: i32) -> bool {
    // SAFETY: it takes a number and gives one.
    pid != keeper && unsafe { libc::getsid(pid) } == keeper
}

/// Those of a snapshot who are roots, with all who descend from them, if they are alive.
///
/// A snapshot takes time, and a number passes on: `is_still` tells whether a process is the one it was. One that has its
/// number still had it when its children were looked at.
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
        if let Some(theirs) = children.get(&stat.pid).filter(|_| is_still(stat)) {
            waiting.extend(theirs);
        }
    }
    snapshot.into_iter().enumerate().filter(|(index, _)| found.contains(index)).map(|(_, stat)| stat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::State;

    fn process(pid: i32, parent: i32) -> Stat {
        Stat { pid, name: "x".into(), state: State::Alive, parent, start: pid.unsigned_abs().into() }
    }

    fn found(snapshot: &[Stat], roots: &[i32], gone: &[i32]) -> Vec<i32> {
        let is_root = |stat: &Stat| roots.contains(&stat.pid);
        let is_still = |stat: &Stat| !gone.contains(&stat.pid);
        with_descendants(snapshot.to_vec(), is_root, is_still).iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn all_who_descend_from_one_who_is_wanted_are_found_and_nobody_else() {
        let snapshot = [process(1, 0), process(5, 1), process(10, 5), process(11, 10), process(12, 11), process(13, 5)];
        assert_eq!(found(&snapshot, &[10], &[]), [10, 11, 12]);
        assert_eq!(found(&snapshot, &[], &[]), [] as [i32; 0]);
        assert_eq!(found(&snapshot, &[1], &[]), [] as [i32; 0], "process 1 is never found");
    }

    #[test]
    fn the_children_of_one_whose_number_passed_on_meanwhile_are_strangers() {
        let snapshot = [process(10, 5), process(11, 10)];
        assert_eq!(found(&snapshot, &[10], &[10]), [10]);
    }

    #[test]
    fn the_dead_are_nobody() {
        let dead = Stat { state: State::Dead, ..process(10, 5) };
        assert_eq!(found(&[dead, process(11, 10)], &[10], &[]), [] as [i32; 0]);
    }

    #[test]
    fn a_circle_which_two_moments_in_one_snapshot_can_show_has_an_end() {
        assert_eq!(found(&[process(11, 10), process(12, 11), process(11, 12)], &[12], &[]), [12, 11]);
    }
}
