//! How long an agent may be silent, phase by phase.

use std::time::Duration;

use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::Limits;
use teamster_testkit::fake::{Child, Script};

use crate::lab::{LONG, Lab, SHORT, Told, agent, good_end, is_text, read_until, rest_after};

/// Every limit is far away, but for how long an end may take.
fn far() -> Limits {
    let mut limits = Limits::default();
    limits.startup = LONG;
    limits.silence = LONG;
    limits.tool = LONG;
    limits.after_result = LONG;
    limits.grace = SHORT;
    limits
}

async fn play(lab: &Lab, script: &Script, set: impl FnOnce(&mut Limits)) -> Told {
    let mut request = lab.request(script);
    request.limits = far();
    set(&mut request.limits);
    lab.finish(request).await
}

#[track_caller]
fn barked(told: &Told, words: &[&str]) {
    let message = told.failed(&ErrorCode::WatchdogTimeout);
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    assert!(!told.result().aborted);
}

#[tokio::test]
async fn an_agent_that_says_nothing_at_all_is_ended_by_the_limit_of_its_start() {
    let lab = Lab::new();
    let told =
        play(&lab, &Script::new().write_pid(&lab.pid_file(), "agent").hang(), |limits| limits.startup = SHORT).await;
    barked(&told, &["startup", "0.2 s"]);
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_falls_silent_is_ended_by_the_limit_of_silence() {
    let lab = Lab::new();
    let told = play(&lab, &agent(&lab).claude_text("Hello").hang(), |limits| limits.silence = SHORT).await;
    barked(&told, &["silence", "0.2 s"]);
    assert_eq!(told.result().text, "Hello");
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_agent_whose_tool_never_ends_is_ended_by_the_limit_of_tools_which_names_it() {
    let lab = Lab::new();
    let script = agent(&lab).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).hang();
    let told = play(&lab, &script, |limits| limits.tool = SHORT).await;
    barked(&told, &["limit: tool", "0.2 s", "Bash"]);
    assert_eq!(told.tool_results()[0].output, "interrupted");
}

#[tokio::test]
async fn a_tool_that_runs_longer_than_the_limit_of_silence_is_left_alone() {
    let lab = Lab::new();
    let script = agent(&lab)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .sleep(SHORT * 15)
        .claude_tool_result("toolu_1", "made")
        .then(good_end("Hello"));
    play(&lab, &script, |limits| limits.silence = SHORT * 5).await.is_good("Hello");
}

#[tokio::test]
async fn silence_counts_again_when_the_tool_has_ended() {
    let lab = Lab::new();
    let script = agent(&lab)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .hang();
    barked(&play(&lab, &script, |limits| limits.silence = SHORT).await, &["limit: silence"]);
}

#[tokio::test]
async fn an_agent_that_speaks_slowly_but_speaks_is_left_alone() {
    let lab = Lab::new();
    let script = (0..30).fold(agent(&lab), |script, _| script.claude_text("word ").sleep(SHORT / 2));
    let told = play(&lab, &script.then(good_end("end")), |limits| limits.silence = SHORT * 10).await;
    told.is_good(&format!("{}end", "word ".repeat(30)));
}

#[tokio::test]
async fn a_heartbeat_does_not_feed_the_watchdog() {
    let lab = Lab::new();
    let script = (0..1000).fold(agent(&lab), |script, _| script.claude_keep_alive().sleep(SHORT / 10));
    barked(&play(&lab, &script, |limits| limits.silence = SHORT * 2).await, &["limit: silence"]);
}

#[tokio::test]
async fn an_exit_that_is_overdue_is_forced_and_is_no_failure() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").claude_result("Hello").hang();
    let told = play(&lab, &script, |limits| limits.after_result = SHORT).await;
    told.is_good("Hello");
    assert!(told.warnings(&WarningCode::ExitForced)[0].message.contains("0.2 s"));
}

