//! The keeper: the per-run subreaper process above one tree. See the [parent module](super).
//!
//! It has one thread and blocks in one place. Invariants: it does not exit while a member of its
//! tree is alive that it can kill, unless it was requested to detach; and it reports the tree's end
//! only then.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    net::RecvFlags,
    process::{Pid, WaitStatus, getpid, kill_process, setsid},
};

use super::{
    events::{ChildWatch, Reaped, reap, wait},
    termination::{Members, Termination},
    wire::{self, Inbox, Report, Request, Start},
};
use crate::{descendants::Descendants, lease::KeeperLease, process::Process, stat::Stat, survivor::Survivor, sys};

/// The grace period of a tree whose host is gone. The whole tree must be gone within two seconds,
/// also on a busy machine.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// How often a keeper without children scans for other members of its tree (macOS).
const ORPHAN_SCAN_INTERVAL: Duration = Duration::from_millis(20);

struct Keeper {
    /// The connection to the host; `None` when the host is gone.
    host: Option<OwnedFd>,
    inbox: Inbox,
    children: ChildWatch,
    leader: Option<i32>,
    has_leader_exited: bool,
    descendants: Descendants,
    termination: Option<Termination>,
    detach: bool,
    resources: Option<RunResources>,
    /// The lease under which the tree runs, until it has expired.
    lease: Option<KeeperLease>,
}

struct RunResources {
    /// Removed if the host dies.
    directory: PathBuf,
    /// The run's lock, held while this process lives.
    _lock: Option<OwnedFd>,
}

/// Supervises one tree from its start to its end. Returns the remaining members: those that could
/// not be killed, or all after a request to detach. `host_process` is a pidfd of the program that
/// owns the tree.
pub(super) fn run(host: OwnedFd, host_process: Option<&OwnedFd>) -> io::Result<Vec<Stat>> {
    let children = ready().inspect_err(|error| report_failure(&host, error))?;
    let mut keeper = Keeper {
        host: Some(host),
        inbox: Inbox::default(),
        children,
        leader: None,
        has_leader_exited: false,
        descendants: Descendants::of_keeper(own(), String::new()),
        termination: None,
        detach: false,
        resources: None,
        lease: None,
    };
    keeper.report(&Report::Ready { keeper: Process::known(own()) });
    let mut childless = false;
    loop {
        let host = keeper.host.as_ref();
        let sockets = [host.map(AsFd::as_fd), host.and(host_process).map(AsFd::as_fd)];
        let due = keeper.due(childless);
        let [has_requests, host_ended] = wait(sockets, &mut keeper.children, due)?;
        if has_requests && !keeper.read_requests() || host_ended {
            keeper.host_gone();
        }
        keeper.check_lease();
        childless = keeper.reap();
        if let Some(left) = keeper.finish_if_done(childless) {
            return Ok(left);
        }
    }
}

fn ready() -> io::Result<ChildWatch> {
    sys::adopt_orphans()?;
    // The keeper leaves the terminal. Without a terminal, a tool that opens one fails at once
    // instead of being stopped.
    setsid()?;
    ChildWatch::watch()
}

/// Reports to a host why its keeper could not start.
pub(super) fn report_failure(host: &OwnedFd, error: &io::Error) {
    _ = wire::send_all(host, &wire::encode(&Report::NotStarted { errno: error.raw_os_error() }));
}

