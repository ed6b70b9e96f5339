//! The processes that supervise process trees, so that no tree outlives its run or this program.
//!
//! ```text
//! this program ── supervisor ─┬─ keeper ── the CLI ── its tools, their daemons, ...
//!                             ├─ keeper ── another CLI ── ...
//! ```
//!
//! A process can leave its group and its session, clear its environment and outlive its parent. One
//! link remains: the kernel makes an orphan the child of its nearest ancestor that is a
//! *subreaper*. So each tree has its own *keeper*, the subreaper process above its leader, and the
//! tree is exactly the keeper's descendants. The keeper starts the leader, reports its exit, sends
//! signals, and terminates the tree on request. It also terminates the tree when its connection to
//! this program breaks: this program was killed, crashed, or dropped the tree. It knows that the
//! tree is gone when the kernel reports that the keeper has no children.
//!
//! A library must not make its host a subreaper, and must not fork it. So the *supervisor* is this
//! program's file, executed again. A function that runs before its `main` detects this by an
//! environment variable (see `entry`). The supervisor has one thread and little memory, and forks a
//! keeper for each request; the size of this program does not matter. It is a subreaper too: if a
//! keeper is killed, its tree falls to the supervisor, which kills it.
//!
//! If all of them are killed at once, only the run ledger remains. The sweep at the next start uses
//! it.
//!
//! On macOS every orphan becomes a child of process 1. There a keeper finds its tree by descent, by
//! its own session (which members leave only by opening another one), and by the tree's environment
//! marker, as far as the system shows it.

mod entry;
mod events;
mod host;
mod keeper;
mod starting;
mod supervisor;
pub(crate) mod termination;
pub(crate) mod wire;

pub use host::{Supervisor, SupervisorError};
pub(crate) use supervisor::NAME as SUPERVISOR_NAME;
