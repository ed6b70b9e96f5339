//! The end of a tree: everybody is found and told, although they go on starting others.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use crate::{handle, process::Stat, signal::Signal};

/// How long killing goes on before those who are left are given up: processes of another user, or such as hang in the
/// kernel.
pub(crate) const KILL_SETTLE: Duration = Duration::from_secs(2);

/// Kills again those who were born meanwhile: the first pause, doubled up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(200);

/// How often killing starts over at once for descendants that were born meanwhile.
const SWEEPS: usize = 16;

/// How often a tree is looked at until it stands still. One that waits for its own child in the kernel never does.
const FREEZE_LOOKS: usize = 8;

/// The number and start time of a process.
type Identity = (i32, u64);

/// A tree that is being ended.
#[derive(Debug)]
pub(crate) struct Ending {
    kill_at: Instant,
    give_up_at: Instant,
    pause: Duration,
    /// Who was asked to end.
    asked: HashSet<Identity>,
    killing: bool,
    /// When something is due.
    due: Instant,
}

impl Ending {
    /// Asks everybody to end.
    pub(crate) fn begin(grace: Duration, look: impl FnMut() -> Vec<Stat>) -> Self {
        let kill_at = Instant::now() + grace;
        let asked = if grace.is_zero() { HashSet::new() } else { ask(look) };
        Self { kill_at, give_up_at: kill_at + KILL_SETTLE, pause: FIRST_PAUSE, asked, killing: false, due: kill_at }
    }

    /// Asks those who were not asked and whom one that has ended left behind: it was starting them when everybody was asked,
    /// or did so after. One that has somebody above it is not asked: that one may need its help to end.
    pub(crate) fn ask_left_behind(&mut self, mut look: impl FnMut() -> Vec<Stat>) {
        if self.killing {
            return;
        }
        let alive = look();
        let members: HashSet<i32> = alive.iter().map(|stat| stat.pid).collect();
        let mut left = without(&alive, &self.asked);
        left.retain(|stat| !members.contains(&stat.parent));
        deliver(Signal::Terminate, &left);
        deliver(Signal::Continue, &left);
        self.asked.extend(left.iter().map(identity));
    }

    /// Shortens the grace period, if it is longer than this from now.
    pub(crate) fn hurry(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        if !self.killing && kill_at < self.kill_at {
            (self.kill_at, self.give_up_at, self.due) = (kill_at, kill_at + KILL_SETTLE, kill_at);
        }
    }

    /// When to call [`go_on`](Self::go_on) next, if nobody has ended before.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Kills when it is time. Returns those who are still alive when there is no more to be done.
    pub(crate) fn go_on(&mut self, look: impl FnMut() -> Vec<Stat>) -> Option<Vec<Stat>> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.killing = true;
        let alive = kill(look);
        if now >= self.give_up_at {
            return Some(alive);
        }
        self.due = (now + self.pause).min(self.give_up_at);
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        None
    }
}

/// Sends SIGTERM to everybody, and tells who that was. Who is born of a process that had no turn to come to a halt, in the
/// middle of a fork with its signals blocked, is missed; see [`Ending::ask_left_behind`].
fn ask(mut look: impl FnMut() -> Vec<Stat>) -> HashSet<Identity> {
    let members = freeze(&HashSet::new(), &mut look);
    deliver(Signal::Terminate, &members);
    // Also for those whom somebody else has stopped: they act on SIGTERM only when they go on.
    deliver(Signal::Continue, &members);
    members.iter().map(identity).collect()
}

/// Kills everybody until a look finds nobody new, and returns those that were alive at the last look.
pub(crate) fn kill(mut look: impl FnMut() -> Vec<Stat>) -> Vec<Stat> {
    let mut killed = HashSet::new();
    let mut alive = Vec::new();
    for _ in 0..SWEEPS {
        alive = freeze(&killed, &mut look);
        let fresh = without(&alive, &killed);
        if fresh.is_empty() {
            break;
        }
        deliver(Signal::Kill, &fresh);
        killed.extend(fresh.iter().map(identity));
    }
    alive
}

/// Stops everybody but the `dying`, and returns all that are alive. Between a look and a signal, one that runs could start
/// others that the signal misses.
fn freeze(dying: &HashSet<Identity>, look: &mut impl FnMut() -> Vec<Stat>) -> Vec<Stat> {
    let mut told = dying.clone();
    let mut alive = Vec::new();
    for _ in 0..FREEZE_LOOKS {
        alive = look();
        let fresh = without(&alive, &told);
        if fresh.is_empty() && without(&alive, dying).iter().all(Stat::is_stopped) {
            break;
        }
        deliver(Signal::Stop, &fresh);
        told.extend(fresh.iter().map(identity));
    }
    alive
}

fn deliver(signal: Signal, members: &[Stat]) {
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
