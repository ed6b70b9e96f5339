//! Leftovers of crashes are removed at the first run of a runtime.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use teamster::{Ledger, Runtime};

use crate::test_env::{TestEnv, agent, success_end};

fn test_env(ledger: &Path) -> TestEnv {
    TestEnv::with_runtime(Runtime::builder().ledger(Ledger::in_directory(ledger)).build())
}

/// Creates the directory of a run that crashed before it wrote anything.
fn leftover(ledger: &Path) -> PathBuf {
    let path = ledger.join("runs/abcdefghijklmnop");
    DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
    path
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_at_the_first_run_only() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    let env = test_env(&ledger);
    let left = leftover(&ledger);
    for is_first in [true, false] {
        env.play(&agent(&env).then(success_end("hi"))).await.assert_success("hi");
        env.runtime.wait_idle().await;
        assert_eq!(left.exists(), !is_first);
        assert!(env.runtime.ledger().survey().live.is_empty());
        leftover(&ledger);
    }
}

#[tokio::test]
async fn a_ledger_that_cannot_be_cleaned_does_not_affect_a_run() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    // Other users could read the ledger. That is a problem of the ledger, but not of the run.
    DirBuilder::new().create(&ledger).unwrap();
    std::fs::set_permissions(&ledger, Permissions::from_mode(0o755)).unwrap();
    let env = test_env(&ledger);
    assert_eq!(env.runtime.ledger().survey().problems.len(), 1);
    env.play(&agent(&env).then(success_end("hi"))).await.assert_success("hi");
    env.runtime.wait_idle().await;
    assert!(ledger.is_dir());
}
