//! Makes failing writes return an error instead of raising a signal.
//!
//! A write beyond the file size limit (`ulimit -f`) raises `SIGXFSZ`, and a write to a pipe without
//! a reader raises `SIGPIPE`. With the default action, both kill the program. The action belongs to
//! the whole program, so a library must not change it. Instead, this module blocks both signals in
//! the writing thread and removes a signal that the write raised.

use std::{mem::MaybeUninit, ptr::null_mut};

const SIGNALS: [libc::c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// Runs `work` in this thread; a failing write in it returns an error (`EFBIG`, `EPIPE`) and raises
/// no signal.
///
/// The thread's signal mask is restored afterwards, also if `work` panics. Signals that were
/// pending before stay pending.
pub fn without_write_signals<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::new();
    work()
}

/// Blocks both signals in this thread until it is dropped.
struct Blocked {
    before: libc::sigset_t,
    pending_before: libc::sigset_t,
}

#[expect(unsafe_code, reason = "no safe call changes the signal mask of a thread")]
impl Blocked {
    fn new() -> Self {
        let mut signals = empty_set();
        let mut before = empty_set();
        // SAFETY: the sets are initialized and live longer than the calls. Blocking a signal in this thread breaks no
        // invariant of other code; the mask is restored by `drop`.
        unsafe {
            for signal in SIGNALS {
                libc::sigaddset(&raw mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, &raw mut before);
        }
        Self { before, pending_before: pending() }
    }
}

#[expect(unsafe_code, reason = "no safe call takes a pending signal")]
impl Drop for Blocked {
    fn drop(&mut self) {
        for signal in SIGNALS {
            let pending = pending();
            // SAFETY: the sets are initialized and live longer than the calls. The signal is blocked in this thread.
            unsafe {
                let is_ours = libc::sigismember(&raw const pending, signal) == 1
                    && libc::sigismember(&raw const self.pending_before, signal) != 1;
                if is_ours {
                    let mut one = empty_set();
                    libc::sigaddset(&raw mut one, signal);
                    take(&one);
                }
            }
        }
        // SAFETY: the mask is the one that this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut()) };
    }
}

/// Removes one of these pending signals without waiting: a signal that is pending for the whole program may have been
/// delivered to another thread meanwhile.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe call takes a pending signal")]
fn take(signals: &libc::sigset_t) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are initialized, and the call accepts a null pointer for the signal's details.
    unsafe { libc::sigtimedwait(signals, null_mut(), &raw const now) };
}

/// Removes one of these pending signals. macOS has no call that does so without waiting.
#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "no safe call takes a pending signal")]
fn take(signals: &libc::sigset_t) {
    // SAFETY: the set is initialized, and the signal is written to a temporary.
    unsafe { libc::sigwait(signals, &mut 0) };
}

#[expect(unsafe_code, reason = "the C library fills the set")]
fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the whole set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

#[expect(unsafe_code, reason = "the C library fills the set")]
fn pending() -> libc::sigset_t {
    let mut set = empty_set();
    // SAFETY: the set lives longer than the call.
    unsafe { libc::sigpending(&raw mut set) };
    set
}
