//! The operating-system side of Teamster: process trees, their pipes, and the files that a run needs.
//!
//! This crate starts a program as the leader of a process tree, hands out its pipes, tells when the leader ends, and
//! makes sure that nothing of the tree stays behind. It knows no agent, no protocol and no event: whoever calls it
//! decides what the bytes mean.
//!
//! ```
//! use std::{ffi::OsString, path::Path, time::Duration};
//! use teamster_process::{Frame, Output, OutputReader, ProcessTree, Spawn, Stdin, Supervisor, find_program};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = find_program("sh".as_ref(), Some("/usr/bin:/bin".as_ref()), Path::new("/"))?;
//! let spawn = Spawn {
//!     program,
//!     args: vec![OsString::from("-c"), OsString::from("echo hello; exit 3")],
//!     env: std::env::vars_os().collect(),
//!     cwd: "/".into(),
//!     stdin: Stdin::Null,
//!     output: Output::Stdout,
//! };
//! let supervisor = Supervisor::new();
//! let (tree, pipes) = ProcessTree::spawn(&supervisor, &spawn, None).await?;
//!
//! let mut stdout = OutputReader::new(pipes.stdout, 1024 * 1024);
//! while stdout.fill().await? > 0 {
//!     while let Some(frame) = stdout.next() {
//!         assert_eq!(frame, Frame::Line(b"hello"));
//!     }
//! }
//!
//! assert_eq!(tree.exited().await.code, Some(3));
//! tree.terminate(Duration::from_millis(1500)).await; // whoever outlived the leader
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`program`] | finds an executable by name |
//! | [`spawn`] | what to start, as plain data, and why a start failed |
//! | [`tree`] | [`ProcessTree`]: the running tree, its signals, its end |
//! | [`supervise`] | [`Supervisor`]: the processes of ours that see to it |
//! | [`signal`] | the signals that are sent, and how a process ended |
//! | [`lines`] | splits output into lines of bounded length |
//! | [`diagnostics`] | reads what a program says beside its output, and keeps the end of it |
//! | [`stdin`] | writes input while output is read |
//! | [`tail`] | the last bytes of a stream |
//! | [`private`] | files that only this user can read, gone after the run |
//! | [`ledger`] | live runs on disk, so that what a crash left of them can be ended and removed |
//! | [`spill`] | a bounded queue on disk, for what waits for a slow consumer |
//! | [`abilities`] | what cannot be guaranteed where the system refuses something |
//! | [`limits`] | which limit of the user is behind an error |
//! | [`startup`] | inherited signals and closed standard streams |
//!
//! # Invariants
//!
//! - A [`ProcessTree`] never ends with members alive: [`ProcessTree::terminate`] and dropping it end whoever descends from
//!   its leader, whatever they did to hide, and so does the death of this program, within two seconds.
//! - No signal is ever sent to a process that does not descend from the leader, nor to one that got the number of a dead
//!   member.
//! - No prompt and no secret is shown by `Debug` or logged: of arguments, variables and buffers only names and sizes.
//! - Output is never decoded here, and a buffer never grows past its limit, whatever a program writes.
//! - Every `async fn` can be dropped at any await point; nothing is written twice, lost, or read twice.
//! - No environment variable is read, except by [`PrivateDir::default_parent`] and [`Ledger::of_user`], and for the
//!   supervisor; no timer runs but while a tree is being started or ended, and while the end of a leader is waited for (every
//!   5 s, to see whether the processes of ours are stopped).
//! - Nothing is printed, and no signal handler is installed in this program.
//! - No write of this crate ends this program by `SIGPIPE` or `SIGXFSZ`, whatever it does about these signals.
//!
//! Linking it adds a few instructions before `main`, by which the supervisor, which is this program's file executed anew,
//! knows what it is: see [`supervise`]. It needs Linux 5.4 or later (pidfds), or macOS, where the first two invariants hold
//! as far as the system lets them (`docs/security.md` in the repository), and a Tokio runtime with I/O and time enabled.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "Teamster runs on Linux and macOS: it watches over process trees by signals, sessions and Unix sockets. On Windows, use \
     it inside WSL."
);

pub mod limitations;
pub mod diagnostics;
pub mod ledger;
pub mod limits;
pub mod lines;
pub mod private;
pub mod program;
pub mod signal;
pub mod spawn;
pub mod spill;
pub mod startup;
pub mod stdin;
pub mod supervise;
pub mod tail;
pub mod tree;

mod handle;
mod descendants;
mod env_marker;
mod pipes;
mod process;
mod sys;
mod write_signals;

pub use limitations::{Limitation, limitations};
pub use diagnostics::TailReader;
pub use ledger::{LEDGER_VARIABLE, Ledger, LedgerError, RunDir};
pub use limits::{Limit, can_start_threads};
pub use lines::{Frame, LineFramer, OutputReader};
pub use env_marker::ENV_MARKER_PREFIX;
pub use private::{PrivateDir, PrivateError};
pub use program::{FindError, find_program};
pub use signal::{Exit, Signal};
pub use spawn::{Output, Pipes, Spawn, SpawnError, Stdin};
pub use spill::{Spill, SpillError};
pub use startup::{StandardStream, prepare_command};
pub use stdin::{StdinClosed, StdinWriter};
pub use supervise::{Supervisor, SupervisorError};
pub use tail::Tail;
pub use tree::{ProcessTree, Survivor};
pub use write_signals::without_write_signals;
