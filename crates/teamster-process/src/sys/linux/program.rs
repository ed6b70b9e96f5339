//! This program's file.

use std::{ffi::OsString, io, path::Path};

use super::procfs::{self, OWN_PROGRAM};

/// Closes descriptors that other libraries of the host opened without close-on-exec.
#[expect(unsafe_code, reason = "no safe call closes descriptors without an owner")]
pub(crate) fn close_inherited() {
    // SAFETY: this process was just executed and has opened nothing itself, so no object owns these
    // descriptors. The system call is used directly, since old C libraries lack the function; an
    // old kernel closes nothing.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Returns this program's own file, if this crate is linked into it. `address` is an address in the
/// crate's code. If the crate is in a library that the program loads at run time, it cannot run
/// before `main`, and executing the file would start the program itself.
pub(crate) fn own_program(address: usize) -> io::Result<Option<OsString>> {
    let root = procfs::any()?;
    let file = procfs::link(&root, "self/exe")?;
    let maps = String::from_utf8_lossy(&procfs::read(&root, "self/maps")?).into_owned();
    let holds_us = |line: &&str| {
        let mut bounds = line.split_ascii_whitespace().next().unwrap_or_default().split('-');
        let mut bound = || bounds.next().and_then(|bound| usize::from_str_radix(bound, 16).ok()).unwrap_or_default();
        (bound()..bound()).contains(&address)
    };
    // The name is the last of six fields and may contain spaces.
    let name = maps.lines().find(holds_us).and_then(|line| line.splitn(6, ' ').nth(5)).map(str::trim_start);
    Ok((name.map(Path::new) == Some(&file)).then(|| OWN_PROGRAM.into()))
}
