//! How this program's file becomes the supervisor: a few instructions that run before `main`.
//!
//! A program that links this crate cannot be asked to call something first in its `main`; a test has no `main` of its own.
//! So the linker puts [`START`] among the functions that the C runtime calls before `main`. In an ordinary start it looks
//! for a variable in the environment, finds none, and returns.

use std::{
    ffi::OsString,
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

/// Set for a supervisor alone. It is no option: nobody else sets it.
const VARIABLE: &str = "TEAMSTER_SUPERVISOR";

/// How a supervisor exits that could not do its work.
const FAILED: i32 = 125;

// Before the functions of other libraries, which might start threads, and after that of the standard library.
#[used]
#[expect(unsafe_code, reason = "the only way to run before somebody else's main")]
// SAFETY: the section holds pointers to functions of C's calling convention; this one does not unwind.
#[unsafe(link_section = ".init_array.00101")]
static START: extern "C" fn() = begin;

extern "C" fn begin() {
    if std::env::var_os(VARIABLE).is_some() {
        let supervised = catch_unwind(|| control().and_then(supervise));
        exit(if matches!(supervised, Ok(Ok(()))) { 0 } else { FAILED });
    }
}

/// Takes the connection to the host, which is stdin, to where no other program inherits it, and closes the rest.
fn control() -> io::Result<OwnedFd> {
    close_inherited();
    let control = fcntl_dupfd_cloexec(stdin(), 3)?;
    dup2_stdin(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?;
    // Nothing is kept from being unmounted.
    rustix::process::chdir("/")?;
    Ok(control)
}

/// Closes what the host's other libraries left open for every program: nobody here would ever close it.
#[expect(unsafe_code, reason = "no safe call closes descriptors that nobody owns")]
fn close_inherited() {
    // SAFETY: this process was just executed and has opened nothing itself, so no object owns one of these descriptors.
    // Not by the C library's own function, which old ones lack; an old kernel closes nothing.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Executes a program that links this crate as a supervisor, with this connection.
pub(super) fn start(program: &Path, control: UnixStream) -> io::Result<Child> {
    // What the dynamic linker needs to load the program as it was loaded for the host, and nothing else: no keys.
    let loader = std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"LD_"));
    Command::new(program)
        .arg0("teamster-supervisor")
        .env_clear()
        .envs(loader)
        .env(VARIABLE, "1")
        .stdin(OwnedFd::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// This program's own file, if this crate is part of it: a library that another program loads has no `main` to come
/// before, and starting that program would start whatever it is.
pub(super) fn own_program() -> Option<OsString> {
    let file = std::fs::read_link("/proc/self/exe").ok()?;
    let ours = START as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let holds_us = |line: &&str| {
        let mut bounds = line.split_ascii_whitespace().next().unwrap_or_default().split('-');
        let mut bound = || bounds.next().and_then(|bound| usize::from_str_radix(bound, 16).ok()).unwrap_or_default();
        (bound()..bound()).contains(&ours)
    };
    let line = maps.lines().find(holds_us)?;
    // The name comes last, behind five fields, and may have spaces.
    let name = line.splitn(6, ' ').nth(5)?.trim_start();
    (Path::new(name) == file).then(|| "/proc/self/exe".into())
}
