//! Process trees, their pipes, and the private files of a run.
//!
//! This crate starts a program as the leader of a process tree and returns its pipes. It reports
//! when the leader exits, and kills every remaining process of the tree. It knows no agent, no
//! protocol and no event: its caller interprets the bytes.
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
//! tree.terminate(Duration::from_millis(1500)).await; // kills the remaining processes
//! # Ok(())
//! # }
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`program`] | finds an executable by name |
//! | [`spawn`] | what to start, as plain data, and why a start failed |
//! | [`tree`] | [`ProcessTree`]: the running tree, its signals and its termination |
//! | [`supervise`] | [`Supervisor`] and the helper processes that supervise trees |
//! | [`signal`] | the signals that can be sent, and the exit status of a leader |
//! | [`lines`] | splits output into lines of bounded length |
//! | [`diagnostics`] | reads a program's diagnostics line by line and keeps the last bytes |
//! | [`stdin`] | writes input while output is read |
//! | [`tail`] | keeps the last bytes of a stream |
//! | [`private`] | files that only this user can read, removed after the run |
//! | [`lease`] | [`HostLease`]: a deadline that this program moves forward, or its trees are killed |
//! | [`ledger`] | a record of live runs on disk, from which a crashed run is cleaned up |
//! | [`spill`] | a bounded queue on disk, for records that wait for a slow consumer |
//! | [`limitations`](mod@limitations) | guarantees that do not hold where the system refuses a call |
//! | [`limits`] | the user's limit that caused an error |
//! | [`startup`] | inherited signals and closed standard streams |
//!
//! # Invariants
//!
//! - [`ProcessTree::terminate`] and dropping a [`ProcessTree`] kill all descendants of the
//!   leader, including those that left its session or lost their parent. If this program dies, the
//!   tree is killed within two seconds.
//! - A signal is sent only to descendants of the leader. A process that got the pid of a dead
//!   member never receives one.
//! - `Debug` output and logs contain no prompt and no secret: of arguments, variables and buffers
//!   they show names and sizes only.
//! - Output is not decoded here, and no buffer grows past its limit.
//! - Every `async fn` can be dropped at any await point. Nothing is then written twice, lost, or
//!   read twice.
//! - Environment variables are read only by [`PrivateDir::default_parent`], by
//!   [`Ledger::of_user`] and to start the supervisor.
//! - Timers run only while a tree is started or terminated, and every 5 s while an exit is
//!   awaited (to check that the helper processes are not stopped). The keeper of a tree under a
//!   lease wakes every 5 s and at the deadline.
//! - Nothing is printed, and no signal handler is installed in this program.
//! - No write by this crate raises `SIGPIPE` or `SIGXFSZ` in this program.
//!
//! Linking this crate adds a short function that runs before `main`. The supervisor is this
//! program's file, executed again, and that function detects it: see [`supervise`]. The crate needs
//! Linux 5.4 or later (pidfds), or macOS, and a Tokio runtime with I/O and time enabled. On macOS
//! the first two invariants hold as far as the system allows (`docs/security.md` in the
//! repository).

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "Teamster runs on Linux and macOS: it supervises process trees with signals, sessions and Unix sockets. On Windows, use \
     it inside WSL."
);

pub mod diagnostics;
pub mod lease;
pub mod ledger;
pub mod limitations;
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

mod descendants;
mod env_marker;
mod handle;
mod pipes;
mod process;
mod stat;
mod survivor;
mod sys;
mod write_signals;

pub use descendants::kill_with_descendants;
pub use diagnostics::TailReader;
pub use env_marker::ENV_MARKER_PREFIX;
pub use lease::{HostLease, LeaseTime};
pub use ledger::{LEDGER_VARIABLE, Ledger, LedgerError, RunDir};
pub use limitations::{Limitation, limitations};
pub use limits::{Limit, can_start_threads};
pub use lines::{Frame, LineFramer, OutputReader};
pub use private::{PrivateDir, PrivateError};
pub use program::{FindError, find_program};
pub use signal::{Exit, Signal};
pub use spawn::{Output, Pipes, Spawn, SpawnError, Stdin};
pub use spill::{Spill, SpillError};
pub use startup::{StandardStream, prepare_command};
pub use stdin::{StdinClosed, StdinWriter};
pub use supervise::{Supervisor, SupervisorError};
pub use survivor::Survivor;
pub use tail::Tail;
pub use tree::{Keeper, ProcessTree};
pub use write_signals::without_write_signals;
