//! Finds and kills the processes of a run that no helper supervises: its host is gone, or its
//! keeper and the supervisor.
//!
//! Processes are stopped before they are killed: a running process could start others and exit
//! between a scan and a signal, and no link would lead to them. Invariant: a process is identified
//! by pid and start time.

use std::{
    collections::{HashMap, HashSet},
    io,
    time::{Duration, Instant},
};

use rustix::process::getpid;

use super::{SkipReason, process_scan::ProcessScan};
use crate::{
    descendants::{is_in_session_of, with_descendants},
    handle,
    process::{Process, start_of},
    signal::Signal,
    stat::Stat,
    survivor::Survivor,
};

/// How many scans wait until all processes are stopped. A process that waits for its own child in
/// the kernel never stops.
const FREEZE_SCANS: usize = 8;

/// The pause between two scans for processes that die slowly.
const RESCAN: Duration = Duration::from_millis(2);

/// How long to search for successors after the last process was found: a daemon may keep replacing
/// itself.
const SUCCESSOR_SETTLE: Duration = Duration::from_millis(500);

/// The time limit of a search that kills nothing.
const SCAN_LIMIT: Duration = Duration::from_secs(1);

/// The processes to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) marker: &'a str,
    pub(crate) leader: Option<Process>,
    /// The keeper, which is killed too. The run began in its session.
    pub(crate) keeper: Option<Process>,
    /// The start time of the host: the run's processes are not older.
    pub(crate) not_before: u64,
}

/// The result of a kill.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) killed: Vec<Survivor>,
    /// The processes that could not be killed.
    pub(crate) alive: Vec<Survivor>,
}

/// One scan of all processes, shared by many runs: most have no process left.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    markers: HashSet<String>,
    processes: HashSet<(i32, u64)>,
}

impl Snapshot {
    /// Scans all processes, if there is any target.
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

    /// Returns whether a process of this run may be alive.
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

    /// Returns whether a process is in the session that the keeper opened. Another process that
    /// reused the keeper's pid may have opened one since.
    fn is_in_session(&self, process: Process) -> bool {
        self.keeper.is_some_and(|keeper| {
            process.start >= keeper.start
                && is_in_session_of(process.pid, keeper.pid)
                && start_of(keeper.pid).is_none_or(|start| start == keeper.start)
        })
    }
}

/// Returns the living members of a run, without its keeper.
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
        // A process that was found before may have started a successor that no scan has found.
        let may_have_successor = !reaper.process_scan.is_complete
            && reaper.found_at.is_some_and(|found_at| found_at.elapsed() < SUCCESSOR_SETTLE);
        if alive.is_empty() && !may_have_successor || left.is_zero() {
            let still: HashSet<_> = alive.iter().map(identity).collect();
            let ended = reaper.seen.into_values().filter(|stat| !still.contains(&identity(stat)));
            return Ok(Outcome { killed: survivors(target, ended), alive: survivors(target, alive) });
        }
        handle::block_on_ends(&alive, left);
        // Without a free descriptor, the wait above returned at once.
        std::thread::sleep(RESCAN.min(left));
    }
}

/// The search for the processes of one run, and their kill.
struct Reaper<'a> {
    target: Target<'a>,
    /// No scan starts after it: processes that fork and exit all the time could prolong the search
    /// forever.
    deadline: Instant,
    process_scan: ProcessScan,
    /// Processes that were found once belong to the run even when their parents are gone.
    seen: HashMap<(i32, u64), Stat>,
    /// When the last process was found.
    found_at: Option<Instant>,
}

impl<'a> Reaper<'a> {
    fn new(target: &Target<'a>, deadline: Instant) -> Self {
        Self { target: *target, deadline, process_scan: ProcessScan::default(), seen: HashMap::new(), found_at: None }
    }

    /// Returns the living processes of the run. Calls `on_marked` at once with each process that
    /// has the marker.
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

    /// Stops all processes except the dying, and returns those that are alive.
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
            // Short-lived processes are stopped as soon as they are found.
            alive = self.scan(&mut stop)?;
            alive.iter().for_each(stop);
            let is_still = signaled.len() == before
                && alive.iter().all(|stat| stat.is_stopped() || dying.contains(&identity(stat)));
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
    let mut survivors: Vec<_> =
        members.map(|stat| Survivor { pid: stat.pid.unsigned_abs(), name: stat.name }).collect();
    survivors.sort_by_key(|survivor| survivor.pid);
    survivors
}
