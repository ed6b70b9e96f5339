//! What an agent can make grow in the driver. The tests have processes of their own, whose memory is measured.

use std::fs;

use serde_json::{Value, json};
use teamster::event::{ErrorCode, Event, WarningCode};
use teamster::request::Answer;
use teamster_testkit::fake::Script;

use crate::lab::{LONG, Lab, SHORT, agent, bounded, eventually, is_alive, is_text, read_until, rest_after, rest_of};

const MIB: usize = 1 << 20;

/// The most memory that this process has had, in bytes.
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
async fn an_agent_that_asks_without_an_end_and_reads_no_answer_is_read_no_more_until_its_silence_is_too_long() {
    let lab = Lab::new();
    let question = json!({"type": "control_request", "request_id": format!("{{n}}{}", "x".repeat(100_000)),
        "request": {"subtype": "unheard_of"}});
    let mut request = lab.request(&agent(&lab).burst(1000, question).claude_result("never").read_to_end());
    request.limits.silence = SHORT * 10;
    let before = peak();
    let told = bounded("the run's end", lab.finish(request)).await;
    assert_grew_less_than(before, 60 * MIB);
    told.failed(&ErrorCode::WatchdogTimeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_that_wait_for_their_consumer_take_no_more_memory_than_small_ones() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Look: ").burst(70, result_of_a_tool(MIB)).claude_result("all of it");
    let mut request = lab.request(&script.read_to_end());
    request.limits.after_result = LONG;
    let before = peak();
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_text).await;
    let agent = lab.pid("agent").await;
    eventually("the agent has exited", || !is_alive(agent)).await;
    assert_grew_less_than(before, 45 * MIB);
    let told = rest_after(events, &mut run).await;
    told.is_good("Look: ");
    let results = told.events.iter().filter(|event| matches!(event, Event::ToolResult(_)));
    assert_eq!(results.count(), 70);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_too_large_to_wait_together_are_denied_at_once() {
    let lab = Lab::new();
    let ask = json!({"type": "control_request", "request_id": "r{n}", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "input": {"command": "x".repeat(MIB)}, "tool_use_id": "t{n}"}});
    let denied = |number: u32| format!("\"request_id\":\"r{number}\",\"response\":{{\"behavior\":\"deny\"");
    let script = Script::new().await_line("one").claude_init().burst(40, ask).await_line(denied(39));
    let mut frame = lab.request(&script.claude_text("1").claude_result("1").read_to_end());
    frame.prompt.clear();
    let session = lab.runtime.open("claude", frame).unwrap();
    let mut run = session.send("one").unwrap();
    let events = read_until(&mut run, is_text).await;
    let asked = events.iter().filter_map(|event| match event {
        Event::PermissionRequest(request) => Some(request.request_id.clone()),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), 15);
    for request in asked {
        // The turn may be over by now.
        _ = session.answer(request, Answer::Deny { message: None }).await;
    }
    rest_after(events, &mut run).await.is_good("1");
    bounded("the session's end", session.close()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_between_turns_are_kept_to_a_bound_and_the_next_turn_says_how_many_are_missing() {
    let lab = Lab::new();
    let turn =
        |hears: &str, says: &str| Script::new().await_line(hears).claude_init().claude_text(says).claude_result(says);
    let between = Script::new().burst(60, result_of_a_tool(MIB)).write_pid(&lab.pid_file(), "written");
    let mut frame = lab.request(&turn("one", "1").then(between).then(turn("two", "2")).read_to_end());
    frame.prompt.clear();
    let before = peak();
    let session = lab.runtime.open("claude", frame).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    lab.pid("written").await;
    let told = rest_of(&mut session.send("two").unwrap()).await;
    assert_grew_less_than(before, 60 * MIB);
    told.is_good("2");
    let missing = told.warnings(&WarningCode::Notice);
    assert!(missing.iter().any(|warning| warning.message.as_str().contains("events are missing")), "{missing:?}");
    bounded("the session's end", session.close()).await;
}
