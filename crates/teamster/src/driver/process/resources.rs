//! What a run has on disk: its private files, its entries in the user's configuration files, and its entry in the ledger.

use teamster_config::Merged;
use teamster_process::{PrivateDir, RunDir};
use teamster_types::event::Warning;

use crate::setup::config_files;
use crate::threads::blocking;

/// What a run has on disk. Removing it waits for the disk. Dropping it, which happens when the driver's task is dropped, blocks
/// until it is removed.
#[derive(Debug)]
pub(super) struct RunResources {
    /// The user's configuration files that contain entries of this run.
    pub(super) merged: Vec<Merged>,
    pub(super) files: Option<PrivateDir>,
    /// The run's directory in the ledger.
    pub(super) run_dir: Option<RunDir>,
}

impl RunResources {
    /// Removes them and waits until they are gone. Returns warnings about configuration files that could not be restored.
    pub(super) async fn remove(self) -> Vec<Warning> {
        blocking(move || {
            // The whole value moves to the thread, so that all files are removed there.
            let Self { merged, files, run_dir } = self;
            let warnings = merged.into_iter().rev().filter_map(config_files::restore).collect();
            drop((files, run_dir));
            warnings
        })
        .await
    }

    /// Removes them like [`remove`](Self::remove), and logs the warnings.
    pub(super) async fn remove_and_log(self) {
        for warning in self.remove().await {
            tracing::warn!("{}", warning.message.escaped());
        }
    }

    /// Writes the process tree to the ledger.
    pub(super) async fn record_tree(&mut self, leader: u32, keeper: u32) {
        let Some(mut run_dir) = self.run_dir.take() else { return };
        let (recorded, run_dir) = blocking(move || (run_dir.record_tree(leader, Some(keeper)), run_dir)).await;
        if let Err(error) = recorded {
            // After a crash of the host, the tree is still found by the marker in its environment.
            tracing::debug!(%error, "the process tree could not be written to the ledger");
        }
        self.run_dir = Some(run_dir);
    }
}
