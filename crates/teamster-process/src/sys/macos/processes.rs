//! Reads processes through `libproc` and `sysctl`.

use std::{
    ffi::{c_int, c_void},
    io,
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
    ptr::null_mut,
};

use rustix::process::geteuid;

use crate::{
    stat::{Stat, State},
    sys::procargs,
};

/// Selects the listed processes, as in `sys/proc_info.h`.
const ALL_PIDS: u32 = 1;
const UID_ONLY: u32 = 4;

/// Includes zombies.
const DEAD_TOO: u64 = 1;

/// How many processes may be born between two calls.
const MARGIN: usize = 64;

/// The maximum size of a process's arguments and environment.
const ARGUMENTS_BYTES: usize = 1024 * 1024;

/// Returns all processes that this user can see.
pub(crate) fn snapshot() -> io::Result<Vec<Stat>> {
    // A process that has ended meanwhile is skipped.
    Ok(numbers()?.into_iter().filter_map(stat_of).collect())
}

/// Returns the pids of all processes that this user can see.
#[expect(unsafe_code, reason = "no safe call lists processes")]
pub(crate) fn numbers() -> io::Result<Vec<i32>> {
    let user = geteuid();
    let (selector, id) = if user.is_root() { (ALL_PIDS, 0) } else { (UID_ONLY, user.as_raw()) };
    // SAFETY: without a buffer it returns the required size.
    let bytes = unsafe { libc::proc_listpids(selector, id, null_mut(), 0) };
    let count = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())? / size_of::<i32>();
    let mut numbers = vec![0_i32; count + MARGIN];
    let size = c_int::try_from(size_of_val(&numbers[..])).map_err(io::Error::other)?;
    // SAFETY: the buffer has this size and lives longer than the call, which writes numbers of this type.
    let bytes = unsafe { libc::proc_listpids(selector, id, numbers.as_mut_ptr().cast(), size) };
    let count = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())? / size_of::<i32>();
    numbers.truncate(count);
    numbers.retain(|&pid| pid > 0);
    Ok(numbers)
}

/// Returns nothing: children are found by a scan here.
pub(crate) fn children() -> Vec<i32> {
    Vec::new()
}

/// Returns nothing: the system does not report which thread started a child.
pub(crate) fn children_of_thread(_thread: i32) -> Vec<i32> {
    Vec::new()
}

/// Returns the process with this pid, if this user can see it.
#[expect(unsafe_code, reason = "no safe call describes a process")]
pub(crate) fn stat_of(pid: i32) -> Option<Stat> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = c_int::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the buffer is one of this structure, has its size, and lives longer than the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, DEAD_TOO, info.as_mut_ptr().cast::<c_void>(), size) };
    if filled != size {
        return None;
    }
    // SAFETY: it is filled, and before it was all zeros, which are numbers too.
    let info = unsafe { info.assume_init() };
    let name = if info.pbi_name[0] == 0 { text(&info.pbi_comm) } else { text(&info.pbi_name) };
    let state = match info.pbi_status {
        libc::SZOMB => State::Dead,
        libc::SSTOP => State::Stopped,
        _ => State::Alive,
    };
    let parent = i32::try_from(info.pbi_ppid).ok()?;
    Some(Stat { pid, name, state, parent, start: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec })
}

fn text(bytes: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().take_while(|&&byte| byte != 0).map(|byte| byte.cast_unsigned()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks that processes can be listed, which is always the case here.
#[expect(clippy::unnecessary_wraps, reason = "another system may not show them")]
pub(crate) fn can_see_processes() -> io::Result<()> {
    Ok(())
}

/// Does nothing: no descriptor is needed to list processes.
pub(crate) fn hold_proc() {}

/// Returns `None`: no descriptor is needed to list processes.
pub(crate) fn held_proc() -> Option<OwnedFd> {
    None
}

/// Does nothing: no descriptor is needed to list processes.
#[expect(clippy::unnecessary_wraps, reason = "another system may refuse")]
pub(crate) fn adopt_proc(_descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}

/// Returns `None`: the program's file has an ordinary path.
pub(crate) fn in_held_proc(_program: &Path) -> Option<&'static str> {
    None
}

/// Returns whether a process is an unreaped child of this one.
pub(crate) fn is_own_child(pid: i32) -> bool {
    stat_of(pid).is_some_and(|stat| stat.parent == std::process::id().cast_signed())
}

/// Returns nothing: children are listed like all processes.
pub(crate) fn own_children() -> Vec<Stat> {
    Vec::new()
}

/// Returns the resident memory of a process in bytes; 0 if it is gone or belongs to another user.
#[expect(unsafe_code, reason = "no safe call reads the memory of another process")]
pub(crate) fn resident(pid: i32) -> u64 {
    let mut info = MaybeUninit::<libc::proc_taskinfo>::zeroed();
    let Ok(size) = c_int::try_from(size_of_val(&info)) else {
        return 0;
    };
    // SAFETY: the buffer is one of this structure, has its size, and lives longer than the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, info.as_mut_ptr().cast::<c_void>(), size) };
    if filled != size {
        return 0;
    }
    // SAFETY: it is filled, and before it was all zeros, which are numbers too.
    unsafe { info.assume_init() }.pti_resident_size
}

/// Returns the environment of a process; empty if it cannot be read, as for programs of the system.
#[expect(unsafe_code, reason = "no safe call reads an environment")]
pub(crate) fn environ(pid: i32) -> Vec<u8> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut bytes = vec![0_u8; ARGUMENTS_BYTES];
    let mut size = bytes.len();
    // SAFETY: the name has three parts, `size` is the size of the buffer, both live longer than the call, and nothing is
    // set.
    let asked = unsafe { libc::sysctl(name.as_mut_ptr(), 3, bytes.as_mut_ptr().cast(), &raw mut size, null_mut(), 0) };
    if asked != 0 {
        return Vec::new();
    }
    bytes.truncate(size);
    procargs::environment(&bytes).to_vec()
}
