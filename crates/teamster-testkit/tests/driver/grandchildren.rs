//! Processes that the CLI leaves behind.

use std::process::Command;

use serde_json::json;
use teamster::request::Background;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::lab::{LONG, Lab, SHORT, Told, agent, good_end, is_alive, is_text, read_until, rest_after};

/// Somebody who never ends by itself.
fn left_behind(lab: &Lab) -> Script {
    Script::new().write_pid(&lab.pid_file(), "left-behind").ready().hang()
}

/// A good turn of a CLI that leaves these behind.
async fn leaving(lab: &Lab, children: impl IntoIterator<Item = Child>) -> Told {
    let script = children.into_iter().fold(agent(lab), Script::spawn).then(good_end("Hello"));
    let mut request = lab.request(&script);
    request.limits.grace = SHORT;
    lab.finish(request).await
}

async fn ends_well(lab: &Lab, child: Child) {
    leaving(lab, [child]).await.is_good("Hello");
    assert_eq!(lab.pids().len(), 2);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_does_not_delay_done() {
    let lab = Lab::new();
    ends_well(&lab, Child::new(left_behind(&lab))).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_in_a_group_of_its_own_does_not_delay_done() {
    let lab = Lab::new();
    ends_well(&lab, Child::new(left_behind(&lab)).own_group()).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_in_a_session_of_its_own_does_not_delay_done() {
    let lab = Lab::new();
    ends_well(&lab, Child::new(left_behind(&lab)).session()).await;
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_does_not_delay_done() {
    let lab = Lab::new();
    let stubborn = Script::new().ignore(Signal::Term).ignore(Signal::Hup).then(left_behind(&lab));
    ends_well(&lab, Child::new(stubborn).session()).await;
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_that_holds_no_pipe_is_gone_after_done() {
    let lab = Lab::new();
    ends_well(&lab, Child::new(left_behind(&lab)).session().without_stdout()).await;
}

#[tokio::test]
async fn a_grandchild_that_obeys_is_asked_and_not_killed() {
    let lab = Lab::new();
    let said = lab.path("said");
    let goodbye = Script::new().write_pid(&said, "goodbye").exit(0);
    let child = Script::new().on_signal(Signal::Term, goodbye).then(left_behind(&lab));
    let script = agent(&lab).spawn(Child::new(child).session()).then(good_end("Hello"));
    let mut request = lab.request(&script);
    request.limits.grace = LONG;
    lab.finish(request).await.is_good("Hello");
    assert!(said.exists());
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_grandchild_that_writes_without_end_does_not_delay_done() {
    let lab = Lab::new();
    let noisy = Script::new()
        .ignore(Signal::Term)
        .write_pid(&lab.pid_file(), "noisy")
        .ready()
        .burst(u64::MAX, json!({"type": "keep_alive"}));
    ends_well(&lab, Child::new(noisy)).await;
}

#[tokio::test]
async fn a_grandchild_that_writes_to_stderr_without_end_does_not_delay_done() {
    let lab = Lab::new();
    let noisy = Script::new()
        .ignore(Signal::Term)
        .write_pid(&lab.pid_file(), "noisy")
        .ready()
        .stderr_lines(u64::MAX, "still here");
    ends_well(&lab, Child::new(noisy)).await;
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_is_gone_after_a_crash_of_the_cli() {
    let lab = Lab::new();
    let script = agent(&lab).spawn(Child::new(left_behind(&lab)).session()).raise(Signal::Kill);
    let told = lab.play(&script).await;
    assert!(told.result().is_error);
    assert_eq!(lab.pids().len(), 2);
    lab.assert_all_dead();
}

#[tokio::test]
async fn what_a_grandchild_writes_within_the_drain_period_is_told() {
    let lab = Lab::new();
    let late = Script::new().ready().sleep(SHORT).claude_result("Hello");
    let script = agent(&lab).claude_text("Hello").spawn(Child::new(late));
    let mut request = lab.request(&script);
    request.limits.drain = LONG;
    lab.finish(request).await.is_good("Hello");
}

#[tokio::test]
async fn what_is_to_be_kept_lives_on_and_is_named() {
    let lab = Lab::new();
    let daemon = Child::new(left_behind(&lab)).session().without_stdout();
    let mut request = lab.request(&agent(&lab).spawn(daemon).then(good_end("Hello")));
    request.background = Background::Keep;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    let daemon = lab.pid("left-behind").await;
    assert_eq!(told.result().left_processes.iter().map(|left| left.pid).collect::<Vec<_>>(), [daemon]);
    assert!(is_alive(daemon));
    lab.runtime.shutdown().await;
    assert!(is_alive(daemon));
    assert!(Command::new("kill").args(["-KILL", &daemon.to_string()]).status().unwrap().success());
}

#[tokio::test]
async fn a_run_that_is_aborted_keeps_nobody() {
    let lab = Lab::new();
    let script = agent(&lab).spawn(Child::new(left_behind(&lab)).session()).claude_text("Hello").hang();
    let mut request = lab.request(&script);
    request.background = Background::Keep;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    assert_eq!(told.is_aborted().result().left_processes, []);
    lab.assert_all_dead();
}
