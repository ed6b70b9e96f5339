//! Fallbacks in this program for a keeper or supervisor that is stopped or killed.
//!
//! Any process of this user can stop (`SIGSTOP`) or kill them. A stopped one is continued. After
//! the death of a keeper, the supervisor kills its tree. Without a supervisor, this program
//! searches for the tree: the leader, its descendants, the processes in the keeper's session, and
//! those with the tree's environment marker.

use std::time::Instant;

use rustix::process::getpid;
use tokio::sync::oneshot;

use crate::survivor::Survivor;
use crate::{
    handle,
    ledger::search::{self, Target},
    process::{self, Process},
    signal::Signal,
    supervise::termination::KILL_SETTLE,
    sys,
};

/// The data by which a tree is found without its keeper.
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
        // If the supervisor is gone, the keeper's parent is not a child of this program.
        let is_ours = |parent: i32| parent == getpid().as_raw_nonzero().get();
        if let Some(parent) = sys::stat_of(keeper.parent)
            && is_ours(parent.parent)
            && parent.is_stopped()
        {
            tracing::debug!(pid = parent.pid, "the supervisor is stopped; it is continued");
            handle::send(&parent, Signal::Continue);
        }
    }

    /// Returns the members of the tree that a search finds. Blocks for some milliseconds.
    pub(super) fn find(&self) -> Vec<Survivor> {
        search::find(&self.target()).unwrap_or_default()
    }

    /// Kills the keeper and the members of the tree that a search finds. Returns the members that
    /// are alive after [`KILL_SETTLE`]. Blocks until then.
    pub(super) fn kill(&self) -> Vec<Survivor> {
        match search::kill(&self.target(), Instant::now() + KILL_SETTLE) {
            Ok(outcome) => outcome.alive,
            Err(reason) => {
                tracing::warn!(leader = self.leader.pid, %reason, "cannot search for the processes of a tree");
                // Other members are unknown. The leader is reported, since its exit was not
                // observed.
                vec![Survivor { pid: self.leader.pid.unsigned_abs(), name: String::new() }]
            }
        }
    }

    /// Like [`kill`](Self::kill), without blocking the runtime.
    pub(super) async fn kill_on_thread(&self) -> Vec<Survivor> {
        let (sender, receiver) = oneshot::channel();
        let identity = self.clone();
        let work = move || _ = sender.send(identity.kill());
        match std::thread::Builder::new().name("teamster-end".into()).spawn(work) {
            Ok(_) => receiver.await.unwrap_or_else(|_| self.kill()),
            // No thread could be started.
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
