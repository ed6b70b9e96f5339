//! Terminates a tree that may start new processes meanwhile.
//!
//! A program that keeps forking and exiting in the parent is never caught by a scan of all
//! processes, which takes milliseconds. But its orphans become children of this process at once,
//! and a process can list its own children in microseconds. So a tree is stopped before it is
//! killed, children first, until two scans agree. Only the kernel decides that the tree is gone: it
//! reports that there are no children. No scan is trusted for that.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rustix::process::{Pid, kill_process};

use crate::{handle, signal::Signal, stat::Stat, sys};

/// How long killing is repeated before the remaining processes are given up: those of another user,
/// or blocked in the kernel.
pub(crate) const KILL_SETTLE: Duration = Duration::from_secs(2);

/// The first pause between two kills, which is doubled up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(200);

/// How often killing is repeated at once for descendants that were born meanwhile.
const KILL_ROUNDS: usize = 16;

/// How many scans wait until all members are stopped. A process that waits for its own child in the
/// kernel never stops.
const FREEZE_SCANS: usize = 8;

/// The time limit of one attempt to stop or kill all members, on a machine where each scan is slow.
const ROUND_LIMIT: Duration = Duration::from_secs(1);

/// How many lists of children are read until no new child appears.
const CHILD_SCANS: usize = 64;

/// How much longer killing is repeated while new processes are found: those can be killed.
const GROWING_SETTLE: Duration = Duration::from_secs(2);

/// Finds the members of a tree.
pub(crate) trait Members {
    /// Passes each living child of this process that belongs to the tree to `seen`, newest first,
    /// as soon as it is read. Passes none where the system has no list of children.
    fn children(&mut self, seen: impl FnMut(Stat));

    /// Returns the living members of the tree. The scan takes some milliseconds and misses
    /// processes that appear meanwhile.
    fn scan(&mut self) -> Vec<Stat>;

    /// Returns the living members, including the newest children.
    fn alive(&mut self) -> Vec<Stat> {
        let mut alive = self.scan();
        let mut known: HashSet<_> = alive.iter().map(identity).collect();
        self.children(|stat| {
            if known.insert(identity(&stat)) {
                alive.push(stat);
            }
        });
        alive
    }
}

/// The pid and start time of a process.
type Identity = (i32, u64);

/// The termination of one tree.
#[derive(Debug)]
pub(crate) struct Termination {
    kill_at: Instant,
    give_up_at: Instant,
    pause: Duration,
    /// The processes that received SIGTERM.
    sigterm_sent: HashSet<Identity>,
    killing: bool,
    /// When to act next.
    due: Instant,
}

impl Termination {
    /// Sends SIGTERM to all members and starts the grace period.
    pub(crate) fn begin(grace: Duration, members: &mut impl Members) -> Self {
        let kill_at = Instant::now() + grace;
        let sigterm_sent = if grace.is_zero() { HashSet::new() } else { send_sigterm(members) };
        Self {
            kill_at,
            give_up_at: kill_at + KILL_SETTLE,
            pause: FIRST_PAUSE,
            sigterm_sent,
            killing: false,
            due: kill_at,
        }
    }

    /// Sends SIGTERM to members that did not receive it and whose parent has ended: they were
    /// started during or after the first SIGTERM. A member with a living parent receives none,
    /// since its parent may need it to exit.
    pub(crate) fn terminate_new_orphans(&mut self, members: &mut impl Members) {
        if self.killing {
            return;
        }
        let mut orphans = Vec::new();
        if sys::ADOPTS_ORPHANS {
            members.children(|stat| orphans.push(stat));
        }
        if orphans.is_empty() {
            orphans = members.scan();
            let alive: HashSet<i32> = orphans.iter().map(|stat| stat.pid).collect();
            orphans.retain(|stat| !alive.contains(&stat.parent));
        }
        let orphans = without(&orphans, &self.sigterm_sent);
        signal_all(Signal::Terminate, &orphans);
        signal_all(Signal::Continue, &orphans);
        self.sigterm_sent.extend(orphans.iter().map(identity));
    }

