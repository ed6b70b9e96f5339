//! How this program's file becomes the supervisor: a few instructions that run before `main`.
//!
//! A program that links this crate cannot be asked to call something first in its `main`; a test has no `main` of its own.
//! So the linker puts `START` among the functions that the C runtime calls before `main`. In an ordinary start it looks
//! for a variable in the environment, finds none, and returns.

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
    fs::{Mode, OFlags, open},
    io::fcntl_dupfd_cloexec,
    stdio::{dup2_stdin, stdin},
};

use super::supervisor::supervise;
use crate::sys;

/// Set for a supervisor alone. It is no option: nobody else sets it.
const VARIABLE: &str = "TEAMSTER_SUPERVISOR";

/// What `ps` shows of supervisors and keepers, whatever program they are. It names neither this library nor an agent, so that
/// `pkill -f teamster` or `pkill -f claude` does not hit those that would clean up after it.
const TITLE: &str = "tree-reaper";

/// How a supervisor exits that could not do its work.
const FAILED: i32 = 125;

pub(crate) extern "C" fn begin() {
    if std::env::var_os(VARIABLE).is_some() {
        let supervised = catch_unwind(|| control().and_then(supervise));
        exit(if matches!(supervised, Ok(Ok(()))) { 0 } else { FAILED });
    }
}

/// Takes the connection to the host, which is stdin, to where no other program inherits it, and closes the rest.
fn control() -> io::Result<OwnedFd> {
    sys::close_inherited();
    let control = fcntl_dupfd_cloexec(stdin(), 3)?;
    dup2_stdin(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?;
    // Nothing is kept from being unmounted.
    rustix::process::chdir("/")?;
    Ok(control)
}

/// Executes a program that links this crate as a supervisor, with this connection.
pub(super) fn start(program: &Path, control: UnixStream) -> io::Result<Child> {
    // What the dynamic linker needs to load the program as it was loaded for the host, and nothing else: no keys.
    let is_linkers = |name: &[u8]| name.starts_with(b"LD_") || name.starts_with(b"DYLD_");
    let loader = std::env::vars_os().filter(|(name, _)| is_linkers(name.as_encoded_bytes()));
    Command::new(program)
        .arg0(TITLE)
        .env_clear()
        .envs(loader)
        .env(VARIABLE, "1")
        .stdin(OwnedFd::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
