//! The limits of an agent's silence, for each phase.

use std::time::Duration;

use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::Limits;
use teamster_testkit::fake::{Child, Script};

use crate::test_env::{CheckedStream, LONG, SHORT, TestEnv, agent, is_text, read_until, rest_after, success_end};

/// Limits that are never reached, except for a short grace period.
fn far() -> Limits {
    let mut limits = Limits::default();
    limits.startup = LONG;
    limits.silence = LONG;
    limits.tool = LONG;
    limits.after_result = LONG;
    limits.grace = SHORT;
    limits
}

async fn play(env: &TestEnv, script: &Script, set: impl FnOnce(&mut Limits)) -> CheckedStream {
    let mut request = env.request(script);
    request.limits = far();
    set(&mut request.limits);
    env.finish(request).await
}

#[track_caller]
fn assert_timed_out(stream: &CheckedStream, parts: &[&str]) {
    let message = stream.assert_failed(&ErrorCode::WatchdogTimeout);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    assert!(!stream.result().aborted);
}

#[tokio::test]
async fn an_agent_without_any_output_is_ended_by_the_startup_limit() {
    let env = TestEnv::new();
    let stream =
        play(&env, &Script::new().write_pid(&env.pid_file(), "agent").hang(), |limits| limits.startup = SHORT).await;
    assert_timed_out(&stream, &["startup", "0.2 s"]);
    env.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_becomes_silent_is_ended_by_the_silence_limit() {
    let env = TestEnv::new();
    let stream = play(&env, &agent(&env).claude_text("Hello").hang(), |limits| limits.silence = SHORT).await;
    assert_timed_out(&stream, &["silence", "0.2 s"]);
    assert_eq!(stream.result().text, "Hello");
    env.assert_all_dead();
}

#[tokio::test]
async fn an_agent_whose_tool_never_ends_is_ended_by_the_tool_limit_which_names_it() {
    let env = TestEnv::new();
    let script = agent(&env).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).hang();
    let stream = play(&env, &script, |limits| limits.tool = SHORT).await;
    assert_timed_out(&stream, &["limit: tool", "0.2 s", "Bash"]);
    assert_eq!(stream.tool_results()[0].output, "interrupted");
}

#[tokio::test]
async fn a_tool_may_run_longer_than_the_silence_limit() {
    let env = TestEnv::new();
    let script = agent(&env)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .sleep(SHORT * 15)
        .claude_tool_result("toolu_1", "made")
        .then(success_end("Hello"));
    play(&env, &script, |limits| limits.silence = SHORT * 5).await.assert_success("Hello");
}

#[tokio::test]
async fn the_silence_limit_applies_again_when_the_tool_has_ended() {
    let env = TestEnv::new();
    let script = agent(&env)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .hang();
    assert_timed_out(&play(&env, &script, |limits| limits.silence = SHORT).await, &["limit: silence"]);
}

#[tokio::test]
async fn slow_output_does_not_trigger_the_silence_limit() {
    let env = TestEnv::new();
    let script = (0..30).fold(agent(&env), |script, _| script.claude_text("word ").sleep(SHORT / 2));
    let stream = play(&env, &script.then(success_end("end")), |limits| limits.silence = SHORT * 10).await;
    stream.assert_success(&format!("{}end", "word \n\n".repeat(30)));
}

#[tokio::test]
async fn a_heartbeat_does_not_reset_the_watchdog() {
    let env = TestEnv::new();
    let script = (0..1000).fold(agent(&env), |script, _| script.claude_keep_alive().sleep(SHORT / 10));
    assert_timed_out(&play(&env, &script, |limits| limits.silence = SHORT * 2).await, &["limit: silence"]);
}

#[tokio::test]
async fn an_overdue_exit_is_forced_and_is_not_a_failure() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello").hang();
    let stream = play(&env, &script, |limits| limits.after_result = SHORT).await;
    stream.assert_success("Hello");
    assert!(stream.warnings(&WarningCode::ExitForced)[0].message.contains("0.2 s"));
}

