//! The live runs and sessions of a runtime, and whether it accepts further ones.
//!
//! Invariant: a run or session that is added before the shutdown is stopped by it, and none is added after its start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use teamster_types::event::LeftProcess;

use crate::events::stamped::RunIdentity;
use crate::turns::list::Turns;
use crate::turns::stop::StopTokens;

/// The runtime is being shut down, or has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShutDown;

/// What a shutdown of a runtime has stopped and what is left ([`Runtime::shutdown`](crate::Runtime::shutdown)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of runs and turns, running or waiting, that were interrupted.
    pub interrupted_turns: usize,
    /// The number of sessions that were closed, idle or not.
    pub closed_sessions: usize,
    /// The runs and sessions that did not end within the grace period. Their process trees were killed.
    pub aborted: Vec<UnfinishedRun>,
    /// The runs and sessions that have not ended after that either. The end of this process kills their process trees.
    pub unfinished: Vec<UnfinishedRun>,
    /// Processes that are still alive: kept on request, or impossible to kill.
    pub left_processes: Vec<LeftProcess>,
}

/// A run or session that did not end in time ([`ShutdownReport`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnfinishedRun {
    /// The agent's name.
    pub agent: String,
    /// The id of the run or session, which its events have.
    pub run_id: String,
    /// The caller's labels.
    pub labels: BTreeMap<String, String>,
}

/// The live runs and sessions of a runtime. Clones share the list.
#[derive(Clone, Default)]
pub(crate) struct LiveRuns(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stop: StopTokens,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    is_closed: bool,
    added: u64,
    entries: BTreeMap<u64, Entry>,
    left: Vec<LeftProcess>,
}

struct Entry {
    run: UnfinishedRun,
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
    /// The turns of a session. `None` for a run.
    turns: Option<Turns>,
}

/// A live run or session. Dropping it removes it from the list.
pub(crate) struct LiveRun {
    runs: LiveRuns,
    id: u64,
}

impl LiveRuns {
    /// Returns the tokens that stop all runs and sessions.
    pub(crate) fn stop_tokens(&self) -> &StopTokens {
        &self.0.stop
    }

    /// Checks that the runtime accepts runs.
    pub(crate) fn check(&self) -> Result<(), ShutDown> {
        if self.list().is_closed { Err(ShutDown) } else { Ok(()) }
    }

    /// Adds a run, or a session with these turns.
    pub(crate) fn add(
        &self,
        agent: &str,
        identity: &RunIdentity,
        grace: Duration,
        turns: Option<Turns>,
    ) -> Result<LiveRun, ShutDown> {
        let (run_id, labels) = (identity.run_id.to_string(), (*identity.labels).clone());
        let run = UnfinishedRun { agent: agent.to_owned(), run_id, labels };
        let mut list = self.list();
        if list.is_closed {
            return Err(ShutDown);
        }
        list.added += 1;
        let id = list.added;
        list.entries.insert(id, Entry { run, grace, turns });
        Ok(LiveRun { runs: self.clone(), id })
    }

    /// Rejects further runs, cancels the waiting turns, interrupts the running ones, and closes the sessions.
    pub(crate) fn interrupt(&self) -> ShutdownReport {
        let sessions: Vec<Turns>;
        let mut report = ShutdownReport::default();
        {
            let mut list = self.list();
            list.is_closed = true;
            sessions = list.entries.values().filter_map(|entry| entry.turns.clone()).collect();
            report.closed_sessions = sessions.len();
            report.interrupted_turns = list.entries.len() - sessions.len();
        }
        // Without the lock: dropping a turn can wake other tasks.
        report.interrupted_turns += sessions.iter().map(|turns| usize::from(turns.is_running())).sum::<usize>();
        self.0.stop.interrupt.cancel();
        report.interrupted_turns += sessions.iter().map(Turns::cancel_waiting).sum::<usize>();
        report
    }

    /// Aborts what is live, and returns it. Also returns the time in which it must end.
    pub(crate) fn abort(&self) -> (Vec<UnfinishedRun>, Duration) {
        let grace = self.list().entries.values().map(|entry| entry.grace).max().unwrap_or_default();
        let live = self.live();
        self.0.stop.abort.cancel();
        (live, grace)
    }

    /// Returns the live runs and sessions.
    pub(crate) fn live(&self) -> Vec<UnfinishedRun> {
        self.list().entries.values().map(|entry| entry.run.clone()).collect()
    }

    /// Takes the processes that were left since the start of the shutdown.
    pub(crate) fn take_left(&self) -> Vec<LeftProcess> {
        std::mem::take(&mut self.list().left)
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRun {
    /// Adds the processes that a run has left to the report of the shutdown, if there is one.
    pub(crate) fn note_left(&self, left: &[LeftProcess]) {
        let mut list = self.runs.list();
        if list.is_closed {
            list.left.extend_from_slice(left);
        }
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        self.runs.list().entries.remove(&self.id);
    }
}
