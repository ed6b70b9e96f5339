//! The host's handle of its supervisor process.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::Child,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::SendFlags,
    process::{Pid, Signal, WaitOptions, getegid, geteuid, getgid, getuid, kill_process, waitpid},
};

use super::{entry, starting, wire};
use crate::{handle, limits::Limit, sys};

/// How long the supervisor may take to accept a request. It takes microseconds, unless it is
/// stopped and many requests wait.
const SEND_LIMIT: Duration = Duration::from_secs(1);
const SEND_PAUSE: Duration = Duration::from_millis(10);

/// How long a tree may wait for a supervisor that accepts its request.
const KEEPER_LIMIT: Duration = Duration::from_secs(20);

/// How long dropping a supervisor blocks until it ends, so that it can be reaped at once.
const DROP_SETTLE: Duration = Duration::from_millis(100);

/// Starts process trees and guarantees that none outlives this program.
///
/// The supervisor process is started with the first tree, and again if it was killed. It exits
/// after this value is dropped and the last tree has ended. [`Supervisor::new`] starts no process.
#[derive(Debug)]
pub struct Supervisor {
    program: Option<PathBuf>,
    /// Never locked across an await point.
    process: Mutex<Option<Process>>,
    /// Held while the process is started, or until it accepts a request.
    start_lock: tokio::sync::Mutex<()>,
}

