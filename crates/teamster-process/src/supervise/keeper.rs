//! The process above one tree. See the [module above](super) for what it is for.
//!
//! It has one thread and blocks in one place. Invariants: it is never left before nobody of its tree is alive or can be
//! ended, unless it was told to leave; and it speaks of the tree's end only then.

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
    ending::{Ending, Members},
    events::{Children, Reaped, reap, wait},
    wire::{self, Inbox, Order, Report, Start},
};
use crate::{
    kin::Kin,
    process::{Process, Stat},
    sys,
    tree::Survivor,
};

/// How long a tree may take to end by itself when its host is gone: the whole must be over within two seconds, on a busy
/// machine too.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// How often those are looked for who are nobody's children.
const STRAYS_PAUSE: Duration = Duration::from_millis(20);

struct Keeper {
    /// `None` when the host is gone.
    host: Option<OwnedFd>,
    inbox: Inbox,
    children: Children,
    leader: Option<i32>,
    kin: Kin,
    ending: Option<Ending>,
    leave: bool,
    belongings: Option<Belongings>,
}

struct Belongings {
    /// To be removed if the host dies.
    directory: PathBuf,
    /// Held for as long as this process lives.
    _lock: Option<OwnedFd>,
}

/// Keeps one tree, from its start to its end, and returns those of it who are left: whom nothing ends, or all if it was
/// told to leave them. `host_process` can be read once the program that the tree belongs to has ended.
pub(super) fn keep(host: OwnedFd, host_process: Option<&OwnedFd>) -> io::Result<Vec<Stat>> {
    let children = ready().inspect_err(|error| refuse(&host, error))?;
    let mut keeper = Keeper {
        host: Some(host),
        inbox: Inbox::default(),
        children,
        leader: None,
        kin: Kin::of(own(), String::new()),
        ending: None,
        leave: false,
        belongings: None,
    };
    keeper.tell(&Report::Ready { keeper: Process::known(own()) });
    let mut childless = false;
    loop {
        let host = keeper.host.as_ref();
        let sockets = [host.map(AsFd::as_fd), host.and(host_process).map(AsFd::as_fd)];
        let due = keeper.due(childless);
        let [told, host_ended] = wait(sockets, &mut keeper.children, due)?;
        if told && !keeper.hear() || host_ended {
            keeper.lose_host();
        }
        childless = keeper.reap();
        if let Some(left) = keeper.is_over(childless) {
            return Ok(left);
        }
    }
}

fn ready() -> io::Result<Children> {
    sys::adopt_orphans()?;
    // Out of the terminal's reach; and without a terminal, a tool that asks for one fails at once, and is not halted.
    setsid()?;
    Children::watch()
}

/// Tells a host why it gets no keeper.
pub(super) fn refuse(host: &OwnedFd, error: &io::Error) {
    _ = wire::send_all(host, &wire::encode(&Report::NotStarted { errno: error.raw_os_error() }));
}

impl Keeper {
    /// Does what the host wants; `false` when it is gone, or not to be understood.
    fn hear(&mut self) -> bool {
        let Some(host) = &self.host else { return true };
        let connected = self.inbox.receive(host.as_fd(), RecvFlags::empty()).unwrap_or(false);
        loop {
            match self.inbox.next() {
                Ok(Some(order)) => self.obey(order),
                Ok(None) => return connected,
                Err(_) => return false,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(start) => self.start(*start),
            Order::Signal(signal) => {
                // A leader that was reaped has no number any more.
                if let Some(leader) = self.leader.and_then(Pid::from_raw)
                    && let Some(signal) = rustix::process::Signal::from_named_raw(signal)
                {
                    _ = kill_process(leader, signal);
                }
            }
            Order::End { grace_ms } => self.end(Duration::from_millis(grace_ms)),
            Order::Leave => self.leave = true,
        }
    }

    fn start(&mut self, start: Start) {
        let mut descriptors = std::mem::take(&mut self.inbox.descriptors).into_iter();
        let stdin = if start.has_stdin { descriptors.next().map(Stdio::from) } else { Some(Stdio::null()) };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, descriptors.next(), descriptors.next()) else {
            return self.tell(&Report::NotStarted { errno: None });
        };
        let directory = start.directory.as_ref().map(PathBuf::from);
        self.belongings = directory.map(|directory| Belongings { directory, _lock: descriptors.next() });
        self.kin = Kin::of(own(), start.mark.clone());
        match spawn(start, stdin, stdout, stderr) {
            Ok(child) => {
                let leader = Process::known(child.id().cast_signed());
                self.leader = Some(leader.pid);
                self.tell(&Report::Started { leader });
            }
            Err(error) => self.tell(&Report::NotStarted { errno: error.raw_os_error() }),
        }
    }

    fn end(&mut self, grace: Duration) {
        match &mut self.ending {
            Some(ending) => ending.hurry(grace),
            None => self.ending = Some(Ending::begin(grace, &mut self.kin)),
        }
    }

    fn lose_host(&mut self) {
        self.host = None;
        if !self.leave {
            self.end(ORPHAN_GRACE);
        }
    }

    /// When to look again, if nothing happens before. Nobody tells of the end of a process that is not this one's child.
    fn due(&self, childless: bool) -> Option<Instant> {
        let due = self.ending.as_ref()?.due();
        let is_last_to_know = childless && !sys::ADOPTS_ORPHANS;
        Some(if is_last_to_know { due.min(Instant::now() + STRAYS_PAUSE) } else { due })
    }

    /// Reaps whoever has ended; whether there are no children any more.
    fn reap(&mut self) -> bool {
        let mut fewer = false;
        let childless = loop {
            match reap() {
                Reaped::One(pid, status) => self.ended(pid, status),
                Reaped::Stopped(_) => {}
                Reaped::NoneYet => break false,
                Reaped::Childless => break true,
            }
            fewer = true;
        };
        if fewer
            && !childless
            && let Some(ending) = &mut self.ending
        {
            ending.ask_left_behind(&mut self.kin);
        }
        childless
    }

    fn ended(&mut self, pid: Pid, status: WaitStatus) {
        if Some(pid.as_raw_nonzero().get()) == self.leader {
            self.leader = None;
            self.tell(&Report::Exited { code: status.exit_status(), signal: status.terminating_signal() });
        }
    }

    /// Goes on with the end, and returns who is left when it is over.
    fn is_over(&mut self, childless: bool) -> Option<Vec<Stat>> {
        let Self { kin, ending, .. } = self;
        let left = if self.leave {
            kin.alive()
        } else {
            let ending = ending.as_mut()?;
            let nobody_is_left = childless && (sys::ADOPTS_ORPHANS || kin.alive().is_empty());
            if nobody_is_left { Vec::new() } else { ending.go_on(kin)? }
        };
        if self.host.is_none()
            && let Some(Belongings { directory, .. }) = &self.belongings
        {
            // Nobody is there any more to be told that it failed; the next start sweeps.
            _ = std::fs::remove_dir_all(directory);
        }
        self.tell(&Report::Gone { survivors: left.iter().map(Survivor::from).collect() });
        Some(left)
    }

    fn tell(&mut self, report: &Report) {
        if let Some(host) = &self.host {
            // One that is gone is noticed when it is listened to.
            _ = wire::send_all(host, &wire::encode(report));
        }
    }
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn spawn(start: Start, stdin: Stdio, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
    let Start { program, args, env, mark, cwd, .. } = start;
    Command::new(program)
        .args(args)
        .env_clear()
        .envs(env)
        .env(mark, "1")
        .current_dir::<OsString>(cwd)
        .process_group(0)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
}
