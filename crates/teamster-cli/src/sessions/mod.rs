//! `teamster sessions`: lists the sessions that the agents' CLIs store.
//!
//! - [`command`]: the command; [`table`]: a list of sessions as text; [`exchange`]: the last prompt of a session and its answer.
//! - [`resume`]: the session that `--resume` and `--continue` mean; [`picker`]: a list in which a person chooses one.
//!
//! Invariant: the stores are only read.

mod command;
mod directory;
mod exchange;
mod picker;
mod resume;
mod table;

pub(crate) use command::{Commands, SessionsArgs, main, notes};
pub(crate) use directory::check_directory;
pub(crate) use exchange::ResumedSession;
pub(crate) use picker::choose;
pub(crate) use resume::{ResumeError, Stores, resolve};
pub(crate) use table::Table;
