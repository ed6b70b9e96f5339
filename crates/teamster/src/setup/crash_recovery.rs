//! Kills the processes and removes the files that crashed hosts left.

use std::io;
use std::sync::Arc;

use teamster_config::RestoreLog;
use teamster_process::Ledger;
use tokio_util::task::TaskTracker;

use crate::threads::track;

/// Starts the recovery on threads of its own. No run waits for it.
///
/// # Errors
/// The system has no thread for it.
pub(crate) fn start(tracker: &TaskTracker, ledger: &Arc<Ledger>, journals: Option<&RestoreLog>) -> io::Result<()> {
    if let Some(journals) = journals.cloned() {
        track(tracker, move || recover(&journals))?;
    }
    let ledger = Arc::clone(ledger);
    track(tracker, move || {
        let sweep = ledger.sweep();
        for skipped in sweep.skipped {
            tracing::warn!(path = %skipped.path.display(), reason = %skipped.reason, "a crashed run was not swept");
        }
        for problem in sweep.problems {
            tracing::warn!(%problem, "the ledger of runs could not be swept");
        }
    })
}

/// Restores the configuration files that runs of killed hosts had changed.
fn recover(journals: &RestoreLog) {
    let recovery = journals.recover();
    for restored in recovery.restored {
        tracing::info!(path = %restored.path.display(), how = ?restored.how, "a configuration file was restored");
    }
    for problem in recovery.problems {
        tracing::warn!(%problem, "a configuration file could not be restored");
    }
}
