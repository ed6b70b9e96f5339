//! The wait between two attempts of a run: its limits, and everything that ends it early.

use std::num::NonZeroUsize;
use std::time::{SystemTime, UNIX_EPOCH};

use teamster::event::{ErrorCode, Event};
use teamster::request::Retries;
use teamster::{Run, Runtime};
use teamster_testkit::fake::Script;

use crate::retries::{good, is_retrying, overload, overloaded, request, starts, why_not};
use crate::test_env::{
    BOUND, SHORT, TestEnv, agent, block_until, bounded, counted, is_alive, read_until, rest_after, rest_of,
};

/// A run that waits at least a minute for its next attempt, and its events so far.
async fn waiting(env: &TestEnv, attempts: [Script; 2]) -> (Run, Vec<Event>) {
    let mut request = request(env, 3, attempts);
    request.retries.base = Retries::LONGEST_WAIT;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_retrying).await;
    (run, events)
}

#[tokio::test]
async fn an_abort_ends_the_wait_at_once() {
    let env = TestEnv::new();
    let (mut run, events) = waiting(&env, [agent(&env).claude_text("Hel").then(overload()), good(&env, "Hello")]).await;
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().text, "");
    assert!(stream.result().usage.is_some(), "the usage of the failed attempt is reported");
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_at_once() {
    let env = TestEnv::new();
    let (mut run, events) = waiting(&env, [overloaded(&env), good(&env, "Hello")]).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.assert_aborted();
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn a_run_that_is_dropped_between_attempts_ends_at_once() {
    let env = TestEnv::new();
    let (run, _) = waiting(&env, [overloaded(&env), good(&env, "Hello")]).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    assert_eq!(starts(&env), 1);
}

#[test]
fn a_tokio_runtime_that_is_dropped_between_attempts_leaves_a_complete_stream() {
    let env = TestEnv::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut run, events) = tokio.block_on(waiting(&env, [overloaded(&env), good(&env, "Hello")]));
    drop(tokio);
    block_until("all die", || env.pids().values().all(|&pid| !is_alive(pid)));
    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    another.block_on(rest_after(events, &mut run)).assert_aborted();
}

#[tokio::test]
async fn a_run_between_attempts_releases_its_permit() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let (mut run, events) = waiting(&env, [overloaded(&env), good(&env, "Hello")]).await;
    env.play(&good(&env, "Meanwhile")).await.assert_success("Meanwhile");
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
}

#[tokio::test]
async fn a_retry_waits_for_a_permit_but_not_beyond_the_deadline() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let mut first = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
    first.limits.deadline = SHORT * 20;
    let mut first = env.start(first);
    let mut second = env.start(env.request(&agent(&env).hang()));
    let stream = rest_of(&mut first).await;
    stream.assert_failed(&ErrorCode::DeadlineExceeded);
    assert_eq!(starts(&env), 1);
    second.control().abort();
    rest_of(&mut second).await.assert_aborted();
}

#[tokio::test]
async fn output_of_a_failed_attempt_is_delivered_between_attempts() {
    const DELTAS: u64 = 5000;
    let env = TestEnv::new();
    let (mut run, mut events) =
        waiting(&env, [agent(&env).claude_burst(DELTAS).then(overload()), good(&env, "Hello")]).await;
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, counted(DELTAS));
    run.control().abort();
    events = rest_after(events, &mut run).await.events;
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Retract(_))).count(), 1);
}

#[tokio::test]
async fn a_retry_whose_delay_exceeds_the_deadline_is_not_started() {
    let env = TestEnv::new();
    let mut request = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
    request.retries.base = Retries::LONGEST_WAIT;
    request.limits.deadline = Retries::LONGEST_WAIT;
    let stream = env.finish(request).await;
    stream.assert_failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&stream), ["deadline"]);
}

#[tokio::test]
async fn the_deadline_applies_to_all_attempts_together() {
    let env = TestEnv::new();
    let mut request = request(&env, 3, [overloaded(&env), agent(&env).hang()]);
    request.limits.deadline = SHORT * 20;
    request.limits.grace = SHORT;
    let stream = env.finish(request).await;
    let message = stream.assert_failed(&ErrorCode::DeadlineExceeded);
    assert!(message.contains("4 s, in 2 attempts"), "{message}");
    assert!(stream.result().duration_ms >= 4000, "{}", stream.result().duration_ms);
    env.assert_all_dead();
}

fn seconds_from_now(seconds: u64) -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    i64::try_from(time).unwrap()
}

#[tokio::test]
async fn a_retry_waits_until_the_rate_limit_resets() {
    let env = TestEnv::new();
    let end = seconds_from_now(2);
    let limited = agent(&env).claude_rate_limited_until(end).claude_api_error(429, "Limited.").read_to_end().exit(1);
    let stream = env.finish(request(&env, 3, [limited, good(&env, "Hello")])).await;
    stream.assert_success("Hello");
    assert!(seconds_from_now(0) >= end);
}

#[tokio::test]
async fn a_rate_limit_that_lasts_too_long_is_not_awaited() {
    let env = TestEnv::new();
    let end = seconds_from_now(Retries::LONGEST_LIMIT.as_secs() + BOUND.as_secs());
    let limited = agent(&env).claude_rate_limited_until(end).claude_api_error(429, "Limited.").read_to_end().exit(1);
    let stream = env.finish(request(&env, 3, [limited, good(&env, "Hello")])).await;
    stream.assert_failed(&ErrorCode::RateLimit);
    assert_eq!(why_not(&stream), ["limit"]);
    assert_eq!(starts(&env), 1);
}
