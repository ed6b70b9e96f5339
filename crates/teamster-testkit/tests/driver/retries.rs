//! What failed in passing is started again, in the same stream.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use teamster::event::{ErrorCode, Event, MessageId, WarningCode};
use teamster::request::{Background, Conversation, EvenAfter, Mode, Retries};
use teamster::{Run, RunRequest, Runtime};
use teamster_testkit::fake::{Child, Script};

use crate::lab::{
    BOUND, LONG, Lab, SHORT, Told, agent, block_until, bounded, counted, good_end, is_alive, is_tool_use, read_until,
    rest_after, rest_of,
};

/// How an overloaded vendor ends a turn.
fn overloaded(lab: &Lab) -> Script {
    agent(lab).then(overload())
}

fn overload() -> Script {
    Script::new().claude_api_error(529, "Overloaded.").read_to_end().exit(1)
}

fn good(lab: &Lab, text: &str) -> Script {
    agent(lab).then(good_end(text))
}

/// A request for a run whose attempts play these scripts in turn, and which may be started again so often, at once.
fn request<const ATTEMPTS: usize>(lab: &Lab, max: u32, attempts: [Script; ATTEMPTS]) -> RunRequest {
    let mut request = lab.request(&Script::new().play_next(&lab.path("attempts"), attempts));
    request.retries.max = max;
    request.retries.base = Duration::ZERO;
    request.limits.startup = LONG;
    request
}

/// How often the CLI was started.
fn starts(lab: &Lab) -> u64 {
    std::fs::metadata(lab.path("attempts")).map_or(0, |file| file.len())
}

fn data(told: &Told, code: &WarningCode) -> Vec<Value> {
    told.warnings(code).iter().map(|warning| json!(warning.data)).collect()
}

fn why_not(told: &Told) -> Vec<Value> {
    data(told, &WarningCode::NotRetried).into_iter().map(|data| data["reason"].clone()).collect()
}

fn is_retrying(event: &Event) -> bool {
    matches!(event, Event::Warning(warning) if warning.code == WarningCode::Retrying)
}

/// A run that waits for a minute at least to be started again, and what it has said so far.
async fn waiting(lab: &Lab, attempts: [Script; 2]) -> (Run, Vec<Event>) {
    let mut request = request(lab, 3, attempts);
    request.retries.base = Retries::LONGEST_WAIT;
    let mut run = lab.start(request);
    let events = read_until(&mut run, is_retrying).await;
    (run, events)
}