#[tokio::test]
async fn heartbeats_after_the_result_do_not_delay_the_end() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello");
    let script =
        (0..1000).fold(script, |script, _| script.claude_keep_alive().line(json!({"type": "x"})).sleep(SHORT / 10));
    let stream = play(&env, &script, |limits| limits.after_result = SHORT * 2).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::ExitForced).len(), 1);
}

#[tokio::test]
async fn a_deadline_ends_an_agent_that_is_still_working() {
    let env = TestEnv::new();
    let script = (0..2000).fold(agent(&env), |script, _| script.claude_text("word ").sleep(SHORT / 10));
    let stream = play(&env, &script, |limits| limits.deadline = SHORT * 2).await;
    assert!(stream.assert_failed(&ErrorCode::DeadlineExceeded).contains("0.4 s"));
    assert!(!stream.result().aborted);
    env.assert_all_dead();
}

#[tokio::test]
async fn a_deadline_ends_an_agent_with_endless_output() {
    let env = TestEnv::new();
    let stream = play(&env, &agent(&env).claude_burst(u64::MAX), |limits| limits.deadline = SHORT * 2).await;
    stream.assert_failed(&ErrorCode::DeadlineExceeded);
    env.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_exceeds_a_limit_is_interrupted_first() {
    let env = TestEnv::new();
    let script = Script::new().claude_answers_interrupts().then(agent(&env)).claude_text("Hello").read_to_end();
    let stream = play(&env, &script, |limits| {
        limits.silence = SHORT;
        limits.grace = LONG;
    });
    let stream = stream.await;
    assert_timed_out(&stream, &["limit: silence"]);
    assert_eq!(stream.result().exit_code, Some(0));
}

#[tokio::test]
async fn noise_does_not_reset_the_watchdog() {
    let env = TestEnv::new();
    let noise = || (0..1000).fold(Script::new(), |script, _| script.text("still here\n").sleep(SHORT / 10));
    let stream = play(&env, &agent(&env).then(noise()), |limits| limits.silence = SHORT * 2).await;
    assert_timed_out(&stream, &["limit: silence"]);
    assert!(!stream.warnings(&WarningCode::MalformedLine).is_empty());
    assert_timed_out(&play(&env, &noise(), |limits| limits.startup = SHORT * 2).await, &["limit: startup"]);
}

#[tokio::test]
async fn output_on_stderr_does_not_reset_the_watchdog() {
    let env = TestEnv::new();
    let script = (0..1000).fold(agent(&env), |script, _| script.stderr("still here\n").sleep(SHORT / 10));
    assert_timed_out(&play(&env, &script, |limits| limits.silence = SHORT * 2).await, &["limit: silence"]);
}

#[tokio::test]
async fn tool_progress_does_not_reset_the_tool_limit() {
    let env = TestEnv::new();
    // Claude Code prints this from time to time in some environments (`knob_tool_progress`).
    let progress = json!({
        "type": "tool_progress", "tool_use_id": "bash-progress-0", "parent_tool_use_id": "toolu_1",
        "tool_name": "Bash", "elapsed_time_seconds": 3,
    });
    let script = agent(&env).claude_tool("toolu_1", "Bash", &json!({"command": "make"}));
    let script = (0..1000).fold(script, |script, _| script.line(progress.clone()).sleep(SHORT / 10));
    assert_timed_out(&play(&env, &script, |limits| limits.tool = SHORT * 2).await, &["limit: tool", "Bash"]);
}

#[tokio::test]
async fn infinite_limits_are_never_reached() {
    let env = TestEnv::new();
    let script = agent(&env)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .spawn(Child::new(Script::new().ready().sleep(SHORT)))
        .then(success_end("Hello"));
    let stream = play(&env, &script, |limits| {
        limits.startup = Duration::MAX;
        limits.silence = Duration::MAX;
        limits.tool = Duration::MAX;
        limits.after_result = Duration::MAX;
        limits.deadline = Duration::MAX;
        limits.grace = Duration::MAX;
        limits.drain = Duration::MAX;
    });
    stream.await.assert_success("Hello");
}

#[tokio::test]
async fn limits_of_zero_are_disabled() {
    let env = TestEnv::new();
    let script = Script::new()
        .sleep(SHORT)
        .then(agent(&env))
        .sleep(SHORT)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .sleep(SHORT)
        .claude_tool_result("toolu_1", "made")
        .claude_text("Hello")
        .claude_result("Hello")
        .sleep(SHORT)
        .read_to_end();
    let stream = play(&env, &script, |limits| {
        limits.startup = Duration::ZERO;
        limits.silence = Duration::ZERO;
        limits.tool = Duration::ZERO;
        limits.after_result = Duration::ZERO;
        limits.deadline = Duration::ZERO;
    });
    let stream = stream.await;
    stream.assert_success("Hello");
    assert_eq!(stream.result().exit_code, Some(0));
}

/// Simulates a suspended host (Ctrl-Z): this program does not run, but the agent does.
fn halt(duration: Duration) {
    std::thread::sleep(duration);
}

#[tokio::test]
async fn output_written_while_the_host_was_suspended_is_read_before_silence_is_checked() {
    let env = TestEnv::new();
    let go = env.path("go");
    let script = agent(&env).claude_text("Hello ").await_file(&go).then(success_end("world"));
    let mut request = env.request(&script);
    request.limits = far();
    request.limits.silence = SHORT;
    let mut run = env.start(request);
    let first_events = read_until(&mut run, is_text).await;
    std::fs::write(&go, "").unwrap();
    halt(SHORT * 3);
    rest_after(first_events, &mut run).await.assert_success("Hello \n\nworld");
}

#[tokio::test]
async fn the_silence_limit_starts_again_when_a_suspended_host_continues() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello ").sleep(SHORT * 12).then(success_end("world"));
    let mut request = env.request(&script);
    request.limits = far();
    request.limits.silence = SHORT * 5;
    let mut run = env.start(request);
    let first_events = read_until(&mut run, is_text).await;
    halt(SHORT * 11);
    rest_after(first_events, &mut run).await.assert_success("Hello \n\nworld");
}

