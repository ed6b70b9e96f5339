//! The process that forks keepers. See the [module above](super) for what it is for.

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
    termination::{self, Members},
    events::{ChildWatch, Reaped, reap_or_stopped, discard_signals, wait},
    keeper,
    wire::{self, Report},
};
use crate::{
    descendants::{is_in_session_of, with_descendants},
    process::Stat,
    sys,
    tree::Survivor,
};

/// What the system calls a supervisor.
pub(crate) const NAME: &CStr = c"tree-reaper-all";

/// How long the orphans of a keeper that was killed may take to die.
const ORPHANS_SETTLE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A keeper that is stopped more often than this within this time is killed: whoever stops it goes on with it.
const STOPS: u32 = 20;
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The size of a process's number and start time.
const IDENTITY_BYTES: usize = 12;

struct Supervisor {
    keepers: HashMap<i32, KeeperEntry>,
    /// Processes that outlived their keeper knowingly: number and start time.
    detached: HashSet<(i32, u64)>,
    /// Where keepers write whom they leave, before they exit.
    detached_pipe: (PipeReader, PipeWriter),
    children: ChildWatch,
    host: Option<Host>,
}

/// A keeper that lives.
struct KeeperEntry {
    /// While it is open here too, the connection to the host does not break with the keeper's death.
    socket: OwnedFd,
    /// How often it was stopped, and since when this is counted.
    stops: u32,
    since: Instant,
}

struct Host {
    pid: Pid,
    /// Can be read once it has ended.
    handle: OwnedFd,
}

/// Supervises until the program at the other end of `control` is gone, and all keepers are.
pub(super) fn supervise(control: OwnedFd) -> io::Result<()> {
    sys::hold_proc();
    discard_signals()?;
    setsid()?;
    sys::adopt_orphans()?;
    sys::name_process(NAME);
    sys::continue_with_parents_death();
    // Belt and braces: the connection breaks when the program ends, unless it has forked and a copy holds it open.
    let host = getppid().and_then(|pid| Some(Host { pid, handle: sys::watch(pid).ok()? }));
    let detached_pipe = io::pipe()?;
    ioctl_fionbio(&detached_pipe.0, true)?;
    let mut supervisor =
        Supervisor { keepers: HashMap::new(), detached: HashSet::new(), detached_pipe, children: ChildWatch::watch()?, host };
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
        // SAFETY: this process has one thread: it was executed for this alone, has not reached its `main`, and starts
        // none. So no lock is held by another thread, and the child may do what its parent may.
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

    /// Notes whom keepers have left.
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

    /// A keeper has ended. If it was killed, what it should have done is done and reported here.
    fn keeper_exited(&mut self, pid: i32, exited_normally: bool) {
        let survivors = if exited_normally { None } else { Some(self.kill_orphans(pid)) };
        // Only now its owner may see the connection break.
        if let (Some(entry), Some(survivors)) = (self.keepers.remove(&pid), survivors) {
            let survivors = survivors.iter().map(Survivor::from).collect();
            _ = wire::send_all(&entry.socket, &wire::encode(&Report::Gone { survivors }));
        }
    }

    /// Continues a keeper that was stopped; one that is stopped again and again is killed. It is our child and not reaped, so
    /// that its number is its own.
    fn continue_keeper(&mut self, pid: Pid) {
        let Some(entry) = self.keepers.get_mut(&pid.as_raw_nonzero().get()) else { return };
        if entry.since.elapsed() > STOPS_WITHIN {
            (entry.stops, entry.since) = (0, Instant::now());
        }
        entry.stops += 1;
        _ = kill_process(pid, if entry.stops > STOPS { Signal::KILL } else { Signal::CONT });
    }

    /// Ends what a keeper should have ended that was killed. Returns who could not be ended.
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

    /// Whether a process is a keeper, or was left by one knowingly.
    fn is_known(&self, stat: &Stat) -> bool {
        self.keepers.contains_key(&stat.pid) || self.detached.contains(&(stat.pid, stat.start))
    }
}

/// What a keeper has left that was killed: living children that are no keepers and were not left knowingly, and whoever descends
/// from them. Where they did not become children, those who are still in the session of their keeper.
struct Orphans<'a> {
    supervisor: &'a mut Supervisor,
    keeper: i32,
}

impl Members for Orphans<'_> {
    fn children(&mut self, seen: impl FnMut(Stat)) {
        let children: Vec<_> = sys::children();
        // After the look: another keeper may end meanwhile, and has has_request before whom it leaves.
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
    // The sockets of other keepers, and the news of the supervisor's children.
    drop((keepers, detached, children));
    let (_, mut detached_pipe) = detached_pipe;
    sys::name_process(c"tree-reaper-one");
    sys::continue_with_parents_death();
    let host = host.and_then(|host| sys::watch_after_fork(host.handle, host.pid));
    let has_request = keeper::run(socket, host.as_ref()).and_then(|left| {
        let identities = left.iter().flat_map(|stat| [&stat.pid.to_ne_bytes()[..], &stat.start.to_ne_bytes()].concat());
        detached_pipe.write_all(&identities.collect::<Vec<_>>())
    });
    exit(i32::from(has_request.is_err()))
}