/// Why no supervisor could be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// This program cannot be its own supervisor.
    #[error(
        "this program loads Teamster as a library at run time, so its own file cannot supervise processes; name a \
         program that can, such as the command teamster"
    )]
    NotInProgram,
    /// This program has rights that the user who started it does not have, and its supervisor
    /// ignores an environment that this user chose.
    #[error(
        "this program runs with the rights of its file (setuid, setgid or capabilities) and cannot supervise processes; \
         give up these rights or keep them for good (`setresuid`), and name a program without them as the supervisor"
    )]
    Privileged,
    /// The supervisor does not answer: it is stopped again and again, or its file cannot be loaded.
    #[error("{program:?} does not answer as the supervisor of processes")]
    InvalidAnswer {
        /// The program.
        program: PathBuf,
    },
    /// The supervisor could not be started.
    #[error("cannot start {program:?} as the supervisor of processes{}", limit_suffix(source))]
    Start {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Returns the limit that caused an error, as the end of a sentence.
fn limit_suffix(source: &io::Error) -> String {
    Limit::behind(source).map(|limit| format!(", since {limit}")).unwrap_or_default()
}

#[derive(Debug)]
struct Process {
    control: UnixStream,
    child: Child,
}

impl Default for Supervisor {
    fn default() -> Self {
        // Opened now, since `/proc` may be covered by another mount before the first tree is
        // started.
        sys::hold_proc();
        Self { program: None, process: Mutex::default(), start_lock: tokio::sync::Mutex::default() }
    }
}

impl Supervisor {
    /// Uses this program's own file as the supervisor.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses another program that links this crate, such as the command `teamster`. Libraries that a
    /// program in another language loads at run time need it. The file must link this crate;
    /// another program would just run as usual.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self { program: Some(program.into()), ..Self::default() }
    }

    /// Requests a new keeper and returns the connection to it. Waits at most 20 seconds, without
    /// blocking a thread.
    pub(crate) async fn request_keeper(&self) -> Result<UnixStream, SupervisorError> {
        let program = self.executable()?;
        match tokio::time::timeout(KEEPER_LIMIT, self.connect(&program)).await {
            Ok(connected) => connected.map_err(|source| SupervisorError::Start { program, source }),
            Err(_) => Err(SupervisorError::InvalidAnswer { program }),
        }
    }

    /// Returns the error for a supervisor that was replaced and still does not answer.
    pub(crate) fn no_answer(&self) -> SupervisorError {
        self.executable().map_or_else(|error| error, |program| SupervisorError::InvalidAnswer { program })
    }

    /// Continues the supervisor, if it is stopped.
    pub(crate) fn continue_if_stopped(&self) {
        if let Some(running) = &*self.process() {
            running.continue_if_stopped();
        }
    }

    /// Makes the next tree start a new supervisor. The trees of the present one stay with it.
    pub(crate) fn replace(&self) {
        tracing::warn!("the supervisor does not answer and is replaced");
        self.release_process();
    }

    /// Returns the file that is executed as the supervisor.
    fn executable(&self) -> Result<PathBuf, SupervisorError> {
        match &self.program {
            Some(_) if geteuid() != getuid() || getegid() != getgid() => Err(SupervisorError::Privileged),
            Some(program) => Ok(program.clone()),
            None if sys::is_privileged() => Err(SupervisorError::Privileged),
            None => match sys::own_program(entry::own_address()) {
                Ok(Some(program)) => Ok(program.into()),
                Ok(None) => Err(SupervisorError::NotInProgram),
                Err(source) => Err(SupervisorError::Start { program: sys::OWN_PROGRAM.into(), source }),
            },
        }
    }

    /// Sends the keeper's end of a new connection to the supervisor, which is started first if it
    /// does not run.
    async fn connect(&self, program: &Path) -> io::Result<UnixStream> {
        let (ours, theirs) = pair()?;
        let theirs = OwnedFd::from(theirs);
        let _guard = self.start_lock.lock().await;
        if self.send_keeper_socket(&theirs).await.is_ok() {
            return Ok(ours);
        }
        self.release_process();
        let program = program.to_owned();
        let started = starting::on_a_thread(move || Process::start(&program)).await?;
        *self.process() = Some(started);
        self.send_keeper_socket(&theirs).await?;
        Ok(ours)
    }

    async fn send_keeper_socket(&self, keeper: &OwnedFd) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match self.try_send(keeper) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && began.elapsed() < SEND_LIMIT => {
                    tokio::time::sleep(SEND_PAUSE).await;
                }
                sent => return sent,
            }
        }
    }

    fn try_send(&self, keeper: &OwnedFd) -> io::Result<()> {
        let mut process = self.process();
        let running = process.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if !running.is_alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        running.continue_if_stopped();
        running.try_send(keeper)
    }

    /// Releases the process on a thread, since waiting for its end may block.
    fn release_process(&self) {
        let Some(process) = self.process().take() else { return };
        // If no thread can be started, it is released here.
        _ = std::thread::Builder::new().name("teamster-reap".into()).spawn(move || drop(process));
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    fn start(program: &Path) -> io::Result<Self> {
        let (control, theirs) = pair()?;
        Ok(Self { child: entry::start(program, theirs)?, control })
    }

    fn is_alive(&mut self) -> bool {
        match self.child.try_wait() {
            Ok(status) => status.is_none(),
            // If the host ignores `SIGCHLD`, only the connection shows whether the child is alive.
            Err(_) => !self.is_disconnected(),
        }
    }

    /// Returns whether the other end of the connection is closed.
    fn is_disconnected(&self) -> bool {
        let mut control = [PollFd::new(&self.control, PollFlags::empty())];
        let polled = poll(&mut control, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_ok() && control.iter().any(|control| control.revents().contains(PollFlags::HUP))
    }

    /// It is an unreaped child, so its pid cannot be reused.
    fn continue_if_stopped(&self) {
        _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
    }

    fn try_send(&self, keeper: &OwnedFd) -> io::Result<()> {
        wire::send(&self.control, b"k", &[keeper.as_fd()], SendFlags::DONTWAIT).map(|_| ())
    }
}

/// Closes the connection: the supervisor exits after its last tree. As a child of this process, it
/// must be reaped here.
impl Drop for Process {
    fn drop(&mut self) {
        _ = self.control.shutdown(std::net::Shutdown::Both);
        let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if has_ended(&mut self.child) {
            return;
        }
        let pid = Pid::from_child(&self.child);
        if let Ok(handle) = sys::watch(pid) {
            handle::block_on_end(handle.as_fd(), DROP_SETTLE);
        }
        if !has_ended(&mut self.child) {
            // No other code reaps this child, so its pid is not reused before.
            _ = std::thread::Builder::new().name("teamster-reap".into()).spawn(move || reap(pid));
        }
    }
}

/// Waits until a child has ended, and reaps it.
fn reap(pid: Pid) {
    while let Err(Errno::INTR) = waitpid(Some(pid), WaitOptions::empty()) {}
}

fn pair() -> io::Result<(UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    sys::without_signal(&ours);
    sys::without_signal(&theirs);
    Ok((ours, theirs))
}
