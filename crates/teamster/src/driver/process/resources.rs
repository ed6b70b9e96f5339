//! What a run has on disk: its private files, its entries in the user's configuration files, and its entry in the ledger.

use teamster_config::Merged;
use teamster_process::{PrivateDir, RunDir};
use teamster_types::event::Warning;

use crate::setup::config_files;
use crate::threads::{Started, begin, blocking};

/// What a run has on disk. Removing it waits for the disk. Dropping it, which happens when the driver's task is dropped, blocks
/// until it is removed.
#[derive(Debug)]
pub(super) struct RunResources {
    /// The user's configuration files that contain entries of this run.
    pub(super) merged: Vec<Merged>,
    pub(super) files: Option<PrivateDir>,
    /// The run's directory in the ledger.
    pub(super) run_dir: Option<RunDir>,
    /// A thread that writes the process tree to the ledger. It has the directory meanwhile.
    pub(super) recording: Option<Started<RunDir>>,
}

impl RunResources {
    /// Removes them and waits until they are gone. Returns warnings about configuration files that could not be restored.
    pub(super) async fn remove(self) -> Vec<Warning> {
        // The whole value moves to the thread, so that all files are removed there.
        let Self { merged, files, mut run_dir, recording } = self;
        if let Some(recording) = recording {
            run_dir = Some(recording.wait().await);
        }
        blocking(move || {
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

    /// Starts to write the process tree to the ledger. The run does not wait for the disk.
    pub(super) fn record_tree(&mut self, leader: u32, keeper: u32) {
        let Some(mut run_dir) = self.run_dir.take() else { return };
        self.recording = Some(begin(move || {
            if let Err(error) = run_dir.record_tree(leader, Some(keeper)) {
                // After a crash of the host, the tree is still found by the marker in its environment.
                tracing::debug!(%error, "the process tree could not be written to the ledger");
            }
            run_dir
        }));
    }
}
