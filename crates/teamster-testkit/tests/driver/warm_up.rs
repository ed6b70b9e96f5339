//! A supervisor that is started ahead of the first run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use teamster::{RunError, Runtime, Supervisor};
use teamster_testkit::fake::Script;

use crate::test_env::TestEnv;

/// Returns a program that appends a line to `log`, and then runs this test program as the supervisor.
fn logged(directory: &Path, log: &Path) -> PathBuf {
    let (program, this) = (directory.join("supervisor"), std::env::current_exe().unwrap());
    fs::write(&program, format!("#!/bin/sh\necho started >> '{}'\nexec '{}'\n", log.display(), this.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn after_a_warm_up_the_first_run_uses_the_supervisor_that_already_runs() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    let starts = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let supervisor = Supervisor::program(logged(home.path(), &log));
    let env = TestEnv::with_runtime(Runtime::builder().supervisor(supervisor).build());
    assert_eq!(starts(), 0);
    env.runtime.warm_up().await.unwrap();
    assert_eq!(starts(), 1);
    env.play(&Script::new().claude_init().claude_text("hi").claude_result("hi")).await.assert_success("hi");
    env.runtime.warm_up().await.unwrap();
    assert_eq!(starts(), 1);
}

#[tokio::test]
async fn a_supervisor_that_does_not_start_is_an_error_of_the_warm_up() {
    let runtime = Runtime::builder().supervisor(Supervisor::program("/missing/supervisor")).build();
    let error = runtime.warm_up().await.unwrap_err();
    assert!(matches!(error, RunError::Supervisor(_)), "{error:?}");
}

#[test]
fn a_warm_up_outside_a_tokio_runtime_is_an_error() {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let runtime = Runtime::new();
    let polled = std::pin::pin!(runtime.warm_up()).poll(&mut context);
    assert!(matches!(polled, std::task::Poll::Ready(Err(RunError::Tokio(_)))), "{polled:?}");
}
