//! A running process tree: its leader, everybody who descends from it, and their end.
//!
//! The leader has a process group of its own. Descendants that left the group (agents start their tools in sessions of
//! their own) are found through `/proc`, and remembered from one look to the next: see [`ProcessTree::observe`]. When the
//! tree ends, those too are found that nobody ever saw, by a variable in their environment.
//! Invariant: the leader is reaped last, since until then its number, which is the group's, cannot pass to others.

use std::{
    collections::HashSet,
    os::fd::{AsFd, OwnedFd},
    process::Child,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, WaitIdOptions, WaitIdStatus, getpid, kill_process_group, pidfd_send_signal};
use tokio::{
    io::unix::AsyncFd,
    time::{Instant, timeout},
};

use crate::{
    family::{Family, Host},
    mark::Mark,
    pidfd,
    procfs::{self, Stat},
    signal::{Exit, Signal},
    spawn::{self, Pipes, Spawn, SpawnError},
};

/// How long [`ProcessTree::terminate`] waits for the system to take down what it has killed.
pub const KILL_SETTLE: Duration = Duration::from_secs(2);

/// How long dropping a tree waits for its leader's end, so that it can be reaped at once.
pub const DROP_SETTLE: Duration = Duration::from_millis(100);

/// Looks for new descendants while a tree ends: the first pause between two, doubled up to the last.
const FIRST_RESCAN: Duration = Duration::from_millis(25);
const LAST_RESCAN: Duration = Duration::from_millis(400);

/// How often killing starts over for descendants that were born meanwhile.
const SWEEPS: usize = 16;

/// How often a tree is looked at until it stands still. One that waits for its own child in the kernel never does.
const FREEZE_LOOKS: usize = 8;

/// The number and start time of a process.
type Identity = (i32, u64);

/// A process tree. Dropping it kills all of it.
#[derive(Debug)]
pub struct ProcessTree {
    leader: Pid,
    pidfd: AsyncFd<OwnedFd>,
    family: Mutex<Family>,
    mark: Mark,
    reaped: bool,
}

/// A member of a tree that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its process number.
    pub pid: u32,
    /// The first 15 bytes of its program's name.
    pub name: String,
}

impl ProcessTree {
    /// Starts a program as the leader of a new tree. Call it inside a Tokio runtime.
    pub fn spawn(spawn: &Spawn) -> Result<(Self, Pipes), SpawnError> {
        let mark = Mark::unique();
        let (child, pipes) = spawn::start(spawn, &mark)?;
        let leader = Pid::from_child(&child);
        let own = getpid().as_raw_nonzero().get();
        let host = Host { pid: own, session: procfs::stat_of(own).map_or(0, |stat| stat.session) };
        match pidfd::of_child(leader) {
            Ok(pidfd) => {
                let pid = leader.as_raw_nonzero().get();
                let family = Mutex::new(Family::new(pid, procfs::start_of(pid).unwrap_or_default(), host));
                Ok((Self { leader, pidfd, family, mark, reaped: false }, pipes))
            }
            Err(source) => {
                discard(child);
                Err(SpawnError::Watch { source })
            }
        }
    }

