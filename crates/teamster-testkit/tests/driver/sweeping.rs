//! What crashes left is swept with the first run of a runtime.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use teamster::{Ledger, Runtime};

use crate::lab::{Lab, agent, good_end};

fn lab(ledger: &Path) -> Lab {
    Lab::with_runtime(Runtime::new().known_in(Ledger::in_directory(ledger)))
}

/// The directory of a run that crashed before it had written anything.
fn leftover(ledger: &Path) -> PathBuf {
    let path = ledger.join("runs/abcdefghijklmnop");
    DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
    path
}

#[tokio::test]
async fn what_a_crash_left_is_swept_with_the_first_run_and_only_with_that() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    let lab = lab(&ledger);
    let left = leftover(&ledger);
    for is_first in [true, false] {
        lab.play(&agent(&lab).then(good_end("hi"))).await.is_good("hi");
        lab.runtime.shutdown().await;
        assert_eq!(left.exists(), !is_first);
        assert!(lab.runtime.ledger().survey().live.is_empty());
        leftover(&ledger);
    }
}

#[tokio::test]
async fn a_ledger_that_cannot_be_swept_does_not_concern_a_run() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    // Others could look into it: that is a problem, but not the run's.
    DirBuilder::new().create(&ledger).unwrap();
    std::fs::set_permissions(&ledger, Permissions::from_mode(0o755)).unwrap();
    let lab = lab(&ledger);
    assert_eq!(lab.runtime.ledger().survey().problems.len(), 1);
    lab.play(&agent(&lab).then(good_end("hi"))).await.is_good("hi");
    lab.runtime.shutdown().await;
    assert!(ledger.is_dir());
}