impl Keeper {
    /// Reads and handles the host's requests. Returns `false` if the host is gone or a request is
    /// invalid.
    fn read_requests(&mut self) -> bool {
        let Some(host) = &self.host else { return true };
        let connected = self.inbox.receive(host.as_fd(), RecvFlags::empty()).unwrap_or(false);
        loop {
            match self.inbox.next() {
                Ok(Some(request)) => self.handle(request),
                Ok(None) => return connected,
                Err(_) => return false,
            }
        }
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Start(start) => self.start(*start),
            Request::Signal(signal) => {
                // The pid of a reaped leader may be reused.
                if let Some(leader) = self.leader.and_then(Pid::from_raw)
                    && let Some(signal) = rustix::process::Signal::from_named_raw(signal)
                {
                    _ = kill_process(leader, signal);
                }
            }
            Request::End { grace_ms } => self.end(Duration::from_millis(grace_ms)),
            Request::Detach => self.detach = true,
        }
    }

    fn start(&mut self, start: Start) {
        let mut descriptors = std::mem::take(&mut self.inbox.descriptors).into_iter();
        let stdin = if start.has_stdin { descriptors.next().map(Stdio::from) } else { Some(Stdio::null()) };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, descriptors.next(), descriptors.next()) else {
            return self.report(&Report::NotStarted { errno: None });
        };
        let directory = start.directory.as_ref().map(PathBuf::from);
        self.resources = directory.map(|directory| RunResources { directory, _lock: descriptors.next() });
        self.descendants = Descendants::of_keeper(own(), start.marker.clone());
        if let Some(term) = start.lease_term {
            match descriptors.next().map(|file| KeeperLease::new(file.as_fd(), term)) {
                Some(Ok(lease)) if lease.is_expired() => {
                    self.report(&Report::LeaseExpired);
                    return self.report(&Report::NotStarted { errno: None });
                }
                Some(Ok(lease)) => self.lease = Some(lease),
                Some(Err(error)) => return self.report(&Report::NotStarted { errno: error.raw_os_error() }),
                None => return self.report(&Report::NotStarted { errno: None }),
            }
        }
        match spawn(start, stdin, stdout, stderr) {
            Ok(child) => {
                let leader = Process::known(child.id().cast_signed());
                self.leader = Some(leader.pid);
                self.report(&Report::Started { leader });
            }
            Err(error) => self.report(&Report::NotStarted { errno: error.raw_os_error() }),
        }
    }

    fn end(&mut self, grace: Duration) {
        match &mut self.termination {
            Some(termination) => termination.shorten_grace(grace),
            None => self.termination = Some(Termination::begin(grace, &mut self.descendants)),
        }
    }

    /// Kills the tree if its lease has expired.
    fn check_lease(&mut self) {
        if self.lease.as_ref().is_some_and(KeeperLease::is_expired) {
            self.lease = None;
            self.report(&Report::LeaseExpired);
            self.end(Duration::ZERO);
        }
    }

    fn host_gone(&mut self) {
        self.host = None;
        if !self.detach {
            self.end(ORPHAN_GRACE);
        }
    }

    /// Returns when to act again without an event. The exit of a process that is not a child causes
    /// no event.
    fn due(&self, childless: bool) -> Option<Instant> {
        let scan = (childless && !sys::ADOPTS_ORPHANS).then_some(ORPHAN_SCAN_INTERVAL);
        let termination = self.termination.as_ref().map(|termination| match scan {
            Some(interval) => termination.due().min(Instant::now() + interval),
            None => termination.due(),
        });
        let lease = self.lease.as_ref().map(|lease| Instant::now() + lease.next_check());
        termination.into_iter().chain(lease).min()
    }

    /// Reaps the children that have ended. Returns whether no child remains.
    fn reap(&mut self) -> bool {
        let mut fewer = false;
        let childless = loop {
            match reap() {
                Reaped::One(pid, status) => self.child_exited(pid, status),
                Reaped::Stopped(_) => {}
                Reaped::NoneYet => break false,
                Reaped::Childless => break true,
            }
            fewer = true;
        };
        if fewer
            && !childless
            && let Some(termination) = &mut self.termination
        {
            termination.terminate_new_orphans(&mut self.descendants);
        }
        childless
    }

    fn child_exited(&mut self, pid: Pid, status: WaitStatus) {
        if Some(pid.as_raw_nonzero().get()) == self.leader {
            self.leader = None;
            self.has_leader_exited = true;
            self.report(&Report::Exited { code: status.exit_status(), signal: status.terminating_signal() });
        }
    }

    /// Advances the termination. Returns the remaining processes when it is finished, or when the
    /// leader has exited and nothing is left to terminate.
    fn finish_if_done(&mut self, childless: bool) -> Option<Vec<Stat>> {
        let Self { descendants, termination, .. } = self;
        let left = if childless && self.has_leader_exited && sys::ADOPTS_ORPHANS {
            Vec::new()
        } else if self.detach {
            descendants.alive()
        } else {
            let termination = termination.as_mut()?;
            let is_empty = childless && (sys::ADOPTS_ORPHANS || descendants.alive().is_empty());
            if is_empty { Vec::new() } else { termination.advance(descendants)? }
        };
        if self.host.is_none()
            && let Some(RunResources { directory, .. }) = &self.resources
        {
            // The host is gone, so a failure cannot be reported. The next start sweeps.
            _ = std::fs::remove_dir_all(directory);
        }
        self.report(&Report::Gone { survivors: left.iter().map(Survivor::from).collect() });
        Some(left)
    }

    fn report(&mut self, report: &Report) {
        if let Some(host) = &self.host {
            // A closed connection is noticed by the next read.
            _ = wire::send_all(host, &wire::encode(report));
        }
    }
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn spawn(start: Start, stdin: Stdio, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
    let Start { program, args, env, marker, cwd, .. } = start;
    Command::new(program)
        .args(args)
        .env_clear()
        .envs(env)
        .env(marker, "1")
        .current_dir::<OsString>(cwd)
        .process_group(0)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
}
