//! The process that forks keepers. See the [module above](super) for what it is for.

use std::{
    collections::{HashMap, HashSet},
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::exit,
    time::{Duration, Instant},
};

use rustix::{
    io::ioctl_fionbio,
    net::RecvFlags,
    process::{Pid, getpid, getppid, setsid},
};

use super::{
    ending,
    events::{Children, Reaped, reap, turn_deaf, wait},
    keeper, wire,
};
use crate::{
    kin::{is_in_session_of, with_descendants},
    process::Stat,
    sys,
};

/// How long the orphans of a keeper that was killed may take to die.
const ORPHANS_SETTLE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// The size of a process's number and start time.
const IDENTITY_BYTES: usize = 12;

struct Supervisor {
    /// Each with its socket: as long as that is open here too, its tree's owner does not take its death for the tree's.
    keepers: HashMap<i32, OwnedFd>,
    /// Processes that outlived their keeper knowingly: number and start time.
    left: HashSet<(i32, u64)>,
    /// Where keepers write whom they leave, before they exit.
    leaving: (PipeReader, PipeWriter),
    children: Children,
    host: Option<Host>,
}

struct Host {
    pid: Pid,
    /// Can be read once it has ended.
    handle: OwnedFd,
}

/// Supervises until the program at the other end of `control` is gone, and all keepers are.
pub(super) fn supervise(control: OwnedFd) -> io::Result<()> {
    sys::hold_proc();
    turn_deaf()?;
    setsid()?;
    sys::adopt_orphans()?;
    sys::name_process(c"teamster-superv");
    // Belt and braces: the connection breaks when the program ends, unless it has forked and a copy holds it open.
    let host = getppid().and_then(|pid| Some(Host { pid, handle: sys::watch(pid).ok()? }));
    let leaving = io::pipe()?;
    ioctl_fionbio(&leaving.0, true)?;
    let mut supervisor =
        Supervisor { keepers: HashMap::new(), left: HashSet::new(), leaving, children: Children::watch()?, host };
    let mut control = Some(control);
    while control.is_some() || !supervisor.keepers.is_empty() {
        let sockets = [control.as_ref().map(AsFd::as_fd), Some(supervisor.leaving.0.as_fd())];
        let [told, _] = wait(sockets, &mut supervisor.children, None)?;
        supervisor.note_left();
        if told && let Some(socket) = control.take() {
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
                keeper::refuse(&keeper, &io::Error::last_os_error());
                Fork::Parent
            }
            0 => Fork::Child(keeper),
            child => {
                self.keepers.insert(child, keeper);
                Fork::Parent
            }
        }
    }

    /// Notes whom keepers have left.
    fn note_left(&mut self) {
        let mut identity = [0; IDENTITY_BYTES];
        while self.leaving.0.read_exact(&mut identity).is_ok() {
            if let Some((pid, start)) = identity.split_first_chunk() {
                let start = start.try_into().map_or(0, u64::from_ne_bytes);
                self.left.insert((i32::from_ne_bytes(*pid), start));
            }
        }
    }

    fn reap(&mut self) {
        while let Reaped::One(pid, status) = reap() {
            let pid = pid.as_raw_nonzero().get();
            if self.keepers.contains_key(&pid) {
                if status.exit_status() != Some(0) {
                    self.end_orphans(pid);
                }
                // Only now, when nobody of its tree is left, its owner sees the connection break.
                self.keepers.remove(&pid);
            }
        }
    }

    /// Ends what a keeper should have ended that was killed.
    fn end_orphans(&mut self, keeper: i32) {
        let until = Instant::now() + ORPHANS_SETTLE;
        while Instant::now() < until {
            if ending::kill(|| self.orphans(keeper)).is_empty() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Living children that are no keepers and were not left knowingly, and whoever descends from them. Where they did
    /// not become children, those who are still in the session of their keeper.
    fn orphans(&mut self, keeper: i32) -> Vec<Stat> {
        let own = getpid().as_raw_nonzero().get();
        let snapshot = sys::snapshot().unwrap_or_else(|_| sys::own_children());
        // After the snapshot: another keeper may end meanwhile, and has told before whom it leaves.
        self.note_left();
        let is_orphan = |stat: &Stat| {
            let known = self.keepers.contains_key(&stat.pid) || self.left.contains(&(stat.pid, stat.start));
            let is_lost = stat.parent == own || !sys::ADOPTS_ORPHANS && is_in_session_of(stat, keeper);
            is_lost && !known
        };
        with_descendants(snapshot, is_orphan, Stat::is_still)
    }
}

fn become_keeper(supervisor: Supervisor, socket: OwnedFd) -> ! {
    let Supervisor { keepers, left, leaving, children, host } = supervisor;
    // The sockets of other keepers, and the news of the supervisor's children.
    drop((keepers, left, children));
    let (_, mut leaving) = leaving;
    sys::name_process(c"teamster-keeper");
    let host = host.and_then(|host| sys::watch_after_fork(host.handle, host.pid));
    let told = keeper::keep(socket, host.as_ref()).and_then(|left| {
        let identities = left.iter().flat_map(|stat| [&stat.pid.to_ne_bytes()[..], &stat.start.to_ne_bytes()].concat());
        leaving.write_all(&identities.collect::<Vec<_>>())
    });
    exit(i32::from(told.is_err()))
}
