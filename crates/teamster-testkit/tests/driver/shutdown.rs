//! The end of a runtime while other tasks hold its runs and sessions.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use teamster::event::Event;
use teamster::request::OrphanPolicy;
use teamster::{RunError, Runtime, SendError, ShutdownReport, WarmPoolConfig};
use teamster_testkit::fake::{Child, Script, Signal};

use crate::sessions::{agent, asks, open, session_request, turn};
use crate::test_env::{
    BOUND, INTERRUPT, LONG, SHORT, TestEnv, bounded, is_text, kill, read_until, rest_after, rest_of,
};

/// A grace period that is not reached.
const GRACE: Duration = BOUND;

async fn shut_down(env: &TestEnv, grace: Duration) -> ShutdownReport {
    bounded("the shutdown", env.runtime.shutdown(grace)).await
}

fn run_ids(runs: &[teamster::UnfinishedRun]) -> Vec<&str> {
    runs.iter().map(|run| run.run_id.as_str()).collect()
}

#[tokio::test]
async fn idle_sessions_that_others_hold_are_closed_and_new_work_is_rejected() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).then(turn("one", "1")).read_to_end());
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    // It waits for an idle session, and ends nothing.
    assert!(tokio::time::timeout(SHORT, env.runtime.wait_idle()).await.is_err());
    let report = shut_down(&env, GRACE).await;
    assert_eq!((report.closed_sessions, report.interrupted_turns), (1, 0), "{report:?}");
    assert_eq!((report.aborted, report.unfinished), (vec![], vec![]));
    env.assert_all_dead();
    assert!(matches!(session.send("two").unwrap_err(), SendError::ShutDown));
    assert!(matches!(session.send_now("two").await.unwrap_err(), SendError::ShutDown));
    let error = env.runtime.run("claude", env.request(&Script::new())).unwrap_err();
    assert!(matches!(error, RunError::ShutDown), "{error}");
    let error = env.runtime.open("claude", session_request(&env, &Script::new())).unwrap_err();
    assert!(matches!(error, RunError::ShutDown), "{error}");
    assert!(matches!(env.runtime.warm_up().await, Err(RunError::ShutDown)));
    // Everything has ended, so these return at once.
    bounded("the end of the session", session.close()).await;
    bounded("idleness", env.runtime.wait_idle()).await;
    assert_eq!(shut_down(&env, GRACE).await, ShutdownReport::default());
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_is_interrupted_and_waiting_turns_end_at_once() {
    let env = TestEnv::new();
    let script = agent(&env).await_line("one").claude_init().then(asks("r1")).await_line(INTERRUPT).read_to_end();
    let mut request = session_request(&env, &script);
    (request.limits.answer, request.limits.grace) = (LONG, SHORT);
    let session = env.runtime.open("claude", request).unwrap();
    let (mut one, mut two) = (session.send("one").unwrap(), session.send("two").unwrap());
    let events = read_until(&mut one, |event| matches!(event, Event::PermissionRequest(_))).await;
    let (report, ()) = tokio::join!(shut_down(&env, GRACE), async {
        rest_of(&mut two).await.assert_aborted();
        rest_after(events, &mut one).await.assert_aborted();
    });
    assert_eq!((report.closed_sessions, report.interrupted_turns), (1, 2), "{report:?}");
    env.assert_all_dead();
}

#[tokio::test]
async fn runs_in_the_queue_end_without_a_process() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let script = agent(&env).claude_init().claude_text("Hello").await_line(INTERRUPT).read_to_end();
    let mut first = env.start(env.request(&script));
    let events = read_until(&mut first, is_text).await;
    let mut second = env.start(env.request(&agent(&env).claude_init().hang()));
    let report = shut_down(&env, GRACE).await;
    assert_eq!(report.interrupted_turns, 2, "{report:?}");
    assert_eq!(rest_of(&mut second).await.assert_aborted().result().exit_code, None);
    rest_after(events, &mut first).await.assert_aborted();
    assert_eq!(env.pids().len(), 1);
    env.assert_all_dead();
}

#[tokio::test]
async fn what_ignores_the_interrupt_is_aborted_after_the_grace_period_and_reported() {
    let env = TestEnv::new();
    let stubborn = || Script::new().claude_init().claude_text("Hello").ignore(Signal::Int).ignore(Signal::Term).hang();
    let mut request = env.request(&agent(&env).then(stubborn()));
    request.limits.grace = GRACE;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    let started = Instant::now();
    // The request's own grace period is longer.
    let shutdown = env.runtime.shutdown(SHORT);
    let mut shutdown = std::pin::pin!(shutdown);
    assert!(tokio::time::timeout(SHORT * 2, &mut shutdown).await.is_err());
    kill(env.pid("agent").await);
    let report = bounded("the shutdown", shutdown).await;
    assert_eq!(run_ids(&report.aborted), [run.run_id()], "{report:?}");
    assert_eq!(report.aborted[0].agent, "claude");
    assert_eq!(report.unfinished, []);
    assert!(started.elapsed() < BOUND);
    rest_after(events, &mut run).await.assert_aborted();
    env.assert_all_dead();
}

#[tokio::test]
async fn processes_that_are_kept_on_request_are_in_the_report() {
    let env = TestEnv::new();
    let child = Child::new(Script::new().write_pid(&env.pid_file(), "child").ready().hang()).session().without_stdout();
    let mut request = session_request(&env, &turn("one", "1").spawn(child).read_to_end());
    request.orphans = OrphanPolicy::Keep;
    let session = env.runtime.open("claude", request).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let child = env.pid("child").await;
    let report = shut_down(&env, GRACE).await;
    assert_eq!(report.left_processes.iter().map(|left| left.pid).collect::<Vec<_>>(), [child]);
    kill(child);
    drop(session);
}

#[tokio::test]
async fn idle_processes_of_the_warm_pool_end_with_the_runtime_and_do_not_keep_it_from_being_idle() {
    let pool = WarmPoolConfig::new(NonZeroUsize::MIN);
    let env = TestEnv::with_runtime(Runtime::builder().warm_pool(pool).build());
    let pids = env.pid_file();
    let both = Script::new().play_next(
        &env.path("starts"),
        ["one", "two"].map(|name| Script::new().write_pid(&pids, name).then(turn("one", "1")).read_to_end()),
    );
    let session = open(&env, &both);
    env.pid("two").await;
    bounded("the session's end", session.close()).await;
    bounded("idleness", env.runtime.wait_idle()).await;
    assert!(env.pids().values().any(|&pid| crate::test_env::is_alive(pid)));
    shut_down(&env, GRACE).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_dropped_shutdown_still_rejects_new_work() {
    let env = TestEnv::new();
    let script = agent(&env).claude_init().claude_text("Hello").ignore(Signal::Int).await_file(&env.path("go"));
    let mut request = env.request(&script.claude_result("Hello").read_to_end());
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    assert!(tokio::time::timeout(SHORT, env.runtime.shutdown(LONG)).await.is_err());
    assert!(matches!(env.runtime.run("claude", env.request(&Script::new())), Err(RunError::ShutDown)));
    std::fs::write(env.path("go"), "").unwrap();
    rest_after(events, &mut run).await;
    bounded("idleness", env.runtime.wait_idle()).await;
}
