//! A consumer that takes its time.

use std::fs::File;

use teamster::event::{ErrorCode, WarningCode};
use teamster_testkit::fake::Script;

use crate::lab::{
    INTERRUPT, LONG, Lab, SHORT, agent, block_until, bounded, counted, eventually, good_end, is_alive, is_text,
    read_until, rest_after, rest_of, state,
};

const DELTAS: u64 = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_during_a_burst_gets_all_of_it_in_order() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(DELTAS).claude_result("all of it").read_to_end();
    let mut request = lab.request(&script);
    request.limits.silence = SHORT * 10;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = lab.pid("agent").await;
    // The agent is never held up: it comes to its end although nobody reads.
    eventually("the agent has exited", || !is_alive(agent)).await;
    let told = rest_after(events, &mut run).await;
    told.is_good(&counted(DELTAS));
    assert_eq!(told.warnings(&WarningCode::Spilled).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_does_not_wake_the_watchdog() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(20_000).claude_result("all of it").read_to_end();
    let mut request = lab.request(&script);
    request.limits.silence = SHORT * 5;
    request.limits.after_result = SHORT * 5;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 15).await;
    rest_after(events, &mut run).await.is_good(&counted(20_000));
}

/// Hours of it, as far as the watchdog is concerned: many times its limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_for_long_holds_the_agent_up_and_loses_nothing() {
    let lab = Lab::new();
    let script =
        agent(&lab).claude_burst(30_000).write_pid(&lab.pid_file(), "written").claude_result("all of it").read_to_end();
    let mut request = lab.request(&script);
    request.limits.backlog_bytes = 100_000;
    request.limits.backlog_disk_bytes = 400_000;
    request.limits.silence = SHORT * 4;
    request.limits.after_result = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 8).await;
    // Memory and disk are used up, and nothing more is read: the agent stands still, and nobody blames it.
    assert_eq!(lab.pids().len(), 1);
    let told = rest_after(events, &mut run).await;
    told.is_good(&counted(30_000));
    assert_eq!(told.warnings(&WarningCode::Spilled).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_stops_reading_where_nothing_may_wait_on_disk_loses_nothing() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(20_000).claude_result("all of it").read_to_end();
    let mut request = lab.request(&script);
    request.limits.backlog_bytes = 0;
    request.limits.backlog_disk_bytes = 0;
    request.limits.silence = SHORT * 4;
    request.limits.after_result = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 8).await;
    let told = rest_after(events, &mut run).await;
    told.is_good(&counted(20_000));
    assert!(told.warnings(&WarningCode::Spilled).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_does_not_wait_for_a_consumer_that_does_not_read() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).claude_burst(u64::MAX));
    request.limits.backlog_bytes = 0;
    request.limits.backlog_disk_bytes = 0;
    request.limits.deadline = SHORT * 5;
    request.limits.grace = SHORT;
    let mut run = lab.start(request);
    let agent = lab.pid("agent").await;
    eventually("the agent is gone", || !is_alive(agent)).await;
    rest_of(&mut run).await.failed(&ErrorCode::DeadlineExceeded);
}

/// The test blocks the thread that the drivers need too. When they go on, the limit has long passed, but the agents'
/// words lie in the pipes.
#[tokio::test(flavor = "current_thread")]
async fn a_host_that_was_busy_elsewhere_does_not_wake_the_watchdog() {
    const AGENTS: usize = 12;
    let lab = Lab::new();
    let (go, end) = (lab.path("go"), lab.path("end"));
    let mut runs = Vec::new();
    for number in 0..AGENTS {
        let script = Script::new()
            .on_line(INTERRUPT, Script::new().exit(1))
            .claude_init()
            .claude_text("Hello")
            .await_file(&go)
            .claude_text(" again")
            .write_pid(&lab.pid_file(), number.to_string())
            .await_file(&end)
            .claude_result("Hello again")
            .read_to_end();
        let mut request = lab.request(&script);
        request.limits.silence = SHORT * 5;
        runs.push(lab.start(request));
    }
    let mut told = Vec::new();
    for run in &mut runs {
        told.push(read_until(run, is_text).await);
    }

    File::create(&go).unwrap();
    block_until("all have spoken", || lab.pids().len() == AGENTS);
    std::thread::sleep(SHORT * 6);

    // Time for those who were asked to stop to do so.
    tokio::time::sleep(SHORT).await;
    File::create(&end).unwrap();
    for (mut run, events) in runs.into_iter().zip(told) {
        rest_after(events, &mut run).await.is_good("Hello again");
    }
}

#[tokio::test]
async fn a_run_that_nobody_reads_ends_its_process_all_the_same() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(1000).claude_result("all of it").read_to_end();
    let mut run = lab.start(lab.request(&script));
    let agent = lab.pid("agent").await;
    eventually("the agent is reaped", || state(agent).is_none()).await;
    rest_of(&mut run).await.is_good(&counted(1000));
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_consumer_that_does_not_read() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(1000).claude_result("all of it").read_to_end();
    let mut run = lab.start(lab.request(&script));
    bounded("shutdown", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
    rest_of(&mut run).await.is_good(&counted(1000));
}

#[tokio::test]
async fn waiting_for_the_next_event_can_be_given_up_and_begun_again() {
    let lab = Lab::new();
    let script = (0..50).fold(agent(&lab), |script, _| script.claude_text("word ").sleep(SHORT / 50));
    let mut run = lab.start(lab.request(&script.then(good_end("end"))));
    let mut events = Vec::new();
    let told = loop {
        match tokio::time::timeout(SHORT / 100, run.next()).await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break rest_after(events, &mut run).await,
            Err(_) => {}
        }
    };
    told.is_good(&format!("{}end", "word ".repeat(50)));
}
