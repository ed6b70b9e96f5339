//! The state in which a program is started: its signals and its standard streams.
//!
//! A program inherits blocked and ignored signals, and possibly closed standard streams, from whoever starts it. The helpers of
//! this crate reset their signals before anything else. A library must not do that to its host; a command may, see
//! [`prepare_command`].

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
    /// Whether this stream was closed when this program was started (`>&-` in a shell).
    ///
    /// The Rust runtime opens `/dev/null` in its place before `main`, so that nothing fails later. What is written there is
    /// lost: a program whose output matters should refuse to start.
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

/// Notes which standard streams are closed. Called before `main`, when nothing stands in for them yet.
#[expect(unsafe_code, reason = "no safe call asks about a descriptor that may be closed")]
pub(crate) fn note_closed_streams() {
    for (stream, descriptor) in [(StandardStream::Input, 0), (StandardStream::Output, 1), (StandardStream::Error, 2)] {
        // SAFETY: asking for the flags of a descriptor changes nothing, also if it is closed.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(stream.bit(), Ordering::Relaxed);
        }
    }
}

/// Prepares a program that owns its process, such as a command: call it first in `main`, before any other thread is started.
///
/// No signal is blocked any more, children that end can be waited for although `SIGCHLD` was ignored, and a write beyond the
/// limit on the size of files is an error instead of `SIGXFSZ`. A library must not call it: all of this concerns the whole
/// process. What the program starts through this crate gets default actions and no blocked signal in any case.
#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
pub fn prepare_command() {
    // SAFETY: no handler is installed; the actions are the default and to ignore.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    unblock_all_signals();
}

/// Gives every signal its default action and blocks none: what an inherited state would do to this process.
#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
pub(crate) fn reset_signals() {
    // The highest number of a signal on Linux; other systems have fewer, and refuse what they do not have.
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of this program. The system refuses it for signals that do not exist, for
        // SIGKILL and for SIGSTOP.
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