    /// The leader's process number.
    pub fn pid(&self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the leader's end, and tells how it ended. The leader stays a zombie until [`reap`](Self::reap), and
    /// others of the tree may still run and hold its pipes.
    ///
    /// Can be dropped and called again at any time.
    pub async fn exited(&self) -> Exit {
        loop {
            // Fails only when the runtime shuts down; its tasks are dropped then.
            let Ok(mut ready) = self.pidfd.readable().await else { std::future::pending().await };
            match self.wait_leader(WaitIdOptions::NOWAIT) {
                Ok(Some(status)) => return exit_of(&status),
                Ok(None) => ready.clear_ready(),
                // Reaped by somebody else in this process, or the host ignores SIGCHLD.
                Err(_) => return Exit::default(),
            }
        }
    }

    /// Looks who belongs to the tree, to know them later when their parents are gone. Call it from time to time, and
    /// before the leader is asked to end by other means than a signal of this type: a member that left the group, was
    /// orphaned, and was never looked at is not found any more.
    ///
    /// It reads `/proc`, which takes about a millisecond on a machine with 150 processes.
    pub fn observe(&self) {
        self.members();
    }

    /// Sends a signal to every member, once.
    pub fn signal(&self, signal: Signal) {
        let members = self.members();
        self.deliver(signal, &members);
    }

    /// Sends a signal to the leader alone. Its descendants are looked at first, as by [`observe`](Self::observe), since
    /// it may end and leave them without a parent.
    pub fn signal_leader(&self, signal: Signal) {
        self.observe();
        if let Err(errno) = pidfd_send_signal(&self.pidfd, signal.raw()) {
            tracing::debug!(pid = self.pid(), ?signal, %errno, "the leader took no signal");
        }
    }

    /// Who of the tree is alive. A leader that has ended, but was not reaped, is not.
    pub fn alive(&self) -> Vec<Survivor> {
        self.living().into_iter().map(survivor).collect()
    }

    /// Ends the tree: `SIGTERM` to every member, then `SIGKILL` to those that are left after `grace`. The tree is halted
    /// (`SIGSTOP`) for the moment that it takes to find and reach all of them. Returns as soon as nobody is left; otherwise, [`KILL_SETTLE`] after the kill, who could not be ended (a process of another
    /// user, or one that hangs in the kernel).
    ///
    /// The tree's output should be read meanwhile. Can be dropped and called again at any time.
    pub async fn terminate(&self, grace: Duration) -> Vec<Survivor> {
        self.ask_to_end();
        if self.gone_within(grace, Self::living).await {
            return Vec::new();
        }
        if self.gone_within(KILL_SETTLE, Self::kill).await {
            return Vec::new();
        }
        let survivors = self.alive();
        if !survivors.is_empty() {
            tracing::warn!(leader = self.pid(), ?survivors, "processes could not be ended");
        }
        survivors
    }

    /// Waits for the leader's end, kills whoever is left of the tree, and lets the system forget the leader.
    pub async fn reap(mut self) -> Exit {
        let exit = self.exited().await;
        self.kill();
        // It has ended: this does not block. An error means that it was reaped by others.
        _ = self.wait_leader(WaitIdOptions::empty());
        self.reaped = true;
        exit
    }

    fn ask_to_end(&self) {
        let members = self.freeze(&HashSet::new());
        self.deliver(Signal::Terminate, &members);
        // Also for those whom somebody else has stopped: they act on SIGTERM only when they go on.
        self.deliver(Signal::Continue, &members);
    }

    /// Waits until nobody is alive, as `look` sees it, but not longer than `limit`.
    async fn gone_within(&self, limit: Duration, look: fn(&Self) -> Vec<Stat>) -> bool {
        let deadline = Instant::now() + limit;
        let mut pause = FIRST_RESCAN;
        loop {
            let alive = look(self);
            if alive.is_empty() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // A new descendant is only seen by another look; ends of known ones wake us at once.
            _ = timeout(pause.min(left), pidfd::all_ended(&alive)).await;
            pause = (pause * 2).min(LAST_RESCAN);
        }
    }

    /// Kills every member until a look finds nobody new, and returns those that were alive at the last look.
    fn kill(&self) -> Vec<Stat> {
        let mut killed = HashSet::new();
        let mut alive = Vec::new();
        for _ in 0..SWEEPS {
            alive = self.freeze(&killed);
            let fresh = without(&alive, &killed);
            if fresh.is_empty() {
                break;
            }
            self.deliver(Signal::Kill, &fresh);
            killed.extend(fresh.iter().map(identity));
        }
        alive
    }

    /// Stops every member but the `dying`, and returns all that are alive. Between a look and a signal, one that runs
    /// could start others and end, so that nothing leads to them any more, or leave the group and miss its signal.
    fn freeze(&self, dying: &HashSet<Identity>) -> Vec<Stat> {
        let mut told = dying.clone();
        let mut alive = Vec::new();
        for _ in 0..FREEZE_LOOKS {
            alive = self.living();
            let fresh = without(&alive, &told);
            if fresh.is_empty() && without(&alive, dying).iter().all(Stat::is_stopped) {
                break;
            }
            if !fresh.is_empty() {
                self.deliver(Signal::Stop, &fresh);
                told.extend(fresh.iter().map(identity));
            }
        }
        alive
    }

    /// Who is alive, as far as the tree's mark and kinship tell. It reads the environment of strangers too, which costs
    /// more than a look: it is for the end of a tree.
    fn living(&self) -> Vec<Stat> {
        let mut members = self.look(|family, snapshot| {
            // First the kin, whom nobody needs to be asked about.
            family.update(snapshot.to_vec());
            family.adopt(snapshot, |stat| self.mark.is_borne_by(stat.pid));
        });
        members.retain(Stat::is_alive);
        members
    }

    /// Who belongs to the tree, as far as kinship tells.
    fn members(&self) -> Vec<Stat> {
        self.look(|_, _| ())
    }

    fn look(&self, learn: impl FnOnce(&mut Family, &[Stat])) -> Vec<Stat> {
        match procfs::snapshot() {
            Ok(snapshot) => {
                let mut family = self.family();
                if !self.holds_group() {
                    family.lose_leader();
                }
                learn(&mut family, &snapshot);
                family.update(snapshot)
            }
            Err(error) => {
                tracing::debug!(%error, "no /proc: only the process group is known");
                Vec::from_iter(self.leader_alone())
            }
        }
    }

    /// What is known of the leader without `/proc`.
    fn leader_alone(&self) -> Option<Stat> {
        let pid = self.leader.as_raw_nonzero().get();
        matches!(self.wait_leader(WaitIdOptions::NOWAIT), Ok(None)).then(|| Stat {
            pid,
            name: String::new(),
            state: b'R',
            parent: 0,
            group: pid,
            session: 0,
            threads: 1,
            start: 0,
        })
    }

    /// Sends a signal to the group at once, and to each of `members` that is outside of it.
    fn deliver(&self, signal: Signal, members: &[Stat]) {
        if self.holds_group() {
            // Nobody in the group may be left, which is no error.
            _ = kill_process_group(self.leader, signal.raw());
        }
        for stat in members.iter().filter(|stat| stat.is_alive() && !self.is_in_group(stat)) {
            pidfd::send(stat, signal);
        }
    }

    fn is_in_group(&self, stat: &Stat) -> bool {
        stat.group == self.leader.as_raw_nonzero().get()
    }

    /// Whether the leader is still a child of ours, alive or not, so that its group is the tree's.
    fn holds_group(&self) -> bool {
        !self.reaped && self.wait_leader(WaitIdOptions::NOWAIT).is_ok()
    }

    fn wait_leader(&self, options: WaitIdOptions) -> rustix::io::Result<Option<WaitIdStatus>> {
        pidfd::wait(self.pidfd.as_fd(), options | WaitIdOptions::NOHANG)
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The emergency path: everybody is killed, and the leader reaped as soon as it has ended.
impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill();
        pidfd::block_on_end(self.pidfd.as_fd(), DROP_SETTLE);
        if !matches!(self.wait_leader(WaitIdOptions::empty()), Ok(None)) {
            return;
        }
        // The system takes its time, for a process with much memory perhaps: nobody else would reap it.
        if let Ok(pidfd) = self.pidfd.get_ref().try_clone() {
            let reaper = move || _ = pidfd::wait(pidfd.as_fd(), WaitIdOptions::empty());
            _ = std::thread::Builder::new().name("teamster-reap".into()).spawn(reaper);
        }
    }
}

fn discard(mut child: Child) {
    // It was started a moment ago and is ours: both calls can only fail when it has already ended.
    _ = child.kill();
    _ = child.wait();
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    Exit { code: status.exit_status(), signal: status.terminating_signal() }
}

fn identity(stat: &Stat) -> Identity {
    (stat.pid, stat.start)
}

fn without(members: &[Stat], some: &HashSet<Identity>) -> Vec<Stat> {
    members.iter().filter(|stat| !some.contains(&identity(stat))).cloned().collect()
}

fn survivor(stat: Stat) -> Survivor {
    Survivor { pid: stat.pid.unsigned_abs(), name: stat.name }
}
