//! Limits of the driver's memory that no agent can exceed. Each test has its own process, whose
//! memory is measured.

use std::fs;

use serde_json::{Value, json};
use teamster::event::{ErrorCode, Event, WarningCode};
use teamster::request::Answer;
use teamster_testkit::fake::Script;

use crate::test_env::{
    LONG, SHORT, TestEnv, agent, bounded, is_alive, is_text, read_until, rest_after, rest_of, wait_until,
};

const MIB: usize = 1 << 20;

/// Returns the peak memory of this process, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}

fn assert_grew_less_than(before: usize, bytes: usize) {
    let grown = peak().saturating_sub(before);
    assert!(grown < bytes, "{} MiB more", grown / MIB);
}

fn result_of_a_tool(bytes: usize) -> Value {
    let result = json!({"type": "tool_result", "tool_use_id": "t{n}", "content": "x".repeat(bytes)});
    json!({"type": "user", "message": {"role": "user", "content": [result]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_sends_endless_requests_and_reads_no_answers_is_paused_until_the_watchdog_ends_it() {
    let env = TestEnv::new();
    let question = json!({"type": "control_request", "request_id": format!("{{n}}{}", "x".repeat(100_000)),
        "request": {"subtype": "unheard_of"}});
    let mut request = env.request(&agent(&env).burst(1000, question).claude_result("never").read_to_end());
    request.limits.silence = SHORT * 10;
    let before = peak();
    let stream = bounded("the run's end", env.finish(request)).await;
    assert_grew_less_than(before, 60 * MIB);
    stream.assert_failed(&ErrorCode::WatchdogTimeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_that_wait_for_their_consumer_use_no_more_memory_than_small_ones() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Look: ").burst(70, result_of_a_tool(MIB)).claude_result("all of it");
    let mut request = env.request(&script.read_to_end());
    request.limits.after_result = LONG;
    let before = peak();
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = env.pid("agent").await;
    wait_until("the agent has exited", || !is_alive(agent)).await;
    assert_grew_less_than(before, 45 * MIB);
    let stream = rest_after(events, &mut run).await;
    stream.assert_success("Look: ");
    let results = stream.events.iter().filter(|event| matches!(event, Event::ToolResult(_)));
    assert_eq!(results.count(), 70);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_memory_limit_are_denied_at_once() {
    let env = TestEnv::new();
    let ask = json!({"type": "control_request", "request_id": "r{n}", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "input": {"command": "x".repeat(MIB)}, "tool_use_id": "t{n}"}});
    let denied = |number: u32| format!("\"request_id\":\"r{number}\",\"response\":{{\"behavior\":\"deny\"");
    let script = Script::new().await_line("one").claude_init().burst(40, ask).await_line(denied(39));
    let mut request = env.request(&script.claude_text("1").claude_result("1").read_to_end());
    request.prompt.clear();
    let session = env.runtime.open("claude", request).unwrap();
    let mut run = session.send("one").unwrap();
    let events = read_until(&mut run, is_text).await;
    let asked = events.iter().filter_map(|event| match event {
        Event::PermissionRequest(request) => Some(request.request_id.clone()),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), 15);
    for request in asked {
        // The turn may have ended by now.
        _ = session.answer(request, Answer::Deny { message: None }).await;
    }
    rest_after(events, &mut run).await.assert_success("1");
    bounded("the session's end", session.close()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_between_turns_are_limited_and_the_next_turn_reports_how_many_are_missing() {
    let env = TestEnv::new();
    let turn = |expected: &str, answer: &str| {
        Script::new().await_line(expected).claude_init().claude_text(answer).claude_result(answer)
    };
    let between = Script::new().burst(60, result_of_a_tool(MIB)).write_pid(&env.pid_file(), "written");
    let mut request = env.request(&turn("one", "1").then(between).then(turn("two", "2")).read_to_end());
    request.prompt.clear();
    let before = peak();
    let session = env.runtime.open("claude", request).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    env.pid("written").await;
    let stream = rest_of(&mut session.send("two").unwrap()).await;
    assert_grew_less_than(before, 60 * MIB);
    stream.assert_success("2");
    let missing = stream.warnings(&WarningCode::Notice);
    assert!(missing.iter().any(|warning| warning.message.as_str().contains("events are missing")), "{missing:?}");
    bounded("the session's end", session.close()).await;
}
