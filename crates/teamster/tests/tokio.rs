//! The Tokio runtimes that cannot drive an agent, and the error of each.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::path::Path;

use teamster::{RunError, RunRequest, Runtime, TokioError};
use tokio::runtime::Builder;

fn request() -> RunRequest {
    let mut request = RunRequest::default();
    request.cli_path = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-cli.sh"));
    request.env.insert("FAKE_CLI".to_owned(), "exit 3".to_owned());
    request
}

/// What a run, a session and a server of tools are refused with.
fn refusals() -> Vec<TokioError> {
    let runtime = Runtime::new();
    let mut one = request();
    "hi".clone_into(&mut one.prompt);
    let run = runtime.run("claude", one).map(drop).unwrap_err();
    let session = runtime.open("claude", request()).map(drop).unwrap_err();
    let reason = |error| match error {
        RunError::Tokio(reason) => Some(reason),
        _ => None,
    };
    [run, session].into_iter().filter_map(reason).collect()
}

async fn inspected() -> String {
    Runtime::new().inspect("claude", request().cli_path.as_deref()).await.unwrap().problem.unwrap()
}

#[test]
fn without_a_tokio_runtime_a_run_is_refused() {
    assert_eq!(refusals(), [TokioError::NoRuntime; 2]);
}

#[test]
fn a_tokio_runtime_without_io_is_refused_by_run_session_and_inspection() {
    for runtime in
        [Builder::new_current_thread().enable_time().build(), Builder::new_multi_thread().enable_time().build()]
    {
        let runtime = runtime.unwrap();
        assert_eq!(runtime.block_on(async { refusals() }), [TokioError::NoIo; 2]);
        assert_eq!(runtime.block_on(inspected()), TokioError::NoIo.to_string());
    }
}

#[test]
fn a_tokio_runtime_without_timers_is_refused_by_run_session_and_inspection() {
    let runtime = Builder::new_current_thread().enable_io().build().unwrap();
    assert_eq!(runtime.block_on(async { refusals() }), [TokioError::NoTime; 2]);
    assert_eq!(runtime.block_on(inspected()), TokioError::NoTime.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_is_refused_and_one_that_runs_again_is_not() {
    assert_eq!(refusals(), [TokioError::PausedTime; 2]);
    tokio::time::resume();
    let mut one = request();
    "hi".clone_into(&mut one.prompt);
    let failure = Runtime::new().run("claude", one).unwrap().result().await.unwrap_err();
    assert_eq!(failure.result.exit_code, Some(3));
}

#[cfg(feature = "tools")]
#[tokio::test(start_paused = true)]
async fn a_server_of_tools_is_refused_too() {
    use teamster::tools::{ServeError, ToolServer};
    let error = ToolServer::new("calc").serve().await.unwrap_err();
    assert!(matches!(error, ServeError::Tokio(TokioError::PausedTime)), "{error}");
}