#[tokio::test]
async fn a_run_that_fails_in_passing_is_started_again_until_it_goes_well() {
    let lab = Lab::new();
    let attempts = [overloaded(&lab), overloaded(&lab), good(&lab, "Hello")];
    let told = lab.finish(request(&lab, 3, attempts)).await;
    told.is_good("Hello");
    assert_eq!(told.result().exit_code, Some(0));
    let warnings = data(&told, &WarningCode::Retrying);
    assert_eq!(warnings.iter().map(|data| data["attempt"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    for data in warnings {
        assert_eq!((&data["max"], &data["delayMs"], &data["errorCode"]), (&json!(3), &json!(0), &json!("OVERLOADED")));
        assert_eq!(data["errorMessage"], "API Error: 529 Overloaded.");
    }
    assert!(!told.events.iter().any(|event| matches!(event, Event::Error(_))));
    assert_eq!(starts(&lab), 3);
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_process_that_a_retried_attempt_leaves_is_named_in_the_result() {
    let lab = Lab::new();
    let daemon = |name| {
        let script = Script::new().write_pid(&lab.pid_file(), name).ready().hang();
        Child::new(script).session().without_stdout()
    };
    let failed = agent(&lab).spawn(daemon("first")).then(overload());
    let well = agent(&lab).spawn(daemon("second")).then(good_end("Hello"));
    let mut request = request(&lab, 1, [failed, well]);
    request.background = Background::Keep;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    let daemons = [lab.pid("first").await, lab.pid("second").await];
    let left: Vec<_> = told.result().left_processes.iter().map(|left| left.pid).collect();
    let alive = daemons.map(is_alive);
    for pid in daemons {
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }
    assert_eq!((left.as_slice(), alive), (&daemons[..], [true; 2]));
}

#[tokio::test]
async fn without_being_asked_nothing_is_started_again() {
    let lab = Lab::new();
    let told = lab.finish(request(&lab, 0, [overloaded(&lab), good(&lab, "Hello")])).await;
    told.failed(&ErrorCode::Overloaded);
    assert!(told.warnings(&WarningCode::Retrying).is_empty() && why_not(&told).is_empty());
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn what_fails_for_good_is_not_started_again() {
    let lab = Lab::new();
    let refused = || agent(&lab).claude_api_error(401, "Invalid API key").read_to_end().exit(1);
    for attempts in [[refused(), good(&lab, "Hello")], [agent(&lab).exit(3), good(&lab, "Hello")]] {
        std::fs::remove_file(lab.path("attempts")).ok();
        let told = lab.finish(request(&lab, 3, attempts)).await;
        assert!(told.result().is_error);
        assert!(told.warnings(&WarningCode::Retrying).is_empty() && why_not(&told).is_empty());
        assert_eq!(starts(&lab), 1);
    }
}

#[tokio::test]
async fn when_no_retry_is_left_the_last_failure_stands() {
    let lab = Lab::new();
    let last = agent(&lab).claude_text("Hel").claude_api_error(500, "Internal").read_to_end().exit(1);
    let told = lab.finish(request(&lab, 2, [overloaded(&lab), overloaded(&lab), last])).await;
    assert_eq!(told.failed(&ErrorCode::Provider), "API Error: 500 Internal");
    assert_eq!(told.result().text, "Hel");
    assert_eq!(told.result().exit_code, Some(1));
    assert_eq!(told.warnings(&WarningCode::Retrying).len(), 2);
    assert_eq!(starts(&lab), 3);
}

#[tokio::test]
async fn what_a_failed_attempt_said_is_taken_back_and_its_ids_do_not_come_again() {
    let lab = Lab::new();
    let half = || agent(&lab).claude_text("Half ").claude_partial_text("an answ").then(overload());
    let whole = agent(&lab).claude_text("A whole ").then(good_end("answer."));
    let told = lab.finish(request(&lab, 3, [half(), half(), whole])).await;
    told.is_good("A whole answer.");
    assert_eq!(told.result().final_text, "answer.");
    // The fake numbers its messages anew each time.
    let mut attempts: Vec<HashSet<MessageId>> = vec![HashSet::new()];
    let mut retracted = HashSet::new();
    for event in &told.events {
        match event {
            Event::Text(delta) => _ = attempts.last_mut().unwrap().insert(delta.message_id.clone()),
            Event::Retract(retract) => _ = retracted.insert(retract.message_id.clone()),
            event if is_retrying(event) => attempts.push(HashSet::new()),
            _ => {}
        }
    }
    assert_eq!(attempts.iter().map(HashSet::len).collect::<Vec<_>>(), [2, 2, 2]);
    assert!(attempts[0].is_disjoint(&attempts[1]) && attempts[1].is_disjoint(&attempts[2]));
    assert_eq!(retracted, &attempts[0] | &attempts[1]);
}

#[tokio::test]
async fn what_attempts_cost_is_added_up() {
    let lab = Lab::new();
    let alone = lab.play(&good(&lab, "Hello")).await;
    let told = lab.finish(request(&lab, 3, [overloaded(&lab), overloaded(&lab), good(&lab, "Hello")])).await;
    let (alone, told) = (alone.result(), told.result());
    let (one, three) = (alone.usage.clone().unwrap(), told.usage.clone().unwrap());
    assert_eq!(three.output_tokens, 3 * one.output_tokens);
    assert_eq!(three.cache_read_tokens, one.cache_read_tokens.map(|tokens| 3 * tokens));
    assert!((told.total_cost_usd.unwrap() - 3.0 * alone.total_cost_usd.unwrap()).abs() < 1e-9);
    assert_eq!(told.api_duration_ms, alone.api_duration_ms.map(|time| 3 * time));
    assert_eq!(told.num_turns, alone.num_turns);
}

#[tokio::test]
async fn a_run_whose_tools_have_run_is_started_again_only_where_that_is_asked_for() {
    let lab = Lab::new();
    let worked = || agent(&lab).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).then(overload());
    let told = lab.finish(request(&lab, 3, [worked(), good(&lab, "Hello")])).await;
    told.failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&told), ["tools"]);
    assert_eq!(starts(&lab), 1);

    let lab = Lab::new();
    let again = agent(&lab)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .then(good_end("Made."));
    let mut request = request(&lab, 3, [worked(), again]);
    request.retries.even_after = EvenAfter::Tools;
    let told = lab.finish(request).await;
    told.is_good("Made.");
    let results: Vec<_> = told.tool_results().iter().map(|result| result.output.clone()).collect();
    assert_eq!(results, ["interrupted", "made"]);
    assert_eq!(told.events.iter().filter(|event| is_tool_use(event)).count(), 2);
}

#[tokio::test]
async fn a_tool_of_any_attempt_counts() {
    let lab = Lab::new();
    let worked = agent(&lab)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .then(overload());
    let told = lab.finish(request(&lab, 3, [overloaded(&lab), worked, good(&lab, "Hello")])).await;
    told.failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&told), ["tools"]);
    assert_eq!(starts(&lab), 2);
}

