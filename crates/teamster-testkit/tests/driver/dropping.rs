//! A dropped run leaves no process and no file.

use std::time::Duration;

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::test_env::{
    SHORT, TestEnv, agent, block_until, bounded, is_alive, is_init, is_text, is_tool_use, read_until, rest_after,
};

/// A CLI in the middle of its work, with a tool in a separate session.
fn busy(env: &TestEnv) -> Script {
    let tool = Script::new().write_pid(&env.pid_file(), "tool").ready().hang();
    agent(env)
        .spawn(Child::new(tool).session())
        .claude_text("Hello")
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .hang()
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_dropped_before_its_start_starts_nothing() {
    let env = TestEnv::new();
    drop(env.start(env.request(&busy(&env))));
    bounded("shutdown", env.runtime.wait_idle()).await;
    assert!(env.pids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_at_any_moment_of_its_start_leaves_nothing() {
    for turn in 0..30_u64 {
        let env = TestEnv::new();
        let run = env.start(env.request(&busy(&env)));
        tokio::time::sleep(Duration::from_micros(turn * 300)).await;
        drop(run);
        bounded("shutdown", env.runtime.wait_idle()).await;
        env.assert_all_dead();
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_during_its_stream_leaves_nothing() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&busy(&env)));
    read_until(&mut run, is_text).await;
    drop(run);
    env.all_die().await;
    bounded("shutdown", env.runtime.wait_idle()).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_while_a_tool_runs_leaves_nothing() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&busy(&env)));
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    assert_eq!(env.pids().len(), 2);
    env.assert_all_dead();
}

#[tokio::test]
async fn a_dropped_run_of_a_tree_that_ignores_sigterm_leaves_nothing() {
    let env = TestEnv::new();
    let mut request = env.request(&Script::new().ignore(Signal::Term).then(busy(&env)));
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_run_that_is_dropped_during_endless_output_leaves_nothing() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&agent(&env).claude_burst(u64::MAX)));
    read_until(&mut run, is_text).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_run_that_is_dropped_during_its_termination_leaves_nothing() {
    let env = TestEnv::new();
    let mut request = env.request(&Script::new().ignore(Signal::Term).then(busy(&env)));
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    read_until(&mut run, is_tool_use).await;
    run.control().interrupt();
    run.control().abort();
    tokio::task::yield_now().await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_runtime_can_be_used_after_it_was_shut_down() {
    let env = TestEnv::new();
    bounded("shutdown", env.runtime.wait_idle()).await;
    let mut run = env.start(env.request(&busy(&env)));
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    env.assert_all_dead();
}

#[test]
fn a_tokio_runtime_that_is_dropped_while_a_run_lives_leaves_nothing() {
    let env = TestEnv::new();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut run = tokio.block_on(async { env.start(env.request(&busy(&env))) });
    let events = tokio.block_on(read_until(&mut run, is_tool_use));
    drop(tokio);
    block_until("all die", || env.pids().values().all(|&pid| !is_alive(pid)));
    assert_eq!(env.pids().len(), 2);

    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = another.block_on(rest_after(events, &mut run));
    stream.assert_aborted();
    assert_eq!(stream.result().text, "Hello");
    assert_eq!(stream.tool_results()[0].output, "interrupted");
}

#[test]
fn a_tokio_runtime_that_is_dropped_with_the_run_leaves_nothing() {
    let env = TestEnv::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let mut run = env.start(env.request(&busy(&env)));
        read_until(&mut run, is_init).await;
        env.pid("tool").await;
    });
    drop(tokio);
    block_until("all die", || env.pids().values().all(|&pid| !is_alive(pid)));
    assert_eq!(env.pids().len(), 2);
}

/// A CLI that exits when its pipes close, before the tree is killed. Its tool then has no parent by
/// which it could be found.
#[test]
fn a_cli_that_would_exit_when_its_pipes_close_leaves_nothing() {
    for _ in 0..20 {
        let env = TestEnv::new();
        let tool = Script::new().write_pid(&env.pid_file(), "tool").ready().hang();
        let script = agent(&env).spawn(Child::new(tool).session()).claude_text("Hello").read_to_end().exit(0);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut run = tokio.block_on(async { env.start(env.request(&script)) });
        tokio.block_on(read_until(&mut run, is_text));
        drop(tokio);
        block_until("all die", || env.pids().values().all(|&pid| !is_alive(pid)));
        assert_eq!(env.pids().len(), 2);
    }
}

#[tokio::test]
async fn events_that_wait_for_the_consumer_are_delivered_when_the_tokio_runtime_is_gone() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(5000).claude_tool("toolu_1", "Bash", &json!({})).hang();
    let request = env.request(&script);
    let events = tokio::task::spawn_blocking(move || {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut run = tokio.block_on(async { env.start(request) });
        let events = tokio.block_on(read_until(&mut run, is_text));
        drop(tokio);
        (env, run, events)
    });
    let (env, mut run, events) = events.await.unwrap();
    let stream = rest_after(events, &mut run).await;
    stream.assert_failed(&ErrorCode::Aborted);
    env.all_die().await;
}
