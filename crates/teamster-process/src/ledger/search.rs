//! Finds and ends the processes of a run that nothing looks after any more: its host is gone, or its keeper and the supervisor.
//!
//! They are halted first: between a look and a signal, one that runs could start others and end, so that nothing leads
//! to them any more. Invariant: a process is known by number and start time, and only as long as both are its own.

use std::{
    collections::{HashMap, HashSet},
    io,
    time::{Duration, Instant},
};

use rustix::process::getpid;

use super::{SkipReason, process_scan::ProcessScan};
use crate::{
    handle,
    descendants::{is_in_session_of, with_descendants},
    process::{Process, Stat, start_of},
    signal::Signal,
    tree::Survivor,
};

/// How often a tree is looked at until it stands still. One that waits for its own child in the kernel never does.
const FREEZE_SCANS: usize = 8;

/// The pause between two looks at those who are slow to die.
const RESCAN: Duration = Duration::from_millis(2);

/// How long those who move on to new processes all the time are looked for after the last of them was found.
const SUCCESSOR_SETTLE: Duration = Duration::from_millis(500);

/// How long looking for processes may take where nothing is done about them.
const SCAN_LIMIT: Duration = Duration::from_secs(1);

/// Whom to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) marker: &'a str,
    pub(crate) leader: Option<Process>,
    /// It is ended too. Its session is where the run began.
    pub(crate) keeper: Option<Process>,
    /// When their host was started: they are not older.
    pub(crate) not_before: u64,
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) ended: Vec<Survivor>,
    /// Who could not be ended.
    pub(crate) alive: Vec<Survivor>,
}

/// One look at all processes, for many runs: most have nobody left.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    markers: HashSet<String>,
    processes: HashSet<(i32, u64)>,
}

impl Snapshot {
    /// Looks for those who are target, if there are any.
    pub(super) fn take<'a>(mut target: impl Iterator<Item = Target<'a>>) -> io::Result<Self> {
        let mut snapshot = Self::default();
        if target.next().is_none() {
            return Ok(snapshot);
        }
        ProcessScan::default().run(Instant::now() + SCAN_LIMIT, |stat, markers| {
            snapshot.processes.insert(identity(stat));
            snapshot.markers.extend(markers.iter().cloned());
        })?;
        Ok(snapshot)
    }

    /// Whether anybody of this run may be alive.
    pub(super) fn has_any(&self, target: &Target<'_>) -> bool {
        let is_there = |process: Process| self.processes.contains(&(process.pid, process.start));
        target.roots().any(is_there)
            || self.markers.contains(target.marker)
            || self.processes.iter().any(|&(pid, start)| target.is_in_session(Process { pid, start }))
    }
}

impl Target<'_> {
    fn roots(&self) -> impl Iterator<Item = Process> {
        self.leader.into_iter().chain(self.keeper)
    }

    /// Whether a process is in the session that the keeper opened. Another process that got the keeper's number may have
    /// opened one since.
    fn is_in_session(&self, process: Process) -> bool {
        self.keeper.is_some_and(|keeper| {
            process.start >= keeper.start
                && is_in_session_of(process.pid, keeper.pid)
                && start_of(keeper.pid).is_none_or(|start| start == keeper.start)
        })
    }
}

/// The members of a run that are alive, without its keeper.
pub(crate) fn find(target: &Target<'_>) -> Result<Vec<Survivor>, SkipReason> {
    let mut reaper = Reaper::new(target, Instant::now() + SCAN_LIMIT);
    let alive = reaper.scan(|_| ())?;
    Ok(survivors(target, alive))
}

