//! A runtime with a limit on concurrent runs.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::time::Instant;

use teamster::event::{ErrorCode, Event};
use teamster::{Run, RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::test_env::{
    BOUND, CheckedStream, SHORT, TestEnv, bounded, counted, is_init, read_until, rest_after, rest_of, wait_until,
};

fn test_env(runs: usize) -> TestEnv {
    TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::new(runs).unwrap()).build())
}

/// An agent that records its start, waits for a file, and records its end.
fn waiting_agent(env: &TestEnv, name: &str) -> Script {
    let records = env.pid_file();
    Script::new()
        .write_pid(&records, format!("{name}-started"))
        .claude_init()
        .await_file(&env.path(name))
        .claude_text(name)
        .claude_result(name)
        .write_pid(&records, format!("{name}-finished"))
        .read_to_end()
}

fn start_waiting_agent(env: &TestEnv, name: &str) -> Run {
    env.start(env.request(&waiting_agent(env, name)))
}

/// Lets a waiting agent finish.
fn release(env: &TestEnv, name: &str) {
    File::create(env.path(name)).unwrap();
}

/// Returns the agents' records in order.
fn records(env: &TestEnv) -> Vec<String> {
    let text = fs::read_to_string(env.pid_file()).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

async fn started(env: &TestEnv, name: &str) {
    env.pid(&format!("{name}-started")).await;
}

/// Asserts that a run ended without starting a process.
fn assert_not_started(stream: &CheckedStream) {
    stream.assert_aborted();
    let events: Vec<_> = stream.events.iter().filter(|event| !matches!(event, Event::Queued(_))).collect();
    assert!(matches!(events.as_slice(), [Event::Error(_), Event::Done(_)]), "{:?}", stream.events);
    assert_eq!(stream.result().exit_code, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_concurrent_runs_holds() {
    const RUNS: usize = 12;
    const LIMIT: usize = 3;
    let env = test_env(LIMIT);
    let names: Vec<_> = (0..RUNS).map(|number| number.to_string()).collect();
    let mut runs: Vec<_> = names.iter().map(|name| start_waiting_agent(&env, name)).collect();
    // The first runs wait for each other, so as many runs as allowed are alive at the same time.
    wait_until("the first runs live", || records(&env).len() == LIMIT).await;
    for name in &names {
        release(&env, name);
    }
    for (run, name) in runs.iter_mut().zip(&names) {
        rest_of(run).await.assert_success(name);
    }
    let mut live = 0_usize;
    for entry in records(&env) {
        if entry.ends_with("-started") {
            live += 1;
        } else {
            live -= 1;
        }
        assert!(live <= LIMIT, "{:?}", records(&env));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_runs_start_in_the_order_of_their_requests() {
    let env = test_env(1);
    let names: Vec<_> = (0..10).map(|number| number.to_string()).collect();
    for name in &names {
        release(&env, name);
    }
    let mut runs: Vec<_> = names.iter().map(|name| start_waiting_agent(&env, name)).collect();
    // The order of reading does not change the order of the starts.
    for run in runs.iter_mut().rev() {
        assert!(!rest_of(run).await.result().is_error);
    }
    let order: Vec<_> = names.iter().flat_map(|name| [format!("{name}-started"), format!("{name}-finished")]).collect();
    assert_eq!(records(&env), order);
}

#[tokio::test]
async fn a_waiting_run_that_is_stopped_ends_at_once_and_starts_nothing() {
    let env = test_env(1);
    let mut first = start_waiting_agent(&env, "first");
    started(&env, "first").await;
    let (mut aborted, mut interrupted) =
        (start_waiting_agent(&env, "aborted"), start_waiting_agent(&env, "interrupted"));
    drop(start_waiting_agent(&env, "dropped"));
    let mut last = start_waiting_agent(&env, "last");
    aborted.control().abort();
    interrupted.control().interrupt();
    assert_not_started(&rest_of(&mut aborted).await);
    assert_not_started(&rest_of(&mut interrupted).await);

    release(&env, "first");
    release(&env, "last");
    rest_of(&mut first).await.assert_success("first");
    rest_of(&mut last).await.assert_success("last");
    bounded("idleness", env.runtime.wait_idle()).await;
    assert_eq!(records(&env), ["first-started", "first-finished", "last-started", "last-finished"]);
}

#[tokio::test]
async fn a_dropped_run_releases_its_permit() {
    let env = test_env(1);
    let mut first = start_waiting_agent(&env, "first");
    let mut second = start_waiting_agent(&env, "second");
    release(&env, "second");
    read_until(&mut first, is_init).await;
    drop(first);
    rest_of(&mut second).await.assert_success("second");
}

#[tokio::test]
async fn a_run_whose_cli_is_missing_releases_its_permit() {
    let env = test_env(1);
    let mut missing = RunRequest::new("Do it");
    missing.cli_path = Some(env.path("nothing"));
    let mut missing = env.start(missing);
    let mut second = start_waiting_agent(&env, "second");
    release(&env, "second");
    rest_of(&mut second).await.assert_success("second");
    rest_of(&mut missing).await.assert_failed(&ErrorCode::CliNotFound);
}

#[tokio::test]
async fn a_run_that_is_not_read_releases_its_permit_when_its_process_is_gone() {
    let env = test_env(1);
    let script = Script::new().claude_init().claude_burst(2000).claude_result("all of it").read_to_end();
    let mut unread = env.start(env.request(&script));
    let mut second = start_waiting_agent(&env, "second");
    release(&env, "second");
    rest_of(&mut second).await.assert_success("second");
    rest_of(&mut unread).await.assert_success(&counted(2000));
}

/// Limits apply to the agent's time. A run must not fail because it waits in a queue.
#[tokio::test]
async fn no_limit_applies_while_a_run_waits() {
    let env = test_env(1);
    let mut first = start_waiting_agent(&env, "first");
    started(&env, "first").await;
    let mut request = env.request(&waiting_agent(&env, "second"));
    request.limits.deadline = SHORT * 5;
    request.limits.startup = SHORT * 5;
    request.limits.grace = SHORT;
    let mut second = env.start(request);
    read_until(&mut second, |event| matches!(event, Event::Queued(_))).await;
    let waited = tokio::time::timeout(SHORT * 6, second.next()).await;
    assert!(waited.is_err(), "{waited:?}");

    let turn = Instant::now();
    release(&env, "first");
    rest_of(&mut first).await.assert_success("first");
    let events = read_until(&mut second, is_init).await;
    // Its file is never created, and its deadline counts from its start.
    let stream = rest_after(events, &mut second).await;
    assert!(stream.assert_failed(&ErrorCode::DeadlineExceeded).contains("1 s"));
    let duration = u128::from(stream.result().duration_ms);
    assert!(duration <= turn.elapsed().as_millis(), "{duration} ms, of {:?}", turn.elapsed());
}

#[tokio::test]
async fn a_wait_until_idle_waits_for_waiting_runs() {
    let env = test_env(1);
    let (mut first, mut second) = (start_waiting_agent(&env, "first"), start_waiting_agent(&env, "second"));
    started(&env, "first").await;
    assert!(tokio::time::timeout(SHORT, env.runtime.wait_idle()).await.is_err());
    release(&env, "first");
    release(&env, "second");
    bounded("idleness", env.runtime.wait_idle()).await;
    assert_eq!(records(&env), ["first-started", "first-finished", "second-started", "second-finished"]);
    rest_of(&mut first).await.assert_success("first");
    rest_of(&mut second).await.assert_success("second");
}

#[test]
fn a_run_that_waits_when_its_tokio_runtime_is_dropped_still_ends() {
    let env = test_env(1);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (first, mut second) = tokio.block_on(async {
        let first = start_waiting_agent(&env, "first");
        started(&env, "first").await;
        (first, start_waiting_agent(&env, "second"))
    });
    tokio.shutdown_timeout(BOUND);
    drop(first);

    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    another.block_on(async {
        assert_not_started(&rest_of(&mut second).await);
        // The permit of a run that was dropped with its Tokio runtime is free again.
        let mut third = start_waiting_agent(&env, "third");
        release(&env, "third");
        rest_of(&mut third).await.assert_success("third");
    });
    assert_eq!(records(&env), ["first-started", "third-started", "third-finished"]);
}