#[tokio::test]
async fn an_agent_that_stays_silent_after_a_suspension_is_still_ended() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).claude_text("Hello").hang());
    request.limits = far();
    request.limits.silence = SHORT * 5;
    let mut run = env.start(request);
    let first_events = read_until(&mut run, is_text).await;
    halt(SHORT * 11);
    assert_timed_out(&rest_after(first_events, &mut run).await, &["limit: silence"]);
    env.assert_all_dead();
}

#[tokio::test]
async fn a_result_in_time_counts_even_if_the_host_was_suspended_beyond_the_deadline() {
    let env = TestEnv::new();
    let go = env.path("go");
    let script = agent(&env).claude_text("Hello ").await_file(&go).then(success_end("world"));
    let mut request = env.request(&script);
    request.limits = far();
    request.limits.deadline = SHORT * 10;
    let mut run = env.start(request);
    let first_events = read_until(&mut run, is_text).await;
    std::fs::write(&go, "").unwrap();
    halt(SHORT * 12);
    rest_after(first_events, &mut run).await.assert_success("Hello \n\nworld");
}

/// A host that is suspended repeatedly, with an agent that works between the suspensions.
#[tokio::test]
async fn the_silence_limit_starts_again_after_each_suspension_of_the_host() {
    const HALTS: usize = 4;
    let env = TestEnv::new();
    let part = |script: Script, _| script.claude_text("x").sleep(SHORT * 9);
    let script = (0..HALTS).fold(agent(&env), part).then(success_end("."));
    let mut request = env.request(&script);
    request.limits = far();
    request.limits.silence = SHORT * 2;
    let mut run = env.start(request);
    let mut events = Vec::new();
    for _ in 0..HALTS {
        events.extend(read_until(&mut run, is_text).await);
        halt(SHORT * 8);
    }
    assert!(!rest_after(events, &mut run).await.result().is_error);
}
