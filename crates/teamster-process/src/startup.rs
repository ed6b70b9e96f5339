//! The inherited state of a program: its signals and its standard streams.
//!
//! A program inherits blocked and ignored signals, and possibly closed standard streams, from its
//! parent. The helper processes of this crate reset their signals first. A library must not do that
//! to its host; a command may, see [`prepare_command`].

use std::{
    ptr::null_mut,
    sync::atomic::{AtomicU8, Ordering},
};

/// One bit for each standard stream that was closed when this program was started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardStream {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

impl StandardStream {
    /// Returns whether this stream was closed when this program was started (`>&-` in a shell).
    ///
    /// The Rust runtime opens `/dev/null` in its place before `main`, so writes succeed but the
    /// output is lost. A program whose output matters should refuse to start.
    pub fn was_closed(self) -> bool {
        CLOSED.load(Ordering::Relaxed) & self.bit() != 0
    }

    fn bit(self) -> u8 {
        match self {
            Self::Input => 1,
            Self::Output => 1 << 1,
            Self::Error => 1 << 2,
        }
    }
}

/// Records which standard streams are closed. Called before `main`, before the runtime replaces
/// them.
#[expect(unsafe_code, reason = "no safe call asks about a descriptor that may be closed")]
pub(crate) fn note_closed_streams() {
    for (stream, descriptor) in [(StandardStream::Input, 0), (StandardStream::Output, 1), (StandardStream::Error, 2)] {
        // SAFETY: reading the flags of a descriptor changes nothing, also if it is closed.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(stream.bit(), Ordering::Relaxed);
        }
    }
}

/// Resets the signals of a program that owns its process, such as a command. Call it first in
/// `main`, before another thread is started.
///
/// It unblocks all signals, makes children waitable even if `SIGCHLD` was ignored, and makes a
/// write beyond the file size limit an error instead of `SIGXFSZ`. A library must not call it,
/// since this affects the whole process. Programs started through this crate always get default
/// actions and no blocked signals.
#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
pub fn prepare_command() {
    // SAFETY: no handler is installed; the actions are the default and to ignore.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    unblock_all_signals();
}

/// Resets every signal to its default action and unblocks all, whatever state was inherited.
#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
pub(crate) fn reset_signals() {
    // The highest signal number on Linux; other systems reject numbers that they do not have.
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of this program. The system rejects the call for
        // unknown signals, SIGKILL and SIGSTOP.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_all_signals();
}

#[expect(unsafe_code, reason = "no safe call changes the signal mask of a thread")]
fn unblock_all_signals() {
    let mut none = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set, which lives longer than the call.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), null_mut());
    }
}