/// Kills the remaining processes of a run and its keeper, until a scan finds none or the deadline passes.
pub(crate) fn kill(target: &Target<'_>, deadline: Instant) -> Result<Outcome, SkipReason> {
    let mut reaper = Reaper::new(target, deadline);
    let own = getpid().as_raw_nonzero().get();
    if reaper.scan(|_| ())?.iter().any(|stat| stat.pid == own) {
        return Err(SkipReason::OwnRun);
    }
    let mut killed = HashSet::new();
    loop {
        let alive = reaper.freeze(&killed)?;
        for stat in alive.iter().filter(|stat| killed.insert(identity(stat))) {
            handle::send(stat, Signal::Kill);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // One that was seen before may have moved on to a process that no look shows.
        let may_have_successor = !reaper.process_scan.is_complete && reaper.found_at.is_some_and(|found_at| found_at.elapsed() < SUCCESSOR_SETTLE);
        if alive.is_empty() && !may_have_successor || left.is_zero() {
            let still: HashSet<_> = alive.iter().map(identity).collect();
            let ended = reaper.seen.into_values().filter(|stat| !still.contains(&identity(stat)));
            return Ok(Outcome { ended: survivors(target, ended), alive: survivors(target, alive) });
        }
        handle::block_on_ends(&alive, left);
        // Without a descriptor for one of them, nobody was waited for.
        std::thread::sleep(RESCAN.min(left));
    }
}

/// Who was found so far.
struct Reaper<'a> {
    target: Target<'a>,
    /// No new scan begins after it: processes that fork and exit all the time could have it go on for ever.
    deadline: Instant,
    process_scan: ProcessScan,
    /// They stay the run's when their parents are gone.
    seen: HashMap<(i32, u64), Stat>,
    /// When the last of them was found.
    found_at: Option<Instant>,
}

impl<'a> Reaper<'a> {
    fn new(target: &Target<'a>, deadline: Instant) -> Self {
        Self { target: *target, deadline, process_scan: ProcessScan::default(), seen: HashMap::new(), found_at: None }
    }

    /// Who is alive. Who bears the marker is shown at once.
    fn scan(&mut self, mut on_marked: impl FnMut(&Stat)) -> io::Result<Vec<Stat>> {
        let target = self.target;
        let Target { marker, not_before, .. } = target;
        let all = self.process_scan.run(self.deadline, |stat, markers| {
            if stat.start >= not_before && markers.iter().any(|one| one == marker) {
                on_marked(stat);
            }
        })?;
        let is_of_it = |stat: &Stat| {
            self.seen.contains_key(&identity(stat))
                || target.roots().any(|root| (root.pid, root.start) == identity(stat))
                || (stat.start >= not_before && self.process_scan.has_marker(stat, marker))
                || target.is_in_session(Process { pid: stat.pid, start: stat.start })
        };
        let alive = with_descendants(all, is_of_it, Stat::is_still);
        if alive.iter().any(|stat| !self.seen.contains_key(&identity(stat))) {
            self.found_at = Some(Instant::now());
        }
        self.seen.extend(alive.iter().map(|stat| (identity(stat), stat.clone())));
        Ok(alive)
    }

    /// Stops all but the dying, and tells who is alive.
    fn freeze(&mut self, dying: &HashSet<(i32, u64)>) -> io::Result<Vec<Stat>> {
        let mut signaled = dying.clone();
        let mut alive = Vec::new();
        for _ in 0..FREEZE_SCANS {
            let before = signaled.len();
            let mut stop = |stat: &Stat| {
                if signaled.insert(identity(stat)) {
                    handle::send(stat, Signal::Stop);
                }
            };
            // Those who do not live long are stopped as soon as they are seen.
            alive = self.scan(&mut stop)?;
            alive.iter().for_each(stop);
            let is_still =
                signaled.len() == before && alive.iter().all(|stat| stat.is_stopped() || dying.contains(&identity(stat)));
            if is_still || Instant::now() >= self.deadline {
                break;
            }
        }
        Ok(alive)
    }
}

fn identity(stat: &Stat) -> (i32, u64) {
    (stat.pid, stat.start)
}

fn survivors(target: &Target<'_>, processes: impl IntoIterator<Item = Stat>) -> Vec<Survivor> {
    let is_keeper = |stat: &Stat| target.keeper.is_some_and(|keeper| (keeper.pid, keeper.start) == identity(stat));
    let members = processes.into_iter().filter(|stat| !is_keeper(stat));
    let mut survivors: Vec<_> = members.map(|stat| Survivor { pid: stat.pid.unsigned_abs(), name: stat.name }).collect();
    survivors.sort_by_key(|survivor| survivor.pid);
    survivors
}