    /// Shortens the grace period to `grace` from now, if it is longer.
    pub(crate) fn shorten_grace(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        if !self.killing && kill_at < self.kill_at {
            (self.kill_at, self.give_up_at, self.due) = (kill_at, kill_at + KILL_SETTLE, kill_at);
        }
    }

    /// Returns when to call [`advance`](Self::advance) next, if no child ends before.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Kills when the grace period is over. Returns the processes that are still alive when it
    /// gives up. Call it only while the kernel reports remaining processes: it does not give up
    /// while no scan finds them.
    pub(crate) fn advance(&mut self, members: &mut impl Members) -> Option<Vec<Stat>> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.killing = true;
        let Killed { alive, grew } = kill(members);
        let is_growing = alive.is_empty() || grew && now < self.give_up_at + GROWING_SETTLE;
        if now >= self.give_up_at && !is_growing {
            return Some(alive);
        }
        self.due = now + self.pause;
        if !grew {
            self.due = self.due.min(self.give_up_at.max(now + FIRST_PAUSE));
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        None
    }
}

/// Sends SIGTERM to all members and returns them. It misses the child of a process that could not
/// be stopped because it was inside a fork; see [`Termination::terminate_new_orphans`].
fn send_sigterm(members: &mut impl Members) -> HashSet<Identity> {
    let members = freeze(&HashSet::new(), members, Instant::now() + ROUND_LIMIT);
    signal_all(Signal::Terminate, &members);
    // Also continues members that were stopped before: they handle SIGTERM only once they run.
    signal_all(Signal::Continue, &members);
    members.iter().map(identity).collect()
}

/// The result of one round of kills.
#[derive(Debug)]
pub(crate) struct Killed {
    /// The processes that were alive in the last scan.
    pub(crate) alive: Vec<Stat>,
    /// Whether the last scan still found new processes.
    grew: bool,
}

/// Kills all members until a scan finds no new one.
pub(crate) fn kill(members: &mut impl Members) -> Killed {
    let mut killed = HashSet::new();
    let mut alive = Vec::new();
    let until = Instant::now() + ROUND_LIMIT;
    for _ in 0..KILL_ROUNDS {
        alive = freeze(&killed, members, until);
        let fresh = without(&alive, &killed);
        if fresh.is_empty() {
            return Killed { alive, grew: false };
        }
        signal_all(Signal::Kill, &fresh);
        killed.extend(fresh.iter().map(identity));
        if Instant::now() >= until {
            break;
        }
    }
    Killed { alive, grew: true }
}

/// Stops all members except the `dying`, and returns all that are alive. A running process could
/// start others between a scan and a signal.
fn freeze(dying: &HashSet<Identity>, members: &mut impl Members, until: Instant) -> Vec<Stat> {
    let mut signaled = dying.clone();
    let mut alive = Vec::new();
    for _ in 0..FREEZE_SCANS {
        freeze_children(&mut signaled, members);
        alive = members.alive();
        let fresh = without(&alive, &signaled);
        if fresh.is_empty() && without(&alive, dying).iter().all(Stat::is_stopped) {
            break;
        }
        signal_all(Signal::Stop, &fresh);
        signaled.extend(fresh.iter().map(identity));
        if Instant::now() >= until {
            break;
        }
    }
    alive
}

/// Stops processes that become children of this process, until two lists show no new one.
fn freeze_children(signaled: &mut HashSet<Identity>, members: &mut impl Members) {
    let mut unchanged = 0;
    for _ in 0..CHILD_SCANS {
        unchanged += 1;
        members.children(|stat| {
            if signaled.insert(identity(&stat)) {
                stop_child(&stat);
                unchanged = 0;
            }
        });
        if unchanged == 2 {
            return;
        }
    }
}

/// Stops a child. The pid of an unreaped child cannot be reused, so the slower handle is not
/// needed.
fn stop_child(stat: &Stat) {
    if let Some(pid) = Pid::from_raw(stat.pid) {
        _ = kill_process(pid, Signal::Stop.raw());
    }
}

fn signal_all(signal: Signal, members: &[Stat]) {
    for stat in members {
        handle::send(stat, signal);
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.pid, stat.start)
}

fn without(members: &[Stat], some: &HashSet<Identity>) -> Vec<Stat> {
    members.iter().filter(|stat| !some.contains(&identity(stat))).cloned().collect()
}
