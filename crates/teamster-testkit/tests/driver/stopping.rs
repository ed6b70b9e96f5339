//! Interrupting and aborting a run.

use std::time::Instant;

use serde_json::json;
use teamster::event::StopReason;
use teamster_testkit::fake::{Child, Script, Signal};

use crate::lab::{
    INTERRUPT, LONG, Lab, SHORT, agent, bounded, eventually, good_end, is_alive, is_init, is_text, is_tool_use,
    read_until, rest_after, rest_of, state,
};

#[tokio::test]
async fn an_agent_that_obeys_an_interrupt_ends_the_run_itself() {
    let lab = Lab::new();
    let last_words = Script::new().claude_text("Stopping.").claude_interrupted();
    let script = agent(&lab)
        .on_line(INTERRUPT, last_words)
        .claude_text("Working. ")
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .read_to_end();
    let mut request = lab.request(&script);
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_tool_use).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().text, "Working. Stopping.", "what is said while it ends is told");
    assert_eq!(told.result().exit_code, Some(0));
    assert_eq!(told.result().stop_reason, Some(StopReason::Cancelled));
    let closed = &told.tool_results()[0];
    assert_eq!((closed.output.as_str(), closed.is_error), ("interrupted", Some(true)));
}

#[tokio::test]
async fn an_interrupt_that_comes_too_late_does_not_spoil_a_success() {
    let lab = Lab::new();
    let script =
        agent(&lab).claude_text("Hello").on_line(INTERRUPT, Script::new().claude_result("Hello")).read_to_end();
    let mut request = lab.request(&script);
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_good("Hello");
    assert!(!told.result().aborted);
}

#[tokio::test]
async fn an_agent_that_ignores_an_interrupt_is_ended() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).claude_text("Hello").hang());
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
    assert_eq!(told.result().text, "Hello");
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_agent_that_ignores_an_interrupt_and_sigterm_is_killed() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).ignore(Signal::Term).claude_text("Hello").hang());
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGKILL"));
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_an_agent_that_was_asked_politely() {
    let lab = Lab::new();
    let script = agent(&lab).on_line(INTERRUPT, Script::new().claude_text("heard")).claude_text("Hello").hang();
    let mut request = lab.request(&script);
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let mut events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    events.extend(read_until(&mut run, |event| format!("{event:?}").contains("heard")).await);
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn an_interrupt_before_the_start_is_not_lost() {
    let lab = Lab::new();
    let mut request = lab.request(&Script::new().claude_answers_interrupts().then(agent(&lab)).read_to_end());
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    run.control().interrupt();
    rest_of(&mut run).await.is_aborted();
}

#[tokio::test]
async fn an_agent_that_obeys_sigterm_is_not_killed() {
    let lab = Lab::new();
    let last_words = Script::new().claude_text("Goodbye.").exit(7);
    let mut request = lab.request(&agent(&lab).on_signal(Signal::Term, last_words).claude_text("Hello. ").hang());
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().text, "Hello. Goodbye.", "what is said while it ends is told");
    assert_eq!(told.result().exit_code, Some(7));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let lab = Lab::new();
    let mut request = lab.request(&Script::new().ignore(Signal::Term).then(agent(&lab)).hang());
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_init).await;
    let began = Instant::now();
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    assert!(began.elapsed() >= SHORT);
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGKILL"));
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_abort_ends_the_whole_tree() {
    let lab = Lab::new();
    let child = |name: &str| Script::new().write_pid(&lab.pid_file(), name).ready().hang();
    let stubborn = Script::new().ignore(Signal::Term).then(child("stubborn"));
    let script = agent(&lab)
        .spawn(Child::new(child("plain")))
        .spawn(Child::new(child("daemon")).session().without_stdout())
        .spawn(Child::new(stubborn).own_group())
        .claude_text("Hello")
        .hang();
    let mut request = lab.request(&script);
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    run.control().abort();
    rest_after(events, &mut run).await.is_aborted();
    assert_eq!(lab.pids().len(), 4);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_stopped_cli_is_ended_by_an_abort() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).raise(Signal::Stop).hang());
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_init).await;
    let agent = lab.pid("agent").await;
    eventually("the agent is stopped", || state(agent) == Some('T')).await;
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn a_stopped_cli_is_ended_by_an_interrupt() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).raise(Signal::Stop).hang());
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_init).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.is_aborted();
    lab.assert_all_dead();
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_aborted_before_its_start_starts_nothing() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&agent(&lab).hang()));
    run.control().abort();
    let told = rest_of(&mut run).await;
    told.is_aborted();
    assert_eq!(told.events.len(), 2);
    assert!(lab.pids().is_empty());
}

#[tokio::test]
async fn aborting_twice_is_aborting_once() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&agent(&lab).hang()));
    let events = read_until(&mut run, is_init).await;
    let control = run.control();
    control.abort();
    control.abort();
    control.interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.events.len(), 3);
}

#[tokio::test]
async fn aborting_after_the_end_is_nothing() {
    let lab = Lab::new();
    let mut run = lab.start(lab.request(&agent(&lab).then(good_end("Hello"))));
    rest_of(&mut run).await.is_good("Hello");
    run.control().abort();
    run.control().interrupt();
    assert!(run.next().await.is_none());
    bounded("shutdown", lab.runtime.shutdown()).await;
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_the_output_of_others() {
    let lab = Lab::new();
    let child = Script::new().write_pid(&lab.pid_file(), "left-behind").ready().hang();
    let mut request = lab.request(&agent(&lab).spawn(Child::new(child)).then(good_end("Hello")));
    request.limits.drain = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = lab.pid("agent").await;
    eventually("the agent has exited", || !is_alive(agent)).await;
    run.control().abort();
    rest_after(events, &mut run).await.is_good("Hello");
    lab.assert_all_dead();
}

/// The exit, the result and the abort come at once, in every order.
#[tokio::test(flavor = "multi_thread")]
async fn an_abort_at_any_moment_gives_one_end() {
    let lab = Lab::new();
    for turn in 0..40_u32 {
        let script = agent(&lab).claude_text("Hello").claude_result("Hello").exit(0);
        let mut run = lab.start(lab.request(&script));
        tokio::time::sleep(std::time::Duration::from_micros(u64::from(turn) * 250)).await;
        run.control().abort();
        let told = rest_of(&mut run).await;
        assert_eq!(told.result().aborted, told.result().is_error, "{:?}", told.events);
        lab.assert_all_dead();
    }
}
