//! Interrupting and aborting a run.

use std::time::Instant;

use serde_json::json;
use teamster::event::StopReason;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::test_env::{
    INTERRUPT, LONG, SHORT, TestEnv, agent, bounded, is_alive, is_init, is_text, is_tool_use, read_until, rest_after,
    rest_of, state, success_end, wait_until,
};

#[tokio::test]
async fn an_agent_that_handles_an_interrupt_ends_the_run_itself() {
    let env = TestEnv::new();
    let last_words = Script::new().claude_text("Stopping.").claude_interrupted();
    let script = agent(&env)
        .on_line(INTERRUPT, last_words)
        .claude_text("Working. ")
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .read_to_end();
    let mut request = env.request(&script);
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_tool_use).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().text, "Working. \n\nStopping.", "output during the shutdown is part of the result");
    assert_eq!(stream.result().exit_code, Some(0));
    assert_eq!(stream.result().stop_reason, Some(StopReason::Cancelled));
    let closed = &stream.tool_results()[0];
    assert_eq!((closed.output.as_str(), closed.is_error), ("interrupted", Some(true)));
}

#[tokio::test]
async fn an_interrupt_that_is_too_late_does_not_change_a_success() {
    let env = TestEnv::new();
    let script =
        agent(&env).claude_text("Hello").on_line(INTERRUPT, Script::new().claude_result("Hello")).read_to_end();
    let mut request = env.request(&script);
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_success("Hello");
    assert!(!stream.result().aborted);
}

#[tokio::test]
async fn an_agent_that_ignores_an_interrupt_is_terminated() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).claude_text("Hello").hang());
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
    assert_eq!(stream.result().text, "Hello");
    env.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_ignores_an_interrupt_and_sigterm_is_killed() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).ignore(Signal::Term).claude_text("Hello").hang());
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGKILL"));
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_an_interrupted_agent() {
    let env = TestEnv::new();
    let script = agent(&env).on_line(INTERRUPT, Script::new().claude_text("noticed")).claude_text("Hello").hang();
    let mut request = env.request(&script);
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let mut events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    events.extend(read_until(&mut run, |event| format!("{event:?}").contains("noticed")).await);
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn an_interrupt_before_the_start_is_not_lost() {
    let env = TestEnv::new();
    let mut request = env.request(&Script::new().claude_answers_interrupts().then(agent(&env)).read_to_end());
    request.limits.grace = LONG;
    let mut run = env.start(request);
    run.control().interrupt();
    rest_of(&mut run).await.assert_aborted();
}

#[tokio::test]
async fn an_agent_that_exits_on_sigterm_is_not_killed() {
    let env = TestEnv::new();
    let last_words = Script::new().claude_text("Goodbye.").exit(7);
    let mut request = env.request(&agent(&env).on_signal(Signal::Term, last_words).claude_text("Hello. ").hang());
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().text, "Hello. \n\nGoodbye.", "output during the shutdown is part of the result");
    assert_eq!(stream.result().exit_code, Some(7));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let env = TestEnv::new();
    let mut request = env.request(&Script::new().ignore(Signal::Term).then(agent(&env)).hang());
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_init).await;
    let started = Instant::now();
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    assert!(started.elapsed() >= SHORT);
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGKILL"));
    env.assert_all_dead();
}

#[tokio::test]
async fn an_abort_kills_the_whole_tree() {
    let env = TestEnv::new();
    let child = |name: &str| Script::new().write_pid(&env.pid_file(), name).ready().hang();
    let stubborn = Script::new().ignore(Signal::Term).then(child("stubborn"));
    let script = agent(&env)
        .spawn(Child::new(child("plain")))
        .spawn(Child::new(child("daemon")).session().without_stdout())
        .spawn(Child::new(stubborn).own_group())
        .claude_text("Hello")
        .hang();
    let mut request = env.request(&script);
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
    assert_eq!(env.pids().len(), 4);
    env.assert_all_dead();
}

#[tokio::test]
async fn an_abort_terminates_a_stopped_cli() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).raise(Signal::Stop).hang());
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_init).await;
    let agent = env.pid("agent").await;
    wait_until("the agent is stopped", || state(agent) == Some('T')).await;
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn an_interrupt_terminates_a_stopped_cli() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).raise(Signal::Stop).hang());
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_init).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.assert_aborted();
    env.assert_all_dead();
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_aborted_before_its_start_starts_nothing() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&agent(&env).hang()));
    run.control().abort();
    let stream = rest_of(&mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.events.len(), 2);
    assert!(env.pids().is_empty());
}

#[tokio::test]
async fn aborting_twice_has_the_same_effect_as_once() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&agent(&env).hang()));
    let events = read_until(&mut run, is_init).await;
    let control = run.control();
    control.abort();
    control.abort();
    control.interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.events.len(), 3);
}

#[tokio::test]
async fn aborting_after_the_end_has_no_effect() {
    let env = TestEnv::new();
    let mut run = env.start(env.request(&agent(&env).then(success_end("Hello"))));
    rest_of(&mut run).await.assert_success("Hello");
    run.control().abort();
    run.control().interrupt();
    assert!(run.next().await.is_none());
    bounded("shutdown", env.runtime.wait_idle()).await;
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_the_output_of_grandchildren() {
    let env = TestEnv::new();
    let child = Script::new().write_pid(&env.pid_file(), "left-behind").ready().hang();
    let mut request = env.request(&agent(&env).spawn(Child::new(child)).then(success_end("Hello")));
    request.limits.drain = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = env.pid("agent").await;
    wait_until("the agent has exited", || !is_alive(agent)).await;
    run.control().abort();
    rest_after(events, &mut run).await.assert_success("Hello");
    env.assert_all_dead();
}

/// The exit, the result and the abort happen at nearly the same time, in any order.
#[tokio::test(flavor = "multi_thread")]
async fn an_abort_at_any_moment_has_one_done() {
    let env = TestEnv::new();
    for turn in 0..40_u32 {
        let script = agent(&env).claude_text("Hello").claude_result("Hello").exit(0);
        let mut run = env.start(env.request(&script));
        tokio::time::sleep(std::time::Duration::from_micros(u64::from(turn) * 250)).await;
        run.control().abort();
        let stream = rest_of(&mut run).await;
        assert_eq!(stream.result().aborted, stream.result().is_error, "{:?}", stream.events);
        env.assert_all_dead();
    }
}