#[tokio::test]
async fn a_session_that_may_hold_the_prompt_gets_it_again_only_where_that_is_asked_for() {
    for conversation in [Conversation::Resume("078672f8-b675-400d-816b-6dfdee66f8d8".into()), Conversation::Continue] {
        let lab = Lab::new();
        let mut strict = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
        strict.conversation = conversation.clone();
        let told = lab.finish(strict).await;
        told.failed(&ErrorCode::Overloaded);
        assert_eq!(why_not(&told), ["prompt"]);
        assert_eq!(starts(&lab), 1);

        let lab = Lab::new();
        let mut lenient = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
        lenient.conversation = conversation;
        lenient.retries.even_after = EvenAfter::Prompt;
        lab.finish(lenient).await.is_good("Hello");
    }
}

#[tokio::test]
async fn a_fork_is_started_again_since_its_origin_is_as_it_was() {
    let lab = Lab::new();
    let mut request = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
    request.conversation = Conversation::Fork("078672f8-b675-400d-816b-6dfdee66f8d8".into());
    lab.finish(request).await.is_good("Hello");
}

#[tokio::test]
async fn a_session_that_was_in_use_is_tried_again() {
    const THREAD: &str = "01a20194-0769-7e20-b418-f83e73d8a601";
    const FAILED: &str = "thread/resume: thread/resume failed";
    let lab = Lab::new();
    let busy = Script::new()
        .stderr(format!("Error: {FAILED}: thread {THREAD} already has an active writer (code -32600)\n"))
        .exit(1);
    let answer = json!({"id": "item_0", "type": "agent_message", "text": "Hello"});
    let free = Script::new()
        .line(json!({"type": "thread.started", "thread_id": THREAD}))
        .line(json!({"type": "turn.started"}))
        .line(json!({"type": "item.completed", "item": answer}))
        .line(json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}));
    let mut request = request(&lab, 3, [busy, free]);
    request.conversation = Conversation::Resume(THREAD.into());
    request.mode = Mode::Exec;
    let told = rest_of(&mut lab.runtime.run("codex", request).unwrap()).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::Retrying).len(), 1);
}

