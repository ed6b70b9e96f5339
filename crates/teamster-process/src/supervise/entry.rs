//! Turns this program's file into the supervisor, in a function that runs before `main`.
//!
//! The crate cannot require a call in `main`, and a test has no `main` of its own. So the linker
//! puts `START` among the functions that the C runtime calls before `main`. In an ordinary start it
//! finds its environment variable missing and returns.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    panic::catch_unwind,
    path::Path,
    process::{Child, Command, Stdio, exit},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open},
    io::fcntl_dupfd_cloexec,
    process::fchdir,
    stdio::{dup2_stdin, dup2_stdout, stdin, stdout},
};

use super::supervisor::supervise;
use crate::{startup, sys};

/// Set for a supervisor only. It is not an option: without a socket that the parent process
/// created, it has no effect.
const VARIABLE: &str = "TEAMSTER_SUPERVISOR";

/// The command line of supervisors and keepers in `ps`. It names neither this library nor an agent,
/// so that `pkill -f teamster` or `pkill -f claude` does not kill the processes that clean up.
const TITLE: &str = "tree-reaper";

/// The exit code of a supervisor that failed.
const FAILED: i32 = 125;

// On Linux it runs before the functions of other libraries, which might start threads, and after
// that of the standard library.
#[used]
#[expect(unsafe_code, reason = "the only way to run before the host's main")]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00101"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
// SAFETY: the section holds pointers to functions of C's calling convention. This one ignores the
// arguments that it gets and does not unwind.
static START: extern "C" fn() = run_if_supervisor;

/// Returns an address in this crate's code.
pub(super) fn own_address() -> usize {
    START as usize
}

extern "C" fn run_if_supervisor() {
    startup::note_closed_streams();
    // A user who starts a setuid program chooses its environment, and must not control it that way.
    let is_asked = std::env::var_os(VARIABLE).is_some() && !sys::is_privileged();
    if !is_asked || !is_socket() {
        return;
    }
    // If the parent has died, no supervisor is needed. `main` must not run instead.
    let supervised = sys::is_made_by_parent(stdin()).then(|| catch_unwind(|| control().and_then(supervise)));
    exit(if matches!(supervised, Some(Ok(Ok(())))) { 0 } else { FAILED });
}

fn is_socket() -> bool {
    fstat(stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}

/// Moves the connection to the host from stdin to a descriptor that no other program inherits, and
/// closes the rest.
fn control() -> io::Result<OwnedFd> {
    startup::reset_signals();
    sys::close_inherited();
    let control = fcntl_dupfd_cloexec(stdin(), 3)?;
    // The host passes its procfs as standard output.
    sys::adopt_proc(stdout())?;
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    // The working directory must not block an unmount.
    rustix::process::chdir("/")?;
    Ok(control)
}

/// Executes a program that links this crate as a supervisor that uses this connection.
pub(super) fn start(program: &Path, control: UnixStream) -> io::Result<Child> {
    // Only the variables of the dynamic linker are passed on, so that the program loads as it did
    // for the host. Keys are not.
    let is_linkers = |name: &[u8]| name.starts_with(b"LD_") || name.starts_with(b"DYLD_");
    let loader = std::env::vars_os().filter(|(name, _)| is_linkers(name.as_encoded_bytes()));
    let proc = sys::held_proc();
    let mut command = Command::new(program);
    if let (Some(path), Some(root)) = (sys::in_held_proc(program), proc.as_ref()) {
        command = Command::new(path);
        start_in(&mut command, root.try_clone()?);
    }
    command
        .arg0(TITLE)
        .env_clear()
        .envs(loader)
        .env(VARIABLE, "1")
        .stdin(OwnedFd::from(control))
        .stdout(proc.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::null())
        .spawn()
}

/// Starts the program in this directory, so that its relative path is found there.
#[expect(unsafe_code, reason = "no safe call starts a program from a directory that has no path")]
fn start_in(command: &mut Command, directory: OwnedFd) {
    // SAFETY: between fork and exec it makes one system call, and uses no memory that a lock protects.
    unsafe { command.pre_exec(move || Ok(fchdir(&directory)?)) };
}
