//! Processes that the CLI leaves running.

use std::process::Command;

use serde_json::json;
use teamster::request::OrphanPolicy;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::test_env::{
    CheckedStream, LONG, SHORT, TestEnv, agent, is_alive, is_text, read_until, rest_after, success_end,
};

/// A process that never exits by itself.
fn left_behind(env: &TestEnv) -> Script {
    Script::new().write_pid(&env.pid_file(), "left-behind").ready().hang()
}

/// Runs a successful turn of a CLI that leaves these children running.
async fn leaving(env: &TestEnv, children: impl IntoIterator<Item = Child>) -> CheckedStream {
    let script = children.into_iter().fold(agent(env), Script::spawn).then(success_end("Hello"));
    let mut request = env.request(&script);
    request.limits.grace = SHORT;
    env.finish(request).await
}

async fn ends_well(env: &TestEnv, child: Child) {
    leaving(env, [child]).await.assert_success("Hello");
    assert_eq!(env.pids().len(), 2);
    env.assert_all_dead();
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_does_not_delay_done() {
    let env = TestEnv::new();
    ends_well(&env, Child::new(left_behind(&env))).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_in_its_own_group_does_not_delay_done() {
    let env = TestEnv::new();
    ends_well(&env, Child::new(left_behind(&env)).own_group()).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_in_its_own_session_does_not_delay_done() {
    let env = TestEnv::new();
    ends_well(&env, Child::new(left_behind(&env)).session()).await;
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_does_not_delay_done() {
    let env = TestEnv::new();
    let stubborn = Script::new().ignore(Signal::Term).ignore(Signal::Hup).then(left_behind(&env));
    ends_well(&env, Child::new(stubborn).session()).await;
}

#[tokio::test]
async fn a_grandchild_in_its_own_session_without_a_pipe_is_gone_after_done() {
    let env = TestEnv::new();
    ends_well(&env, Child::new(left_behind(&env)).session().without_stdout()).await;
}

#[tokio::test]
async fn a_grandchild_that_exits_on_sigterm_is_not_killed() {
    let env = TestEnv::new();
    let exit_record = env.path("exit");
    let goodbye = Script::new().write_pid(&exit_record, "goodbye").exit(0);
    let child = Script::new().on_signal(Signal::Term, goodbye).then(left_behind(&env));
    let script = agent(&env).spawn(Child::new(child).session()).then(success_end("Hello"));
    let mut request = env.request(&script);
    request.limits.grace = LONG;
    env.finish(request).await.assert_success("Hello");
    assert!(exit_record.exists());
    env.assert_all_dead();
}

#[tokio::test]
async fn a_grandchild_with_endless_output_does_not_delay_done() {
    let env = TestEnv::new();
    let noisy = Script::new()
        .ignore(Signal::Term)
        .write_pid(&env.pid_file(), "noisy")
        .ready()
        .burst(u64::MAX, json!({"type": "keep_alive"}));
    ends_well(&env, Child::new(noisy)).await;
}

#[tokio::test]
async fn a_grandchild_with_endless_stderr_output_does_not_delay_done() {
    let env = TestEnv::new();
    let noisy = Script::new()
        .ignore(Signal::Term)
        .write_pid(&env.pid_file(), "noisy")
        .ready()
        .stderr_lines(u64::MAX, "still here");
    ends_well(&env, Child::new(noisy)).await;
}

#[tokio::test]
async fn a_grandchild_in_its_own_session_is_gone_after_a_crash_of_the_cli() {
    let env = TestEnv::new();
    let script = agent(&env).spawn(Child::new(left_behind(&env)).session()).raise(Signal::Kill);
    let stream = env.play(&script).await;
    assert!(stream.result().is_error);
    assert_eq!(env.pids().len(), 2);
    env.assert_all_dead();
}

#[tokio::test]
async fn output_of_a_grandchild_within_the_drain_period_is_reported() {
    let env = TestEnv::new();
    let late = Script::new().ready().sleep(SHORT).claude_result("Hello");
    let script = agent(&env).claude_text("Hello").spawn(Child::new(late));
    let mut request = env.request(&script);
    request.limits.drain = LONG;
    env.finish(request).await.assert_success("Hello");
}

#[tokio::test]
async fn kept_processes_stay_alive_and_are_named_in_the_result() {
    let env = TestEnv::new();
    let daemon = Child::new(left_behind(&env)).session().without_stdout();
    let mut request = env.request(&agent(&env).spawn(daemon).then(success_end("Hello")));
    request.orphans = OrphanPolicy::Keep;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    let daemon = env.pid("left-behind").await;
    assert_eq!(stream.result().left_processes.iter().map(|left| left.pid).collect::<Vec<_>>(), [daemon]);
    assert!(is_alive(daemon));
    env.runtime.wait_idle().await;
    assert!(is_alive(daemon));
    assert!(Command::new("kill").args(["-KILL", &daemon.to_string()]).status().unwrap().success());
}

#[tokio::test]
async fn an_aborted_run_keeps_no_process() {
    let env = TestEnv::new();
    let script = agent(&env).spawn(Child::new(left_behind(&env)).session()).claude_text("Hello").hang();
    let mut request = env.request(&script);
    request.orphans = OrphanPolicy::Keep;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    assert_eq!(stream.assert_aborted().result().left_processes, []);
    env.assert_all_dead();
}
