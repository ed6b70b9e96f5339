//! The end of a tree: everybody is found and signaled, although they go on starting others.
//!
//! A program that forks, exits in the parent and goes on in the child is gone whenever somebody looks: a scan of all
//! processes shows its past. But its orphans become children of this process, at once, and a list of one's own children is
//! read in microseconds. So the tree is stopped before it is killed, children first, until two looks agree. That nobody is
//! orphans is known from the system alone, when it says that there are no children; no look is taken for that.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rustix::process::{Pid, kill_process};

use crate::{handle, process::Stat, signal::Signal, sys};

/// How long killing goes on before those who are orphans are given up: processes of another user, or such as hang in the
/// kernel.
pub(crate) const KILL_SETTLE: Duration = Duration::from_secs(2);

/// Kills again those who were born meanwhile: the first pause, doubled up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(200);

/// How often killing starts over at once for descendants that were born meanwhile.
const KILL_ROUNDS: usize = 16;

/// How often a tree is looked at until it stands still. One that waits for its own child in the kernel never does.
const FREEZE_SCANS: usize = 8;

/// How long one attempt to stop or to kill everybody goes on, on a machine with so many processes that each scan is slow.
const ROUND_LIMIT: Duration = Duration::from_secs(1);

/// How often the children alone are looked at until no new one is among them.
const CHILD_SCANS: usize = 64;

/// How much longer killing goes on while new processes are found: they are not such as nothing ends.
const GROWING_SETTLE: Duration = Duration::from_secs(2);

/// Where the members of a tree are looked for.
pub(crate) trait Members {
    /// The children of this process that are alive and of the tree, newest first. Each is shown as soon as it is seen. Where
    /// there is no quick way to look, none is.
    fn children(&mut self, seen: impl FnMut(Stat));

    /// All who are alive. It takes some milliseconds; whoever has moved on meanwhile is missed.
    fn scan(&mut self) -> Vec<Stat>;

    /// All who are alive, the newest children too.
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

/// The number and start time of a process.
type Identity = (i32, u64);

/// A tree that is being ended.
#[derive(Debug)]
pub(crate) struct Termination {
    kill_at: Instant,
    give_up_at: Instant,
    pause: Duration,
    /// Who was sigterm_sent to end.
    sigterm_sent: HashSet<Identity>,
    killing: bool,
    /// When something is due.
    due: Instant,
}

impl Termination {
    /// Asks everybody to end.
    pub(crate) fn begin(grace: Duration, members: &mut impl Members) -> Self {
        let kill_at = Instant::now() + grace;
        let sigterm_sent = if grace.is_zero() { HashSet::new() } else { send_sigterm(members) };
        Self { kill_at, give_up_at: kill_at + KILL_SETTLE, pause: FIRST_PAUSE, sigterm_sent, killing: false, due: kill_at }
    }

    /// Asks those who were not sigterm_sent and whom one that has ended orphans behind: it was starting them when everybody was sigterm_sent,
    /// or did so after. One that has somebody above it is not sigterm_sent: that one may need its help to end.
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

    /// Shortens the grace period, if it is longer than this from now.
    pub(crate) fn shorten_grace(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        if !self.killing && kill_at < self.kill_at {
            (self.kill_at, self.give_up_at, self.due) = (kill_at, kill_at + KILL_SETTLE, kill_at);
        }
    }

    /// When to call [`go_on`](Self::advance) next, if nobody has ended before.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Kills when it is time. Returns those who are still alive when there is no more to be done. Call it only while the system
    /// says that somebody is orphans: then there is more to be done as long as no look shows who that is.
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

/// Sends SIGTERM to everybody, and tells who that was. Who is born of a process that had no turn to come to a halt, in the
/// middle of a fork with its signals blocked, is missed; see [`Termination::terminate_new_orphans`].
fn send_sigterm(members: &mut impl Members) -> HashSet<Identity> {
    let members = freeze(&HashSet::new(), members, Instant::now() + ROUND_LIMIT);
    signal_all(Signal::Terminate, &members);
    // Also for those whom somebody else has stopped: they act on SIGTERM only when they go on.
    signal_all(Signal::Continue, &members);
    members.iter().map(identity).collect()
}

/// What killing came to.
#[derive(Debug)]
pub(crate) struct Killed {
    /// Those that were alive at the last look.
    pub(crate) alive: Vec<Stat>,
    /// Whether there were new ones at the last look still.
    grew: bool,
}

/// Kills everybody until a look finds nobody new.
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

/// Stops everybody but the `dying`, and returns all that are alive. Between a look and a signal, one that runs could start
/// others that the signal misses.
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

/// Stops those who become children of this process, until two looks show no new one.
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

/// A child that is not reaped meanwhile has its number to itself: no handle is needed, which would take longer.
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