#[tokio::test]
async fn another_session_than_the_one_that_was_told_is_named() {
    let lab = Lab::new();
    let session = "00000000-0000-4000-8000-000000000002";
    let init = json!({"type": "system", "subtype": "init", "session_id": session, "model": "claude-opus-4-8"});
    let elsewhere = Script::new().line(init).then(good_end("Hello"));
    let told = lab.finish(request(&lab, 3, [overloaded(&lab), elsewhere])).await;
    told.is_good("Hello");
    assert_eq!(data(&told, &WarningCode::SessionChanged), [json!({"sessionId": session})]);
}

#[tokio::test]
async fn an_abort_ends_the_wait_at_once() {
    let lab = Lab::new();
    let (mut run, events) = waiting(&lab, [agent(&lab).claude_text("Hel").then(overload()), good(&lab, "Hello")]).await;
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().text, "");
    assert!(told.result().usage.is_some(), "what the failed attempt used is told");
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_at_once() {
    let lab = Lab::new();
    let (mut run, events) = waiting(&lab, [overloaded(&lab), good(&lab, "Hello")]).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.is_aborted();
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn a_run_that_is_dropped_while_it_waits_ends_at_once() {
    let lab = Lab::new();
    let (run, _) = waiting(&lab, [overloaded(&lab), good(&lab, "Hello")]).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert_eq!(starts(&lab), 1);
}

#[test]
fn a_tokio_runtime_that_is_dropped_while_a_run_waits_leaves_a_whole_stream() {
    let lab = Lab::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut run, events) = tokio.block_on(waiting(&lab, [overloaded(&lab), good(&lab, "Hello")]));
    drop(tokio);
    block_until("all die", || lab.pids().values().all(|&pid| !is_alive(pid)));
    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    another.block_on(rest_after(events, &mut run)).is_aborted();
}

#[tokio::test]
async fn what_the_caller_ended_is_not_started_again() {
    let lab = Lab::new();
    let stops = agent(&lab).claude_text("Hello").await_line("teamster-interrupt").then(overload());
    let mut request = request(&lab, 3, [stops, good(&lab, "Hello")]);
    request.limits.grace = LONG;
    let mut run = lab.start(request);
    let events = read_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.is_aborted();
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn a_failure_that_was_told_before_the_callers_abort_stands_and_is_not_started_again() {
    let lab = Lab::new();
    let told = agent(&lab).claude_api_error(529, "Overloaded.").read_to_end().write_pid(&lab.pid_file(), "told").hang();
    let mut request = request(&lab, 3, [told, good(&lab, "Hello")]);
    request.limits.after_result = LONG;
    let mut run = lab.start(request);
    lab.pid("told").await;
    run.control().abort();
    let told = rest_of(&mut run).await;
    told.failed(&ErrorCode::Overloaded);
    assert!(!told.result().aborted);
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn a_run_that_waits_lets_another_one_live() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let (mut run, events) = waiting(&lab, [overloaded(&lab), good(&lab, "Hello")]).await;
    lab.play(&good(&lab, "Meanwhile")).await.is_good("Meanwhile");
    run.control().abort();
    rest_after(events, &mut run).await.is_aborted();
}

#[tokio::test]
async fn a_run_that_is_started_again_waits_for_its_turn_but_not_beyond_the_deadline() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let mut first = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
    first.limits.deadline = SHORT * 20;
    let mut first = lab.start(first);
    let mut second = lab.start(lab.request(&agent(&lab).hang()));
    let told = rest_of(&mut first).await;
    told.failed(&ErrorCode::DeadlineExceeded);
    assert_eq!(starts(&lab), 1);
    second.control().abort();
    rest_of(&mut second).await.is_aborted();
}

