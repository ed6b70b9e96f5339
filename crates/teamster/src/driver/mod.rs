//! The driver: starts agent processes and drives runs and sessions, in the same way for every agent.
//!
//! - [`run`] drives a run, with its [attempts]. [`session`] drives a session turn by turn.
//! - [`process`] owns an agent process: its tree, its streams, its protocol and its files.
//! - [`turn`] drives a process until the turn or the process ends. It enforces the limits.
//! - [`session_queue`] holds what the caller of a session has ordered, and the agent's open requests.
//! - [`event_sink`] passes every event to the caller.
//!
//! Invariant: a run or turn ends with exactly one `done`, the last event, and no process of it is left.
//!
//! At the end of a process, in this order: the leader exits; its remaining output is read; the remaining processes of the
//! tree are killed; the leader is reaped; the protocol receives the exit; the transcript closes the stream. A run that is
//! retried does this once for each attempt, and closes its stream after the last one.

pub(crate) mod alarm;
mod answers;
pub(crate) mod attempts;
pub(crate) mod budget;
mod ended;
mod event_sink;
mod failures;
pub(crate) mod host;
mod limit_end;
mod log;
mod process;
mod process_order;
mod retry;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod session_queue;
mod starting;
mod turn;
pub(crate) mod warm_pool;
