//! The supervisor process, which forks the keepers. See the [parent module](super).

use std::{
    collections::{HashMap, HashSet},
    ffi::CStr,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::exit,
    time::{Duration, Instant},
};

use rustix::{
    io::ioctl_fionbio,
    net::RecvFlags,
    process::{Pid, Signal, getpid, getppid, kill_process, setsid},
};

use super::{
    events::{ChildWatch, Reaped, discard_signals, reap_or_stopped, wait},
    keeper,
    termination::{self, Members},
    wire::{self, Report},
};
use crate::{
    descendants::{is_in_session_of, with_descendants},
    stat::Stat,
    survivor::Survivor,
    sys,
};

/// The process name of a supervisor.
pub(crate) const NAME: &CStr = c"tree-reaper-all";

/// How long the orphans of a killed keeper may take to die.
const ORPHANS_SETTLE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A keeper that is stopped more often than `STOPS` within `STOPS_WITHIN` is killed, since it would
/// be stopped again and again.
const STOPS: u32 = 20;
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The size of an encoded pid and start time.
const IDENTITY_BYTES: usize = 12;

struct Supervisor {
    keepers: HashMap<i32, KeeperEntry>,
    /// Processes that a keeper detached on request: pid and start time.
    detached: HashSet<(i32, u64)>,
    /// The pipe into which a keeper writes the processes that it leaves alive, before it exits.
    detached_pipe: (PipeReader, PipeWriter),
    children: ChildWatch,
    host: Option<Host>,
}

/// A living keeper.
struct KeeperEntry {
    /// A copy of the keeper's socket: while it is open, the connection to the host does not break
    /// when the keeper dies.
    socket: OwnedFd,
    /// The number of stops since `since`.
    stops: u32,
    since: Instant,
}

struct Host {
    pid: Pid,
    /// A pidfd: readable once the process has ended.
    handle: OwnedFd,
}

/// Runs until the program at the other end of `control` and all keepers are gone.
pub(super) fn supervise(control: OwnedFd) -> io::Result<()> {
    sys::hold_proc();
    discard_signals()?;
    setsid()?;
    sys::adopt_orphans()?;
    sys::name_process(NAME);
    sys::continue_with_parents_death();
    // A second check: the connection breaks when the host ends, unless a forked copy of the host
    // holds it open.
    let host = getppid().and_then(|pid| Some(Host { pid, handle: sys::watch(pid).ok()? }));
    let detached_pipe = io::pipe()?;
    ioctl_fionbio(&detached_pipe.0, true)?;
    let mut supervisor = Supervisor {
        keepers: HashMap::new(),
        detached: HashSet::new(),
        detached_pipe,
        children: ChildWatch::watch()?,
        host,
    };
    let mut control = Some(control);
    while control.is_some() || !supervisor.keepers.is_empty() {
        let sockets = [control.as_ref().map(AsFd::as_fd), Some(supervisor.detached_pipe.0.as_fd())];
        let [has_request, _] = wait(sockets, &mut supervisor.children, None)?;
        supervisor.read_detached();
        if has_request && let Some(socket) = control.take() {
            let (count, descriptors) = wire::receive(socket.as_fd(), &mut [0], RecvFlags::empty())?;
            for keeper in descriptors {
                if let Fork::Child(keeper) = supervisor.fork(keeper) {
                    drop(socket);
                    become_keeper(supervisor, keeper);
                }
            }
            control = (count > 0).then_some(socket);
        }
        supervisor.reap();
    }
    Ok(())
}

enum Fork {
    Parent,
    Child(OwnedFd),
}

impl Supervisor {
    #[expect(unsafe_code, reason = "no safe call forks")]
    fn fork(&mut self, keeper: OwnedFd) -> Fork {
        // SAFETY: this process has one thread: it was executed only to supervise, has not reached
        // its `main`, and starts no thread. So no other thread holds a lock, and the child may do
        // what its parent may.
        match unsafe { libc::fork() } {
            -1 => {
                keeper::report_failure(&keeper, &io::Error::last_os_error());
                Fork::Parent
            }
            0 => Fork::Child(keeper),
            child => {
                self.keepers.insert(child, KeeperEntry { socket: keeper, stops: 0, since: Instant::now() });
                Fork::Parent
            }
        }
    }

