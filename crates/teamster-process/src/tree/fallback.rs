//! What this program does itself when a tree's keeper and supervisor cannot do their work.
//!
//! Both can be stopped (`SIGSTOP`) or killed like any process of this user. A stopped one is continued. What a killed
//! keeper leaves is ended by the supervisor; without a supervisor, this program searches for the tree: the leader, every
//! process that descends from it, that is still in the keeper's session, or that has the tree's marker in its environment.

use std::time::Instant;

use rustix::process::getpid;
use tokio::sync::oneshot;

use super::Survivor;
use crate::{
    handle,
    ledger::search::{self, Target},
    process::{self, Process},
    signal::Signal,
    supervise::termination::KILL_SETTLE,
    sys,
};

/// How a tree is found without the help of its keeper.
#[derive(Clone, Debug)]
pub(super) struct TreeIdentity {
    pub(super) keeper: Process,
    pub(super) leader: Process,
    pub(super) marker: String,
}

impl TreeIdentity {
    /// Continues the keeper and the supervisor if they are stopped.
    pub(super) fn continue_helpers(&self) {
        let Some(keeper) = sys::stat_of(self.keeper.pid).filter(|stat| stat.start == self.keeper.start) else { return };
        if keeper.is_stopped() {
            tracing::debug!(pid = keeper.pid, "the keeper of a tree is stopped; it is continued");
            handle::send(&keeper, Signal::Continue);
        }
        // A keeper whose supervisor is gone has another parent, which is no child of this program.
        let is_ours = |parent: i32| parent == getpid().as_raw_nonzero().get();
        if let Some(parent) = sys::stat_of(keeper.parent)
            && is_ours(parent.parent)
            && parent.is_stopped()
        {
            tracing::debug!(pid = parent.pid, "the supervisor is stopped; it is continued");
            handle::send(&parent, Signal::Continue);
        }
    }

    /// The members of the tree that can be found. Blocks for some milliseconds.
    pub(super) fn find(&self) -> Vec<Survivor> {
        search::find(&self.target()).unwrap_or_default()
    }

    /// Kills the members of the tree that can be found, and its keeper. Returns those that are alive after
    /// [`KILL_SETTLE`]. Blocks until then.
    pub(super) fn kill(&self) -> Vec<Survivor> {
        match search::kill(&self.target(), Instant::now() + KILL_SETTLE) {
            Ok(outcome) => outcome.alive,
            Err(reason) => {
                tracing::warn!(leader = self.leader.pid, %reason, "the processes of a tree cannot be searched for");
                // Nothing is known of the others, and of this one only that its end was not seen.
                vec![Survivor { pid: self.leader.pid.unsigned_abs(), name: String::new() }]
            }
        }
    }

    /// The same without blocking the runtime.
    pub(super) async fn kill_on_thread(&self) -> Vec<Survivor> {
        let (sender, receiver) = oneshot::channel();
        let identity = self.clone();
        let work = move || _ = sender.send(identity.kill());
        match std::thread::Builder::new().name("teamster-end".into()).spawn(work) {
            Ok(_) => receiver.await.unwrap_or_else(|_| self.kill()),
            // The limit of threads is reached.
            Err(_) => self.kill(),
        }
    }

    fn target(&self) -> Target<'_> {
        let own = getpid().as_raw_nonzero().get();
        Target {
            marker: &self.marker,
            leader: Some(self.leader),
            keeper: Some(self.keeper),
            not_before: process::start_of(own).unwrap_or_default(),
        }
    }
}
