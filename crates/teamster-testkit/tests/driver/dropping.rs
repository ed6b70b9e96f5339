//! What is left of a run that nobody holds any more: nothing.

use std::time::Duration;

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::lab::{
    Lab, SHORT, agent, block_until, bounded, is_alive, is_init, is_text, is_tool_use, read_until, rest_after,
};

/// A CLI in the middle of its work, with a tool in a session of its own.
fn busy(lab: &Lab) -> Script {
    let tool = Script::new().write_pid(&lab.pid_file(), "tool").ready().hang();
    agent(lab)
        .spawn(Child::new(tool).session())
        .claude_text("Hello")
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .hang()
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_dropped_before_its_start_starts_nothing() {
    let lab = Lab::new();
    drop(lab.start(lab.request(&busy(&lab))));
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert!(lab.pids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_at_any_moment_of_its_start_leaves_nothing() {
    for turn in 0..30_u64 {
        let lab = Lab::new();
        let run = lab.start(lab.request(&busy(&lab)));
        tokio::time::sleep(Duration::from_micros(turn * 300)).await;
        drop(run);
        bounded("shutdown", lab.runtime.shutdown()).await;
        lab.assert_all_dead();
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_in_mid_stream_leaves_nothing() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&busy(&lab)));
    read_until(&mut run, is_text).await;
    drop(run);
    lab.all_die().await;
    bounded("shutdown", lab.runtime.shutdown()).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_while_a_tool_runs_leaves_nothing() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&busy(&lab)));
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert_eq!(lab.pids().len(), 2);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_dropped_run_of_a_tree_that_ignores_sigterm_leaves_nothing() {
    let lab = Lab::new();
    let mut request = lab.request(&Script::new().ignore(Signal::Term).then(busy(&lab)));
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_run_that_is_dropped_while_the_cli_writes_without_end_leaves_nothing() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&agent(&lab).claude_burst(u64::MAX)));
    read_until(&mut run, is_text).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_run_that_is_dropped_while_it_is_being_ended_leaves_nothing() {
    let lab = Lab::new();
    let mut request = lab.request(&Script::new().ignore(Signal::Term).then(busy(&lab)));
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    read_until(&mut run, is_tool_use).await;
    run.control().interrupt();
    run.control().abort();
    tokio::task::yield_now().await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_runtime_can_be_used_after_it_was_shut_down() {
    let lab = Lab::new();
    bounded("shutdown", lab.runtime.shutdown()).await;
    let mut run = lab.start(lab.request(&busy(&lab)));
    read_until(&mut run, is_tool_use).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[test]
fn a_tokio_runtime_that_is_dropped_while_a_run_lives_leaves_nothing() {
    let lab = Lab::new();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut run = tokio.block_on(async { lab.start(lab.request(&busy(&lab))) });
    let events = tokio.block_on(read_until(&mut run, is_tool_use));
    drop(tokio);
    block_until("all die", || lab.pids().values().all(|&pid| !is_alive(pid)));
    assert_eq!(lab.pids().len(), 2);

    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = another.block_on(rest_after(events, &mut run));
    told.is_aborted();
    assert_eq!(told.result().text, "Hello");
    assert_eq!(told.tool_results()[0].output, "interrupted");
}

#[test]
fn a_tokio_runtime_that_is_dropped_with_the_run_leaves_nothing() {
    let lab = Lab::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let mut run = lab.start(lab.request(&busy(&lab)));
        read_until(&mut run, is_init).await;
        lab.pid("tool").await;
    });
    drop(tokio);
    block_until("all die", || lab.pids().values().all(|&pid| !is_alive(pid)));
    assert_eq!(lab.pids().len(), 2);
}

/// A CLI whose pipes close before the tree is killed exits, and leaves its tool without a parent to find it by.
#[test]
fn a_cli_that_would_exit_when_its_pipes_close_leaves_nothing() {
    for _ in 0..20 {
        let lab = Lab::new();
        let tool = Script::new().write_pid(&lab.pid_file(), "tool").ready().hang();
        let script = agent(&lab).spawn(Child::new(tool).session()).claude_text("Hello").read_to_end().exit(0);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut run = tokio.block_on(async { lab.start(lab.request(&script)) });
        tokio.block_on(read_until(&mut run, is_text));
        drop(tokio);
        block_until("all die", || lab.pids().values().all(|&pid| !is_alive(pid)));
        assert_eq!(lab.pids().len(), 2);
    }
}

#[tokio::test]
async fn what_waits_for_the_consumer_is_told_when_the_tokio_runtime_is_gone() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(5000).claude_tool("toolu_1", "Bash", &json!({})).hang();
    let request = lab.request(&script);
    let events = tokio::task::spawn_blocking(move || {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut run = tokio.block_on(async { lab.start(request) });
        let events = tokio.block_on(read_until(&mut run, is_text));
        drop(tokio);
        (lab, run, events)
    });
    let (lab, mut run, events) = events.await.unwrap();
    let told = rest_after(events, &mut run).await;
    told.failed(&ErrorCode::Aborted);
    lab.all_die().await;
}