#[tokio::test]
async fn what_was_said_is_delivered_while_the_run_waits() {
    const DELTAS: u64 = 5000;
    let lab = Lab::new();
    let (mut run, mut events) =
        waiting(&lab, [agent(&lab).claude_burst(DELTAS).then(overload()), good(&lab, "Hello")]).await;
    let said: String = events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(said, counted(DELTAS));
    run.control().abort();
    events = rest_after(events, &mut run).await.events;
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Retract(_))).count(), 1);
}

#[tokio::test]
async fn a_wait_that_the_deadline_would_cut_short_is_not_begun() {
    let lab = Lab::new();
    let mut request = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
    request.retries.base = Retries::LONGEST_WAIT;
    request.limits.deadline = Retries::LONGEST_WAIT;
    let told = lab.finish(request).await;
    told.failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&told), ["deadline"]);
}

#[tokio::test]
async fn the_deadline_counts_for_all_attempts_together() {
    let lab = Lab::new();
    let mut request = request(&lab, 3, [overloaded(&lab), agent(&lab).hang()]);
    request.limits.deadline = SHORT * 20;
    request.limits.grace = SHORT;
    let told = lab.finish(request).await;
    let message = told.failed(&ErrorCode::DeadlineExceeded);
    assert!(message.contains("4 s, in 2 attempts"), "{message}");
    assert!(told.result().duration_ms >= 4000, "{}", told.result().duration_ms);
    lab.assert_all_dead();
}

fn seconds_from_now(seconds: u64) -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    i64::try_from(time).unwrap()
}

#[tokio::test]
async fn the_end_of_a_limit_is_waited_for() {
    let lab = Lab::new();
    let end = seconds_from_now(2);
    let limited = agent(&lab).claude_rate_limited_until(end).claude_api_error(429, "Limited.").read_to_end().exit(1);
    let told = lab.finish(request(&lab, 3, [limited, good(&lab, "Hello")])).await;
    told.is_good("Hello");
    assert!(seconds_from_now(0) >= end);
}

#[tokio::test]
async fn a_limit_that_lasts_too_long_is_not_waited_for() {
    let lab = Lab::new();
    let end = seconds_from_now(Retries::LONGEST_LIMIT.as_secs() + BOUND.as_secs());
    let limited = agent(&lab).claude_rate_limited_until(end).claude_api_error(429, "Limited.").read_to_end().exit(1);
    let told = lab.finish(request(&lab, 3, [limited, good(&lab, "Hello")])).await;
    told.failed(&ErrorCode::RateLimit);
    assert_eq!(why_not(&told), ["limit"]);
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn attempts_share_the_runs_budget() {
    let lab = Lab::new();
    let mut request = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
    // Less than the first attempt costs.
    request.max_budget_usd = Some(0.001);
    lab.finish(request).await.failed(&ErrorCode::Budget);
    assert_eq!(starts(&lab), 1);
}

#[tokio::test]
async fn a_further_attempt_gets_what_the_one_before_has_left_of_the_budget() {
    let lab = Lab::new();
    let script = r#"for word; do case $word in --max-budget-usd=*) echo "${word#*=}" >> "$BUDGETS";; esac; done; exec "$CLI" "$@""#;
    let cli = lab.path("cli");
    std::fs::write(&cli, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&cli, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut request = request(&lab, 3, [overloaded(&lab), good(&lab, "Hello")]);
    request.max_budget_usd = Some(1.0);
    let program = request.cli_path.replace(cli).unwrap();
    for (name, path) in [("CLI", program), ("BUDGETS", lab.path("budgets"))] {
        request.env.insert(name.to_owned(), path.display().to_string());
    }
    lab.finish(request).await.is_good("Hello");
    let budgets = std::fs::read_to_string(lab.path("budgets")).unwrap();
    let budgets: Vec<f64> = budgets.lines().map(|budget| budget.parse().unwrap()).collect();
    assert!(budgets.len() == 2 && budgets[0] > 0.999 && budgets[1] < 0.999 && budgets[1] > 0.9, "{budgets:?}");
}