    /// Reads the identities of the processes that keepers have detached.
    fn read_detached(&mut self) {
        let mut identity = [0; IDENTITY_BYTES];
        while self.detached_pipe.0.read_exact(&mut identity).is_ok() {
            if let Some((pid, start)) = identity.split_first_chunk() {
                let start = start.try_into().map_or(0, u64::from_ne_bytes);
                self.detached.insert((i32::from_ne_bytes(*pid), start));
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match reap_or_stopped() {
                Reaped::One(pid, status) => {
                    let pid = pid.as_raw_nonzero().get();
                    if self.keepers.contains_key(&pid) {
                        self.keeper_exited(pid, status.exit_status() == Some(0));
                    }
                }
                Reaped::Stopped(pid) => self.continue_keeper(pid),
                Reaped::NoneYet | Reaped::Childless => return,
            }
        }
    }

    /// Handles the exit of a keeper. If it was killed, its tree is killed and reported here.
    fn keeper_exited(&mut self, pid: i32, exited_normally: bool) {
        let survivors = if exited_normally { None } else { Some(self.kill_orphans(pid)) };
        // The connection closes only after the tree is gone.
        if let (Some(entry), Some(survivors)) = (self.keepers.remove(&pid), survivors) {
            let survivors = survivors.iter().map(Survivor::from).collect();
            _ = wire::send_all(&entry.socket, &wire::encode(&Report::Gone { survivors }));
        }
    }

    /// Continues a keeper that was stopped, and kills one that is stopped repeatedly. It is an
    /// unreaped child, so its pid cannot be reused.
    fn continue_keeper(&mut self, pid: Pid) {
        let Some(entry) = self.keepers.get_mut(&pid.as_raw_nonzero().get()) else { return };
        if entry.since.elapsed() > STOPS_WITHIN {
            (entry.stops, entry.since) = (0, Instant::now());
        }
        entry.stops += 1;
        _ = kill_process(pid, if entry.stops > STOPS { Signal::KILL } else { Signal::CONT });
    }

    /// Kills the orphans of a killed keeper. Returns those that could not be killed.
    fn kill_orphans(&mut self, keeper: i32) -> Vec<Stat> {
        let until = Instant::now() + ORPHANS_SETTLE;
        let mut orphans = Orphans { supervisor: self, keeper };
        let mut empty_scans = 0;
        loop {
            let left = termination::kill(&mut orphans).alive;
            empty_scans = if left.is_empty() { empty_scans + 1 } else { 0 };
            if empty_scans == 2 || Instant::now() >= until {
                return left;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns whether a process is a keeper, or was detached by one.
    fn is_known(&self, stat: &Stat) -> bool {
        self.keepers.contains_key(&stat.pid) || self.detached.contains(&(stat.pid, stat.start))
    }
}

/// The orphans of a killed keeper: living children that are neither keepers nor detached, and their
/// descendants. On macOS, the processes that are still in the keeper's session.
struct Orphans<'a> {
    supervisor: &'a mut Supervisor,
    keeper: i32,
}

impl Members for Orphans<'_> {
    fn children(&mut self, seen: impl FnMut(Stat)) {
        let children: Vec<_> = sys::children();
        // Read after the scan: another keeper may exit meanwhile, and it has written its detached
        // processes before.
        self.supervisor.read_detached();
        let is_orphan = |stat: &Stat| stat.is_alive() && !self.supervisor.is_known(stat);
        children.into_iter().rev().filter_map(sys::stat_of).filter(is_orphan).for_each(seen);
    }

    fn scan(&mut self) -> Vec<Stat> {
        let own = getpid().as_raw_nonzero().get();
        let snapshot = sys::snapshot().unwrap_or_else(|_| sys::own_children());
        self.supervisor.read_detached();
        let is_orphan = |stat: &Stat| {
            let is_lost = stat.parent == own || !sys::ADOPTS_ORPHANS && is_in_session_of(stat.pid, self.keeper);
            is_lost && !self.supervisor.is_known(stat)
        };
        with_descendants(snapshot, is_orphan, Stat::is_still)
    }
}

fn become_keeper(supervisor: Supervisor, socket: OwnedFd) -> ! {
    let Supervisor { keepers, detached, detached_pipe, children, host } = supervisor;
    // Closes the sockets of other keepers and the signal pipe of the supervisor.
    drop((keepers, detached, children));
    let (_, mut detached_pipe) = detached_pipe;
    sys::name_process(c"tree-reaper-one");
    sys::continue_with_parents_death();
    let host = host.and_then(|host| sys::watch_after_fork(host.handle, host.pid));
    let reported = keeper::run(socket, host.as_ref()).and_then(|left| {
        let identities = left.iter().flat_map(|stat| [&stat.pid.to_ne_bytes()[..], &stat.start.to_ne_bytes()].concat());
        detached_pipe.write_all(&identities.collect::<Vec<_>>())
    });
    exit(i32::from(reported.is_err()))
}
