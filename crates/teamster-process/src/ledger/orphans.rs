//! Finds and ends the processes of a run whose host is gone.
//!
//! They are halted first: between a look and a signal, one that runs could start others and end, so that nothing leads
//! to them any more. Invariant: a process is known by number and start time, and only as long as both are its own.

use std::{
    collections::{HashMap, HashSet},
    io,
    time::{Duration, Instant},
};

use rustix::process::getpid;

use super::{LeftReason, census::Census, entry::Process};
use crate::{handle, kin::with_descendants, process::Stat, signal::Signal, tree::Survivor};

/// How often a tree is looked at until it stands still. One that waits for its own child in the kernel never does.
const FREEZE_LOOKS: usize = 8;

/// The pause between two looks at those who are slow to die.
const RESCAN: Duration = Duration::from_millis(2);

/// Whom to find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) mark: &'a str,
    pub(super) leader: Option<Process>,
    /// When their host was started: they are not older.
    pub(super) not_before: u64,
}

/// What became of them.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) ended: Vec<Survivor>,
    /// Who could not be ended.
    pub(super) alive: Vec<Survivor>,
}

/// One look at all processes, for many runs: most have nobody left.
#[derive(Debug, Default)]
pub(super) struct Look {
    marks: HashSet<String>,
    processes: HashSet<(i32, u64)>,
}

impl Look {
    /// Looks for those who are wanted, if there are any.
    pub(super) fn at<'a>(mut wanted: impl Iterator<Item = Wanted<'a>>) -> io::Result<Self> {
        let mut look = Self::default();
        if wanted.next().is_none() {
            return Ok(look);
        }
        Census::default().take(|stat, marks| {
            look.processes.insert(identity(stat));
            look.marks.extend(marks.iter().cloned());
        })?;
        Ok(look)
    }

    /// Whether anybody of this run may be alive.
    pub(super) fn has_any(&self, wanted: &Wanted<'_>) -> bool {
        wanted.leader.is_some_and(|leader| self.processes.contains(&(leader.pid, leader.start)))
            || self.marks.contains(wanted.mark)
    }
}

/// Kills everybody who is left of a run, until a look finds nobody or the deadline is over.
pub(super) fn end(wanted: Wanted<'_>, deadline: Instant) -> Result<Outcome, LeftReason> {
    let mut hunt = Hunt { wanted, census: Census::default(), seen: HashMap::new() };
    let own = getpid().as_raw_nonzero().get();
    if hunt.look(|_| ())?.iter().any(|stat| stat.pid == own) {
        return Err(LeftReason::OwnTree);
    }
    let mut killed = HashSet::new();
    loop {
        let alive = hunt.freeze(&killed)?;
        for stat in alive.iter().filter(|stat| killed.insert(identity(stat))) {
            handle::send(stat, Signal::Kill);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if alive.is_empty() || left.is_zero() {
            let still: HashSet<_> = alive.iter().map(identity).collect();
            let ended = hunt.seen.into_values().filter(|stat| !still.contains(&identity(stat)));
            return Ok(Outcome { ended: told(ended), alive: told(alive) });
        }
        handle::block_on_ends(&alive, left);
        // Without a descriptor for one of them, nobody was waited for.
        std::thread::sleep(RESCAN.min(left));
    }
}

/// Who was found so far.
struct Hunt<'a> {
    wanted: Wanted<'a>,
    census: Census,
    /// They stay the run's when their parents are gone.
    seen: HashMap<(i32, u64), Stat>,
}

impl Hunt<'_> {
    /// Who is alive. Who bears the mark is shown at once.
    fn look(&mut self, mut met: impl FnMut(&Stat)) -> io::Result<Vec<Stat>> {
        let Wanted { mark, leader, not_before } = self.wanted;
        let everybody = self.census.take(|stat, marks| {
            if stat.start >= not_before && marks.iter().any(|one| one == mark) {
                met(stat);
            }
        })?;
        let is_of_it = |stat: &Stat| {
            self.seen.contains_key(&identity(stat))
                || leader.is_some_and(|leader| (leader.pid, leader.start) == identity(stat))
                || (stat.start >= not_before && self.census.bears(stat, mark))
        };
        let alive = with_descendants(everybody, is_of_it, Stat::is_still);
        self.seen.extend(alive.iter().map(|stat| (identity(stat), stat.clone())));
        Ok(alive)
    }

    /// Stops everybody but the dying, and tells who is alive.
    fn freeze(&mut self, dying: &HashSet<(i32, u64)>) -> io::Result<Vec<Stat>> {
        let mut told = dying.clone();
        let mut alive = Vec::new();
        for _ in 0..FREEZE_LOOKS {
            let before = told.len();
            let mut stop = |stat: &Stat| {
                if told.insert(identity(stat)) {
                    handle::send(stat, Signal::Stop);
                }
            };
            // Those who do not live long are stopped as soon as they are seen.
            alive = self.look(&mut stop)?;
            alive.iter().for_each(stop);
            if told.len() == before && alive.iter().all(|stat| stat.is_stopped() || dying.contains(&identity(stat))) {
                break;
            }
        }
        Ok(alive)
    }
}

fn identity(stat: &Stat) -> (i32, u64) {
    (stat.pid, stat.start)
}

fn told(processes: impl IntoIterator<Item = Stat>) -> Vec<Survivor> {
    let mut told: Vec<_> =
        processes.into_iter().map(|stat| Survivor { pid: stat.pid.unsigned_abs(), name: stat.name }).collect();
    told.sort_by_key(|survivor| survivor.pid);
    told
}
