//! The signals that can be sent to a tree, and the exit status of its leader.

use std::{borrow::Cow, fmt, mem::MaybeUninit, ptr::null};

use crate::sys;

/// A signal for a process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGHUP`.
    Hangup,
    /// `SIGINT`: what a user's Ctrl-C sends.
    Interrupt,
    /// `SIGQUIT`.
    Quit,
    /// `SIGTERM`: requests termination.
    Terminate,
    /// `SIGKILL`: kills; it cannot be caught.
    Kill,
    /// `SIGSTOP`: stops a process until `SIGCONT`.
    Stop,
    /// `SIGCONT`: continues a stopped process.
    Continue,
}

impl Signal {
    /// Returns whether this program ignores the signal. It inherits that from its parent: `nohup`,
    /// or a shell with background jobs.
    #[expect(unsafe_code, reason = "no safe call asks what is done about a signal")]
    pub fn is_ignored(self) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: without a new action nothing changes; the present action is written to a place
        // that outlives the call.
        let asked = unsafe { libc::sigaction(self.raw().as_raw(), null(), action.as_mut_ptr()) };
        // SAFETY: it is filled, and before it was all zeros, which are an action too.
        asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
    }

    pub(crate) fn raw(self) -> rustix::process::Signal {
        use rustix::process::Signal as Raw;
        match self {
            Self::Hangup => Raw::HUP,
            Self::Interrupt => Raw::INT,
            Self::Quit => Raw::QUIT,
            Self::Terminate => Raw::TERM,
            Self::Kill => Raw::KILL,
            Self::Stop => Raw::STOP,
            Self::Continue => Raw::CONT,
        }
    }
}

/// The exit status of a tree's leader.
///
/// Both fields are `None` if the status is unknown: other code in the host reaped the process, or
/// the host ignores `SIGCHLD`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if the process exited.
    pub code: Option<i32>,
    /// The signal that killed the process.
    pub signal: Option<i32>,
}

impl Exit {
    /// Returns whether the process exited with code 0.
    pub fn success(self) -> bool {
        self.code == Some(0)
    }

    /// Returns the name of the signal that killed the process, such as `SIGKILL`.
    pub fn signal_name(self) -> Option<Cow<'static, str>> {
        self.signal.map(name_of)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "was ended by {}", name_of(signal)),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

fn name_of(signal: i32) -> Cow<'static, str> {
    use rustix::process::Signal as Raw;
    const NAMES: [(Raw, &str); 29] = [
        (Raw::HUP, "SIGHUP"),
        (Raw::INT, "SIGINT"),
        (Raw::QUIT, "SIGQUIT"),
        (Raw::ILL, "SIGILL"),
        (Raw::TRAP, "SIGTRAP"),
        (Raw::ABORT, "SIGABRT"),
        (Raw::BUS, "SIGBUS"),
        (Raw::FPE, "SIGFPE"),
        (Raw::KILL, "SIGKILL"),
        (Raw::USR1, "SIGUSR1"),
        (Raw::SEGV, "SIGSEGV"),
        (Raw::USR2, "SIGUSR2"),
        (Raw::PIPE, "SIGPIPE"),
        (Raw::ALARM, "SIGALRM"),
        (Raw::TERM, "SIGTERM"),
        (Raw::CHILD, "SIGCHLD"),
        (Raw::CONT, "SIGCONT"),
        (Raw::STOP, "SIGSTOP"),
        (Raw::TSTP, "SIGTSTP"),
        (Raw::TTIN, "SIGTTIN"),
        (Raw::TTOU, "SIGTTOU"),
        (Raw::URG, "SIGURG"),
        (Raw::XCPU, "SIGXCPU"),
        (Raw::XFSZ, "SIGXFSZ"),
        (Raw::VTALARM, "SIGVTALRM"),
        (Raw::PROF, "SIGPROF"),
        (Raw::WINCH, "SIGWINCH"),
        (Raw::IO, "SIGIO"),
        (Raw::SYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .chain(&sys::SIGNALS)
        .find(|(known, _)| known.as_raw() == signal)
        .map_or_else(|| Cow::Owned(format!("signal {signal}")), |(_, name)| Cow::Borrowed(*name))
}

#[cfg(test)]
#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_while_its_handler_is_the_one_that_ignores() {
        assert!(!Signal::Continue.is_ignored());
        // SAFETY: no handler is called, and no other code sends this signal here.
        let before = unsafe { libc::signal(libc::SIGCONT, libc::SIG_IGN) };
        assert!(Signal::Continue.is_ignored() && !Signal::Quit.is_ignored());
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGCONT, before) };
        assert!(!Signal::Continue.is_ignored());
    }

    #[test]
    fn an_exit_status_is_displayed_as_text() {
        let code = Exit { code: Some(3), signal: None };
        let killed = Exit { code: None, signal: Some(9) };
        let real_time = Exit { code: None, signal: Some(40) };
        assert_eq!(code.to_string(), "exited with code 3");
        assert_eq!(killed.to_string(), "was ended by SIGKILL");
        assert_eq!(real_time.to_string(), "was ended by signal 40");
        assert_eq!(Exit::default().to_string(), "ended in an unknown way");
    }
}
