//! This program's file, and how it is run before its `main`.

use std::{ffi::OsString, io, path::Path};

use super::procfs;
use crate::supervise::run_if_supervisor;

// Before the functions of other libraries, which might start threads, and after that of the standard library.
#[used]
#[expect(unsafe_code, reason = "the only way to run before somebody else's main")]
// SAFETY: the section holds pointers to functions of C's calling convention; this one does not unwind.
#[unsafe(link_section = ".init_array.00101")]
pub(crate) static START: extern "C" fn() = run_if_supervisor;

/// Where the file of this program is found.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Closes what the host's other libraries left open for every program: nobody here would ever close it.
#[expect(unsafe_code, reason = "no safe call closes descriptors that nobody owns")]
pub(crate) fn close_inherited() {
    // SAFETY: this process was just executed and has opened nothing itself, so no object owns one of these descriptors.
    // Not by the C library's own function, which old ones lack; an old kernel closes nothing.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// This program's own file, if this crate is part of it: a library that another program loads has no `main` to come
/// before, and starting that program would start whatever it is.
pub(crate) fn own_program() -> io::Result<Option<OsString>> {
    let root = procfs::any()?;
    let file = procfs::link(&root, "self/exe")?;
    let ours = START as usize;
    let maps = String::from_utf8_lossy(&procfs::read(&root, "self/maps")?).into_owned();
    let holds_us = |line: &&str| {
        let mut bounds = line.split_ascii_whitespace().next().unwrap_or_default().split('-');
        let mut bound = || bounds.next().and_then(|bound| usize::from_str_radix(bound, 16).ok()).unwrap_or_default();
        (bound()..bound()).contains(&ours)
    };
    // The name comes last, behind five fields, and may have spaces.
    let name = maps.lines().find(holds_us).and_then(|line| line.splitn(6, ' ').nth(5)).map(str::trim_start);
    Ok((name.map(Path::new) == Some(&file)).then(|| OWN_PROGRAM.into()))
}
