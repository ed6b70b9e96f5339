//! A consumer that reads slowly or not at all.

use std::fs::File;

use teamster::event::{ErrorCode, WarningCode};
use teamster_testkit::fake::Script;

use crate::test_env::{
    INTERRUPT, LONG, SHORT, TestEnv, agent, block_until, bounded, counted, is_alive, is_text, read_until, rest_after,
    rest_of, state, success_end, wait_until,
};

const DELTAS: u64 = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_during_a_burst_gets_all_of_it_in_order() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(DELTAS).claude_result("all of it").read_to_end();
    let mut request = env.request(&script);
    request.limits.silence = SHORT * 10;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = env.pid("agent").await;
    // The agent is not delayed: it exits although nothing reads its events.
    wait_until("the agent has exited", || !is_alive(agent)).await;
    let stream = rest_after(events, &mut run).await;
    stream.assert_success(&counted(DELTAS));
    assert_eq!(stream.warnings(&WarningCode::Spilled).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_does_not_trigger_the_watchdog() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(20_000).claude_result("all of it").read_to_end();
    let mut request = env.request(&script);
    request.limits.silence = SHORT * 5;
    request.limits.after_result = SHORT * 5;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 15).await;
    rest_after(events, &mut run).await.assert_success(&counted(20_000));
}

/// The pause is many times the watchdog's limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_for_long_blocks_the_agent_and_loses_nothing() {
    let env = TestEnv::new();
    let script =
        agent(&env).claude_burst(30_000).write_pid(&env.pid_file(), "written").claude_result("all of it").read_to_end();
    let mut request = env.request(&script);
    request.limits.backlog_bytes = 100_000;
    request.limits.backlog_disk_bytes = 400_000;
    request.limits.silence = SHORT * 4;
    request.limits.after_result = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 8).await;
    // Memory and disk limits are reached, and nothing more is read: the agent blocks, and the
    // watchdog does not count that.
    assert_eq!(env.pids().len(), 1);
    let stream = rest_after(events, &mut run).await;
    stream.assert_success(&counted(30_000));
    assert_eq!(stream.warnings(&WarningCode::Spilled).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_without_disk_backlog_loses_nothing() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(20_000).claude_result("all of it").read_to_end();
    let mut request = env.request(&script);
    request.limits.backlog_bytes = 0;
    request.limits.backlog_disk_bytes = 0;
    request.limits.silence = SHORT * 4;
    request.limits.after_result = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 8).await;
    let stream = rest_after(events, &mut run).await;
    stream.assert_success(&counted(20_000));
    assert!(stream.warnings(&WarningCode::Spilled).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_does_not_wait_for_a_consumer_that_does_not_read() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).claude_burst(u64::MAX));
    request.limits.backlog_bytes = 0;
    request.limits.backlog_disk_bytes = 0;
    request.limits.deadline = SHORT * 5;
    request.limits.grace = SHORT;
    let mut run = env.start(request);
    let agent = env.pid("agent").await;
    wait_until("the agent is gone", || !is_alive(agent)).await;
    rest_of(&mut run).await.assert_failed(&ErrorCode::DeadlineExceeded);
}

/// The test blocks the thread that the drivers need. When they continue, the limit has long passed,
/// but the agents' output is in the pipes.
#[tokio::test(flavor = "current_thread")]
async fn a_blocked_host_thread_does_not_trigger_the_watchdog() {
    const AGENTS: usize = 12;
    let env = TestEnv::new();
    let (go, end) = (env.path("go"), env.path("end"));
    let mut runs = Vec::new();
    for number in 0..AGENTS {
        let script = Script::new()
            .on_line(INTERRUPT, Script::new().exit(1))
            .claude_init()
            .claude_text("Hello")
            .await_file(&go)
            .claude_text(" again")
            .write_pid(&env.pid_file(), number.to_string())
            .await_file(&end)
            .claude_result("Hello again")
            .read_to_end();
        let mut request = env.request(&script);
        request.limits.silence = SHORT * 5;
        runs.push(env.start(request));
    }
    let mut stream = Vec::new();
    for run in &mut runs {
        stream.push(read_until(run, is_text).await);
    }

    File::create(&go).unwrap();
    block_until("all agents have written", || env.pids().len() == AGENTS);
    std::thread::sleep(SHORT * 6);

    // Time for agents that were interrupted to exit.
    tokio::time::sleep(SHORT).await;
    File::create(&end).unwrap();
    for (mut run, events) in runs.into_iter().zip(stream) {
        rest_after(events, &mut run).await.assert_success("Hello\n\n again");
    }
}

#[tokio::test]
async fn a_run_that_is_not_read_still_ends_its_process() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(1000).claude_result("all of it").read_to_end();
    let mut run = env.start(env.request(&script));
    let agent = env.pid("agent").await;
    wait_until("the agent is reaped", || state(agent).is_none()).await;
    rest_of(&mut run).await.assert_success(&counted(1000));
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_consumer_that_does_not_read() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(1000).claude_result("all of it").read_to_end();
    let mut run = env.start(env.request(&script));
    bounded("shutdown", env.runtime.wait_idle()).await;
    env.assert_all_dead();
    rest_of(&mut run).await.assert_success(&counted(1000));
}

#[tokio::test]
async fn waiting_for_the_next_event_is_cancel_safe() {
    let env = TestEnv::new();
    let script = (0..50).fold(agent(&env), |script, _| script.claude_text("word ").sleep(SHORT / 50));
    let mut run = env.start(env.request(&script.then(success_end("end"))));
    let mut events = Vec::new();
    let stream = loop {
        match tokio::time::timeout(SHORT / 100, run.next()).await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break rest_after(events, &mut run).await,
            Err(_) => {}
        }
    };
    stream.assert_success(&format!("{}end", "word \n\n".repeat(50)));
}