#[tokio::test]
async fn heartbeats_after_the_result_do_not_put_off_the_end() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").claude_result("Hello");
    let script =
        (0..1000).fold(script, |script, _| script.claude_keep_alive().line(json!({"type": "x"})).sleep(SHORT / 10));
    let told = play(&lab, &script, |limits| limits.after_result = SHORT * 2).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::ExitForced).len(), 1);
}

#[tokio::test]
async fn a_deadline_ends_an_agent_that_works_all_the_time() {
    let lab = Lab::new();
    let script = (0..2000).fold(agent(&lab), |script, _| script.claude_text("word ").sleep(SHORT / 10));
    let told = play(&lab, &script, |limits| limits.deadline = SHORT * 2).await;
    assert!(told.failed(&ErrorCode::DeadlineExceeded).contains("0.4 s"));
    assert!(!told.result().aborted);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_deadline_ends_an_agent_that_writes_without_end() {
    let lab = Lab::new();
    let told = play(&lab, &agent(&lab).claude_burst(u64::MAX), |limits| limits.deadline = SHORT * 2).await;
    told.failed(&ErrorCode::DeadlineExceeded);
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_is_ended_by_a_limit_is_asked_politely_first() {
    let lab = Lab::new();
    let script = Script::new().claude_answers_interrupts().then(agent(&lab)).claude_text("Hello").read_to_end();
    let told = play(&lab, &script, |limits| {
        limits.silence = SHORT;
        limits.grace = LONG;
    });
    let told = told.await;
    barked(&told, &["limit: silence"]);
    assert_eq!(told.result().exit_code, Some(0));
}

#[tokio::test]
async fn noise_does_not_feed_the_watchdog() {
    let lab = Lab::new();
    let noise = || (0..1000).fold(Script::new(), |script, _| script.text("still here\n").sleep(SHORT / 10));
    let told = play(&lab, &agent(&lab).then(noise()), |limits| limits.silence = SHORT * 2).await;
    barked(&told, &["limit: silence"]);
    assert!(!told.warnings(&WarningCode::MalformedLine).is_empty());
    barked(&play(&lab, &noise(), |limits| limits.startup = SHORT * 2).await, &["limit: startup"]);
}

#[tokio::test]
async fn what_an_agent_says_on_stderr_does_not_feed_the_watchdog() {
    let lab = Lab::new();
    let script = (0..1000).fold(agent(&lab), |script, _| script.stderr("still here\n").sleep(SHORT / 10));
    barked(&play(&lab, &script, |limits| limits.silence = SHORT * 2).await, &["limit: silence"]);
}

#[tokio::test]
async fn a_tool_that_is_only_said_to_run_still_is_ended_by_its_limit() {
    let lab = Lab::new();
    // What Claude Code prints every now and then in some environments (`knob_tool_progress`).
    let progress = json!({
        "type": "tool_progress", "tool_use_id": "bash-progress-0", "parent_tool_use_id": "toolu_1",
        "tool_name": "Bash", "elapsed_time_seconds": 3,
    });
    let script = agent(&lab).claude_tool("toolu_1", "Bash", &json!({"command": "make"}));
    let script = (0..1000).fold(script, |script, _| script.line(progress.clone()).sleep(SHORT / 10));
    barked(&play(&lab, &script, |limits| limits.tool = SHORT * 2).await, &["limit: tool", "Bash"]);
}

#[tokio::test]
async fn limits_without_end_are_limits_that_are_never_reached() {
    let lab = Lab::new();
    let script = agent(&lab)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .spawn(Child::new(Script::new().ready().sleep(SHORT)))
        .then(good_end("Hello"));
    let told = play(&lab, &script, |limits| {
        limits.startup = Duration::MAX;
        limits.silence = Duration::MAX;
        limits.tool = Duration::MAX;
        limits.after_result = Duration::MAX;
        limits.deadline = Duration::MAX;
        limits.grace = Duration::MAX;
        limits.drain = Duration::MAX;
    });
    told.await.is_good("Hello");
}

#[tokio::test]
async fn limits_of_zero_are_off() {
    let lab = Lab::new();
    let script = Script::new()
        .sleep(SHORT)
        .then(agent(&lab))
        .sleep(SHORT)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .sleep(SHORT)
        .claude_tool_result("toolu_1", "made")
        .claude_text("Hello")
        .claude_result("Hello")
        .sleep(SHORT)
        .read_to_end();
    let told = play(&lab, &script, |limits| {
        limits.startup = Duration::ZERO;
        limits.silence = Duration::ZERO;
        limits.tool = Duration::ZERO;
        limits.after_result = Duration::ZERO;
        limits.deadline = Duration::ZERO;
    });
    let told = told.await;
    told.is_good("Hello");
    assert_eq!(told.result().exit_code, Some(0));
}

/// Halts this host for a while, as Ctrl-Z does: nothing of it runs, and the agent goes on.
fn halt(duration: Duration) {
    std::thread::sleep(duration);
}

#[tokio::test]
async fn what_an_agent_wrote_while_the_host_was_halted_is_read_before_its_silence_is_judged() {
    let lab = Lab::new();
    let go = lab.path("go");
    let script = agent(&lab).claude_text("Hello ").await_file(&go).then(good_end("world"));
    let mut request = lab.request(&script);
    request.limits = far();
    request.limits.silence = SHORT;
    let mut run = lab.start(request);
    let begun = read_until(&mut run, is_text).await;
    std::fs::write(&go, "").unwrap();
    halt(SHORT * 3);
    rest_after(begun, &mut run).await.is_good("Hello world");
}

#[tokio::test]
async fn silence_counts_anew_when_the_host_goes_on_after_a_halt() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello ").sleep(SHORT * 12).then(good_end("world"));
    let mut request = lab.request(&script);
    request.limits = far();
    request.limits.silence = SHORT * 5;
    let mut run = lab.start(request);
    let begun = read_until(&mut run, is_text).await;
    halt(SHORT * 11);
    rest_after(begun, &mut run).await.is_good("Hello world");
}

#[tokio::test]
async fn an_agent_that_stays_silent_after_a_halt_is_ended_all_the_same() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).claude_text("Hello").hang());
    request.limits = far();
    request.limits.silence = SHORT * 5;
    let mut run = lab.start(request);
    let begun = read_until(&mut run, is_text).await;
    halt(SHORT * 11);
    barked(&rest_after(begun, &mut run).await, &["limit: silence"]);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_result_that_came_in_time_while_the_host_was_halted_stands_against_the_deadline() {
    let lab = Lab::new();
    let go = lab.path("go");
    let script = agent(&lab).claude_text("Hello ").await_file(&go).then(good_end("world"));
    let mut request = lab.request(&script);
    request.limits = far();
    request.limits.deadline = SHORT * 10;
    let mut run = lab.start(request);
    let begun = read_until(&mut run, is_text).await;
    std::fs::write(&go, "").unwrap();
    halt(SHORT * 12);
    rest_after(begun, &mut run).await.is_good("Hello world");
}

/// Somebody who halts the host again and again, with an agent that works between the halts.
#[tokio::test]
async fn silence_counts_anew_however_often_the_host_was_halted() {
    const HALTS: usize = 4;
    let lab = Lab::new();
    let part = |script: Script, _| script.claude_text("x").sleep(SHORT * 9);
    let script = (0..HALTS).fold(agent(&lab), part).then(good_end("."));
    let mut request = lab.request(&script);
    request.limits = far();
    request.limits.silence = SHORT * 2;
    let mut run = lab.start(request);
    let mut events = Vec::new();
    for _ in 0..HALTS {
        events.extend(read_until(&mut run, is_text).await);
        halt(SHORT * 8);
    }
    assert!(!rest_after(events, &mut run).await.result().is_error);
}
