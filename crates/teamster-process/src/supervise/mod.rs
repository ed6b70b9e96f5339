//! Who looks after a process tree, so that nothing of it outlives its run or this program.
//!
//! ```text
//! this program ── supervisor ─┬─ keeper ── the CLI ── its tools, their daemons, ...
//!                             ├─ keeper ── another CLI ── ...
//! ```
//!
//! A process that leaves its group and its session, throws its environment away and outlives its parent has nothing
//! left that tells where it came from, but one thing: the kernel gives an orphan to the nearest ancestor that asked for
//! orphans (a *subreaper*). So each tree has a *keeper* of its own above its leader, and whoever descends from the
//! keeper is of the tree, exactly. The keeper starts the leader, tells how it ended, signals and ends the tree when it is
//! asked to, and ends it unasked when its connection to this program breaks: when the program is killed, crashes, or
//! drops the tree. It knows that nobody is left when the kernel says that it has no children.
//!
//! A library cannot make somebody else's program a subreaper, and must not fork it. So the *supervisor* is this
//! program's file, executed anew; before its `main` it sees in its environment what it is to be (see `entry`). It has
//! one thread and little memory, and forks a keeper whenever it is asked to: cheap, however large this program is. It is a
//! subreaper too: if a keeper is killed, what it kept falls to the supervisor, and is ended.
//!
//! If all of them are killed at once, only the run ledger is left; the next start sweeps.
//!
//! macOS gives orphans to nobody but process 1. There a keeper knows its tree by kinship, by its own session, which all
//! of the tree are in but those that opened another, and by the run's mark, as far as the system shows it.

pub(crate) mod termination;
mod entry;
mod events;
mod host;
mod keeper;
mod starting;
mod supervisor;
pub(crate) mod wire;

pub(crate) use entry::run_if_supervisor;
pub use host::{Supervisor, SupervisorError};
pub(crate) use supervisor::NAME as SUPERVISOR_NAME;
